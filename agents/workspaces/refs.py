"""Names of refs, and what they point to, without a process where that is safe.

A git process costs five milliseconds of a processor, and a run looks up a dozen refs. Read from files are
those of the bare repositories that the product makes itself: they have one file per ref. Whatever looks
unusual is left to git.
"""

import re
from pathlib import Path

from agents.workspaces.git import git, resolve

# Names about which git's rules (git-check-ref-format) leave no doubt. Others are valid too.
_COMPONENT = r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*(?<!\.lock)"
_PLAIN = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_SHA = re.compile(rb"[0-9a-f]{40}")


def is_plain_name(name: str) -> bool:
    """Whether `name` is certainly valid as a ref's name or a part of one."""
    return _PLAIN.fullmatch(name) is not None


def is_branch_name(name: str) -> bool:
    """Whether git accepts `name` for a branch."""
    if name.startswith("-") or "\0" in name or name == "HEAD":
        return False
    if is_plain_name(name):
        return True
    answer = git("check-ref-format", f"refs/heads/{name}", git_dir=None, ok=(0, 1))
    return answer.exit_code == 0


def tip(git_dir: Path, ref: str) -> str | None:
    """The sha that `ref`, a full name, points to in a repository of ours; None if there is none."""
    if not ref.startswith("refs/") or not is_plain_name(ref):
        return resolve(git_dir, ref)
    try:
        content = (git_dir / ref).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        # In this order: git writes the packed file first, then it deletes the other.
        return _packed(git_dir, ref)
    sha = content.rstrip(b"\n")
    return sha.decode() if _SHA.fullmatch(sha) else resolve(git_dir, ref)


def _packed(git_dir: Path, ref: str) -> str | None:
    try:
        content = (git_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return None
    end = content.find(f" {ref}\n".encode())
    if end < 0:
        return None
    sha = content[max(end - 40, 0) : end]
    return sha.decode() if _SHA.fullmatch(sha) else resolve(git_dir, ref)
