"""Every address of the product."""

from django.urls import URLPattern, URLResolver, path

from board.lazy import lazily
from board.views import (
    accounts,
    approvals,
    audit,
    boards,
    card_acts,
    cards,
    events,
    health,
    inbox,
    instructions,
    me,
    policies,
    project_approvals,
    project_settings,
    projects,
    reports,
    settings,
    team,
    workers,
)

handler400 = "board.views.errors.bad_request"
handler403 = "board.views.errors.forbidden"
handler404 = "board.views.errors.not_found"
handler500 = "board.views.errors.broken"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", projects.list_all, name="projects"),
    path("healthz", health.show, name="healthz"),
    path("signin/", accounts.sign_in, name="signin"),
    path("signout/", accounts.sign_out, name="signout"),
    path("setup/<str:token>/", accounts.set_up, name="setup"),
    path("join/<str:token>/", accounts.join, name="join"),
    path("welcome/", settings.welcome, name="welcome"),
    path("rehearsal/", projects.rehearse, name="rehearsal"),
    path("projects/new/", projects.create, name="new_project"),
    path("p/<str:key>/", boards.show, name="board"),
    path("p/<str:key>/cards/new/", cards.create, name="new_card"),
    path("p/<str:key>/lanes/<int:column_id>/", boards.lane, name="lane"),
    path("p/<str:key>/archive/", boards.archive, name="archived"),
    path("p/<str:key>/events/", events.poll, name="events"),
    path("cards/<str:ref>/", cards.show, name="card"),
    path("cards/<str:ref>/edit/", cards.edit, name="edit_card"),
    *(
        path(f"cards/<str:ref>/{tab}/", cards.show, {"tab": tab}, name=f"card_{tab}")
        for tab in ("run", "changes", "history")
    ),
    *(
        path(f"cards/<str:ref>/{verb}/", card_acts.act, {"verb": verb}, name=f"card_{verb}")
        for verb in card_acts.ACTS
    ),
    path("p/<str:key>/settings/", project_settings.edit, name="project_settings"),
    path("p/<str:key>/settings/archive/", project_settings.archive, name="archive_project"),
    path("p/<str:key>/settings/approvals/", project_approvals.edit, name="project_approvals"),
    path("p/<str:key>/settings/instructions/", instructions.show, name="instructions"),
    path(
        "p/<str:key>/settings/instructions/<int:instruction_id>/trust/",
        instructions.trust,
        name="trust_instructions",
    ),
    path(
        "p/<str:key>/settings/instructions/<int:instruction_id>/withdraw/",
        instructions.withdraw,
        name="withdraw_instructions",
    ),
    path("p/<str:key>/settings/webhook/", project_approvals.set_webhook, name="set_webhook"),
    path(
        "p/<str:key>/settings/webhook/remove/",
        project_approvals.remove_webhook,
        name="remove_webhook",
    ),
    path("p/<str:key>/reports/", reports.show, name="reports"),
    path("p/<str:key>/columns/", project_settings.add_column, name="add_column"),
    path("p/<str:key>/columns/<int:column_id>/", project_settings.change_column, name="column"),
    path("p/<str:key>/local-files/", project_settings.set_local_files, name="local_files"),
    path("p/<str:key>/container/", project_settings.set_sandbox, name="container"),
    path("p/<str:key>/container/try/", project_settings.try_sandbox, name="try_container"),
    path("p/<str:key>/network/", project_settings.set_network, name="network"),
    path("p/<str:key>/fetch/", projects.fetch, name="fetch"),
    path("p/<str:key>/team/", team.show, name="team"),
    path("p/<str:key>/team/invite/", team.invite, name="invite"),
    path("p/<str:key>/team/<int:membership_id>/role/", team.change_role, name="change_role"),
    path("p/<str:key>/team/<int:membership_id>/remove/", team.remove, name="remove_member"),
    path(
        "p/<str:key>/team/invitations/<int:invitation_id>/withdraw/",
        team.withdraw,
        name="withdraw_invitation",
    ),
    path("approvals/", inbox.inbox, name="approvals"),
    path("approvals/answer/", inbox.answer_all, name="answer_all"),
    path("approvals/answered/", approvals.answered, name="answered"),
    path("approvals/waiting/", approvals.waiting, name="waiting"),
    path("approvals/<int:approval_id>/", approvals.show, name="approval"),
    path("approvals/<int:approval_id>/look/", approvals.look, name="look"),
    path("approvals/<int:approval_id>/decide/", approvals.decide, name="decide"),
    path("policy/", policies.show, name="policy"),
    path("policy/versions/", policies.versions, name="policy_versions"),
    path("p/<str:key>/policy/", policies.show, name="project_policy"),
    path("p/<str:key>/policy/versions/", policies.versions, name="project_policy_versions"),
    path("cards/<str:ref>/policy/", policies.show, name="card_policy"),
    path("cards/<str:ref>/policy/versions/", policies.versions, name="card_policy_versions"),
    path("workers/", workers.show, name="workers"),
    path("settings/", settings.show, name="settings"),
    path("settings/credential/", settings.set_credential, name="credential"),
    path("settings/credential/remove/", settings.remove_credential, name="remove_credential"),
    path("settings/audit/", audit.show, name="audit"),
    path("settings/audit/export/", audit.export, name="audit_export"),
    path("me/", me.show, name="me"),
    path("me/appearance/", me.set_appearance, name="appearance"),
    path("me/notices/", me.set_notices, name="notices"),
    path("me/password/", me.change_password, name="password"),
    path("me/tokens/", me.create_token, name="create_token"),
    path("me/tokens/<int:token_id>/revoke/", me.revoke_token, name="revoke_token"),
    lazily("api/v1/", "board.api.urls", app_name="api"),
]
