"""Whatever happens, in whatever order, through however bad a network: every open page ends up true.

And nobody is ever sent a card that they could not have fetched at that moment.
"""

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from channels.layers import channel_layers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from board.actions import (
    approvals,
    archiving,
    cancels,
    cards,
    claims,
    comments,
    dependencies,
    lanes,
    projects,
    runs,
)
from board.actions.placement import Place
from board.actions.tokens import hash_token
from board.errors import BoardError
from board.feeds import boards
from board.models import Approval, Card, Column, Invitation, Membership, Project, User, Worker
from board.states import ApprovalStatus, CardStatus, FailureKind, Role
from tests.board.browsers import Browser, run, until
from tests.board.test_consumers import QUESTION
from tests.board.unreliable import UnreliableLayer

pytestmark = pytest.mark.django_db(transaction=True)

number = st.integers(0, 1_000_000)
ON_CARDS = [
    "create", "edit", "move", "move", "archive", "restore", "queue", "claim", "claim", "finish", "fail",
    "cancel", "comment", "need", "ask", "answer", "by_hand",
]  # fmt: skip
ON_PAGES = ["sleep", "wake", "wait", "look", "remove", "admit"]
steps = st.lists(
    st.tuples(st.sampled_from(ON_CARDS * 2 + ON_PAGES), number), min_size=12, max_size=25
)


class Tab(Browser):
    """Takes some frames twice, and notes every frame with a card that it may not see now."""

    def __init__(self, user: User, project: Project, secrets: dict[int, set[str]]) -> None:
        super().__init__(user, project)
        self.leaks: list[str] = []
        self._secrets = secrets
        self._chance = random.Random(user.pk)  # noqa: S311  no secret

    async def take(self, frame: dict[str, Any]) -> None:
        text = json.dumps(frame)
        self.leaks += [word for word in self._secrets.get(self.user.pk, ()) if word in text]
        await super().take(frame)
        if self._chance.random() < 0.2:
            await super().take(frame)


class World:
    """One project with its people and their tabs, and everything that may happen to it."""

    def __init__(self, project: Project, owner: User, people: list[User], worker: Worker) -> None:
        self.project, self.owner, self.people, self.worker = project, owner, people, worker
        self.secrets: dict[int, set[str]] = {}  # what each former member may not see
        self.tabs = [Tab(user, project, self.secrets) for user in [owner, *people, people[0]]]
        self.held: list[claims.Claim] = []
        self.words = 0

    def begin(self) -> None:
        """Make cards that tell of each other, so that the first steps matter already."""
        for chance in range(6):
            self.create(chance)
        first, *others = Card.objects.filter(project=self.project).order_by("pk")
        for card in others[:3]:
            cards.queue_card(card, by=self.owner)
        dependencies.set_dependencies(others[3], [first, others[4]], by=self.owner)

    async def step(self, name: str, chance: int) -> None:
        """Do one thing; what the board refuses has no effect."""
        if name in ON_PAGES:
            await getattr(self, name)(chance)
            return
        with suppress(BoardError):
            await run(getattr(self, name), chance)

    def word(self) -> str:
        """Return a new title, which nobody who is no member now may read."""
        self.words += 1
        word = f"word-{self.words:04}-{self.project.key}"
        for hidden in self.secrets.values():
            hidden.add(word)
        return word

    def card(self, chance: int, **having: Any) -> Card:
        rows = list(Card.objects.filter(project=self.project, **having).order_by("pk"))
        if not rows:
            raise BoardError("no such card")
        return Card.objects.select_related("project", "column", "run").get(
            pk=rows[chance % len(rows)].pk
        )

    def create(self, chance: int) -> None:
        files = ["a.py"] if chance % 2 == 0 else []
        cards.create_card(
            self.project, by=self.owner, title=self.word(), checks=["true"], files=files
        )

    def edit(self, chance: int) -> None:
        cards.edit_card(self.card(chance), by=self.owner, title=self.word())

    def move(self, chance: int) -> None:
        columns = list(Column.objects.filter(project=self.project))
        others = list(Card.objects.filter(project=self.project, archived_at__isnull=True))
        above = others[chance // 7 % len(others)] if others else None
        place = Place(columns[chance // 3 % len(columns)], above=above)
        lanes.move_card(self.card(chance), by=self.owner, place=place)

    def archive(self, chance: int) -> None:
        archiving.archive_card(self.card(chance), by=self.owner)

    def restore(self, chance: int) -> None:
        card = self.card(chance, archived_at__isnull=False)
        archiving.restore_archived_card(card, by=self.owner)

    def queue(self, chance: int) -> None:
        cards.queue_card(self.card(chance, status="backlog"), by=self.owner)

    def claim(self, chance: int) -> None:
        claim = claims.claim_next(self.worker.pk, agent=f"agent-{chance % 3}", with_credential=True)
        if claim is None:
            return
        if claim.is_new:
            runs.begin_work(claim.run_id, claim.fence, branch="b", base_sha="0" * 40)
        self.held.append(claim)

    def finish(self, chance: int) -> None:
        claim = self.take_claim(chance)
        changes = {"files": 1, "additions": chance % 9, "deletions": 0}
        runs.finish_run(
            claim.run_id, claim.fence, head_sha="1" * 40, summary="", evidence=[],
            changes=changes, active_seconds=1,
        )  # fmt: skip

    def fail(self, chance: int) -> None:
        claim = self.take_claim(chance)
        runs.fail_run(
            claim.run_id, claim.fence, kind=FailureKind.LOOP, message=self.word(),
            active_seconds=1,
        )  # fmt: skip

    def take_claim(self, chance: int) -> claims.Claim:
        if not self.held:
            raise BoardError("nothing is held")
        return self.held.pop(chance % len(self.held))

    def ask(self, chance: int) -> None:
        claim = self.take_claim(chance)
        approvals.request_approval(claim.run_id, claim.fence, QUESTION, seq=None, active_seconds=1)

    def answer(self, chance: int) -> None:
        open_ones = Approval.objects.select_related("run").filter(
            project=self.project, status=ApprovalStatus.PENDING
        )
        approval = open_ones.first()
        if approval is not None:
            approvals.decide(approval, by=self.owner, role=Role.OWNER, approve=chance % 2 == 0)

    def cancel(self, chance: int) -> None:
        cancels.cancel_card(self.card(chance), by=self.owner)

    def comment(self, chance: int) -> None:
        comments.comment_on_card(self.card(chance), by=self.owner, body=self.word())

    def need(self, chance: int) -> None:
        needed = [self.card(chance // 5), self.card(chance // 11)]
        dependencies.set_dependencies(self.card(chance), needed, by=self.owner)

    def by_hand(self, chance: int) -> None:
        cards.finish_by_hand(self.card(chance, status="backlog"), by=self.owner, to=CardStatus.DONE)

    async def sleep(self, chance: int) -> None:
        await self.tabs[chance % len(self.tabs)].sleep()

    async def wake(self, chance: int) -> None:
        tab = self.tabs[chance % len(self.tabs)]
        await tab.sleep()
        await tab.connect()

    async def wait(self, chance: int) -> None:
        await asyncio.sleep(chance % 50 / 1000)

    async def look(self, chance: int) -> None:
        """Wait until everything so far was sent, seen by the owner, who sees all."""
        owner = self.tabs[0]
        if owner.is_connected:
            await owner.settle()

    async def remove(self, chance: int) -> None:
        person = self.people[chance % len(self.people)]
        rows = Membership.objects.filter(project=self.project, user=person)
        membership = await run(rows.first)
        if membership is not None:
            await run(projects.remove_member, membership, by=self.owner)
            self.secrets[person.pk] = set()

    async def admit(self, chance: int) -> None:
        person = self.people[chance % len(self.people)]
        if self.secrets.pop(person.pk, None) is None:
            return
        await run(self.invite, person)
        for tab in self.tabs:
            if tab.user == person:
                await tab.sleep()
                await tab.load()
                await tab.connect()

    def invite(self, person: User) -> None:
        token = projects.invite(self.project, by=self.owner, email=person.email, role=Role.MEMBER)
        invitation = Invitation.objects.get(token_hash=hash_token(token))
        projects.accept_invitation(invitation, user=person)


async def play(make: Callable[[], World], moves: list[tuple[str, int]]) -> None:
    world = await run(make)
    await run(world.begin)
    try:
        for tab in world.tabs:
            await tab.open()
        for name, chance in moves:
            await world.step(name, chance)
        for tab in world.tabs:
            if tab.user.pk in world.secrets:
                await tab.sleep()
                await tab.connect()
                await until(lambda tab=tab: tab.closed == 4404)  # type: ignore[misc]
            else:
                if not tab.is_connected:
                    await tab.sleep()
                    await tab.connect()
                await tab.resume()
                await tab.settle()
        assert [tab.leaks for tab in world.tabs if tab.leaks] == []
    finally:
        for tab in world.tabs:
            await tab.sleep()
        await run(projects.archive_project, world.project, by=world.owner)


@pytest.mark.timeout(600)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# A card tells of another; a file becomes free; a member goes, misses something, and comes back.
@example(moves=[("by_hand", 0), ("look", 0)], loss=0.0, seed=1)
@example(moves=[("claim", 0), ("wait", 49), ("finish", 0), ("archive", 1)], loss=0.5, seed=2)
@example(
    moves=[("remove", 0), ("edit", 1), ("create", 2), ("look", 0), ("admit", 0), ("edit", 3)],
    loss=0.0,
    seed=3,
)
@given(moves=steps, loss=st.sampled_from([0.0, 0.5, 1.0]), seed=number)
def test_every_open_page_ends_equal_to_a_fresh_one(
    *, alice, bob, vera, worker, monkeypatch, moves, loss, seed
):
    layer = UnreliableLayer(loss=loss, seed=seed)
    monkeypatch.setitem(channel_layers.backends, "default", layer)
    # The same rules, only sooner.
    monkeypatch.setattr(boards, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(boards, "HEARTBEAT_SECONDS", 0.5)

    def make() -> World:
        key = f"P{Project.objects.count()}"
        project = projects.create_project(by=alice, key=key, name=key, repository="/x")
        Project.objects.filter(pk=project.pk).update(state="ready", target_branch="main")
        for user in (bob, vera):
            Membership.objects.create(project=project, user=user, role=Role.MEMBER)
        project.refresh_from_db()
        return World(project, alice, [bob, vera], worker)

    asyncio.run(play(make, moves))
