"""The small repository of the rehearsal: a program that says hello, its tests, and a folder too many."""

from pathlib import Path

from agents.workspaces.git import PRODUCT as AUTHOR
from agents.workspaces.git import ZERO_SHA, commit_tree, git, move_ref
from agents.workspaces.hub import create_bare

HELLO = '''\
"""Says hello."""

GREETINGS = {"en": "Hello"}


def greet(language: str = "en") -> str:
    """Return the greeting of a language."""
    return GREETINGS[language]


if __name__ == "__main__":
    print(greet())
'''
TESTS = """\
import unittest

from hello import greet


class GreetTest(unittest.TestCase):
    def test_english(self):
        self.assertEqual(greet("en"), "Hello")


if __name__ == "__main__":
    unittest.main()
"""
README = """\
# Hello

A program that says hello. `python3 hello.py` runs it, `python3 -m unittest` tests it.
"""
OLD = "Greetings of 2019. Nobody reads them.\n"

FILES = {
    "hello.py": HELLO,
    "test_hello.py": TESTS,
    "README.md": README,
    ".gitignore": "__pycache__/\n",
}
FOLDERS = {"old_greetings": {"english.txt": OLD, "french.txt": OLD}}


def create_rehearsal_repository(folder: Path, repository: str) -> None:
    """Make the repository at the path `repository`, inside `folder`, unless it is there already."""
    path = Path(repository)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{repository} is not in {folder}")
    if path.exists():
        return
    create_bare(path)
    entries = [_blob_entry(path, name, text) for name, text in FILES.items()]
    for name, files in FOLDERS.items():
        tree = _tree(path, [_blob_entry(path, inner, text) for inner, text in files.items()])
        entries.append(f"040000 tree {tree}\t{name}")
    sha = commit_tree(path, _tree(path, entries), [], message="Say hello", author=AUTHOR)
    git("symbolic-ref", "HEAD", "refs/heads/main", git_dir=path)
    move_ref(path, "refs/heads/main", new=sha, old=ZERO_SHA, reason="first commit")


def _blob_entry(path: Path, name: str, text: str) -> str:
    sha = git("hash-object", "-w", "--stdin", git_dir=path, input=text.encode()).line
    return f"100644 blob {sha}\t{name}"


def _tree(path: Path, entries: list[str]) -> str:
    return git("mktree", git_dir=path, input="".join(f"{line}\n" for line in entries).encode()).line
