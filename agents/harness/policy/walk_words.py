"""What the words and redirections of a text come to, and the scripts that it runs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.harness.policy import denies, files
from agents.harness.policy.context import MOST_BYTES_READ, Context
from agents.harness.policy.expanding import Expander
from agents.harness.policy.programs_paths import Denied, Refused
from agents.harness.policy.redirects import check_redirect
from agents.harness.policy.syntax import Literal, Redirect, Script, Word
from agents.harness.policy.values import UNKNOWN, Field, Kind, State, Value, join


@dataclass(frozen=True)
class End:
    """How something ends; `output` is what it prints."""

    success: State | None
    failure: State | None
    output: Value = UNKNOWN

    @property
    def state(self) -> State | None:
        """Whatever comes of it."""
        return join(self.success, self.failure)


class Words(ABC):
    """The part of a walk that is about words; `script` is given by the part about ways."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.written: dict[str, Value] = {}  # real paths that the text writes, with the content
        self._places = (str(context.home), str(context.scratch))
        self.is_behind_link = False  # whether it may have entered a folder through a link
        self.has_run_text = False  # whether a program text may have written any file here
        self.built: set[str] = set()  # programs that the text has compiled
        self.ran: set[str] = set()  # scripts whose content has been looked at
        self.makes_odd_names = False  # whether files may be named like options
        self.has_moved = False  # whether the text changes files that it does not name

    @abstractmethod
    def script(self, script: Script, state: State) -> End:
        """Judge the commands of a substitution."""

    def note_written(self, path: str, content: Value, *, appends: bool = False) -> None:
        """Remember that the text writes a file; what it writes twice is not known.

        The text of a value that is not known is what it may be: for the rules that deny.
        """
        if path in self.ran:  # a shell reads its script while it runs
            raise Refused("C2", f"Changes a script that the same call runs ({path})")
        known = self.written.get(path)
        if appends:
            before = known.text if known is not None else self._before(path)
            self.written[path] = Value(before + content.text, Kind.TEXT)
        elif known in (None, content):
            self.written[path] = content
        else:
            self.written[path] = Value(content.text, Kind.TEXT)

    def _before(self, path: str) -> str:
        content = self.context.files.read(path) or b""
        return content[:MOST_BYTES_READ].decode("utf-8", "replace")

    def script_text(self, path: str, state: State) -> str:
        """Rule C2: the content of a script at this moment, or what the text itself writes there."""
        found: set[str] = set()
        for folder in state.folders:
            place = files.real(self.context, path, cwd=folder)
            if not files.is_readable(self.context, place) or files.is_secret(place):
                raise Refused("A13", f"Runs a script outside the workspace ({path})")
            found.add(self._content(place, path))
            self.ran.add(place)
        if len(found) != 1:
            raise Refused("A9", f"Runs a script whose place is not known ({path})")
        return found.pop()

    def _content(self, place: str, path: str) -> str:
        if self.has_moved or any(files.is_below(place, written) for written in self.written):
            value = self.written.get(place, UNKNOWN)
            if value.kind is not Kind.KNOWN or self.has_moved:
                for finding in denies.judge(self.context, value.text).findings:
                    raise Denied(finding.rule, finding.reason)
                raise Refused("C2", f"Runs a script that the same call writes ({path})")
            return value.text
        content = self.context.files.read(place)
        if (self.has_run_text and content is not None) or place in self.built:
            raise Refused("C2", f"Runs a script that the same call may write ({path})")
        if content is None or b"\0" in content or len(content) >= MOST_BYTES_READ:
            raise Refused("C2", f"Runs a script that cannot be looked at ({path})")
        return content.decode("utf-8", "replace")

    def expand(self, words: Sequence[Word], state: State) -> list[Field]:
        """The words as a program gets them."""
        expander = Expander(state, self._places, lambda s: self._substituted(s, state))
        return expander.fields(words)

    def value(self, word: Word, state: State) -> Value:
        """A word that is not split."""
        expander = Expander(state, self._places, lambda s: self._substituted(s, state))
        return expander.value(word)

    def _substituted(self, script: Script, state: State) -> Value:
        output = self.script(script, state).output
        return replace(output, text=output.text.replace("\0", "").rstrip("\n"))

    def _redirects(
        self, redirects: Sequence[Redirect], state: State, output: Value | None
    ) -> Value | None:
        """Check them; the value that they give to the standard input, if they do.

        `output` is None as long as it has not been looked at what the command prints.
        """
        stdin: Value | None = None
        for one in redirects:
            if one.body is not None:
                found = self.value(one.body, state)
            elif one.operator == "<<<":
                found = self.value(one.target, state)
                found = replace(found, text=found.text + "\n")
            else:
                found = self._redirected(one, state, output)
            if one.number in ("", "0") and one.operator.startswith("<"):
                stdin = found
        return stdin

    def _redirected(self, one: Redirect, state: State, output: Value | None) -> Value:
        part = one.target[0]
        fields = self.expand([one.target], state)
        for folder in state.folders:
            here = replace(self.context, cwd=folder)
            path = check_redirect(here, one.operator, fields, output or UNKNOWN)
            prints = one.number in ("", "1")
            if path is not None and (output is not None or not prints):
                given = (output or UNKNOWN) if prints or one.operator[:1] == "&" else UNKNOWN
                self.note_written(path, given, appends=one.operator in (">>", "&>>"))
        if len(one.target) == 1 and not isinstance(part, Literal) and one.operator == "<":
            return self._file_of(one.target, state)
        is_named = one.operator == "<" and len(fields) == 1 and fields[0].is_constant
        return Value(path=fields[0].text) if is_named else UNKNOWN

    def _file_of(self, word: Word, state: State) -> Value:
        """What `< <(...)` gives."""
        found: list[Value] = []

        def note(script: Script) -> Value:
            found.append(self._substituted(script, state))
            return found[-1]

        Expander(state, self._places, note).fields([word])
        return found[0] if found else UNKNOWN
