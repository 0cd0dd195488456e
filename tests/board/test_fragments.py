"""What a card, the banner, the notices, a run's head and its log look like in each state."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from board import fragments
from board.actions import approvals, archiving, cards, logs, runs
from board.actions.approvals import Question
from board.fragments.terminals import forget_terminals
from board.models import Approval, Card, Column, Comment, LogItem, Project, Run, User, Worker
from board.states import FailureKind, Role, WaitingFor

pytestmark = pytest.mark.django_db
NewCard = Callable[..., Card]


def ask(run: Run, command: str = "uv add vies-client", **facts: object) -> object:
    return approvals.request_approval(
        run.pk,
        run.fence,
        Question(
            call_id="toolu_1",
            tool="bash",
            input={"command": command},
            rule="ask.install",
            reasons=["Installs a package"],
            digest="d",
            facts=facts,
            effects=[],
            sandbox="bubblewrap",
        ),
        seq=None,
        active_seconds=1.0,
    )


def drawn(card: Card) -> str:
    (face,) = fragments.board_cards(card.project, ids=[card.pk])
    return fragments.render_card(face)


def test_a_card_says_where_it_stands(new_card: NewCard) -> None:
    card = new_card("Round half-even", checks=["true", "make"])
    html = drawn(card)
    assert f'id="card-{card.pk}"' in html
    assert f'data-ref="BIL-1" data-rank="{card.rank}" data-rev="{card.rev}"' in html
    assert f'data-column="{card.column_id}" data-status="backlog"' in html
    assert "2 checks" in html
    assert "style=" not in html
    assert "<form" not in html


def test_a_title_is_text(new_card: NewCard) -> None:
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn(new_card("<b>x</b>"))


def test_a_queued_card_says_what_it_waits_for(new_card: NewCard, alice: User) -> None:
    first = new_card("First")
    second = new_card("Second", depends_on=[first])
    for card in (first, second):
        cards.queue_card(card, by=alice)
    assert "card--ready" in drawn(first)
    assert "Next to be claimed" in drawn(first)
    html = drawn(second)
    assert "card--blocked" in html
    assert "Waits for BIL-1" in html


def test_a_queued_card_says_whose_file_it_shares(
    new_card: NewCard, alice: User, running: Run
) -> None:
    Card.objects.filter(pk=running.card_id).update(files=["src/"])
    card = new_card("Second", files=["src/money.py"])
    cards.queue_card(card, by=alice)
    assert "Shares a file with BIL-1" in drawn(card)


def test_a_running_card_says_who_does_what(running: Run) -> None:
    runs.note_progress(
        running.pk,
        running.fence,
        activity="pytest -x",
        plan=[{"text": "a", "status": "done"}, {"text": "b", "status": "in_progress"}],
    )
    html = drawn(running.card)
    assert "card--running is-running" in html
    assert "agent-1 ·" in html
    assert "step 2 of 2" in html
    assert "pytest -x" in html
    assert '<progress class="line card__line" value="1" max="2"' in html


def test_a_waiting_card_shows_the_command_and_both_answers(running: Run) -> None:
    ask(running)
    html = drawn(running.card)
    assert "card--waiting is-waiting" in html
    assert "uv add vies-client" in html
    assert 'data-answer="deny"' in html
    assert 'data-answer="approve"' in html


@pytest.mark.parametrize(
    ("command", "facts"),
    [
        ("a\nb\nc\nd", {}),
        ("x" * 400, {}),
        ("./run.sh", {"scripts": {"run.sh": "1"}}),
        ("pip install -r req.txt", {"files": {"/w/req.txt": "1"}}),
        ("cp a docs", {"cwd": "/w", "paths": {"docs": "/home/x"}}),
        ("rm \u202e", {}),
    ],
)
def test_what_is_not_seen_whole_is_answered_in_full_view_only(
    running: Run, command: str, facts: dict[str, object]
) -> None:
    ask(running, command, **facts)
    html = drawn(running.card) + fragments.render_cord(running.project)[0]
    assert "data-answer" not in html
    assert "Look closer" in html


@pytest.mark.parametrize(
    ("level", "words"), [("none", "no sandbox"), ("landlock", "second level"), ("bubblewrap", "")]
)
def test_what_holds_the_command_less_than_best_is_said_in_the_banner(
    running: Run, level: str, words: str
) -> None:
    ask(running)
    Approval.objects.update(sandbox=level)
    html = fragments.render_cord(running.project)[0]
    assert (words in html) if words else ("sandbox" not in html)


def test_a_paused_card_says_why(running: Run) -> None:
    runs.put_aside(
        running.pk, running.fence, waiting_for=WaitingFor.LIMIT, active_seconds=1.0, seconds=60
    )
    html = drawn(running.card)
    assert "card--paused is-paused" in html
    assert "Waits for its turn at the model" in html


def test_a_failed_card_says_why(running: Run) -> None:
    runs.fail_run(
        running.pk,
        running.fence,
        kind=FailureKind.VERIFICATION,
        message="2 checks are red after two rounds.",
        active_seconds=3.0,
    )
    html = drawn(running.card)
    assert "card--failed is-failed" in html
    assert "Failed: checks are red" in html
    assert "2 checks are red after two rounds." in html


def test_reviewed_work_shows_its_evidence_and_size(running: Run) -> None:
    finish(running)
    html = drawn(running.card)
    assert "card--done is-done" in html
    assert "1 of 1 check passed" in html
    assert "2 files, +14 \N{MINUS SIGN}3" in html


def finish(run: Run) -> None:
    runs.finish_run(
        run.pk,
        run.fence,
        head_sha="a" * 40,
        summary="Did it",
        evidence=[{"command": "true", "exit_code": 0, "output": "", "seconds": 0.1}],
        changes={"files": 2, "additions": 14, "deletions": 3, "diff": []},
        active_seconds=9.0,
    )


def test_comments_are_counted(new_card: NewCard, alice: User) -> None:
    card = new_card()
    Comment.objects.create(card=card, author=alice, body="Hm")
    assert '1<span class="sr"> comments' in drawn(card)


def test_cards_come_by_column_and_rank_and_archived_ones_do_not(
    new_card: NewCard, alice: User
) -> None:
    made = [new_card(str(number)) for number in range(4)]
    archiving.archive_card(made[1], by=alice)
    found = fragments.board_cards(made[0].project)
    assert [face.pk for face in found] == [made[0].pk, made[2].pk, made[3].pk]
    assert [face.pk for face in fragments.board_cards(made[0].project, first=2)] == [
        made[0].pk,
        made[2].pk,
    ]


def test_a_column_goes_on_below_a_rank(new_card: NewCard, project: Project) -> None:
    made = [new_card(str(number)) for number in range(4)]
    column = Column.objects.filter(project=project, lane="backlog").get()
    found, more = fragments.column_cards(project, column.pk, after=made[0].rank, first=2)
    assert [face.pk for face in found] == [made[1].pk, made[2].pk]
    assert more


def test_the_number_of_queries_does_not_grow_with_the_cards(
    new_card: NewCard,
    alice: User,
    running: Run,
    django_assert_max_num_queries: Callable[..., object],
) -> None:
    ask(running)
    first = new_card("First", files=["a"])
    for number in range(5):
        card = new_card(str(number), depends_on=[first] if number % 2 else [], files=["b"])
        cards.queue_card(card, by=alice)
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        for face in fragments.board_cards(running.project):
            fragments.render_card(face)


def test_the_banner_shows_two_questions_oldest_first(
    running: Run, worker: Worker, new_card: NewCard, alice: User
) -> None:
    from board.actions.claims import claim_next

    Project.objects.update(max_parallel=9)
    ask(running, "first")
    for command in ("second", "third"):
        cards.queue_card(new_card(command), by=alice)
        claim = claim_next(worker.pk, agent="agent-2", with_credential=True)
        assert claim is not None
        runs.begin_work(claim.run_id, claim.fence, branch="b", base_sha="0")
        ask(Run.objects.get(pk=claim.run_id), command)
    html, count = fragments.render_cord(running.project)
    assert count == 3
    assert html.index("first") < html.index("second")
    assert "third" not in html
    assert "1 more waits" in html
    assert html.index("Deny") < html.index("Approve once")


def test_without_questions_the_banner_is_hidden(project: Project) -> None:
    html, count = fragments.render_cord(project)
    assert count == 0
    assert 'id="cord"' in html
    assert "hidden" in html


def test_notices_say_what_is_wrong(project: Project) -> None:
    assert "No model key" in fragments.render_notices(project)
    Worker.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert "No worker is alive" in fragments.render_notices(project)
    project.state, project.message = "error", "This folder is no repository."
    assert "This folder is no repository." in fragments.render_notices(project)


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ("landlock", "<strong>here has no bubblewrap</strong>, so its agents ask more often"),
        (
            "none",
            "<strong>here has no sandbox</strong>, so each command that does more than read asks first",
        ),
        ("broken", "<strong>here has lost its sandbox.</strong>"),
    ],
)
def test_a_machine_without_the_best_sandbox_says_so_on_the_board(
    project: Project, settings: Any, sandbox: str, words: str
) -> None:
    settings.ANTHROPIC_API_KEY = "set"
    assert 'data-notice="sandbox"' not in fragments.render_notices(project)
    Worker.objects.update(sandbox=sandbox, sandbox_message="Install <it>.")
    html = fragments.render_notices(project)
    assert words in html
    assert "Install &lt;it&gt;." in html
    assert "hidden" not in html.split(">", 1)[0]


def test_the_head_of_a_run_says_what_it_used(running: Run) -> None:
    Run.objects.filter(pk=running.pk).update(
        input_tokens=1000, cache_read_tokens=9000, output_tokens=94, cost_microusd=420_000
    )
    html = fragments.render_run_head(Run.objects.get(pk=running.pk))
    assert 'id="run-head"' in html
    assert "10k in · 94 out · 90 % cached" in html
    assert "$0.42" in html
    assert "Running" in html


def log(run: Run, *items: tuple[str, Any]) -> list[LogItem]:
    last = logs.append_log(run.pk, list(items))
    return list(LogItem.objects.filter(run=run, seq__gt=last - len(items)).order_by("seq"))


def apply(ops: list[dict[str, str | None]]) -> list[tuple[str | None, str | None]]:
    return [(op["op"], op["to"] or op["key"]) for op in ops]


def test_prose_that_goes_on_is_one_paragraph(running: Run) -> None:
    first = log(running, ("turn", {}), ("text", {"text": "The "}), ("text", {"text": "answer"}))
    later = log(
        running, ("text", {"text": " is <b>"}), ("note", {"text": "Set up", "level": "info"})
    )
    assert apply(fragments.render_log(running, first)) == [("add", "s2"), ("append", "t2")]
    assert apply(fragments.render_log(running, later)) == [("append", "t2"), ("add", "s5")]
    whole = fragments.log_html(running, [*first, *later])
    assert "The answer is &lt;b&gt;</div>" in whole


def test_a_call_holds_its_output_and_its_result(running: Run) -> None:
    items = log(
        running,
        (
            "call",
            {"call": "toolu_1", "tool": "bash", "title": "pytest", "input": {"command": "pytest"}},
        ),
        ("output", {"call": "toolu_1", "text": "\x1b[31mF\x1b[0m one\ntw"}),
        ("output", {"call": "toolu_1", "text": "o\n"}),
        (
            "result",
            {
                "call": "toolu_1",
                "is_error": False,
                "text": "",
                "seconds": 4.1,
                "details": {"exit_code": 1},
            },
        ),
    )
    html = fragments.log_html(running, items)
    assert '<span class="ansi-red">F</span> one</span><span class="term__line">two</span>' in html
    assert "exit 1" in html
    assert "4.1 s" in html
    assert html.count('data-key="ctoolu_1-bead"') == 1
    assert "pulse" not in html


def test_output_means_the_same_in_any_batches(running: Run) -> None:
    items = log(
        running,
        ("call", {"call": "c", "tool": "bash", "title": "x", "input": {"command": "x"}}),
        *[
            ("output", {"call": "c", "text": text})
            for text in ("\x1b[3", "2mgre", "en\n10 %\r", "99 %", "\n")
        ],
    )
    whole = fragments.log_html(running, items)
    assert '<span class="ansi-green">green</span>' in whole
    for keep in (True, False):
        pieces = []
        for item in items[1:]:
            if not keep:
                forget_terminals()  # as in another process
            pieces += [op for op in fragments.render_log(running, [item]) if op["op"] == "append"]
        lines = "".join(str(op["html"]) for op in pieces)
        assert lines in whole
        assert "99 %" in lines


def test_a_cord_becomes_its_answer(running: Run, alice: User) -> None:
    begun = {"call": "toolu_1", "tool": "bash", "input": {"command": "uv add reportlab"}}
    log(running, ("call", begun))
    question = ask(running)
    asked = list(LogItem.objects.filter(run=running).order_by("seq"))
    before = fragments.log_html(running, asked)
    assert "Approve once" in before
    assert '-words">uv add reportlab</code>' in before
    approvals.decide(
        question,  # type: ignore[arg-type]
        by=alice,
        role=Role.OWNER,
        approve=True,
        edited_input={"command": "uv add fpdf2"},
        comment="That one",
    )
    html = fragments.log_html(running, list(LogItem.objects.filter(run=running).order_by("seq")))
    assert "Approve once" not in html
    assert "Alice changed it to <code>uv add fpdf2</code> and approved it once" in html
    assert "That one" in html
    # The call is shown as it ran, also by a browser that had it before, and on a page without the answer.
    title = '-words">uv add fpdf2</code>'
    for shown in (html, fragments.log_html(running, asked[:1])):
        assert title in shown
        assert shown.count(">edited<") == 1
    answer = LogItem.objects.filter(run=running).order_by("seq")[len(asked) :]
    told = [str(op["html"]) for op in fragments.render_log(running, list(answer))]
    assert [text for text in told if title in text]
    assert [text for text in told if ">edited<" in text]


def test_an_edit_that_a_person_changed_is_shown_as_it_ran(running: Run, alice: User) -> None:
    given = {"path": "a.py", "old": "one", "new": "two"}
    log(
        running,
        ("call", {"call": "toolu_1", "tool": "edit_file", "input": given, "title": "Edit a.py"}),
    )
    question = ask(running)
    Approval.objects.update(tool="edit_file", input=given)
    question.refresh_from_db()  # type: ignore[attr-defined]
    approvals.decide(
        question,  # type: ignore[arg-type]
        by=alice,
        role=Role.OWNER,
        approve=True,
        edited_input=given | {"path": "b.py", "new": "three"},
    )
    html = fragments.log_html(running, list(LogItem.objects.filter(run=running).order_by("seq")))
    assert "edit_file b.py" in html
    assert "three" in html
    assert "two" not in html
    assert html.count(">edited<") == 1


def test_an_edit_is_shown_as_a_diff(running: Run) -> None:
    items = log(
        running,
        (
            "call",
            {
                "call": "c",
                "tool": "edit_file",
                "title": "Edit a.py",
                "input": {"path": "a.py", "old": "x = 1\n", "new": "x = 2\n"},
            },
        ),
    )
    html = fragments.log_html(running, items)
    assert '<tr class="del">' in html
    assert "<ins>2</ins>" in html


def test_checks_notes_and_words_of_people_are_steps(running: Run) -> None:
    items = log(
        running,
        ("check", {"command": "make", "exit_code": 2, "output": "no rule\n", "seconds": 0.2}),
        ("said", {"who": "Ann", "text": "Use the locale"}),
        ("note", {"text": "The model is busy.", "level": "warning"}),
        ("thinking", {"text": "Hm"}),
        ("todo", {"items": [{"text": "One", "status": "done"}]}),
        ("usage", {"input_tokens": 1}),
    )
    html = fragments.log_html(running, items)
    for words in ("exit 2", "no rule", "Ann", "Use the locale", "The model is busy.", "Thought"):
        assert words in html
    (plan,) = [op for op in fragments.render_log(running, items) if op["key"] == "plan"]
    assert "1 of 1" in str(plan["html"])
