"""Addresses whose code is imported when one of them is first asked for.

The API brings pydantic, which takes a quarter of the web server's start; no page needs it.
"""

from typing import Any

from django.urls import URLResolver
from django.urls.resolvers import RoutePattern


class LazyResolver(URLResolver):
    """A resolver that nobody's reverse look-up loads, but one for its own namespace."""

    def _populate(self) -> None:
        if "urlconf_module" in self.__dict__:
            super()._populate()

    @property
    def reverse_dict(self) -> Any:
        """The names in it: whoever asks for these wants it loaded."""
        self.urlconf_module  # noqa: B018  loads it
        return super().reverse_dict


def lazily(route: str, module: str, *, app_name: str) -> LazyResolver:
    """Return what `path(route, include(module))` would, without importing `module` now."""
    pattern = RoutePattern(route, is_endpoint=False)
    return LazyResolver(pattern, module, app_name=app_name, namespace=app_name)
