"""The rules of people: versions of policies, of which none is ever changed, and answers that last."""

from django.db import models
from django.db.models import Q

from board.states import PolicyScope


class PolicyVersion(models.Model):
    """One version of the rules of a scope; the newest of each scope counts. Rows are only added."""

    scope = models.CharField(max_length=12, choices=[(scope, scope) for scope in PolicyScope])
    project = models.ForeignKey(
        "board.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="policies"
    )  # of a project or a card
    card = models.ForeignKey(
        "board.Card", on_delete=models.CASCADE, null=True, blank=True, related_name="policies"
    )
    number = models.PositiveIntegerField()  # from 1 within the scope
    text = models.TextField()  # YAML, see docs/reference/policy.md
    comment = models.TextField(blank=True)
    author = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    before = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["number"],
                name="policy_number_once",
                condition=Q(scope=PolicyScope.ORGANISATION),
            ),
            models.UniqueConstraint(
                fields=["project", "number"],
                name="policy_number_once_a_project",
                condition=Q(scope=PolicyScope.PROJECT),
            ),
            models.UniqueConstraint(
                fields=["card", "number"],
                name="policy_number_once_a_card",
                condition=Q(scope=PolicyScope.CARD),
            ),
            models.CheckConstraint(
                condition=Q(scope=PolicyScope.ORGANISATION, project__isnull=True, card__isnull=True)
                | Q(scope=PolicyScope.PROJECT, project__isnull=False, card__isnull=True)
                | Q(scope=PolicyScope.CARD, project__isnull=False, card__isnull=False),
                name="policy_has_its_scope",
            ),
        ]

    def __str__(self) -> str:
        return f"policy {self.number} of the {self.scope}"


class Grant(models.Model):
    """Exactly this call may run again in this project: an answer "always" of a maintainer.

    `scripts` are the files that the call runs, with their sha256. A grant that is withdrawn stays
    as a row and counts no more.
    """

    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=80)
    input = models.JSONField(default=dict)
    scripts = models.JSONField(default=dict)
    approval = models.ForeignKey(
        "board.Approval", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    granted_by = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    granted_at = models.DateTimeField()
    withdrawn_by = models.ForeignKey(
        "board.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["project"], name="grant_in_force", condition=Q(withdrawn_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.project_id}"

    @property
    def what(self) -> str:
        """The call in short: its command or path."""
        given = self.input if isinstance(self.input, dict) else {}
        return str(given.get("command") or given.get("path") or self.tool)
