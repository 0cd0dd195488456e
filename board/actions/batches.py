"""One answer to several questions: each is decided on its own, and says what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from board.actions.approvals import decide
from board.errors import BoardError
from board.models import Approval, User
from board.states import Role

MOST = 50  # questions in one request


@dataclass(frozen=True)
class Asked:
    """A question to be answered, and the digest of what the person saw of it."""

    approval: Approval
    role: Role
    digest: str


@dataclass(frozen=True)
class Result:
    """What became of one answer; `refusal` is empty if it counted."""

    approval: Approval
    refusal: str = ""


def decide_all(
    asked: Sequence[Asked], *, by: User, approve: bool, comment: str = "", op_id: str = ""
) -> list[Result]:
    """Answer each question once, for this time only. A refusal of one does not touch the others.

    Critical calls are refused: they are looked at one by one.
    """
    return [_decide(each, by=by, approve=approve, comment=comment, op_id=op_id) for each in asked]


def _decide(each: Asked, *, by: User, approve: bool, comment: str, op_id: str) -> Result:
    if approve and each.approval.critical:
        return Result(each.approval, "This is critical: look at it by itself.")
    try:
        decide(
            each.approval,
            by=by,
            role=each.role,
            approve=approve,
            comment=comment,
            op_id=op_id,
            digest=each.digest,
        )
    except BoardError as error:
        return Result(each.approval, error.message)
    return Result(each.approval)
