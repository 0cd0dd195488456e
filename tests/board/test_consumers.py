"""Who may open a socket, what it hears, and when it is closed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from channels.testing import WebsocketCommunicator
from django.contrib.sessions.models import Session

from board.actions import accounts, archiving, cards, comments, logs, projects
from board.actions.approvals import Question, request_approval
from board.models import LogItem, Membership, Project, Run, User
from board.states import Role
from tests.board.browsers import ORIGIN, Browser, open_socket, run, sign_in, until

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = Question(
    call_id="call_1",
    tool="bash",
    input={"command": "rm -rf build"},
    rule="ask",
    reasons=["It deletes files."],
    digest="0" * 64,
    facts={},
    effects=[],
    sandbox="bubblewrap",
)


@pytest_asyncio.fixture
async def tab(project: Project) -> AsyncIterator[Callable[..., Any]]:
    """Open tabs: `await tab(user)`."""
    opened: list[Browser] = []

    async def open_tab(user: User) -> Browser:
        browser = Browser(user, project)
        opened.append(browser)
        return await browser.open()

    yield open_tab
    for browser in opened:
        await browser.sleep()


async def close_code(socket: WebsocketCommunicator) -> int:
    """Return the code with which an accepted socket is closed."""
    accepted, _ = await socket.connect(timeout=5)
    assert accepted
    while True:
        message = await socket.receive_output(timeout=5)
        if message["type"] == "websocket.close":
            return int(message["code"])
        assert json.loads(message["text"])["type"] == "bye"


async def test_a_member_is_greeted_with_the_place_of_the_board(tab, project, vera):
    browser = await tab(vera)
    hello = browser.frames[0]
    await run(project.refresh_from_db)
    assert hello["type"] == "hello"
    assert (hello["board"], hello["seq"], hello["epoch"]) == ("BIL", project.seq, project.epoch)


async def test_a_stranger_is_told_that_there_is_nothing(project, mallory):
    assert await close_code(open_socket("BIL", session=await run(sign_in, mallory))) == 4404


async def test_an_unknown_board_looks_as_a_foreign_one(project, mallory):
    assert await close_code(open_socket("NONE", session=await run(sign_in, mallory))) == 4404


async def test_nobody_is_let_in_without_signing_in(project):
    assert await close_code(open_socket("BIL")) == 4401


async def test_an_old_session_lets_nobody_in(project, alice):
    session = await run(sign_in, alice)
    await run(Session.objects.all().delete)
    assert await close_code(open_socket("BIL", session=session)) == 4401


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "http://127.0.0.1:9999",
        "https://127.0.0.1:8400",
        "http://sub.127.0.0.1:8400",
        "http://127.0.0.1.evil.example:8400",
    ],
)
async def test_a_page_of_another_origin_gets_no_socket(project, alice, origin):
    session = await run(sign_in, alice)
    accepted, _ = await open_socket("BIL", session=session, origin=origin).connect(timeout=5)
    assert not accepted


@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:8400"])
async def test_our_own_pages_get_a_socket(project, alice, origin):
    socket = open_socket("BIL", session=await run(sign_in, alice), origin=origin)
    accepted, _ = await socket.connect(timeout=5)
    assert accepted
    await socket.disconnect(timeout=5)


async def test_a_change_is_seen_by_everyone_who_looks(tab, new_card, alice, bob, vera):
    tabs = [await tab(user) for user in (alice, bob, vera)]
    card = await run(new_card, "Seen by all")
    for browser in tabs:
        await browser.settle()
        assert card.pk in browser.cards


async def test_an_event_says_who_did_it_and_with_which_operation(tab, project, alice):
    browser = await tab(alice)
    await run(cards.create_card, project, by=alice, title="Mine", op_id="op-1")
    await until(lambda: browser.of("ev"))
    (event,) = browser.of("ev")
    assert (event["actor"], event["user"], event["op_id"]) == ("Alice", alice.pk, "op-1")
    kinds = [op["op"] for op in event["ops"]]
    assert {"put", "card", "count", "toast"} <= set(kinds)


async def test_a_card_that_is_archived_leaves_the_board(tab, project, new_card, alice):
    card = await run(new_card, "Goes away")
    browser = await tab(alice)
    assert card.pk in browser.cards
    await run(archiving.archive_card, card, by=alice)
    await until(lambda: card.pk not in browser.cards)
    await browser.settle()


async def test_a_removed_member_hears_nothing_more(tab, project, new_card, alice, bob):
    browser = await tab(bob)
    membership = await run(Membership.objects.get, project=project, user=bob)
    heard = len(browser.of("ev", "batch"))
    await run(projects.remove_member, membership, by=alice)
    await run(new_card, "A secret")
    await until(lambda: browser.closed, seconds=2)
    assert browser.closed == 4403
    assert len(browser.of("ev", "batch")) == heard
    assert "A secret" not in json.dumps(browser.frames)


async def test_a_removed_member_is_found_even_if_no_doorbell_rings(tab, project, bob):
    browser = await tab(bob)
    await run(Membership.objects.filter(project=project, user=bob).delete)
    await until(lambda: browser.closed == 4403, seconds=3)


async def test_an_archived_project_closes_its_sockets(tab, project, alice, bob):
    browser = await tab(bob)
    await run(projects.archive_project, project, by=alice)
    await until(lambda: browser.closed == 4403, seconds=3)


async def test_a_person_who_signs_out_elsewhere_is_cut_off_when_the_bell_rings(tab, bob):
    browser = await tab(bob)
    await run(Session.objects.all().delete)
    token = await run(accounts.create_token, bob, name="any")
    assert token
    await run(accounts.revoke_token, bob, 1)  # rings for Bob
    await until(lambda: browser.closed == 4401, seconds=2)


async def test_rights_are_looked_up_on_every_resume(tab, bob):
    browser = await tab(bob)
    await run(Session.objects.all().delete)
    await browser.resume()
    await until(lambda: browser.closed == 4401, seconds=2)


async def test_a_changed_role_is_told_to_the_page(tab, project, alice, bob):
    browser = await tab(bob)
    membership = await run(Membership.objects.get, project=project, user=bob)
    await run(projects.set_role, membership, by=alice, role=Role.VIEWER)
    await until(lambda: {"type": "you", "role": "viewer"} in browser.frames)


async def test_a_page_that_slept_gets_one_batch_with_the_present_state(tab, project, new_card, bob):
    browser = await tab(bob)
    await browser.sleep()
    made = [await run(new_card, f"Card {number}") for number in range(5)]
    for number in range(20):
        await run(cards.edit_card, made[number % 5], by=bob, title=f"Title {number}")
    browser.frames.clear()
    await browser.connect()
    await browser.settle()
    batch = browser.of("batch")[0]
    puts = [op for op in batch["ops"] if op["op"] == "put"]
    assert len(puts) == 5
    assert browser.reloads == 1


async def test_a_page_that_missed_too_much_reads_itself_again(tab, project, new_card, bob):
    browser = await tab(bob)
    await browser.sleep()
    await run(new_card, "Unseen")
    await run(lambda: Project.objects.filter(pk=project.pk).update(seq=browser.applied + 600))
    await browser.connect()
    await until(lambda: browser.of("resync"))
    await browser.settle()
    assert browser.reloads == 2


async def test_a_restored_database_makes_every_page_read_itself_again(tab, project, bob):
    browser = await tab(bob)
    await run(lambda: Project.objects.filter(pk=project.pk).update(epoch=2))
    await until(lambda: browser.reloads == 2)
    assert browser.epoch == 2


async def test_a_frame_that_is_too_large_ends_the_socket(tab, bob):
    browser = await tab(bob)
    await browser.send("pong", filler="x" * 70_000)
    await until(lambda: browser.closed == 1009)


async def test_a_flood_of_commands_ends_the_socket(tab, bob):
    browser = await tab(bob)
    for _ in range(60):
        await browser.send("pong")
    await until(lambda: browser.closed == 4429)


@pytest.mark.parametrize(
    "text",
    [" ", "[]", "null", "{", '{"type":"_end"}', '{"type":"resume"}', '{"type":"log.sub","run":"x"}',
     '{"type":"resume","epoch":1,"seq":[]}', '{"type":"log.page","run":1e999,"before":1}',
     "[" * 5000],
)  # fmt: skip
async def test_a_command_that_makes_no_sense_is_refused_without_harm(tab, new_card, bob, text):
    browser = await tab(bob)
    await browser.send_text(text)
    await until(lambda: browser.of("error"))
    await run(new_card, "Still heard")
    await browser.settle()


async def test_a_question_is_counted_for_each_person_over_all_projects(tab, running, alice, vera):
    browser = await tab(vera)
    await until(lambda: browser.of("you"))
    assert browser.of("you")[-1]["approvals"] == 0
    await run(request_approval, running.pk, running.fence, QUESTION, seq=None, active_seconds=1.0)
    await until(lambda: browser.of("you")[-1]["approvals"] == 1)
    assert "rm -rf build" in (browser.cord or "")


async def test_what_a_run_does_now_is_told_without_an_event(tab, running: Run, bob):
    browser = await tab(bob)
    before = browser.applied
    await run(lambda: Run.objects.filter(pk=running.pk).update(activity="pytest -q", steps_done=3))
    await until(lambda: any(tick["activity"] == "pytest -q" for tick in ticks(browser)))
    tick = ticks(browser)[-1]
    assert (tick["card"], tick["step"]) == (running.card_id, "3 steps")
    assert browser.applied == before


def ticks(browser: Browser) -> list[dict[str, Any]]:
    return [run for frame in browser.of("tick") for run in frame["runs"]]


async def test_a_log_is_sent_from_where_the_page_ends(tab, running: Run, bob):
    await run(write, running, range(3))
    browser = await tab(bob)
    first = await run(lambda: LogItem.objects.filter(run=running)[0].seq)
    await browser.send("log.sub", run=running.pk, off=first)
    await until(lambda: browser.of("log"))
    await run(write, running, range(3, 6))
    await until(lambda: heard(browser) == list(range(1, 6)))
    seqs = [(frame["first"], frame["off"]) for frame in browser.of("log")]
    assert all(first == last + 1 for (_, last), (first, _) in pairwise(seqs))


async def test_the_head_of_a_run_comes_with_its_log(tab, running: Run, bob):
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    await until(lambda: browser.of("head"))
    assert 'id="run-head"' in browser.of("head")[0]["html"]


async def test_a_log_stops_until_it_is_acknowledged(tab, running: Run, bob):
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    text = "x" * 40_000
    for _ in range(20):
        await run(logs.append_log, running.pk, [("note", {"text": text})])
    await until(lambda: sum(len(json.dumps(f)) for f in browser.of("log")) > 256 * 1024)
    await asyncio.sleep(0)
    credit = sum(len(json.dumps(frame)) for frame in browser.of("log"))
    assert credit < 256 * 1024 + 150_000
    async with asyncio.timeout(8):
        last = await run(lambda: Run.objects.get(pk=running.pk).log_seq)
        while browser.of("log")[-1]["off"] < last:
            await browser.send("ack", run=running.pk, off=browser.of("log")[-1]["off"])
            await asyncio.sleep(0.1)


async def test_a_log_that_is_no_longer_wanted_is_not_sent(tab, running: Run, bob):
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    await until(lambda: browser.of("head"))
    await browser.send("log.unsub", run=running.pk)
    await browser.send("log.page", run=running.pk, before=1)  # answered after the unsub
    await until(lambda: browser.of("log.page"))
    seen = len(browser.of("log"))
    await run(write, running, range(3))
    await run(comments.comment_on_card, await run(lambda: running.card), by=bob, body="After it")
    await browser.settle()
    assert len(browser.of("log")) == seen


async def test_a_browser_far_behind_is_told_to_read_the_page_again(
    tab, running: Run, bob, monkeypatch
):
    monkeypatch.setattr("board.feeds.logs.SKIP_ITEMS", 10)
    await run(write, running, range(30))
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    await until(lambda: browser.of("log.gap"))
    last = await run(lambda: Run.objects.get(pk=running.pk).log_seq)
    assert browser.of("log.gap")[0]["off"] == last
    assert browser.of("log") == []


async def test_earlier_pages_of_a_log_can_be_asked_for(tab, running: Run, bob):
    await run(write, running, range(250))
    browser = await tab(bob)
    await browser.send("log.page", run=running.pk, before=240)
    await until(lambda: browser.of("log.page"))
    (page,) = browser.of("log.page")
    assert page["first"] == 40
    assert "line 238" in json.dumps(page["ops"])


async def test_the_log_of_another_project_does_not_exist(tab, running: Run, alice, mallory):
    other = await run(
        projects.create_project,
        by=mallory,
        key="OTH",
        name="Other",
        repository="https://example.org/x.git",
    )
    browser = Browser(mallory, other)
    await browser.open()
    for command in ("log.sub", "log.page"):
        await browser.send(command, run=running.pk, off=0, before=100)
    await until(lambda: len(browser.of("error")) == 2)
    assert browser.of("log", "log.page", "head") == []
    await browser.sleep()


async def test_a_log_ends_with_the_membership(tab, running: Run, project, alice, bob):
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    await until(lambda: browser.of("head"))
    membership = await run(Membership.objects.get, project=project, user=bob)
    await run(projects.remove_member, membership, by=alice)
    await until(lambda: browser.closed == 4403, seconds=2)
    await run(logs.append_log, running.pk, [("note", {"text": "a secret line"})])
    assert "a secret line" not in json.dumps(browser.frames)


async def test_nothing_is_left_when_the_last_page_is_closed(tab, running: Run, bob):
    browser = await tab(bob)
    await browser.send("log.sub", run=running.pk, off=0)
    await until(lambda: browser.of("head"))
    await browser.sleep()

    def leftovers() -> list[str]:
        mine = ("BoardFeed", "LogFeed", "LogFollower", "Doorbells", "People", "ProjectConsumer")
        names = [str(getattr(task.get_coro(), "__qualname__", "")) for task in asyncio.all_tasks()]
        return [name for name in names if name.startswith(mine)]

    await until(lambda: not leftovers())


def write(run: Run, numbers: range) -> None:
    items = [("note", {"text": f"line {number}"}) for number in numbers]
    logs.append_log(run.pk, items)


def heard(browser: Browser) -> list[int]:
    text = json.dumps([op for frame in browser.of("log") for op in frame["ops"]])
    return [number for number in range(1000) if f"line {number}<" in text]
