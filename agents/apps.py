"""Registers the agents with Django, and their ears with the board's signals."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The agents."""

    name = "agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Listen to what the board announces."""
        from agents import receivers

        receivers.connect()
