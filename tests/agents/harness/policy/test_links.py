"""The gate in a workspace with links: what counts is where the kernel arrives, not what is written."""

import pytest

from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.ports import Tier, ToolCall


@pytest.fixture
def workspace(tmp_path):
    """A worktree with links in it that a repository may bring along; `home` lies beside it."""
    place = tmp_path / "card-1"
    for folder in (".github/workflows", ".git/hooks", "docs", "src/deep", "node_modules/.bin"):
        (place / folder).mkdir(parents=True)
    (tmp_path / "home/notes").mkdir(parents=True)
    (place / "docs/hooks").symlink_to("../.git/hooks")
    (place / "docs/flows").symlink_to("../.github/workflows")
    (place / ".github/docs").symlink_to("../docs")
    (place / "docs/away").symlink_to("../../home/notes")
    (place / "docs/deep").symlink_to("../src/deep")
    return place


@pytest.fixture
def judge(workspace, tmp_path):
    context = Context(
        workspace=workspace,
        home=tmp_path / "home",
        scratch=tmp_path / "scratch",
        sandbox="bubblewrap",
    )

    def answer(command):
        return decide(ToolCall("call", "bash", {"command": command}), context).tier

    return answer


@pytest.mark.parametrize(
    "command",
    [
        "echo x > docs/hooks/../config",
        "cp src/a docs/hooks/../config",
        "touch docs/flows/../workflows/ci.yml",
        "cd docs && tee hooks/../config < a.txt",
        "cat docs/away/../x.txt",
        "cat ./docs/away/../../card-2/x.txt",
        "cd .github/docs && cd .. && touch workflows/ci.yml",
        "cd .github/docs && cd ../ && cp a workflows/",
        "cd docs/deep/.. && touch x",
        "pushd docs/deep; cd ..; rm a",
        "sed -i s/a/b/ docs/hooks/../config",
    ],
)
def test_the_way_up_from_a_link_is_that_of_its_target(judge, command):
    assert judge(command) is Tier.ASK


@pytest.mark.parametrize(
    "command",
    [
        "ln -s src s && cd s && touch a && cd .. && touch b",
        "ln -s .github/../docs d && echo x > d/hooks/pre-commit",
        "ln -s docs d && echo x > d/flows/ci.yml",
        "ln -s docs d && cat d/away/x",
        "cd src && ln -s ../docs/. d && echo x > d/hooks/post-merge",
    ],
)
def test_a_link_that_the_same_call_makes_is_followed(judge, command):
    assert judge(command) is Tier.ASK


@pytest.mark.parametrize(
    "command",
    [
        "cat docs/deep/a.txt",
        "touch docs/deep/../x.txt",
        "cd docs/deep && touch a",
        "cd src/deep && cd .. && touch x",
        "cat src/../docs/a.md",
        "cd docs && cat ../src/a.py",
        "ln -s src s && echo x > s/a.txt",
    ],
)
def test_links_inside_are_no_obstacle(judge, command):
    assert judge(command) is Tier.ALLOW
