"""Plays a scripted day of an agent on a real product, answers what it asks, and counts the questions.

work = Work(product, api, key="DAY", answer=("deny", "Not needed"))
done = work.do("Fix it", [Step("bash", {"command": "ls"}, "src")], checks=["make test"])
assert done.questions <= 2
done.assert_number_is_shown()
"""

import html
import http.client
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.browser import sessions
from tests.messages_api import MessagesApi
from tests.messages_script import Answer, Request, Turn, report, texts
from tests.product import Product

PERSON = """
import json
from board.models import User
print(json.dumps({"alice": sign_in(User.objects.get(email="alice@example.org"))}))
"""
FINISH_SECONDS = 240.0  # of work with dozens of commands, on a busy machine

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One call of the agent, and a pattern that its result must have: so its effect is a real one."""

    tool: str
    input: Inputs
    says: str = ""


def bash(command: str, says: str = r"\[exit code 0") -> Step:
    """A command; unless told otherwise it succeeds."""
    return Step("bash", {"command": command}, says)


@dataclass
class Done:
    """What became of a card."""

    product: Product
    card: dict[str, Any]
    run: dict[str, Any]
    asked: list[dict[str, Any]] = field(default_factory=list)  # the questions, as people saw them
    results: list[str] = field(default_factory=list)  # of the steps, in order

    @property
    def questions(self) -> int:
        """How many, as a person has counted them."""
        return len(self.asked)

    def assert_number_is_shown(self) -> None:
        """Fail unless the API, the run's page, and both reports say how many were asked."""
        key = self.card["ref"].partition("-")[0]
        assert self.run["questions"] == self.questions
        page = Pages(self.product).text(f"/cards/{self.card['ref']}/run/")
        words = "1 question" if self.questions == 1 else f"{self.questions} questions"
        assert re.search(rf"\b{words}\b", page), page[:3000]
        numbers = self.product.get(f"/projects/{key}/reports")
        runs = numbers["runs"]
        assert runs >= 1
        if runs == 1:
            assert numbers["questions"] == self.questions
            assert numbers["questions_per_run"] == float(self.questions)
        shown = Pages(self.product).text(f"/p/{key}/reports/")
        each = numbers["questions_per_run"]
        assert re.search(rf"Questions {numbers['questions']} {each} a run\b", shown), shown[:3000]


class Pages:
    """The pages as a person's browser gets them, without their tags."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._cookie = f"pullcord_session={sessions(product, PERSON)['alice']}"

    def text(self, path: str) -> str:
        """Return the words of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self._product.port, timeout=20)
        try:
            connection.request("GET", path, headers={"Cookie": self._cookie})
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == 200, (path, answer.status)
        words = re.sub(r"<[^>]*>", " ", body)
        return re.sub(r"\s+", " ", html.unescape(words))


@dataclass(frozen=True)
class Work:
    """A project's agents, and the person who answers them."""

    product: Product
    api: MessagesApi
    key: str
    verdict: str = "deny"
    comment: str = ""

    def do(self, title: str, steps: Sequence[Step], **card: Any) -> Done:
        """Let an agent do the steps, one call in each turn, and wait until its card is in review."""
        self.api.script(title, [*self._turns(steps), report("done", f"{title}: done.")])
        made = self.product.card(self.key, title, **card)
        self.product.queue(made["ref"])
        asked = self._answer_until_done(made["ref"])
        reviewed = self.product.get(f"/cards/{made['ref']}")
        assert reviewed["status"] == "review", (reviewed, self.product.log_text()[-4000:])
        run = self.product.get(f"/runs/{reviewed['runs'][-1]['id']}")
        done = Done(self.product, reviewed, run, asked, self._results(title))
        assert not self.api.refusals
        assert len(done.results) >= len(steps)
        wrong = [
            (step.input, result)
            for step, result in zip(steps, done.results, strict=False)
            if not re.search(step.says, result)
        ]
        assert not wrong, wrong
        return done

    def _turns(self, steps: Sequence[Step]) -> list[Answer]:
        return [_turn(step) for step in steps]

    def _answer_until_done(self, ref: str) -> list[dict[str, Any]]:
        asked: dict[int, dict[str, Any]] = {}

        def is_over() -> bool:
            for question in self.product.get(f"/approvals?status=pending&project={self.key}") or []:
                if question["id"] not in asked:
                    asked[question["id"]] = question
                    self.product.decide(question["id"], self.verdict, comment=self.comment)
            return self.product.status(ref) in {"review", "failed", "cancelled"}

        self.product.until(is_over, seconds=FINISH_SECONDS, what=lambda: f"{ref} to end")
        return list(asked.values())

    def _results(self, title: str) -> list[str]:
        found: list[str] = []
        for request in self.api.conversation(title)[1:]:
            for block in request.results:
                content = block["content"]
                parts = (
                    [content] if isinstance(content, str) else [part["text"] for part in content]
                )
                found.append("\n".join(parts))
        return found


def _turn(step: Step) -> Callable[[Request], Turn]:
    """The call, with `{workspace}` made the folder that an earlier `pwd` has shown."""

    def answer(request: Request) -> Turn:
        return Turn().call(step.tool, **_placed(step.input, _workspace(request)))

    return answer


def _placed(given: Inputs, workspace: str) -> dict[str, Any]:
    return {
        name: value.replace("{workspace}", workspace) if isinstance(value, str) else value
        for name, value in given.items()
    }


def _workspace(request: Request) -> str:
    for message in request.body["messages"]:
        for text in texts(message["content"]):
            if found := re.match(r"(/\S+)\n\[exit code 0", text):
                return found[1]
    return "."
