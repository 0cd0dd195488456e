"""Programs that a repository brings along to run a build tool: `./gradlew`, `./mvnw`, `vendor/bin/phpunit`.

They are long, and generated, so that their text is not understood. One that is the same as in the
main checkout, where no agent can write, is judged like the tool that it starts.
"""

from agents.harness.policy import files
from agents.harness.policy.values import State
from agents.harness.policy.walk_words import Words

NAMES = {"gradlew": "gradle", "mvnw": "mvn", "phpunit": "phpunit"}
_PLACES = frozenset(
    ["./gradlew", "./mvnw", "../gradlew", "../mvnw", "vendor/bin/phpunit", "./vendor/bin/phpunit"]
)


def is_one(walker: Words, path: str, state: State) -> bool:
    """Whether `path` starts such a tool. A file that is not there starts nothing."""
    if path not in _PLACES or walker.has_moved or walker.has_run_text:
        return False
    context = walker.context
    for folder in state.folders:
        place = files.real(context, path, cwd=folder)
        if not files.is_inside(context, place) or place in walker.written:
            return False
        content = context.files.read(place)
        if content is None:
            continue
        if context.repository is None or not files.is_below(place, context.workspace):
            return False
        original = f"{context.repository}{place[len(str(context.workspace)) :]}"
        if context.files.read(context.files.real(original)) != content:
            return False
    return True
