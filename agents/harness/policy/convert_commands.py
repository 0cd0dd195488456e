"""What a prefix of a command text would really match, and the rule that says the same here."""

import re
import shlex
from dataclasses import dataclass

from agents.harness.policy import people
from agents.harness.policy.decide import see
from agents.harness.policy.examples import call_of, paper_context
from agents.harness.policy.profiles import Profile
from agents.harness.policy.rules import Policy
from agents.harness.ports import Tier

_OPERATORS = re.compile(r"[|;&<>`\n]|\$[({]")
# They start what their arguments say, so a prefix of them allows any program.
_STARTERS = frozenset(
    ["sh", "bash", "dash", "zsh", "fish", "env", "sudo", "su", "doas", "xargs", "parallel", "find",
     "ssh", "eval", "exec", "nohup", "setsid", "timeout", "watch", "flock", "awk", "gawk", "vim",
     "busybox", "strace", "nice", "time", "command", "gdb", "tar", "rsync", "docker", "podman",
     "kubectl", "npx", "uvx", "pipx", "bunx"]
)  # fmt: skip
_INTERPRETERS = frozenset({"python", "python3", "node", "deno", "bun", "ruby", "perl", "php"})
_BY_SECOND_WORD = frozenset({"git", "npm", "pnpm", "yarn", "uv", "poetry", "cargo", "go", "make"})
# Commands of git with options that run a program that the option names.
_GIT_RUNS = frozenset(
    ["push", "fetch", "pull", "clone", "ls-remote", "archive", "submodule", "rebase", "bisect",
     "filter-branch", "difftool", "mergetool", "grep", "diff", "log", "show", "config", "send-email"]
)  # fmt: skip
_SIMPLE_ONLY = (
    "Only as one simple command: in a pipe, a list or a substitution, or with a redirection, each"
    " part is judged by itself."
)
_WHEREVER = "Wherever the command stands: in a pipe, behind sudo, in sh -c and in scripts."


@dataclass(frozen=True)
class Found:
    """What becomes of a command; `fate` is a word of `convert.Fate`."""

    fate: str
    says: str
    rule: str = ""


def convert(tier: str, text: str) -> Found:
    """The rule for the inside of `Bash(...)`."""
    prefix, open_end = _prefix(text)
    if _OPERATORS.search(prefix):
        says = "It is more than one command. Rules here are for one, which is found wherever it stands."
        return Found("cannot be said", says)
    try:
        words = shlex.split(prefix)
    except ValueError:
        return Found("cannot be said", "A quote in it is not closed.")
    if not words:
        return Found("cannot be said", "There is no command in it.")
    if tier == "allow":
        return _allowing(words, open_end=open_end)
    if not any(word.strip("*") for word in words):
        return Found("cannot be said", "It would match every command.")
    return Found("converted", _stricter(words), _rule(words, open_end=open_end))


def _prefix(text: str) -> tuple[str, bool]:
    for end in (":*", " *"):
        if text.endswith(end):
            return text[: -len(end)], True
    return text, text.endswith("*") and not text.endswith("\\*")


def _rule(words: list[str], *, open_end: bool) -> str:
    # A star must stay one, so only words without it are quoted.
    shown = [word if "*" in word else shlex.quote(word) for word in words]
    return " ".join([*shown, *(["*"] if open_end else [])])


def _allowing(words: list[str], *, open_end: bool) -> Found:
    if open_end and words[-1].endswith("*"):  # `npm run test*` is read as `npm run test *`
        words = [*words[:-1], words[-1].rstrip("*")]
    if any("*" in word for word in words):
        return Found("left out", "A * within the words would let options in that run programs.")
    ruling = people.judge(see(call_of("commands", shlex.join(words)), paper_context()), Policy(),
                          Profile.FULL)  # fmt: skip
    first = ruling.findings[0]
    if ruling.tier is Tier.DENY:
        return Found("left out", f"Rule {first.rule} denies it, and nothing softens that.")
    if ruling.tier is Tier.ALLOW:
        more = " With further words it is judged by what they do." if open_end else ""
        return Found("not needed", f"Rule {first.rule} allows it without a rule.{more}")
    if open_end and (reason := _unsafe(words)):
        return Found("left out", reason)
    more = f"These words{' and anything after them' if open_end else ''}. "
    asks = f" Without this rule it asks: {first.reason} ({first.rule})."
    return Found("converted", more + _SIMPLE_ONLY + asks, _rule(words, open_end=open_end))


def _unsafe(words: list[str]) -> str:
    """Why these words with anything after them would allow more than they say."""
    head = words[0].rpartition("/")[2]
    if head in _STARTERS:
        return f"{head} starts what its arguments say, so this would allow any program."
    if head in _INTERPRETERS and (len(words) == 1 or words[1].startswith("-")):
        return f"{head} runs any text that is given to it, so this would allow any program."
    if head in _BY_SECOND_WORD and (len(words) == 1 or words[1].startswith("-")):
        return f"{head} has commands and options that start programs; name the command."
    if head == "git" and words[1] in _GIT_RUNS:
        return f"git {words[1]} has options that run a program; write the whole command, without *."
    return ""


def _stricter(words: list[str]) -> str:
    plain = [word for word in words if "*" not in word]
    ruling = people.judge(see(call_of("commands", shlex.join(plain)), paper_context()), Policy())
    first = ruling.findings[0]
    says = f"{_WHEREVER} Other words with the same effect, like options in another order, are not"
    return f"{says} covered; without the rule: {ruling.tier.value} ({first.rule})."
