"""Judges redirections: files that are read, and files that are written with what goes into them."""

import re
from collections.abc import Sequence

from agents.harness.policy import content, files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_change, check_read
from agents.harness.policy.values import Field, Kind, Value

_DESCRIPTOR = re.compile(r"\d+-?|-")
_ENDLESS = frozenset({"/dev/null", "/dev/zero", "/dev/urandom", "/dev/stdin"})
_OUTPUTS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/63"})


def check_redirect(
    context: Context, operator: str, fields: Sequence[Field], output: Value
) -> str | None:
    """Raise Refused, or return the real path of the file that is written, if there is one."""
    if len(fields) != 1 or fields[0].glob:
        raise Refused("A9", "Redirects to a file whose name is not known")
    (target,) = fields
    if operator in (">&", "<&") and _DESCRIPTOR.fullmatch(target.text):
        return None
    if operator == "<":
        _check_source(context, target)
        return None
    if operator not in (">", ">>", ">|", "&>", "&>>", ">&"):
        raise Refused("A9", f"Has a redirection that is not known ({operator})")
    return None if target.text in _OUTPUTS else _written(context, target, output)


def _written(context: Context, target: Field, output: Value) -> str:
    if target.kind > Kind.NAMED or not target.text:
        raise Refused("A4", "Writes to a file whose name is not known")
    check_change(context, target.text)
    path = files.real(context, target.text)
    if output.kind is Kind.KNOWN and output.text:
        for finding in content.denied(context, path, output.text):
            raise Refused(finding.rule, finding.reason)
    return path


def _check_source(context: Context, target: Field) -> None:
    if target.kind is Kind.LISTED or target.text in _ENDLESS or target.text == "/dev/fd/63":
        return
    if target.kind in (Kind.FOUND, Kind.TEXT):
        raise Refused("A13", "Reads a file whose name is not known")
    check_read(context, target.text)
