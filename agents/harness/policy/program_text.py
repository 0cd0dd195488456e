"""What all program texts have in common: the paths and addresses that their strings name."""

import re
from collections.abc import Iterable

from agents.harness.policy import files, network
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_change

_PATH = re.compile(r"[\w.~/@+*?\[\]-][\w.~/@+*?\[\] -]*")


def check_strings(
    context: Context, strings: Iterable[str], *, writes: bool, inline: bool = True
) -> None:
    """Raise Refused for an address, a secret or a place outside in one of the strings."""
    strings = list(strings)
    if writes and files.joins_protected(strings):
        raise Refused("A5", "Names the parts of a protected folder")
    for text in strings:
        for host, port in network.addresses_in(text):
            if not network.is_loopback(host) and inline:
                raise Refused("A1", f"Names another machine ({host})")
            if network.is_product(context, host, port):
                raise Refused("D4", "Names this product's own address")
        if "\n" in text or not _PATH.fullmatch(text) or "://" in text:
            continue
        is_protected = writes and files.is_protected(context, files.real(context, text))
        if is_protected or "/" in text or "." in text or text.startswith("~"):
            _check_path(context, text, writes=writes)


def _check_path(context: Context, text: str, *, writes: bool) -> None:
    path = files.real(context, text)
    if files.is_secret(path):
        raise Refused("A12", f"Names a file that may hold secrets ({text})")
    if files.is_environment(path) or not files.is_readable(context, path):
        raise Refused("A13", f"Names a place outside the workspace ({text})")
    is_place = "/" in text or files.is_protected(context, path) or text == "package.json"
    if writes and is_place and text not in ("./", "/dev/null"):
        check_change(context, text)
