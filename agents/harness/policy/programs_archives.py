"""Programs that unpack, pack and patch (rules L1 and L2)."""

import io
import itertools
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_change import split_options
from agents.harness.policy.programs_paths import Refused, check_change, check_read
from agents.harness.policy.programs_pieces import check_packed

_MOST_MEMBERS = 5000


def _tar(context: Context, arguments: list[str]) -> str:
    """Listing, packing what is inside, and unpacking into the workspace."""
    words = [f"-{arguments[0]}", *arguments[1:]] if arguments else []
    words = list(arguments) if arguments[:1] and arguments[0].startswith("-") else words
    plain, options = split_options("tar", words, "cxtzjJvpka", "fC", ("--list", "--create", "--extract",
                            "--gzip", "--verbose", "--file=", "--directory=", "--exclude=",
                            "--strip-components="))  # fmt: skip
    archive = options.get("f", options.get("--file", "-"))
    folder = options.get("C", options.get("--directory", ""))
    if folder:
        check_read(context, folder, metadata_only=True)
    if ":" in archive:
        raise Refused("A1", f"`tar` fetches an archive from another machine ({archive})")
    if {"t", "--list"} & set(options):
        check_read(context, archive)
        return "L1"
    if {"c", "--create"} & set(options):
        return _pack(context, archive, folder, plain)
    if not {"x", "--extract"} & set(options):
        raise Refused("A9", "This use of `tar` is not known")
    if archive != "-":
        check_read(context, archive)
    if folder and files.real(context, folder) != str(context.workspace):
        check_unpacked(context, folder)
    _check_members(context, archive, folder)
    return "L2"


def _pack(context: Context, archive: str, folder: str, plain: list[str]) -> str:
    if archive != "-":
        check_change(context, archive)
    for path in plain:
        place = files.real(context, path, cwd=files.real(context, folder) if folder else None)
        check_packed(context, place)
    return "L2"


def check_unpacked(context: Context, folder: str) -> None:
    """Raise Refused if nothing may be unpacked into a folder."""
    check_change(context, folder)
    if files.holds_protected(files.real(context, folder)):
        raise Refused("A5", f"Unpacks into the folder of protected files ({folder})")


def _check_members(context: Context, archive: str, folder: str) -> None:
    """Raise Refused if an archive that can be looked at has a file that goes where none may."""
    content = context.files.read(files.real(context, archive)) if archive not in ("", "-") else None
    for name, link in _members(content or b""):
        if name.startswith("/") or ".." in name.split("/"):
            raise Refused("A4", f"Unpacks a file to a place outside ({name})")
        check_change(context, f"{folder or '.'}/{name}".rstrip("/"))
        if link.startswith("/") or ".." in link.split("/"):
            raise Refused("A4", f"Unpacks a link to a place outside ({name})")


def _members(content: bytes) -> list[tuple[str, str]]:
    """Names and targets of links, up to a bound; what cannot be read has none."""
    try:
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as pack:
                return [(name, "") for name in pack.namelist()[:_MOST_MEMBERS]]
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            found = itertools.islice(archive, _MOST_MEMBERS)
            return [(one.name, one.linkname) for one in found if one.name != "."]
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error):
        return []


def _unzip(context: Context, arguments: list[str]) -> str:
    plain, options = split_options("unzip", arguments, "lvZoqnt", "d")
    for path in plain[:1]:
        check_read(context, path)
    if set("lvZt") & set(options):
        return "L1"
    if "d" in options:
        check_unpacked(context, options["d"])
    _check_members(context, "".join(plain[:1]), options.get("d", ""))
    return "L2"


def check_patch_file(context: Context, path: str) -> None:
    """Raise Refused if a patch names a file that may not be changed without a question."""
    check_read(context, path)
    content = context.files.read(files.real(context, path)) or b""
    names = re.findall(
        r"^(?:\+\+\+|rename to) (?:b/)?([^\t\n]+)", content.decode("utf-8", "replace"), re.M
    )
    for name in names:
        if name != "/dev/null":
            check_change(context, name)


def _patch(context: Context, arguments: list[str]) -> str:
    sources = 0
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-i", "--input") and rest:
            check_patch_file(context, rest.pop(0))
            sources += 1
        elif re.fullmatch(r"-i.+|--input=.+", word):
            check_patch_file(context, word.removeprefix("--input=").removeprefix("-i"))
            sources += 1
        elif not re.fullmatch(r"-p\d|-[NRfst]+|--dry-run|--forward|--reverse|--batch", word):
            raise Refused("A8", f"`patch {word}` is not known")
    if not sources and "--dry-run" not in arguments:
        raise Refused("A5", "Changes the files that a patch names, which cannot be looked at")
    return "L2"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "tar": _tar,
    "unzip": _unzip,
    "patch": _patch,
}
