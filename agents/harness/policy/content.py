"""Rule C1: text that is written into a file which something will run."""

import re
from collections.abc import Iterator

from agents.harness.policy import denies
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding

_SHELL_FILE = re.compile(r".*\.(?:ba|z|k)?sh|makefile|gnumakefile|justfile|.*\.mk|taskfile\.ya?ml")
_CODE_FILE = re.compile(r".*\.(?:py|pyw|js|mjs|cjs|ts|mts|cts|jsx|tsx|rb|pl|php|lua)")
_LONGEST_SCRIPT = 200_000  # characters; takes about a second
_RECIPE_PREFIX = re.compile(r"^\t[@+-]*|^ *- (?:(?:cmd|sh): *)?|^ *(?:cmd|sh): *", re.MULTILINE)


def will_run(path: str) -> bool:
    """Whether a file of this name is one that something runs."""
    name = path.rpartition("/")[2].casefold()
    return _SHELL_FILE.fullmatch(name) is not None or _CODE_FILE.fullmatch(name) is not None


def denied(context: Context, path: str, content: str) -> Iterator[Finding]:
    """What `content` would do that is denied, once it is run from `path`."""
    name = path.rpartition("/")[2].casefold()
    first_line = content.partition("\n")[0]
    found: list[Finding] = []
    if _SHELL_FILE.fullmatch(name) or re.match(r"#!.*\b(?:ba|da|z|k|a)?sh\b", first_line):
        if len(content) > _LONGEST_SCRIPT:
            yield Finding("C1", "Brings a script that is too long to be looked at")
            return
        text = _RECIPE_PREFIX.sub("", content)
        found = list(denies.judge(context, text).findings)
    elif _CODE_FILE.fullmatch(name) or first_line.startswith("#!"):
        python = name.endswith((".py", ".pyw")) or "python" in first_line
        found = list(denies.judge_code(context, content, python=python, inline=False))
    elif name in ("tox.ini", "setup.cfg", "pyproject.toml"):
        lines = [line.partition("=")[2] or line for line in content.splitlines()]
        found = list(denies.judge(context, "\n".join(lines)).findings)
    for finding in found:
        yield Finding("C1", f"Brings code that is denied when it runs: {finding.reason}")
