"""The files that a command names, in whatever way: what an approval of it binds to (rule P1).

A word may be a path by itself, behind an option (`-Cfolder`, `--file=x`), behind `@` (`curl -d @x`) or
behind a redirection; a program may look for its own files in the folder that it is started in. Too
many are taken rather than too few: a word that names no file says nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.harness.policy import files
from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context
from agents.harness.policy.recipes import RECIPES

MOST_MATCHES = 200  # files of one pattern
_LONGEST = 4_096  # bytes of a path on Linux
_FIRST_WORDS = 4  # in which a program stands behind `python -m`, `npx` and the like
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

_PYTHON = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pip.conf", ".pypirc")
_NODE = (
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    ".npmrc",
    ".yarnrc.yml",
)
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
_GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
# What these programs read without being told: it decides what they install, build or send.
OWN_FILES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("pip", "pip3", "build", "twine", "hatch", "flit"), _PYTHON),
    **dict.fromkeys(("uv", "poetry", "pdm"), (*_PYTHON, "uv.lock", "uv.toml", "poetry.lock", "pdm.lock")),
    "pipenv": ("Pipfile", "Pipfile.lock"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "corepack"), _NODE),
    "cargo": ("Cargo.toml", "Cargo.lock", "build.rs", ".cargo/config.toml"),
    "go": ("go.mod", "go.sum"),
    **dict.fromkeys(("gem", "bundle", "bundler", "rake"), ("Gemfile", "Gemfile.lock", "Rakefile")),
    "composer": ("composer.json", "composer.lock"),
    "mvn": ("pom.xml",),
    **dict.fromkeys(("gradle", "gradlew", "./gradlew"), _GRADLE),
    **dict.fromkeys(("docker", "podman", "nerdctl", "buildah"), ("Dockerfile", "Containerfile", *_COMPOSE)),
    "docker-compose": _COMPOSE,
    **dict.fromkeys(("task", "go-task"), ("Taskfile.yml", "Taskfile.yaml")),
    **{name: recipes for name, recipes in RECIPES.items() if name not in ("npm", "pnpm", "yarn")},
}  # fmt: skip


@dataclass(frozen=True)
class Named:
    """A path as a command writes it, where that is as words, and where it really is."""

    written: str
    place: str
    real: str

    @property
    def leads_elsewhere(self) -> bool:
        """Whether it is or goes through a link."""
        return self.place != self.real


def named(context: Context, commands: Sequence[Command]) -> Iterator[Named]:
    """Yield what the words of these commands could name, each once."""
    known: set[tuple[str, str]] = set()
    for command in commands:
        folder = command.cwd or context.cwd or str(context.workspace)
        for text in _texts(context, command, folder):
            if (text, folder) not in known:
                known.add((text, folder))
                yield _placed(context, text, folder)


def _placed(context: Context, text: str, folder: str) -> Named:
    place = files.absolute(text, cwd=folder, home=str(context.home))
    return Named(text, place, context.files.real(place))


def _texts(context: Context, command: Command, folder: str) -> Iterator[str]:
    words = [
        *command.words,
        *(one.target for one in command.redirections),
        *(value for _, value in command.assignments),
    ]
    found = [text for word in words for text in _of_word(context, word, folder)]
    found += _modules(command)
    yield from found
    programs = {command.name, *(word.text for word in command.words[:_FIRST_WORDS])}
    own = dict.fromkeys(name for program in programs for name in OWN_FILES.get(program, ()))
    if own:
        yield from own
        folders = [
            text for text in found if context.files.is_folder(_placed(context, text, folder).real)
        ]
        yield from (f"{each.rstrip('/')}/{name}" for each in folders for name in own)


def _of_word(context: Context, word: Word, folder: str) -> Iterator[str]:
    if word.glob:
        yield from context.files.matches(word.text, folder=folder, limit=MOST_MATCHES)
    if word.known:
        yield from filter(_may_be_path, _parts(word.text))


def _parts(text: str) -> Iterator[str]:
    yield text
    for mark in ("=", "@", ":"):
        yield text.partition(mark)[2]
    if text.startswith("-") and not text.startswith("--"):
        yield text[2:]  # the value of a short option, glued to it
    yield from (part for part in text.split(",") if part != text)


def _may_be_path(text: str) -> bool:
    return bool(text) and "\n" not in text and "\0" not in text and len(text) <= _LONGEST


def _modules(command: Command) -> Iterator[str]:
    """The files of `python -m module`."""
    for option, word in zip(command.words, command.words[1:], strict=False):
        if option.text == "-m" and word.known and _MODULE.fullmatch(word.text):
            path = word.text.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
