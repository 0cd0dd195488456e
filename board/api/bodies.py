"""What callers send. A field that is not listed here is refused by its name, never ignored."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NoReturn

from django.http import HttpRequest
from ninja import Schema
from ninja.parser import Parser
from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictInt

from board.states import ApprovalScope

PRIORITIES = {"low": 0, "normal": 1, "medium": 1, "high": 2, "urgent": 3}
MAX_SEQ = 2**63 - 1
MAX_ITEMS = 1_000  # events or log items in one answer


def _read_priority(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.lower() not in PRIORITIES:
        raise ValueError("low, normal, medium, high or urgent, or a number")
    return PRIORITIES[value.lower()]


Priority = Annotated[StrictInt, BeforeValidator(_read_priority)]
After = Annotated[int, Field(ge=0, le=MAX_SEQ)]
Limit = Annotated[int, Field(ge=1, le=MAX_ITEMS)]
Days = Annotated[int, Field(ge=1, le=366)]
Most = Annotated[int, Field(ge=0, le=MAX_SEQ)]  # of a list that is given whole without it


class StrictParser(Parser):
    """Reads JSON without what no database stores: NaN, Infinity and halves of characters."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the body's content. Raises ValueError, which is answered with 400."""
        content: dict[str, Any] = json.loads(request.body, parse_constant=_refuse)
        json.dumps(content, ensure_ascii=False).encode()  # raises for a lone surrogate
        return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Body(Schema):
    """A JSON object with the listed fields only."""

    model_config = ConfigDict(extra="forbid")


class NewProject(Body):
    """A project on a repository: an absolute path on the server, or a URL."""

    key: str
    name: str = ""
    repository: str
    target_branch: str = ""
    setup_command: str = ""
    max_parallel: StrictInt = 3
    auto_merge: StrictBool = False
    model: str = ""
    create_first_commit: StrictBool = False


class CardFields(Body):
    """What a card says; `depends_on` names cards as KEY-12."""

    title: str = ""
    goal: str = ""
    files: list[str] = []
    constraints: str = ""
    checks: list[str] = []
    no_check: StrictBool = False
    depends_on: list[str] = []
    priority: Priority = 1
    tool_profile: Literal["", "read-only", "edit", "edit-test", "full"] = ""

    def given(self) -> dict[str, Any]:
        """Return the fields that the caller has sent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class NewCard(CardFields):
    """A new card needs a title."""

    title: str


class Comment(Body):
    """What should change."""

    comment: str


class Move(Body):
    """Where to: `column` by name, lane or id; above the card `before`, below the card `after`."""

    column: str | StrictInt | None = None
    before: str | None = None
    after: str | None = None


class Decision(Body):
    """The answer to a question; `input` replaces the call's input, if it is approved.

    `ask` decides nothing: `comment` is a question to the agent, which may ask again. `digest`, if
    sent, is that of the question as it was seen.
    """

    verdict: Literal["approve", "deny", "ask"]
    scope: ApprovalScope = ApprovalScope.ONCE
    input: dict[str, Any] | None = None
    comment: str = ""
    digest: str = ""


def unique(refs: Sequence[str]) -> list[str]:
    """Return the refs in upper case, each once, in their order."""
    return list(dict.fromkeys(ref.strip().upper() for ref in refs))
