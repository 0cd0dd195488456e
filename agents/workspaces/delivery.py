"""Brings merged work from the hub into the user's repository, and never at the cost of theirs.

A remote gets a push without force. In a folder the objects are fetched by the repository itself
and the branch is moved by compare-and-set, so that none of its hooks run. Where somebody has the
branch checked out, that checkout follows if it is clean, and is left alone if it is not; the work
then waits in `refs/pullcord/<branch>`, which git understands as `pullcord/<branch>`.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agents.workspaces.checkouts import Checkout, advance, checkouts_of, reason_to_leave
from agents.workspaces.errors import GitError
from agents.workspaces.git import ZERO_SHA, git, is_ancestor, move_ref, resolve
from agents.workspaces.locks import locked
from agents.workspaces.repositories import open_local, unreachable
from agents.workspaces.sources import Address, read_address

PUSH_TIMEOUT_SECONDS = 300.0

_REASON = "pullcord: deliver merged work"


class DeliveryState(StrEnum):
    """How far merged work came."""

    DELIVERED = "delivered"  # the user's branch holds it
    LEFT_ALONE = "left_alone"  # a checkout is in the way; the message says what to do
    DIVERGED = "diverged"  # the user's branch has commits that the hub lacks: fetch, merge, again
    REFUSED = "refused"  # the repository did not let us


@dataclass(frozen=True)
class Delivery:
    """The outcome, with a sentence for people that says what to do if anything is to be done."""

    state: DeliveryState
    message: str


def deliver(
    hub: Path,
    repository: str,
    target_branch: str,
    sha: str,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = PUSH_TIMEOUT_SECONDS,
) -> Delivery:
    """Move `target_branch` of the user's `repository` to the hub's commit `sha`.

    It can be called again after any outcome and after being killed.
    Raises WorkspaceError if the repository cannot be reached at all.
    """
    variables = environment or {}
    address = read_address(repository, home=variables.get("HOME", ""))
    if address.path is None:
        return _push(
            hub,
            address,
            target_branch,
            sha,
            variables=variables,
            timeout_seconds=timeout_seconds,
        )
    local = open_local(address.path)
    with locked(hub, "delivery", timeout_seconds=timeout_seconds):
        return _deliver_locally(hub, local.git_dir, target_branch, sha)


def _push(
    hub: Path,
    address: Address,
    target: str,
    sha: str,
    *,
    variables: Mapping[str, str],
    timeout_seconds: float,
) -> Delivery:
    answer = git(
        "push", "--porcelain", "--no-verify", "--", address.location, f"{sha}:refs/heads/{target}",
        git_dir=hub,
        ok=(0, 1, 128),
        configuration=address.configuration,
        variables=address.variables(variables),
        protocols=address.protocols,
        timeout_seconds=timeout_seconds,
    )  # fmt: skip
    outcome = re.search(rb"^([ +\-*!=])\t\S+\t(.*)$", answer.stdout, flags=re.MULTILINE)
    if outcome is None:
        failure = GitError(
            "push", exit_code=answer.exit_code, ended_by="exit", stderr=answer.stderr
        )
        raise unreachable(address, failure)
    flag, words = outcome[1], outcome[2].decode("utf-8", "replace")
    if flag != b"!":
        return Delivery(DeliveryState.DELIVERED, f"Pushed to {target} of {address.text}.")
    if "non-fast-forward" in words or "fetch first" in words:
        return _diverged(target)
    reason = " ".join(
        line.removeprefix("remote:").strip()
        for line in answer.stderr.splitlines()
        if line.startswith("remote:") and line.removeprefix("remote:").strip()
    )
    message = f"{address.text} refused the push to {target}: {words} {reason}".strip()
    return Delivery(DeliveryState.REFUSED, f"{message}. Change its rules, then deliver again.")


def _deliver_locally(hub: Path, git_dir: Path, target: str, sha: str) -> Delivery:
    waiting = f"refs/pullcord/{target}"
    try:
        git(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-prune",
            "--", str(hub), f"+{sha}:{waiting}",
            git_dir=git_dir,
        )  # fmt: skip
    except GitError as failure:
        if "ermission denied" not in failure.stderr and "ead-only" not in failure.stderr:
            raise
        message = f"The server may not write to {git_dir}. Let its user write there."
        return Delivery(DeliveryState.REFUSED, message)
    ref = f"refs/heads/{target}"
    current = resolve(git_dir, ref)
    if current is not None and current != sha and not is_ancestor(git_dir, current, sha):
        if is_ancestor(git_dir, sha, current):
            return _delivered(git_dir, waiting, target)
        return _diverged(target)
    checkouts = checkouts_of(git_dir, target)
    if current == sha:
        return _delivered(git_dir, waiting, target)
    return _advance(git_dir, checkouts, target, new=sha, old=current or ZERO_SHA)


def _advance(
    git_dir: Path, checkouts: list[Checkout], target: str, *, new: str, old: str
) -> Delivery:
    """Move the branch from `old` to `new`, and with it the checkouts, if all of them can follow."""
    for checkout in checkouts:
        reason = reason_to_leave(checkout, old=old, new=new)
        if reason:
            return _left_alone(checkout, reason, target)
    for checkout in checkouts:
        try:
            advance(checkout, old=old, new=new)
        except GitError as failure:
            return _left_alone(checkout, failure.message, target)
    if move_ref(git_dir, f"refs/heads/{target}", new=new, old=old, reason=_REASON):
        return _delivered(git_dir, f"refs/pullcord/{target}", target)
    for checkout in checkouts:  # somebody committed at this moment: their commit counts
        advance(checkout, old=new, new=old)
    return _diverged(target)


def _delivered(git_dir: Path, waiting: str, target: str) -> Delivery:
    git("update-ref", "-d", waiting, git_dir=git_dir)
    return Delivery(DeliveryState.DELIVERED, f"{target} of the repository is up to date.")


def _left_alone(checkout: Checkout, reason: str, target: str) -> Delivery:
    command = f"git merge --ff-only {shlex.quote(f'pullcord/{target}')}"
    message = f"{checkout.path} was left alone: {reason}. When it is ready, run there: {command}"
    return Delivery(DeliveryState.LEFT_ALONE, message)


def _diverged(target: str) -> Delivery:
    message = f"{target} of the repository has new commits. They have to be merged first."
    return Delivery(DeliveryState.DIVERGED, message)
