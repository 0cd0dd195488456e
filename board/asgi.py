"""What the web server serves: pages over HTTP, and one socket for each open board."""

import os
from typing import Any
from urllib.parse import urlsplit

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "board.settings")
pages = get_asgi_application()  # first: it loads the models that the next import needs

from django.conf import settings  # noqa: E402
from django.urls import re_path  # noqa: E402

from board.consumers import ProjectConsumer  # noqa: E402


def allowed_origins() -> list[str]:
    """Return the origins of our own pages: the public address, by each name that we answer to."""
    public = urlsplit(settings.PUBLIC_URL)
    port = f":{public.port}" if public.port else ""
    hosts = [host for host in settings.ALLOWED_HOSTS if host != "*"]
    return [settings.PUBLIC_URL, *(f"{public.scheme}://{host}{port}" for host in hosts)]


consumer: Any = ProjectConsumer.as_asgi()
sockets = URLRouter(
    [
        re_path(r"^ws/projects/(?P<key>[A-Za-z0-9]+)/$", consumer),
        re_path(r"", consumer),  # any other: closed as not found
    ]
)
# A socket without an Origin, or of a foreign page, is refused before anything is read.
application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": OriginValidator(AuthMiddlewareStack(sockets), allowed_origins()),
    }
)
