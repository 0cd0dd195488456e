"""What the scripted model of the rehearsal says: a pure function of the conversation so far."""

from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
Block = dict[str, Any]

CHECK = "python3 -m unittest -q"

LANGUAGES_BEFORE = 'GREETINGS = {"en": "Hello"}'
LANGUAGES_AFTER = 'GREETINGS = {"en": "Hello", "fr": "Bonjour"}'
LANGUAGE_TEST = """
    def test_french(self):
        self.assertEqual(greet("fr"), "Bonjour")
"""
TEST_ANCHOR = """
    def test_english(self):
        self.assertEqual(greet("en"), "Hello")
"""
NAME_BEFORE = '''def greet(language: str = "en") -> str:
    """Return the greeting of a language."""
    return GREETINGS[language]
'''
NAME_AFTER = '''def greet(language: str = "en", name: str = "") -> str:
    """Return the greeting of a language, for `name` if one is given."""
    greeting = GREETINGS[language]
    return f"{greeting}, {name}" if name else greeting
'''
NAME_TEST = """
    def test_name(self):
        self.assertEqual(greet("en", "Ann"), "Hello, Ann")
"""
README = """\
# Hello

A program that says hello. `python3 hello.py` runs it, `python3 -m unittest` tests it.

## From Python

    from hello import greet

    greet("fr")         # Bonjour
    greet("en", "Ann")  # Hello, Ann
"""


def say(text: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": text}


def call(tool: str, **arguments: Any) -> Block:
    """A block that calls a tool; `answer` gives it its id."""
    return {"type": "tool_use", "name": tool, "input": arguments}


def plan(*texts: str, done: int = 0) -> Block:
    """The to-do list with its first `done` items done."""
    states = [
        "done" if place < done else "in_progress" if place == done else "pending"
        for place in range(len(texts))
    ]
    return call(
        "todo_write",
        items=[{"text": text, "status": state} for text, state in zip(texts, states, strict=True)],
    )


Turn = Sequence[Block] | Callable[[Json], list[Block]]

STEPS = ("Read the program and its tests", "Add French", "Run the tests")


def _after_the_cord(request: Json) -> list[Block]:
    """React to what the person answered about the old folder."""
    refused = any(
        block.get("is_error")
        for block in request["messages"][-1]["content"]
        if block["type"] == "tool_result"
    )
    words = (
        "I read the answer: the old folder stays. The task itself does not need it gone."
        if refused
        else "The old folder is gone. Now the tests."
    )
    return [say(words), call("bash", command=CHECK)]


CARDS: dict[str, Sequence[Turn]] = {
    "Say hello in French too": (
        [
            say("I will look at the program and its tests first."),
            plan(*STEPS),
            call("read_file", path="hello.py"),
            call("read_file", path="test_hello.py"),
        ],
        [
            say("One more entry in the table, and a test for it."),
            call("edit_file", path="hello.py", old=LANGUAGES_BEFORE, new=LANGUAGES_AFTER),
            call(
                "edit_file", path="test_hello.py", old=TEST_ANCHOR, new=TEST_ANCHOR + LANGUAGE_TEST
            ),
        ],
        [plan(*STEPS, done=2), call("bash", command=CHECK)],
        [plan(*STEPS, done=3)],
        [
            call(
                "report_result",
                status="done",
                summary="French is a second entry of GREETINGS, with a test. All tests pass.",
            )
        ],
    ),
    "Greet people by name": (
        [
            say("Let me see where the greeting is made."),
            call("read_file", path="hello.py"),
            call("read_file", path="test_hello.py"),
            call("list_files", path="."),
        ],
        [
            say("`greet` takes an optional name."),
            call("edit_file", path="hello.py", old=NAME_BEFORE, new=NAME_AFTER),
            call("edit_file", path="test_hello.py", old=TEST_ANCHOR, new=TEST_ANCHOR + NAME_TEST),
        ],
        [
            say(
                "The folder `old_greetings` looks unused. I would like to remove it, which deletes files for good."
            ),
            call("bash", command="rm -r old_greetings"),
        ],
        _after_the_cord,
        [
            call(
                "report_result",
                status="done",
                summary="`greet` takes a name, with a test. The old folder was handled as the person decided.",
            )
        ],
    ),
    "Say in the README how it is used": (
        [call("read_file", path="README.md")],
        [
            say("A short section with the two calls that people need."),
            call(
                "write_file",
                path="README.md",
                content=README,
            ),
        ],
        [
            call(
                "report_result",
                status="done",
                summary="The README shows how to call `greet` from Python.",
            )
        ],
    ),
}


def answer(request: Json) -> list[Block]:
    """Return the content of the next turn of whichever rehearsal card this conversation is about."""
    first = request["messages"][0]["content"]
    prompt = first if isinstance(first, str) else "".join(block.get("text", "") for block in first)
    turns = next((turns for title, turns in CARDS.items() if f"# {title}" in prompt), None)
    if turns is None:
        return [_only_the_rehearsal()]
    number = sum(message["role"] == "assistant" for message in request["messages"])
    if number >= len(turns):
        return [call("report_result", status="done", summary="Everything was done before.")]
    turn = turns[number]
    return turn(request) if callable(turn) else list(turn)


def _only_the_rehearsal() -> Block:
    return call(
        "report_result",
        status="failed",
        summary="The rehearsal only knows its own three cards. Set a model key to have other cards done.",
    )
