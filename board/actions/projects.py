"""Projects, their columns and their members."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from board import bus, events
from board.actions import audit
from board.actions.audit import Act
from board.actions.cleaning import check_folder_right, clean_column, clean_project
from board.actions.errands import end_errand, queue_errand
from board.actions.placement import lock_columns
from board.actions.tokens import hash_token, new_token
from board.addresses import without_sign_in
from board.errors import NotAllowedError, TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Column, Errand, Invitation, Membership, Project, User
from board.states import ErrandKind, ErrandStatus, Lane, ProjectState, Role

COLUMNS = [
    ("Backlog", Lane.BACKLOG),
    ("Queued", Lane.QUEUED),
    ("Running", Lane.RUNNING),
    ("Review", Lane.REVIEW),
    ("Merging", Lane.MERGING),
    ("Done", Lane.DONE),
]
SETTINGS = ("name", "setup_command", "max_parallel", "auto_merge", "model", "target_branch")
INVITATION_LASTS = timedelta(days=7)
MAX_ADDRESS = 254  # characters of an e-mail address, RFC 5321


def create_project(
    *,
    by: User,
    key: str,
    name: str,
    repository: str,
    target_branch: str = "",
    setup_command: str = "",
    max_parallel: int = 3,
    auto_merge: bool = False,
    model: str = "",
    create_first_commit: bool = False,
    is_rehearsal: bool = False,
) -> Project:
    """Add a project with its board, make `by` its owner, and ask a worker to fetch the repository."""
    values = clean_project(
        {
            "key": key,
            "name": name or key,
            "repository": repository,
            "target_branch": target_branch,
            "setup_command": setup_command,
            "max_parallel": max_parallel,
            "auto_merge": auto_merge,
            "model": model,
        }
    )
    if not is_rehearsal:  # its folder is ours
        check_folder_right(values["repository"], by=by)
    try:
        with transaction.atomic():
            project = Project.objects.create(
                created_by=by, is_rehearsal=is_rehearsal, message="Waiting for a worker", **values
            )
            Membership.objects.create(project=project, user=by, role=Role.OWNER)
            Column.objects.bulk_create(
                Column(project=project, name=title, lane=lane, position=position)
                for position, (title, lane) in enumerate(COLUMNS)
            )
            _ask_for_fetch(project, by=by, create_first_commit=create_first_commit)
            publish(project.pk, events.ProjectChanged(what="created"), by=Actor.person(by))
            _record("project_made", project, by=by, **values)
    except IntegrityError as error:
        raise ValidationError(
            f"There is already a project with the key {values['key']}. Choose another.",
            fields={"key": "This key is taken."},
        ) from error
    return project


def update_project(project: Project, *, by: User, **values: Any) -> None:
    """Change a project's settings (see SETTINGS); another target branch is checked by a new fetch."""
    cleaned = clean_project({name: value for name, value in values.items() if name in SETTINGS})
    changed = {name: value for name, value in cleaned.items() if getattr(project, name) != value}
    if not changed:
        return
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(**changed)
        if "target_branch" in changed:
            _ask_for_fetch(project, by=by)
        publish(project.pk, events.ProjectChanged(what="settings"), by=Actor.person(by))
        _record("project_settings", project, by=by, **changed)
    project.refresh_from_db()


def fetch_again(
    project: Project, *, by: User, create_first_commit: bool = False, repository: str = ""
) -> None:
    """Try the fetch again, of `repository` if the first address was wrong."""
    if (
        project.state == ProjectState.FETCHING
        and project.errands.filter(
            kind=ErrandKind.FETCH, status__in=[ErrandStatus.QUEUED, ErrandStatus.RUNNING]
        ).exists()
    ):
        raise TransitionError("The repository is being fetched already.")
    changed = clean_project({"repository": repository}) if repository.strip() else {}
    if changed:
        check_folder_right(changed["repository"], by=by)
    with transaction.atomic():
        if changed:
            Project.objects.filter(pk=project.pk).update(**changed)
        _ask_for_fetch(project, by=by, create_first_commit=create_first_commit)
        publish(project.pk, events.ProjectChanged(what="fetch"), by=Actor.person(by))
        if changed:
            _record("repository_changed", project, by=by, **changed)
    project.refresh_from_db()


def _ask_for_fetch(project: Project, *, by: User, create_first_commit: bool = False) -> None:
    Project.objects.filter(pk=project.pk).update(
        state=ProjectState.FETCHING, progress=0, message="Waiting for a worker"
    )
    queue_errand(
        ErrandKind.FETCH,
        project,
        requested_by=by,
        options={"create_first_commit": create_first_commit},
    )


def note_fetch_progress(project_id: int, *, percent: int, message: str) -> None:
    """Show how far the fetch is. Not an event: an open page hears the doorbell and reads it."""
    Project.objects.filter(pk=project_id, state=ProjectState.FETCHING).update(
        progress=percent, message=message[:500]
    )
    bus.ring(bus.project_group(project_id))


def finish_fetch(errand: Errand, *, fence: int, target_branch: str) -> None:
    """Record that the hub is there; the project can be worked on."""
    with transaction.atomic():
        end_errand(errand, ErrandStatus.DONE, fence=fence)
        Project.objects.filter(pk=errand.project_id).update(
            state=ProjectState.READY, progress=100, message="", target_branch=target_branch
        )
        publish(errand.project_id, events.ProjectChanged(what="ready"), by=Actor.PULLCORD)


def fail_fetch(
    errand: Errand, *, fence: int, message: str, field: str = "repository", code: str = ""
) -> None:
    """Record why the repository cannot be used; `field` is the one to correct."""
    with transaction.atomic():
        end_errand(errand, ErrandStatus.FAILED, fence=fence, message=message)
        report_fetch_failure(errand.project_id, message)
        Errand.objects.filter(pk=errand.pk).update(
            options={**errand.options, "field": field, "code": code}
        )


def report_fetch_failure(project_id: int, message: str) -> None:
    """Show why the project cannot be worked on, inside the caller's transaction."""
    Project.objects.filter(pk=project_id).update(state=ProjectState.ERROR, message=message)
    publish(project_id, events.ProjectChanged(what="error"), by=Actor.PULLCORD)


def set_column(column: Column, *, by: User, name: str, limit: int | None) -> None:
    """Rename a column and set its limit (None: no limit)."""
    title = clean_column(name, limit)
    with transaction.atomic():
        Column.objects.filter(pk=column.pk).update(name=title, limit=limit)
        publish(column.project_id, events.ProjectChanged(what="columns"), by=Actor.person(by))


def add_column(project: Project, *, by: User, name: str, lane: Lane) -> Column:
    """Add a column behind the last one of its lane."""
    title = clean_column(name)
    with transaction.atomic():
        lock_columns(project.columns.values_list("pk", flat=True))
        Project.objects.select_for_update().get(pk=project.pk)
        last = Column.objects.filter(project=project, lane=lane).last()
        position = last.position + 1 if last else Column.objects.filter(project=project).count()
        Column.objects.filter(project=project, position__gte=position).update(
            position=F("position") + 1
        )
        column = Column.objects.create(project=project, name=title, lane=lane, position=position)
        publish(project.pk, events.ProjectChanged(what="columns"), by=Actor.person(by))
    return column


def invite(project: Project, *, by: User, email: str, role: Role) -> str:
    """Return the secret of a single-use invitation for `email`; it is stored as a hash only."""
    address = email.strip().lower()
    if "@" not in address or len(address) > MAX_ADDRESS:
        raise ValidationError(
            "An e-mail address, such as ann@example.org.", fields={"email": "Check this."}
        )
    if Membership.objects.filter(project=project, user__email=address).exists():
        raise ValidationError(
            f"{address} is a member already.", fields={"email": "Already a member."}
        )
    token = new_token()
    with transaction.atomic():
        Invitation.objects.create(
            project=project,
            email=address,
            role=role,
            token_hash=hash_token(token),
            invited_by=by,
            expires_at=Now() + INVITATION_LASTS,
        )
        _record("invitation_made", project, by=by, email=address, role=role.value)
    return token


def accept_invitation(invitation: Invitation, *, user: User) -> None:
    """Make `user` a member as the invitation says; it works once."""
    with transaction.atomic():
        used = Invitation.objects.filter(
            pk=invitation.pk, used_at__isnull=True, expires_at__gt=Now()
        )
        if not used.update(used_at=Now()):
            raise TransitionError("This invitation was used or has expired. Ask for a new one.")
        Membership.objects.get_or_create(
            project=invitation.project, user=user, defaults={"role": invitation.role}
        )
        publish(invitation.project_id, events.ProjectChanged(what="members"), by=Actor.person(user))
        _record("member_joined", invitation.project, by=user, role=invitation.role)


def set_role(membership: Membership, *, by: User, role: Role) -> None:
    """Change a member's role. The last owner stays one."""
    with transaction.atomic():
        _keep_an_owner(membership, leaves=role != Role.OWNER)
        Membership.objects.filter(pk=membership.pk).update(role=role)
        publish(membership.project_id, events.ProjectChanged(what="members"), by=Actor.person(by))
        who = {"member": str(membership.user), "member_id": membership.user_id}
        change = {"before": membership.role, "after": role.value}
        _record("role_changed", membership.project, by=by, **who, **change)
        transaction.on_commit(lambda: bus.ring(bus.user_group(membership.user_id)))


def remove_member(membership: Membership, *, by: User) -> None:
    """Take a person out of a project; their open pages close within seconds."""
    with transaction.atomic():
        _keep_an_owner(membership, leaves=True)
        user_id = membership.user_id
        who = {"member": str(membership.user), "member_id": membership.user_id}
        Membership.objects.filter(pk=membership.pk).delete()
        publish(membership.project_id, events.ProjectChanged(what="members"), by=Actor.person(by))
        _record("member_removed", membership.project, by=by, **who)
        transaction.on_commit(lambda: bus.ring(bus.user_group(user_id)))


def _keep_an_owner(membership: Membership, *, leaves: bool) -> None:
    Project.objects.select_for_update().get(pk=membership.project_id)
    others = Membership.objects.filter(project_id=membership.project_id, role=Role.OWNER)
    if leaves and not others.exclude(pk=membership.pk).exists():
        raise NotAllowedError("A project needs an owner. Make someone else an owner first.")


def archive_project(project: Project, *, by: User) -> None:
    """Take a project out of everyone's list. Nothing is deleted."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(archived_at=Now())
        publish(project.pk, events.ProjectChanged(what="archived"), by=Actor.person(by))
        _record("project_archived", project, by=by)


def _record(kind: str, project: Project, *, by: User, **data: Any) -> None:
    if "repository" in data:
        data["repository"] = without_sign_in(data["repository"])
    audit.record(Act(kind, Actor.person(by), project=project, data=data))
