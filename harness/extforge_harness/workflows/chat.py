"""Run steps on any OpenAI-compatible `/chat/completions`, with a loop of tool calls."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extforge_harness.chat import Chat
from extforge_harness.workflows.contract import StepRequest, StepResult, ToolCall
from extforge_harness.workflows.errors import StepFailed
from extforge_harness.workflows.messages import claimed_file, system_text, user_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from extforge_harness.chat import Endpoint, Message

    # JSON Schema of the arguments, what executes it, and optionally what it is for.
    Tool = tuple[dict[str, Any], Callable[[dict[str, Any]], Awaitable[Any]]]
    DescribedTool = tuple[dict[str, Any], Callable[[dict[str, Any]], Awaitable[Any]], str]

__all__ = ["ChatExecutor"]

MOST_ROUNDS = 8  # of tool calls in one step


class ChatExecutor:
    """Asks an endpoint; a call of a tool outside the step's surface is not executed, and the model is told so."""

    def __init__(self, endpoint: Endpoint, toolbox: Mapping[str, Tool | DescribedTool] | None = None) -> None:
        """Prepare to run steps.

        Args:
            endpoint: where to ask; `Endpoint.from_environment()` reads it from OPENAI_*.
            toolbox: name -> (JSON Schema of the arguments, async function of the arguments[, description]).

        Raises:
            ChatMissing: when httpx is not installed.
        """
        Chat(endpoint)
        self.endpoint, self.toolbox = endpoint, dict(toolbox or {})

    def tool_names(self) -> tuple[str, ...]:
        """Return the names in the toolbox."""
        return tuple(self.toolbox)

    async def execute(self, request: StepRequest) -> StepResult:
        """Return the model's last answer, with the files that tools claimed and the tools that were executed."""
        endpoint = replace(self.endpoint, model=request.model) if request.model else self.endpoint
        system = system_text(request)
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        messages += [dict(message) for message in request.conversation]
        messages.append({"role": "user", "content": user_text(request)})
        offered = [self._offer(name) for name in request.tools if name in self.toolbox]
        calls: list[ToolCall] = []
        artifacts: dict[str, None] = {}
        async with Chat(endpoint) as chat:
            for _ in range(MOST_ROUNDS + 1):
                message = await chat.complete(messages, offered, reasoning_effort=request.effort)
                wanted = message.get("tool_calls") or []
                if not wanted:
                    return StepResult(message["content"] or "", tuple(artifacts), tuple(calls))
                messages.append(message)
                for call in wanted:
                    answer = await self._call(call["function"], request, calls)
                    if (path := claimed_file(answer)) is not None:
                        artifacts[path] = None
                    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        raise StepFailed(request.skill, request.step, f"the model called tools for more than {MOST_ROUNDS} rounds")

    def _offer(self, name: str) -> dict[str, Any]:
        schema, _, *description = self.toolbox[name]
        function = {"name": name, "description": description[0] if description else "", "parameters": schema}
        return {"type": "function", "function": function}

    async def _call(self, function: Mapping[str, str], request: StepRequest, calls: list[ToolCall]) -> Any:
        """Return what a tool answered, or what the model should know instead."""
        name = function["name"]
        if name not in request.tools or name not in self.toolbox:
            return {"error": f"the tool {name!r} is not available in this step; available: {list(request.tools)}"}
        try:
            arguments = json.loads(function["arguments"])
        except (ValueError, RecursionError) as exc:
            return {"error": f"the arguments are not JSON: {exc}"}
        if not isinstance(arguments, dict):
            return {"error": f"the arguments must be a JSON object, not {type(arguments).__name__}"}
        calls.append(ToolCall(name, arguments))
        try:
            return await self.toolbox[name][1](arguments)
        except Exception as exc:  # noqa: BLE001 -- the model may call it again with other arguments
            return {"error": f"{type(exc).__name__}: {exc}"}
