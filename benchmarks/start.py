"""A second start until the first page, then the idle product's memory and processor time.

    python -m benchmarks.start [--repeat 5] [--idle-seconds 30]

As a person does it: `make run` in this checkout, on a data folder that has been used before. Linux only,
for memory is read from /proc: PSS, which counts a page that two processes share half for each.
"""

import argparse
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.machine import describe, figure, value
from tests.product import free_port

ROOT = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 60.0
SETTLE_SECONDS = 15.0  # the worker loads what the first run needs only after the start
TICKS = os.sysconf("SC_CLK_TCK")  # in a second; the unit of processor time in /proc
ALL = "all of it"


class Running:
    """A product that `make run` started, and the seconds it took until the first page."""

    def __init__(self, data: Path) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/"
        self._console = data.with_name("console").open("ab")
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            ["make", "-s", "run", f"ARGS=--port {port} --data {data}"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=self._console,
            start_new_session=True,
        )
        self._wait(self.shows_a_page, "a page")
        self.seconds = time.perf_counter() - begun
        self._wait(self.has_worker, "a worker")
        self.worker_seconds = time.perf_counter() - begun

    def _wait(self, look: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError):
                if look():
                    return
            time.sleep(0.01)
        self.stop()
        raise RuntimeError(
            f"waited in vain for {what}: {Path(self._console.name).read_text(errors='replace')}"
        )

    def shows_a_page(self) -> bool:
        """Return whether the first address shows a page: the one to sign in."""
        with urllib.request.urlopen(self._url, timeout=20) as page:  # noqa: S310  ours
            return b"</html>" in page.read()

    def has_worker(self) -> bool:
        """Return whether a worker has said that it is there."""
        with urllib.request.urlopen(f"{self._url}healthz", timeout=20) as answer:  # noqa: S310  ours
            return b'"workers": [{' in answer.read()

    def processes(self) -> dict[str, int]:
        """Return the process ids of the supervisor and of what it keeps alive."""
        # make becomes a child of ours; what it runs has the session that it leads.
        session = self._process.pid
        top = next(
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if b"manage.py" in read(path / "cmdline") and session_of(path) == session
        )
        found = {"supervisor": top}
        for pid in read(Path(f"/proc/{top}/task/{top}/children")).split():
            line = read(Path(f"/proc/{int(pid)}/cmdline"))
            for name, word in (
                ("valkey", b"valkey"),
                ("web", b"agents.web"),
                ("worker", b"celery"),
            ):
                if word in line:
                    found[name] = int(pid)
        return found

    def stop(self) -> None:
        """End it as Ctrl-C does, and wait for it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._console.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--idle-seconds", type=float, default=30)
    parser.add_argument("--settle-seconds", type=float, default=SETTLE_SECONDS)
    options = parser.parse_args()
    describe()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        data = Path(folder) / "data"
        Running(data).stop()  # the first start migrates, and compiles what a new checkout holds
        pages, workers = [], []
        for number in range(options.repeat):
            running = Running(data)
            try:
                pages.append(running.seconds)
                workers.append(running.worker_seconds)
                if number == options.repeat - 1:
                    time.sleep(options.settle_seconds)
                    rest(running.processes(), options.idle_seconds)
            finally:
                running.stop()
        figure("second `make run` -> first page", pages, goal="<= 2 s")
        figure("second `make run` -> a worker is there", workers)


def rest(processes: dict[str, int], seconds: float) -> None:
    """Print the memory of each process, and the processor time that it takes while nobody does a thing."""
    memory = {name: pss_mib(pid) for name, pid in processes.items()}
    before = {name: cpu_seconds(pid) for name, pid in processes.items()}
    begun = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    share = {name: (cpu_seconds(pid) - before[name]) / passed for name, pid in processes.items()}
    for name in processes:
        value(f"idle {name}", f"{memory[name]:.0f} MiB PSS, {share[name]:.2%} of a core")
    value(f"idle memory, {ALL}", f"{sum(memory.values()):.0f} MiB PSS", goal="<= 220 MiB")
    value(f"idle processor, {ALL}", f"{sum(share.values()):.2%} of a core", goal="<= 1 %")


def read(path: Path) -> bytes:
    """Return what a file of /proc says, nothing if its process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def stat(path: Path) -> list[bytes]:
    """Return the fields of a process's `stat` from its third on; the second may hold spaces."""
    return read(path / "stat").rpartition(b")")[2].split()


def session_of(path: Path) -> int:
    """Return the session of a process, 0 if it is gone."""
    fields = stat(path)
    return int(fields[3]) if fields else 0


def pss_mib(pid: int) -> float:
    """Return the memory of a process in MiB."""
    rollup = read(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith(b"Pss:")) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of the children that it waited for, in seconds."""
    return sum(map(int, stat(Path(f"/proc/{pid}"))[11:15])) / TICKS


if __name__ == "__main__":
    main()
