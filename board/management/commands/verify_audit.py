"""`manage.py verify_audit`: whether the audit is as it was written."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from board.audits import verify


class Command(BaseCommand):
    """Computes every hash again; exits with 1 and names the first entry that is wrong."""

    help = (
        "Check the audit's chain. Prints its head; keep it elsewhere and give it back with --head."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take a head that was printed before."""
        parser.add_argument(
            "--head", default="", help="`number:hash`, as an earlier check printed it"
        )

    def handle(self, *_args: Any, head: str, **_options: Any) -> None:
        """Print what was found."""
        finding = verify(head.strip())
        if finding.problem:
            self.stderr.write(f"The audit is broken: {finding.problem}.")
            self.stderr.write(f"Sound up to {finding.head}")
            raise SystemExit(1)
        self.stdout.write(f"The audit is sound: {finding.entries} entries.")
        self.stdout.write(f"Head {finding.head}")
