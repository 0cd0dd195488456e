"""What a model turn costs, in integer micro-dollars. A model without a known price costs None."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from agents.harness.ports import Usage

DEFAULT_PRICES = Path(__file__).parent.parent / "defaults" / "prices.yaml"
# The price of claude-haiku-4-5 is that of its dated ids; claude-opus-5 says nothing of -5-5.
VARIANT = re.compile(r"(?:-\d{8}|-latest)?(?:\[\w+\]|@[\w.-]+)?$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens, which is micro-dollars per token.

    `above_tokens`: a longer prompt (cached tokens included) costs `above` instead.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    above_tokens: int | None = None
    above: "Price | None" = None


class Prices:
    """Prices by model."""

    def __init__(self, by_model: Mapping[str, Price]) -> None:
        self._by_model = by_model

    @classmethod
    def load(cls, *paths: Path) -> "Prices":
        """Read price files; a later one wins. Raises ValueError that names file and model."""
        by_model: dict[str, Price] = {}
        for path in paths or (DEFAULT_PRICES,):
            with path.open() as file:
                models = (yaml.safe_load(file) or {}).get("models", {})
            for name, price in models.items():
                try:
                    by_model[name] = _price(price)
                except (TypeError, KeyError, ValueError) as error:
                    raise ValueError(f"{path}: the price of {name}: {error}") from error
        return cls(by_model)

    def book(self, usage: Usage, model: str) -> Usage:
        """Return `usage` with its cost."""
        price = self._find(model)
        if price is None:
            return replace(usage, cost_microusd=None)
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if price.above is not None and price.above_tokens and prompt > price.above_tokens:
            price = price.above
        cost = (
            usage.input_tokens * price.input
            + usage.output_tokens * price.output
            + usage.cache_read_tokens * price.cache_read
            + usage.cache_write_tokens * price.cache_write
        )
        return replace(usage, cost_microusd=round(cost))

    def _find(self, model: str) -> Price | None:
        return self._by_model.get(model) or self._by_model.get(VARIANT.sub("", model))


def total(usages: Sequence[Usage]) -> Usage:
    """The sum. Its cost is None as soon as one cost is unknown."""
    costs = [usage.cost_microusd for usage in usages]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in usages),
        cost_microusd=sum(known) if len(known) == len(costs) else None,
    )


def _price(fields: Mapping[str, Any]) -> Price:
    base = float(fields["input"])
    above = fields.get("above")
    return Price(
        input=base,
        output=float(fields["output"]),
        cache_read=float(fields.get("cache_read", base * 0.1)),
        cache_write=float(fields.get("cache_write", base * 1.25)),
        above_tokens=int(above["tokens"]) if above else None,
        above=_price(above) if above else None,
    )
