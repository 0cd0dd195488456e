"""The key to a model provider that the owner entered; encrypted, and never shown again."""

from django.db import models


class Credential(models.Model):
    """Access to a Messages API. At most one row today; ANTHROPIC_API_KEY comes before it."""

    secret = models.BinaryField()  # encrypted with a key derived from SECRET_KEY
    base_url = models.URLField(blank=True)  # "" is the provider's own
    # How the server wants the key: `bearer` (SDK 2.x) or `x-api-key` (older and local servers).
    header = models.CharField(max_length=10, default="bearer")
    entered_by = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"credential {self.pk}"
