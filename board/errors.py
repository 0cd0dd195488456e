"""What the board says to people when something cannot be done: one sentence, what happened and what to do."""

from collections.abc import Mapping


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
