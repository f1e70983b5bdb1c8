"""What `check` and `generate` share: plans, read and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from extforge.commands.printing import EXIT_GOOD, exit_for, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from extforge.check import CheckedPlan

__all__ = ["plan_data", "plan_exit", "plan_options", "print_choices", "read_plan", "skills_from_option"]


def plan_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what commands that take a plan share."""
    return click.option(
        "--max-designs",
        type=click.IntRange(1, 100_000),
        default=10,
        show_default=True,
        help="How many designs a plan may have.",
    )(skills_from_option(function))


def skills_from_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--skills-from`."""
    return click.option(
        "--skills-from",
        multiple=True,
        type=click.Path(exists=True, file_okay=False),
        help="A folder of community skills that designs may name. Repeatable.",
    )(function)


def plan_exit(checked: CheckedPlan, *, bad: bool) -> int:
    """Return what a plan means for the shell, when it is bad by whatever the command line says."""
    return exit_for(checked.findings) if bad else EXIT_GOOD


def read_plan(plan: str, into: str | None, max_designs: int, skills_from: tuple[str, ...]) -> CheckedPlan:
    """Return the plan, checked against what is in the target already."""
    from extforge.check import check_plan
    from extforge.community import read_collection
    from extforge.generate import existing_extensions

    existing = existing_extensions(into) if into else None
    collection = read_collection(skills_from) if skills_from else None
    return check_plan(plan, max_designs=max_designs, existing=existing, collection=collection)


def print_choices(checked: CheckedPlan) -> None:
    """Write what was derived for each design."""
    for blueprint in checked.blueprints:
        parts = [f"rail {r.class_name} ({r.does})" for r in blueprint.rails]
        parts += [f"tool {t.name} ({t.does}{f' {t.format}' if t.format else ''})" for t in blueprint.tools]
        parts += [f"skill {s.name}" for s in blueprint.skills]
        click.echo(f"{blueprint.name} ({blueprint.design.kind}): {', '.join(parts)}")
        for choice in blueprint.choices:
            say(f"  {choice.subject}: {choice.value}  <- {choice.reason}")
        for path in blueprint.planned:
            say(f"  to add by hand: {path}")


def plan_data(checked: CheckedPlan, *, bad: bool) -> dict[str, Any]:
    """Return a checked plan for `emit_json`."""
    designs = [
        {
            "extension_name": b.name,
            "kind": b.design.kind,
            "root": b.root,
            "tools": [
                {"name": t.name, "class": t.class_name, "does": t.does, "format": t.format or None} for t in b.tools
            ],
            "rails": [{"class": r.class_name, "does": r.does} for r in b.rails],
            "skills": [skill.name for skill in b.skills],
            "choices": [{"subject": c.subject, "value": c.value, "reason": c.reason} for c in b.choices],
            "to_add_by_hand": b.planned,
        }
        for b in checked.blueprints
    ]
    return {
        "verdict": "fail" if bad else "pass",
        "source": checked.label,
        "package_name": checked.package_name,
        "designs": designs,
        "findings": checked.findings,
    }
