"""The settings of the tests: the product's own, with a folder and a key that a test run throws away."""

import os
import tempfile
from pathlib import Path

os.environ["PULLCORD_DATA"] = os.environ.get("PULLCORD_TEST_DATA") or tempfile.mkdtemp(
    prefix="pullcord-tests-", dir=os.environ.get("PULLCORD_TESTS_SHARED")
)
os.environ["SECRET_KEY"] = "only-for-tests-" + "x" * 40
for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DATABASE_URL", "REDIS_URL"):
    os.environ.pop(name, None)
# A private PostgreSQL that tests/databases.py has started; SQLite otherwise.
if os.environ.get("PULLCORD_TESTS_DATABASE"):
    os.environ["DATABASE_URL"] = os.environ["PULLCORD_TESTS_DATABASE"]

from board.settings import *  # noqa: E402, F403
from board.settings import DATABASES  # noqa: E402

# WhiteNoise warns when this folder is missing; it serves from `static/` all the same.
(DATA / "static").mkdir(parents=True, exist_ok=True)  # noqa: F405
DATA_FOR_TESTS = Path(os.environ["PULLCORD_DATA"])
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A file: threads that share a database in memory lock each other out of tables instead of waiting.
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["TEST"] = {"NAME": DATA_FOR_TESTS / "tests.sqlite3"}
