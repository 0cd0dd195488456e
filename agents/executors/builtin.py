"""The built-in executor: our own harness on the Messages API."""

import gc
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from agents.executors import Job, Links, ModelAccess
from agents.harness.loop import Ports, RunConfig, run_agent
from agents.harness.models.anthropic import AnthropicModel, HeaderForm
from agents.harness.ports import Outcome
from agents.harness.tools.catalog import default_tools


class BuiltinExecutor:
    """Keeps the models' connections and the tools' threads of one worker."""

    def __init__(self, *, threads: int) -> None:
        """`threads`: how many tool calls may run at once."""
        self._models: dict[ModelAccess, AnthropicModel] = {}
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="agents-tool")
        self._tools = default_tools()

    def warm_up(self) -> None:
        """Load the SDK, which takes a second or two; call it in a thread.

        While so much is made that stays, looking for garbage takes a quarter of the time and finds
        nothing. Nor is it looked through ever after: that would stop the event loop for 0.15 s.
        """
        gc.disable()
        try:
            importlib.import_module("anthropic")
            gc.freeze()
        finally:
            gc.enable()

    async def __call__(self, job: Job, links: Links) -> Outcome:
        """Run the agent; see `Executor`."""
        ports = Ports(
            model=self._model(job.access),
            journal=links.journal,
            gate=links.gate,
            sink=links.sink,
            steering=links.steering,
            tools=self._tools,
            context=links.context,
            threads=self._threads,
            after_turn=links.after_turn,
            redactor=links.redactor,
        )
        return await run_agent(ports, RunConfig(prompt=job.prompt, profile=job.profile))

    def _model(self, access: ModelAccess) -> AnthropicModel:
        if access not in self._models:
            self._models[access] = AnthropicModel(
                access.model,
                api_key=access.api_key,
                base_url=access.base_url or None,
                headers=cast("HeaderForm", access.header),
            )
        return self._models[access]

    async def close(self) -> None:
        """Close the connections."""
        for model in self._models.values():
            await model.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
