"""The image and compose.yaml, as far as they can be judged without a registry: what they name is there."""

import re
import shlex
from fnmatch import fnmatch
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from agents.sandbox_probe import CONTAINER_OPTIONS
from agents.starting import programs
from board.management import setup
from tests.documents import ROOT, settings_that_are_read

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {name: one for name, one in COMPOSE["services"].items() if "build" in one}
LET_IN = [line for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")]


def instructions(name: str) -> list[str]:
    """What follows each instruction of this name."""
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, flags=re.MULTILINE)


def is_let_in(path: PurePosixPath) -> bool:
    return any(fnmatch(path.parts[0], line[1:]) for line in LET_IN)


def test_all_that_is_copied_by_name_is_there_and_reaches_the_build():
    named = [
        PurePosixPath(word)
        for line in instructions("COPY")
        if not line.startswith("--from")
        for word in shlex.split(line)[:-1]
        if word != "."
    ]
    assert named
    for path in named:
        assert (ROOT / path).is_file(), path
        assert is_let_in(path), path


def test_the_build_gets_all_that_set_up_reads_and_the_product_shows():
    read = [setup.RUN_LOCK, setup.DEV_LOCK, setup.NPM_LOCK, ROOT / "package.json", ROOT / ".npmrc"]
    shown = [ROOT / name for name in ("board", "agents", "templates", "static", "manage.py")]
    for path in [*read, *shown]:
        assert path.exists(), path
        assert is_let_in(PurePosixPath(path.relative_to(ROOT))), path


@pytest.mark.parametrize("name", [".env", ".env.example", ".git", "data", "tests", "docs"])
def test_secrets_and_what_is_for_developers_do_not_reach_the_build(name):
    assert not is_let_in(PurePosixPath(name))


def test_the_image_runs_as_a_user_whose_data_nobody_else_reads():
    assert instructions("USER") == ["pullcord"]
    assert "install -d -m 700 -o pullcord" in DOCKERFILE
    assert "PULLCORD_DATA=/data" in DOCKERFILE
    assert instructions("VOLUME") == ["/data"]


def commands() -> list[list[str]]:
    """The commands of the image, and of our services in compose.yaml."""
    own = [yaml.safe_load(line) for line in instructions("CMD")]
    return own + [shlex.split(service["command"]) for service in OURS.values()]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_each_command_starts_something_that_exists(command):
    scripts = {point.name for point in entry_points(group="console_scripts")}
    match command:
        case ["python", "-m", module, *_]:
            assert find_spec(module)
        case ["python", script, *_]:
            assert (ROOT / script).is_file()
        case [program, *_]:
            assert program in scripts
        case _:
            pytest.fail("no command")


def test_the_services_start_what_up_starts():
    """Limits and queues stand in those commands, so others would be another product."""
    started = {program.name: list(program.argv) for program in programs("0.0.0.0", 8400)}  # noqa: S104
    web = shlex.split(OURS["web"]["command"])
    assert web[1:] == started["web"][1:]
    worker = shlex.split(OURS["worker"]["command"])
    assert {"--quiet", "--pool", "threads", "-Q", "agents,housekeeping"} <= set(worker)
    assert set(worker) - {"celery", "--loglevel", "INFO"} <= set(started["worker"])


def test_each_variable_is_a_setting_or_is_asked_for_in_the_example():
    settings = {name for name, _ in settings_that_are_read()} | {"DATABASE_URL"}
    for name, service in OURS.items():
        assert set(service["environment"]) <= settings, name
    asked = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text()))
    example = (ROOT / ".env.example").read_text()
    assert asked == set(re.findall(r"^(\w+)=", example, flags=re.MULTILINE))


def test_only_this_machine_reaches_the_port_unless_somebody_says_otherwise():
    (port,) = OURS["web"]["ports"]
    assert port == "${PULLCORD_BIND:-127.0.0.1}:${PULLCORD_PORT:-8400}:8400"


def test_a_worker_may_have_the_best_sandbox():
    assert tuple(OURS["worker"]["security_opt"]) == CONTAINER_OPTIONS


def test_the_database_is_healthy_only_when_the_network_reaches_it():
    """The official image starts a server on the socket alone first, and stops it again."""
    assert "--host 127.0.0.1" in COMPOSE["services"]["postgres"]["healthcheck"]["test"]


def test_what_services_wait_for_exists_and_can_say_that_it_is_ready():
    for service in COMPOSE["services"].values():
        for name, condition in service.get("depends_on", {}).items():
            other = COMPOSE["services"][name]
            match condition["condition"]:
                case "service_healthy":
                    assert other["healthcheck"]["test"]
                case "service_completed_successfully":
                    assert other["restart"] == "no"
                case _:
                    pytest.fail(condition)


def test_named_volumes_are_declared():
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]
