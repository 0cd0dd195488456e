"""What the board says to people when something cannot be done: one sentence, what happened and what to do."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class _Line(Protocol):
    """See board.gate.Problem, which stands above this module."""

    @property
    def line(self) -> int: ...

    @property
    def message(self) -> str: ...


class BoardError(Exception):
    """A refusal for a person. `code` is for programs; views answer with `status`."""

    code = "refused"
    status = 422

    def __init__(self, message: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fields = dict(fields or {})


class ValidationError(BoardError):
    """Some input is not usable; `fields` says which and why."""

    code = "invalid"


class PolicyRefusedError(BoardError):
    """A policy may not be saved; `problems` are the lines and what is wrong there."""

    code = "policy_refused"

    def __init__(self, problems: Sequence["_Line"]) -> None:
        self.problems = tuple(problems)
        lines = [
            f"Line {problem.line}: {problem.message}." if problem.line else f"It {problem.message}."
            for problem in self.problems
        ]
        super().__init__(
            "The policy is not saved. " + " ".join(lines), fields={"text": "\n".join(lines)}
        )


class TransitionError(BoardError):
    """The thing is not in the state that the action needs, or someone else was first."""

    code = "conflict"
    status = 409


class AlreadyDecidedError(BoardError):
    """An approval was answered before; `fields` names who and how."""

    code = "already_decided"
    status = 409


class NotAllowedError(BoardError):
    """The person sees the thing but may not do this with it."""

    code = "forbidden"
    status = 403


class TooOftenError(BoardError):
    """Too many tries in too short a time."""

    code = "too_often"
    status = 429


class LeaseLostError(BoardError):
    """A worker wrote with an old fence: another worker holds the run now. Nothing was written."""

    code = "lease_lost"
    status = 409
