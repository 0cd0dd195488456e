"""Styles and scripts under an address that changes with them, so that a browser asks for each only once.

`/static/VERSION/js/board.js`: VERSION is a digest of all files, and modules import each other by plain
relative names, so one change gives all of them new addresses. A page that was opened before an upgrade still asks
for the old ones; it gets today's files, and is told to keep none.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest
from whitenoise.middleware import WhiteNoiseMiddleware

DIGITS = 12
FOR_GOOD = "public, max-age=31536000, immutable"
_ADDRESS = re.compile(rf"/static/([0-9a-f]{{{DIGITS}}})/(.*)", re.DOTALL)


@cache
def version(root: Path) -> str:
    """Return the digest of the names and contents of all files under `root`."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:DIGITS]


class VersionedStorage(StaticFilesStorage):
    """Gives `{% static %}` the address with the version."""

    def url(self, name: str | None) -> str:
        """Return where the file `name` is served."""
        return super().url(f"{version(settings.STATIC_ROOT)}/{name}")


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves a file with any version or none; only that of today may be kept, and only as it was at the start."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._version = version(settings.STATIC_ROOT)
        self._states = {
            str(path.relative_to(settings.STATIC_ROOT)): _state(path)
            for path in settings.STATIC_ROOT.rglob("*")
        }

    def __call__(self, request: HttpRequest) -> Any:
        """Answer with the file, or let the request through."""
        found = _ADDRESS.fullmatch(request.path_info)
        if found is None:
            return super().__call__(request)
        asked, name = found.groups()
        request.path_info = f"/static/{name}"
        response = super().__call__(request)
        if response.status_code in {200, 206, 304}:
            is_todays = asked == self._version and self._is_unchanged(name)
            response.headers["Cache-Control"] = FOR_GOOD if is_todays else "no-store"
        return response

    def _is_unchanged(self, name: str) -> bool:
        return not self.autorefresh and self._states.get(name) == _state(
            settings.STATIC_ROOT / name
        )


def _state(path: Path) -> tuple[int, int] | None:
    """Return what another content changes."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
