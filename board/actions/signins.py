"""Signing in, with a brake on guessing. The same answer, in the same time, whether the person exists or not."""

from datetime import timedelta

from django.contrib.auth import authenticate
from django.db import transaction
from django.db.models.functions import Now

from board.actions import audit
from board.actions.audit import Act
from board.actions.tokens import hash_token
from board.errors import TooOftenError, ValidationError
from board.events import Actor
from board.models import SignInTry, User

MAX_TRIES = 6  # wrong passwords for one address from one place
MAX_TRIES_OF_A_PLACE = 60  # for all addresses together
PAUSE = timedelta(minutes=5)


def check_password(*, email: str, password: str, place: str) -> User:
    """Return the person with this address and password.

    Raises ValidationError if there is none, and TooOftenError (without looking at the password) after
    MAX_TRIES wrong ones within PAUSE. `place` is the caller's network address.
    """
    address = email.strip().lower()
    subject, source = hash_token(f"{address}\n{place}"), hash_token(place)
    # The try is written before the password is looked at, so that a hundred at once count as a hundred.
    SignInTry.objects.filter(at__lt=Now() - PAUSE).delete()
    mine = SignInTry.objects.create(subject=subject, source=source)
    before = SignInTry.objects.filter(pk__lt=mine.pk)
    if (
        before.filter(subject=subject).count() >= MAX_TRIES
        or before.filter(source=source).count() >= MAX_TRIES_OF_A_PLACE
    ):
        mine.delete()
        raise TooOftenError("Too many wrong passwords. Wait five minutes, then try again.")
    user = authenticate(username=address, password=password)
    if not isinstance(user, User):
        _record_failure(address, place)
        raise ValidationError(
            "That password does not fit this address. Check both, then try again.",
            fields={"password": "wrong"},
        )
    with transaction.atomic():
        SignInTry.objects.filter(subject=subject).delete()
        audit.record(Act("signed_in", Actor.person(user), data={"place": place}))
    return user


def _record_failure(address: str, place: str) -> None:
    """Record a wrong password of somebody who exists: what else was typed may be a password itself."""
    user = User.objects.filter(email=address).first()
    if user is not None:
        audit.record(Act("sign_in_failed", Actor.person(user), data={"place": place}))
