"""The levels of isolation that a machine may offer, best first."""

from dataclasses import dataclass

BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"
LEVELS = (BUBBLEWRAP, LANDLOCK, NONE)  # best first
# Not of a worker but of a project that has chosen a container engine, see agents/containers.py.
PODMAN, DOCKER = "podman", "docker"
CONTAINERS = (PODMAN, DOCKER)
ISOLATED = (BUBBLEWRAP, *CONTAINERS)  # with files and a network of their own
BROKEN = "broken"  # what a worker says whose level does not work any more


@dataclass(frozen=True)
class SandboxLevel:
    """How well commands are isolated here, one of LEVELS, with a sentence for people."""

    name: str
    message: str
    bwrap: str = ""  # path of the program
    flags: tuple[str, ...] = ()  # optional isolation that works here
    filters: bool = False  # whether system calls are filtered
    abi: int = 0  # version of Landlock

    def is_worse_than(self, other: "SandboxLevel") -> bool:
        """Whether it isolates less: a lower level, or the same one with a part missing."""
        return _rank(self) > _rank(other)


def _rank(level: SandboxLevel) -> tuple[int, bool, int, int]:
    return LEVELS.index(level.name), not level.filters, -len(level.flags), -level.abi
