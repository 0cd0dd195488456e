"""The audit: what was done, by whom, in one chain of hashes. Rows are only ever added.

Nothing here is a foreign key: an entry outlives the person, card and project that it names.
"""

from django.db import models


class AuditEntry(models.Model):
    """One act. `hash` covers every other field, `previous` is the hash of the entry before.

    Triggers of the database refuse to change or delete a row; see the migration that makes them.
    """

    number = models.BigIntegerField(primary_key=True)  # from 1, without gaps, in order of commit
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    actor = models.CharField(max_length=120)  # the name at that time: a person, agent-3, Pullcord
    user_id = models.BigIntegerField(null=True, blank=True)
    project_id = models.BigIntegerField(null=True, blank=True)
    project = models.CharField(max_length=10, blank=True, default="")  # its key
    card = models.CharField(max_length=24, blank=True, default="")  # KEY-12
    run_id = models.BigIntegerField(null=True, blank=True)
    step = models.PositiveIntegerField(null=True, blank=True)
    verdict = models.CharField(max_length=10, blank=True, default="")  # allow, ask or deny
    rule = models.CharField(max_length=40, blank=True, default="")
    # Canonical JSON as text: jsonb would not give back the characters that were hashed.
    data = models.TextField(default="{}")
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["number"]
        indexes = [
            models.Index(fields=["project_id", "-number"], name="audit_of_project"),
            models.Index(fields=["run_id", "number"], name="audit_of_run"),
            models.Index(fields=["kind", "-number"], name="audit_of_kind"),
            models.Index(fields=["user_id", "-number"], name="audit_of_person"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.kind}"


class AuditHead(models.Model):
    """The end of the chain: one row, locked by whoever adds an entry. It only moves forward."""

    number = models.BigIntegerField(default=0)  # of the last entry
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.number}"
