"""Routes of approvals: the questions of agents, and the answers of people."""

from ninja import Router

from board import access
from board.actions.approvals import decide
from board.actions.endings import ask_agent
from board.api.answers import ApprovalAnswer, answers
from board.api.approval_contents import describe_approval
from board.api.bodies import After, Decision, Limit
from board.api.tokens import ApiRequest
from board.states import ApprovalStatus, Role

router = Router(tags=["approvals"])


@router.get("/approvals", response=answers(list[ApprovalAnswer]))
def list_approvals(
    request: ApiRequest,
    status: ApprovalStatus | None = None,
    project: str | None = None,
    after: After = 0,
    limit: Limit = 200,
) -> list[ApprovalAnswer]:
    """List the questions of your projects, oldest first; `status=pending` are the open ones."""
    found = access.list_approvals(request.auth).filter(pk__gt=after)
    if status is not None:
        found = found.filter(status=status)
    if project is not None:
        found = found.filter(project=access.get_project(request.auth, project))
    return [describe_approval(approval) for approval in found[:limit]]


@router.get("/approvals/{int:approval_id}", response=answers(ApprovalAnswer))
def show(request: ApiRequest, approval_id: int) -> ApprovalAnswer:
    """Show one question."""
    return describe_approval(access.get_approval(request.auth, approval_id))


@router.post("/approvals/{int:approval_id}/decide", response=answers(ApprovalAnswer))
def answer(request: ApiRequest, approval_id: int, body: Decision) -> ApprovalAnswer:
    """Answer a question, or ask the agent. The first answer counts; a later one gets 409 and who was first."""
    approval = access.get_approval(request.auth, approval_id, role=Role.MEMBER)
    if body.verdict == "ask":
        ask_agent(approval, by=request.auth, question=body.comment)
        return describe_approval(approval)
    decide(
        approval,
        by=request.auth,
        role=access.check_role(request.auth, approval.project_id, Role.MEMBER),
        approve=body.verdict == "approve",
        scope=body.scope,
        edited_input=body.input,
        comment=body.comment,
        digest=body.digest,
    )
    return describe_approval(approval)
