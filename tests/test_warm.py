"""A forked process is what a started one would be, and ends with who started it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from agents.starting import programs
from tests.product import ROOT, WORKER_ENVIRONMENT, Product
from tests.warm import (
    SHARED_TEMPLATE,
    Child,
    OwnTemplate,
    can_fork,
    shared_template,
    template,
    template_environment,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only"),
    pytest.mark.timeout(120),
]
WAIT_SECONDS = 60.0


def fork(folder: Path, code: str, *arguments: str, **environment: str) -> tuple[Child, Path, Path]:
    """Run a program in `folder`; return it, its output and its errors."""
    (folder / "program.py").write_text(code)
    output, errors = folder / "output", folder / "errors"
    with output.open("wb") as out, errors.open("wb") as err:
        child = template().fork(
            ["program.py", *arguments],
            environment={**template_environment(), **environment},
            folder=folder,
            output=out,
            errors=err,
        )
    return child, output, errors


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_the_end(*pids: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"{alive} live on"
        time.sleep(0.05)


STATE = """
import json, os, random, signal, sys, threading
json.dump({
    "arguments": sys.argv, "path": sys.path[0], "folder": os.getcwd(), "environment": dict(os.environ),
    "session": os.getsid(0) == os.getpid(), "name": __name__,
    "fds": sorted(os.listdir("/proc/self/fd")),
    "signals": {number: str(signal.getsignal(number)) for number in range(1, 32)},
    "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "warnings": sys.warnoptions,
    "threads": threading.active_count(), "input": sys.stdin.read(), "umask": os.umask(0), "nice": os.nice(0),
    "ours": [name for name in ("pytest", "board", "tests.product") if name in sys.modules],
}, sys.stdout)
"""


def test_a_fork_is_told_apart_from_a_start_by_nothing(tmp_path):
    environment = {**template_environment(), "ONLY": "hers"}
    child, output, errors = fork(tmp_path, STATE, "one", "two words", ONLY="hers")
    assert child.wait(WAIT_SECONDS) == 0, errors.read_text()
    started = subprocess.run(
        [sys.executable, "program.py", "one", "two words"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert output.read_text() == started.stdout
    assert '"ONLY": "hers"' in started.stdout


def test_two_forks_share_no_chance(tmp_path):
    code = (
        "import random, secrets, tempfile, uuid, ssl; "
        "print(random.random(), secrets.token_hex(), uuid.uuid4(), ssl.RAND_bytes(8),"
        " next(tempfile._get_candidate_names()))"
    )
    words: list[str] = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        child, output, errors = fork(folder, code)
        assert child.wait(WAIT_SECONDS) == 0, errors.read_text()
        words += output.read_text().split()
    assert len(words) == len(set(words)) >= 10


def test_a_module_is_run_as_its_command_is(tmp_path):
    (tmp_path / "named.py").write_text("import sys; print(sys.argv, __name__, sys.path[0])")
    command = ["-m", "named", "word"]
    with tempfile.TemporaryFile() as output:
        child = template().fork(
            command,
            environment=template_environment(),
            folder=tmp_path,
            output=output,
            errors=output,
        )
        assert child.wait(WAIT_SECONDS) == 0
        output.seek(0)
        forked = output.read()
    started = subprocess.check_output([sys.executable, *command], cwd=tmp_path)
    assert forked == started


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('in words')", 1, "in words"),
        ("raise ValueError('a fault')", 1, "ValueError: a fault"),
        ("import os; os._exit(7)", 7, ""),
        ("import os; os.kill(os.getpid(), 15)", -15, ""),
        ("import atexit, os; atexit.register(os.write, 2, b'at exit')", 0, "at exit"),
        ("import threading, time; threading.Timer(0.1, lambda: print('late', flush=True)).start()", 0, ""),
    ],
)  # fmt: skip
def test_the_end_of_a_fork_is_known(tmp_path, code: str, exit_code: int, words: str):
    child, output, errors = fork(tmp_path, code)
    assert child.wait(WAIT_SECONDS) == exit_code
    assert child.poll() == child.wait() == exit_code
    assert words in errors.read_text()
    assert ("late" in output.read_text()) == ("late" in code)


def test_a_fork_is_stopped_continued_and_killed(tmp_path):
    child, _, _ = fork(tmp_path, "import time; time.sleep(600)")
    assert child.poll() is None
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.1)
    os.kill(child.pid, signal.SIGCONT)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(WAIT_SECONDS) == -signal.SIGKILL
    assert not is_alive(child.pid)


def test_an_event_loop_and_its_children_work_in_a_fork(tmp_path):
    code = (
        "import asyncio, sys\n"
        "async def main():\n"
        "    child = await asyncio.create_subprocess_exec(sys.executable, '-c', 'raise SystemExit(5)')\n"
        "    print(await child.wait())\n"
        "asyncio.run(main())\n"
    )
    child, output, errors = fork(tmp_path, code)
    assert child.wait(WAIT_SECONDS) == 0, errors.read_text()
    assert output.read_text() == "5\n"


STARTER = """
import sys, time
from pathlib import Path
from tests.warm import template, template_environment
children = []
with open("/dev/null", "wb") as none:
    for _ in range(2):
        children.append(template().fork(["-c_is_a_file.py"], environment=template_environment(),
            folder=Path(sys.argv[1]), output=none, errors=none))
own = getattr(template(), "process", None)
print(*([own.pid] if own else []), *(child.pid for child in children), flush=True)
time.sleep(600)
"""


def start_two(folder: Path, **environment: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Start tests that fork twice, and return the processes that they have."""
    (folder / "-c_is_a_file.py").write_text("import time; time.sleep(600)")
    tests = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)],
        cwd=ROOT,
        env={**os.environ, SHARED_TEMPLATE: "", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert tests.stdout
    with tests.stdout as lines:
        return tests, [int(word) for word in lines.readline().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_fork_dies_with_the_tests_however_they_die(tmp_path, number: int):
    tests, pids = start_two(tmp_path)
    assert len(pids) == 3
    assert all(is_alive(pid) for pid in pids)
    tests.send_signal(number)
    tests.wait(WAIT_SECONDS)
    wait_for_the_end(*pids)


def test_of_a_shared_template_a_fork_dies_with_the_tests_that_asked_for_it(tmp_path):
    with shared_template() as path:
        tests, pids = start_two(tmp_path, **{SHARED_TEMPLATE: path})
        others, of_others = start_two(tmp_path, **{SHARED_TEMPLATE: path})
        assert len(pids) == len(of_others) == 2
        assert all(is_alive(pid) for pid in (*pids, *of_others))
        tests.kill()
        tests.wait(WAIT_SECONDS)
        wait_for_the_end(*pids)
        assert all(is_alive(pid) for pid in of_others)
    wait_for_the_end(*of_others)
    others.kill()
    others.wait(WAIT_SECONDS)


def test_a_fork_dies_with_its_template_and_says_so(tmp_path):
    (tmp_path / "program.py").write_text("import time; time.sleep(600)")
    own = OwnTemplate()

    def start() -> Child:
        with tempfile.TemporaryFile() as output:
            return own.fork(
                ["program.py"],
                environment=template_environment(),
                folder=tmp_path,
                output=output,
                errors=output,
            )

    child = start()
    own.process.kill()
    assert child.wait(WAIT_SECONDS) == -signal.SIGKILL
    wait_for_the_end(child.pid)
    with pytest.raises(RuntimeError, match="template has ended"):
        start()
    own.close()


def test_the_environment_of_a_fork_is_not_in_the_process_list(tmp_path):
    child, _, _ = fork(tmp_path, "import time; time.sleep(600)", PLANTED="a-secret")
    assert b"PLANTED" not in Path(f"/proc/{child.pid}/environ").read_bytes()
    os.kill(child.pid, signal.SIGKILL)
    child.wait(WAIT_SECONDS)


def test_another_python_is_started_by_exec():
    same = template_environment()
    assert can_fork({**same, "PULLCORD_SLOTS": "3"})
    assert not can_fork({**same, "PYTHONDEVMODE": "1"})
    assert not can_fork({name: value for name, value in same.items() if name != "PYTHONWARNINGS"})


def test_a_worker_of_the_tests_is_started_as_the_real_one(tmp_path):
    product = Product(tmp_path, None)
    web, worker = programs("127.0.0.1", product.port)[-2:]
    named = [sys.executable, *product.arguments("worker-0")]
    assert named == [*worker.argv, "-n", "worker-0@test"]
    assert worker.environment.items() >= WORKER_ENVIRONMENT.items()
    assert worker.environment.keys() - web.environment.keys() == WORKER_ENVIRONMENT.keys()


READERS = """
import importlib, os
from collections import UserDict
from tests import warm_template

class Environment(UserDict):
    def __getitem__(self, name):
        read.append(name)
        return super().__getitem__(name)

for name in warm_template.LIBRARIES:
    importlib.import_module(name)
read, os.environ = [], Environment(os.environ)
for name in warm_template.PLAIN:
    importlib.import_module(name)
print(read)
"""


def test_what_of_ours_is_imported_once_reads_no_environment_meanwhile():
    command = [sys.executable, "-W", "ignore", "-c", READERS]
    assert subprocess.check_output(command, cwd=ROOT, text=True) == "[]\n"
