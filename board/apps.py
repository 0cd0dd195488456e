"""Registers the board with Django."""

from django.apps import AppConfig


class BoardConfig(AppConfig):
    """The board."""

    name = "board"
    verbose_name = "Board"

    def ready(self) -> None:
        """Register the system checks."""
        from board import checks  # noqa: F401  importing registers them; settings are ready only now
