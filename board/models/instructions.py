"""Instructions for agents that a repository brings along: what was found, and who trusts it."""

from django.db import models


class Instruction(models.Model):
    """One content of one file, as it was on the target branch. A person trusts contents, not names.

    What counts for a path is the row that was seen last; if nobody trusts that one, nothing is used.
    """

    project = models.ForeignKey(
        "board.Project", on_delete=models.CASCADE, related_name="instructions"
    )
    path = models.CharField(max_length=200)  # AGENTS.md
    sha256 = models.CharField(max_length=64)  # of the content in UTF-8
    content = models.TextField()
    seen_at = models.DateTimeField()
    trusted_by = models.ForeignKey(
        "board.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    trusted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "path", "sha256"], name="one_row_a_content"),
            models.CheckConstraint(
                condition=models.Q(trusted_by__isnull=True, trusted_at__isnull=True)
                | models.Q(trusted_by__isnull=False, trusted_at__isnull=False),
                name="trust_has_a_person_and_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.sha256[:12]}"
