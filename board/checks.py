"""Stops a start with settings that are safe on one's own machine only."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
SHORTEST_KEY = 32  # characters; the generated one has 67


@checks.register(checks.Tags.security)
def check_safe_start(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Return what must not be so when other machines can reach the server."""
    del app_configs, kwargs
    public = urlsplit(settings.PUBLIC_URL)
    messages: list[checks.CheckMessage] = []
    if len(settings.SECRET_KEY) < SHORTEST_KEY or len(set(settings.SECRET_KEY)) < SHORTEST_KEY // 4:
        messages.append(
            checks.Error(
                "SECRET_KEY is too easy to guess: whoever knows it signs in as anyone.",
                hint="Leave it unset (Pullcord makes one in the data folder) or set 50 random characters.",
                id="pullcord.E001",
            )
        )
    if "*" in settings.ALLOWED_HOSTS:
        messages.append(
            checks.Error(
                "PULLCORD_HOSTS accepts every host name, so links in pages can be forged.",
                hint="Name the hosts, separated by commas.",
                id="pullcord.E002",
            )
        )
    if public.scheme not in {"http", "https"} or not public.hostname:
        messages.append(
            checks.Error(
                f"PULLCORD_URL is not an address: {settings.PUBLIC_URL}",
                hint="The address that people type, such as https://board.example.org.",
                id="pullcord.E003",
            )
        )
    if public.hostname in LOOPBACK:
        return messages
    if settings.DEBUG:
        messages.append(
            checks.Error(
                "PULLCORD_DEBUG shows settings and code to whoever causes an error.",
                hint="Unset it on a server that others can reach.",
                id="pullcord.E004",
            )
        )
    if public.scheme == "http":
        messages.append(
            checks.Warning(
                "PULLCORD_URL begins with http://, so passwords cross the network readable.",
                hint="Put a proxy with TLS in front, set PULLCORD_URL to its https:// address "
                "and PULLCORD_TRUST_PROXY=1.",
                id="pullcord.W001",
            )
        )
    return messages
