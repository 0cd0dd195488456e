"""Where a run's own secrets could leave a worker: output, spooled files, logs, diffs, environments."""

import importlib
import inspect
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents import processes
from agents.database import Database, RedactedDatabase
from agents.harness.ports import CommandResult
from agents.harness.redacted_logs import RedactedFormatter
from agents.harness.redacted_sink import RedactedSink
from agents.harness.redaction import Redactor, Secret, shared
from agents.harness.testing import ListSink
from agents.hunks import describe
from agents.known_secrets import product_secrets, redactor_of_run
from agents.sandbox import Sandbox
from agents.sandbox_levels import SandboxLevel
from agents.sandbox_probe import probe
from agents.workspaces.diffs import Diff, FileDiff
from board.actions import credentials
from board.actions.approvals import Question
from board.celery import app
from board.events import Actor, CardSentBack, publish
from board.models import Event, Project, User

VALUE = "tok-4f8a91c2d3e4b5a6f7-and-more"
REDACTOR = Redactor([Secret("API_TOKEN", VALUE)])
LEVELS = [probe(), SandboxLevel("none", "")]


def run_in(folder: Path, command: str, level: SandboxLevel, heard: list[bytes]) -> CommandResult:
    for name in ("workspace", "scratch", "outputs"):
        (folder / name).mkdir(exist_ok=True)
    sandbox = Sandbox(
        folder / "workspace",
        scratch=folder / "scratch",
        outputs=folder / "outputs",
        level=level,
        redactor=REDACTOR,
    )
    return sandbox.run(command, timeout_seconds=20, on_output=heard.append)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_output_is_redacted_where_it_is_read_also_in_pieces_and_in_the_spooled_file(
    tmp_path: Path, level: SandboxLevel
) -> None:
    half = len(VALUE) // 2
    command = (
        f"printf 'a {VALUE[:half]}'; sleep 0.3; printf '{VALUE[half:]} b\\n';"
        f"printf {VALUE} | base64 | fold -w 9; for i in $(seq 3000); do echo line {VALUE}; done"
    )
    heard: list[bytes] = []
    result = run_in(tmp_path, command, level, heard)
    assert result.output.startswith(b"a [redacted: API_TOKEN] b\n[redacted: API_TOKEN]")
    assert result.spool is not None
    everything = [result.output, b"".join(heard), Path(result.spool).read_bytes()]
    assert all(VALUE.encode() not in text for text in everything)
    assert everything[1] == everything[2]
    assert everything[1].count(b"[redacted: API_TOKEN]") == 3002


# Every variable that the product reads, and whatever a worker's shell may hold besides.
PLANTED = {
    name: f"planted-{number}-value"
    for number, name in enumerate(
        [
            "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "SECRET_KEY", "DATABASE_URL", "REDIS_URL",
            "CELERY_BROKER_URL", "PULLCORD_DATA", "PULLCORD_URL", "EMAIL_HOST_PASSWORD",
            "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND",
            "HTTPS_PROXY", "NODE_OPTIONS", "LD_PRELOAD_NOT", "BASH_ENV", "ENV", "PYTHONSTARTUP",
            "PROMPT_COMMAND", "XDG_CONFIG_HOME", "KUBECONFIG", "DOCKER_HOST", "PGPASSWORD",
            "SOMETHING_NEW", "DJANGO_SETTINGS_MODULE",
        ]
    )
}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_command_gets_no_variable_of_the_workers_environment(
    tmp_path: Path, level: SandboxLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    command = "env; cat /proc/$$/environ /proc/$PPID/environ | tr '\\0' '\\n'; declare -p"
    shown = run_in(tmp_path, command, level, []).output.decode(errors="replace")
    assert "GIT_PAGER" in shown
    assert [value for value in PLANTED.values() if value in shown] == []


def test_a_child_inherits_paths_and_language_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    assert set(processes.base_environment()) <= {
        "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"
    }  # fmt: skip
    result = processes.run(
        [sys.executable, "-c", "import os; print(dict(os.environ))"],
        cwd=Path("/"),
        env=processes.base_environment(),
        timeout_seconds=20,
    )
    assert b"planted" not in result.stdout


def test_a_log_line_and_its_traceback_are_redacted() -> None:
    shared.learn([Secret("API_TOKEN", VALUE)])
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(RedactedFormatter("%(message)s"))
    logger = logging.getLogger("tests.redacted")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        raise ValueError(json.dumps({"token": VALUE}))
    except ValueError:
        logger.exception("failed with %s", VALUE)
    text = out.getvalue()
    assert VALUE not in text
    assert text.startswith("failed with [redacted: API_TOKEN]")
    assert "ValueError" in text


def test_every_process_of_the_product_logs_redacted(tmp_path: Path) -> None:
    code = (
        "import logging, django; django.setup(); from django.conf import settings;"
        "logging.getLogger('x').error('%s %s %s', settings.SECRET_KEY,"
        " settings.ANTHROPIC_API_KEY, settings.DATABASES['default']['PASSWORD'])"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PULLCORD_DATA": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "board.settings",
        "SECRET_KEY": "secret-key-4f8a91c2d3e4",
        "ANTHROPIC_API_KEY": "model-key-4f8a91c2d3e4",
        "DATABASE_URL": "postgres://me:data%2Fbase-4f8a91c2@db/x",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "[redacted: SECRET_KEY] [redacted: ANTHROPIC_API_KEY] [redacted: DATABASE_URL]" in (
        done.stderr
    )


def test_the_passwords_of_all_servers_are_known(settings) -> None:
    settings.REDIS_URL = "redis://:redis-pw-123456@r:6379/0"
    settings.CELERY_BROKER_URL = "amqp://u:amqp-pw-123456@q"
    settings.ANTHROPIC_API_KEY = "key-123456789"
    values = {secret.value for secret in product_secrets()}
    assert {"redis-pw-123456", "amqp-pw-123456", "key-123456789", settings.SECRET_KEY} <= values


def test_the_log_of_a_run_gets_streams_without_secrets_in_the_order_they_came() -> None:
    sink = ListSink()
    log = RedactedSink(sink.emit, REDACTOR)
    log.emit("text", text=f"The token is {VALUE[:6]}")
    log.emit("text", text=VALUE[6:])
    log.emit("call", call="1", tool="bash", title=VALUE, input={"command": f"echo {VALUE}"})
    log.emit("output", call="1", text=f"x {VALUE[:9]}")
    log.emit("output", call="2", text="other ")
    log.emit("output", call="1", text=f"{VALUE[9:]}\n")
    log.emit("output", call="1", text="tok-4f")
    log.emit("result", call="1", text=VALUE, is_error=False, details={VALUE: 1}, seconds=0)
    assert VALUE not in json.dumps(sink.items)
    said = "".join(item["text"] for item in sink.of("text"))
    assert said == "The token is [redacted: API_TOKEN]"
    first = "".join(item["text"] for item in sink.of("output") if item["call"] == "1")
    assert first == "x [redacted: API_TOKEN]\ntok-4f"
    assert [kind for kind, _ in sink.items][-1] == "result"


def test_a_diff_is_shown_redacted_line_by_line() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvAIBADANBgk1\n" * 6 + "-----END PRIVATE KEY-----"
    added = "".join(f"+{line}\n" for line in pem.split("\n"))
    hunks = f"@@ -1,2 +1,9 @@ {VALUE}\n-key = '{VALUE}'\n{added} last\n"
    file = FileDiff(
        f"{VALUE}.py",
        "",
        "M",
        "100644",
        "100644",
        is_binary=False,
        additions=8,
        deletions=1,
        hunks=hunks,
    )
    shown = describe(Diff((file,), 8, 1), redact=REDACTOR.text)
    text = json.dumps(shown)
    assert VALUE not in text
    assert "MIIEvAIBAD" not in text
    lines = shown["diff"][0]["hunks"][0]["lines"]
    assert len(lines) == 10
    assert lines[0] == ["-", 1, None, "key = '[redacted: API_TOKEN]'"]
    assert lines[-1] == [" ", 2, 9, "last"]


async def test_nothing_that_a_run_writes_holds_its_secrets() -> None:
    db = Database()
    redacted = RedactedDatabase(db, REDACTOR)
    question = Question(
        "1", "bash", {"command": VALUE}, "A9", [VALUE], "0" * 64, {"paths": {VALUE: VALUE}},
        [{"argv": [VALUE]}], "none",
    )  # fmt: skip
    try:
        kept = await redacted(lambda *given, **named: (given, named), 7, question, text=VALUE)
    finally:
        await db.close()
    assert VALUE not in repr(kept)
    assert kept[0][0] == 7
    assert kept[0][1].digest == "0" * 64


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_process_can_keep_its_variables_from_commands_of_the_same_user() -> None:
    """What the kernel calls dumpable decides who owns /proc/PID/environ and who may open it."""
    code = (
        "import ctypes; from agents.process_trees import hide_own_environment as hide;"
        "look = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0);"
        "before = look(); hide(); print(before, look())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "0"]


def test_the_last_words_of_a_process_are_redacted(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PULLCORD_DATA": str(tmp_path), "SECRET_KEY": VALUE}
    code = f"import django; django.setup(); raise ValueError('it is {VALUE}')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "DJANGO_SETTINGS_MODULE": "board.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.rstrip().endswith("ValueError: it is [redacted: SECRET_KEY]")
    assert VALUE not in done.stderr


def test_no_task_carries_anything() -> None:
    """What travels between processes is a hint without content; JSON is all that is read."""
    for module in ("agents.tasks", "board.tasks"):
        importlib.import_module(module)
    ours = [task for name, task in app.tasks.items() if name.startswith(("agents.", "board."))]
    assert len(ours) >= 4
    assert [task.name for task in ours if inspect.signature(task.run).parameters] == []
    assert app.conf.accept_content == ["json"]


@pytest.mark.django_db
def test_a_key_that_an_owner_enters_is_hidden_from_then_on(alice: User) -> None:
    key = "some-provider-key-4f8a91c2"
    credentials.set_credential(by=alice, api_key=key)
    assert shared.text(f"401 for {key}") == "401 for [redacted: model key]"
    assert redactor_of_run().text(key) == "[redacted: model key]"


@pytest.mark.django_db
def test_an_event_holds_no_secret(project: Project, alice: User) -> None:
    shared.learn([Secret("API_TOKEN", VALUE)])
    publish(project.pk, CardSentBack(comment=f"use {VALUE}"), by=Actor.person(alice))
    assert Event.objects.latest("seq").payload == {"comment": "use [redacted: API_TOKEN]"}
