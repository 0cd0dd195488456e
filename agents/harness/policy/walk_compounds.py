"""The ways through compound commands: conditions, choices, loops and groups."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.harness.policy import files, loops
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import (
    AndOr,
    Case,
    Compound,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Script,
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

_MOST_ROUNDS = 60
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


class Compounds(Words):
    """The part of a walk that is about compound commands."""

    def compound(self, compound: Compound, state: State) -> End:
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
        names = loops.changed(Script(item_of(Compound(node, []))), state.functions)
        if loops.TEXT in names or {loops.FOLDER, loops.LEAVES} <= names:
            raise NotUnderstoodError("it has a loop that is too hard to follow")
        begin = forgotten(state, names)
        values = self._values(node, state)
        for _ in range(3):
            after = [self._round(node, begin, value) for value in values]
            end = join(begin, *after)
            if end is None or end.folders == begin.folders:
                end = None if end is None else forgotten(end, names)
                return End(end, end)
            begin = forgotten(end, names)
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


def item_of(node: Node) -> list[AndOr]:
    """A node as the items of a script."""
    return [AndOr([("", Pipeline([node]))])]


def forgotten(state: State, names: frozenset[str]) -> State:
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
