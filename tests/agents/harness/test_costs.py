"""What a turn costs is known to the micro-dollar, or not at all."""

from pathlib import Path

import pytest

from agents.harness.costs import Prices, total
from agents.harness.ports import Usage

MILLION = Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("claude-sonnet-5", 2 + 10 + 0.2 + 2.5),
        ("claude-opus-5-5", 4 + 20 + 0.2 + 5),
        ("claude-haiku-4-5-20251001", 1 + 5 + 0.1 + 1.25),
        ("claude-sonnet-5-5[1m]", 2 + 10 + 0.1 + 2.5),
    ],
)
def test_each_kind_of_token_has_its_price(model: str, dollars: float) -> None:
    assert Prices.load().book(MILLION, model).cost_microusd == round(dollars * 1_000_000)


@pytest.mark.parametrize("model", ["claude-opus-5-9", "claude-opus", "llama", ""])
def test_an_unknown_model_has_no_cost_rather_than_a_guessed_one(model: str) -> None:
    assert Prices.load().book(MILLION, model).cost_microusd is None


def test_a_long_prompt_can_cost_more_in_all_its_tokens() -> None:
    prices = Prices.load()
    short = Usage(input_tokens=50_000, cache_read_tokens=50_000)
    long = Usage(input_tokens=50_000, cache_read_tokens=50_001)
    assert prices.book(short, "claude-haiku-5-5").cost_microusd == 5500
    assert prices.book(long, "claude-haiku-5-5").cost_microusd == 27_500


def test_a_later_price_file_wins(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text("models:\n  llama: {input: 0, output: 0}\n")
    assert Prices.load(own).book(MILLION, "llama").cost_microusd == 0


def test_a_broken_price_file_says_where(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text("models:\n  llama: {input: cheap}\n")
    with pytest.raises(ValueError, match=r"prices\.yaml: the price of llama"):
        Prices.load(own)


def test_a_sum_with_an_unknown_cost_is_unknown() -> None:
    known = Usage(1, 2, 3, 4, cost_microusd=5)
    assert total([known, known]) == Usage(2, 4, 6, 8, cost_microusd=10)
    assert total([known, Usage(1)]).cost_microusd is None
