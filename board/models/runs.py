"""Runs (attempts at a card), their journal, their log and what they used."""

from django.db import models
from django.db.models import Q

from board.states import HELD, LIVE, FailureKind, RunStatus, StepKind, StepStatus, WaitingFor


class Run(models.Model):
    """One attempt at a card. Whoever writes names `fence`; a stale fence writes nothing."""

    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="runs")
    card = models.ForeignKey("board.Card", on_delete=models.CASCADE, related_name="runs")
    attempt = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=[(s, s) for s in RunStatus])
    waiting_for = models.CharField(
        max_length=10, choices=[(w, w) for w in WaitingFor], blank=True, default=""
    )
    not_before = models.DateTimeField(null=True, blank=True)  # of a run that waits for a retry
    fence = models.PositiveIntegerField(default=1)
    worker = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)  # on the database's clock
    losses = models.PositiveSmallIntegerField(default=0)  # leases that ran out
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    failure_kind = models.CharField(
        max_length=20, choices=[(k, k) for k in FailureKind], blank=True, default=""
    )
    failure = models.TextField(blank=True)

    branch = models.CharField(max_length=200, blank=True)
    base_sha = models.CharField(max_length=64, blank=True)
    head_sha = models.CharField(max_length=64, blank=True)
    workspace = models.TextField(blank=True)  # the folder on the worker's machine
    host = models.CharField(max_length=200, blank=True)  # the machine that has it

    model = models.CharField(max_length=80, blank=True)
    agent = models.CharField(max_length=40, blank=True)  # agent-3: the slot that does it
    activity = models.TextField(blank=True)  # what it does now, in one line
    steps_done = models.PositiveIntegerField(default=0)  # model turns and tool calls
    plan = models.JSONField(default=list, blank=True)  # the todo list: [{"text", "state"}]
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    cost_microusd = models.BigIntegerField(default=0)
    questions = models.PositiveIntegerField(default=0)  # how often it pulled the cord
    active_seconds = models.FloatField(default=0)  # without the waits
    summary = models.TextField(blank=True)
    remaining = models.TextField(blank=True)
    evidence = models.JSONField(
        default=list, blank=True
    )  # [{"command", "exit_code", "output", "seconds"}]
    changes = models.JSONField(
        default=dict, blank=True
    )  # {"files", "additions", "deletions", "conflicts"}
    next_seq = models.PositiveIntegerField(default=1)  # of the next step
    log_seq = models.BigIntegerField(default=0)  # of the last log item

    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    held_since = models.DateTimeField(null=True, blank=True)  # since when a slot works on it
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["card", "attempt"], name="run_attempt_once"),
            models.UniqueConstraint(
                fields=["card"], name="one_live_run_a_card", condition=Q(status__in=[*LIVE])
            ),
            models.CheckConstraint(
                condition=~Q(status__in=[*HELD])
                | Q(lease_until__isnull=False, worker__isnull=False),
                name="held_run_has_a_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["project"], name="run_held", condition=Q(status__in=[*HELD])),
            models.Index(fields=["lease_until"], name="run_lease", condition=Q(status__in=[*HELD])),
            models.Index(fields=["ready_at", "id"], name="run_ready", condition=Q(status="ready")),
            models.Index(fields=["not_before"], name="run_due", condition=Q(status="waiting")),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of card {self.card_id}"

    @property
    def is_live(self) -> bool:
        """Whether it is not over."""
        return self.status in LIVE


class Step(models.Model):
    """One entry of a run's journal, committed before it acts and again when it is done."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=6, choices=[(k, k) for k in StepKind])
    status = models.CharField(max_length=8, choices=[(s, s) for s in StepStatus])
    fence = models.PositiveIntegerField()
    request = models.JSONField(default=dict)
    response = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="step_seq_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq} of run {self.run_id}"


class LogItem(models.Model):
    """One item of the live log: what a person sees of a run. Kinds: docs/reference/events.md."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log_items")
    seq = models.BigIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=10)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="log_seq_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq} of run {self.run_id}"


class Usage(models.Model):
    """The tokens and cost of one model turn. Cost is in micro-dollars; null if the price is unknown."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="usages")
    step = models.OneToOneField(Step, on_delete=models.CASCADE, related_name="usage")
    model = models.CharField(max_length=80)
    purpose = models.CharField(max_length=12, default="loop")
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    cost_microusd = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"usage of step {self.step_id}"
