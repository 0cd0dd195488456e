"""Secrets leave in no spelling, in no pieces, and ordinary text is left as it is."""

import base64
import html
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.harness.redaction import MAX_HELD, Redactor, Secret, TextStream
from agents.harness.secret_files import MOST_VALUES, values_in_file
from agents.harness.secret_index import Index

KEY = "sk-ant-api03-Zq8vN2xR7tLw4KfBd9HsYc1mGp5eJu6aTo3iXn0QkVrWzMbEhCjDyFgPlSs-AAA"
ODD = "p'a\"s$s /w+ör\\d&<%7>=="
SHORT = "hunter2-x"
REDACTOR = Redactor([Secret("MODEL_KEY", KEY), Secret("ODD", ODD), Secret("SHORT", SHORT)])


def is_in(text: str, value: str) -> bool:
    """Whether a text tells the value, in one of the ways of this test, blanks apart."""
    tight = "".join(text.split())
    raw = value.encode()
    forms = {value, value[:20], quote(value, safe=""), json.dumps(value)[1:-1], raw.hex()}
    forms |= {base64.b64encode(b"x" * n + raw).decode()[4:-4] for n in range(3)}
    return any("".join(form.split()) in tight for form in forms if len(form) >= 8)


@pytest.mark.parametrize("value", [KEY, ODD, SHORT])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda v: quote(v, safe=""),
        lambda v: re.sub("%..", lambda escape: escape[0].lower(), quote(v, safe="")),
        lambda v: json.dumps({"a": v}),
        lambda v: json.dumps(json.dumps({"a": v})),
        lambda v: json.dumps({"a": v}, ensure_ascii=False),
        repr,
        shlex.quote,
        html.escape,
        lambda v: v.encode().hex(),
        lambda v: v.encode().hex().upper(),
        lambda v: v.encode().hex(" "),
        lambda v: v.encode().hex(" ", 2),
        lambda v: v.encode().hex(":"),
        lambda v: base64.b64encode(v.encode()).decode(),
        lambda v: base64.b64encode(f"x{v}".encode()).decode(),
        lambda v: base64.b64encode(f"xy{v}\n".encode()).decode(),
        lambda v: base64.urlsafe_b64encode(f"user:{v}".encode()).decode(),
        lambda v: base64.encodebytes(f"a line before it {v}".encode()).decode(),
        "\n".join,
        lambda v: f"{v[:7]}\x1b[01;31m\x1b[K{v[7:]}\x1b[m",
        lambda v: f"{v[:5]}\n      {v[5:]}",
    ],
)
def test_a_known_value_is_hidden_in_every_spelling(value, spell):
    text = f"before {spell(value)} behind"
    clean = REDACTOR.text(text)
    assert not is_in(clean, value), clean
    assert "[redacted: " in clean
    assert clean.startswith("before ")
    assert clean.endswith(" behind")
    assert clean.count("\n") == text.count("\n")


def test_a_part_of_a_long_value_is_hidden_too():
    assert KEY[:24] not in REDACTOR.text(f"{KEY[:24]}...")
    assert KEY[-26:] not in REDACTOR.text(f"...{KEY[-26:]}")
    assert KEY[20:46] not in REDACTOR.text(f"0000: {KEY[20:46]}  .")


def test_redacting_again_changes_nothing():
    once = REDACTOR.text(f"a {KEY} b password={KEY} https://me:{KEY}@host/")
    assert REDACTOR.text(once) == once
    assert Redactor().text(once) == once


def test_what_needs_no_change_is_the_same_object():
    text = "ordinary text\nof two lines " * 50
    assert REDACTOR.text(text) is text


@given(
    st.lists(
        st.sampled_from([KEY, ODD, KEY[:12], "a\n", " ", "päss", "sk-ant", "\x1b[1m"]), max_size=8
    ),
    st.lists(st.integers(1, 60), min_size=1, max_size=40),
)
@example([KEY], [1])
@example(["päss", ODD, KEY], [3])
@example(["päss", "sk-ant", KEY], [1])
def test_chunk_borders_make_no_difference_to_what_is_hidden(parts, sizes):
    whole = "".join(parts).encode()
    stream, out, at, turn = REDACTOR.stream(), b"", 0, 0
    while at < len(whole):
        size = sizes[turn % len(sizes)]
        out += stream.feed(whole[at : at + size])
        at, turn = at + size, turn + 1
    out += stream.close()
    text = out.decode("utf-8", "replace")
    for value in (KEY, ODD):
        assert not is_in(text, value)
    assert text.replace("\n", "") == REDACTOR.text(whole.decode()).replace("\n", "")


@pytest.mark.parametrize("size", [1, 3, 16, 100])
@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "MIIEowIBAAKCAQEA7u3\n" * 40
        + "-----END RSA PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "MIIEowIBAAKCAQEA7u3\n" * 2_000
        + "-----END RSA PRIVATE KEY-----\n",
        f"ghp_{'a1B2' * 9}\n",
        f"ghp_{'a1B2' * 4_000}\n",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P\n",
        "password = 'kX9vQ2mZ7rT4wL1pB8nC'\n",
        "postgres://me:kX9vQ2mZ7rT4wL1p@db/x\n",
    ],
)
def test_shapes_are_hidden_across_chunks_too(text, size):
    stream = TextStream(Redactor())
    out = "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size))
    out += stream.close()
    assert "[redacted: " in out
    for secret in ("MIIEow", "a1B2a1B2", "dozjgNry", "kX9vQ2mZ"):
        assert secret not in out


def test_a_stream_keeps_back_little_and_ordinary_lines_not_at_all():
    stream = REDACTOR.stream()
    assert stream.feed(b"tests/test_a.py::test_b PASSED\n") == b"tests/test_a.py::test_b PASSED\n"
    assert stream.feed(b"Collecting...") == b"Collecting..."
    given = 100_000
    kept = given - sum(len(stream.feed(b"eyJ" + b"a" * 97)) for _ in range(given // 100))
    assert 0 < kept <= MAX_HELD + 100


def test_a_value_at_the_end_of_a_chunk_waits_for_the_rest():
    stream = REDACTOR.stream()
    assert stream.feed(f"key: {KEY[:9]}".encode()) == b"key: "
    assert stream.feed(KEY[9:].encode() + b"\n") + stream.close() == b"[redacted: MODEL_KEY]\n"


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-api03-Zq8vN2xR7tLw4KfBd9HsYc1mGp5eJu6aTo3",
        f"ghp_{'a1B2' * 9}",
        f"github_pat_{'a1B2' * 15}",
        "glpat-x1Y2z3A4b5C6d7E8f9G0",
        "AKIAQ7RZ2M5XK3NPW4TB",
        "xoxb-1234567890-abcdefghij",
        "Authorization: Bearer kX9vQ2mZ7rT4wL1pB8nC",
        'API_KEY="kX9vQ2mZ7rT4wL1pB8nC"',
        "db_password: kX9vQ2mZ7rT4wL1pB8nC",
        '{"secret": "kX9vQ2mZ7rT4wL1pB8nC"}',
        "pc_" + "aB3-" * 10 + "xyz",
    ],
)
def test_well_known_forms_and_assignments_are_hidden(text):
    assert "[redacted: " in Redactor().text(f"a {text} b")


@pytest.mark.parametrize(
    "code",
    [
        'password = request.POST["password"]',
        "password=None, token: str = None",
        'api_key=os.environ["ANTHROPIC_API_KEY"]',
        "PASSWORD_HASHERS = [",
        "password = settings.DATABASES['default']['PASSWORD']",
        "token = secrets.token_urlsafe(32)",
        "const tokenCount = countTokensInMessage2(request)",
        'password="a long enough password"',
        "postgres://postgres:postgres@localhost/db",
        "https://user:password@example.org/",
        "SECRET_KEY=${SECRET_KEY:?set it}",
        "key: aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "secret: change-me-1234567890",
        "the token sk-ant-... is shown once",
        "class=sk-fading-circle-and-some-more-words-to-be-long",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEA7u3\n-----END CERTIFICATE-----",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 06086c8dc1e2b0b822cd15d6c15b0f00a08aaaa1",
        "token_type = 'urn:ietf:params:oauth:token-type:access_token'",
    ],
)
def test_ordinary_code_is_left_as_it_is(code):
    assert Redactor().text(code) == code


def test_hardly_anything_of_the_products_own_source_looks_like_a_secret():
    root = Path(__file__).parents[3]
    changed = [
        path.relative_to(root)
        for folder in ("agents", "board", "templates", "static/js", "docs")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".md", ".html", ".js"}
        and Redactor().text(text := path.read_text()) != text
    ]
    assert changed == []


def test_values_that_cannot_be_told_from_words_are_not_hidden():
    redactor = Redactor(
        [Secret("A", "postgres"), Secret("B", "localhost"), Secret("C", "12345678")]
    )
    assert redactor.text("postgres on localhost 12345678") == "postgres on localhost 12345678"


def test_the_secrets_of_an_env_file_are_its_values_that_are_secret():
    content = b"""# comment
export API_TOKEN="tok-8f3kd92mzq"   # the token
DEBUG=1
HOST=localhost
APP_NAME=my-little-app
DATABASE_URL=postgres://app:Zx81kd93ls@db.internal:5432/app
SIGNING_SALT='it is "quoted"'
MULTI=one two three
RANDOM_THING=q8W2e7R1t6Y3u5I4o9P0
"""
    found = {(secret.name, secret.value) for secret in values_in_file(".env", content)}
    assert found == {
        ("API_TOKEN", "tok-8f3kd92mzq"),
        ("DATABASE_URL", "Zx81kd93ls"),
        ("DATABASE_URL", "app:Zx81kd93ls@db.internal"),
        ("SIGNING_SALT", 'it is "quoted"'),
        ("RANDOM_THING", "q8W2e7R1t6Y3u5I4o9P0"),
    }


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("credentials.json", '{"a": [{"client_secret": "zK81-ssd9"}]}', "zK81-ssd9"),
        ("secrets.yml", "prod:\n  key_base: zK81-ssd9 # x\n", "zK81-ssd9"),
        ("master.key", "q8W2e7R1t6\n", "q8W2e7R1t6"),
        (
            "id_rsa",
            "-----BEGIN PRIVATE KEY-----\nMIIEvAIBADANBgk\n-----END PRIVATE KEY-----",
            "MIIEvAIBADANBgk",
        ),
        (".netrc", "machine x\nlogin y\npassword: zK81-ssd9", "zK81-ssd9"),
    ],
)
def test_the_secrets_of_other_files_are_found(name, content, value):
    assert value in {secret.value for secret in values_in_file(name, content.encode())}


def test_of_a_file_with_thousands_of_values_the_telling_ones_are_taken():
    values = {f"id_{n}": f"q8W2e7R1t6Y3u5I4o9P{n:05}" for n in range(5_000)}
    content = json.dumps({**values, "master_password": "zK81-ssd9"}).encode()
    found = values_in_file("terraform.tfstate", content)
    assert len(found) == MOST_VALUES
    assert found[0] == Secret("master_password", "zK81-ssd9")


def test_a_text_that_was_harmless_is_looked_through_again_when_more_is_known():
    redactor = Redactor()
    text = "the word is correct-horse-battery-77"
    assert redactor.text(text) == redactor.text(text) == text
    other = redactor.copy()
    redactor.learn([Secret("WORD", "correct-horse-battery-77")])
    assert redactor.text(text) == "the word is [redacted: WORD]"
    assert other.text(text) == text
    other.learn([Secret("OTHER", "something-else-4711")])
    assert redactor.text("something-else-4711") == "something-else-4711"


def test_what_is_remembered_as_harmless_stays_little():
    index = Index({})
    for number in range(5_000):
        index.remember(str(number))
    assert len(index.clean) <= 1_000


def test_looking_for_secrets_needs_nothing_of_django():
    """The harness stays plain, and quick to load."""
    code = "import sys, agents.harness.redaction; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
