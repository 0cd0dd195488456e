"""Questions from agents to people."""

import hashlib
import json

from django.db import models
from django.db.models import Q

from board.states import ApprovalScope, ApprovalStatus


class Approval(models.Model):
    """One pulled cord: a call that waits for a person. It covers exactly what `digest` was made of."""

    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="approvals")
    run = models.ForeignKey("board.Run", on_delete=models.CASCADE, related_name="approvals")
    step = models.ForeignKey("board.Step", on_delete=models.CASCADE, related_name="approvals")
    status = models.CharField(
        max_length=10, choices=[(s, s) for s in ApprovalStatus], default=ApprovalStatus.PENDING
    )
    tool = models.CharField(max_length=80)
    input = models.JSONField(default=dict)
    rule = models.CharField(max_length=40)
    reasons = models.JSONField(default=list)  # plain sentences, worst first
    digest = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)  # what the digest was made of
    effects = models.JSONField(default=list)  # the resolved commands
    sandbox = models.CharField(max_length=12, default="")  # bubblewrap, landlock or none
    # What the person sees besides: {"scripts": [...], "diff": {...}}, see agents/shown.py.
    shown = models.JSONField(default=dict, db_default={})
    # Never remembered; may need two people.
    critical = models.BooleanField(default=False, db_default=False)

    scope = models.CharField(
        max_length=8, choices=[(s, s) for s in ApprovalScope], blank=True, default=""
    )
    edited_input = models.JSONField(null=True, blank=True)
    comment = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    carried_out_at = models.DateTimeField(null=True, blank=True)  # the call was started, once
    expires_at = models.DateTimeField(null=True, blank=True)  # null: never
    reminded_at = models.DateTimeField(null=True, blank=True)  # when it had waited for too long
    # The first of two people who must approve; what they approved is in `edited_input` already.
    first_by = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    first_at = models.DateTimeField(null=True, blank=True)
    looked_by = models.ForeignKey(  # who is looking at it: soft, and over by itself
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    looked_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["step"], name="one_open_question_a_step", condition=Q(status="pending")
            )
        ]
        indexes = [
            models.Index(
                fields=["project", "created_at"],
                name="approval_open",
                condition=Q(status="pending"),
            ),
            models.Index(fields=["run"], name="approval_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} for run {self.run_id}"

    @property
    def seen(self) -> str:
        """What names exactly what a person sees of it now: also what the first of two has made of it."""
        if self.edited_input is None or self.status != ApprovalStatus.PENDING:
            return self.digest
        text = json.dumps([self.digest, self.edited_input], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
