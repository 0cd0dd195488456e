"""Judges a call of a tool that a server outside provides (MCP)."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from agents.harness.policy import denies, files, network
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.opinions import Opinion, strictest
from agents.harness.ports import Tier, ToolCall

_WRITING = re.compile(r"(?i)write|edit|create|delete|remove|move|rename|update|set_|put|append")
_PATH_FIELDS = re.compile(
    r"(?i)(?:^|[_-])(?:paths?|files?|filenames?|filepaths?|dirs?|director(?:y|ies)|folders?|uris?|cwd"
    r"|source|src|destination|dest|target|root)$|(?:File|Path|Dir|Folder|Uri)s?$"
)
_ADDRESS_FIELDS = re.compile(r"(?i)(?:\w+_)?(?:urls?|uris?|endpoint|href)")
_COMMAND_FIELDS = frozenset({"command", "cmd", "script", "code", "shell"})


def judge(call: ToolCall, context: Context) -> Opinion:
    """L8 if the server is trusted, the tool only reads, and its arguments raise no objection."""
    arguments = call.input.get("arguments", {})
    findings = list(_objections(context, arguments, writes=_writes(call)))
    if findings:
        findings.sort(key=lambda finding: "DACL".index(finding.rule[0]))
        return Opinion(strictest(findings), findings)
    hints = call.input.get("annotations", {})
    server, tool = call.input.get("server", ""), call.input.get("tool", "")
    if server not in context.trusted_servers:
        return _ask(f"Uses a server that nobody has marked as trusted ({server})")
    if hints.get("readOnlyHint") is not True or hints.get("destructiveHint") is True:
        return _ask(f"Uses a tool that may change something ({server}: {tool})")
    return Opinion(Tier.ALLOW, [Finding("L8", "Only reads, by a trusted server")])


def _ask(reason: str) -> Opinion:
    return Opinion(Tier.ASK, [Finding("A14", reason)])


def _writes(call: ToolCall) -> bool:
    """A server may call a tool read-only that is not, so its name counts as well."""
    hints = call.input.get("annotations", {})
    return (
        hints.get("readOnlyHint") is not True
        or _WRITING.search(str(call.input.get("tool"))) is not None
    )


def _objections(context: Context, arguments: Any, *, writes: bool) -> Iterator[Finding]:
    for name, text in _strings("", arguments):
        if name in _COMMAND_FIELDS:
            yield Finding("A14", "Runs a command on a server")
            yield from denies.judge(context, text).findings
        elif "\n" not in text and _is_path(name, text):
            yield from _path(context, _local(text), writes=writes)
        for host, port in network.addresses_in(text):
            if network.is_product(context, host, port):
                yield Finding("D4", "Calls this product's own address")
            elif _ADDRESS_FIELDS.fullmatch(name) and not network.is_loopback(host):
                yield Finding("A1", f"Connects to another machine ({host})")


def _is_path(name: str, text: str) -> bool:
    """Whether an argument names a file: by how it begins, or by what the argument is called."""
    if text.casefold().startswith("file:") or text.startswith(("/", "~", "./", "../")):
        return True
    return _PATH_FIELDS.search(name) is not None and "://" not in text


def _local(text: str) -> str:
    """The path of a `file:` address; any other text as it is."""
    if not text.casefold().startswith("file:"):
        return text
    rest = unquote(text[len("file:") :])
    return "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest


def _path(context: Context, text: str, *, writes: bool) -> Iterator[Finding]:
    path = files.real(context, text)
    if writes and (files.is_policy(context, path) or files.is_product(context, path)):
        yield Finding("D4", f"Changes the policy or files of this product ({path})")
        return
    if writes and files.is_persistence(path):
        yield Finding("D7", f"Leaves a back door ({path})")
        return
    if files.is_product_data(context, path) or files.is_environment(path):
        yield Finding("D5", f"Reads secrets or data of this product ({text})")
    elif files.is_secret(path):
        yield Finding("A12", f"Touches a file that may hold secrets ({text})")
    elif not files.is_readable(context, path):
        yield Finding("A13", f"Touches a file outside the workspace ({text})")


def _strings(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(str(key), item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(name, item)
