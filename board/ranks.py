"""Fractional ranks: strings that sort as the cards of a column do, with room between any two.

The algorithm is "fractional indexing" (David Greenspan, https://observablehq.com/@dgreensp/implementing-fractional-indexing):
a variable-length integer part, so that appending stays short, and a fraction. Compare bytewise.
"""

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FIRST = "a0"


def rank_between(before: str | None, after: str | None) -> str:
    """Return a rank above `before` and below `after`; None means that side is open.

    The result is never a beginning of `after`, so that `unique_rank` may lengthen it.
    Raises ValueError unless before < after.
    """
    if before is not None and after is not None and before >= after:
        raise ValueError(f"{before!r} does not sort before {after!r}")
    if before is None:
        return FIRST if after is None else _below(after)
    if after is None:
        return _above(before)
    whole, rest = _split(before)
    whole_after, rest_after = _split(after)
    if whole == whole_after:
        return whole + _midpoint(rest, rest_after)
    following = _increment(whole)
    if following is not None and following < after and not after.startswith(following):
        return following
    return whole + _midpoint(rest, None)


def unique_rank(rank: str, number: int) -> str:
    """Return `rank` made unlike any other by the card's number, without changing where it sorts.

    Two writers that choose the same gap at once get different ranks, so that no lock is needed
    to append. The last digit is never 0, as the algorithm asks.
    """
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = DIGITS[digit] + digits
    return f"{rank}0{digits}V"


def _below(after: str) -> str:
    whole, rest = _split(after)
    return _decrement(whole) or whole + _midpoint("", rest)


def _above(before: str) -> str:
    whole, rest = _split(before)
    return _increment(whole) or whole + _midpoint(rest, None)


def _midpoint(low: str, high: str | None) -> str:
    """Return a fraction between two; `low` may be empty, `high` None means one. Neither ends in 0."""
    if high:
        shared = 0
        while (low[shared] if shared < len(low) else "0") == high[shared]:
            shared += 1
        if shared:
            return high[:shared] + _midpoint(low[shared:], high[shared:])
    low_digit = DIGITS.index(low[0]) if low else 0
    high_digit = DIGITS.index(high[0]) if high else len(DIGITS)
    if high_digit - low_digit > 1:
        return DIGITS[(low_digit + high_digit + 1) // 2]
    return DIGITS[low_digit] + _midpoint(low[1:], None)


def _split(rank: str) -> tuple[str, str]:
    length = _integer_length(rank[0])
    if len(rank) < length:
        raise ValueError(f"{rank!r} is not a rank")
    return rank[:length], rank[length:]


def _integer_length(head: str) -> int:
    if "a" <= head <= "z":
        return ord(head) - ord("a") + 2
    if "A" <= head <= "Z":
        return ord("Z") - ord(head) + 2
    raise ValueError(f"{head!r} does not begin a rank")


def _increment(whole: str) -> str | None:
    head, digits = whole[0], list(whole[1:])
    for place in reversed(range(len(digits))):
        value = DIGITS.index(digits[place]) + 1
        if value < len(DIGITS):
            digits[place] = DIGITS[value]
            return head + "".join(digits)
        digits[place] = "0"
    if head == "Z":
        return "a0"
    if head == "z":
        return None
    following = chr(ord(head) + 1)
    return following + "0" * (_integer_length(following) - 1)


def _decrement(whole: str) -> str | None:
    head, digits = whole[0], list(whole[1:])
    for place in reversed(range(len(digits))):
        value = DIGITS.index(digits[place]) - 1
        if value >= 0:
            digits[place] = DIGITS[value]
            return head + "".join(digits)
        digits[place] = DIGITS[-1]
    if head == "a":
        return "Z" + DIGITS[-1]
    if head == "A":
        return None
    previous = chr(ord(head) - 1)
    return previous + DIGITS[-1] * (_integer_length(previous) - 1)
