"""What a runner, its executors and its checkers hand to each other: plain data, and who must answer what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from extforge_harness.workflows.skill import Ref, Workflow

__all__ = [
    "CheckContext",
    "Persona",
    "RunResult",
    "Status",
    "StepExecutor",
    "StepOutcome",
    "StepRequest",
    "StepResult",
    "ToolCall",
    "Verdict",
    "Violation",
]


@dataclass(frozen=True, slots=True)
class Persona:
    """What an agent definition says to a step that runs under it."""

    instructions: str = ""
    model: str | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that was executed; a call that was refused before is none."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRequest:
    """Everything a step needs.  An executor must not offer the model more tools than `tools`."""

    skill: str
    step: str
    prompt: str
    depends: Mapping[str, str]  # only the declared ones, each cut to 8,000 characters
    input: str
    tools: tuple[str, ...]
    refs: tuple[Ref, ...]
    spec: Workflow
    conversation: tuple[Mapping[str, Any], ...]  # of the caller; empty for `context: fork`
    system: str  # the persona; empty for `context: inline`
    model: str | None
    effort: str | None
    workdir: Path
    folder: str | None  # that refs are relative to


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an executor hands back: the text, the files it says it wrote, the tools it executed."""

    output: str
    artifacts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()


class StepExecutor(Protocol):
    """Runs one step.  It must end promptly when it is cancelled.  `tool_names()` is optional, and may be awaitable."""

    async def execute(self, request: StepRequest) -> StepResult:
        """Return what came of the step; whatever it raises fails the step."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a checker may look at besides the output."""

    skill: str
    workdir: Path
    artifacts: tuple[str, ...]  # claimed by the step; by all steps at `$final`
    outputs: tuple[str, ...]  # of the step; of all steps at `$final`


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a rule is broken, and the evidence."""

    violated: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A completed step."""

    name: str
    output: str
    artifacts: tuple[str, ...]
    seconds: float
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken."""

    guardrail: str
    subject: str
    message: str
    detail: str
    enforced: bool


Status = Literal["running", "done", "failed", "violated", "cancelled"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """An honest account of a run: completed steps only, in declared order."""

    skill: str
    status: Status
    tools: tuple[str, ...]  # that the steps really had
    removed: dict[str, str]  # tool -> why they did not have it
    missing: tuple[str, ...]  # allowed by the skill, registered nowhere
    steps: tuple[StepOutcome, ...]
    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...]  # guardrails that nobody checked
    error: str | None
    also_failed: tuple[str, ...]
    agent: dict[str, Any] | None
    workdir: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the same in JSON types."""
        return asdict(self)
