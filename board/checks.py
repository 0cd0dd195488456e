"""Stops a start with settings that are safe on one's own machine only, or with a database of another encoding."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.db import connections

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


@checks.register(checks.Tags.database)
def check_encoding(
    app_configs: Sequence[Any] | None, *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Return what must not be so before the database is migrated: `migrate` asks for these checks."""
    del app_configs, kwargs
    messages: list[checks.CheckMessage] = []
    for alias in databases or ():
        if connections[alias].vendor != "postgresql":
            continue
        with connections[alias].cursor() as cursor:
            cursor.execute("SHOW server_encoding")
            (encoding,) = cursor.fetchone()
        if encoding != "UTF8":
            messages.append(
                checks.Error(
                    f"The database's encoding is {encoding}, which cannot hold what agents write.",
                    hint="Make it anew: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.",
                    id="pullcord.E005",
                )
            )
    return messages
