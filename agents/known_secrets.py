"""The secrets that this process knows: the product's own, a project's, and those of a worktree's files."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from agents.harness.redacted_logs import redact_last_words
from agents.harness.redaction import Redactor, Secret, shared
from agents.harness.secret_files import address_secrets, read_secrets, secret_files_below
from board.actions.credentials import KEY_NAME


def learn_product_secrets() -> None:
    """Let what this process logs, and its last words, be free of the product's secrets."""
    shared.learn(product_secrets())
    redact_last_words()


def product_secrets() -> Iterator[Secret]:
    """The secrets in the settings, and the model key that a person entered, once it was read."""
    yield from (secret for secret in shared.secrets if secret.name == KEY_NAME)
    for name in ("SECRET_KEY", "ANTHROPIC_API_KEY", "EMAIL_HOST_PASSWORD"):
        yield Secret(name, getattr(settings, name, ""))
    yield Secret("DATABASE_URL", str(settings.DATABASES["default"].get("PASSWORD") or ""))
    for name in ("REDIS_URL", "CELERY_BROKER_URL"):
        yield from address_secrets(name, getattr(settings, name))


def redactor_of_run() -> Redactor:
    """Return a redactor that knows the product's secrets; a run's own are learned one after another."""
    return _redactor_of_product(tuple(product_secrets())).copy()


@lru_cache(maxsize=1)
def _redactor_of_product(secrets: tuple[Secret, ...]) -> Redactor:
    return Redactor(secrets)


def learn(redactor: Redactor, *secrets: Secret) -> None:
    """Let a run and the log of this process hide these too."""
    redactor.learn(secrets)
    shared.learn(secrets)


def learn_from_worktree(redactor: Redactor, worktree: Path) -> None:
    """Let a run hide the values in the secret files of its worktree, committed or copied."""
    names = secret_files_below(worktree)
    learn(redactor, *read_secrets(worktree, names))


def learn_from_repository(redactor: Redactor, repository: str) -> None:
    """Let a run hide the password in a repository's address."""
    learn(redactor, *address_secrets("repository", repository))
