"""Fixtures for all tests. Alice owns the board, Bob is a member, Vera a viewer, Mallory a stranger."""

import gc
import inspect
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connection, connections
from django.db.backends.base.creation import TEST_DATABASE_PREFIX

from agents.workspaces.trees import spread
from board.actions import cards, errands, projects, workers
from board.actions.claims import claim_next
from board.models import Card, Membership, Project, Run, User, Worker
from board.states import ErrandKind, Role
from tests import audit_guards
from tests.completeness import pytest_make_collect_report, pytest_runtest_makereport
from tests.databases import SHARED, URL, pytest_collection_modifyitems, valkey
from tests.prepared import copy_database, prepare

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_make_collect_report",
    "pytest_runtest_makereport",
    "valkey",
]

audit_guards.install()

PASSWORD = "a long enough password"


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is loaded by now: looking through it was a fortieth of the tests' time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _spread_the_folders_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep a test from waiting for the disk because another one deletes many files."""
    spread(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def django_db_keepdb(request: pytest.FixtureRequest, django_db_modify_db_settings: None) -> bool:
    """Say that there is a database already: where all tests run, a copy of one that is migrated."""
    del django_db_modify_db_settings  # it has named the database of this process
    if SHARED not in os.environ:
        return bool(request.config.getoption("reuse_db"))
    migrated = prepare(url := os.environ.get(URL, "")).migrated
    values = connection.settings_dict
    name = values["TEST"]["NAME"] or TEST_DATABASE_PREFIX + values["NAME"]
    if url:
        copy_database(url, migrated, name)
    else:
        shutil.copy(migrated, name)
    return True


@pytest.fixture(autouse=True)
def _close_the_threads_of_async_parts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close the connections that asgiref's one thread and the feeds' threads leave open."""
    yield
    if not inspect.iscoroutinefunction(getattr(request, "function", None)):
        return
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
    if (module := sys.modules.get("board.feeds.threads")) is not None:
        together = threading.Barrier(module.THREADS, timeout=20)

        def close() -> None:
            together.wait()  # so that each thread takes one of these
            connections.close_all()

        for future in [module.pool.submit(close) for _ in range(module.THREADS)]:
            future.result()


def make_user(name: str, *, is_owner: bool = False) -> User:
    """Return a person called `name` who signs in with PASSWORD."""
    return User.objects.create_user(
        email=f"{name.lower()}@example.org", password=PASSWORD, name=name, is_owner=is_owner
    )


@pytest.fixture
def alice(db: None) -> User:
    return make_user("Alice", is_owner=True)


@pytest.fixture
def bob(db: None) -> User:
    return make_user("Bob")


@pytest.fixture
def vera(db: None) -> User:
    return make_user("Vera")


@pytest.fixture
def mallory(db: None) -> User:
    return make_user("Mallory")


@pytest.fixture
def worker(db: None) -> Worker:
    row = Worker(host="here", pid=1, version="0", slots=4, sandbox="bubblewrap")
    workers.register_worker(row)
    return row


@pytest.fixture
def project(alice: User, bob: User, vera: User, worker: Worker) -> Project:
    """A board whose repository is fetched: Alice owns it, Bob is a member, Vera a viewer."""
    project = projects.create_project(by=alice, key="BIL", name="Billing", repository="/nowhere")
    Membership.objects.create(project=project, user=bob, role=Role.MEMBER)
    Membership.objects.create(project=project, user=vera, role=Role.VIEWER)
    errand = errands.claim_errand(worker.pk)
    assert errand is not None
    assert errand.kind == ErrandKind.FETCH
    projects.finish_fetch(errand, fence=errand.fence, target_branch="main")
    project.refresh_from_db()
    return project


@pytest.fixture
def new_card(project: Project, alice: User) -> Callable[..., Card]:
    """Make cards in the backlog: `new_card("Title", depends_on=[other])`."""

    def make(title: str = "A card", **values: object) -> Card:
        values.setdefault("checks", ["true"])
        return cards.create_card(project, by=alice, title=title, **values)  # type: ignore[arg-type]

    return make


@pytest.fixture
def running(new_card: Callable[..., Card], alice: User, worker: Worker) -> Run:
    """A run that the `worker` holds, in status running."""
    from board.actions import runs

    card = new_card("Running card")
    cards.queue_card(card, by=alice)
    claim = claim_next(worker.pk, agent="agent-1", with_credential=True)
    assert claim is not None
    runs.begin_work(claim.run_id, claim.fence, branch="cards/BIL-1-1", base_sha="0" * 40)
    return Run.objects.select_related("card__project", "project").get(pk=claim.run_id)
