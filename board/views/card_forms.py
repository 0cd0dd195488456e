"""The text of a card between its form and its row: lines, refs and a tick."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from board.errors import ValidationError
from board.models import Card, Project

MAX_DIGITS = 9  # more than any id, number or page of ours
MAX_NEEDS = 50  # cards that one card may name


def whole(text: str) -> int | None:
    """Return a whole number that somebody sent, or None if it is none, or absurdly long."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


@dataclass
class CardText:
    """What the form holds, all as text, so that nothing typed is lost on the way back."""

    title: str = ""
    goal: str = ""
    files: str = ""
    constraints: str = ""
    checks: str = ""
    no_check: bool = False
    depends_on: str = ""
    priority: str = "1"
    tool_profile: str = ""
    column: str = ""
    rev: int | None = None

    def values(self) -> dict[str, Any]:
        """Return what the actions take; they check it."""
        return {
            "title": self.title,
            "goal": self.goal,
            "files": self.files.splitlines(),
            "constraints": self.constraints,
            "tool_profile": self.tool_profile,
            "checks": self.checks.splitlines(),
            "no_check": self.no_check,
            "priority": -1 if (number := whole(self.priority.strip())) is None else number,
        }


def read_form(sent: Mapping[str, Any]) -> CardText:
    """Return what was sent."""
    text = CardText()
    for field in fields(CardText):
        value = str(sent.get(field.name, ""))
        if field.name == "no_check":
            text.no_check = bool(value)
        elif field.name == "rev":
            text.rev = whole(value)
        elif field.name in sent:
            setattr(text, field.name, value)
    return text


def text_of(card: Card) -> CardText:
    """Return a card as its form shows it."""
    needs = card.dependencies.order_by("needs__number").values_list("needs__number", flat=True)
    return CardText(
        title=card.title,
        goal=card.goal,
        files="\n".join(card.files),
        constraints=card.constraints,
        checks="\n".join(card.checks),
        no_check=card.no_check,
        depends_on=", ".join(f"{card.project.key}-{number}" for number in needs),
        priority=str(card.priority),
        tool_profile=card.tool_profile,
        rev=card.rev,
    )


def found_cards(project: Project, refs: str) -> list[Card]:
    """Return the cards that `refs` names (`BIL-3, 4`), or raise ValidationError naming the unknown ones."""
    words = [word for word in re.split(r"[\s,;]+", refs) if word]
    numbers: list[int] = []
    unknown: list[str] = []
    for word in words:
        key, _, number = word.upper().rpartition("-")
        found_number = whole(number)
        if key in {"", project.key} and found_number is not None:
            numbers.append(found_number)
        else:
            unknown.append(word)
    if len(numbers) > MAX_NEEDS:
        raise ValidationError(
            f"A card may need {MAX_NEEDS} cards at most.", fields={"depends_on": "Too many."}
        )
    found = {card.number: card for card in project.cards.filter(number__in=numbers)}
    unknown += [f"{project.key}-{number}" for number in numbers if number not in found]
    if unknown:
        names = ", ".join(unknown)
        raise ValidationError(
            f"There is no card {names} in this project.",
            fields={
                "depends_on": f"There is no card {names} here. Write refs such as {project.key}-1."
            },
        )
    return [found[number] for number in dict.fromkeys(numbers)]
