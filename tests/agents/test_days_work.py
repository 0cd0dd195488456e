"""A day's ordinary work asks next to nothing: real agents' calls, with real effects, in a Python repository."""

from pathlib import Path

import pytest

from agents.sandbox_probe import probe
from tests.days_work import Step, Work, bash
from tests.messages_api import MessagesApi
from tests.product import Product, git, make_repository

pytestmark = [
    pytest.mark.process,
    pytest.mark.one_database,
    pytest.mark.timeout(420),
    pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message),
]
MOST_QUESTIONS = 2

MONEY = '''\
"""Reads and writes amounts of money, in cents."""


def parse(text):
    """Return the cents of `1,234.50`; an amount in parentheses is negative."""
    text = text.strip()
    sign = 1
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    whole, _, part = text.partition(".")
    return sign * (int(whole.replace(",", "")) * 100 + int(part or 0))


def show(cents):
    """Return `1,234.50`."""
    return f"{cents // 100:,}.{cents % 100:02}"
'''
REPORT = '''\
"""Adds up a month."""

import csv
import sys

from ledger.money import parse, show


def total(path):
    """Return the sum of the column `amount`, in cents."""
    with open(path, newline="") as file:
        return sum(parse(row["amount"]) for row in csv.DictReader(file))


if __name__ == "__main__":
    print(show(total(sys.argv[1])))
'''
TEST_MONEY = """\
import unittest

from ledger.money import parse, show


class ParseTest(unittest.TestCase):
    def test_thousands(self):
        self.assertEqual(parse("1,234.50"), 123450)

    def test_one_digit_of_cents(self):
        self.assertEqual(parse("3.5"), 350)

    def test_parentheses(self):
        self.assertEqual(parse("(20.00)"), -2000)


class ShowTest(unittest.TestCase):
    def test_thousands(self):
        self.assertEqual(show(123450), "1,234.50")

    def test_less_than_nothing(self):
        self.assertEqual(show(-2050), "-20.50")


if __name__ == "__main__":
    unittest.main()
"""
MAKEFILE = (
    "test:\n\tPYTHONPATH=src python3 -m unittest discover -s tests\n\n"
    "lint:\n\tpython3 -m compileall -q src tests\n"
)
FILES = {
    "README.md": "# Ledger\n\nAdds up the months of `data/`. `make test` tests it.\n",
    "Makefile": MAKEFILE,
    "pyproject.toml": '[project]\nname = "ledger"\nversion = "0.3"\n',
    ".gitignore": "__pycache__/\nbuild/\n",
    "src/ledger/__init__.py": "",
    "src/ledger/money.py": MONEY,
    "src/ledger/report.py": REPORT,
    "tests/test_money.py": TEST_MONEY,
    "data/march.csv": 'day,amount\n1,"1,200.00"\n2,(20.5)\n3,0.75\n',
    "docs/format.md": "Amounts have two digits of cents. TODO: say what one digit means.\n",
}
TEST_REPORT = """\
import unittest
from pathlib import Path

from ledger.report import total

DATA = Path(__file__).parents[1] / "data"


class TotalTest(unittest.TestCase):
    def test_march(self):
        self.assertEqual(total(DATA / "march.csv"), 118025)
"""
TEST = "PYTHONPATH=src python3 -m unittest discover -s tests"
SIGN = "        text = text[1:-1]\n"
CENTS = "int(part or 0)"
SHOW = '    return f"{cents // 100:,}.{cents % 100:02}"'
FIXED_SHOW = '    sign = "-" if cents < 0 else ""\n    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02}"'
PROBE = """\
from ledger.money import parse, show
for text in ('1', '1.5', '(2.05)'):
    print(text, parse(text), show(parse(text)))
"""
PROBE_IT = (
    f"mkdir -p build && cat > build/probe.py <<'PY'\n{PROBE}PY\n"
    "PYTHONPATH=src python3 build/probe.py"
)
COUNT = "import pathlib\nprint(sum(1 for p in pathlib.Path('src').rglob('*.py')))\n"
STASH = "git stash push -q -m wip && make test 2>&1 | tail -1; git stash pop -q && git stash list"
COMMIT = (
    "git add -A && git commit -q -m 'Read amounts in parentheses and one digit of cents' "
    "&& git log --oneline -n 2"
)
TODO = [
    {"text": "Find out what fails", "status": "in_progress"},
    {"text": "Mend it", "status": "pending"},
]

STEPS = [
    # Looking around.
    Step("list_files", {"path": "."}, "Makefile"),
    Step("read_file", {"path": "README.md"}, "make test"),
    bash("git log --oneline -n 5 && git status --short", "Begin"),
    bash("ls -la src/ledger tests && wc -l $(git ls-files '*.py')", "total"),
    Step("todo_write", {"items": TODO}),
    # The one question: the person says no, and the agent goes on without.
    bash("python3 -m pip install --no-deps -e .", "It works without that"),
    bash("make test 2>&1 | tail -40", r"failures=3"),
    bash(f"{TEST} -k parentheses 2>&1 | grep -n 'AssertionError'", "2000 != -2000"),
    Step("grep", {"pattern": "def parse|def show", "path": "src"}, "money.py"),
    Step("read_file", {"path": "src/ledger/money.py"}, "partition"),
    bash("sed -n '4,14p' src/ledger/money.py", "sign = 1"),
    bash("grep -rn 'parse(' src tests --include=*.py | sort | head -20", "report.py"),
    bash(
        "PYTHONPATH=src python3 -c \"from ledger.money import parse; print(parse('3.5'))\"", "305"
    ),
    # Mending.
    Step(
        "edit_file",
        {"path": "src/ledger/money.py", "old": SIGN, "new": SIGN + "        sign = -1\n"},
    ),
    bash(f"{TEST} 2>&1 | tail -3", "failures=2"),
    Step(
        "edit_file", {"path": "src/ledger/money.py", "old": CENTS, "new": 'int(part.ljust(2, "0"))'}
    ),
    Step("edit_file", {"path": "src/ledger/money.py", "old": SHOW, "new": FIXED_SHOW}),
    bash(f"{TEST} -v 2>&1 | tail -12", r"Ran 5 tests[\s\S]*OK"),
    bash("git diff --stat && git diff src/ledger/money.py", r"\+        sign = -1"),
    # A throw-away script, a new test, some tidying.
    bash(PROBE_IT, r"\(2.05\) -205 -2.05"),
    Step("write_file", {"path": "tests/test_total.py", "content": TEST_REPORT}),
    bash("mv tests/test_total.py tests/test_report.py"),
    bash("timeout 60 make test", r"Ran 6 tests[\s\S]*OK"),
    bash(
        "rm build/probe.py && rmdir build && git status --short --branch",
        r"\?\? tests/test_report.py",
    ),
    bash("find . -name __pycache__ -type d -prune -exec rm -rf {} +"),
    bash(
        "sed -i 's/ TODO: say what one digit means./ One digit means tens of cents./' docs/format.md"
    ),
    bash("make lint && python3 -m py_compile src/ledger/money.py"),
    bash('for f in src/ledger/*.py; do python3 -m tabnanny "$f" || exit 1; done'),
    bash("PYTHONPATH=src python3 -m ledger.report data/march.csv", "1,180.25"),
    bash(f"PYTHONPATH=src python3 - <<'PY'\n{COUNT}PY", "3"),
    bash("diff <(git show HEAD:docs/format.md) docs/format.md; test $? -eq 1", "One digit"),
    bash(STASH, r"Error 1\s+\[exit code 0"),
    bash(COMMIT, "parentheses"),
    bash("git show --stat HEAD | cat && git blame -L 8,12 src/ledger/money.py", "sign = -1"),
]


def test_a_test_is_mended_with_one_question_and_the_work_is_merged(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "ledger.git", FILES)
    product.project("LED", origin)
    assert len(STEPS) >= 30
    work = Work(product, api, "LED", comment="It works without that")
    done = work.do("Mend the amounts", STEPS, checks=["make test"])
    assert done.questions == 1 <= MOST_QUESTIONS
    assert done.asked[0]["input"]["command"] == STEPS[5].input["command"]
    done.assert_number_is_shown()
    product.post(f"/cards/{done.card['ref']}/merge")
    merged = product.wait_for_card(done.card["ref"], "done", "review", seconds=90)
    assert merged["status"] == "done", merged
    fixed = git("show", "main:src/ledger/money.py", folder=origin)
    assert "        sign = -1\n" in fixed
    assert "ljust" in fixed
    names = git("ls-tree", "-r", "--name-only", "main", folder=origin).splitlines()
    assert "tests/test_report.py" in names
    assert not [name for name in names if "build" in name or "pycache" in name]
    clone = tmp_path / "merged"
    git("clone", "-q", str(origin), str(clone), folder=tmp_path)
    assert "ljust" in (clone / "src/ledger/money.py").read_text()
