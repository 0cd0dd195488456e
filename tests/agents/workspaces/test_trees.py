"""Where the trees of agents are placed on the disk."""

import subprocess
from pathlib import Path

from agents.workspaces.trees import spread


def test_trees_are_spread_over_the_disk_where_the_file_system_can(tmp_path: Path) -> None:
    spread(tmp_path)
    spread(tmp_path)
    done = subprocess.run(["lsattr", "-d", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode != 0 or "T" in done.stdout.split()[0]


def test_a_folder_that_cannot_be_marked_is_left_alone(tmp_path: Path) -> None:
    spread(tmp_path / "missing")
    (tmp_path / "file").touch()
    spread(tmp_path / "file")
