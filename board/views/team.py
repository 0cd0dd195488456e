"""Who is in a project, as what, and who is invited."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from board.access import get_project, get_role
from board.actions import invitations, projects
from board.errors import BoardError
from board.forms import ROLES, InviteForm, sent
from board.models import Invitation, Membership, Project, User
from board.states import Role
from board.views.people import person


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """Show the members, and to owners the invitations."""
    user = person(request)
    return _page(request, get_project(user, key), user, form=InviteForm())


@require_POST
@sensitive_variables("token")
def invite(request: HttpRequest, key: str) -> HttpResponse:
    """Make an invitation and show its link, this once."""
    user = person(request)
    project = get_project(user, key, role=Role.OWNER)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _page(request, project, user, form=form)
    email, role = form.cleaned_data["email"], Role(form.cleaned_data["role"])
    try:
        token = projects.invite(project, by=user, email=email, role=role)
    except BoardError as error:
        form.refuse(error)
        return _page(request, project, user, form=form)
    link = request.build_absolute_uri(reverse("join", args=[token]))
    return _page(request, project, user, form=InviteForm(), link=link, invited=email)


@require_POST
def change_role(request: HttpRequest, key: str, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    user = person(request)
    membership = _member(user, key, membership_id, own_too=False)
    role = sent(request, "role")
    if role not in dict(ROLES):
        raise Http404
    projects.set_role(membership, by=user, role=Role(role))
    messages.success(request, f"{membership.user} is a {role} now.")
    return redirect("team", key=key)


@require_POST
def remove(request: HttpRequest, key: str, membership_id: int) -> HttpResponse:
    """Take a member out of the project."""
    user = person(request)
    membership = _member(user, key, membership_id, own_too=True)
    projects.remove_member(membership, by=user)
    if membership.user_id == user.pk:
        messages.success(request, f"You left {membership.project.name}.")
        return redirect("projects")
    messages.success(request, f"{membership.user} is no longer a member.")
    return redirect("team", key=key)


@require_POST
def withdraw(request: HttpRequest, key: str, invitation_id: int) -> HttpResponse:
    """Make an invitation worthless."""
    user = person(request)
    project = get_project(user, key, role=Role.OWNER)
    invitation = Invitation.objects.filter(project=project, pk=invitation_id).first()
    if invitation is None:
        raise Http404
    invitations.withdraw_invitation(invitation, by=user)
    messages.success(request, f"The link for {invitation.email} no longer works.")
    return redirect("team", key=key)


def _member(user: User, key: str, membership_id: int, *, own_too: bool) -> Membership:
    """Return a membership that the person may change: an owner any; with `own_too` everyone their own."""
    project = get_project(user, key)
    membership = (
        Membership.objects.select_related("user", "project")
        .filter(project=project, pk=membership_id)
        .first()
    )
    if membership is None:
        raise Http404
    if not (own_too and membership.user_id == user.pk):
        get_project(user, key, role=Role.OWNER)
    return membership


def _page(
    request: HttpRequest,
    project: Project,
    user: User,
    *,
    form: InviteForm,
    link: str = "",
    invited: str = "",
) -> HttpResponse:
    role = get_role(user, project.pk)
    context = {
        "project": project,
        "place": "board",
        "tab": "team",
        "role": role,
        "may_change": role == Role.OWNER,
        "members": project.memberships.select_related("user").order_by("pk"),
        "invitations": invitations.list_invitations(project) if role == Role.OWNER else [],
        "roles": ROLES,
        "form": form,
        "link": link,
        "invited": invited,
        "me": user,
    }
    status = 422 if form.errors else 201 if link else 200
    return render(request, "projects/team.html", context, status=status)
