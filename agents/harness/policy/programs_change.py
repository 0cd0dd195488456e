"""Programs that change files in the workspace (rule L2), with the options that are harmless."""

import re
from collections.abc import Callable

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Denied, Refused, check_change, check_read

# What tools make anew; a folder of such a name may be removed with all that is in it.
_REGENERABLE = re.compile(
    r"build|dist|out|target|node_modules|\.venv|venv|__pycache__|\.pytest_cache|\.mypy_cache"
    r"|\.ruff_cache|\.tox|\.nox|\.next|\.nuxt|\.turbo|\.cache|htmlcov|coverage|[^*?\[]*\*?\.egg-info"
)
_MODE = re.compile(r"[0-7]?(?:[0-7]{3})|(?:[ugoa]*[-+=][rwxX]*,?)+")
_Check = Callable[[Context, list[str]], str]


def split_options(
    name: str, arguments: list[str], flags: str, values: str = "", long: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, str]]:
    """Plain arguments, and options with their values. Raises Refused for an option not known."""
    plain: list[str] = []
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if word == "--":
            plain += rest
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
        elif word.startswith("--"):
            if key + equals not in long:
                raise Refused("A8", f"`{name} {word}` is an option that is not known")
            found[key] = value
        else:
            found.update(_letters(name, word, rest, flags, values))
    return plain, found


def _letters(name: str, word: str, rest: list[str], flags: str, values: str) -> dict[str, str]:
    """Short options, glued together; the last may have a value behind it or in `rest`."""
    letters = word[1:]
    found: dict[str, str] = {}
    while letters and letters[0] in flags:
        found[letters[0]] = ""
        letters = letters[1:]
    if letters and letters[0] in values and (len(letters) > 1 or rest):
        value = found[letters[0]] = letters[1:] or rest.pop(0)
        if value.startswith("-") and value != "-":
            raise Refused("A8", f"`{name} {word}` with an unusual value is not known")
    elif letters:
        raise Refused("A8", f"`{name} {word}` is an option that is not known")
    return found


def is_regenerable_name(name: str) -> bool:
    """Whether tools make a folder of this name anew."""
    return _REGENERABLE.fullmatch(name) is not None


def _rm(context: Context, arguments: list[str]) -> str:
    plain, options = split_options(
        "rm", arguments, "rRfvd", long=("--recursive", "--force", "--verbose")
    )
    recursive = {"r", "R", "--recursive"} & set(options)
    in_scratch = [path for path in plain if _is_scratch(context, files.real(context, path))]
    if recursive and (len(in_scratch) > 1 or any("*" in path for path in in_scratch)):
        raise Refused("A3", "Deletes several folders of scratch at once")
    for path in plain:
        real = files.real(context, path)
        if not files.is_inside(context, real):
            raise Refused("A3", f"Deletes outside the workspace ({path})")
        check_change(context, path)
        if recursive and not _is_regenerable(context, real):
            raise Refused("A3", f"Deletes a folder with all that is in it ({path})")
    return "L2"


def _is_scratch(context: Context, real: str) -> bool:
    return files.is_below(real, context.scratch) and not files.is_below(real, context.workspace)


def _is_regenerable(context: Context, real: str) -> bool:
    if _is_scratch(context, real):  # one folder at a time
        return True
    inner = real[len(str(context.workspace)) :].strip("/").split("/")
    return any(_REGENERABLE.fullmatch(part) for part in inner)


def _each(name: str, flags: str, values: str = "", long: tuple[str, ...] = ()) -> _Check:
    def check(context: Context, arguments: list[str]) -> str:
        for path in split_options(name, arguments, flags, values, long)[0]:
            check_change(context, path)
        return "L2"

    return check


def _mkdir(context: Context, arguments: list[str]) -> str:
    plain, options = split_options(
        "mkdir", arguments, "pv", "m", ("--parents", "--verbose", "--mode=")
    )
    if not all(_is_ordinary(options.get(key, "755")) for key in ("m", "--mode")):
        raise Refused("A6", "Creates a folder with unusual rights")
    for path in plain:
        real = files.real(context, path)
        if real not in (str(context.workspace), str(context.scratch)):  # `mkdir -p .`
            check_change(context, path)
    return "L2"


def _is_ordinary(mode: str) -> bool:
    """No set-id bits, and nothing that everybody may write."""
    if not _MODE.fullmatch(mode):
        return False
    if mode.isdigit():
        four = 4
        return (len(mode) < four or mode[0] == "0") and mode[-1] not in "2367"
    return not any(
        "w" in part and ("o" in part.split("w")[0] or "a" in part.split("w")[0])
        for part in mode.split(",")
    )


def _copy(name: str, flags: str, values: str = "", *, moves: bool = False) -> _Check:
    long = ("--recursive", "--force", "--verbose", "--parents", "--no-clobber", "--preserve", "--update",
            "--backup", "--backup=", "--suffix=", "--archive", "--target-directory=", "--mode=", "--directory",
            "--symbolic", "--relative")  # fmt: skip

    def check(context: Context, arguments: list[str]) -> str:
        plain, options = split_options(name, arguments, flags, values, long)
        target = options.get("t", options.get("--target-directory", ""))
        if not target and plain:
            target = plain.pop()
        if not target or (not plain and name != "install"):
            raise Refused("A9", f"`{name}` without a target is not known")
        if not _is_ordinary(options.get("m", options.get("--mode", "755"))):
            raise Refused("A6", f"`{name}` gives unusual rights")
        if not re.fullmatch(r"[\w.~-]*", options.get("--suffix", "")):
            raise Refused("A4", f"`{name}` saves what was there under a name that is not plain")
        check_target(context, target, plain)
        for path in plain:
            (check_change if moves else check_read)(context, path)
            if not moves and files.real(context, path) == str(context.workspace):
                raise Refused("A12", "Copies everything, also what holds secrets")
        return "L2"

    return check


def check_target(context: Context, target: str, sources: list[str]) -> None:
    """The target is a file, or a folder that gets the names of the sources."""
    place = files.real(context, target)
    if files.is_inside(context, place) and files.holds_protected(place):
        raise Refused("A5", f"Puts something into, or in place of, {target}")
    if files.real(context, target) not in (str(context.workspace), str(context.scratch)):
        check_change(context, target)
    for source in sources:
        name = source.rstrip("/").rpartition("/")[2]
        is_whole = files.real(context, target) == str(context.workspace)
        if name == "." and source != "." and not is_whole:
            continue  # what is in a folder, into another one
        if name in ("", ".", ".."):
            raise Refused("A9", f"Copies what has no name of its own ({source})")
        check_change(context, f"{target}/{name}")


def _ln(context: Context, arguments: list[str]) -> str:
    plain, options = split_options(
        "ln", arguments, "sfnvrT", long=("--symbolic", "--force", "--relative")
    )
    two = 2
    if len(plain) != two:
        raise Refused("A9", "`ln` with so many words is not known")
    target, link = plain
    check_change(context, link)
    folder = files.real(context, link).rpartition("/")[0]
    here = context.cwd or str(context.workspace)
    inner = files.absolute(link, cwd=here, home=str(context.home))
    is_symbolic = bool({"s", "--symbolic"} & set(options)) and not {"r", "--relative"} & set(
        options
    )
    bases = [folder] if is_symbolic else [here]
    if is_symbolic and context.files.is_folder(files.real(context, link)) and folder != inner:
        bases += [files.real(context, link)]
    for base in bases:
        place = files.real(context, target, cwd=base)
        if not files.is_inside(context, place):
            raise Refused("A4", f"Links to a place outside the workspace ({target})")
        if files.is_policy(context, place):
            raise Denied("D4", f"Links to the policy ({target})")
        is_dear = files.is_protected(context, place) or files.holds_protected(place)
        if files.is_secret(place) or is_dear:
            raise Refused("A5", f"Links to a protected file ({target})")
    return "L2"


def _chmod(context: Context, arguments: list[str]) -> str:
    rest = [one for one in arguments if one not in ("-v", "-f", "-c", "--")]
    if "-R" in rest or "--recursive" in rest:
        rest = [one for one in rest if one not in ("-R", "--recursive")]
    if not rest or not _is_ordinary(rest[0]):
        raise Refused("A6", "Gives unusual rights (chmod)")
    for path in rest[1:]:
        if path.startswith("-"):
            raise Refused("A8", f"`chmod {path}` is an option that is not known")
        check_change(context, path)
    return "L2"


def _dd(context: Context, arguments: list[str]) -> str:
    for word in arguments:
        key, _, value = word.partition("=")
        if key == "of":
            check_change(context, value)
        elif key == "if":
            if value not in ("/dev/zero", "/dev/urandom"):
                check_read(context, value)
        elif key not in (
            "bs",
            "count",
            "seek",
            "skip",
            "status",
            "conv",
            "ibs",
            "obs",
            "iflag",
            "oflag",
        ):
            raise Refused("A9", f"`dd {word}` is not known")
    return "L2"


def _tee(context: Context, arguments: list[str]) -> str:
    for path in split_options("tee", arguments, "ai", long=("--append",))[0]:
        if path not in ("/dev/null", "/dev/stderr", "/dev/stdout"):
            check_change(context, path)
    return "L2"


def _unlink(context: Context, arguments: list[str]) -> str:
    if len(arguments) != 1:
        raise Refused("A3", "`unlink` like this is not known")
    return _rm(context, arguments)


CHECKS: dict[str, _Check] = {
    "rm": _rm,
    "unlink": _unlink,
    "fallocate": _each("fallocate", "nvx", "lo"),
    "xz": _each("xz", "kdcvfzT0123456789e"),
    "unxz": _each("unxz", "kcvf"),
    "bzip2": _each("bzip2", "kdcvfz123456789"),
    "zstd": _each("zstd", "kdcvfq123456789"),
    "rmdir": _each("rmdir", "pv"),
    "touch": _each("touch", "acmh", "dtr"),
    "truncate": _each("truncate", "co", "s", ("--size=",)),
    "gzip": _each("gzip", "kdcvf123456789"),
    "gunzip": _each("gunzip", "kcvf"),
    "mkdir": _mkdir,
    "cp": _copy("cp", "rRapfvnuTdL", "t"),
    "mv": _copy("mv", "fvnuT", "t", moves=True),
    "install": _copy("install", "dDvCp", "mt"),
    "ln": _ln,
    "chmod": _chmod,
    "dd": _dd,
    "tee": _tee,
}
