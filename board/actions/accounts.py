"""People: the first owner, sign-up by invitation, tokens, personal settings."""

from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError as DjangoValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from board import bus
from board.actions import audit
from board.actions.audit import Act
from board.actions.tokens import hash_token, new_token
from board.errors import NotAllowedError, ValidationError
from board.events import Actor
from board.models import ApiToken, OwnerLink, User

TOKEN_PREFIX = "pc_"  # noqa: S105  how our tokens begin, so that scanners know them
TOKEN_USE_RESOLUTION = timedelta(minutes=1)


def create_owner_link() -> str | None:
    """Return the secret of a new one-time owner link, or None once somebody owns the installation."""
    if User.objects.filter(is_owner=True).exists():
        return None
    token = new_token()
    with transaction.atomic():
        OwnerLink.objects.all().delete()  # only the newest printed link works
        OwnerLink.objects.create(token_hash=hash_token(token))
    return token


def find_owner_link(token: str) -> OwnerLink | None:
    """Return the unused owner link, or None when it is wrong, used, or an owner exists."""
    if User.objects.filter(is_owner=True).exists():
        return None
    return OwnerLink.objects.filter(token_hash=hash_token(token), used_at__isnull=True).first()


def claim_ownership(token: str, *, email: str, name: str, password: str) -> User:
    """Make the first person, who owns the installation. The link works once."""
    with transaction.atomic():
        used = OwnerLink.objects.filter(token_hash=hash_token(token), used_at__isnull=True)
        if find_owner_link(token) is None or not used.update(used_at=Now()):
            raise NotAllowedError(
                "This link was used already. Sign in, or start Pullcord again for a new link."
            )
        user = create_user(email=email, name=name, password=password, is_owner=True)
        audit.record(Act("owner_made", Actor.person(user), data={"email": user.email}))
    return user


def create_user(*, email: str, name: str, password: str | None, is_owner: bool = False) -> User:
    """Make a person who signs in with e-mail and password (None: by token only)."""
    address = email.strip().lower()
    problems: dict[str, str] = {}
    try:
        validate_email(address)
    except DjangoValidationError:
        problems["email"] = "An e-mail address, such as ann@example.org."
    if not name.strip():
        problems["name"] = "Your name, as others will see it."
    if password is not None:
        try:
            validate_password(password)
        except DjangoValidationError as error:
            problems["password"] = " ".join(error.messages)
    if problems:
        raise ValidationError(" ".join(problems.values()), fields=problems)
    try:
        with transaction.atomic():
            return User.objects.create_user(
                email=address, password=password, name=name.strip()[:120], is_owner=is_owner
            )
    except IntegrityError as error:
        raise ValidationError(
            "Somebody uses this address already. Sign in instead.",
            fields={"email": "This address is taken."},
        ) from error


def create_token(user: User, *, name: str) -> str:
    """Return a new API token of `user`. It cannot be shown again."""
    token = new_token(TOKEN_PREFIX)
    with transaction.atomic():
        made = ApiToken.objects.create(
            user=user,
            name=name.strip()[:80] or "Token",
            prefix=token[:9],
            token_hash=hash_token(token),
        )
        data = {"token": made.pk, "name": made.name, "prefix": made.prefix}
        audit.record(Act("token_made", Actor.person(user), data=data))
    return token


def use_token(token: str) -> User | None:
    """Return the active person to whom the token belongs, or None."""
    rows = ApiToken.objects.select_related("user").filter(
        token_hash=hash_token(token), revoked_at__isnull=True, user__is_active=True
    )
    found = rows.first()
    if found is None:
        return None
    # Once a minute is exact enough, and spares a write, and SQLite's one lock, for each request.
    used = found.last_used_at
    if used is None or used < timezone.now() - TOKEN_USE_RESOLUTION:
        ApiToken.objects.filter(pk=found.pk).update(last_used_at=Now())
    return found.user


def revoke_token(user: User, token_id: int) -> None:
    """End one of the person's tokens at once."""
    mine = ApiToken.objects.filter(user=user, pk=token_id, revoked_at__isnull=True)
    with transaction.atomic():
        if mine.update(revoked_at=Now()):
            audit.record(Act("token_revoked", Actor.person(user), data={"token": token_id}))
    bus.ring(bus.user_group(user.pk))


def set_appearance(user: User, *, theme: str, density: str) -> None:
    """Store how the person wants the pages to look."""
    if theme not in {"", "light", "dark"} or density not in {"", "compact"}:
        raise ValidationError("Choose one of the offered looks.")
    User.objects.filter(pk=user.pk).update(theme=theme, density=density)


def set_notices(user: User, *, mails: bool) -> None:
    """Store whether the person wants a mail for each question of an agent."""
    User.objects.filter(pk=user.pk).update(mails_questions=mails)


def change_password(user: User, *, current: str, new: str) -> None:
    """Set a new password. Every session of the person ends but the one that the caller renews."""
    if not user.check_password(current):
        raise ValidationError(
            "That is not your password.", fields={"current": "Not your password."}
        )
    try:
        validate_password(new, user)
    except DjangoValidationError as error:
        message = " ".join(error.messages)
        raise ValidationError(message, fields={"new": message}) from error
    user.set_password(new)
    with transaction.atomic():
        user.save(update_fields=["password"])
        audit.record(Act("password_changed", Actor.person(user)))
    bus.ring(bus.user_group(user.pk))


def tell_open_pages(user_id: int) -> None:
    """Let this person's open pages look whether their session still lives; those that ended close."""
    bus.ring(bus.user_group(user_id))
