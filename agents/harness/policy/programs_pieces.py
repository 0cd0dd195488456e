"""Programs that put files together or cut them up, and make names for new ones (rule L2)."""

from collections.abc import Callable

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_change import split_options
from agents.harness.policy.programs_paths import Refused, check_change, check_read
from agents.harness.policy.secrets import SECRET_GLOBS

_MOST_SECRETS = 20


def _zip(context: Context, arguments: list[str]) -> str:
    """Packing what is inside, and no secrets."""
    plain, _ = split_options(
        "zip", arguments, "rqjyv9876543210m"[:-1], "xi", ("--quiet", "--exclude=")
    )
    for path in plain[1:]:
        check_packed(context, path)
    check_change(context, plain[0] if plain else "")
    return "L2"


def check_packed(context: Context, path: str) -> None:
    """Raise Refused if a file or folder that is packed or copied holds a secret."""
    check_read(context, path)
    place = files.real(context, path)
    for pattern in SECRET_GLOBS:
        for found in context.files.matches(pattern, folder=place, limit=_MOST_SECRETS):
            if files.is_secret(found):
                raise Refused("A12", f"Packs a file that may hold secrets ({found})")


def _pieces(name: str, flags: str, values: str) -> Callable[[Context, list[str]], str]:
    """`split` and `csplit` write files whose names begin with the last word, or with `-f`."""

    def check(context: Context, arguments: list[str]) -> str:
        plain, options = split_options(name, arguments, flags, values, ("--lines=", "--bytes=", "--prefix=",
                                       "--numeric-suffixes", "--suffix-length=", "--quiet"))  # fmt: skip
        if plain and plain[0] != "-":
            check_read(context, plain[0])
        prefix = options.get("f", options.get("--prefix", ""))
        if name == "split" and len(plain) > 1:
            prefix = plain[1]
        check_change(context, f"{prefix or 'x'}aa")
        return "L2"

    return check


def _mktemp(context: Context, arguments: list[str]) -> str:
    plain, options = split_options(
        "mktemp", arguments, "dqtu", "p", ("--directory", "--suffix=", "--tmpdir")
    )
    if "p" in options:
        check_change(context, f"{options['p']}/x")
    for path in plain:
        check_change(context, path if "t" not in options else f"{context.scratch}/{path}")
    return "L2"


def _iconv(context: Context, arguments: list[str]) -> str:
    plain, options = split_options(
        "iconv", arguments, "cls", "fto", ("--from-code=", "--to-code=", "--output=", "--list")
    )
    for path in plain:
        check_read(context, path)
    target = options.get("o", options.get("--output", ""))
    if target:
        check_change(context, target)
    return "L2" if target else "L1"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "zip": _zip,
    "split": _pieces("split", "d", "lbna"),
    "csplit": _pieces("csplit", "ksz", "fn"),
    "mktemp": _mktemp,
    "iconv": _iconv,
}
