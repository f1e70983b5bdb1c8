"""Every exception this package raises on purpose.

* ExtforgeError
  x PlanError        -- the plan cannot be used; `.findings` say where and why
  x TargetError      -- the tree cannot be written where it should go; nothing was changed
  x TemplateError    -- a template is broken
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Finding

__all__ = ["ExtforgeError", "PlanError", "TargetError", "TemplateError"]


class ExtforgeError(Exception):
    """Base class; catch this to catch them all."""


class PlanError(ExtforgeError):
    """The plan cannot be used: every problem found in it is in `findings`."""

    def __init__(self, source: str, findings: Sequence[Finding]) -> None:
        super().__init__(source, findings)  # the same arguments as __init__, so it pickles
        self.source = source
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "\n".join(f"{f.where}: {f.message} [{f.code}]" for f in self.findings)


class TargetError(ExtforgeError):
    """The tree cannot be written where it should go; nothing was changed."""


class TemplateError(ExtforgeError):
    """A template did not render: a mistake in the template, not in the plan."""
