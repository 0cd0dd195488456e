"""A project: a git repository, a board with columns, and its members."""

from django.db import models
from django.db.models import Q

from board.states import Lane, ProjectState, Role, ToolProfile


class Project(models.Model):
    """A board on a repository. `seq` numbers its events without gaps; `epoch` changes on restore."""

    key = models.CharField(max_length=10, unique=True)  # upper case letters and digits: BIL
    name = models.CharField(max_length=120)
    repository = models.TextField()  # a path or URL, as the person gave it
    target_branch = models.CharField(max_length=200, blank=True)  # "" until the hub is fetched
    setup_command = models.TextField(blank=True)
    # Names of files in the local repository, such as `.env`, that worktrees get a copy of.
    secret_files = models.JSONField(default=list, blank=True)
    # Hosts that commands in the best sandbox may reach, each as `board.hosts.normal` writes it.
    network_hosts = models.JSONField(default=list, blank=True)
    # Where agents' commands run; "" is the sandbox of the worker that has the card.
    container_engine = models.CharField(max_length=6, blank=True, default="", db_default="")
    container_image = models.CharField(max_length=255, blank=True, default="", db_default="")
    # What the last try has found: {"works", "message", "host", "at"}; {} before it.
    container_tried = models.JSONField(default=dict, blank=True)
    max_parallel = models.PositiveSmallIntegerField(default=3)  # runs that hold a slot at once
    auto_merge = models.BooleanField(default=False)
    # Two people for critical calls; and who wrote or queued a card may not approve its calls.
    second_approver = models.BooleanField(default=False, db_default=False)
    not_own_card = models.BooleanField(default=False, db_default=False)
    overdue_minutes = models.PositiveIntegerField(default=60, db_default=60)
    expiry_minutes = models.PositiveIntegerField(null=True, blank=True)  # null: a question waits
    model = models.CharField(max_length=80, blank=True)  # "" is the installation's default
    tool_profile = models.CharField(
        max_length=10, choices=[(one, one) for one in ToolProfile], default=ToolProfile.FULL
    )  # the most that any card of it may have
    is_rehearsal = models.BooleanField(default=False)
    state = models.CharField(
        max_length=10, choices=[(s, s) for s in ProjectState], default=ProjectState.FETCHING
    )
    message = models.TextField(blank=True)  # what is wrong, or how far the fetch is
    progress = models.PositiveSmallIntegerField(default=0)  # percent of the fetch
    seq = models.BigIntegerField(default=0)
    epoch = models.PositiveIntegerField(default=1)
    next_number = models.PositiveIntegerField(default=1)  # of the next card
    created_by = models.ForeignKey("board.User", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    members = models.ManyToManyField(
        "board.User", through="board.Membership", related_name="projects"
    )

    def __str__(self) -> str:
        return self.key


class Membership(models.Model):
    """One person's role in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey("board.User", on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=[(role, role.capitalize()) for role in Role])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_role_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.project_id}"


class Column(models.Model):
    """A column of the board; its lane says which status a card in it has."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="columns")
    name = models.CharField(max_length=60)
    lane = models.CharField(max_length=10, choices=[(lane, lane) for lane in Lane])
    position = models.PositiveSmallIntegerField()
    limit = models.PositiveSmallIntegerField(
        null=True, blank=True
    )  # most cards, people and workers

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(limit__isnull=True) | Q(limit__gt=0), name="limit_is_positive"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Label(models.Model):
    """A coloured word on cards."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(max_length=60)
    hue = models.PositiveSmallIntegerField(default=230)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="label_name_once")]

    def __str__(self) -> str:
        return self.name
