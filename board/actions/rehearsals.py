"""Starting a rehearsal: a demo project with three cards that need each other, done by a scripted model."""

from django.conf import settings

from board.actions.cards import create_card
from board.actions.projects import create_project
from board.models import Card, Project, User

CHECK = "python3 -m unittest -q"

CARDS = [
    (
        "Say hello in French too",
        '`greet("fr")` returns “Bonjour”. Add it to the table of greetings, with a test.',
        ["hello.py", "test_hello.py"],
        [CHECK],
    ),
    (
        "Greet people by name",
        '`greet("en", "Ann")` returns “Hello, Ann”. The name is optional. Tidy up what is unused.',
        ["hello.py", "test_hello.py"],
        [CHECK],
    ),
    (
        "Say in the README how it is used",
        "A short section for people who call `greet` from Python.",
        ["README.md"],
        ["grep -q 'from hello import greet' README.md"],
    ),
]


def start_rehearsal(*, by: User) -> Project:
    """Make the demo project with its repository and cards, in the backlog, each needing the one before."""
    key = _free_key()
    project = create_project(
        by=by,
        key=key,
        name="Rehearsal",
        repository=str(settings.DATA / "rehearsals" / f"{key.lower()}.git"),
        target_branch="main",
        is_rehearsal=True,
        model="rehearsal",
    )
    before: list[Card] = []
    for title, goal, files, checks in CARDS:
        card = create_card(
            project,
            by=by,
            title=title,
            goal=goal,
            files=files,
            checks=checks,
            depends_on=before[-1:],
        )
        before.append(card)
    return project


def _free_key() -> str:
    taken = set(Project.objects.filter(key__startswith="DEMO").values_list("key", flat=True))
    numbers = ["DEMO", *(f"DEMO{number}" for number in range(2, 1000))]
    return next(key for key in numbers if key not in taken)
