"""The corpus's harmless calls as the calls of real runs, in a repository where they make sense: nobody is asked."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents.sandbox_probe import probe
from tests.days_work import Step, Work
from tests.messages_api import MessagesApi
from tests.product import Product, make_repository

pytestmark = [
    pytest.mark.process,
    pytest.mark.one_database,
    pytest.mark.timeout(600),
    pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message),
]
MOST_QUESTIONS = 2  # in all, of a day
CORPUS = Path(__file__).parents[1] / "data" / "policy_corpus.jsonl"
PACKAGE = {
    "name": "page",
    "version": "1.0.0",
    "scripts": {"test": "node -e 0", "lint": "eslint .", "build": "node -e 0"},
    "dependencies": {"htmx": "4.0.0"},
}
TEST_GATE = """\
import unittest

CASES = []


class GateTest(unittest.TestCase):
    def test_it(self):
        self.assertEqual(CASES, CASES)
"""
FILES = {
    "package.json": json.dumps(PACKAGE, indent=2) + "\n",
    "frontend/package.json": json.dumps(PACKAGE, indent=2) + "\n",
    "src/app/__init__.py": "",
    "src/app/models.py": "class Card:\n    pass\n",
    "src/app/cli.py": "print('usage: app')\n",
    "board/__init__.py": "",
    "board/models.py": "def claim(card):\n    return card\n",
    "board/views.py": "# A view.\n" * 200,
    "board/urls.py": "urlpatterns = []\n",
    "agents/__init__.py": "",
    "agents/loop.py": "# A loop.\n" * 50,
    "tests/__init__.py": "",
    "tests/test_gate.py": TEST_GATE,
    "tests/fixtures/a.txt": "a\n",
    "docs/plan.md": "TODO: write it\n",
    "migrations/0003_cleanup.sql": "DROP TABLE old;\n",
    "CONTRIBUTING.md": "Never git push --force.\n",
    "templates/board.html": "<p>Board</p>\n",
    "data/costs.csv": "day,what,cents\n1,a,20\n",
    "data/a.txt": "b\na\n",
    "a.txt": "a\n",
    "b.txt": "b\n",
    "files.txt": "a.txt\nb.txt\n",
    "logs/dev.log": "started\n",
    "old_name.py": "x = 1\n",
    "notes.tmp": "draft\n",
    "scripts/dev.sh": "#!/bin/sh\necho dev\n",
    "scripts/deploy.sh": "#!/bin/sh\necho deploy\n",
    "scripts/run_tests.sh": "#!/bin/sh\nset -e\npython3 -m unittest -q\n",
    "scripts/check-links.js": "console.log('no broken links');\n",
    "pyproject.toml": '[project]\nname = "app"\nversion = "1.0"\n',
    "Makefile": "test:\n\tpython3 -m unittest -q\n\nlint:\n\tpython3 -m compileall -q board\n",
    "manage.py": "print('ok')\n",
    ".env.example": "KEY=\n",
    "README.md": "# App\n",
}


def harmless() -> list[dict[str, Any]]:
    """Return the lines whose label is `allow`."""
    lines = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    return [line for line in lines if line["expect"] == "allow" and "steps" not in line]


def test_the_harmless_lines_of_the_corpus_ask_nobody(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    lines = harmless()
    assert len(lines) == 108
    # Agents have no tools of MCP servers yet: the gate's own test judges this line.
    played = [line for line in lines if line["tool"] != "mcp"]
    assert len(played) == 107
    product.project("DAY", make_repository(tmp_path / "app.git", FILES))
    work = Work(product, api, "DAY", verdict="approve")
    asked, counted = [], 0
    for number, start in enumerate(range(0, len(played), 36), 1):
        part = played[start : start + 36]
        first = Step("bash", {"command": "pwd"}, r"\n\[exit code 0")
        done = work.do(f"Part {number} of the day", [first, *map(_step, part)])
        asked += done.asked
        counted += done.run["questions"]
        done.assert_number_is_shown()
        # Every one has really run or was refused by its tool; none by the gate.
        assert not [text for text in done.results if re.search(r"^(Denied|Not allowed)", text)]
    assert len(asked) == counted <= MOST_QUESTIONS, [question["input"] for question in asked]
    assert product.get("/projects/DAY/reports")["questions"] == counted


def _step(line: dict[str, Any]) -> Step:
    """The call, in the run's own worktree instead of the corpus's."""
    given = {
        name: value.replace("/code/wt/card-17", "{workspace}")
        for name, value in line["input"].items()
    }
    return Step(line["tool"], given)
