"""Run steps on agents in the real openJiuwen: one agent per step, with every ability outside the surface removed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from extforge_harness.errors import HostFailed
from extforge_harness.host.session import HostSession
from extforge_harness.workflows.contract import StepRequest, StepResult, ToolCall
from extforge_harness.workflows.errors import StepFailed
from extforge_harness.workflows.messages import claimed_file, system_text, user_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from extforge_harness.chat import Endpoint

__all__ = ["HostExecutor"]


class HostExecutor:
    """Loads the extension trees into a host process; use it with `async with`, which ends that process."""

    def __init__(self, extension_dirs: Sequence[str], endpoint: Endpoint, *, python: str | None = None) -> None:
        """Prepare to run steps.

        Args:
            extension_dirs: roots of extension trees, in the order they are loaded.
            endpoint: the model of the agents.
            python: a Python that has openJiuwen; default: this one.

        Raises:
            HostMissing: when openJiuwen is not installed there.
        """
        self.session, self.endpoint = HostSession(extension_dirs, python=python), endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, exc, trace)

    async def tool_names(self) -> tuple[str, ...]:
        """Return everything that an agent with the trees could call, the host's own tools included."""
        return tuple(tool["name"] for tool in await self.session.tools())

    async def execute(self, request: StepRequest) -> StepResult:
        """Return the agent's answer, with the files that tools claimed and the tools that were executed."""
        try:
            facts = await self.session.turn(
                _query(request),
                endpoint=self.endpoint,
                tools=request.tools,
                workdir=str(request.workdir),
                system=system_text(request),
                model=request.model,
                effort=request.effort,
            )
        except HostFailed:
            await asyncio.to_thread(self.endpoint.reach)  # the host tells no refused connection from other trouble
            raise
        if wider := sorted(set(facts["offered"]) - set(request.tools)):
            words = f"the host offered the model tools outside its surface: {', '.join(wider)}"
            raise StepFailed(request.skill, request.step, words)
        if facts["result_type"] != "answer":
            words = f"the agent ended with {facts['result_type']}: {facts['output']:.300}"
            raise StepFailed(request.skill, request.step, words)
        claims = [claimed_file(note.get("result")) for note in facts["executed"]]
        calls = tuple(ToolCall(note["tool"], _mapping(note["arguments"])) for note in facts["executed"])
        return StepResult(facts["output"], tuple(dict.fromkeys(path for path in claims if path)), calls)


def _query(request: StepRequest) -> str:
    """Return one text: an agent of the host starts without a conversation."""
    if not request.conversation:
        return user_text(request)
    lines = [f"{message.get('role', 'user')}: {message.get('content', '')}" for message in request.conversation]
    return "\n\n".join(["# Conversation so far", *lines, "# Your step", user_text(request)])


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"arguments": value}
