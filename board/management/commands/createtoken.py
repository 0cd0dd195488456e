"""Prints a new API token of a person, and nothing else."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from board.actions.accounts import create_token, create_user
from board.errors import BoardError
from board.models import User


class Command(BaseCommand):
    """`manage.py createtoken ann@example.org`; on an empty installation, Ann becomes its owner."""

    help = "Print a new API token of a person. While nobody exists, make that person the owner."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the person's address, and what the token is for."""
        parser.add_argument("email")
        parser.add_argument("--name", default="Command line", help="what the token is for")

    def handle(self, *args: Any, email: str, name: str, **options: Any) -> None:
        """Print the token alone, so that a script can take it."""
        try:
            token = create_token(self._person(email), name=name)
        except BoardError as error:
            raise CommandError(error.message) from error
        self.stdout.write(token)

    def _person(self, email: str) -> User:
        address = email.strip().lower()
        if not User.objects.exists():
            name = address.partition("@")[0]
            return create_user(email=address, name=name, password=None, is_owner=True)
        person = User.objects.filter(email=address, is_active=True).first()
        if person is None:
            raise CommandError(f"Nobody here has the address {address}. Invite them first.")
        return person
