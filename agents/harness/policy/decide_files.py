"""Judges the calls of the file and search tools, by the real place of their paths."""

import json
import re
from collections.abc import Iterator
from typing import Any

from agents.harness.policy import files
from agents.harness.policy.allowing import is_allowed
from agents.harness.policy.content import denied
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.opinions import Opinion, strictest
from agents.harness.ports import Tier, ToolCall

_OUTPUT_SCHEME = "output://"
_MANIFEST = "package.json"
_LIFE_CYCLE = re.compile(
    r"(?:pre|post)(?:install|uninstall|publish|pack|prepare|version|test)|install|prepare"
    r"|prepublish(?:Only)?|prepack|dependencies"
)
_PAIR = re.compile(r'"([\w:.-]+)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_VERSION = re.compile(r"[\^~<>=]*\d[\w.*+-]*|\*|latest|workspace:.*|file:.*")


def judge_reading(call: ToolCall, context: Context) -> Opinion:
    """read_file and list_files; a list shows only names."""
    text = str(call.input.get("path", ""))
    if text.startswith(_OUTPUT_SCHEME):
        return Opinion(Tier.ALLOW, [Finding("L1", "Reads a result of this run")])
    path = files.real(context, text)
    finding = _reading(context, path, shown=text, metadata_only=call.tool == "list_files")
    return Opinion(strictest([finding]), [finding], paths=[(text, path)])


def _reading(context: Context, path: str, *, shown: str, metadata_only: bool = False) -> Finding:
    if files.is_environment(path):
        return Finding("D5", f"Reads the environment of a process ({shown})")
    if files.is_product_data(context, path) and not metadata_only:
        return Finding("D5", f"Reads secrets or data of this product ({shown})")
    if files.is_secret(path) and not metadata_only:
        return Finding("A12", f"Reads a file that may hold secrets ({shown})")
    if files.is_readable(context, path):
        return Finding("L1" if files.is_inside(context, path) else "L6", "Only reads")
    return Finding("A13", f"Reads outside the workspace ({shown})")


def judge_searching(call: ToolCall, context: Context) -> Opinion:
    """glob and grep; the tools themselves leave out secrets and what is outside."""
    text = str(call.input.get("path", "."))
    if call.tool == "glob":  # where a pattern begins to search
        begin = re.split(r"(?:^|(?<=/))[^/]*[*?\[{]", str(call.input.get("pattern", "")))[0]
        text = begin if begin.startswith("/") else f"{text}/{begin}"
    path = files.real(context, text)
    finding = _reading(context, path, shown=text)
    if call.tool == "grep" and files.is_product(context, path):
        finding = Finding("D5", f"Searches the secrets and data of this product ({text})")
    return Opinion(strictest([finding]), [finding], paths=[(text, path)])


def judge_writing(call: ToolCall, context: Context) -> Opinion:
    """write_file and edit_file: the place, and the content if it is something that will be run."""
    text = str(call.input.get("path", ""))
    path = files.real(context, text)
    findings = [*_place(context, path)]
    if not findings:
        content = str(call.input.get("content", call.input.get("new", "")))
        findings = list(_content(context, call, path, content))
        whole = _after_edit(context, call, path)
        if whole is not None:
            findings += denied(context, path, whole)
    if not findings:
        findings = [Finding("L2", "Changes a file in the workspace")]
    findings.sort(key=lambda finding: "DACL".index(finding.rule[0]))
    return Opinion(strictest(findings), findings, paths=[(text, path)])


def _place(context: Context, path: str) -> Iterator[Finding]:
    """The first rule that objects to writing there; the denying ones come first."""
    objections: tuple[tuple[bool, str, str], ...] = (
        (files.is_policy(context, path), "D4", "Changes the policy"),
        (files.is_product(context, path), "D4", "Changes files of this product"),
        (files.is_persistence(path), "D7", "Leaves a back door"),
        (files.is_device(path), "D2", "Writes to a device"),
        (files.is_kernel(path), "D3", "Changes a setting of the kernel"),
        (not files.is_inside(context, path), "A4", "Writes outside the workspace"),
        (files.is_protected(context, path), "A5", "Changes a protected file"),
        (files.is_secret(path), "A12", "Writes a file that may hold secrets"),
    )
    for applies, rule, reason in objections:
        if applies:
            yield Finding(rule, f"{reason} ({path})")
            return


def _content(context: Context, call: ToolCall, path: str, content: str) -> Iterator[Finding]:
    """Rule C1, and the commands that a change brings into a build manifest (A5)."""
    name = path.rpartition("/")[2].casefold()
    if name == _MANIFEST:
        yield from _manifest(context, call, path, content)
    yield from denied(context, path, content)


def _after_edit(context: Context, call: ToolCall, path: str) -> str | None:
    """The whole file as an edit leaves it: what is harmless by itself may complete what is not."""
    before = context.files.read(path) if call.tool == "edit_file" else None
    old = str(call.input.get("old", ""))
    if before is None or not old:
        return None
    whole = before.decode("utf-8", "replace")
    return whole.replace(old, str(call.input.get("new", "")))


def _manifest(context: Context, call: ToolCall, path: str, content: str) -> Iterator[Finding]:
    for key, command in _new_scripts(context, call, path, content):
        if _LIFE_CYCLE.fullmatch(key):
            yield Finding("A5", f"Adds a script that runs by itself ({key})")
        elif not _is_harmless_script(context, command):
            yield Finding("A5", f"Changes what `npm run {key}` runs ({command[:80]})")


def _new_scripts(
    context: Context, call: ToolCall, path: str, content: str
) -> Iterator[tuple[str, str]]:
    """The scripts that are new or other than before."""
    before = (context.files.read(path) or b"").decode("utf-8", "replace")
    after = content
    if call.tool == "edit_file" and before:
        after = before.replace(str(call.input.get("old", "")), content)
    old, new = _scripts(before), _scripts(after)
    if new is None:  # a fragment of a file that is not there to be looked at
        for key, value in _PAIR.findall(content):
            if value and not _VERSION.fullmatch(value):
                yield key, _unescaped(value)
        return
    for key, value in new.items():
        if value and (old or {}).get(key) != value:
            yield key, value


def _scripts(text: str) -> dict[str, str] | None:
    """The scripts of a manifest; None if it does not parse."""
    try:
        whole: Any = json.loads(text)
    except ValueError:
        return None
    scripts = whole.get("scripts", {}) if isinstance(whole, dict) else {}
    if not isinstance(scripts, dict):
        return None
    return {str(key): str(value) for key, value in scripts.items()}


def _unescaped(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"'))
    except ValueError:
        return value


def _is_harmless_script(context: Context, command: str) -> bool:
    """Whether each part would run without a question; npm finds the tools that npx finds."""
    return all(
        is_allowed(context, part) or is_allowed(context, f"npx {part}")
        for part in command.split("&&")
    )
