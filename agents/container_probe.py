"""Finds out whether a container of an image holds a command here, by running one in it.

Nothing takes its place if it does not: the card fails and says why.
"""

import os
import shutil
import tempfile
from pathlib import Path

from agents import processes
from agents.containers import MOST_PROCESSES, ContainerError, ContainerShell, Engine
from agents.sandbox_levels import CONTAINERS

LOOK_SECONDS = 60.0  # a first start may have to unpack the image
_MISSING = "{0} is not installed on {1}. Install it there, or choose another sandbox in the project's settings."
# Each line is a fact; what must not work is tried too.
_FACTS = r"""
echo "user=$(id -u)"
echo "privileges=$(grep -c '^NoNewPrivs:[[:space:]]*1' /proc/self/status)"
echo "rights=$(grep '^Cap\(Eff\|Prm\|Bnd\)' /proc/self/status | grep -vc '0000000000000000$')"
echo "processes=$(cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null)"
echo "memory=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)"
echo "networks=$(grep -c : /proc/net/dev)"
echo x 2>/dev/null >/usr/probe && echo "root=writable"
test -e "$0" && echo "outside=visible"
echo x >inside && echo "workspace=writable"
command -v git >/dev/null && echo "git=yes"
command -v python3 >/dev/null && python3 -I -S -c 'import _socket, select' 2>/dev/null && echo "python=yes"
"""


def find_engine(name: str, image: str) -> Engine:
    """Return the engine with the image, tried just now. Blocking; takes about a second.

    Raises ContainerError with what is missing, or what does not hold.
    """
    if name not in CONTAINERS:
        raise ContainerError(f"{name} is not a container engine that Pullcord knows.")
    program = shutil.which(name)
    if program is None:
        raise ContainerError(_MISSING.format(name, os.uname().nodename))
    engine = Engine(name, program, _image_id(name, program, image))
    facts = _facts(engine, image)
    problem = _problem(facts)
    if problem:
        raise ContainerError(f"A container of {image} does not hold commands here: {problem}.")
    return Engine(name, program, engine.image, has_python=facts.get("python") == "yes")


def _image_id(name: str, program: str, image: str) -> str:
    found = processes.run(
        [program, "image", "inspect", "--format", "{{.Id}}", "--", image],
        cwd=Path("/"),
        env=Engine(name, program, image).environment(),
        timeout_seconds=LOOK_SECONDS,
    )
    lines = found.stdout.decode(errors="replace").split()
    if found.exit_code == 0 and lines:
        return lines[0]
    why = _last_line(found.stderr) or f"it {found.ended_by}"
    raise ContainerError(
        f"{name} has no image {image} on {os.uname().nodename} ({why}). Fetch it there with "
        f"{name} pull, or correct its name in the project's settings."
    )


def _facts(engine: Engine, image: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="pullcord-probe-") as place:
        folder = Path(place).resolve()
        for part in ("workspace", "scratch", "outputs"):
            (folder / part).mkdir()
        shell = ContainerShell(
            folder / "workspace",
            scratch=folder / "scratch",
            outputs=folder / "outputs",
            engine=engine,
        )
        outside = folder / "outside"
        outside.touch()
        command = f"set -- ; exec bash -c '{_quoted(_FACTS)}' '{outside}'"
        try:
            result = shell.run(command, timeout_seconds=LOOK_SECONDS)
        except (OSError, ValueError) as error:
            raise ContainerError(f"{engine.name} cannot be started: {error}") from error
        facts = dict(
            line.split("=", 1)
            for line in result.output.decode(errors="replace").splitlines()
            if "=" in line
        )
        inside = folder / "workspace" / "inside"
        if inside.exists() and inside.stat().st_uid != os.geteuid():
            facts["owner"] = str(inside.stat().st_uid)
    if "user" not in facts:
        why = _last_line(result.output) or f"it {result.ended_by}"
        raise ContainerError(
            f"{engine.name} cannot run a command in {image} ({why}). The image needs bash and sh."
        )
    return facts


def _problem(facts: dict[str, str]) -> str:
    """What does not hold, or an empty string."""
    checks = {
        "commands run as another user than the worker": facts["user"] == str(os.geteuid())
        and "owner" not in facts,
        "they may gain rights": facts.get("privileges") == "1" and facts.get("rights") == "0",
        "the number of processes is not limited": facts.get("processes") == str(MOST_PROCESSES),
        "memory is not limited": _is_limit(facts.get("memory", "")),
        "they have a network": facts.get("networks") == "1",
        "they can write to the image": "root" not in facts,
        "they see files outside": "outside" not in facts,
        "they cannot write to the worktree": facts.get("workspace") == "writable",
        "the image has no git, which agents commit with": facts.get("git") == "yes",
    }
    return "; ".join(problem for problem, is_well in checks.items() if not is_well)


def _is_limit(text: str) -> bool:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return text.isdigit() and int(text) <= machine


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][-300:] if lines else ""
