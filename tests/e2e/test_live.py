"""The live board in a real browser, on the real server: what happens is seen, and what was missed is made up."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect

from tests.e2e.browser import sessions, wait_until
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

# People, a project that is fetched and sessions, made where the product's own settings are.
WORLD = """
from board.actions import cards, projects
from board.models import Membership, Project, User

alice = User.objects.get(email="alice@example.org")
bob = User.objects.create_user(email="bob@example.org", name="Bob")
project = projects.create_project(by=alice, key="BIL", name="Billing", repository="/nowhere")
Project.objects.filter(pk=project.pk).update(state="ready", target_branch="main", message="")
Membership.objects.create(project=project, user=bob, role="member")
for number in range(6):
    cards.create_card(project, by=alice, title=f"Card {number}", checks=["true"])
print(json.dumps({"alice": sign_in(alice), "bob": sign_in(bob)}))
"""
RUN = """
from board.actions import cards, claims, logs, runs, workers
from board.models import Project, User, Worker
alice = User.objects.get(email="alice@example.org")
worker = Worker(host="here", pid=1, version="0", slots=4, sandbox="bubblewrap")
workers.register_worker(worker)
card = cards.create_card(Project.objects.get(key="BIL"), by=alice, title="Long", checks=["true"],
    priority=3)
cards.queue_card(card, by=alice)
claim = claims.claim_next(worker.pk, agent="agent-1", with_credential=True)
runs.begin_work(claim.run_id, claim.fence, branch="b", base_sha="0" * 40)
logs.append_log(claim.run_id, [("call", {"call": "c1", "tool": "bash", "title": "Build",
    "input": {"command": "make"}})])
print(claim.run_id, card.ref)
"""


class World:
    """A product with a project, two people and their browsers."""

    def __init__(self, product: Product, browser: Browser, sessions: dict[str, str]) -> None:
        self.product, self._browser, self._sessions = product, browser, sessions
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def tab(self, name: str, path: str = "/p/BIL/", *, wait: bool = True) -> Page:
        """Open a page in a browser of this person."""
        context = self._browser.new_context(viewport={"width": 1440, "height": 900})
        self._contexts.append(context)
        cookie = {
            "name": "pullcord_session",
            "value": self._sessions[name],
            "url": self.product.url,
        }
        context.add_cookies([cookie])  # type: ignore[list-item]  # a TypedDict of its own
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"{error} {error.stack}"))
        page.goto(self.product.url + path)
        if wait:
            expect(page.locator(".live")).to_have_text("Live", timeout=15_000)
        return page

    def close_tabs(self) -> None:
        """Close all pages: an open one keeps its server and its processor busy."""
        while self._contexts:
            self._contexts.pop().close()

    def python(self, code: str) -> str:
        """Run code of the product's own and return what it prints."""
        return self.product.manage("shell", "--no-imports", "-c", code).strip()

    def cards(self, page: Page) -> Any:
        """Return what the page shows, column by column."""
        return page.evaluate(
            """() => [...document.querySelectorAll(".lane")].map((lane) => [
                 lane.dataset.column, lane.querySelector("[data-count]").textContent.trim(),
                 [...lane.querySelectorAll(".card")].map((card) => [
                   card.id, card.dataset.rev, card.dataset.rank, card.dataset.status, card.dataset.column,
                   card.querySelector(".card__title").textContent])])"""
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[World]:
    with Product(tmp_path_factory.mktemp("live"), None, workers=0) as product:
        yield World(product, chromium, sessions(product, WORLD))


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    shared.problems.clear()
    yield shared
    shared.close_tabs()
    assert shared.problems == []


def edits(ref_number: int, count: int) -> str:
    return (
        "from board.actions import cards; from board.models import Card, User\n"
        f"for n in range({count}):\n"
        f"    card = Card.objects.get(number={ref_number} + n % 3)\n"
        "    cards.edit_card(card, by=User.objects.get(name='Bob'), title=f'Edited {n}')\n"
    )


def test_two_browsers_see_what_the_other_does(world: World):
    one, other = world.tab("alice"), world.tab("bob")
    made = world.product.card("BIL", "Seen by both")
    for page in (one, other):
        expect(page.locator(f'[data-ref="{made["ref"]}"]')).to_contain_text("Seen by both")
    world.product.queue(made["ref"])
    for page in (one, other):
        queued = page.locator('.lane[data-lane="queued"] .card', has_text="Seen by both")
        expect(queued).to_be_visible()
        expect(page.locator('.lane[data-lane="queued"] [data-count]')).to_have_text("1")
    assert world.cards(one) == world.cards(other)


def test_a_page_that_sleeps_through_300_events_wakes_up_as_a_fresh_one(world: World):
    page = world.tab("alice")
    page.evaluate("window.untouched = true")
    page.context.set_offline(True)
    world.python(edits(2, 300))
    page.context.set_offline(False)
    expect(page.locator(".live")).to_have_text("Live", timeout=40_000)
    expect(page.locator('[data-ref="BIL-2"]')).to_contain_text("Edited 297", timeout=10_000)
    fresh = world.tab("alice")
    assert world.cards(page) == world.cards(fresh)
    assert page.evaluate("window.untouched")


def test_the_keyboard_stays_on_a_card_that_others_change(world: World):
    page = world.tab("alice")
    page.locator('[data-ref="BIL-3"] .card__title a').focus()
    world.python(edits(3, 1))
    expect(page.locator('[data-ref="BIL-3"]')).to_contain_text("Edited 0")
    assert page.evaluate("document.activeElement.closest('.card').dataset.ref") == "BIL-3"


def test_a_dead_server_is_admitted_and_a_new_one_is_found(world: World):
    page = world.tab("alice")
    world.product.kill("web")
    expect(page.locator(".live")).to_have_text("Reconnecting…", timeout=8_000)
    assert page.evaluate("document.documentElement.dataset.live") == "joining"
    world.python(edits(4, 3))
    world.product.start("web")
    expect(page.locator(".live")).to_have_text("Live", timeout=40_000)
    expect(page.locator('[data-ref="BIL-6"]')).to_contain_text("Edited 2")


def test_an_hour_without_the_server_says_since_when(world: World):
    page = world.tab("alice")
    page.clock.install()
    page.reload()
    expect(page.locator(".live")).to_have_text("Live", timeout=15_000)
    page.context.set_offline(True)
    world.product.kill("web")
    try:
        # The minute counts from when the page has noticed.
        expect(page.locator(".live")).to_have_text("Reconnecting…")
        page.clock.run_for(65_000)
        expect(page.locator(".live")).to_contain_text("Not live · last update")
        expect(page.get_by_role("link", name="retry")).to_be_visible()
    finally:
        page.context.set_offline(False)
        world.product.start("web")
        world.product.until(lambda: world.product.get("/projects") is not None)


def test_a_dead_doorbell_is_admitted_while_the_board_stays_true(world: World):
    page = world.tab("alice")
    world.product.kill("valkey")
    expect(page.locator(".live")).to_have_text("Not live · slow updates", timeout=10_000)
    world.python(edits(2, 4))
    expect(page.locator('[data-ref="BIL-2"]')).to_contain_text("Edited 3")
    world.product.start("valkey")
    expect(page.locator(".live")).to_have_text("Live", timeout=20_000)


def test_where_no_socket_opens_the_page_asks(world: World):
    page = world.tab("alice", wait=False)
    page.route_web_socket("**/ws/**", lambda socket: socket.close())
    page.reload()
    expect(page.locator(".live")).to_have_text("Not live · slow updates", timeout=20_000)
    made = world.product.card("BIL", "Told by the long poll")
    expect(page.locator(f'[data-ref="{made["ref"]}"]')).to_be_visible(timeout=5_000)


def test_ops_wait_while_a_card_is_dragged(world: World):
    page = world.tab("alice")
    column = page.locator('[data-ref="BIL-2"]').get_attribute("data-column")
    tell = "(detail) => document.dispatchEvent(new CustomEvent('pullcord:dragging', { detail }))"
    page.evaluate(tell, {"columns": [column]})
    made = world.product.card("BIL", "Made during a drag")
    seq = "Number(document.querySelector('[data-board]').dataset.seq)"
    last = world.product.get("/events?project=BIL&after=0")[-1]["seq"]
    wait_until(page, f"{seq} >= {last}")  # the page has heard of it
    card = page.locator(f'[data-ref="{made["ref"]}"]')
    expect(card).to_have_count(0)
    page.evaluate("document.dispatchEvent(new CustomEvent('pullcord:dropped'))")
    expect(card).to_be_visible()


def test_who_is_removed_loses_the_board_from_the_screen(world: World):
    page = world.tab("bob")
    world.python(
        "from board.actions import projects; from board.models import Membership, User\n"
        "projects.remove_member(Membership.objects.get(user__name='Bob'),"
        " by=User.objects.get(email='alice@example.org'))"
    )
    expect(page.locator(".card")).to_have_count(0, timeout=8_000)
    world.python(
        "from board.models import Membership, Project, User\n"
        "Membership.objects.create(project=Project.objects.get(key='BIL'),"
        " user=User.objects.get(name='Bob'), role='member')"
    )


def lines(run: str, first: int, count: int) -> str:
    return (
        "from board.actions import logs\n"
        f"for start in range({first}, {first + count}, 100):\n"
        "    text = ''.join(f'line {n}\\n' for n in range(start, start + 100))\n"
        f"    logs.append_log({run}, [('output', {{'call': 'c1', 'text': text}})])\n"
    )


@pytest.fixture
def log_page(world: World) -> Callable[[], tuple[Page, str]]:
    def open_log() -> tuple[Page, str]:
        run, ref = world.python(RUN).split()
        page = world.tab("alice", f"/cards/{ref}/run/")
        return page, run

    return open_log


def test_a_log_grows_in_chunks_and_forgets_its_oldest_lines(world: World, log_page):
    page, run = log_page()
    world.python(lines(run, 0, 1000))
    out = page.locator('[data-key="cc1-out"]')
    expect(out.locator(".term__line").last).to_have_text("line 999")
    assert out.locator(".log__chunk").count() == 5
    world.python(lines(run, 1000, 6000))
    expect(out.locator(".term__line").last).to_have_text("line 6999", timeout=60_000)
    assert out.locator(".term__line").count() <= 5000
    texts = out.locator(".term__line").all_text_contents()
    numbers = [int(text.removeprefix("line ")) for text in texts]
    assert numbers == list(range(numbers[0], 7000))


def test_a_log_is_shown_where_no_frame_is_drawn(world: World, log_page):
    page, run = log_page()
    page.add_init_script(
        "window.requestAnimationFrame = () => 1; window.cancelAnimationFrame = () => {};"
    )
    page.reload()
    expect(page.locator(".live")).to_have_text("Live")
    world.python(lines(run, 0, 300))
    expect(page.locator('[data-key="cc1-out"] .term__line').last).to_have_text("line 299")


def test_a_log_of_many_small_pieces_does_not_cost_the_connection(world: World, log_page):
    page, run = log_page()
    acks: list[object] = []
    sockets: list[WebSocket] = []

    def note(socket: WebSocket) -> None:
        sockets.append(socket)
        socket.on("framesent", lambda text: acks.append(text) if '"ack"' in text else None)

    page.on("websocket", note)
    page.reload()
    expect(page.locator(".live")).to_have_text("Live")
    world.python(
        "from board.actions import logs; import time\n"
        "for n in range(200):\n"
        f"    logs.append_log({run}, [('output', {{'call': 'c1', 'text': f'line {{n}}\\n'}})])\n"
        "    time.sleep(0.01)\n"
    )
    expect(page.locator('[data-key="cc1-out"] .term__line').last).to_have_text("line 199")
    assert len(sockets) == 1
    assert acks
