"""A database that was made at once is the one that was changed step by step."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader

from board.models import AuditHead
from tests.databases import URL
from tests.prepared import ROOT, copy_database, environment_of
from tests.schemas import describe


def test_the_migrations_at_once_know_what_the_single_ones_knew() -> None:
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


@pytest.mark.django_db
def test_the_single_migrations_make_the_same_database_and_move_what_it_holds(
    tmp_path: Path,
) -> None:
    url = os.environ.get(URL, "")
    own = (
        copy_database(url, "template1", f"single_{secrets.token_hex(6)}")
        if url
        else f"sqlite:///{tmp_path / 'single.sqlite3'}"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.schemas"],
        cwd=ROOT,
        env=environment_of(tmp_path) | {"DATABASE_URL": own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = json.loads(done.stdout)
    assert made["grants"] == [{"tool": "bash", "input": {"command": "make"}}]
    assert made["head"] == list(AuditHead.objects.values("pk", "number", "hash"))
    schema = describe(connection)
    assert made["schema"].keys() == schema.keys()
    different = {name: (made["schema"][name], what) for name, what in schema.items()}
    assert {name: both for name, both in different.items() if both[0] != both[1]} == {}
    assert len(schema) > 100
