"""Who calls: a bearer token stands for its person, as long as it is not revoked."""

from django.http import HttpRequest
from ninja.security import HttpBearer

from board.actions.accounts import use_token
from board.api import limits
from board.api.failures import TooManyRequestsError
from board.models import User


class ApiRequest(HttpRequest):
    """A request whose token was accepted."""

    auth: User


class Bearer(HttpBearer):
    """`Authorization: Bearer pc_...`. Cookies open nothing here, so that no other site can use them."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        """Return the token's person, or None (answered with 401). Raises TooManyRequestsError."""
        user = use_token(token)
        if user is not None and (wait := limits.requests.take(token)):
            raise TooManyRequestsError(wait)
        return user
