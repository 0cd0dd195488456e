"""Names of hosts that people allow agents to reach, in one spelling only. Plain Python.

Two texts name the same host only if `normal` makes the same text of both, so they are never compared
as they were typed. Addresses are no names: what they lead to is judged when a name is resolved.
"""

import re

MAX_HOSTS = 50
MAX_PROBLEMS = 5  # that are said at once
MAX_HOST = 253  # characters, the longest name that there is
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # as the last part: an address in some spelling
_FORBIDDEN = {
    "@": "no user name",
    "%": "no % signs",
    "*": "each host by its whole name, without *",
    "/": "only the host of an address, without https:// and path",
    ":": "no port and no IPv6 address",
}


class HostError(ValueError):
    """A text that is not the name of one host; it says why, for the person who typed it."""


def normal(text: str) -> str:
    """Return the one spelling of a host's name: lower case, no dot at the end, IDNA.

    Raises HostError for what is not a whole name: addresses in any spelling, names without a dot,
    user names, ports, wildcards, percent signs, blanks and control characters.
    """
    shown = text[:80] if text.isprintable() else repr(text[:80])
    for mark, rule in _FORBIDDEN.items():
        if mark in text:
            raise HostError(f"{shown} is not the name of a host: {rule}.")
    name = _ascii(text.removesuffix("."), shown).lower()
    labels = name.split(".")
    if len(name) > MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostError(f"{shown} is not the name of a host, such as pkg.example.")
    if _NUMBER.fullmatch(labels[-1]):
        raise HostError(f"{shown} is an address. Write the name of the host.")
    if len(labels) == 1:
        raise HostError(f"{shown} is not a whole name: it has no dot.")
    return name


def _ascii(name: str, shown: str) -> str:
    """Return the form in which resolvers are asked; one that does not lead back is another name."""
    if name.isascii():
        return name
    try:
        encoded = name.encode("idna")
        is_same = encoded.decode("idna") == name.lower()
    except UnicodeError:
        is_same = False
    if not is_same:
        raise HostError(f"{shown} can be read as two names. Write it in its form xn--.")
    return encoded.decode("ascii")


def parse(text: str) -> tuple[str, ...]:
    """Return the hosts of a text with one on each line, in order, each once.

    Raises HostError, which names each line that is not a host.
    """
    hosts: list[str] = []
    problems: list[str] = []
    for line in text.split("\n"):
        try:
            if line.strip():
                hosts.append(normal(line.strip()))
        except HostError as error:
            problems.append(str(error))
    if problems:
        raise HostError(" ".join(problems[:MAX_PROBLEMS]))
    if len(hosts) > MAX_HOSTS:
        raise HostError(f"At most {MAX_HOSTS} hosts.")
    return tuple(dict.fromkeys(hosts))
