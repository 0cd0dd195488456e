"""Set-up: exact, quick the second time, and at home where pip is told where packages come from."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from board.management import setup

LOCK = """\
first==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
second==2.0 \\
    --hash=sha256:cc
"""


def test_a_lock_is_read_entry_by_entry(tmp_path):
    lock = tmp_path / "some.lock"
    lock.write_text(LOCK)
    entries = setup.lock_entries(lock)
    assert "".join(entries) == LOCK
    assert [setup.entry_name(entry) for entry in entries] == ["first", "second"]


def test_the_installer_and_npm_are_in_the_development_lock():
    names = [setup.entry_name(entry) for entry in setup.lock_entries(setup.DEV_LOCK)]
    assert names.count(setup.INSTALLER) == 1
    assert names.count(setup.NODE) == 1


def test_the_runtime_lock_holds_the_product_only():
    names = {setup.entry_name(entry) for entry in setup.lock_entries(setup.RUN_LOCK)}
    assert names & {setup.INSTALLER, setup.NODE, "pytest"} == set()


def test_where_pip_finds_packages_is_passed_on(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_CERT"))]:
        monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\n"
        "index-url = https://mirror.example/simple\n"
        "extra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n"
        "cert = /etc/mirror.pem\n"
        "[install]\n"
        "find-links = /srv/wheels\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_INDEX_URL", "https://nearer.example/simple")
    monkeypatch.setenv("UV_INDEX", "https://chosen.example/simple")
    sources = setup.package_sources()
    assert sources["UV_DEFAULT_INDEX"] == "https://nearer.example/simple"
    assert sources["UV_FIND_LINKS"] == "/srv/wheels"
    assert sources["SSL_CERT_FILE"] == "/etc/mirror.pem"
    assert "UV_INDEX" not in sources, "what uv was told stands"

    monkeypatch.delenv("UV_INDEX")
    one_and_two = "https://one.example/simple https://two.example/simple"
    assert setup.package_sources()["UV_INDEX"] == one_and_two


def test_a_set_up_checkout_needs_neither_network_nor_time():
    unreachable = "http://127.0.0.1:9"
    done = subprocess.run(
        [sys.executable, str(setup.ROOT / "board/management/setup.py"), "--dev"],
        env={"PATH": os.environ["PATH"], "PIP_INDEX_URL": unreachable, "ALL_PROXY": unreachable},
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_machine_with_an_old_git_is_told_so(tmp_path, monkeypatch):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho git version 2.30.2\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(
        setup.SetupError, match=r"git 2\.38 or newer is needed; this is git version"
    ):
        setup.check_machine()


def test_a_machine_without_git_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(setup.SetupError, match="was not found"):
        setup.check_machine()


def test_what_is_missing_is_named_part_by_part(tmp_path, monkeypatch):
    stamp = tmp_path / "stamp.json"
    monkeypatch.setattr(setup, "STAMP", stamp)
    assert setup.missing_parts(dev=False) == {"venv", "packages", "libraries"}

    installed = setup.wanted_parts(dev=True) | {"libraries": "older"}
    stamp.write_text(json.dumps(installed))
    assert setup.missing_parts(dev=True) == {"libraries"}
    assert setup.missing_parts(dev=False) == {"libraries"}, "the tools hold all that runs need"

    stamp.write_text(json.dumps(setup.wanted_parts(dev=False)))
    assert setup.missing_parts(dev=False) == set()
    assert setup.missing_parts(dev=True) == {"packages"}


def test_a_folder_that_is_only_linked_is_left_alone(tmp_path):
    """`venv --clear` and `npm ci` would empty what the link leads to: another checkout's, say."""
    checkout, others = tmp_path / "checkout", tmp_path / "others"
    for lock in (setup.RUN_LOCK, setup.DEV_LOCK, setup.NPM_LOCK):
        checkout.mkdir(exist_ok=True)
        shutil.copy(lock, checkout)
    program = checkout / "board" / "management" / "setup.py"
    program.parent.mkdir(parents=True)
    shutil.copy(setup.__file__, program)
    others.mkdir()
    (others / "kept").touch()
    for name in (".venv", "node_modules"):
        (checkout / name).symlink_to(others)
        done = subprocess.run(
            [sys.executable, str(program)],
            env={"PATH": os.environ["PATH"], "PIP_INDEX_URL": "http://127.0.0.1:9"},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 1
        assert f"{name} is a link to {others}" in done.stderr
        assert [path.name for path in others.iterdir()] == ["kept"]
        (checkout / name).unlink()


def test_a_link_to_a_folder_that_is_up_to_date_is_used(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(setup.VENV.resolve())
    wanted = setup.wanted_parts(dev=True)
    monkeypatch.setattr(setup, "VENV", tmp_path / "link")
    assert setup.wanted_parts(dev=True) == wanted
