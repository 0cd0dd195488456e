"""Questions of agents in a real browser: all that a person sees, one answer to several, who looks, asking back."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import LOOKS, SIGN_IN, Tabs, faults, wait_until
from tests.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.one_database, pytest.mark.timeout(400)]

# Alice owns the project, Bob and Carol are members.
WORLD = (
    SIGN_IN
    + r"""
from board.actions import approvals, cards, endings, errands, journal, projects, runs, workers
from board.actions.claims import claim_next
from board.models import Approval, Membership, Project, Step, User, Worker
from board.states import Role

alice = User.objects.get(email="alice@example.org")
alice.name = "Alice"; alice.save()
bob, carol = (User.objects.create_user(email=f"{n.lower()}@example.org", name=n) for n in ("Bob", "Carol"))
machine = Worker(host="mill", pid=1, version="0", slots=9, sandbox="bubblewrap")
workers.register_worker(machine)
bills = projects.create_project(by=alice, key="BIL", name="Billing service", repository="/srv/bil")
errand = errands.claim_errand(machine.pk)
projects.finish_fetch(errand, fence=errand.fence, target_branch="main")
for person in (bob, carol):
    Membership.objects.create(project=bills, user=person, role=Role.MEMBER)
Project.objects.update(second_approver=True, max_parallel=50)

def begin():
    card = cards.create_card(bills, by=alice, title="A card that needs a person", checks=["true"])
    cards.queue_card(card, by=alice)
    claim = claim_next(machine.pk, agent="agent-3", with_credential=True)
    runs.begin_work(claim.run_id, claim.fence, branch=f"cards/{card.ref}-1", base_sha="0" * 40)
    return claim

def ask(call, claim=None, rule="A2", **more):
    claim = claim or begin()
    tool = "bash" if "command" in call else "write_file"
    values = {"facts": {}, "effects": [], "sandbox": "bubblewrap", **more}
    made = approvals.request_approval(claim.run_id, claim.fence, approvals.Question(
        call_id="c", tool=tool, input=call, rule=rule, reasons=["Changes what the project needs."],
        digest=f"{claim.run_id:064d}", **values), seq=None, active_seconds=0)
    return Approval.objects.select_related("run").get(pk=made.pk)

script = "#!/bin/sh -eu\npython manage.py squashmigrations $1\nrm -rf \u202e$HOME/.cache\n"
full = ask({"command": "./squash.sh 0031 && git push -f"}, rule="A7", critical=True,
    effects=[{"argv": ["./squash.sh", "0031"]}, {"argv": ["git", "push", "-f"]}],
    facts={"cwd": "/w/BIL-1", "paths": {"./squash.sh": "/home/x/squash.sh"},
           "scripts": {"/home/x/squash.sh": "91b0" * 16}},
    shown={"scripts": [{"path": "/home/x/squash.sh", "lines": 3, "cut": 900, "text": script}]})
file = ask({"path": "deploy.sh", "content": "#!/bin/sh\nrm -rf /srv/www\n"}, rule="C1", shown={"diff": {
    "path": "deploy.sh", "is_new": False, "additions": 1, "deletions": 1, "hunks": [{"header": "", "lines": [
        [" ", 1, 1, "#!/bin/sh"], ["-", 2, None, "rm -rf /srv/old"], ["+", None, 2, "rm -rf /srv/www"]]}]}})
look = ask({"command": "curl https://example.org/"}, rule="A1")
# One that went back to the agent, which has answered and asks again; Bob has approved it.
first = ask({"command": "docker compose up -d db"}, rule="A11", critical=True)
endings.ask_agent(first, by=bob, question="Why do you need a database?")
claim = claim_next(machine.pk, agent="agent-3", with_credential=True)
Step.objects.filter(pk=first.step_id).update(status="done")
journal.begin_step(claim.run_id, claim.fence, kind="model", request={}, status="done", response={
    "content": [{"type": "text", "text": "The tests of the ledger need one."}]})
talk = ask({"command": "docker compose up -d db"}, claim, rule="A11", critical=True)
approvals.decide(talk, by=bob, role=Role.MEMBER, approve=True)
batch = [ask({"command": f"uv add package-{number}"}) for number in range(3)]
more = [ask({"command": f"npm install package-{number}"}) for number in range(2)]
print(json.dumps({
    "full": full.pk, "file": file.pk, "look": look.pk, "first": first.pk, "talk": talk.pk,
    "batch": [each.pk for each in batch], "more": [each.pk for each in more],
    "sessions": {"alice": sign_in(alice), "bob": sign_in(bob), "carol": sign_in(carol)}}))
"""
)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with Product(tmp_path_factory.mktemp("approvals"), None, workers=0) as product:
        yield product


@pytest.fixture(scope="module")
def world(product: Product) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(product.manage("shell", "--no-imports", "-c", WORLD))
    return made


@pytest.fixture
def tabs(product: Product, world: dict[str, Any], chromium: Browser) -> Iterator[Tabs]:
    opened = Tabs(product, chromium, world["sessions"])
    yield opened
    opened.close()


def question(page: Page, number: int) -> Any:
    return page.locator(f"#question-{number}")


@pytest.mark.parametrize(("width", "height", "scheme"), LOOKS)
def test_every_screen_of_approvals_is_accessible(
    tabs: Tabs, product: Product, world: dict[str, Any], *, width: int, height: int, scheme: str
):
    names = ("full", "file", "first", "talk")
    addresses = [
        *(f"/approvals/{world[name]}/" for name in names),
        "/approvals/", "/approvals/?rule=A11&order=newest", "/approvals/?project=NO",
        "/p/BIL/settings/approvals/", "/p/BIL/reports/", "/me/",
    ]  # fmt: skip
    page = tabs.open("/approvals/", width=width, height=height, scheme=scheme)
    found: dict[str, list[str]] = {}
    for address in addresses:
        page.goto(product.url + address)
        found[address] = faults(page)
    assert {where: what for where, what in found.items() if what} == {}


def test_a_question_shows_scripts_links_and_that_nothing_of_it_lasts(
    tabs: Tabs, world: dict[str, Any]
):
    page = tabs.open(f"/approvals/{world['full']}/")
    article = page.locator("article")
    expect(article).to_contain_text("Critical")
    expect(article.get_by_role("region", name="Content of /home/x/squash.sh")).to_contain_text(
        "rm -rf <U+202E>$HOME/.cache"
    )
    expect(article).to_contain_text("A link: the call says ./squash.sh")
    expect(article).to_contain_text("900 more characters of it are not shown here")
    expect(article.get_by_role("button", name="For this run")).to_have_count(0)
    expect(article.get_by_role("button", name="Always")).to_have_count(0)


def test_who_looks_is_seen_by_the_others_without_a_reload(tabs: Tabs, world: dict[str, Any]):
    carol = tabs.open(f"/approvals/{world['look']}/", who="carol")
    inbox = tabs.open("/approvals/", who="alice")
    bob = tabs.open(f"/approvals/{world['look']}/", who="bob")
    bob.get_by_label("Your own words").fill("half a sentence")
    expect(bob.locator("[data-looker]")).to_contain_text("Carol is looking at this too")
    expect(question(inbox, world["look"])).to_contain_text("Carol is looking")
    expect(bob.get_by_label("Your own words")).to_have_value("half a sentence")
    expect(carol.locator("[data-looker]")).to_have_count(0)


def test_the_banner_tells_nobody_that_they_look_themselves(tabs: Tabs, world: dict[str, Any]):
    tabs.open(f"/approvals/{world['full']}/", who="carol")
    mark = f'.ask-row[data-question="{world["full"]}"] [data-who]'
    shown = {}
    for who in ("alice", "bob", "carol"):
        page = tabs.open("/p/BIL/", who=who)
        expect(page.locator(mark)).to_have_count(1)
        me = page.locator("html").get_attribute("data-me")
        is_own = page.locator(mark).get_attribute("data-who") == me
        shown[page.locator(mark).is_visible()] = is_own
    assert shown == {True: False, False: True}


def test_several_alike_are_answered_at_once_and_what_came_too_late_is_said(
    tabs: Tabs, world: dict[str, Any]
):
    one, two, three = world["batch"]
    bob = tabs.open("/approvals/", who="bob")
    alike = bob.locator(".alike", has_text="3 alike: uv add")
    expect(alike).to_be_visible()
    # Carol is first with one of them, while Bob's page still shows it.
    bob.context.set_offline(True)
    carol = tabs.open(f"/approvals/{two}/", who="carol")
    carol.get_by_role("button", name="Deny").click()
    expect(carol.locator(".toast")).to_contain_text("You denied this.")
    bob.context.set_offline(False)
    alike.get_by_role("button", name="Approve 3 once").click()
    expect(bob.locator(".toast")).to_contain_text("You approved 2 questions.")
    expect(bob.locator(".toast")).to_contain_text("Carol denied this before you.")
    for each in (one, two, three):
        expect(question(bob, each)).to_have_count(0)


def test_the_agent_is_asked_by_keys(tabs: Tabs, world: dict[str, Any]):
    page = tabs.open(f"/approvals/{world['more'][0]}/", who="bob")
    page.keyboard.press("q")
    page.keyboard.type("What for?")
    page.get_by_role("button", name="Ask the agent").click()
    expect(page.locator(".toast")).to_contain_text("asked the agent instead of answering")
    page.goto(page.url.rpartition("/approvals")[0] + f"/approvals/{world['more'][0]}/")
    expect(page.locator("article")).to_contain_text("“What for?”")
    expect(page.locator("article")).to_contain_text("The agent has not asked again yet.")


def test_the_second_of_two_sees_the_conversation_and_the_first(tabs: Tabs, world: dict[str, Any]):
    bob = tabs.open(f"/approvals/{world['talk']}/", who="bob")
    expect(bob.get_by_role("button", name="Approve")).to_have_count(0)
    carol = tabs.open(f"/approvals/{world['talk']}/", who="carol")
    article = carol.locator("article")
    expect(article).to_contain_text("1 of 2: Bob approved this")
    expect(article).to_contain_text("Why do you need a database?")
    expect(article).to_contain_text("The tests of the ledger need one.")
    carol.get_by_role("button", name="Approve as the second").click()
    expect(bob.locator("article")).to_contain_text("Bob and Carol approved this once")


def test_a_filter_counts_at_once_and_stays(tabs: Tabs, world: dict[str, Any]):
    page = tabs.open("/approvals/", who="carol")
    page.get_by_label("Rule", exact=True).select_option("C1")
    expect(page).to_have_url(re.compile("rule=C1"))
    expect(question(page, world["file"])).to_be_visible()
    expect(question(page, world["full"])).to_have_count(0)


def test_a_notification_is_asked_for_with_a_click_only(
    product: Product, whole_chromium: Browser, world: dict[str, Any]
):
    tabs = Tabs(product, whole_chromium, world["sessions"])
    page = tabs.open("/approvals/", who="carol")
    page.context.grant_permissions(["notifications"])
    button = page.locator("[data-notify]")
    expect(button).to_have_text("Tell me on this device")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(button).to_have_text("Told on this device")
    page.reload()
    expect(page.locator("[data-notify]")).to_have_attribute("aria-pressed", "true")
    page.locator("[data-notify]").click()
    expect(page.locator("[data-notify]")).to_have_attribute("aria-pressed", "false")
    tabs.close()


# A browser whose tab is not seen, and whose notifications are kept in a list.
UNSEEN_TAB = """
localStorage.setItem("pullcord.notify", "on");
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "granted";
  constructor(words, options) { super(); window.told.push([words, options.tag]); }
};
window.isHidden = false;
Object.defineProperty(document, "hidden", { get: () => window.isHidden });
"""
ANOTHER = """
from board.models import Approval
one = Approval.objects.select_related("step").get(pk=PK)
step = one.step
step.pk, step.seq = None, step.run.steps.latest("seq").seq + 1
step.save()
one.pk, one.step = None, step
one.save()
print(one.pk)
"""


def test_a_question_is_notified_only_while_the_tab_is_not_seen(
    tabs: Tabs, product: Product, world: dict[str, Any]
):
    page = tabs.open("/workers/", who="carol")
    page.add_init_script(UNSEEN_TAB)
    with page.expect_response("**/approvals/waiting/"):  # it learns which question is the newest
        page.reload()
    code = ANOTHER.replace("PK", str(world["look"]))
    product.manage("shell", "--no-imports", "-c", code)
    with page.expect_response("**/approvals/waiting/"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("window.told") == []
    newest = product.manage("shell", "--no-imports", "-c", code).strip()
    page.evaluate("window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'))")
    wait_until(page, "window.told.length > 0")
    ((words, tag),) = page.evaluate("window.told")
    assert words.startswith("agent-3 asks about BIL-")
    assert tag == f"pullcord-question-{newest}"


def test_without_scripts_the_agent_is_asked_and_filters_work(
    product: Product, world: dict[str, Any], chromium: Browser
):
    context = chromium.new_context(base_url=product.url, java_script_enabled=False)
    cookie = {"name": "pullcord_session", "value": world["sessions"]["bob"], "url": product.url}
    context.add_cookies([cookie])  # type: ignore[list-item]  # a TypedDict of its own
    page = context.new_page()
    page.goto("/approvals/")
    page.get_by_label("Rule", exact=True).select_option("C1")
    page.get_by_role("button", name="Filter").click()
    expect(question(page, world["full"])).to_have_count(0)
    page.goto(f"/approvals/{world['more'][1]}/")
    page.get_by_role("button", name="Ask the agent").click()
    expect(page.get_by_role("alert")).to_contain_text("Write what you want to know")
    page.get_by_label("Your own words").fill("What for?")
    page.get_by_role("button", name="Ask the agent").click()
    expect(page.locator(".toast")).to_contain_text("asked the agent instead of answering")
    context.close()
