"""A database that was made at once is the one that was changed step by step."""

from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader


def test_the_migrations_at_once_do_what_the_single_ones_did() -> None:
    at_once = MigrationLoader(None)
    single = MigrationLoader(None, replace_migrations=False)
    whole = next(
        name for app, name in at_once.graph.nodes if app == "board" and "_squashed_" in name
    )
    replaced = at_once.get_migration("board", whole).replaces
    assert len(replaced) == 11
    assert set(replaced) <= set(single.graph.nodes)
    assert not set(replaced) & set(at_once.graph.nodes)
    states = [
        loader.project_state(("board", name))
        for loader, name in ((at_once, whole), (single, replaced[-1][1]))
    ]
    for before, after in (states, states[::-1]):
        assert MigrationAutodetector(before, after).changes(at_once.graph) == {}
