"""Cards, what they need, and what people say about them."""

from django.db import models
from django.db.models import F, Q

from board.states import CardStatus, FailureKind, ToolProfile


class Card(models.Model):
    """One piece of work. Its status changes only through `actions.transitions.transition`."""

    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="cards")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=300)
    goal = models.TextField(blank=True)
    files = models.JSONField(default=list, blank=True)  # paths or globs that the work will touch
    constraints = models.TextField(blank=True)
    checks = models.JSONField(default=list, blank=True)  # shell commands that must exit 0
    no_check = models.BooleanField(default=False)  # a person said: no acceptance check
    tool_profile = models.CharField(
        max_length=10, choices=[(one, one) for one in ToolProfile], blank=True, default=""
    )  # "" is the project's; the narrower of the two counts
    priority = models.PositiveSmallIntegerField(default=1)  # 0 low, 1 normal, 2 high, 3 urgent
    labels = models.ManyToManyField("board.Label", blank=True, related_name="cards")
    assignee = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    needs = models.ManyToManyField(
        "self", through="board.Dependency", symmetrical=False, related_name="needed_by"
    )

    status = models.CharField(
        max_length=10, choices=[(s, s) for s in CardStatus], default=CardStatus.BACKLOG
    )
    column = models.ForeignKey("board.Column", on_delete=models.PROTECT, related_name="cards")
    rank = models.CharField(max_length=1000)  # compares bytewise, see board.ranks
    rev = models.PositiveIntegerField(default=1)  # rises with every change that a card shows
    unmet = models.PositiveIntegerField(default=0)  # needed cards that are not done
    not_before = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    run = models.ForeignKey(
        "board.Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )  # the latest attempt
    failure_kind = models.CharField(
        max_length=20, choices=[(k, k) for k in FailureKind], blank=True, default=""
    )
    failure = models.TextField(blank=True)  # why it failed or came back from the merge, for people
    failed_by = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )  # the card whose failure this one shares
    remaining = models.TextField(blank=True)  # what the last attempt left undone, for the next one
    merged_sha = models.CharField(max_length=64, blank=True)
    delivery = models.TextField(blank=True)  # what became of the merge in the user's repository

    created_by = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    done_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="card_number_once"),
            models.UniqueConstraint(fields=["column", "rank"], name="card_rank_once"),
        ]
        indexes = [
            models.Index(
                fields=["project", "-priority", "rank", "id"],
                name="card_claimable",
                condition=Q(status="queued", unmet=0, archived_at__isnull=True),
            ),
            models.Index(
                fields=["column", "rank"],
                name="card_on_board",
                condition=Q(archived_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def ref(self) -> str:
        """The name that people use: KEY-12. Needs `project` to be fetched."""
        return f"{self.project.key}-{self.number}"

    @property
    def is_blocked(self) -> bool:
        """Whether a card that it needs is not done."""
        return self.unmet > 0


class Dependency(models.Model):
    """`card` cannot start before `needs` is done."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="dependencies")
    needs = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="dependents")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["card", "needs"], name="dependency_once"),
            models.CheckConstraint(condition=~Q(card=F("needs")), name="needs_another_card"),
        ]

    def __str__(self) -> str:
        return f"{self.card_id} needs {self.needs_id}"


class Comment(models.Model):
    """What a person says on a card. `kind` is `comment`, `send_back` or `steer`."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="comments")
    run = models.ForeignKey(
        "board.Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="comments"
    )
    author = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, default="comment")
    body = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)  # to the agent, exactly once

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.body[:40]
