"""The machines' workers, and leadership among them."""

import uuid

from django.db import models


class Worker(models.Model):
    """One start of a worker process. Its identity is random for each start, never a pid or host name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=20)
    slots = models.PositiveSmallIntegerField()
    busy = models.PositiveSmallIntegerField(default=0)
    sandbox = models.CharField(max_length=12)  # bubblewrap, landlock, none or broken
    sandbox_message = models.TextField(blank=True)  # why it is not the best level
    lag_ms = models.PositiveIntegerField(default=0)  # how late its event loop wakes
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["-heartbeat_at"], name="worker_heartbeat")]

    def __str__(self) -> str:
        return f"{self.host} {self.id}"


class LeaderLease(models.Model):
    """Who fires the housekeeping now. One row for each name."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.UUIDField(null=True, blank=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
