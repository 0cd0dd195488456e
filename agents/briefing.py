"""What a worker has to know about a run before it begins: read once, in one go."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.executors import ModelAccess
from agents.harness.prompts import task_prompt
from board.actions.credentials import model_access
from board.actions.policies import narrower
from board.actions.runs import get_held
from board.models import Card, Comment, Run
from board.states import CardStatus

MAX_BACKGROUND = 12_000  # characters of what was said before


@dataclass(frozen=True)
class Brief:
    """One run, its card and its project, as plain data."""

    run_id: int
    attempt: int
    card_key: str  # KEY-12
    project_id: int
    project_key: str
    repository: str
    target_branch: str
    setup_command: str
    secret_files: Sequence[str]  # of the local repository, copied into the worktree
    network_hosts: Sequence[str]  # that commands may reach, in the best sandbox
    container: tuple[str, str]  # engine and image; the engine is "" for the worker's own sandbox
    checks: Sequence[str]
    is_rehearsal: bool
    profile: str  # of tools: the narrower of the project's and the card's
    active_seconds: float  # of earlier stretches of this run
    branch: str  # "" until the workspace exists
    base_sha: str
    start_sha: str  # where the work of an attempt that was sent back stands, or ""
    prompt: str
    access: ModelAccess | None = field(repr=False)


def load_brief(run_id: int, fence: int) -> Brief:
    """Read the brief of the run that `fence` holds, or raise LeaseLostError."""
    run = get_held(run_id, fence)
    card, project = run.card, run.project
    card.project = project
    before = _sent_back(card, run)
    return Brief(
        run_id=run.pk,
        attempt=run.attempt,
        card_key=card.ref,
        project_id=project.pk,
        project_key=project.key,
        repository=project.repository,
        target_branch=project.target_branch,
        setup_command=project.setup_command,
        secret_files=tuple(project.secret_files),
        network_hosts=tuple(project.network_hosts),
        container=(project.container_engine, project.container_image),
        checks=tuple(card.checks),
        is_rehearsal=project.is_rehearsal,
        profile=narrower(project.tool_profile, card.tool_profile),
        active_seconds=run.active_seconds,
        branch=run.branch,
        base_sha=run.base_sha or (before.base_sha if before else ""),
        start_sha=before.head_sha if before else "",
        prompt=_prompt(card, run),
        access=_access(run),
    )


def _access(run: Run) -> ModelAccess | None:
    credential = model_access()
    if credential is None:
        return None
    return ModelAccess(run.model, credential.api_key, credential.base_url, credential.header)


def _sent_back(card: Card, run: Run) -> Run | None:
    """Return the attempt whose work was sent back: this one continues it."""
    before = Run.objects.filter(card=card, attempt=run.attempt - 1, status="succeeded").first()
    return before if before and before.head_sha else None


def _prompt(card: Card, run: Run) -> str:
    return task_prompt(
        title=card.title,
        goal=card.goal,
        files=card.files,
        constraints=[line for line in card.constraints.splitlines() if line.strip()],
        checks=card.checks,
        background=_background(card, run)[:MAX_BACKGROUND],
    )


def _background(card: Card, run: Run) -> str:
    """Return what people and earlier attempts have said that matters now."""
    parts = []
    comments = Comment.objects.filter(card=card, kind__in=["comment", "send_back"])
    for comment in comments.select_related("author").order_by("id"):
        verb = "sent the work back" if comment.kind == "send_back" else "commented"
        parts.append(f"{comment.author} {verb}:\n{comment.body}")
    last = Run.objects.filter(card=card, attempt__lt=run.attempt).order_by("-attempt").first()
    if last is not None and last.failure:
        parts.append(f"The attempt before this one failed: {last.failure}")
    if last is not None and last.status == "succeeded":
        parts.append(
            "The worktree holds the work of the attempt before, unless it says otherwise below. "
            "Improve it; do not begin again."
        )
    if card.remaining:
        parts.append(f"What it left undone:\n{card.remaining}")
    done = card.needs.filter(status=CardStatus.DONE).select_related("run", "project")
    parts += [
        f"{need.ref} is done: {need.run.summary}" for need in done if need.run and need.run.summary
    ]
    return "\n\n".join(parts)
