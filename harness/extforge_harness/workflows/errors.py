"""Every exception that workflows raise on purpose; all are `HarnessError`s and carry a code of docs/codes.md.

* WorkflowError
  x SkillInvalid          -- the skill cannot be used; `.findings` say where and why
  x RunRefused            -- nothing was started
  x StepFailed            -- a step raised, took too long, or used a tool that it did not have
  x GuardrailViolated     -- an enforced rule is broken
  x GuardrailCheckFailed  -- nobody can say whether a rule is broken, which is not a pass
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Finding

__all__ = ["GuardrailCheckFailed", "GuardrailViolated", "RunRefused", "SkillInvalid", "StepFailed", "WorkflowError"]


class WorkflowError(HarnessError):
    """Base class: a code, the skill it speaks of, and one line for people."""

    def __init__(self, code: str, skill: str, message: str, path: str = "") -> None:
        super().__init__(code, skill, message, path)
        self.code, self.skill, self.message, self.path = code, skill, message, path

    def __str__(self) -> str:
        return f"{self.path or self.skill}: {self.message} [{self.code}]"


class SkillInvalid(WorkflowError):
    """A skill cannot be used; `code` and `message` are those of the first of `findings`."""

    def __init__(self, skill: str, findings: Sequence[Finding]) -> None:
        first = findings[0]
        super().__init__(first.code, skill, first.message, str(first.where))
        self.args = (skill, findings)  # what __init__ takes, so it pickles
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "\n".join(f"{str(f.where) or self.skill}: {f.message} [{f.code}]" for f in self.findings)


class RunRefused(WorkflowError):
    """Something that a run needs is missing; no step was started."""


class StepFailed(WorkflowError):
    """A step did not come to an end that counts."""

    def __init__(self, skill: str, step: str, reason: str) -> None:
        super().__init__("workflow-step-failed", skill, f"step {step!r} failed: {reason}")
        self.args = (skill, step, reason)
        self.step, self.reason = step, reason


class GuardrailViolated(WorkflowError):
    """An enforced guardrail is broken: which, where, and the evidence."""

    def __init__(self, skill: str, guardrail: str, subject: str, rule: str, detail: str) -> None:
        words = f"guardrail {guardrail!r} is violated at {subject!r}: {detail} (the rule: {rule})"
        super().__init__("workflow-guardrail-violated", skill, words)
        self.args = (skill, guardrail, subject, rule, detail)
        self.guardrail, self.subject, self.rule, self.detail = guardrail, subject, rule, detail


class GuardrailCheckFailed(WorkflowError):
    """A guardrail could not be checked."""

    def __init__(self, skill: str, guardrail: str, subject: str, reason: str) -> None:
        words = f"guardrail {guardrail!r} cannot be checked at {subject!r}, which is not a pass: {reason}"
        super().__init__("workflow-guardrail-check-failed", skill, words)
        self.args = (skill, guardrail, subject, reason)
        self.guardrail, self.subject, self.reason = guardrail, subject, reason
