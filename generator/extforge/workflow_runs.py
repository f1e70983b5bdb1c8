"""Put a workflow run together from what the command line says, and execute it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.gates import approval_gate
from extforge_harness.workflows import ArtifactChecker, Persona, RunOptions, ScriptedExecutor, StepExecutor, WorkflowRun
from extforge_harness.workflows.errors import GuardrailCheckFailed, GuardrailViolated, StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from extforge_harness.agents.definition import AgentDefinition
    from extforge_harness.chat import Endpoint
    from extforge_harness.workflows import Skill, StepResult
    from extforge_harness.workflows.errors import WorkflowError

__all__ = ["Settings", "prepare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line says about a run."""

    executor: str  # scripted, chat or host
    script: dict[str, StepResult] | None
    trees: list[str]
    levels: dict[str, str]  # tool -> mutation level
    text: str
    workdir: str | None
    agents: tuple[AgentDefinition, ...]
    approval: str | None
    parallel: int
    timeout: float
    overrides: dict[str, str]
    python: str | None
    allow_unchecked: bool
    confirm: Callable[[str, str], bool] | None
    events: Callable[[str, str, dict[str, Any]], None] | None


def prepare(skill: Skill, settings: Settings) -> tuple[WorkflowRun, Callable[[], WorkflowError | None]]:
    """Return the run and the function that executes it; afterwards `run.result` says how it went.

    The function raises what kept the run from starting, and KeyboardInterrupt; it returns what a step or guardrail
    ended the run with.

    Raises:
        Missing: when the executor needs something that is not here.
    """
    agents = {agent.name: agent for agent in settings.agents}
    own = agents.get(skill.workflow.agent or "")
    defaults = own.defaults if own is not None else {}
    approval, plan = settings.approval or defaults.get("approval"), bool(defaults.get("plan"))
    endpoint = None if settings.executor == "scripted" else _endpoint(skill, settings, defaults.get("model"))
    scripted = ScriptedExecutor(settings.script) if settings.script is not None else None
    workdir = Path(settings.workdir or tempfile.mkdtemp(prefix="extforge-run-"))
    options = RunOptions(
        executor=scripted,
        gate=approval_gate(approval, plan=plan, levels=settings.levels, confirm=settings.confirm),
        checker=ArtifactChecker(),
        tools=list(settings.levels) if scripted is not None else None,
        input=settings.text,
        max_parallel=settings.parallel,
        workdir=workdir,
        agents={name: _persona(agent) for name, agent in agents.items()},
        overrides=settings.overrides,
        step_timeout=settings.timeout,
        allow_unchecked=settings.allow_unchecked,
        events=settings.events,
    )
    run = WorkflowRun(skill, options)

    async def execute() -> WorkflowError | None:
        async with AsyncExitStack() as stack:
            if endpoint is not None:
                executor = await _open_executor(stack, skill, endpoint, settings, str(workdir))
                run.options = replace(options, executor=executor)
            try:
                await run.execute()
            except (StepFailed, GuardrailViolated, GuardrailCheckFailed) as exc:
                return exc
        return None

    def execute_and_tidy() -> WorkflowError | None:
        try:
            return asyncio.run(execute())
        finally:
            if settings.workdir is None:
                with suppress(OSError):  # not empty: then it holds what the run made
                    workdir.rmdir()

    return run, execute_and_tidy


def _persona(agent: AgentDefinition) -> Persona:
    return Persona(agent.instructions or "", agent.defaults.get("model"), agent.defaults.get("effort"))


def _endpoint(skill: Skill, settings: Settings, own_model: str | None) -> Endpoint:
    from extforge_harness.chat import Endpoint  # noqa: PLC0415 -- only who asks a model needs it

    return Endpoint.from_environment(model=settings.overrides.get("model") or skill.workflow.model or own_model)


async def _open_executor(
    stack: AsyncExitStack, skill: Skill, endpoint: Endpoint, settings: Settings, workdir: str
) -> StepExecutor:
    from extforge_harness.host.session import toolbox  # noqa: PLC0415
    from extforge_harness.workflows.chat import ChatExecutor  # noqa: PLC0415
    from extforge_harness.workflows.host import HostExecutor  # noqa: PLC0415

    if settings.executor == "host":
        await asyncio.to_thread(endpoint.reach)
        return await stack.enter_async_context(HostExecutor(settings.trees, endpoint, python=settings.python))
    tools: dict[str, Any] = {}
    if settings.trees and skill.workflow.allowed_tools != []:  # else no tool is wanted
        os.makedirs(workdir, exist_ok=True)
        tools = await stack.enter_async_context(toolbox(settings.trees, workdir=workdir, python=settings.python))
    return ChatExecutor(endpoint, tools)
