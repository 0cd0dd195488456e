"""`manage.py doctor`: looks at the machine and says what is missing and what suits it."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection

from agents import preflight
from board.actions.credentials import model_access
from board.redaction import redact

MARKS = {"ok": "ok  ", "warn": "note", "bad": "BAD "}


class Command(BaseCommand):
    """Prints what was found; exits with 1 if something keeps the product from working."""

    help = "Check this machine: git, sandbox, Valkey, data folder, database, model key, slots."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print the findings."""
        findings = [*preflight.examine(settings.DATA), self._database(), self._key()]
        for finding in findings:
            self.stdout.write(redact(f"[{MARKS[finding.level]}] {finding.text}"))
        if any(finding.level == "bad" for finding in findings):
            raise SystemExit(1)

    def _database(self) -> preflight.Finding:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            return preflight.Finding(
                "bad", f"The database does not answer: {error}. Check DATABASE_URL."
            )
        return preflight.Finding("ok", f"Database: {connection.vendor}")

    def _key(self) -> preflight.Finding:
        try:
            access = model_access()
        except DatabaseError:
            return preflight.Finding(
                "warn", "The database is not migrated yet; `manage.py up` does it."
            )
        if access is None:
            return preflight.Finding(
                "warn",
                "No model key. Set ANTHROPIC_API_KEY or enter a key in Settings; the rehearsal needs none.",
            )
        return preflight.Finding("ok", f"Model key: from the {access.source}")
