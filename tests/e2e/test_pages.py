"""Every screen but the board in a real browser: no fault of access, policy or console; and what scripts add."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
)

from tests.e2e.browser import LOOKS, SIGN_IN, faults
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.one_database, pytest.mark.timeout(400)]

PASSWORD = "a long enough password"
# Alice owns everything, Bob is a member, Vera a viewer; four questions wait, two are answered.
WORLD = """
import json
from board.actions import accounts, approvals, cards, errands, projects, runs, workers
from board.actions.claims import claim_next
from board.actions.instructions import note_instructions, trust_instruction
from board.models import Approval, Membership, User, Worker
from board.states import Role

alice = User.objects.get(email="alice@example.org")
alice.set_password("PASSWORD"); alice.name = "Alice"; alice.save()
bob, vera = (
    User.objects.create_user(email=f"{name.lower()}@example.org", password="PASSWORD", name=name)
    for name in ("Bob", "Vera")
)
machines = [
    Worker(host="mill", pid=1, version="0", slots=9, sandbox="bubblewrap", busy=2),
    Worker(host="a-machine-with-quite-a-long-name.local", pid=2, version="0", slots=2, sandbox="none"),
]
for machine in machines:
    workers.register_worker(machine)

def project(key, name):
    made = projects.create_project(by=alice, key=key, name=name, repository=f"/srv/{key.lower()}")
    errand = errands.claim_errand(machines[0].pk)
    projects.finish_fetch(errand, fence=errand.fence, target_branch="main")
    Membership.objects.create(project=made, user=bob, role=Role.MEMBER)
    Membership.objects.create(project=made, user=vera, role=Role.VIEWER)
    return made

def ask(made, call, facts=None, effects=()):
    card = cards.create_card(made, by=alice, title="A card that needs a person", checks=["true"])
    cards.queue_card(card, by=alice)
    claim = claim_next(machines[0].pk, agent="agent-3", with_credential=True)
    runs.begin_work(claim.run_id, claim.fence, branch=f"cards/{card.ref}-1", base_sha="0" * 40)
    question = approvals.Question(
        call_id="c", tool="bash" if "command" in call else "write_file", input=call, rule="A9",
        reasons=["Rewrites shared history.", "Talks to the network."], digest="d",
        facts=facts or {}, effects=effects, sandbox="bubblewrap")
    made = approvals.request_approval(claim.run_id, claim.fence, question, seq=None, active_seconds=0)
    return Approval.objects.select_related("run").get(pk=made.pk)

bills, web = project("BIL", "Billing service"), project("WEB", "دفتر الأستاذ")
note_instructions(bills.pk, "AGENTS.md", "# How to work here\\n\\n- Build with `make -j2`.\\n" + "- A long line. " * 40)
trust_instruction(note_instructions(web.pk, "CLAUDE.md", "Use tabs.\\u202e"), by=alice)
full = ask(bills, {"command": "./squash.sh 0031 && git push -f"}, effects=[{"argv": ["git", "push", "-f"]}],
    facts={"cwd": "/w/BIL-1", "paths": {"squash.sh": "/home/x/squash.sh"}, "scripts": {"squash.sh": "91b0" * 16}})
short = [ask(bills, {"command": f"uv add package-{number}"}) for number in range(4)]
hidden = ask(web, {"command": "cat build\\u202e/.env " + "a" * 300})
file = ask(web, {"path": "deploy.sh", "content": "#!/bin/sh\\nrm -rf /srv/www\\n"})
for answer in (True, False):
    done = ask(web, {"command": "docker compose pull"})
    approvals.decide(done, by=bob, role=Role.MEMBER, approve=answer, comment="Use the package.")
fetching = projects.create_project(by=alice, key="DES", name="Design tokens and all " * 5, repository="/d")
projects.note_fetch_progress(fetching.pk, percent=33, message="Receiving objects: 33%")
empty = projects.create_project(by=alice, key="EMP", name="Empty", repository="/e")
while (errand := errands.claim_errand(machines[0].pk)).project_id != empty.pk:
    pass
projects.fail_fetch(errand, fence=errand.fence, message="It has no commit yet.", code="no_commits")
print(json.dumps({
    "sessions": {user.name: sign_in(user) for user in (alice, bob, vera)},
    "full": full.pk, "short": [each.pk for each in short], "hidden": hidden.pk, "file": file.pk, "done": done.pk,
    "token": accounts.create_token(alice, name="ci-import"),
    "join": projects.invite(bills, by=alice, email="new@example.org", role=Role.VIEWER)}))
""".replace("PASSWORD", PASSWORD)

OWNER_LINK = """
from board.actions import accounts
from board.models import User
User.objects.update(is_owner=False)
print(accounts.create_owner_link())
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with Product(tmp_path_factory.mktemp("pages"), None, workers=0) as product:
        yield product


@pytest.fixture(scope="module")
def world(product: Product) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        product.manage("shell", "--no-imports", "-c", SIGN_IN + WORLD)
    )
    return made


class Visitors:
    """Opens browsers, signs people in, and fails a test that leaves a complaint in a console."""

    def __init__(self, product: Product, chromium: Browser, sessions: dict[str, str]) -> None:
        self._product, self._chromium, self._sessions = product, chromium, sessions
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def __call__(self, who: str = "", **options: Any) -> Page:
        context = self._chromium.new_context(base_url=self._product.url, **options)
        self._contexts.append(context)
        if who:  # with a session: the check of a password takes half a second of the processor
            session = self._sessions[who.title()]
            url = self._product.url
            context.add_cookies([{"name": "pullcord_session", "value": session, "url": url}])
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._hear)
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        # A refusal is an answer of ours with its own status; Chromium lists every one of those.
        if message.type in {"error", "warning"} and "status of 4" not in message.text:
            self.problems.append(message.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        assert self.problems == []


@pytest.fixture
def visit(product: Product, world: dict[str, Any], chromium: Browser) -> Iterator[Visitors]:
    visitors = Visitors(product, chromium, world["sessions"])
    yield visitors
    visitors.close()


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_screen_is_accessible_and_keeps_the_policy(
    visit: Visitors, world: dict[str, Any], width: int, height: int, scheme: str
):
    look = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    questions = [f"/approvals/{world[name]}/" for name in ("full", "hidden", "file", "done")]
    tours = {
        "": ["/signin/", f"/join/{world['join']}/", "/nowhere/"],
        "alice": [
            "/", "/projects/new/", "/p/BIL/settings/", "/p/BIL/settings/instructions/",
            "/p/WEB/settings/instructions/", "/p/EMP/settings/", "/p/BIL/team/", "/approvals/",
            "/approvals/answered/", *questions, "/workers/", "/settings/", "/settings/audit/",
            "/welcome/", "/me/",
        ],
        "vera": ["/p/DES/settings/", "/p/BIL/settings/", "/p/BIL/settings/instructions/",
                 "/approvals/", questions[0], "/settings/"],
    }  # fmt: skip
    found: dict[str, list[str]] = {}
    for who, addresses in tours.items():
        page = visit(who, **look)
        for address in addresses:
            page.goto(address)
            found[f"{who} {address}"] = faults(page)
    assert {where: what for where, what in found.items() if what} == {}


def test_who_signs_in_sees_the_projects(visit: Visitors):
    page = visit()
    page.goto("/signin/")
    page.get_by_label("E-mail").fill("alice@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()


def test_refusals_stand_beside_their_fields(visit: Visitors):
    page = visit("alice")
    page.goto("/projects/new/")
    page.get_by_label("Repository").fill("https://git.example.org/tools/Web-site.git")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Web site")
    expect(page.get_by_label("Short name")).to_have_value("WS")
    page.get_by_label("Short name").fill("WEB")
    page.get_by_role("button", name="Create the project").click()
    key = page.get_by_label("Short name")
    expect(key).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#id_key_error")).to_have_text("This key is taken.")
    assert faults(page) == []


def test_an_answer_in_one_browser_is_seen_in_another(visit: Visitors, world: dict[str, Any]):
    question = world["short"][0]
    alice, bob = visit("alice"), visit("bob")
    alice.goto(f"/approvals/{question}/")
    waiting = int(alice.locator("[data-waiting-count]").inner_text())  # other tests answer some
    expect(alice).to_have_title(f"({waiting}) agent-3 wants to run a command · Pullcord")
    bob.goto("/approvals/")
    bob.locator(f"#question-{question}").get_by_role("button", name="Approve once").click()
    expect(bob.locator(".toast")).to_contain_text("You approved this once. agent-3 goes on.")
    expect(bob.locator(f"#question-{question}")).to_have_count(0)
    expect(alice.locator("article")).to_contain_text("Bob approved this once", timeout=20_000)
    expect(alice.get_by_role("button", name="Approve once")).to_have_count(0)
    expect(alice.locator("[data-waiting-count]")).to_have_text(str(waiting - 1))
    expect(alice).to_have_title(f"({waiting - 1}) agent-3 wants to run a command · Pullcord")


def test_a_question_is_answered_by_keys_only_while_it_has_the_focus(
    visit: Visitors, world: dict[str, Any]
):
    page = visit("bob")
    page.goto("/approvals/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_url(re.compile(r"/approvals/\d+/$"))
    page.goto(f"/approvals/{world['short'][1]}/")
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve once")).to_be_visible()
    page.keyboard.press("d")
    page.keyboard.type("a reason with an a")
    page.get_by_label("Do it another way.").check()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve once")).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator(".toast")).to_contain_text("You approved this for the whole run.")


def test_an_edited_command_is_approved_and_told(visit: Visitors, world: dict[str, Any]):
    page = visit("bob")
    page.goto(f"/approvals/{world['short'][2]}/")
    page.get_by_label("Edit, then approve").fill("uv add package --dry-run")
    page.get_by_role("button", name="Approve my edit").click()
    page.goto(f"/approvals/{world['short'][2]}/")
    expect(page.locator("article")).to_contain_text("What was approved instead")
    expect(page.locator("article")).to_contain_text("uv add package --dry-run")


def test_the_pages_work_without_scripts(visit: Visitors, world: dict[str, Any]):
    page = visit("alice", java_script_enabled=False)
    page.goto(f"/approvals/{world['short'][3]}/")
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".toast")).to_contain_text("You denied this.")
    page.goto("/p/BIL/team/")
    page.get_by_label("Role of Vera").select_option("viewer")
    page.locator("tr", has_text="vera@").get_by_role("button", name="Set").click()
    expect(page.locator(".toast")).to_contain_text("Vera is a viewer now.")
    page.goto("/me/")
    expect(page.get_by_role("button", name="Save the looks")).to_be_visible()


def test_a_theme_is_shown_at_once_and_stays(visit: Visitors):
    page = visit("bob", color_scheme="light")
    page.goto("/me/")
    with page.expect_response("**/me/appearance/"):
        page.get_by_text("Dark", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert faults(page) == []


def test_what_cannot_be_taken_back_is_asked_first(visit: Visitors):
    page = visit("alice")
    page.goto("/p/BIL/team/")
    row = page.locator("tr", has_text="bob@")
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_contain_text("Remove Bob from Billing service?")
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row).to_be_visible()
    page.goto("/me/")
    page.get_by_placeholder("What uses it").fill("short-lived")
    page.get_by_role("button", name="Make a token").click()
    assert page.get_by_label("New token").input_value().startswith("pc_")
    assert faults(page) == []
    page.locator(".setting", has_text="short-lived").get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".setting", has_text="short-lived")).to_have_count(0)


def test_the_owner_link_leads_through_the_first_steps(visit: Visitors, product: Product):
    token = product.manage("shell", "--no-imports", "-c", OWNER_LINK).strip()
    page = visit()
    page.goto(f"/setup/{token}/")
    assert faults(page) == []
    page.get_by_label("Name").fill("Olga")
    page.get_by_label("E-mail").fill("olga@example.org")
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#id_password_error")).to_be_visible()
    assert faults(page) == []
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Two steps left")).to_be_visible()
    page.get_by_label("API key").fill("sk-ant-0123456789")
    page.get_by_role("button", name="Store the key").click()
    expect(page.get_by_text("The key is stored. Workers use it from now on.").first).to_be_visible()
    assert faults(page) == []
    assert "sk-ant-0123456789" not in page.content()
    page.get_by_role("link", name="Skip to the projects").click()
    expect(page.get_by_role("heading", name="No project yet")).to_be_visible()
    assert faults(page) == []
