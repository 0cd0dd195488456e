"""Routes of runs: the journal, the log and the diff of one attempt."""

from ninja import Router

from board import access
from board.api.answers import DiffAnswer, LogAnswer, RunAnswer, answers
from board.api.bodies import After, Limit
from board.api.contents import describe_diff, describe_run
from board.api.tokens import ApiRequest
from board.models import LogItem, Step

router = Router(tags=["runs"])


@router.get("/runs/{int:run_id}", response=answers(RunAnswer))
def show(request: ApiRequest, run_id: int) -> RunAnswer:
    """Show one run with its steps, its tokens and its cost."""
    run = access.get_run(request.auth, run_id)
    return describe_run(run, Step.objects.filter(run=run).order_by("seq"))


@router.get("/runs/{int:run_id}/log", response=answers(list[LogAnswer]))
def show_log(
    request: ApiRequest, run_id: int, after: After = 0, limit: Limit = 200
) -> list[LogAnswer]:
    """List the log items behind the seq `after`, oldest first."""
    run = access.get_run(request.auth, run_id)
    items = LogItem.objects.filter(run=run, seq__gt=after).order_by("seq")[:limit]
    return [LogAnswer(seq=item.seq, at=item.at, kind=item.kind, data=item.data) for item in items]


@router.get("/runs/{int:run_id}/diff", response=answers(DiffAnswer))
def show_diff(request: ApiRequest, run_id: int) -> DiffAnswer:
    """Show what the run has changed, file by file and as one patch."""
    return describe_diff(access.get_run(request.auth, run_id))
