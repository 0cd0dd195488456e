"""What all browser tests share: the browser, and the patience of a busy machine."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

# A page hears of a change within a tenth of a second; a machine that also runs the other tests may need more.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
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
