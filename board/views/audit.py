"""The audit, for owners of the installation: a list with filters, and the export of what they show."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from board import audits
from board.models import AuditEntry
from board.views.people import person

FILTERS = ("kind", "project", "card", "actor", "verdict", "rule", "run", "from", "to")
LOOKS = {"allow": "is-done", "ask": "is-waiting", "deny": "is-failed"}
TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv"}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show entries, newest first; `before` is the number of the last one on the page before."""
    wanted = _wanted(request)
    entries = audits.find_entries(person(request), wanted)
    before = request.GET.get("before", "")
    if before.isdigit():
        entries = entries.filter(number__lt=int(before[:18]))
    found = list(entries[: audits.PAGE + 1])
    shown = found[: audits.PAGE]
    query = urlencode({name: value for name, value in wanted.items() if value})
    context = {
        "place": "settings",
        "rows": [_row(entry) for entry in shown],
        "wanted": {**wanted, "since": wanted["from"], "until": wanted["to"]},
        "kinds": audits.known_kinds(),
        "verdicts": ("allow", "ask", "deny"),
        "query": query,
        "is_filtered": bool(query),
        "older": shown[-1].number if len(found) > audits.PAGE else None,
    }
    return render(request, "settings/audit.html", context)


@require_safe
def export(request: HttpRequest) -> StreamingHttpResponse:
    """Send what the filters show, oldest first, as JSON lines or as a table."""
    kind = "csv" if request.GET.get("format") == "csv" else "jsonl"
    entries = audits.find_entries(person(request), _wanted(request))
    parts = _parts(audits.chunks(entries), kind)
    # The server of the product takes an asynchronous stream, and would read another one whole.
    stream = _unblocked(parts) if isinstance(request, ASGIRequest) else parts
    headers = {"Content-Disposition": f'attachment; filename="audit.{kind}"'}
    return StreamingHttpResponse(stream, content_type=TYPES[kind], headers=headers)


def _parts(chunks: Iterator[list[AuditEntry]], kind: str) -> Iterator[str]:
    is_first = True
    for chunk in chunks:
        yield (
            audits.as_csv(chunk, with_head=is_first)
            if kind == "csv"
            else audits.as_json_lines(chunk)
        )
        is_first = False


async def _unblocked(parts: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(parts, None))
    while (part := await following()) is not None:
        yield part


def _wanted(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "")[:200] for name in FILTERS}


def _row(entry: AuditEntry) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(entry.data)
    return {
        "entry": entry,
        "title": entry.kind.replace("_", " "),
        "tool": data.get("tool", ""),
        "telling": _telling(data)[:300],
        "looks": LOOKS.get(entry.verdict, ""),
        "details": json.dumps(data, indent=2, ensure_ascii=False),
    }


def _telling(data: dict[str, Any]) -> str:
    """Return what says most of an entry, in one line."""
    if "answer" in data:
        return ": ".join(filter(None, [str(data["answer"]), str(data.get("comment", ""))]))
    if "outcome" in data:
        code = f", exit code {data['exit_code']}" if "exit_code" in data else ""
        return f"{data['outcome']}{code}, {data.get('result_bytes', 0):,} bytes"
    given = data.get("input")
    if isinstance(given, dict):
        return str(given.get("command") or given.get("path") or json.dumps(given))
    names = ("input", "name", "email", "member", "sha", "reason", "scope", "place", "base_url")
    return next((str(data[name]) for name in names if data.get(name)), "")
