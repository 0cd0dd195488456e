"""Where nested parts of a shell text end, and what braces stand for."""

import re

from agents.harness.policy.commands import Word

_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n")
_MOST_ALTERNATIVES = 32


def end_of_parentheses(text: str, at: int) -> int:
    """The place of the parenthesis that closes the one at `at`, or the end of the text."""
    depth = 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end
        elif character == '"':
            at = _end_of_double_quotes(text, at + 1)
        elif text.startswith("<<", at) and (skipped := _end_of_here_document(text, at)) > at:
            at = skipped
            continue
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                return at
        at += 1
    return at


def _end_of_double_quotes(text: str, at: int) -> int:
    """The place of the quote that closes; substitutions in between may have quotes of their own."""
    depth = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text.startswith("$(", at):
            depth += 1
        elif text[at] == ")" and depth:
            depth -= 1
        elif text[at] == '"' and not depth:
            return at
        at += 1
    return at


def _end_of_here_document(text: str, at: int) -> int:
    """The place behind a here-document that begins at `at`; `at` itself if there is none."""
    match = _HERE_DOCUMENT.match(text, at)
    if match is None:
        return at
    end = re.compile(rf"^\t*{re.escape(match[2])}$", re.MULTILINE).search(text, match.end())
    return len(text) if end is None else end.end()


def alternatives(word: Word) -> list[Word]:
    """`{a,b}` written out, if nothing in the word is quoted."""
    if word.quoted or "{" not in word.text:
        return [word]
    done: list[str] = []
    waiting = [word.text]
    while waiting and len(done) + len(waiting) < _MOST_ALTERNATIVES:
        text = waiting.pop(0)
        match = _BRACES.search(text)
        if match is None:
            done.append(text)
            continue
        before, after = text[: match.start()], text[match.end() :]
        waiting += [before + choice + after for choice in match[1].split(",")]
    names, tainted, glob = word.names, word.tainted, word.glob
    return [
        Word(text, word.known, names=names, tainted=tainted, glob=glob) for text in done + waiting
    ]
