"""The board in a real browser: cards are made, dragged, refused and moved by keys alone."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.browser import Tabs, is_live, sessions
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.one_database, pytest.mark.timeout(180)]

PATIENCE = 15.0  # seconds for the browser of a busy machine

# A session of Alice's, and one board for each test, so that no test waits for another.
WORLD = """
from board.actions import cards, projects
from board.models import Membership, Project, User

alice = User.objects.get(email="alice@example.org")
vera = User.objects.create_user(email="vera@example.org", name="Vera")
for key in ("AA", "BB", "CC", "DD", "EE", "FF", "GG"):
    project = projects.create_project(by=alice, key=key, name="Billing", repository="/nowhere")
    Project.objects.filter(pk=project.pk).update(state="ready", target_branch="main", message="")
    Membership.objects.create(project=project, user=vera, role="viewer")
    for number in range(3):
        cards.create_card(project, by=alice, title=f"Card {number}", checks=["true"])
print(json.dumps({"alice": sign_in(alice), "vera": sign_in(vera)}))
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with Product(tmp_path_factory.mktemp("board"), None, workers=0) as product:
        yield product


@pytest.fixture(scope="module")
def people(product: Product) -> dict[str, str]:
    return sessions(product, WORLD)


@pytest.fixture
def open_page(product: Product, people: dict[str, str], chromium: Browser) -> Iterator["OpenPage"]:
    opener = OpenPage(product, chromium, people)
    yield opener
    opener.close()


class OpenPage(Tabs):
    """Opens boards, wide enough for all lanes, and waits until they are live."""

    def __call__(self, path: str, *, who: str = "alice", width: int = 1800) -> Page:
        page = self.open(path, who=who, width=width)
        is_live(page)
        return page


def lane(page: Page, name: str) -> Locator:
    return page.locator(f'.lane[data-lane="{name}"]')


def card(page: Page, ref: str) -> Locator:
    return page.locator(f'.card[data-ref="{ref}"]')


def drag(page: Page, what: Locator, onto: Locator, *, works: bool = True) -> None:
    """Carry a card over a lane, wait until its place opens there, and let it go."""
    start, end = what.bounding_box(), onto.bounding_box()
    assert start
    assert end
    page.mouse.move(start["x"] + 60, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(start["x"] + 70, start["y"] + 30, steps=4)
    x, y = end["x"] + end["width"] / 2, end["y"] + 70
    page.mouse.move(x, y, steps=12)
    deadline = time.monotonic() + PATIENCE
    # SortableJS looks at a place once, and not while cards make room: a hand that rests is not seen.
    while works and not onto.locator(".card--ghost").count():
        assert time.monotonic() < deadline, "the card does not reach the lane"
        x, y = x + 3, y + 3
        page.mouse.move(x, y, steps=3)
        page.wait_for_timeout(60)
    page.mouse.up()


def test_a_card_is_made_and_opened(open_page: OpenPage) -> None:
    page = open_page("/p/AA/")
    page.keyboard.press("c")
    page.get_by_role("button", name="Add to the backlog").click()
    expect(page.locator('[data-error="title"]')).to_have_text("Give the card a title.")
    page.get_by_label("Title").fill("Export as CSV")
    page.get_by_label("Acceptance checks").fill("pytest")
    page.keyboard.press("Control+Enter")
    made = lane(page, "backlog").locator(".card", has_text="Export as CSV")
    expect(made).to_be_visible()
    expect(lane(page, "backlog").locator(".card").last).to_have_attribute("data-ref", "AA-4")
    made.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/cards/AA-4/$"))
    expect(page.get_by_role("complementary")).to_contain_text("Export as CSV")
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("complementary")).to_contain_text("Export as CSV")


def test_a_draft_survives_a_reload(open_page: OpenPage) -> None:
    page = open_page("/p/BB/cards/new/")
    page.get_by_label("Title").fill("Half a thought")
    expect(page.locator("[data-draft-words]")).to_have_text("Draft kept")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("Half a thought")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_label("Title")).to_have_value("")


def test_a_drag_to_queued_queues(open_page: OpenPage) -> None:
    page, other = open_page("/p/CC/"), open_page("/p/CC/", who="vera")
    drag(page, card(page, "CC-2"), lane(page, "queued"))
    for browser in (page, other):
        expect(lane(browser, "queued").locator('[data-ref="CC-2"]')).to_be_visible()
        expect(lane(browser, "queued").locator("[data-count]")).to_have_text("1")
    expect(card(page, "CC-2")).to_have_attribute("data-status", "queued")


def test_a_refused_drop_goes_back_and_says_why(open_page: OpenPage) -> None:
    page = open_page("/p/DD/")
    drag(page, card(page, "DD-2"), lane(page, "running"))
    expect(page.locator("#toasts")).to_contain_text("A worker takes cards from Queued by itself")
    refs = (
        lane(page, "backlog")
        .locator(".card")
        .evaluate_all("cards => cards.map((card) => card.dataset.ref)")
    )
    assert refs == ["DD-1", "DD-2", "DD-3"]


def test_a_card_is_moved_by_keys_alone(open_page: OpenPage) -> None:
    page = open_page("/p/EE/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(card(page, "EE-2").get_by_role("link")).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("#announcer")).to_contain_text("EE-2 moved to Backlog, position 1 of 3.")
    expect(card(page, "EE-2").get_by_role("link")).to_be_focused()
    page.keyboard.press("Alt+ArrowRight")
    expect(card(page, "EE-2")).to_have_attribute("data-status", "queued")
    expect(card(page, "EE-2").get_by_role("link")).to_be_focused()
    page.keyboard.press("m")
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.get_by_role("menuitem", name="Backlog")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page, "EE-2")).to_have_attribute("data-status", "backlog")
    page.keyboard.press("q")
    expect(card(page, "EE-2")).to_have_attribute("data-status", "queued")


def test_styles_and_scripts_are_asked_for_once(open_page: OpenPage, product: Product) -> None:
    page = open_page("/p/AA/")
    asked = """performance.getEntriesByType("resource")
        .filter((file) => file.name.includes("/static/") && file.transferSize > 0).length"""
    assert page.evaluate(asked) > 20
    page.goto(f"{product.url}/p/BB/")
    is_live(page)
    assert page.evaluate(asked) == 0


def test_the_filter_hides_what_does_not_fit(open_page: OpenPage) -> None:
    page = open_page("/p/FF/?q=ff-1")
    expect(page.locator(".card:visible")).to_have_count(1)
    expect(page.locator("[data-filter-count]")).to_have_text("1 of 3 cards")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator(".card:visible")).to_have_count(3)
    assert "q=" not in page.url


def test_a_viewer_has_nothing_to_press(open_page: OpenPage) -> None:
    page = open_page("/cards/GG-1/", who="vera")
    for name in ("New card", "Queue", "Edit", "Comment"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    drag(page, card(page, "GG-2"), lane(page, "queued"), works=False)
    expect(lane(page, "queued").locator(".card")).to_have_count(0)


def test_a_phone_scrolls_nothing_sideways_but_the_board(open_page: OpenPage) -> None:
    for path in ("/p/GG/", "/cards/GG-1/", "/cards/GG-1/edit/", "/cards/GG-1/history/"):
        page = open_page(path, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
