"""Parts of a question that take a closer look: its scripts, its diff, why it asks again, what was said before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from board.fragments.diffs import file_rows
from board.links import links_in
from board.models import Approval, Step
from board.states import ApprovalStatus, StepKind
from board.unseen import named

MOST_SAID = 5  # exchanges with the agent that are shown
MAX_SAID = 4_000  # characters of what the agent said


@dataclass(frozen=True)
class Script:
    """A file that the call runs or names. `links`: how the call writes it, where that goes through a link."""

    path: str
    digest: str
    text: str
    lines: int
    cut: int  # characters that are not shown
    problem: str
    is_longer: bool = False  # than what is counted here
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """A question of a person to the agent, and what the agent answered."""

    asked: Approval
    answer: str


def scripts_of(approval: Approval, kind: str = "scripts") -> list[Script]:
    """Return the `scripts` that the call runs, or the `files` that it names, with their content where it was kept."""
    kept = {str(part.get("path")): part for part in _parts(approval.shown.get(kind))}
    links: dict[str, list[str]] = {}
    for written, real in links_in(approval.facts).items():
        links.setdefault(real, []).append(written)
    found = []
    for path, digest in dict(approval.facts.get(kind) or {}).items():
        part = kept.pop(str(path), {})
        found.append(
            Script(
                path=str(path),
                digest=str(digest),
                text=str(part.get("text", "")),
                lines=int(part.get("lines", 0)),
                cut=int(part.get("cut", 0)),
                is_longer=bool(part.get("is_longer")),
                problem=str(part.get("problem", "" if part else "Its content was not kept.")),
                links=tuple(links.get(str(path), ())),
            )
        )
    return found


def _parts(value: Any) -> list[dict[str, Any]]:
    return [part for part in value or [] if isinstance(part, dict)]


def diff_of(approval: Approval) -> dict[str, Any] | None:
    """Return what the call would change in its file, with the rows of the table; None if it is no write."""
    diff = approval.shown.get("diff")
    if not isinstance(diff, dict):
        return None
    hunks = [
        {**hunk, "lines": [[*line[:3], named(str(line[3]))] for line in hunk.get("lines", ())]}
        for hunk in _parts(diff.get("hunks"))
    ]
    return {**diff, "rows": file_rows(hunks)}


def changes_since(approval: Approval) -> list[str]:
    """Return why this call is asked about again although it was approved, as ends of a sentence."""
    before = (
        Approval.objects.filter(
            step_id=approval.step_id, pk__lt=approval.pk, status=ApprovalStatus.APPROVED
        )
        .order_by("-pk")
        .first()
    )
    if before is None:
        return []
    return list(dict.fromkeys(_changes(before, approval))) or ["something about it has changed"]


def _changes(before: Approval, now: Approval) -> Iterator[str]:
    old, new = before.facts, now.facts
    if old.get("cwd") != new.get("cwd"):
        yield f"it would run in another folder now, {new.get('cwd')}"
    yield from _moved(old, new)
    if old.get("policy") != new.get("policy"):
        yield "the policy has changed"
    if old.get("sandbox") != new.get("sandbox"):
        yield "the sandbox is another one"
    if now.critical and not before.critical:
        yield "it is critical now"


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Say which scripts, files and links are not what they were."""
    for kind, verb in (("scripts", "runs"), ("files", "names")):
        yield from _changed(dict(old.get(kind) or {}), dict(new.get(kind) or {}), verb=verb)
    if new.get("target") != old.get("target"):
        yield "the file that it would change is not what it was"
    paths = dict(old.get("paths") or {})
    for written, real in dict(new.get("paths") or {}).items():
        if written in paths and paths[written] != real:
            yield f"{written} leads to {real} now"


def _changed(before: Mapping[str, str], now: Mapping[str, str], *, verb: str) -> Iterator[str]:
    for path, digest in now.items():
        if path not in before:
            yield f"it {verb} {path} now"
        elif before[path] != digest:
            yield f"the content of {path} has changed"
    yield from (f"{path} is gone" for path in before if path not in now)


def said_before(approval: Approval) -> list[Exchange]:
    """Return what people asked the agent right before this question, and its answers, oldest first."""
    earlier = Approval.objects.select_related("step", "decided_by").filter(
        run_id=approval.run_id, pk__lt=approval.pk
    )
    returned = []
    for each in earlier.order_by("-pk")[:MOST_SAID]:
        if each.status != ApprovalStatus.RETURNED:
            break
        returned.append(each)
    return [Exchange(each, _answer_to(each)) for each in reversed(returned)]


def _answer_to(returned: Approval) -> str:
    """Return what the agent said in its first turn after the question."""
    turns = Step.objects.filter(
        run_id=returned.run_id, kind=StepKind.MODEL, seq__gt=returned.step.seq
    )
    for turn in turns.order_by("seq")[:3]:
        content = (turn.response or {}).get("content") or []
        texts = [str(block.get("text", "")) for block in _parts(content) if block.get("type") == "text"]  # fmt: skip
        said = "\n".join(texts).strip()
        if said:
            return said[:MAX_SAID]
    return ""


def follow_up(approval: Approval) -> Approval | None:
    """Return the next question of the run, for one that went back to the agent."""
    if approval.status != ApprovalStatus.RETURNED:
        return None
    later = Approval.objects.filter(run_id=approval.run_id, pk__gt=approval.pk)
    return later.order_by("pk").first()
