"""Registers the agents with Django, and their ears with the board's signals."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The agents."""

    name = "agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Keep secrets out of this process's log, and listen to what the board announces."""
        from agents import known_secrets, receivers

        known_secrets.learn_product_secrets()
        receivers.connect()
