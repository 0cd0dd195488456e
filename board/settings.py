"""The settings of the whole product, from environment variables. Nothing else reads the environment.

Every name is described in docs/reference/settings.md. A secret may come from a file: `NAME_FILE`.
"""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from board import __version__

BASE_DIR = Path(__file__).resolve().parent.parent
# A checkout has the pages beside the package, a wheel inside it.
PAGES_DIR = BASE_DIR if (BASE_DIR / "templates").is_dir() else BASE_DIR / "board"
VERSION = __version__


def text(name: str, default: str = "") -> str:
    """Return the environment variable `name`, or the content of the file that `name`_FILE names."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        return Path(path).read_text(encoding="utf-8").strip()
    return os.environ.get(name, default)


def flag(name: str, *, default: bool = False) -> bool:
    """Return whether the variable is `1`, `true`, `yes` or `on`."""
    value = text(name)
    return value.lower() in {"1", "true", "yes", "on"} if value else default


def number(name: str, default: int) -> int:
    """Return the variable as a whole number."""
    return int(text(name) or default)


DATA = Path(text("PULLCORD_DATA") or "data").resolve()


def secret_key() -> str:
    """Return SECRET_KEY, or a key made once and kept in the data folder, readable by its owner only."""
    key = text("SECRET_KEY")
    if key:
        return key
    path = DATA / "secret_key"
    try:
        if not path.exists():
            make_secret(path)
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise SystemExit(
            f"The data folder {DATA} cannot be written ({error.strerror}). "
            "Give this user the right, or choose another with --data or PULLCORD_DATA."
        ) from error


def make_secret(path: Path) -> None:
    """Write a new secret to `path` unless another process is first; nobody ever reads half of one."""
    DATA.mkdir(mode=0o700, parents=True, exist_ok=True)  # its files are not closed one by one
    handle, draft = tempfile.mkstemp(dir=DATA)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        Path(draft).unlink()


SECRET_KEY = secret_key()
DEBUG = flag("PULLCORD_DEBUG")
HOST = text("PULLCORD_HOST", "127.0.0.1")
PORT = number("PULLCORD_PORT", 8400)
# The address that people type; it decides hosts, the origins of sockets, and links in mails.
PUBLIC_URL = text("PULLCORD_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
_public = urlsplit(PUBLIC_URL)
_loopback = {"127.0.0.1", "localhost", "[::1]"}
ALLOWED_HOSTS = sorted(
    {_public.hostname or "127.0.0.1", *_loopback, *filter(None, text("PULLCORD_HOSTS").split(","))}
)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
SECURE_SSL = _public.scheme == "https"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "board",
    "agents",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "board.views.middleware.HeadersMiddleware",
    "board.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "board.views.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "board.views.middleware.BoardErrorMiddleware",
]
ROOT_URLCONF = "board.urls"
ASGI_APPLICATION = "board.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PAGES_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "board.views.context.shell",
            ],
            "builtins": [
                "django.templatetags.static",
                "board.templatetags.board",
                "board.templatetags.shell",
            ],
        },
    }
]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SQLITE_OPTIONS: dict[str, Any] = {
    "timeout": 20,  # seconds that a writer waits for the one write lock
    # A deferred transaction that turns into a write fails at once instead of waiting.
    "transaction_mode": "IMMEDIATE",
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA journal_size_limit=67108864"
    ),
}
_url = text("DATABASE_URL") or f"sqlite:///{DATA / 'pullcord.sqlite3'}"
DATABASES: dict[str, dict[str, Any]] = {"default": dict(dj_database_url.parse(_url))}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS

REDIS_IS_GIVEN = bool(text("REDIS_URL"))
REDIS_URL = text("REDIS_URL") or f"unix://{DATA / 'valkey.sock'}"
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            # redis-py 8 closes idle sockets after 5 s and refuses the 100th connection by default.
            "hosts": [{"address": REDIS_URL, "socket_timeout": None, "max_connections": 2000}],
        },
    }
}

CELERY_BROKER_URL = text("CELERY_BROKER_URL") or (
    REDIS_URL.replace("unix://", "redis+socket://", 1)
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_DEFAULT_QUEUE = "housekeeping"
CELERY_TASK_ROUTES = {"agents.*": {"queue": "agents"}}
# `expires` keeps a backlog from piling up while no worker listens.
CELERY_BEAT_SCHEDULE = {
    # Each worker with slots does it too, every few seconds.
    "keep_house": {"task": "board.keep_house", "schedule": 30.0, "options": {"expires": 30}},
    "notices": {"task": "board.deliver_notices", "schedule": 5.0, "options": {"expires": 5}},
    "tidy": {"task": "board.tidy", "schedule": 3600.0, "options": {"expires": 3600}},
}
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 120,
    # Seconds between two looks for what a dead worker had taken: hints, which nobody waits for.
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 10,
}

AUTH_USER_MODEL = "board.User"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/signin/"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_AGE = 14 * 24 * 3600  # seconds
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "__Host-session" if SECURE_SSL else "pullcord_session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL
CSRF_COOKIE_NAME = "__Host-csrf" if SECURE_SSL else "pullcord_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "board.views.errors.csrf_failed"
# A proxy in front says who asks and whether it was by TLS; believed only if this is set.
TRUST_PROXY = flag("PULLCORD_TRUST_PROXY")
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

_socket_origin = PUBLIC_URL.replace("http", "ws", 1)
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'", _socket_origin],
        "manifest-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
    }
}

STATIC_URL = "static/"
# Served as they lie in the checkout or the wheel; see board/static_files.py.
STATIC_ROOT = PAGES_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "board.static_files.VersionedStorage"},
}
WHITENOISE_MAX_AGE = 0  # seconds; of what is asked for without its version
WHITENOISE_AUTOREFRESH = DEBUG

# Mails about questions of agents, if a server is given; each person asks for them.
EMAIL_HOST = text("PULLCORD_MAIL_HOST")
EMAIL_PORT = number("PULLCORD_MAIL_PORT", 587)
EMAIL_HOST_USER = text("PULLCORD_MAIL_USER")
EMAIL_HOST_PASSWORD = text("PULLCORD_MAIL_PASSWORD")
_mail_security = text("PULLCORD_MAIL_SECURITY", "starttls")
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail_security == "starttls", _mail_security == "tls"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = text("PULLCORD_MAIL_FROM", "Pullcord <pullcord@localhost>")

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

REDACTOR = "agents.harness.redaction.shared"  # takes secrets out of texts; see board/redaction.py
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "agents.harness.redacted_logs.RedactedFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": text("PULLCORD_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        "daphne": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        # A line for each wake-up and each request to a model says nothing that the board does not.
        "celery": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # A dead Valkey is one line of our own feeds, not a traceback each second.
        "channels_redis": {"level": "CRITICAL"},
    },
}

# The agents.
POLICY_GATE = "agents.policy_desk.PolicyDesk"  # see board/gate.py
ANTHROPIC_API_KEY = text("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = text("ANTHROPIC_BASE_URL")
DEFAULT_MODEL = text("PULLCORD_MODEL", "claude-sonnet-5")
WORKER_SLOTS = number("PULLCORD_SLOTS", 4)
LEASE_SECONDS = number("PULLCORD_LEASE_SECONDS", 60)  # four missed renewals
HUBS = DATA / "hubs"
# What git needs to reach people's own repositories; no command of an agent sees it.
REMOTE_ENVIRONMENT = {
    name: os.environ[name]
    for name in ("HOME", "PATH", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "HTTPS_PROXY")
    if name in os.environ
}
# Each machine has its own; worktrees hold uncommitted work, so they live on durable storage.
WORKSPACES = Path(text("PULLCORD_WORKSPACES") or DATA / "workspaces").resolve()
WORKTREE_DAYS = number("PULLCORD_WORKTREE_DAYS", 7)  # how long the folder of a failed run is kept
RUN_TIME_LIMIT_SECONDS = number("PULLCORD_RUN_SECONDS", 3600)  # active time of one attempt
