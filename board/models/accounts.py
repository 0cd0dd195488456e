"""People, and the links and tokens by which they come in. Tokens are stored as SHA-256 only."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from board.states import Role


class UserManager(BaseUserManager["User"]):
    """Makes users from an e-mail address; Django's commands ask for these two names."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Create a user who signs in with `email`, in any letter case."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        """Return the user with this address in any letter case."""
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser):
    """A person, known by e-mail address."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    # Owns the installation: credentials, people, workers. Sees a project only as its member.
    is_owner = models.BooleanField(default=False)
    theme = models.CharField(max_length=8, default="", blank=True)  # "", "light" or "dark"
    density = models.CharField(max_length=8, default="", blank=True)  # "" or "compact"
    mails_questions = models.BooleanField(default=False, db_default=False)  # of agents
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_any_case")]

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def initials(self) -> str:
        """At most two letters for the round face."""
        words = (self.name or self.email).split()
        return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()

    @property
    def hue(self) -> int:
        """One of the ten hues of the design, always the same for one person."""
        return HUES[(self.pk or 0) % len(HUES)]


HUES = (20, 150, 262, 75, 300, 190, 340, 110, 230, 45)


class OwnerLink(models.Model):
    """The one-time link by which the first owner comes in; worthless once an owner exists."""

    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"owner link of {self.created_at:%Y-%m-%d}"


class Invitation(models.Model):
    """A single-use link that makes a person a member of one project."""

    project = models.ForeignKey(
        "board.Project", on_delete=models.CASCADE, related_name="invitations"
    )
    email = models.EmailField()
    role = models.CharField(max_length=12, choices=[(role, role.capitalize()) for role in Role])
    token_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.email} to {self.project_id}"


class SignInTry(models.Model):
    """One try to sign in that did not succeed, or is under way. Old ones are deleted by the next try."""

    subject = models.CharField(max_length=64)  # SHA-256 of the address and where it came from
    source = models.CharField(max_length=64)  # SHA-256 of where it came from
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["subject", "at"], name="signin_subject"),
            models.Index(fields=["source", "at"], name="signin_source"),
        ]

    def __str__(self) -> str:
        return f"sign-in at {self.at:%H:%M}"


class ApiToken(models.Model):
    """A bearer token of one person: the same rights, shown once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)  # the first characters, to tell tokens apart
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user_id}"
