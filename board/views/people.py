"""Who asks: the signed-in person behind a request."""

from django.http import HttpRequest

from board.models import User


def person(request: HttpRequest) -> User:
    """Return the person; the middleware lets nobody else through to a view."""
    found = known(request)
    if found is None:
        raise TypeError("this view is open to people who are not signed in")
    return found


def known(request: HttpRequest) -> User | None:
    """Return the person, or None at the pages that anyone may open."""
    return request.user if isinstance(request.user, User) else None
