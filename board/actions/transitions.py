"""Changing a status: one compare-and-set, so that two people or workers cannot both be first."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from django.db.models import Expression, F, Model
from django.db.models.expressions import Combinable

from board.errors import LeaseLostError, TransitionError
from board.models import Approval, Card, Errand, Run, Step
from board.states import (
    APPROVAL_TRANSITIONS,
    CARD_TRANSITIONS,
    ERRAND_TRANSITIONS,
    RUN_TRANSITIONS,
    STEP_TRANSITIONS,
)

Transitions = Mapping[Any, frozenset[Any]]
TABLES: dict[type[Model], Transitions] = {
    Card: CARD_TRANSITIONS,
    Run: RUN_TRANSITIONS,
    Approval: APPROVAL_TRANSITIONS,
    Step: STEP_TRANSITIONS,
    Errand: ERRAND_TRANSITIONS,
}
NOUNS: dict[type[Model], str] = {
    Card: "card",
    Run: "run",
    Approval: "question",
    Step: "step",
    Errand: "errand",
}


def transition(
    row: Card | Run | Approval | Step | Errand,
    to: StrEnum,
    *,
    holding: int | None = None,
    **changes: Any,
) -> None:
    """Change the status of `row` from what was loaded to `to`, with `changes` in the same UPDATE.

    `row` shows the new values afterwards. A card's `rev` rises too.
    Raises TransitionError if the table forbids it, someone else was first or the card is archived,
    and LeaseLostError if the fence `holding` is given and stale.
    """
    model = type(row)
    noun = NOUNS[model]
    if isinstance(row, Card) and row.archived_at:
        raise TransitionError(f"{row.ref} is archived. Restore it first.")
    if to not in TABLES[model][_member(model, row.status)]:
        raise TransitionError(f"This {noun} is {row.status}; it cannot become {to}.")
    rows = cast("Any", model).objects.filter(pk=row.pk, status=row.status)
    if holding is not None:
        rows = rows.filter(fence=holding)
    if model is Card:
        rows = rows.filter(archived_at__isnull=True)
        changes["rev"] = F("rev") + 1
    if not rows.update(status=to, **changes):
        if holding is not None:
            raise LeaseLostError(f"Another worker holds this {noun} now.")
        raise TransitionError(
            f"Someone else changed this {noun} a moment ago. Reload and look again."
        )
    row.status = to
    _show(row, changes)


def _show(row: Model, changes: Mapping[str, Any]) -> None:
    """Give `row` the values that were written; those that the database computed are read back."""
    computed = [
        name for name, value in changes.items() if isinstance(value, Expression | Combinable)
    ]
    for name, value in changes.items():
        if name not in computed:
            setattr(row, name, value)
    if computed:
        row.refresh_from_db(fields=computed)


def _member(model: type[Model], status: str) -> StrEnum:
    """Return the enum member of a stored status."""
    first = next(iter(TABLES[model]))
    return cast("StrEnum", type(first)(status))
