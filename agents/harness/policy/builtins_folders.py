"""Judges the commands of the shell that change its folder."""

from dataclasses import replace

from agents.harness.policy import files
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.values import Kind, State
from agents.harness.policy.walk import Run, Walker
from agents.harness.policy.walk_words import End


def pushd(walker: Walker, run: Run) -> End:
    """`pushd FOLDER`."""
    if len(run.fields) != len(("pushd", "FOLDER")) or run.fields[1].text[:1] in ("+", "-"):
        raise Refused("A9", "Changes to a folder that is not known")
    end = cd(walker, run)
    if end.success is None:
        return end
    pushed = (*run.state.pushed, run.state.folders)
    return End(replace(end.success, pushed=pushed), end.failure)


def popd(_walker: Walker, run: Run) -> End:
    """`popd`, after `pushd`."""
    if len(run.fields) > 1 or not run.state.pushed:
        raise Refused("A9", "Changes to a folder that is not known")
    *pushed, last = run.state.pushed
    after = replace(run.state, folders=last, pushed=tuple(pushed))
    return End(after, after)


def cd(walker: Walker, run: Run) -> End:
    """`cd FOLDER`: it may also fail."""
    fields = [one for one in run.fields[1:] if one.text not in ("--", "-P", "-L")]
    if len(fields) > 1 or any(one.kind is not Kind.KNOWN or one.glob for one in fields):
        raise Refused("A9", "Changes to a folder that is not known")
    target = fields[0].text if fields else str(walker.context.home)
    if target.startswith("-"):
        raise Refused("A9", "Changes to a folder that is not known")
    _check_upwards(walker, target, run.state)
    folders = frozenset(
        files.real(walker.context, target or ".", cwd=folder) for folder in run.state.folders
    )
    after = replace(run.state, folders=folders)
    is_sure = all(
        walker.context.files.is_folder(folder)
        and not walker.has_moved
        and not any(files.is_below(folder, written) for written in walker.written)
        for folder in folders
    )
    return End(after, replace(run.state, is_unlikely=True) if is_sure else run.state)


def _check_upwards(walker: Walker, target: str, state: State) -> None:
    """Behind a link `..` is where the shell came from; what is followed here is the real place."""
    home = str(walker.context.home)
    goes_up = ".." in target.split("/")
    for folder in state.folders:
        written = files.absolute(target or ".", cwd=folder, home=home)
        place = files.real(walker.context, target or ".", cwd=folder)
        if goes_up and (walker.is_behind_link or walker.context.files.real(written) != place):
            raise Refused("A9", "Goes up from a folder that it entered through a link")
        walker.is_behind_link = walker.is_behind_link or written != place
