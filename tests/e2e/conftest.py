"""What all browser tests share: the patience of a busy machine."""

from playwright.sync_api import expect

# A page hears of a change within a tenth of a second; a machine that also runs the other tests may need more.
expect.set_options(timeout=20_000)
