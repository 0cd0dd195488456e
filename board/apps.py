"""Registers the board with Django."""

from django.apps import AppConfig


class BoardConfig(AppConfig):
    """The board."""

    name = "board"
    verbose_name = "Board"
