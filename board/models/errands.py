"""Errands: short git work on a hub that a worker does for the board."""

from django.db import models
from django.db.models import Q

from board.states import ErrandKind, ErrandStatus


class Errand(models.Model):
    """A fetch of a project's hub, or the merge of a card; claimed, leased and fenced like a run."""

    kind = models.CharField(max_length=6, choices=[(k, k) for k in ErrandKind])
    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="errands")
    card = models.ForeignKey(
        "board.Card", on_delete=models.CASCADE, null=True, blank=True, related_name="errands"
    )
    status = models.CharField(
        max_length=8, choices=[(s, s) for s in ErrandStatus], default=ErrandStatus.QUEUED
    )
    fence = models.PositiveIntegerField(default=0)
    worker = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    losses = models.PositiveSmallIntegerField(default=0)
    options = models.JSONField(default=dict)  # {"create_first_commit": true}
    message = models.TextField(blank=True)
    requested_by = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Git work on one hub is done one after another.
            models.UniqueConstraint(
                fields=["project"], name="one_errand_at_a_time", condition=Q(status="running")
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"], name="errand_open", condition=Q(status__in=["queued", "running"])
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.project_id}"
