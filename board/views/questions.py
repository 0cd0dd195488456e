"""A question of an agent, ready to be shown in full: the call, its parts, why it asks, where it would run."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from board.fragments.questions import (
    MAX_CHARACTERS,
    MAX_LINES,
    call_text,
    is_overdue,
    is_short,
    looker,
    wants,
)
from board.links import leads_elsewhere
from board.models import Approval, User
from board.states import ApprovalScope, ApprovalStatus
from board.views.question_parts import (
    Exchange,
    Script,
    changes_since,
    diff_of,
    follow_up,
    said_before,
    scripts_of,
)

QUICK_REASONS = (
    "Not needed for this card.",
    "Do it another way.",
    "Too risky. Stop and report what you need.",
)
SANDBOXES = {
    "bubblewrap": "bubblewrap: no network, writes only inside the workspace",
    "podman": "container (podman): no network, writes only inside the workspace",
    "docker": "container (docker): no network, writes only inside the workspace",
    "landlock": "landlock: no network, writes only inside the workspace, sees the machine's processes",
    "none": "none: nothing but this question stands between the command and the machine",
    "broken": "broken: commands fail until the worker's machine is mended",
    "": "not known",
}
EDITED_AS_TEXT = "command"  # the input that is edited by itself; any other call is edited as JSON


@dataclass(frozen=True)
class RealPath:
    """A path as it is written in the call, and what it really is."""

    written: str
    real: str
    differs: bool  # it is or goes through a link to another place


class Question:
    """What the pages show of an approval."""

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        self.run = approval.run
        self.card = approval.run.card
        self.agent = approval.run.agent or "An agent"
        self.wants = wants(approval)
        self.summary = call_text(approval)
        self.is_short = is_short(approval)
        self.is_long = len(self.summary) > MAX_CHARACTERS or self.summary.count("\n") >= MAX_LINES
        self.is_open = approval.status == ApprovalStatus.PENDING

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """The call's input: each name with its whole value as text."""
        return [(name, _as_text(value)) for name, value in self.approval.input.items()]

    @property
    def edited(self) -> list[tuple[str, str]]:
        """What a person made of the input, if they changed it."""
        return [
            (name, _as_text(value)) for name, value in (self.approval.edited_input or {}).items()
        ]

    @property
    def effects(self) -> list[tuple[str, str]]:
        """Each command that would start, as it is resolved, with what else is known of it."""
        return [_effect(effect) for effect in self.approval.effects]

    @property
    def folder(self) -> str:
        """The real folder in which it would run."""
        return str(self.approval.facts.get("cwd") or self.run.workspace)

    @property
    def paths(self) -> list[RealPath]:
        """The paths of the call with what they really are."""
        paths = self.approval.facts.get("paths") or {}
        folder = str(self.approval.facts.get("cwd") or "")
        return [
            RealPath(written, real, leads_elsewhere(written, real, folder=folder))
            for written, real in ((str(one), str(two)) for one, two in dict(paths).items())
        ]

    @cached_property
    def scripts(self) -> list[Script]:
        """The scripts that would run, each with its content and the hash of it."""
        return scripts_of(self.approval)

    @cached_property
    def files(self) -> list[Script]:
        """The files that the call names, each with its content and the hash of it."""
        return scripts_of(self.approval, "files")

    @cached_property
    def diff(self) -> dict[str, Any] | None:
        """What a write would change in its file."""
        return diff_of(self.approval)

    @cached_property
    def again(self) -> list[str]:
        """Why it asks although it was approved before."""
        return changes_since(self.approval)

    @cached_property
    def said(self) -> list[Exchange]:
        """What people asked the agent about it before, and its answers."""
        return said_before(self.approval)

    @cached_property
    def follow_up(self) -> Approval | None:
        """The question that came of asking the agent."""
        return follow_up(self.approval)

    @property
    def remembered(self) -> list[tuple[str, str]]:
        """What an answer may make last, in words: the button, and what it would allow."""
        if self.approval.critical:
            return []
        what = (
            "scripts and files"
            if self.scripts and self.files
            else "scripts"
            if self.scripts
            else "files"
        )
        same = f" with the same content of its {what}" if self.scripts or self.files else ""
        name = self.approval.project.name
        return [
            ("For this run", f"exactly this call{same}, until this run ends"),
            ("Always", f"exactly this call{same}, in every run of {name}, until it is withdrawn"),
        ]

    @property
    def is_overdue(self) -> bool:
        """Whether it waits for longer than the project wants."""
        return is_overdue(self.approval)

    @property
    def looked_by(self) -> User | None:
        """Who is looking at it now."""
        return looker(self.approval)

    @property
    def sandbox(self) -> str:
        """The level of the sandbox, in words."""
        level = self.approval.sandbox
        return SANDBOXES.get(level, level)

    @property
    def unprotected(self) -> bool:
        """Whether no sandbox would hold the command."""
        return self.approval.sandbox == "none"

    @property
    def edit_text(self) -> str:
        """What the person edits: the command, or the whole input as JSON."""
        command = self.approval.input.get(EDITED_AS_TEXT)
        if isinstance(command, str):
            return command
        return json.dumps(self.approval.input, indent=2, ensure_ascii=False)

    @property
    def edits_json(self) -> bool:
        """Whether `edit_text` is JSON."""
        return not isinstance(self.approval.input.get(EDITED_AS_TEXT), str)

    @property
    def outcome(self) -> str:
        """What became of it, as a sentence without its subject."""
        how = {
            ApprovalScope.ONCE: "approved this once",
            ApprovalScope.RUN: "approved this for the whole run",
            ApprovalScope.ALWAYS: "approved this for ever",
        }
        match ApprovalStatus(self.approval.status):
            case ApprovalStatus.PENDING:
                return "approved this" if self.approval.first_by_id else "waits"
            case ApprovalStatus.APPROVED:
                edited = " with a change" if self.approval.edited_input is not None else ""
                return how.get(ApprovalScope(self.approval.scope), "approved this") + edited
            case ApprovalStatus.DENIED:
                return "denied this"
            case ApprovalStatus.EXPIRED:
                return "let this expire"
            case ApprovalStatus.RETURNED:
                return "asked the agent instead of answering"
            case ApprovalStatus.CANCELLED:
                return "withdrew this, because the run was cancelled"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _effect(effect: Any) -> tuple[str, str]:
    if not isinstance(effect, Mapping):
        return _as_text(effect), ""
    argv = effect.get("argv")
    line = shlex.join(map(str, argv)) if isinstance(argv, list) else ""
    rest = [
        f"{name} {_as_text(value)}" for name, value in effect.items() if name != "argv" and value
    ]
    return (line or " · ".join(rest)), (" · ".join(rest) if line else "")
