"""Run a skill: its steps in order of their dependencies, each with the cut-down tools, each held to the guardrails.

One task group holds every step, so none outlives `execute()`.  `WorkflowRun.result` says at any time, after a failure
or Ctrl-C too, what was really completed; nothing is filled in for what was not.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from extforge_harness.errors import HarnessError
from extforge_harness.workflows.contract import (
    CheckContext,
    Persona,
    RunResult,
    Status,
    StepExecutor,
    StepOutcome,
    StepRequest,
    StepResult,
    ToolCall,
    Verdict,
    Violation,
)
from extforge_harness.workflows.contraction import Surface, resolve_surface
from extforge_harness.workflows.errors import (
    GuardrailCheckFailed,
    GuardrailViolated,
    RunRefused,
    SkillInvalid,
    StepFailed,
    WorkflowError,
)
from extforge_harness.workflows.pack import check_again
from extforge_harness.workflows.skill import FINAL, Guardrail, Skill, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from extforge_harness.gates import Gate

__all__ = ["RunOptions", "WorkflowRun", "ask_checker"]

LONGEST_DEPENDENCY = 8_000  # characters of an output that a dependent step sees
MOST_PARALLEL, USUAL_PARALLEL = 3, 2
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # who wants the warnings on the terminal says so; the result has them too


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is given; executor and gate are required, and their absence is a refusal, not a default.

    Args:
        executor: runs the steps.
        gate: which tools may be used; `ALLOW_ALL` must be named to have everything open.
        checker: has `check(guardrail, subject, output, context) -> Verdict`, plain or async, and may have
            `covers(guardrail) -> bool`; what it does not cover is listed in `RunResult.unchecked`.
        tools: every tool that is registered; default: what the executor says, else none.
        input: the caller's request.
        max_parallel: how many steps at once; 0 is 2, and more than 3 is 3.
        workdir: what claimed files are relative to; default: a new temporary folder, which is left behind.
        conversation: the caller's messages, for `context: inline`.
        agents: name -> persona, for `context: fork`.
        overrides: `model` and `effort` that win over those of the skill.
        step_timeout: seconds that one step may take.
        allow_unchecked: run although an enforced guardrail will not be checked.
        events: called with (kind, step, data) for `started`, `finished`, `failed` and `violation`.
    """

    executor: StepExecutor | None = None
    gate: Gate | None = None
    checker: Any = None
    tools: Sequence[str] | None = None
    input: str = ""
    max_parallel: int = 0
    workdir: Path | None = None
    conversation: Sequence[Mapping[str, Any]] = ()
    agents: Mapping[str, Persona] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    step_timeout: float = 600.0
    allow_unchecked: bool = True
    events: Callable[[str, str, dict[str, Any]], None] | None = None


class WorkflowRun:
    """One run of one skill."""

    def __init__(self, skill: Skill, options: RunOptions) -> None:
        self.skill, self.options = skill, options
        self._status: Status = "running"
        self._surface = Surface()
        self._workdir: Path | None = None
        self._persona: Persona | None = None
        self._unchecked: list[str] = []
        self._outcomes: dict[str, StepOutcome] = {}
        self._violations: list[Violation] = []
        self._failures: list[tuple[int, WorkflowError]] = []
        self._error: str | None = None
        self._started: set[str] = set()
        self._passed: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._executed = False
        wanted = options.max_parallel
        self._parallel = min(wanted, MOST_PARALLEL) if wanted > 0 else USUAL_PARALLEL

    @property
    def result(self) -> RunResult:
        """What has been completed so far."""
        workflow = self.skill.workflow
        agent = None
        if workflow.agent is not None and self._persona is not None:
            agent = {"name": workflow.agent, "model": self._chosen("model"), "effort": self._chosen("effort")}
        return RunResult(
            skill=self.skill.id,
            status=self._status,
            tools=self._surface.tools,
            removed=dict(self._surface.removed),
            missing=self._surface.missing,
            steps=tuple(self._outcomes[step.name] for step in self.skill.steps if step.name in self._outcomes),
            violations=tuple(self._violations),
            unchecked=tuple(self._unchecked),
            error=self._error,
            also_failed=tuple(str(exc) for _, exc in self._failures if str(exc) != self._error),
            agent=agent,
            workdir=str(self._workdir) if self._workdir else None,
        )

    async def execute(self) -> RunResult:
        """Run every step, and return the result.

        Raises:
            RunRefused: before anything is started, when something is missing.
            SkillInvalid: before anything is started, when the skill is not valid.
            StepFailed: when a step failed.
            GuardrailViolated: when an enforced guardrail is broken.
            GuardrailCheckFailed: when a guardrail, enforced or not, cannot be checked.
            asyncio.CancelledError: unchanged, when the run is cancelled.
        """
        if self._executed:
            raise RunRefused("workflow-not-runnable", self.skill.id, "a run is executed once; make a new one")
        self._executed = True
        try:
            await self._prepare()
            await self._run_steps()
            joined = "\n\n".join(outcome.output for outcome in self.result.steps)
            await self._check(FINAL, joined, self.result.steps)
        except asyncio.CancelledError:
            self._status = "cancelled"
            raise
        except BaseException as exc:
            self._status = "violated" if isinstance(exc, GuardrailViolated) else "failed"
            self._error = str(exc) or type(exc).__name__
            raise
        self._status = "done"
        return self.result

    # ------------------------------------------------------------------ before the first step

    async def _prepare(self) -> None:
        options, skill = self.options, self.skill
        if not skill.id.strip():
            raise self._refused("workflow-not-found", "the skill has no name")
        if options.executor is None:
            raise self._refused("workflow-no-executor", "there is nothing to run the steps with")
        if options.gate is None:
            raise self._refused("workflow-no-gate", "there is no gate; name ALLOW_ALL to let every tool through")
        if findings := check_again(skill):
            raise SkillInvalid(skill.id, findings)
        if not skill.steps:
            raise self._refused("workflow-not-runnable", "the skill has no steps; it is knowledge to read")
        if (agent := skill.workflow.agent) is not None:
            if agent not in options.agents:
                known = ", ".join(sorted(options.agents)) or "none"
                raise self._refused("workflow-unknown-agent", f"the agent {agent!r} is not known here (known: {known})")
            self._persona = options.agents[agent]
        self._surface = await self._cut_down(options.executor, options.gate)
        self._note_unchecked()
        self._workdir = self._make_workdir()

    def _make_workdir(self) -> Path:
        try:
            folder = Path(self.options.workdir or tempfile.mkdtemp(prefix="extforge-run-")).resolve()
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            words = f"the working directory {exc.filename or ''} cannot be used: {exc.strerror or exc}"
            raise self._refused("workflow-no-workdir", words) from None
        return folder

    def _refused(self, code: str, message: str) -> RunRefused:
        return RunRefused(code, self.skill.id, message)

    async def _cut_down(self, executor: StepExecutor, gate: Gate) -> Surface:
        registered = self.options.tools
        try:
            if registered is None:
                ask = getattr(executor, "tool_names", None)
                registered = ask() if ask is not None else ()
                if inspect.isawaitable(registered):
                    registered = await registered
            workflow = self.skill.workflow
            surface = resolve_surface(registered or (), workflow.allowed_tools, workflow.disallowed_tools, gate)
        except (HarnessError, asyncio.CancelledError):
            raise
        except Exception as exc:
            words = f"nobody can say which tools may be used: {_described(exc)}"
            raise self._refused("workflow-gate-failed", words) from exc
        if surface.missing:
            _log.warning("skill %s: tools that are not registered: %s", self.skill.id, ", ".join(surface.missing))
        return surface

    def _note_unchecked(self) -> None:
        rules, checker = self.skill.workflow.guardrails, self.options.checker
        covers = getattr(checker, "covers", lambda _: checker is not None)
        open_rules = [rule for rule in rules if not covers(rule)]
        self._unchecked = [rule.id for rule in open_rules]
        enforced = [rule.id for rule in open_rules if rule.enforced]
        if enforced and not self.options.allow_unchecked:
            raise self._refused("workflow-no-checker", f"nothing can check the guardrails {', '.join(enforced)}")
        if open_rules:
            _log.warning("skill %s: guardrails that nobody checks: %s", self.skill.id, ", ".join(self._unchecked))

    # ------------------------------------------------------------------ steps

    async def _run_steps(self) -> None:
        # A failed step does not raise into the group, which would cancel this task too, and before Python 3.13 leave
        # it counted as cancelled.
        async with asyncio.TaskGroup() as group:
            self._start_ready(group)
        if self._failures:
            self._failures.sort(key=lambda failure: failure[0])
            raise self._failures[0][1]

    def _start_ready(self, group: asyncio.TaskGroup) -> None:
        """Start what can be started, in declared order, as far as the limit allows."""
        for index, step in enumerate(self.skill.steps):
            running = len(self._started) - len(self._passed)
            if self._failures or running >= self._parallel:
                return
            if step.name not in self._started and self._passed.issuperset(step.depends):
                self._started.add(step.name)
                self._tasks.append(group.create_task(self._run_step(group, index, step), name=f"step {step.name}"))

    async def _run_step(self, group: asyncio.TaskGroup, index: int, step: Step) -> None:
        try:
            self._emit("started", step.name, {})
            outcome = self._outcomes[step.name] = await self._perform(step)
            data = {"seconds": outcome.seconds, "artifacts": list(outcome.artifacts), "output": outcome.output}
            self._emit("finished", step.name, data)
            await self._check(step.name, outcome.output, (outcome,))
        except WorkflowError as exc:
            if _being_cancelled():  # a sibling failed first; what cancelling does to this step is no failure of it
                raise asyncio.CancelledError from exc
            self._failures.append((index, exc))
            # Not at once: what fails in the same turn of the loop has failed by itself.
            asyncio.get_running_loop().call_soon(self._cancel_all)
            if not isinstance(exc, GuardrailViolated):  # then the step did its work, and its violation was told
                with suppress(StepFailed):
                    self._emit("failed", step.name, {"error": exc.message, "code": exc.code})
            return
        self._passed.add(step.name)
        self._start_ready(group)

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _perform(self, step: Step) -> StepOutcome:
        assert self.options.executor is not None
        began, limit = time.monotonic(), self.options.step_timeout
        late = f"it took longer than {limit:g} seconds"
        try:
            async with asyncio.timeout(limit) as clock:
                result = await self.options.executor.execute(self._request(step))
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            raise self._failed(step, "its executor cancelled it") from None
        except WorkflowError:
            raise
        except Exception as exc:
            raise self._failed(step, late if clock.expired() else _described(exc)) from exc
        if _being_cancelled():
            raise asyncio.CancelledError
        if clock.expired():
            raise self._failed(step, late)
        if problem := _shape_problem(result):
            raise self._failed(step, problem)
        if breach := sorted({call.name for call in result.tool_calls} - set(self._surface.tools)):
            raise self._failed(step, f"it used tools outside its surface: {', '.join(breach)}")
        seconds = round(time.monotonic() - began, 3)
        return StepOutcome(step.name, result.output, result.artifacts, seconds, result.tool_calls)

    def _failed(self, step: Step, reason: str) -> StepFailed:
        return StepFailed(self.skill.id, step.name, reason)

    def _request(self, step: Step) -> StepRequest:
        assert self._workdir is not None
        workflow = self.skill.workflow
        inline = workflow.context == "inline"
        depends = {name: _cut(self._outcomes[name].output) for name in step.depends}
        return StepRequest(
            skill=self.skill.id,
            step=step.name,
            prompt="\n\n".join(text for text in (workflow.prompt, step.prompt) if text),
            depends=MappingProxyType(depends),
            input=self.options.input,
            tools=self._surface.tools,
            refs=tuple(workflow.refs),
            spec=workflow,
            conversation=tuple(copy.deepcopy(dict(m)) for m in self.options.conversation) if inline else (),
            system=self._persona.instructions if self._persona is not None and not inline else "",
            model=self._chosen("model"),
            effort=self._chosen("effort"),
            workdir=self._workdir,
            folder=self.skill.folder,
        )

    def _chosen(self, key: Literal["model", "effort"]) -> str | None:
        """Overrides win over the skill, the skill over the agent; None is for the executor to decide."""
        sources = (
            self.options.overrides.get(key),
            getattr(self.skill.workflow, key),
            getattr(self._persona, key, None),
        )
        return next((value for value in sources if value), None)

    def _emit(self, kind: str, step: str, data: dict[str, Any]) -> None:
        if self.options.events is None:
            return
        try:
            self.options.events(kind, step, data)
        except Exception as exc:
            raise StepFailed(self.skill.id, step, f"whoever listens to the run failed: {_described(exc)}") from exc

    # ------------------------------------------------------------------ guardrails

    async def _check(self, subject: str, output: str, outcomes: tuple[StepOutcome, ...]) -> None:
        assert self._workdir is not None
        artifacts = tuple(path for outcome in outcomes for path in outcome.artifacts)
        context = CheckContext(self.skill.id, self._workdir, artifacts, tuple(outcome.output for outcome in outcomes))
        for rule in self.skill.workflow.guardrails:
            if rule.id in self._unchecked or subject not in rule.subjects(self.skill.steps):
                continue
            verdict = await self._verdict(rule, subject, output, context)
            if not verdict.violated:
                continue
            violation = Violation(rule.id, subject, rule.message, verdict.detail, rule.enforced)
            self._violations.append(violation)
            self._emit("violation", subject, asdict(violation))
            if rule.enforced:
                raise GuardrailViolated(self.skill.id, rule.id, subject, rule.message, verdict.detail)
            _log.warning("skill %s: guardrail %s at %s: %s", self.skill.id, rule.id, subject, verdict.detail)

    async def _verdict(self, rule: Guardrail, subject: str, output: str, context: CheckContext) -> Verdict:
        try:
            verdict = await ask_checker(self.options.checker, rule, subject, output, context)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            raise GuardrailCheckFailed(self.skill.id, rule.id, subject, "its checker cancelled it") from None
        except Exception as exc:
            raise GuardrailCheckFailed(self.skill.id, rule.id, subject, _described(exc)) from exc
        if not isinstance(verdict, Verdict) or not isinstance(verdict.violated, bool):
            words = f"the checker answered {verdict!r:.80}, which is no verdict"
            raise GuardrailCheckFailed(self.skill.id, rule.id, subject, words)
        return verdict


async def ask_checker(checker: Any, rule: Guardrail, subject: str, output: str, context: CheckContext) -> Any:
    """Return what a checker answers; a plain one runs in a thread: a large file must not keep other steps waiting."""
    if inspect.iscoroutinefunction(checker.check):
        return await checker.check(rule, subject, output, context)
    return await asyncio.to_thread(checker.check, rule, subject, output, context)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _described(exc: BaseException) -> str:
    text = " ".join(str(exc).split())
    return text if text and isinstance(exc, HarnessError) else f"{type(exc).__name__}: {text}".rstrip(": ")


def _cut(text: str) -> str:
    if len(text) <= LONGEST_DEPENDENCY:
        return text
    return f"{text[:LONGEST_DEPENDENCY]}\n…[truncated: {LONGEST_DEPENDENCY} of {len(text)} characters]"


def _shape_problem(result: Any) -> str | None:
    """Executors are written by others, and a step must not pass with an answer that says nothing."""
    if not isinstance(result, StepResult):
        return f"its executor answered {type(result).__name__}, not a StepResult"
    output: Any = result.output
    if not isinstance(output, str):
        return f"its output is {type(output).__name__}, not a text"
    if not all(isinstance(path, str) for path in result.artifacts):
        return "its artifacts are not all paths"
    return None if all(isinstance(call, ToolCall) for call in result.tool_calls) else "its tool calls are not ToolCalls"
