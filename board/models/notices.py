"""What is sent to people and programs outside: a project's webhook, and what waits to be delivered."""

import uuid

from django.db import models
from django.db.models import Q


class Webhook(models.Model):
    """Where a project's questions are announced. Its secret is derived from `nonce` and SECRET_KEY."""

    project = models.OneToOneField(
        "board.Project", on_delete=models.CASCADE, related_name="webhook"
    )
    url = models.TextField()
    nonce = models.CharField(max_length=64)
    # An owner of the installation allows an address that is not on the public internet.
    allows_private = models.BooleanField(default=False)
    set_by = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"webhook of {self.project_id}"


class Notice(models.Model):
    """One message about one question, delivered at least once: the receiver knows it by its `id`.

    `reason`: asked or reminder; `channel`: mail (to `user`) or webhook.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    approval = models.ForeignKey("board.Approval", on_delete=models.CASCADE, related_name="notices")
    reason = models.CharField(max_length=10)
    channel = models.CharField(max_length=10)
    user = models.ForeignKey(
        "board.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()  # the next try; while it is tried, when that counts as lost
    delivered_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)  # of the latest try
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "reason", "user"],
                name="one_mail_a_person",
                condition=Q(channel="mail"),
            ),
            models.UniqueConstraint(
                fields=["approval", "reason"],
                name="one_webhook_a_question",
                condition=Q(channel="webhook"),
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="notice_open",
                condition=Q(delivered_at__isnull=True, given_up_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.reason} by {self.channel} about {self.approval_id}"
