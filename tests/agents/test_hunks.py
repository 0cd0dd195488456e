"""A diff as people see it: nothing is left out of it without a word."""

from agents.hunks import MAX_LINE_CHARACTERS, parse_hunks


def test_a_line_that_is_cut_says_so() -> None:
    hidden = " " * MAX_LINE_CHARACTERS + "; rm -rf /"
    (hunk,) = parse_hunks(f"@@ -0,0 +1,2 @@\n+{hidden}\n+{'x' * MAX_LINE_CHARACTERS}\n")
    first, second = (line[3] for line in hunk["lines"])
    assert first.endswith("[… 10 more characters of this line are not shown]")
    assert second == "x" * MAX_LINE_CHARACTERS
