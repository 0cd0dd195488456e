"""A day's ordinary work in other languages: JavaScript with Node.js, and C with make."""

import shutil
from pathlib import Path

import pytest

from agents.sandbox_probe import probe
from tests.days_work import Done, Step, Work, bash
from tests.messages_api import MessagesApi
from tests.product import Product, git, make_repository

pytestmark = [
    pytest.mark.process,
    pytest.mark.one_database,
    pytest.mark.timeout(420),
    pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message),
]

MOST_QUESTIONS = 2

SLUG = """\
function slug(text) {
  return text.toLowerCase().replace(" ", "-");
}

module.exports = { slug };
"""
TEST_SLUG = """\
const test = require("node:test");
const assert = require("node:assert");
const { slug } = require("../src/slug");

test("one space", () => assert.strictEqual(slug("Hello World"), "hello-world"));
test("many spaces", () => assert.strictEqual(slug("a b  c"), "a-b-c"));
"""
NODE = {
    "package.json": '{\n  "name": "slugs",\n  "version": "1.2.0",\n  "scripts": {"test": "node --test test/"}\n}\n',
    "src/slug.js": SLUG,
    "test/slug.test.js": TEST_SLUG,
    ".gitignore": "node_modules/\n",
}
NODE_STEPS = [
    bash("ls -la && cat package.json", "slugs"),
    bash("node -e \"console.log(require('./package.json').version)\"", "1.2.0"),
    bash("node --test test/ 2>&1 | tail -40", "fail 1"),
    Step("read_file", {"path": "src/slug.js"}, "toLowerCase"),
    Step("grep", {"pattern": "slug\\("}, "test"),
    bash("node -p \"require('./src/slug').slug('a b c')\"", "a-b c"),
    Step("edit_file", {"path": "src/slug.js", "old": '" ", "-"', "new": '/\\s+/g, "-"'}),
    bash("node --check src/slug.js && node --test test/", "fail 0"),
    bash("cat >> test/slug.test.js <<'JS'\ntest(\"a tab\", () => assert.strictEqual(slug(\"a\\tb\"), \"a-b\"));\nJS"),
    bash("for f in src/*.js test/*.js; do node --check \"$f\" || exit 1; done"),
    bash("mkdir -p docs && cp package.json docs/package.txt && mv docs/package.txt docs/p.txt"),
    bash("rm docs/p.txt && rmdir docs"),
    bash("node --test test/ 2>&1 | grep -E '^# (pass|fail)'", "pass 3"),
    bash("git add -A && git commit -q -m 'Replace every space' && git diff HEAD~1 --stat", "2 files changed"),
]  # fmt: skip

WORDS = """\
#include "words.h"

int words(const char *text) {
    int found = 0;
    for (const char *p = text; *p; p++)
        if (*p == ' ') found++;
    return found;
}
"""
TEST_WORDS = """\
#include <assert.h>
#include "words.h"

int main(void) {
    assert(words("") == 0);
    assert(words("one") == 1);
    assert(words("one  two ") == 2);
    return 0;
}
"""
C = {
    "Makefile": (
        "CFLAGS = -Wall -Wextra -Werror -Isrc\n\ntest: build/test_words\n\t./build/test_words\n\n"
        "build/test_words: src/words.c tests/test_words.c src/words.h\n\tmkdir -p build\n"
        "\t$(CC) $(CFLAGS) -o $@ src/words.c tests/test_words.c\n\nclean:\n\trm -rf build\n"
    ),
    "src/words.h": "int words(const char *text);\n",
    "src/words.c": WORDS,
    "tests/test_words.c": TEST_WORDS,
    ".gitignore": "build/\n",
}
LOOP = "    for (const char *p = text; *p; p++)\n        if (*p == ' ') found++;\n"
FIXED_LOOP = (
    "    for (const char *p = text; *p; p++)\n"
    "        if (*p != ' ' && (p == text || p[-1] == ' ')) found++;\n"
)
TRY = """\
#include <stdio.h>
#include "words.h"

int main(void) {
    printf("%d\\n", words("a b c"));
}
"""
TRY_IT = f"cat > /tmp/try.c <<'C'\n{TRY}C\ngcc -Isrc -o /tmp/try /tmp/try.c src/words.c && /tmp/try"
C_STEPS = [
    bash("git log --oneline | head -3; find . -name '*.[ch]' -not -path './.git/*' | sort", "words.c"),
    bash("make -j2 test; echo \"ended with $?\"", r"Assertion[\s\S]*ended with 2"),
    Step("read_file", {"path": "src/words.c"}, "found"),
    Step("edit_file", {"path": "src/words.c", "old": LOOP, "new": FIXED_LOOP}),
    bash("make -n test && make test 2>&1 | tail -3", "test_words"),
    bash("gcc -fsyntax-only -Wall -Isrc src/words.c"),
    bash(TRY_IT, r"3\n\[exit code 0"),
    bash("nm build/test_words | grep -c words && size build/test_words && strings -n 8 build/test_words | head -3"),
    bash("make clean && git status --short", "words.c"),
    bash("rm -rf build && time make test"),
    bash("git diff -U1 && git add src && git commit -q -m 'Count words, not spaces'", r"\+.*p\[-1\]"),
]  # fmt: skip


@pytest.mark.skipif(
    shutil.which("node", path="/usr/bin:/usr/local/bin") is None, reason="Node.js is not installed."
)
def test_javascript_is_mended_with_next_to_no_questions(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "slugs.git", NODE)
    product.project("SLUG", origin)
    done = Work(product, api, "SLUG", verdict="approve").do(
        "Mend the slugs", NODE_STEPS, checks=["npm test"]
    )
    _is_merged(done)
    assert "/\\s+/g" in git("show", "main:src/slug.js", folder=origin)


@pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("make")), reason="gcc or make is not installed."
)
def test_c_is_mended_with_next_to_no_questions(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "words.git", C)
    product.project("WORD", origin)
    done = Work(product, api, "WORD", verdict="approve").do(
        "Mend the count", C_STEPS, checks=["make test"]
    )
    _is_merged(done)
    assert "p[-1]" in git("show", "main:src/words.c", folder=origin)


def _is_merged(done: Done) -> None:
    assert done.questions <= MOST_QUESTIONS, [question["input"] for question in done.asked]
    done.assert_number_is_shown()
    done.product.post(f"/cards/{done.card['ref']}/merge")
    merged = done.product.wait_for_card(done.card["ref"], "done", "review", seconds=90)
    assert merged["status"] == "done", merged
