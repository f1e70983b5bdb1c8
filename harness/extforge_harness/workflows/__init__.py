"""Skill workflows: steps with guardrails that look at the files.

    skill = load_skill("skills/board_report")
    options = RunOptions(executor=..., gate=ALLOW_ALL, checker=ArtifactChecker(), input="Q3, please")
    result = await WorkflowRun(skill, options).execute()

Names are imported when they are used: checking a `skill.yaml` needs nothing that runs one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extforge_harness.gates import ALLOW_ALL, Gate, ReadOnlyGate, approval_gate
    from extforge_harness.workflows.contract import (
        CheckContext,
        Persona,
        RunResult,
        StepExecutor,
        StepOutcome,
        StepRequest,
        StepResult,
        ToolCall,
        Verdict,
        Violation,
    )
    from extforge_harness.workflows.contraction import Surface, resolve_surface
    from extforge_harness.workflows.disclosure import Activation, activate, listing, surface
    from extforge_harness.workflows.errors import (
        GuardrailCheckFailed,
        GuardrailViolated,
        RunRefused,
        SkillInvalid,
        StepFailed,
        WorkflowError,
    )
    from extforge_harness.workflows.guardrails import ArtifactChecker
    from extforge_harness.workflows.pack import Pack, load_pack, load_skill
    from extforge_harness.workflows.run import RunOptions, WorkflowRun
    from extforge_harness.workflows.scripted import ScriptedExecutor
    from extforge_harness.workflows.skill import Skill, Workflow

_HOMES = {
    "gates": "ALLOW_ALL Gate ReadOnlyGate approval_gate",
    "workflows.contraction": "Surface resolve_surface",
    "workflows.contract": "CheckContext Persona RunResult StepExecutor StepOutcome StepRequest StepResult ToolCall "
    "Verdict Violation",
    "workflows.disclosure": "Activation activate listing surface",
    "workflows.errors": "GuardrailCheckFailed GuardrailViolated RunRefused SkillInvalid StepFailed WorkflowError",
    "workflows.guardrails": "ArtifactChecker",
    "workflows.pack": "Pack load_pack load_skill",
    "workflows.run": "RunOptions WorkflowRun",
    "workflows.scripted": "ScriptedExecutor",
    "workflows.skill": "Skill Workflow",
}
__all__ = [
    "ALLOW_ALL", "Activation", "ArtifactChecker", "CheckContext", "Gate", "GuardrailCheckFailed",
    "GuardrailViolated", "Pack", "Persona", "ReadOnlyGate", "RunOptions", "RunRefused", "RunResult",
    "ScriptedExecutor", "Skill", "SkillInvalid", "StepExecutor", "StepFailed", "StepOutcome", "StepRequest",
    "StepResult", "Surface", "ToolCall", "Verdict", "Violation", "Workflow", "WorkflowError", "WorkflowRun",
    "activate", "approval_gate", "listing", "load_pack", "load_skill", "resolve_surface", "surface",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"extforge_harness.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
