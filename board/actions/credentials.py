"""The key to the model provider: stored encrypted, given only to workers, never shown again."""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from board import redaction
from board.actions import audit
from board.actions.audit import Act
from board.errors import ValidationError
from board.events import Actor
from board.models import Credential, User

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_NAME = "model key"  # in the place of a stored key
MIN_KEY = 8  # characters; shorter is a slip of the hand


@dataclass(frozen=True)
class ModelAccess:
    """How a worker reaches the Messages API. The key is kept out of every representation."""

    api_key: str = field(repr=False)
    base_url: str  # "" is the provider's own
    header: str  # bearer or x-api-key
    source: str  # environment or database


def model_access() -> ModelAccess | None:
    """Return the credential in force, or None. The environment comes before what was entered."""
    if settings.ANTHROPIC_API_KEY:
        return ModelAccess(
            settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL, "bearer", "environment"
        )
    row = Credential.objects.order_by("-pk").first()
    if row is None:
        return None
    from cryptography.fernet import InvalidToken

    try:
        key = _cipher().decrypt(bytes(row.secret)).decode()
    except InvalidToken:
        return None
    redaction.learn(KEY_NAME, key)
    return ModelAccess(key, row.base_url, row.header, "database")


def set_credential(*, by: User, api_key: str, base_url: str = "", header: str = "bearer") -> None:
    """Store the key in place of the one before."""
    key = api_key.strip()
    if len(key) < MIN_KEY or any(character.isspace() for character in key):
        raise ValidationError(
            "That does not look like an API key.", fields={"api_key": "Check the key."}
        )
    address = base_url.strip().rstrip("/")
    if address and not address.startswith(("https://", "http://")):
        raise ValidationError(
            "An address that begins with https:// or http://.",
            fields={"base_url": "Check the address."},
        )
    if header not in {"bearer", "x-api-key"}:
        raise ValidationError("Choose how the key is sent.", fields={"header": "Choose one."})
    redaction.learn(KEY_NAME, key)
    with transaction.atomic():
        Credential.objects.all().delete()
        Credential.objects.create(
            secret=_cipher().encrypt(key.encode()), base_url=address, header=header, entered_by=by
        )
        where = {"base_url": address, "header": header}
        audit.record(Act("credential_entered", Actor.person(by), data=where))


def remove_credential(*, by: User) -> None:
    """Forget the stored key."""
    with transaction.atomic():
        Credential.objects.all().delete()
        audit.record(Act("credential_removed", Actor.person(by)))


def _cipher() -> "Fernet":
    """Return the cipher whose key derives from SECRET_KEY, so that a copied database is worth nothing."""
    from cryptography.fernet import Fernet  # big, and of no use before there is a key

    digest = hashlib.sha256(b"pullcord.credentials:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
