"""What plans know that agent definitions ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge.check import check_plan
from extforge.errors import PlanError

if TYPE_CHECKING:
    from extforge.check import CheckedPlan

__all__ = ["read_plan_skills", "skills_in_plan"]

# A plan may name community skills whose folders are not at hand; their names are known all the same.
_HARMLESS = ("plan-skill-source-missing",)


def skills_in_plan(plan: CheckedPlan) -> list[str]:
    """Return the names of the skills that a plan's extensions will have, those of others that it reuses among them."""
    return sorted({skill.name for blueprint in plan.blueprints for skill in blueprint.skills})


def read_plan_skills(source: str) -> list[str]:
    """Return the names of the skills of a plan in a file.

    Raises:
        PlanError: when the plan cannot be used.
    """
    plan = check_plan(source, max_designs=100_000)
    if any(finding.code not in _HARMLESS for finding in plan.errors):
        raise PlanError(plan.label, plan.findings)
    return skills_in_plan(plan)
