"""`manage.py ownerlink`: prints the one-time link of the first owner, where `manage.py up` is not used."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from board.actions.accounts import create_owner_link


class Command(BaseCommand):
    """Prints the link alone; links that were printed before stop working."""

    help = (
        "Print the link that makes whoever opens it the owner, while nobody owns the installation."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print the link."""
        token = create_owner_link()
        if token is None:
            raise CommandError("Somebody owns this installation. Ask them for an invitation.")
        self.stdout.write(f"{settings.PUBLIC_URL}/setup/{token}/")
