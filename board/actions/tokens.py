"""Secrets that are shown once and stored as SHA-256. 256 random bits need no slow hash."""

import hashlib
import secrets


def new_token(prefix: str = "") -> str:
    """Return a new secret of 256 bits behind `prefix`."""
    return prefix + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(token.encode()).hexdigest()
