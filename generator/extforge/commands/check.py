"""`extforge check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from extforge.commands.plans import plan_data, plan_exit, plan_options, print_choices, read_plan
from extforge.commands.printing import Examples, count, emit_json, output_options, print_findings

if TYPE_CHECKING:
    from extforge.check import CheckedPlan

__all__ = ["check"]


@click.command(
    cls=Examples,
    examples=["extforge check my.plan.yaml", "extforge check my.plan.yaml --explain", "some-model | extforge check -"],
)
@click.argument("plans", nargs=-1, required=True, metavar="PLAN...")
@plan_options
@click.option(
    "--into",
    type=click.Path(file_okay=False),
    help="A folder that was generated into: the plan may build on the extensions there.",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--explain", is_flag=True, help="Print every choice that was derived, and why.")
@output_options
def check(
    plans: tuple[str, ...],
    into: str | None,
    max_designs: int,
    skills_from: tuple[str, ...],
    strict: bool,
    explain: bool,
    form: str,
    as_json: bool,
) -> None:
    """Find every problem in each PLAN: a file, a folder with *.plan.yaml, or - for standard input."""
    machine = as_json or form == "json"
    codes, rows = [], []
    for plan in plans:
        checked = read_plan(plan, into, max_designs, skills_from)
        bad = bool(checked.errors) or (strict and bool(checked.findings))
        if not machine:
            print_plan(checked, explain=explain)
        rows.append(plan_data(checked, bad=bad))
        codes.append(plan_exit(checked, bad=bad))
    if machine and len(rows) == 1:
        emit_json("check", rows[0])
    elif machine:
        emit_json("checks", {"verdict": "fail" if max(codes) else "pass", "plans": rows})
    sys.exit(max(codes))


def print_plan(checked: CheckedPlan, *, explain: bool) -> None:
    """Write what is wrong with a plan, and one line on what is in it."""
    print_findings(checked.findings)
    if explain:
        print_choices(checked)
    warnings = count(len(checked.findings) - len(checked.errors), "warning")
    if checked.errors:
        click.echo(f"{checked.label}: {count(len(checked.errors), 'error')}, {warnings}")
    else:
        names = ", ".join(blueprint.name for blueprint in checked.blueprints)
        click.echo(f"{checked.label}: {count(len(checked.blueprints), 'design')}, {warnings}: {names}")
