"""The wheel is a whole product: code, pages, and the front-end libraries with their licences."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from board import __version__
from board.management.setup import VENDORED

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.iterdir()
    assert path.name == f"pullcord-{__version__}-py3-none-any.whl"
    with ZipFile(path) as archive:
        yield archive


@pytest.mark.parametrize("folder", ["templates", "static"])
def test_the_wheel_carries_every_file_of(folder, wheel):
    wanted = {
        f"board/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }
    assert wanted
    assert wanted <= set(wheel.namelist())


def test_the_wheel_carries_the_front_end_libraries_with_their_licences(wheel):
    assert {f"board/static/vendor/{name}" for name in VENDORED} <= set(wheel.namelist())


def test_the_wheel_carries_the_data_beside_the_code(wheel):
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in ("board", "agents")
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".yaml", ".md", ".py"} and path.name != "setup.py"
    }
    assert wanted <= set(wheel.namelist())


def test_the_wheel_carries_nothing_of_the_checkout_around_it(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"board", "agents", f"pullcord-{__version__}.dist-info"}


def test_the_wheel_has_the_command(wheel):
    points = wheel.read(f"pullcord-{__version__}.dist-info/entry_points.txt").decode()
    assert "pullcord = board.__main__:main" in points
