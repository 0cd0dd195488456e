"""Follows a strictly read text through all its ways, and judges each command where it runs.

Each construct gives the states in which it may end: one if it succeeds, one if it fails. So `cd x
&& y` runs y in x, and `cd x; y` in x or where it was before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from agents.harness.policy import content, loops
from agents.harness.policy.context import Context
from agents.harness.policy.parse import parse
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.simple import Argument, NotUnderstoodError
from agents.harness.policy.syntax import (
    AndOr,
    Function,
    Group,
    Items,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Word,
)
from agents.harness.policy.values import (
    UNKNOWN,
    Field,
    Kind,
    State,
    Value,
    join,
)
from agents.harness.policy.walk_compounds import Compounds, forgotten, item_of
from agents.harness.policy.walk_words import End

_MOST_STEPS = 1500
_MOST_CALLS = 6  # of functions and texts in each other


@dataclass(frozen=True)
class Run:
    """A simple command after expansion, with the state that it runs in."""

    fields: list[Field]
    assignments: list[tuple[str, Value]]
    state: State


Judge = Callable[["Walker", Run], End]


class Walker(Compounds):
    """`judge` decides about a simple command; it raises Refused. `rules` are those that allow."""

    def __init__(self, context: Context, judge: Judge) -> None:
        super().__init__(context)
        self.rules: list[str] = []
        self.calls = 0
        self.bodies = 0  # of functions that are being run
        self.maybe = 0  # how many conditions what is judged now depends on
        self._judge = judge
        self._steps = 0

    @contextmanager
    def perhaps(self, *, depends: bool = True) -> Iterator[None]:
        """What is judged in here may not run, or not to its end, if it `depends` on something."""
        self.maybe += depends
        yield
        self.maybe -= depends

    def shell(self, text: str, state: State) -> End:
        """Judge the text of another shell: what it defines is gone when it ends."""
        before, self.maybe, bodies, self.bodies = self.maybe, 0, self.bodies, 0
        end = self.text(text, state)
        self.maybe, self.bodies = before, bodies
        return end

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
            with self.perhaps(depends=bool(operator)):
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
            if self.maybe:
                raise NotUnderstoodError("it defines a function that may not be there later")
            functions = {**state.functions, node.name: node.body}
            return End(replace(state, functions=functions), None)
        stdin = self._redirects(node.redirects, state, UNKNOWN)
        inner = replace(state, stdin=stdin if stdin is not None else state.stdin)
        with self.perhaps(depends=not isinstance(node.node, Group)):
            end = self.compound(node, inner)
        output = UNKNOWN if node.redirects else end.output
        success = None if end.success is None else replace(end.success, stdin=state.stdin)
        failure = None if end.failure is None else replace(end.failure, stdin=state.stdin)
        return End(success, failure, output)

    def _simple(self, node: Simple, state: State) -> End:
        assignments = []
        inner = state
        for name, word in node.assignments:
            value = self.value(word, inner)
            if value.items is not None:
                value = self._list(name, word, value, node, inner)
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

    def _list(self, name: str, word: Word, value: Value, node: Simple, state: State) -> Value:
        """A list that is assigned, or put behind another one."""
        (part,) = word
        if node.words or not isinstance(part, Items):
            raise NotUnderstoodError("it has a list in an unusual place")
        before = state.variables.get(name, UNKNOWN).items
        if not part.adds:
            return value
        return replace(value, items=(*(before or (Field("", Kind.TEXT),)), *(value.items or ())))

    def call(self, body: Node, run: Run) -> End:
        """Run the body of a function with the fields of the call."""
        names = loops.changed(Script(item_of(body)), run.state.functions)
        if loops.TEXT in names or {loops.FOLDER, loops.LEAVES} <= names:
            raise NotUnderstoodError("it has a function that is too hard to follow")
        self.calls += 1
        self.bodies += 1
        if self.calls > _MOST_CALLS:
            raise NotUnderstoodError("its functions call each other too deeply")
        arguments = tuple(run.fields[1:])
        if any(one.glob for one in arguments):
            arguments = (Field("", Kind.TEXT),)
        variables = {**run.state.variables, **dict(run.assignments)}
        inner = replace(run.state, arguments=arguments, variables=variables)
        with self.perhaps():
            end = self._node(body, inner)
        self.calls -= 1
        self.bodies -= 1
        after = end.state
        if after is None:
            return End(None, None)
        end_state = forgotten(replace(after, arguments=run.state.arguments), names)
        given = {name: UNKNOWN for name, _ in run.assignments}
        end_state = replace(end_state, variables={**end_state.variables, **given})
        return End(end_state, end_state, end.output)


def _is_of_output(redirect: Redirect) -> bool:
    return redirect.number in ("", "1") and not redirect.operator.startswith("<")


def as_arguments(fields: Sequence[Field]) -> list[Argument]:
    """The form in which the lists of programs take them."""
    return [Argument(one.text, one.glob, one.quoted) for one in fields]
