"""Starts a product's processes with the libraries already imported: that is most of what a start costs.

A worker imports Django, Celery and the model's client, which takes four seconds of processor time, and a
test run starts some hundred processes. So a template (tests/warm_template.py) imports the libraries and our
plain Python once, no board and no settings, and forks for each start. The child gets its own environment, folder,
streams and session, and then runs exactly what the command would run. It is a real process with its own
pid: killed, stopped and waited for like any other.

What looks at a process from outside sees the template's /proc/PID/environ and cmdline. A test of those
starts by exec, `Product(..., warm=False)`, as does what has another Python in its environment.

A run of all tests has one template for all its processes (`shared_template`); a test process that is alone
starts its own. A child dies with the test process that has asked for it, and with the template.

Linux only; elsewhere everything starts by exec.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests.parents import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
SHARED_TEMPLATE = "PULLCORD_TESTS_TEMPLATE"  # the path of the socket of one for all processes
ANSWER_BYTES = 64  # a pid


class Child:
    """A process that the template has forked, to be used like `subprocess.Popen`."""

    def __init__(self, pid: int, end: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._end = end  # a pipe: the template writes the exit code there when it has waited for the process

    def poll(self) -> int | None:
        """Return the exit code (minus a signal's number), or None while the process lives."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            # Nothing to read: the template is dead, and the kernel has killed the process for it.
            self.returncode = int(os.read(self._end, ANSWER_BYTES) or -signal.SIGKILL)
            os.close(self._end)
        return self.returncode


class Template:
    """The process that has imported the libraries, seen from the tests."""

    def __init__(self, control: socket.socket) -> None:
        self._lock = threading.Lock()
        self._socket = control

    def fork(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        output: IO[bytes],
        errors: IO[bytes],
    ) -> Child:
        """Start what `python ARGUMENTS` starts. Raises RuntimeError if the template is dead."""
        request = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
        with self._lock:
            try:
                socket.send_fds(self._socket, [request], [output.fileno(), errors.fileno()])
                answer, fds, _, _ = socket.recv_fds(self._socket, ANSWER_BYTES, 1)
            except ConnectionError:
                answer = b""
        if not answer:
            raise RuntimeError("The template has ended.")
        return Child(int(answer), fds[0])

    def close(self) -> None:
        """End all that was forked here."""
        self._socket.close()


class OwnTemplate(Template):
    """One that ends with us. `listening` is the socket where others ask it for forks."""

    def __init__(self, listening: socket.socket | None = None) -> None:
        ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(ours)
        with other:
            fds = [one.fileno() for one in (other, listening) if one is not None]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm_template", *map(str, fds)],
                cwd=ROOT,
                env=template_environment(),
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )

    def close(self) -> None:
        """End the template and all that it has started."""
        super().close()
        self.process.wait(10)


@contextmanager
def shared_template() -> Iterator[str]:
    """Start a template for many processes; yield the path of its socket, "" where nothing is forked."""
    if sys.platform != "linux":
        yield ""
        return
    with (
        tempfile.TemporaryDirectory(prefix="pullcord-warm-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening,
    ):
        path = f"{folder}/socket"
        listening.bind(path)
        listening.listen()  # whoever comes before it is ready waits
        with closing(OwnTemplate(listening)):
            yield path


@cache
def template() -> Template:
    """The template of this test process; its own is started when it is first needed."""
    made: Template
    if path := os.environ.get(SHARED_TEMPLATE):
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.connect(path)
        made = Template(control)
    else:
        made = OwnTemplate()
    atexit.register(made.close)
    return made


def template_environment() -> dict[str, str]:
    """What the template, and /proc of each child, has in its environment. Nothing of a product's."""
    names = ("PATH", "HOME", "LANG", "PYTHONPATH")
    found = {name: os.environ[name] for name in names if name in os.environ}
    return {"PYTHONPATH": "", **found, "PYTHONWARNINGS": "default"}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a Python of this environment is like the template's."""

    def of_python(values: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in values.items() if name.startswith("PYTHON")}

    return sys.platform == "linux" and of_python(environment) == of_python(template_environment())
