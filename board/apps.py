"""Registers the board with Django."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class BoardConfig(AppConfig):
    """The board."""

    name = "board"
    verbose_name = "Board"

    def ready(self) -> None:
        """Register the system checks, and what a new connection is told."""
        from board import checks  # noqa: F401  importing registers them; settings are ready only now
        from board.connections import limit_silence

        connection_created.connect(limit_silence)
