"""What all browser tests share: the browser, and the patience of a busy machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

# The same engine twice. The first lacks what only a window needs, starts in a quarter of the time and
# opens a page with a third of the work.
BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")

# A page hears of a change within a tenth of a second; a machine that also runs the other tests may need more.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next((path for path in BROWSERS if Path(path).exists()), BROWSERS[0]),
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                # A pulse that is painted by the processor takes the time of what is tested.
                "--force-prefers-reduced-motion",
            ],
        )
        yield browser
        browser.close()
