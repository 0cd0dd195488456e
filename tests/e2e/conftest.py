"""What all browser tests share: the browser, and the patience of a busy machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

# The same engine twice. The first lacks what only a window needs, starts in a quarter of the time and
# opens a page with a third of the work.
BARE, WHOLE = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"

# A page hears of a change within a tenth of a second; a machine that also runs the other tests may need more.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright, BARE if Path(BARE).exists() else WHOLE) as browser:
        yield browser


@pytest.fixture
def whole_chromium(playwright: Playwright) -> Iterator[Browser]:
    """For what the bare one says no to whatever it is told: it has no place for a notification."""
    with launched(playwright, WHOLE) as browser:
        yield browser


@contextmanager
def launched(playwright: Playwright, path: str) -> Iterator[Browser]:
    """Start a browser without a window, and end it."""
    browser = playwright.chromium.launch(
        executable_path=path,
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            # A pulse that is painted by the processor takes the time of what is tested.
            "--force-prefers-reduced-motion",
        ],
    )
    try:
        yield browser
    finally:
        browser.close()
