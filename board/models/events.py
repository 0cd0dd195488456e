"""What happened on a board, in order. The live view is a replay of these rows."""

from django.db import models


class Event(models.Model):
    """One change. `seq` is gapless within the project, in the order of commits."""

    project = models.ForeignKey("board.Project", on_delete=models.CASCADE, related_name="events")
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=40)
    card = models.ForeignKey(
        "board.Card", on_delete=models.CASCADE, null=True, blank=True, related_name="events"
    )
    run = models.ForeignKey(
        "board.Run", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    user = models.ForeignKey(
        "board.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    actor = models.CharField(max_length=120)  # the name at that time: a person, agent-3, Pullcord
    payload = models.JSONField(default=dict)
    op_id = models.CharField(
        max_length=40, blank=True, default=""
    )  # the browser's name for its own act
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["project", "seq"], name="event_seq_once")]
        indexes = [models.Index(fields=["card", "seq"], name="event_of_card")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"
