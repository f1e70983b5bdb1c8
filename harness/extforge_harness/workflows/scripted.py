"""Run steps from a script: offline, and the same every time.  For tests, examples and trying a skill's guardrails."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pydantic import RootModel

from extforge_harness.documents import Model, bind, read_source
from extforge_harness.workflows.contract import StepRequest, StepResult, ToolCall
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Script", "ScriptedExecutor", "ScriptedStep", "load_script"]


class ScriptedStep(Model):
    """What a step answers."""

    output: str
    artifacts: list[str] = []
    tool_calls: list[str] = []


class Script(RootModel[dict[str, str | ScriptedStep]]):
    """A script file: step -> its output, or its output with the files it claims and the tools it used."""


def load_script(path: str) -> dict[str, StepResult]:
    """Return the script in a YAML or JSON file; `-` is standard input.

    Raises:
        OSError: when the file cannot be read.
        DocumentError: with every problem in it.
    """
    label, data = read_source(path)
    script, findings = bind(read_document(data, label), Script)
    if script is None:
        raise DocumentError(label, findings)
    return {name: _result(step) for name, step in script.root.items()}


def _result(step: str | ScriptedStep) -> StepResult:
    if isinstance(step, str):
        return StepResult(step)
    return StepResult(step.output, tuple(step.artifacts), tuple(ToolCall(name) for name in step.tool_calls))


class ScriptedExecutor:
    """Answers from a mapping (step -> text or StepResult), or asks a function of the request, plain or async."""

    def __init__(
        self,
        script: Mapping[str, str | StepResult] | Callable[[StepRequest], Any],
        tools: tuple[str, ...] = (),
    ) -> None:
        self.script, self.tools = script, tools

    def tool_names(self) -> tuple[str, ...]:
        """Return the tools that it pretends to have."""
        return self.tools

    async def execute(self, request: StepRequest) -> StepResult:
        """Return what the script says; raise KeyError for a step that it does not have."""
        if callable(self.script):
            answer: Any = self.script(request)
            if inspect.isawaitable(answer):
                answer = await answer
        elif request.step in self.script:
            answer = self.script[request.step]
        else:
            raise KeyError(f"the script has no step {request.step!r}")
        return StepResult(answer) if isinstance(answer, str) else answer
