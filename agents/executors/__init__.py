"""Who does a card: each executor is one function from a job and its links to an outcome."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from agents.harness.policy.profiles import Profile
from agents.harness.ports import Gate, Journal, Outcome, Sink, Steering
from agents.harness.redaction import Redactor
from agents.harness.tools.registry import ToolContext

__all__ = ["Executor", "Job", "Links", "ModelAccess"]


@dataclass(frozen=True)
class ModelAccess:
    """Which model, where, and with what key. The key is kept out of every representation."""

    model: str
    api_key: str = field(repr=False)
    base_url: str = ""  # "" is the provider's own
    header: str = "bearer"  # or x-api-key


@dataclass(frozen=True)
class Job:
    """What is to be done: prompt and profile count only when the run begins."""

    prompt: str
    access: ModelAccess
    profile: Profile = Profile.FULL  # the tools that the agent is told of


@dataclass(frozen=True)
class Links:
    """How an executor is tied to its run: everything it does goes through these."""

    journal: Journal
    gate: Gate
    sink: Sink
    steering: Steering
    context: ToolContext
    after_turn: Callable[[int], Awaitable[None]]
    redactor: Redactor


class Executor(Protocol):
    """Drives a run from wherever its journal stands to the agent's report.

    Raises Waiting when the run is to be put aside and FatalError when it has failed.
    """

    async def __call__(self, job: Job, links: Links) -> Outcome:
        """Work on the job."""
