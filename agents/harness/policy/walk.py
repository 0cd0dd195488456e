"""Follows a strictly read text through all its ways, and judges each command where it runs.

Each construct gives the states in which it may end: one if it succeeds, one if it fails. So `cd x
&& y` runs y in x, and `cd x; y` in x or where it was before.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agents.harness.policy import content, files, loops
from agents.harness.policy.context import Context
from agents.harness.policy.parse import parse
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.simple import Argument, NotUnderstoodError
from agents.harness.policy.syntax import (
    AndOr,
    Case,
    Compound,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Word,
)
from agents.harness.policy.values import (
    LISTED,
    NUMBER,
    UNKNOWN,
    Field,
    Kind,
    State,
    Value,
    join,
)
from agents.harness.policy.walk_words import End, Words

_MOST_STEPS = 1500
_MOST_CALLS = 6  # of functions and texts in each other
_MOST_ROUNDS = 60
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


@dataclass(frozen=True)
class Run:
    """A simple command after expansion, with the state that it runs in."""

    fields: list[Field]
    assignments: list[tuple[str, Value]]
    state: State


Judge = Callable[["Walker", Run], End]


class Walker(Words):
    """`judge` decides about a simple command; it raises Refused. `rules` are those that allow."""

    def __init__(self, context: Context, judge: Judge) -> None:
        super().__init__(context)
        self.rules: list[str] = []
        self.calls = 0
        self._judge = judge
        self._steps = 0

    def text(self, text: str, state: State) -> End:
        """Judge a shell text."""
        self.calls += 1
        if self.calls > _MOST_CALLS:
            raise NotUnderstoodError("it is nested too deeply")
        end = self.script(parse(text)[0], state)
        self.calls -= 1
        return end

    def script(self, script: Script, state: State) -> End:
        """One item after the other."""
        end = End(state, None)
        for item in script.items:
            now = end.state
            if now is None:
                raise NotUnderstoodError("it goes on behind its end")
            end = self._and_or(item, now)
            if item.background:
                self.rules.append("L7")
                end = End(now, None)
        return end if len(script.items) == 1 else replace(end, output=UNKNOWN)

    def _and_or(self, item: AndOr, state: State) -> End:
        end = End(state, state)
        for operator, pipeline in item.pipelines:
            begin = {"": state, "&&": end.success, "||": end.failure}[operator]
            if begin is None:
                raise NotUnderstoodError("it goes on behind its end")
            after = self._pipeline(pipeline, begin)
            if operator == "&&":
                end = End(after.success, join(end.failure, after.failure))
            elif operator == "||":
                end = End(join(end.success, after.success), after.failure)
            else:
                end = after
        return end if len(item.pipelines) == 1 else replace(end, output=UNKNOWN)

    def _pipeline(self, pipeline: Pipeline, state: State) -> End:
        if len(pipeline.nodes) == 1:
            return self._node(pipeline.nodes[0], state)
        output: Value | None = state.stdin
        for node in pipeline.nodes:
            output = self._node(node, replace(state, stdin=output)).output
        return End(state, state, output or UNKNOWN)

    def _node(self, node: Node, state: State) -> End:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotUnderstoodError("it takes too many steps")
        if isinstance(node, Simple):
            return self._simple(node, state)
        if isinstance(node, Function):
            functions = {**state.functions, node.name: node.body}
            return End(replace(state, functions=functions), None)
        stdin = self._redirects(node.redirects, state, UNKNOWN)
        inner = replace(state, stdin=stdin if stdin is not None else state.stdin)
        end = self._compound(node, inner)
        output = UNKNOWN if node.redirects else end.output
        success = None if end.success is None else replace(end.success, stdin=state.stdin)
        failure = None if end.failure is None else replace(end.failure, stdin=state.stdin)
        return End(success, failure, output)

    def _compound(self, compound: Compound, state: State) -> End:
        node = compound.node
        if isinstance(node, Group):
            if node.words:
                self._test(node.words, state)
                return End(state, state)
            end = self.script(node.script, state)
            return End(state, state, end.output) if node.is_subshell else end
        if isinstance(node, If):
            return self._if(node, state)
        if isinstance(node, Case):
            self.expand(node.words, state)
            after = [self.script(body, state).state for body in node.bodies]
            return End(join(state, *after), join(state, *after))
        return self._loop(node, state)

    def _test(self, words: Sequence[Word], state: State) -> None:
        fields = self.expand(words, state)
        if _COMPARES & {one.text for one in fields}:
            # It works out both sides as arithmetic, which may run commands.
            for one in fields:
                plain = one.is_constant and one.text.replace("-", "").isalnum()
                if one.kind is not Kind.NUMBER and not (plain and "$" not in one.text):
                    raise Refused("A9", "Compares a number that is not known")

    def _if(self, node: If, state: State) -> End:
        ends: list[State | None] = []
        begin: State | None = state
        for condition, body in node.branches:
            if begin is None:
                raise NotUnderstoodError("it goes on behind its end")
            end = self.script(condition, begin) if condition is not None else End(begin, None)
            if end.success is not None:
                ends.append(self.script(body, end.success).state)
            begin = end.failure
        after = join(*ends, begin)
        return End(after, after)

    def _loop(self, node: Loop, state: State) -> End:
        names = loops.changed(Script(_item(Compound(node, []))), state.functions)
        if loops.TEXT in names or {loops.FOLDER, loops.LEAVES} <= names:
            raise NotUnderstoodError("it has a loop that is too hard to follow")
        begin = _forgotten(state, names)
        values = self._values(node, state)
        for _ in range(3):
            after = [self._round(node, begin, value) for value in values]
            end = join(begin, *after)
            if end is None or end.folders == begin.folders:
                end = None if end is None else _forgotten(end, names)
                return End(end, end)
            begin = _forgotten(end, names)
        raise NotUnderstoodError("it has a loop that changes the folder each time")

    def _round(self, node: Loop, state: State, value: Value) -> State | None:
        if node.name:
            variables = {**state.variables, node.name: value}
            return self.script(node.body, replace(state, variables=variables)).state
        assert node.condition is not None  # noqa: S101  the parser says so
        end = self.script(node.condition, state)
        if end.success is None:
            return end.failure
        return join(end.failure, self.script(node.body, end.success).state)

    def _values(self, node: Loop, state: State) -> list[Value]:
        """The values that the name of a loop takes, in turn."""
        if node.words is None:
            return [UNKNOWN]
        found: dict[Value, None] = {}
        for one in self.expand(node.words, state):
            if one.glob:
                for path in self._matches(one, state):
                    found[Value(path, Kind.KNOWN)] = None
            else:
                found[Value(one.text, one.kind)] = None
        if len(found) <= _MOST_ROUNDS:
            return list(found)
        return [LISTED if all(self._is_harmless_path(one, state) for one in found) else UNKNOWN]

    def _is_harmless_path(self, value: Value, state: State) -> bool:
        if value.kind is not Kind.KNOWN or value.text.startswith("-"):
            return False
        for folder in state.folders:
            path = files.real(self.context, value.text, cwd=folder)
            if files.is_secret(path) or not files.is_inside(self.context, path):
                return False
        return True

    def _matches(self, one: Field, state: State) -> list[str]:
        if one.kind is not Kind.KNOWN:
            raise NotUnderstoodError("it loops over files that are not known")
        found = [one.text]  # what it is if nothing matches
        for folder in state.folders:
            found += self.context.files.matches(one.text, folder=folder, limit=_MOST_ROUNDS + 1)
        return found

    def _simple(self, node: Simple, state: State) -> End:
        assignments = []
        inner = state
        for name, word in node.assignments:
            value = self.value(word, inner)
            assignments.append((name, value))
            inner = replace(inner, variables={**inner.variables, name: value})
        # The words are expanded before the assignments in front of them hold.
        fields = self.expand(node.words, state if node.words else inner)
        if [one.text for one in fields] == ["exec"] and node.redirects:
            # From here on all output goes there, whatever it will be.
            self._redirects(node.redirects, state, UNKNOWN)
            if any(content.will_run(path) for path in self.written):
                raise Refused("C1", "Writes a script without showing what")
            if any(one.operator.startswith("<") for one in node.redirects):
                raise Refused("A9", "Reads its input from somewhere else from here on")
            return End(state, state)
        stdin = self._redirects(node.redirects, state, None)
        here = replace(state, stdin=stdin if stdin is not None else state.stdin)
        is_printed = not any(_is_of_output(one) for one in node.redirects)
        end = self._judge(self, Run(fields, assignments, here))
        if not is_printed:
            self._redirects(node.redirects, state, end.output)
            end = replace(end, output=UNKNOWN)
        if stdin is None:
            return end
        success = None if end.success is None else replace(end.success, stdin=state.stdin)
        failure = None if end.failure is None else replace(end.failure, stdin=state.stdin)
        return End(success, failure, end.output)

    def call(self, body: Node, run: Run) -> End:
        """Run the body of a function with the fields of the call."""
        names = loops.changed(Script(_item(body)), run.state.functions)
        if loops.TEXT in names or {loops.FOLDER, loops.LEAVES} <= names:
            raise NotUnderstoodError("it has a function that is too hard to follow")
        self.calls += 1
        if self.calls > _MOST_CALLS:
            raise NotUnderstoodError("its functions call each other too deeply")
        arguments = tuple(run.fields[1:])
        if any(one.glob for one in arguments):
            arguments = (Field("", Kind.TEXT),)
        variables = {**run.state.variables, **dict(run.assignments)}
        inner = replace(run.state, arguments=arguments, variables=variables)
        end = self._node(body, inner)
        self.calls -= 1
        after = end.state
        if after is None:
            return End(None, None)
        forgotten = _forgotten(replace(after, arguments=run.state.arguments), names)
        forgotten = replace(forgotten, variables={**forgotten.variables,
                                                  **{name: UNKNOWN for name, _ in run.assignments}})  # fmt: skip
        return End(forgotten, forgotten, end.output)


def _is_of_output(redirect: Redirect) -> bool:
    return redirect.number in ("", "1") and not redirect.operator.startswith("<")


def _item(node: Node) -> list[AndOr]:
    return [AndOr([("", Pipeline([node]))])]


def _forgotten(state: State, names: frozenset[str]) -> State:
    """The state when these variables may have any value."""
    variables = dict(state.variables)
    for name in names:
        counted = name.removeprefix(loops.NUMBER)
        before = variables.get(counted, UNKNOWN)
        is_number = before.kind is Kind.NUMBER or (
            before.kind is Kind.KNOWN and re.fullmatch(r"-?\d+", before.text) is not None
        )
        variables[counted] = (
            NUMBER if counted != name and is_number and counted not in names else UNKNOWN
        )
    arguments = None if loops.ARGUMENTS in names else state.arguments
    return replace(state, variables=variables, arguments=arguments)


def as_arguments(fields: Sequence[Field]) -> list[Argument]:
    """The form in which the lists of programs take them."""
    return [Argument(one.text, one.glob, one.quoted) for one in fields]
