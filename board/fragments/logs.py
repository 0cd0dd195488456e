"""The log of a run as HTML: each item becomes ops on what the browser shows, see `pieces`.

`render_log` keeps nothing between calls but the state of terminals, and can always find that again.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from django.db.models import Q
from django.template.loader import render_to_string

from board.ansi import line_element, plain, visible
from board.fragments.calls import call_step, edited, is_edited, key_of
from board.fragments.pieces import Op, assemble, place
from board.fragments.runs import plan_items
from board.fragments.steps import question_step, step
from board.fragments.terminals import keep_terminal, terminal_before
from board.models import Approval, LogItem, Run
from board.templatetags.markup import icon, seconds, since

Data = Mapping[str, Any]

MAX_RESULT = 16_000  # characters of a result that a page shows; the journal has all
SILENT = {"todo_write"}  # calls that show elsewhere


def render_log(run: Run, items: Sequence[LogItem]) -> list[dict[str, str | None]]:
    """Return what a browser does with new items: a list of ops, in order."""
    return [op.as_dict() for op in _ops(run, items)]


def log_html(run: Run, items: Sequence[LogItem]) -> str:
    """Return the log that consists of these items, as a page shows it."""
    return assemble(_ops(run, items))


def _ops(run: Run, items: Sequence[LogItem]) -> list[Op]:
    return _Renderer(run, items).ops() if items else []


class _Renderer:
    """Renders one batch of items."""

    def __init__(self, run: Run, items: Sequence[LogItem]) -> None:
        self.run = run
        self.items = items
        asked = {item.data.get("approval") for item in items if item.kind in {"cord", "answer"}}
        calls = {item.data.get("call") for item in items if item.kind == "call"}
        # An edited call is shown as it ran, also where the answer is on a later page of the log.
        wanted = Q(pk__in=asked) | Q(step__request__id__in=calls, edited_input__isnull=False)
        rows = (
            Approval.objects.select_related("decided_by", "step")
            .filter(wanted, run=run)
            .order_by("pk")
        )
        self.questions = {row.pk: row for row in (rows if asked or calls else ())}
        self.edited = {
            row.step.request.get("id"): row for row in self.questions.values() if is_edited(row)
        }
        self.group = 0  # the seq at which the prose began that now goes on
        self.before = ""  # the kind of the item before

    def ops(self) -> list[Op]:
        found: list[Op] = []
        for item in self.items:
            render = KINDS.get(item.kind)
            if render is not None:
                found += render(self, item)
            self.before = item.kind
        return found

    def prose(self, item: LogItem) -> list[Op]:
        """Lengthen the paragraph that the items before it began, or begin one."""
        if not self._goes_on(item):
            self.group = item.seq
            return [self._new_prose(item)]
        return [
            Op(
                "append",
                f"t{item.seq}",
                f"t{self.group}",
                [visible(str(item.data.get("text", "")))],
            )
        ]

    def _goes_on(self, item: LogItem) -> bool:
        if self.before:
            return self.before == item.kind
        earlier = LogItem.objects.filter(run=self.run, seq__lt=item.seq)
        last = (
            earlier.exclude(kind=item.kind).order_by("-seq").values_list("seq", flat=True).first()
        )
        self.group = (last or 0) + 1
        return self.group < item.seq

    def _new_prose(self, item: LogItem) -> Op:
        text = visible(str(item.data.get("text", "")))
        if item.kind == "thinking":
            body = place(f"t{item.seq}", text, tag="div", classes="thought__text")
            return step(
                f"s{item.seq}",
                icon("thought", "s"),
                '<details class="tools-fold thought"><summary>',
                icon("right", "s"),
                "Thought</summary>",
                body,
                "</details>",
            )
        body = place(f"t{item.seq}", text, tag="div", classes="said-aloud")
        return step(f"s{item.seq}", "", body, dot=True)

    def call(self, item: LogItem) -> list[Op]:
        """Begin a tool call."""
        if str(item.data.get("tool", "")) in SILENT:
            return []
        begun = call_step(item)
        question = self.edited.get(str(item.data.get("call", "")))
        return [begun, *edited(question)] if question else [begun]

    def output(self, item: LogItem) -> list[Op]:
        """Write to the terminal of a call."""
        call, key = str(item.data.get("call", "")), key_of(item.data)
        terminal = terminal_before(self.run, call, item.seq)
        terminal, lines, tail = terminal.feed(str(item.data.get("text", "")))
        keep_terminal(self.run, call, item.seq, terminal)
        ops = []
        if lines:
            html = "".join(line_element(line) for line in lines)
            ops.append(Op("append", f"{key}-o{item.seq}", f"{key}-out", [html]))
        rest = line_element(tail) if tail else ""
        ops.append(Op("set", f"{key}-tail", f"{key}-tail", [place(f"{key}-tail", rest)]))
        return ops

    def result(self, item: LogItem) -> list[Op]:
        """End a call: its bead, how long it took, and its text where no output was streamed."""
        key = key_of(item.data)
        failed = bool(item.data.get("is_error"))
        took = item.data.get("seconds")
        exit_code = (item.data.get("details") or {}).get("exit_code")
        badge = f'<span class="badge badge--bad">exit {exit_code}</span>' if exit_code else ""
        failed = failed or bool(exit_code)
        bead = f'<span class="is-failed">{icon("failed", "s")}<span class="sr">Failed</span></span>'
        if not failed:
            bead = f'<span class="is-done">{icon("done", "s")}<span class="sr">Done</span></span>'
        text = str(item.data.get("text") or "")
        if len(text) > MAX_RESULT:
            text = f"{text[:MAX_RESULT]}\n… {len(text) - MAX_RESULT:,} characters more"
        time = badge + (seconds(took) if isinstance(took, int | float) else "")
        ops = [
            Op("set", f"{key}-bead", f"{key}-bead", [place(f"{key}-bead", bead)]),
            Op(
                "set",
                f"{key}-time",
                f"{key}-time",
                [place(f"{key}-time", time, classes="tool__time")],
            ),
        ]
        if text:
            shown = place(f"{key}-text", plain(text), classes="term__text")
            ops.append(Op("set", f"{key}-text", f"{key}-text", [shown]))
        return ops

    def todo(self, item: LogItem) -> list[Op]:
        """Replace the plan in the head of the run."""
        return [Op("set", "plan", "plan", [plan_html(item.data.get("items") or [])])]

    def note(self, item: LogItem) -> list[Op]:
        level = str(item.data.get("level", "info"))
        looks = {"warning": "is-paused", "error": "is-failed"}.get(level, "")
        text = visible(str(item.data.get("text", "")))
        if not looks:
            return [step(f"s{item.seq}", "", f'<p class="mark-line">{text}</p>', dot=True)]
        bead = icon("failed" if level == "error" else "warning", "s")
        return [step(f"s{item.seq}", bead, f'<p class="note {looks}">{text}</p>', looks=looks)]

    def cord(self, item: LogItem) -> list[Op]:
        question = self.questions.get(int(item.data.get("approval") or 0))
        return [question_step(question)] if question else []

    def answer(self, item: LogItem) -> list[Op]:
        question = self.questions.get(int(item.data.get("approval") or 0))
        if question is None:
            return []
        key = f"q{question.pk}"
        shown = Op("set", key, key, question_step(question).parts)
        return [shown, *edited(question)] if is_edited(question) else [shown]

    def check(self, item: LogItem) -> list[Op]:
        """Show one acceptance check that Pullcord ran, not the agent."""
        data = item.data
        passed = data.get("exit_code") == 0
        looks, glyph = ("is-done", "done") if passed else ("is-failed", "failed")
        badge = "" if passed else f'<span class="badge badge--bad">{_exit(data)}</span>'
        output = plain(str(data.get("output") or "")[-MAX_RESULT:])
        body = (
            f'<code class="term__body" tabindex="0" role="group" aria-label="Output">{output}</code>'
            if output
            else ""
        )
        return [
            step(
                f"s{item.seq}",
                icon(glyph, "s"),
                f'<details class="term term--check"{"" if passed else " open"}><summary class="term__head">'
                f"{icon('right', 's')}<span>Check</span><code>{visible(str(data.get('command', '')))}</code>{badge}"
                f'<span class="grow"></span><span class="num faint">{seconds(float(data.get("seconds") or 0))}</span>'
                f"</summary>{body}</details>",
                looks=looks,
            )
        ]

    def said(self, item: LogItem) -> list[Op]:
        who = escape(str(item.data.get("who", "")))
        body = (
            f'<div class="said"><span class="said__by">{who} · {since(item.at)} · read by the agent</span>'
            f'<p class="prewrap" dir="auto">{visible(str(item.data.get("text", "")))}</p></div>'
        )
        return [step(f"s{item.seq}", icon("comment", "s"), body)]


KINDS: dict[str, Callable[[_Renderer, LogItem], list[Op]]] = {
    "text": _Renderer.prose,
    "thinking": _Renderer.prose,
    "call": _Renderer.call,
    "output": _Renderer.output,
    "result": _Renderer.result,
    "todo": _Renderer.todo,
    "note": _Renderer.note,
    "cord": _Renderer.cord,
    "answer": _Renderer.answer,
    "check": _Renderer.check,
    "said": _Renderer.said,
}


def _exit(data: Data) -> str:
    ended = data.get("ended_by")
    return "out of time" if ended == "timeout" else f"exit {data.get('exit_code')}"


def plan_html(todo: Sequence[Data]) -> str:
    """Return the plan of the run head, `data-key="plan"`."""
    items = plan_items(todo)
    done = sum(1 for item in items if item["looks"] == "is-done")
    return render_to_string("runs/_plan.html", {"plan": items, "plan_done": done}).strip()
