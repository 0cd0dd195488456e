"""A card's whole way in a real browser with a real agent: by keys alone, and each of its screens looked at."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import LOOKS, Tabs, faults, is_live, sessions
from tests.messages_script import call, report, say
from tests.product import Product, git, make_repository, running_product

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.timeout(240)]

WORLD = """
from board.models import User
print(json.dumps({"alice": sign_in(User.objects.get(email="alice@example.org"))}))
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("cards")
    # Each card has files of its own: what one merges is no news to the other, whichever comes first.
    files = {
        "old/a.txt": "x\n",
        "notes.md": "# Notes\n",
        "older/a.txt": "x\n",
        "plan.md": "# Plan\n",
    }
    origin = make_repository(folder / "origin.git", files)
    with running_product(folder) as (product, api):
        for title, file, word, gone in (
            ("By keys", "notes.md", "Notes", "old"),
            ("To look at", "plan.md", "Plan", "older"),
        ):
            api.script(
                title,
                [
                    say("I tidy up.").call("edit_file", path=file, old=word, new="Tidy"),
                    call("bash", command=f"rm -r {gone}"),
                    report("done", "The old folder is gone."),
                ],
            )
        assert product.project("BIL", origin)["state"] == "ready"
        yield product


@pytest.fixture(scope="module")
def people(product: Product) -> dict[str, str]:
    return sessions(product, WORLD)


@pytest.fixture
def tabs(product: Product, people: dict[str, str], chromium: Browser) -> Iterator[Tabs]:
    opened = Tabs(product, chromium, people)
    yield opened
    opened.close()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the button called `name` has the focus, as a person without a mouse does."""
    button = page.get_by_role("button", name=name)
    for _ in range(60):
        if button.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {name}")


def test_a_card_is_made_moved_queued_approved_and_merged_by_keys_alone(
    product: Product, tabs: Tabs
) -> None:
    page = tabs.open("/p/BIL/")
    is_live(page)
    press(page, "c")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("By keys")
    press(page, "Tab", "Tab")
    expect(page.get_by_label("Acceptance checks")).to_be_focused()
    page.keyboard.type("test ! -e old")
    press(page, "Control+Enter")
    made = page.locator(".card", has_text="By keys")
    expect(made).to_have_attribute("data-status", "backlog")
    ref = str(made.get_attribute("data-ref"))
    press(page, "Escape")

    expect(page.get_by_role("complementary")).to_have_count(0)
    while not made.get_by_role("link").evaluate("link => link === document.activeElement"):
        press(page, "ArrowDown")
    press(page, "m", "Home")
    expect(page.get_by_role("menuitem", name="Backlog")).to_be_focused()
    press(page, "Escape")
    expect(made.get_by_role("link")).to_be_focused()
    press(page, "q")

    expect(page.locator(".ask-row", has_text=ref)).to_be_visible()
    press(page, "w")
    expect(page.locator(".ask-row", has_text=ref)).to_be_focused()
    press(page, "a")
    expect(made).to_have_attribute("data-status", "review")
    while not made.get_by_role("link").evaluate("link => link === document.activeElement"):
        press(
            page, "ArrowDown" if page.evaluate("document.activeElement === document.body") else "j"
        )
    press(page, "Enter")
    expect(page.get_by_role("complementary")).to_contain_text("By keys")
    tab_to(page, "Merge into main")
    press(page, "Enter")
    expect(made).to_have_attribute("data-status", "done")
    assert "# Tidy" in git("show", "main:notes.md", folder=product.data.parent / "origin.git")


@pytest.fixture(scope="module")
def reviewed(product: Product) -> str:
    """A card in review whose run has asked, been answered, and changed files."""
    ref = str(product.card("BIL", "To look at", checks=["test -e notes.md"])["ref"])
    product.queue(ref)
    question = product.until(
        lambda: next(
            (row for row in product.get("/approvals?status=pending") if row["card"] == ref), None
        )
    )
    product.decide(question["id"])
    product.wait_for_card(ref, "review")
    product.post(f"/cards/{product.card('BIL', 'Put away')['ref']}/archive")
    return ref


@pytest.mark.one_database
@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_screen_of_a_card_is_accessible(
    tabs: Tabs, product: Product, reviewed: str, *, width: int, height: int, scheme: str
) -> None:
    found = {}
    page = tabs.open("/p/BIL/", width=width, height=height, scheme=scheme)
    for path in (
        "/p/BIL/",
        "/p/BIL/cards/new/",
        "/p/BIL/archive/",
        f"/cards/{reviewed}/",
        f"/cards/{reviewed}/edit/",
        f"/cards/{reviewed}/run/",
        f"/cards/{reviewed}/changes/",
        f"/cards/{reviewed}/history/",
    ):
        page.goto(product.url + path)
        if path != "/p/BIL/archive/":
            is_live(page)
        found[path] = faults(page)
    assert {where: what for where, what in found.items() if what} == {}


@pytest.mark.one_database
def test_a_card_opened_on_the_board_brings_its_styles(tabs: Tabs, reviewed: str) -> None:
    page = tabs.open("/p/BIL/")
    is_live(page)
    assert page.locator('link[href*="log"], link[href*="diff"]').count() == 0
    page.locator(f'.card[data-ref="{reviewed}"]').get_by_role("link").click()
    page.get_by_role("link", name="Changes").click()
    row = page.locator(".diff__rows").first
    expect(row).to_be_visible()
    assert page.locator('link[href*="log"], link[href*="diff"]').count() == 2
    whole = tabs.open(f"/cards/{reviewed}/changes/").locator(".diff__rows").first
    look = "element => { const s = getComputedStyle(element); return [s.fontFamily, s.fontSize, s.borderCollapse]; }"
    assert row.evaluate(look) == whole.evaluate(look)
