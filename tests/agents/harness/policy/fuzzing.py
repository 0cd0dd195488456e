"""Random shell programs, judged by the gate and then run by the real bash.

Whatever bash executes in an allowed program must have been seen by the gate. The program runs in a
sandbox of its own with nothing but bash in it.

    make fuzz ARGS="--programs 6000 --seed 1"
"""

import argparse
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agents.harness.policy import judging
from agents.harness.policy.agreeing import check
from agents.harness.policy.context import Context
from agents.harness.policy.parse import parse
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.values import State
from agents.harness.policy.walk import Run, Walker
from agents.harness.policy.walk_words import End
from agents.harness.policy.wrapping import started

_HEADS = ["true", "echo", "pwd", "printf", "test", ":", "cd", "evil", "read", "export", "[", "cat"]
_NAMES = ["x", "y", "f", "PATH", "evil"]
_TEXTS = ["a", "evil", "b c", "$x", "${x}", "$y", "-n", "true", "*", "~", "{a,evil}", "a#b", "1", "'",
          "$(echo evil)", "$(echo true)", "`echo a`", "$((1))", "\\n", "%s", "/usr", "..", "x=evil",
          "${x:-evil}", "$'\\x65vil'", "&", "|", ";", "\n", "#", "!", "\\", "$?", "$1", '"$@"', "]", "-e"]  # fmt: skip
_MUTATIONS = ["'", '"', "\\", "`", "$", "(", ")", "{", "}", ";", "&", "|", "\n", "#", " ", "<", ">", "<<",
              "$(", "=", "!", "*", "~", "\\\n", ";;", "&&", "||", "evil", "in", "do", "done", "[[", "]]"]  # fmt: skip
_NOT_HEADS = frozenset({"for", "case", "select", "[[", "((", "while", "until", "if"})
_MARK = "@trace@ "  # how bash begins a line of its trace
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")


class Programs:
    """Makes programs: mostly correct ones, some of them with a few characters changed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  no secrets

    def one(self) -> str:
        """The next program."""
        text = self._list(self._random.randint(0, 2))
        if self._random.random() < 0.4:
            for _ in range(self._random.randint(1, 3)):
                at = self._random.randint(0, len(text))
                end = at + self._random.randint(0, 2)
                text = text[:at] + self._random.choice(_MUTATIONS) + text[end:]
        return text

    def _list(self, depth: int) -> str:
        parts = [self._pipeline(depth) for _ in range(self._random.randint(1, 3))]
        text = parts[0]
        for part in parts[1:]:
            text += self._random.choice([" && ", " || ", "; ", "\n", " & ", ";", "&&"]) + part
        return text

    def _pipeline(self, depth: int) -> str:
        text = self._command(depth)
        if self._random.random() < 0.2:
            text += self._random.choice([" | ", "|", " |& "]) + self._command(depth)
        return self._random.choice(["", "", "", "", "! ", "time "]) + text

    def _command(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.55:
            return self._simple(depth)
        inner, other = self._list(depth - 1), self._list(depth - 1)
        name = self._random.choice(["f", "g", "true", "echo"])
        return self._random.choice(
            [
                f"({inner})",
                f"{{ {inner}; }}",
                f"if {inner}; then {other}; fi",
                f"if {inner}; then {other}; else {inner}; fi",
                f"for x in {self._word()} {self._word()}; do {inner}; done",
                f"for x in a evil; do $x; {inner}; break; done",
                f"while {inner}; do {other}; break; done",
                f"case {self._word()} in {self._word()}) {inner};; *) {other};; esac",
                f"{name}() {{ {inner}; }}; {other}; {name} {self._word()}",
                f"x=$({inner})",
                f"$(echo {name}) {self._word()}",
                f"eval {self._quoted(inner)}",
                f"bash -c {self._quoted(inner)} {self._word()}",
                f"bash <<'E'\n{inner}\nE\n",
                f"cat <<E\n{inner}\n$({other})\nE\n",
                f"x={self._word()}; $x; {inner}",
                f"[[ {self._word()} == {self._word()} ]] && {inner}",
                f"echo {self._word()} | while read x; do $x; {inner}; break; done",
                f"command {inner}",
                f"env {inner}",
                f"echo {self._quoted(inner)} | bash",
                f"{inner} # {other}",
            ]
        )

    def _simple(self, depth: int) -> str:
        words = [self._head(), *(self._word() for _ in range(self._random.randint(0, 3)))]
        if self._random.random() < 0.15:
            words.insert(0, f"{self._random.choice(_NAMES)}={self._word()}")
        if self._random.random() < 0.15 and depth:
            words.append(f"$({self._list(depth - 1)})")
        if self._random.random() < 0.15:
            words.append(
                self._random.choice([">/dev/null", "2>&1", "> out", "<<<x", "< /dev/null"])
            )
        return self._random.choice([" ", " ", " ", "  ", " \\\n "]).join(words)

    def _head(self) -> str:
        head = self._random.choice(_HEADS)
        spelling = self._random.random()
        if spelling < 0.7:
            return head
        if spelling < 0.8:
            return f"\\{head}" if head[0].isalpha() else head
        if spelling < 0.9:
            return f"'{head[:2]}'{head[2:]}"
        return self._random.choice(
            ["$x", '"$y"', "$(echo evil)", f"{head}$z", "${x:-true}", '"$@"']
        )

    def _word(self) -> str:
        text = self._random.choice(_TEXTS)
        return self._random.choice([text, text, self._quoted(text), f'"{text}"', text + "b"])

    def _quoted(self, text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"


def seen_by_the_gate(text: str, folder: str) -> set[str] | None:
    """The names of the commands that are judged; None if the program is not allowed."""
    names: set[str] = set()

    def judge(walker: Walker, run: Run) -> End:
        if run.fields:
            names.add(run.fields[0].text)
        return judging.judge(walker, run)

    walker = Walker(Context(workspace=Path(folder)), judge)
    lenient = _Lenient(names)
    try:
        script, heads = parse(text)
        check(text, heads)
        with lenient:
            walker.script(script, State(frozenset({folder})))
    except (NotUnderstoodError, Refused):
        return None
    return names


class _Lenient:
    """Notes what is started through wrappers, too; and lets every program run with all words.

    So the fuzz is about who is started, not about the lists of programs.
    """

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._saved = {name: getattr(judging, name) for name in self._replaced()}

    def _replaced(self) -> dict[str, object]:
        return {
            "started": self._started,
            "allowing_rule": lambda *_: "L1",
            "_check_unknown": lambda *_: None,
        }

    def _started(self, walker: Walker, name: str, run: Run) -> list[Run] | None:
        found: list[Run] | None = started(walker, name, run)
        self._names.update(one.fields[0].text for one in found or [] if one.fields)
        return found

    def __enter__(self) -> None:
        for name, value in self._replaced().items():
            setattr(judging, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._saved.items():
            setattr(judging, name, value)


def executed_by_bash(text: str, folder: str) -> set[str]:
    """The names of the commands that bash executes."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None, "bubblewrap is needed to run random programs"
    command = [
        bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind", "/lib", "/lib",
        "--ro-bind-try", "/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--dev", "/dev", "--proc", "/proc",
        "--tmpfs", folder, "--chdir", folder, "--clearenv", "--setenv", "PATH", "/usr/bin",
        "--setenv", "SHELLOPTS", "xtrace", "--setenv", "PS4", _MARK, "--uid", "1000", "--setenv", "HOME", "/home/agent",
        "bash", "--norc", "-c", text,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=5, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired as error:
        return _heads((error.stderr or b"").decode("utf-8", "replace"))
    return _heads(done.stderr.decode("utf-8", "replace"))


def _heads(trace: str) -> set[str]:
    found = set()
    for line in re.split(rf"^@*{_MARK}", trace, flags=re.MULTILINE)[1:]:
        match = re.match(r"(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|\\.|[^\s'\\])+", line, re.DOTALL)
        name = match[0] if match is not None else line
        if name not in _NOT_HEADS and not _ASSIGNED.match(line):
            found.add(_unquoted(name))
    return found


def _unquoted(name: str) -> str:
    if name.startswith("$'"):
        return name[2:-1].encode().decode("unicode_escape")
    try:
        return "".join(shlex.split(name))
    except ValueError:
        return name


def unsound(programs: int, seed: int) -> list[tuple[str, set[str]]]:
    """The programs in which bash executes what the gate has not seen, with what that is."""
    found = []
    generator = Programs(seed)
    allowed = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(programs):
            text = generator.one()
            seen = seen_by_the_gate(text, folder)
            if seen is None:
                continue
            allowed += 1
            unseen = executed_by_bash(text, folder) - seen
            if unseen:
                found.append((text, unseen))
    sys.stderr.write(f"{programs} programs, {allowed} of them allowed, {len(found)} unsound\n")
    return found


def main() -> int:
    """Print what is unsound; return 1 if anything is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.stderr.write(f"seed {options.seed}\n")
    found = unsound(options.programs, options.seed)
    for text, names in found:
        sys.stdout.write(f"{sorted(names)}: {text!r}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
