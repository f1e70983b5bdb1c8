"""Every exception this package raises on purpose.

* ExtforgeError
  x PlanError        -- the plan cannot be used; `.findings` say where and why
  x TargetError      -- the tree cannot be written where it should go; nothing was changed
  x TemplateError    -- a template is broken
"""

from __future__ import annotations

from extforge_verifiers.errors import Unusable

__all__ = ["ExtforgeError", "PlanError", "TargetError", "TemplateError"]


class ExtforgeError(Exception):
    """Base class; catch this to catch them all."""


class PlanError(Unusable, ExtforgeError):
    """The plan cannot be used: every problem found in it is in `findings`."""


class TargetError(ExtforgeError):
    """The tree cannot be written where it should go; nothing was changed."""


class TemplateError(ExtforgeError):
    """A template did not render: a mistake in the template, not in the plan."""
