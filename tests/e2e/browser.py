"""What the browser tests share: sessions of people, tabs that note every complaint, and axe-core."""

import json
import time
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.product import ROOT, Product

AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Wide and narrow differ in layout, light and dark in colour: two walks see all four.
LOOKS = [(1440, 900, "light"), (390, 844, "dark")]

# For the product's own shell: `sign_in(user)` makes a session and returns its key.
SIGN_IN = """
import json
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

def sign_in(user):
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session.session_key
"""


class Tabs:
    """Opens pages for people whose sessions are known, and keeps what their consoles complain of."""

    def __init__(self, product: Product, browser: Browser, sessions: dict[str, str]) -> None:
        self._product, self._browser, self._sessions = product, browser, sessions
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def open(
        self,
        path: str,
        *,
        who: str = "alice",
        width: int = 1440,
        height: int = 900,
        scheme: Any = "light",
    ) -> Page:
        """Open a page of the product in a browser of its own."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self._contexts.append(context)
        cookie = {
            "name": "pullcord_session",
            "value": self._sessions[who],
            "url": self._product.url,
        }
        context.add_cookies([cookie])  # type: ignore[list-item]  # a TypedDict of its own
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"{error} {error.stack}"))
        page.on("console", self._hear)
        page.goto(self._product.url + path)
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        # A refusal is an answer of ours with its own status; Chromium lists every one of those.
        if message.type in {"error", "warning"} and "status of 4" not in message.text:
            self.problems.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        """Close all; fails if a page has complained."""
        for context in self._contexts:
            context.close()
        assert self.problems == []


def is_live(page: Page) -> None:
    """Wait until the page hears of what happens."""
    expect(page.locator(".live")).to_have_text("Live")


def wait_until(page: Page, condition: str, *, seconds: float = 20.0) -> None:
    """Wait until a script's expression is true. Playwright's own wait needs `eval`, which our pages forbid."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"waited in vain for {condition}"
        page.wait_for_timeout(50)


def sessions(product: Product, world: str) -> dict[str, str]:
    """Run `world` with `sign_in` in the product's shell; it prints names and their sessions as JSON."""
    people: dict[str, str] = json.loads(
        product.manage("shell", "--no-imports", "-c", SIGN_IN + world)
    )
    return people


def faults(page: Page) -> list[str]:
    """Return what axe-core finds, and whether the page scrolls sideways."""
    page.evaluate((ROOT / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("tags => axe.run({runOnly: tags, resultTypes: ['violations']})", AXE_TAGS)
    width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    sideways = [f"scrolls sideways by {width}"] if width > 0 else []
    return sideways + [
        f"{fault['id']}: {node['html'][:160]}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]
