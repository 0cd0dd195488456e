"""The forms of the pages: what may be sent, and its types. What the values mean is checked by the actions."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest

from board.errors import BoardError
from board.states import Lane, Role

MONO = {"class": "input input--mono", "spellcheck": "false", "autocapitalize": "off"}
LANES = [(lane.value, lane.value.capitalize()) for lane in Lane]
ROLES = [(role.value, role.value.capitalize()) for role in Role]


class BoardForm(forms.Form):
    """A form whose refusals by an action stand beside the fields that they are about."""

    use_required_attribute = False  # our words instead of the browser's, and after a try only

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.HiddenInput):
                field.widget.attrs.setdefault("class", "input")

    def refuse(self, error: BoardError) -> None:
        """Show what an action said: beside its fields, or above the form."""
        for name, text in error.fields.items():
            if name in self.fields:
                self.add_error(name, text)
        if not any(name in self.fields for name in error.fields):
            self.add_error(None, error.message)


class ProjectSettingsForm(BoardForm):
    """What may change in a project; the address has a form of its own, and the short name stays."""

    name = forms.CharField(max_length=120, required=False, label="Name")
    target_branch = forms.CharField(
        max_length=200,
        required=False,
        label="Branch that cards merge into",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off"}),
        help_text="Empty: the repository's own default branch.",
    )
    setup_command = forms.CharField(
        max_length=4000,
        required=False,
        label="Set-up command",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off"}),
        help_text="Runs once in each fresh workspace, before the agent starts.",
    )
    max_parallel = forms.IntegerField(
        initial=3,
        label="Agents at once",
        widget=forms.NumberInput(attrs={"min": 1, "max": 50}),
        error_messages={"invalid": "A number from 1 to 50.", "required": "A number from 1 to 50."},
    )
    model = forms.CharField(
        max_length=80,
        required=False,
        label="Model",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off"}),
    )
    auto_merge = forms.BooleanField(
        required=False,
        label="Merge without asking",
        help_text="Work that passes its checks goes straight to the branch. Without this, a person merges.",
        widget=forms.CheckboxInput(attrs={"class": "switch"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["model"].help_text = f"Empty: the installation's, {settings.DEFAULT_MODEL}."


class ContainerForm(BoardForm):
    """The sandbox of a project's agents."""

    engine = forms.ChoiceField(
        required=False,
        label="Where commands run",
        choices=[
            ("", "The worker's own sandbox"),
            ("podman", "A container of podman"),
            ("docker", "A container of Docker"),
        ],
    )
    image = forms.CharField(
        required=False,
        max_length=255,
        label="Image",
        widget=forms.TextInput(attrs={**MONO, "placeholder": "localhost/agents:3"}),
        help_text=(
            "It must be on each worker's machine already, with bash, git and your tools. It is never fetched from here."
        ),
    )


class NetworkForm(BoardForm):
    """Hosts, one on each line."""

    hosts = forms.CharField(
        required=False,
        max_length=15_000,
        label="Hosts that agents may reach",
        widget=forms.Textarea(attrs={**MONO, "rows": 3, "placeholder": "docs.example.org"}),
        help_text=(
            "One whole name on each line. Empty: no network. Reading over http, and https with all that it"
            " carries: what is sent to such a host cannot be seen, so list only hosts that you would let it have."
        ),
    )


class ProjectForm(ProjectSettingsForm):
    """What a project is made of."""

    key = forms.CharField(
        max_length=10,
        required=False,
        label="Short name",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off", "data-key": ""}),
        help_text="Two to ten letters and digits. Every card gets it: BIL-47.",
    )
    repository = forms.CharField(
        max_length=2000,
        required=False,
        label="Repository",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off"}),
        help_text="The path of a git repository on this server, or its URL.",
    )


class FetchForm(BoardForm):
    """Try the fetch again, perhaps from another address."""

    repository = forms.CharField(
        max_length=2000,
        required=False,
        label="Address",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off"}),
    )
    create_first_commit = forms.BooleanField(required=False)


class ColumnForm(BoardForm):
    """A column's name and the most cards in it."""

    name = forms.CharField(max_length=60, required=False, label="Name")
    limit = forms.IntegerField(
        required=False,
        label="Limit",
        widget=forms.NumberInput(attrs={"min": 1, "max": 999, "placeholder": "none"}),
        error_messages={"invalid": "A number, or nothing."},
    )


class NewColumnForm(BoardForm):
    """A further column of a lane."""

    name = forms.CharField(max_length=60, required=False, label="Name")
    lane = forms.ChoiceField(choices=LANES, label="Lane")


class ApprovalRulesForm(BoardForm):
    """Who may approve in a project, and how long a question waits."""

    second_approver = forms.BooleanField(
        required=False,
        label="Two people for critical calls",
        help_text="Privilege, publishing, secrets, rewriting shared history: two different people approve.",
        widget=forms.CheckboxInput(attrs={"class": "switch"}),
    )
    not_own_card = forms.BooleanField(
        required=False,
        label="Not your own card",
        help_text="Who wrote or changed a card, or queued it, may not approve its calls. Denying is always allowed.",
        widget=forms.CheckboxInput(attrs={"class": "switch"}),
    )
    overdue_minutes = forms.IntegerField(
        label="Overdue after",
        widget=forms.NumberInput(attrs={"min": 1}),
        help_text="Minutes. Then it is marked, and whoever is told about questions gets one reminder.",
        error_messages={"invalid": "A number of minutes.", "required": "A number of minutes."},
    )
    expiry_minutes = forms.IntegerField(
        required=False,
        label="Expires after",
        widget=forms.NumberInput(attrs={"min": 1, "placeholder": "never"}),
        help_text="Minutes. Then the call is not run, and the agent knows that nobody answered.",
        error_messages={"invalid": "A number of minutes, or nothing."},
    )


class WebhookForm(BoardForm):
    """Where a project's questions are announced."""

    url = forms.CharField(
        max_length=2000,
        required=False,
        label="Address",
        widget=forms.TextInput(
            attrs={**MONO, "autocomplete": "off", "inputmode": "url", "placeholder": "https://"}
        ),
    )
    allows_private = forms.BooleanField(
        required=False,
        label="It may be in a private network, or use http://",
        widget=forms.CheckboxInput(attrs={"class": "box"}),
    )


class InviteForm(BoardForm):
    """Whom to invite, as what."""

    email = forms.CharField(
        max_length=254,
        required=False,
        label="E-mail",
        widget=forms.EmailInput(attrs={"autocomplete": "off", "placeholder": "ann@example.org"}),
    )
    role = forms.ChoiceField(choices=ROLES, initial=Role.MEMBER.value, label="Role")


class PersonForm(BoardForm):
    """A new person: the first owner, or somebody with an invitation."""

    name = forms.CharField(
        max_length=120,
        required=False,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "name", "class": "input input--l"}),
    )
    email = forms.CharField(
        max_length=254,
        required=False,
        label="E-mail",
        widget=forms.EmailInput(attrs={"autocomplete": "email", "class": "input input--l"}),
    )
    password = forms.CharField(
        max_length=1000,
        required=False,
        strip=False,
        label="Password",
        help_text="At least 10 characters. A sentence is good.",
        widget=forms.PasswordInput(
            attrs={"autocomplete": "new-password", "class": "input input--l"}
        ),
    )


class PasswordForm(BoardForm):
    """A new password, proved with the old one."""

    current = forms.CharField(
        max_length=1000,
        required=False,
        strip=False,
        label="Password now",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        max_length=1000,
        required=False,
        strip=False,
        label="New password",
        help_text="At least 10 characters. Your other sessions end.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class CredentialForm(BoardForm):
    """The key to the model provider. It is never sent back to a browser."""

    api_key = forms.CharField(
        max_length=500,
        required=False,
        label="API key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "class": "input input--mono"}),
        help_text="Kept encrypted, given to workers only, and never shown again.",
    )
    base_url = forms.CharField(
        max_length=500,
        required=False,
        label="Address of the API",
        widget=forms.TextInput(attrs={**MONO, "autocomplete": "off", "inputmode": "url"}),
        help_text="Empty: Anthropic. Any server that speaks the Messages API will do.",
    )
    header = forms.ChoiceField(
        choices=[("bearer", "Authorization: Bearer"), ("x-api-key", "x-api-key")],
        label="How the key is sent",
        help_text="Most servers take either; older and local ones want x-api-key.",
    )


def sent(request: HttpRequest, name: str) -> str:
    """Return one posted value as text."""
    return str(request.POST.get(name, ""))
