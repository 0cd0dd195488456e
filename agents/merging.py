"""Merging a card's work: in the hub, tested again on the merged tree, then delivered."""

import asyncio
import logging
import threading
from dataclasses import dataclass

from django.conf import settings

from agents import verification
from agents.database import Database
from agents.desk import Desk, Places, engine_of, places
from agents.harness.errors import FatalError
from agents.known_secrets import redactor_of_run
from agents.local_files import bring_local_files
from agents.log_sink import LogSink
from agents.sandbox_probe import probe
from agents.workspaces.delivery import DeliveryState, deliver
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import Author
from agents.workspaces.hub import HubState, fetch_hub
from agents.workspaces.merges import Candidate, Conflict, land_merge, prepare_merge
from agents.workspaces.records import find_worktree
from agents.workspaces.removal import remove_worktree
from agents.workspaces.saves import holds_more_than_saved
from agents.workspaces.worktrees import check_out, delete_worktree
from board.models import Card, Errand

log = logging.getLogger(__name__)

TRIES = 5  # times that the target may move under us, each with a new test


@dataclass(frozen=True)
class Merging:
    """A card to be merged, as plain data."""

    card_key: str
    title: str
    project_key: str
    repository: str
    target_branch: str
    setup_command: str
    secret_files: tuple[str, ...]
    network_hosts: tuple[str, ...]
    container: tuple[str, str]  # engine and image, or two times ""
    checks: tuple[str, ...]
    run_id: int
    fence: int
    branch: str
    base_sha: str
    head_sha: str
    author: Author
    is_asked_for: bool  # by a person; else the project merges by itself
    has_passed: bool  # its checks as they are now, and not only those that the card had then


@dataclass(frozen=True)
class Merged:
    """The work is on the target branch of the hub; `delivery` says how far it came from there."""

    sha: str
    delivery: str


@dataclass(frozen=True)
class Refused:
    """The merge was not made."""

    reason: str
    files: tuple[str, ...] = ()


_SETUP_FAILED = "The set-up command failed on the merged tree: {}."
UNBOXED = Refused(
    "The target or the checks have changed, and without a sandbox the checks run on the merged tree only when a "
    "person asks for the merge. Read the diff, then merge it."
)


def load_card(errand: Errand) -> Merging:
    """Read what a merge needs to know."""
    cards = Card.objects.select_related("project", "run", "created_by").filter(errands=errand)
    card = cards.first()
    if card is None or (run := card.run) is None:
        raise WorkspaceError("This card has no work to merge.", code="no_work")
    asked_by = errand.requested_by or card.created_by
    project = card.project
    return Merging(
        card_key=card.ref,
        title=card.title,
        project_key=project.key,
        repository=project.repository,
        target_branch=project.target_branch,
        setup_command=project.setup_command,
        secret_files=tuple(project.secret_files),
        network_hosts=tuple(project.network_hosts),
        container=(project.container_engine, project.container_image),
        checks=tuple(card.checks),
        run_id=run.pk,
        fence=run.fence,
        branch=run.branch,
        base_sha=run.base_sha,
        head_sha=run.head_sha,
        author=Author(asked_by.name, asked_by.email),
        is_asked_for=errand.requested_by_id is not None,
        has_passed=verification.passed_in(run.evidence).issuperset(card.checks),
    )


async def merge(card: Merging, *, db: Database, cancel: threading.Event) -> Merged | Refused:
    """Merge, test, land and deliver. Raises WorkspaceError if git cannot do it."""
    where = places(settings.HUBS, settings.WORKSPACES, card.project_key)
    for _ in range(TRIES):
        candidate = await asyncio.to_thread(_prepare, card, where)
        if isinstance(candidate, Conflict):
            return _conflict(card, candidate)
        is_unboxed = not card.is_asked_for and bool(card.checks) and _level(card) == "none"
        if candidate.target_sha != card.base_sha or not card.has_passed:
            if is_unboxed:
                return UNBOXED
            is_proven = False
        else:
            is_proven = is_unboxed or await asyncio.to_thread(_is_what_was_tested, card, where)
        if not is_proven:
            refused = await _test(card, where, candidate, db=db, cancel=cancel)
            if refused is not None:
                return refused
        if not await asyncio.to_thread(land_merge, where.hub, candidate):
            continue
        delivery = await asyncio.to_thread(_deliver, card, where, candidate)
        return Merged(candidate.sha, delivery)
    return Refused(
        f"{card.target_branch} moved {TRIES} times while this was tested. Merge it again."
    )


def _prepare(card: Merging, where: Places) -> Candidate | Conflict:
    """Take in what people have committed, then merge the card's branch; nothing moves yet."""
    try:
        fetched = fetch_hub(
            where.hub, card.repository, card.target_branch, environment=settings.REMOTE_ENVIRONMENT
        )
    except WorkspaceError as error:
        log.warning("%s is merged without a fetch: %s", card.card_key, error)
    else:
        if fetched.state is HubState.DIVERGED:
            _join(card, where, fetched.source_sha)
    message = f"{card.card_key}: {card.title}\n\nMerged by {card.author.name} with Pullcord."
    return prepare_merge(
        where.hub, card.target_branch, card.head_sha, message=message, author=card.author
    )


def _level(card: Merging) -> str:
    """The level of the sandbox in which the checks would run."""
    engine, _image = card.container
    return engine or probe().name


def _is_what_was_tested(card: Merging, where: Places) -> bool:
    """Return whether the merged tree, on an unmoved target, is all that the checks saw.

    They may have passed because of a file that git ignores, which stays behind.
    """
    worktree = find_worktree(where.root, card.branch)
    return worktree is not None and not holds_more_than_saved(worktree)


def _join(card: Merging, where: Places, source_sha: str) -> None:
    """Merge the user's own new commits into the hub's target, which holds undelivered merges."""
    message = f"Take in new commits of {card.target_branch}"
    joined = prepare_merge(
        where.hub, card.target_branch, source_sha, message=message, author=card.author
    )
    if isinstance(joined, Conflict):
        raise WorkspaceError(
            f"{card.target_branch} of the repository and the merges that are not delivered to it yet conflict in "
            f"{', '.join(joined.files[:5])}. Merge pullcord/{card.target_branch} there by hand, then merge again.",
            code="diverged",
        )
    land_merge(where.hub, joined)


def _conflict(card: Merging, conflict: Conflict) -> Refused:
    shown = ", ".join(conflict.files[:5]) + (
        " and others" if len(conflict.files) > len(conflict.files[:5]) else ""
    )
    noun = "file conflicts" if len(conflict.files) == 1 else "files conflict"
    return Refused(
        f"{len(conflict.files)} {noun} with {card.target_branch}: {shown}. "
        "Send the card back, so that an agent works on the new state.",
        conflict.files,
    )


async def _test(
    card: Merging, where: Places, candidate: Candidate, *, db: Database, cancel: threading.Event
) -> Refused | None:
    """Run the checks on the merged tree in a worktree of its own, or say why it may not land."""
    try:
        engine = await asyncio.to_thread(engine_of, card.container)
    except FatalError as error:
        return Refused(f"The checks cannot run on the merged tree. {error}")
    path = where.root / f"merge-{card.card_key}"
    worktree = await asyncio.to_thread(check_out, where.clone, where.hub, path, candidate.sha)
    redactor = redactor_of_run()
    sink = LogSink(card.run_id, card.fence, db, redactor=redactor)
    try:
        sink.emit("note", text=f"Testing again on {card.target_branch}", level="info")
        await asyncio.to_thread(
            bring_local_files,
            worktree,
            card.repository,
            card.secret_files,
            redactor=redactor,
            say=lambda text: sink.emit("note", text=text, level="warning"),
        )
        desk = Desk(
            worktree,
            where,
            hidden=[settings.DATA],
            redactor=redactor,
            hosts=card.network_hosts,
            engine=engine,
        )
        desk.context.cancel = cancel
        async with desk.network(sink):
            if not await _set_up(card, desk):
                return Refused(_SETUP_FAILED.format(card.setup_command) + _why_setup(card))
            results = await verification.run_checks(
                card.checks, shell=desk.shell, context=desk.context, sink=sink
            )
    finally:
        await sink.close()
        await asyncio.to_thread(delete_worktree, where.clone, worktree.path)
    failed = [result.command for result in results if not result.is_passed]
    if failed:
        return Refused(
            f"It merges into {card.target_branch} without conflict, but there this fails: {', '.join(failed[:3])}. "
            "Send the card back, so that an agent works on the new state."
        )
    return None


async def _set_up(card: Merging, desk: Desk) -> bool:
    """Run the set-up command on the merged tree, and return whether it succeeded.

    It may run what the agent has changed. So it has the network only if a person has asked for this
    merge, and has taken the work as it is; else nobody has looked at it yet.
    """
    if not card.setup_command:
        return True
    result = await verification.run_command(
        card.setup_command,
        shell=desk.shell_for_setup() if card.is_asked_for else desk.shell,
        context=desk.context,
        seconds=1800.0,
    )
    return result.is_passed


def _why_setup(card: Merging) -> str:
    if card.is_asked_for:
        return ""
    return " Before a person asks for the merge it has no network. Read the diff, then merge it."


def _deliver(card: Merging, where: Places, candidate: Candidate) -> str:
    """Bring the merge to the user's repository and return a sentence for the card."""
    try:
        delivery = deliver(
            where.hub,
            card.repository,
            card.target_branch,
            candidate.sha,
            environment=settings.REMOTE_ENVIRONMENT,
        )
    except WorkspaceError as error:
        return f"Merged, but not delivered: {error}"
    prefix = "" if delivery.state is DeliveryState.DELIVERED else "Merged, but not delivered. "
    return prefix + delivery.message


def clean_up(card: Merging) -> None:
    """Remove the worktree of merged work; everything in it is in the hub."""
    where = places(settings.HUBS, settings.WORKSPACES, card.project_key)
    worktree = find_worktree(where.root, card.branch)
    if worktree is None:
        return
    try:
        remove_worktree(worktree, where.hub)
    except WorkspaceError as error:
        log.warning("The worktree of %s is kept: %s", card.card_key, error)
