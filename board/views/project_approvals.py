"""A project's rules for approvals and its webhook: everyone in it reads them, maintainers change them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from board.access import get_project, get_role
from board.actions import hooks
from board.actions.approval_rules import ApprovalRules, set_approval_rules
from board.errors import BoardError
from board.forms import ApprovalRulesForm, WebhookForm
from board.models import Notice, Project, User, Webhook
from board.states import ROLE_ORDER, Role
from board.views.people import person

SENT_SHOWN = 5  # of the latest messages


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, key: str) -> HttpResponse:
    """Show the rules, or store them."""
    user = person(request)
    needed = Role.MAINTAINER if request.method == "POST" else Role.VIEWER
    project = get_project(user, key, role=needed)
    form = ApprovalRulesForm(request.POST or None, initial=_initial(project))
    if request.method == "POST" and form.is_valid():
        try:
            set_approval_rules(project, ApprovalRules(**form.cleaned_data), by=user)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, "The rules for approvals are saved.")
            return redirect("project_approvals", key=project.key)
    return _page(request, project, user, form=form)


@require_POST
def set_webhook(request: HttpRequest, key: str) -> HttpResponse:
    """Store where questions are announced."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            hooks.set_webhook(project, by=user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, "Questions are announced there from now on.")
            return redirect("project_approvals", key=project.key)
    return _page(request, project, user, webhook_form=form)


@require_POST
def remove_webhook(request: HttpRequest, key: str) -> HttpResponse:
    """Announce questions nowhere any more."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    hooks.remove_webhook(project, by=user)
    messages.success(request, "Questions are announced nowhere any more.")
    return redirect("project_approvals", key=project.key)


def _initial(project: Project) -> dict[str, object]:
    names = ("second_approver", "not_own_card", "overdue_minutes", "expiry_minutes")
    return {name: getattr(project, name) for name in names}


def _page(
    request: HttpRequest,
    project: Project,
    user: User,
    *,
    form: ApprovalRulesForm | None = None,
    webhook_form: WebhookForm | None = None,
) -> HttpResponse:
    hook = Webhook.objects.filter(project=project).first()
    may_change = ROLE_ORDER[get_role(user, project.pk)] >= ROLE_ORDER[Role.MAINTAINER]
    rules = form or ApprovalRulesForm(initial=_initial(project))
    told = {"url": hook.url, "allows_private": hook.allows_private} if hook else {}
    if not may_change:
        for field in rules.fields.values():
            field.disabled = True
    sent = Notice.objects.filter(approval__project=project, channel="webhook")
    refused = any(each is not None and each.is_bound for each in (form, webhook_form))
    context = {
        "project": project,
        "place": "board",
        "tab": "settings",
        "may_change": may_change,
        "may_allow_private": user.is_owner,
        "form": rules,
        "webhook_form": webhook_form or WebhookForm(initial=told),
        "hook": hook,
        "secret": hooks.secret_of(hook) if hook and may_change else "",
        "sent": sent.select_related("approval__run__card__project").order_by("-created_at")[
            :SENT_SHOWN
        ],
    }
    return render(request, "projects/approvals.html", context, status=422 if refused else 200)
