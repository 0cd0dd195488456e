"""Ranks: room between any two, in the order of bytes, and never the same twice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from board.ranks import FIRST, rank_between, unique_rank


def test_the_first_rank_has_room_on_both_sides():
    assert rank_between(None, None) == FIRST
    assert rank_between(None, FIRST) < FIRST < rank_between(FIRST, None)


@pytest.mark.parametrize(("before", "after"), [("a1", "a0"), ("a0", "a0")])
def test_the_wrong_order_is_an_error(before, after):
    with pytest.raises(ValueError, match="does not sort before"):
        rank_between(before, after)


@pytest.mark.parametrize("rank", ["!", "b0"])
def test_what_is_no_rank_is_an_error(rank):
    with pytest.raises(ValueError, match="rank"):
        rank_between(rank, None)


@given(st.lists(st.integers(min_value=0, max_value=10**6), min_size=1, max_size=80))
@settings(deadline=None)
def test_cards_dropped_anywhere_stand_where_they_were_dropped(drops):
    column: list[str] = []
    for number, drop in enumerate(drops, start=1):
        place = drop % (len(column) + 1)
        before = column[place - 1] if place else None
        after = column[place] if place < len(column) else None
        rank = unique_rank(rank_between(before, after), number)
        assert before is None or before < rank
        assert after is None or rank < after
        column.insert(place, rank)
    assert column == sorted(column, key=str.encode)


@given(
    st.lists(st.integers(min_value=0, max_value=10**6), min_size=1, max_size=30),
    st.integers(min_value=1, max_value=10**9 - 1),
    st.integers(min_value=1, max_value=10**9 - 1),
)
@settings(deadline=None)
def test_two_writers_in_one_gap_get_different_ranks_inside_it(drops, one, other):
    column: list[str] = []
    for number, drop in enumerate(drops, start=1):
        place = drop % (len(column) + 1)
        before = column[place - 1] if place else None
        after = column[place] if place < len(column) else None
        column.insert(place, unique_rank(rank_between(before, after), number))
    gaps = zip([None, *column], [*column, None], strict=True)
    for before, after in gaps:
        rank = rank_between(before, after)
        pair = {unique_rank(rank, one), unique_rank(rank, other)}
        assert len(pair) == (1 if one == other else 2)
        for found in pair:
            assert before is None or before < found
            assert after is None or found < after


@pytest.mark.parametrize("side", ["end", "beginning"])
def test_ten_thousand_cards_on_one_side_keep_their_ranks_short(side):
    rank = FIRST
    for number in range(1, 10_001):
        base = rank_between(rank, None) if side == "end" else rank_between(None, rank)
        following = unique_rank(base, number)
        assert (following > rank) == (side == "end")
        rank = following
    assert len(rank) < 20


def test_two_thousand_drops_into_one_gap_fit_the_column():
    low, high = "a0", "a1"
    for number in range(1, 2_001):
        high = unique_rank(rank_between(low, high), number)
    assert len(high) < 1_000
