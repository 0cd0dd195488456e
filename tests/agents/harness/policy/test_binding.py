"""What an approval binds to (rule P1): whatever of it changes makes another call of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agents.harness.policy.context import Context, RealFiles
from agents.harness.policy.decide import decide
from agents.harness.policy.digest import grant_for
from agents.harness.ports import Tier, ToolCall, Verdict

OUTSIDE, ELSEWHERE = "../outside", "../elsewhere"
LONG = "#" * 1_100_000
WORKFLOW = ".github/workflows/ci.yml"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    for name in ("ws/sub", "ws/.github/workflows", "outside", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("outside/a", "elsewhere/a"):
        (tmp_path / name).write_text(name)
    return Context(
        workspace=tmp_path / "ws",
        home=tmp_path / "home",
        scratch=tmp_path / "scratch",
        sandbox="bubblewrap",
    )


def put(context: Context, name: str, content: str) -> None:
    """A file with this content, or with `-> x` a link."""
    path = context.workspace / name
    path.unlink(missing_ok=True)
    if content.startswith("-> "):
        path.symlink_to(content.removeprefix("-> "))
    else:
        path.write_text(content)


def bash(command: str, context: Context) -> Verdict:
    return decide(ToolCall("call", "bash", {"command": command}), context)


# The command, the file that changes between the question and the run, what it was, what it is then.
CHANGES = {
    "a link in the folder itself": ("cat notes", "notes", f"-> {OUTSIDE}/a", f"-> {ELSEWHERE}/a"),
    "a link with a folder": ("cat ./notes", "notes", f"-> {OUTSIDE}/a", f"-> {ELSEWHERE}/a"),
    "a link to write into": ("cp x d", "d", f"-> {OUTSIDE}", f"-> {ELSEWHERE}"),
    "a link behind a redirection": ("echo x > n", "n", f"-> {OUTSIDE}/a", f"-> {ELSEWHERE}/a"),
    "a link behind =": ("dd if=/dev/zero of=n", "n", f"-> {OUTSIDE}/a", f"-> {ELSEWHERE}/a"),
    "a link behind an option": ("tar -xf x.tar -C d", "d", f"-> {OUTSIDE}", f"-> {ELSEWHERE}"),
    "a link glued to an option": ("tar -xf x.tar -Cd", "d", f"-> {OUTSIDE}", f"-> {ELSEWHERE}"),
    "a link behind a long option": (
        "tar -xf x.tar --directory=d",
        "d",
        f"-> {OUTSIDE}",
        f"-> {ELSEWHERE}",
    ),
    "the last of many paths": (
        f"cat {' '.join(f'./f{number}' for number in range(150))} ./n",
        "n",
        f"-> {OUTSIDE}/a",
        f"-> {ELSEWHERE}/a",
    ),
    "a list of packages": ("pip install -r req.txt", "req.txt", "good", "evil"),
    "a list of packages glued": ("pip install -rreq.txt", "req.txt", "good", "evil"),
    "a package in a folder": ("pip install -e .", "setup.py", "good", "evil"),
    "a package below": ("pip install ./sub", "sub/setup.py", "good", "evil"),
    "a manifest": ("npm install", "package.json", "{}", '{"a": 1}'),
    "a lock": ("npm ci", "package-lock.json", "{}", '{"a": 1}'),
    "settings of a registry": ("npm install", ".npmrc", "a", "b"),
    "data that is sent": ("curl -d @out.json https://x.example/", "out.json", "a", "b"),
    "a file that is sent": ("curl -F f=@out.json https://x.example/", "out.json", "a", "b"),
    "a file by a pattern": ("curl -T *.json https://x.example/", "out.json", "a", "b"),
    "the end of a long script": (
        "nohup sh big.sh",
        "big.sh",
        f"{LONG}\necho a\n",
        f"{LONG}\necho b\n",
    ),
    "a module": ("nohup python -m tool", "tool.py", "a = 1", "b = 2"),
    "a recipe below": ("nohup make -C sub all", "sub/Makefile", "all:\n\tls\n", "all:\n\tpwd\n"),
    "a recipe by name": ("nohup make -f sub/m all", "sub/m", "all:\n\tls\n", "all:\n\tpwd\n"),
    "a standard input": ("sqlite3 x.db < q.sql", "q.sql", "select 1", "delete"),
    "an image": ("docker build .", "Dockerfile", "FROM a", "FROM b"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_command_names_is_part_of_what_was_approved(name: str, context: Context) -> None:
    command, path, before, after = CHANGES[name]
    put(context, path, before)
    asked = bash(command, context)
    assert asked.tier is Tier.ASK
    assert bash(command, context).digest == asked.digest
    grant = grant_for(ToolCall("call", "bash", {"command": command}), asked.facts)
    granted = replace(context, grants=(grant,))
    if not asked.critical:
        assert bash(command, granted).rule == "grant"
    put(context, path, after)
    assert bash(command, context).digest != asked.digest
    assert bash(command, granted).tier is Tier.ASK


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("edit_file", {"path": WORKFLOW, "old": "a", "new": "b"}),
        ("write_file", {"path": WORKFLOW, "content": "b"}),
    ],
)
def test_the_file_that_a_tool_changes_is_as_it_was_shown(
    tool: str, given: Mapping[str, str], context: Context
) -> None:
    call = ToolCall("call", tool, given)
    digests = []
    for content in ("a: 1\n", "a: 1\n", "a: 2\n"):
        put(context, WORKFLOW, content)
        digests.append(decide(call, context).digest)
    assert digests[0] == digests[1] != digests[2]


def _elsewhere(context: Context) -> Context:
    """The same files in the worktree of another run."""
    other = context.workspace.with_name("ws-2")
    other.mkdir()
    for path in context.workspace.iterdir():
        if path.is_file():
            (other / path.name).write_text(path.read_text())
    return replace(context, workspace=other, files=RealFiles())


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda context: context, Tier.ALLOW),
        (_elsewhere, Tier.ALLOW),  # "always" is for every run of the project
        (lambda context: replace(context, sandbox="none"), Tier.ASK),
        (lambda context: replace(context, sandbox="landlock"), Tier.ASK),
    ],
)
def test_an_answer_that_lasts_holds_in_other_workspaces_and_not_in_another_sandbox(
    change: Callable[[Context], Context], wanted: Tier, context: Context
) -> None:
    put(context, "tool.sh", "curl https://x.example/\n")
    command = "sh tool.sh"
    asked = bash(command, context)
    assert asked.tier is Tier.ASK
    grant = grant_for(ToolCall("call", "bash", {"command": command}), asked.facts)
    assert bash(command, replace(change(context), grants=(grant,))).tier is wanted


def test_nothing_outside_is_hashed_for_a_command(context: Context) -> None:
    assert bash("cat ../outside/a", context).facts["files"] == {}


def test_a_call_that_is_allowed_does_not_wait_for_hashes(context: Context) -> None:
    put(context, "a.txt", "x")
    verdict = bash("cat a.txt", context)
    assert (verdict.tier, verdict.facts["files"]) == (Tier.ALLOW, {})
