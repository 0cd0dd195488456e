"""A scene for each attack, and a second one to see that it would work without a sandbox."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.sandbox_levels import SandboxLevel
from tests.attacks.scene import BUBBLEWRAP, LANDLOCK, Scene, scene_in


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with scene_in(tmp_path / "held") as built:
        yield built


@pytest.fixture
def open_scene(tmp_path: Path) -> Iterator[Scene]:
    """The same for the control, which does the damage."""
    with scene_in(tmp_path / "open") as built:
        yield built


@pytest.fixture(params=["bubblewrap", "landlock"])
def level(request: pytest.FixtureRequest) -> SandboxLevel:
    """Each level that this machine offers."""
    found = BUBBLEWRAP if request.param == "bubblewrap" else LANDLOCK
    if found.name != request.param:
        pytest.skip(found.message)
    return found
