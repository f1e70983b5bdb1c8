"""`extforge generate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from extforge.commands.plans import plan_exit, plan_options, print_plan_json, read_plan
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    Examples,
    count,
    emit_json,
    output_options,
    print_findings,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["generate"]


@click.command(
    cls=Examples,
    examples=[
        "extforge generate my.plan.yaml --into .",
        "extforge generate my.plan.yaml --into . --only quarterly_deck --dry-run",
    ],
)
@click.argument("plan")
@plan_options
@click.option("--into", required=True, type=click.Path(file_okay=False), help="The folder to generate into.")
@click.option("--only", metavar="NAME", help="Generate one extension, and the constraints it depends on.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")
@click.option("--mcp", is_flag=True, help="Give every extension with tools an MCP server: for Claude Code, Codex, ...")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but problems.")
@output_options
def generate(
    plan: str,
    into: str,
    max_designs: int,
    skills_from: tuple[str, ...],
    only: str | None,
    dry_run: bool,
    mcp: bool,
    strict: bool,
    quiet: bool,
    form: str,
    as_json: bool,
) -> None:
    """Make the extensions of PLAN below DIR/openjiuwen/extensions/harness/."""
    from extforge.generate import generate as run_generate

    checked = read_plan(plan, into, max_designs, skills_from)
    if checked.errors or (strict and checked.findings):
        if as_json or form == "json":
            print_plan_json(checked, bad=True)
        else:
            print_findings(checked.findings, err=True)
            tell(f"{checked.label}: nothing was generated")
        sys.exit(plan_exit(checked, bad=True))
    if not quiet and form == "text" and not as_json:
        print_findings(checked.findings, err=True)
    result = run_generate(checked, into, only=only, dry_run=dry_run, mcp=mcp)
    changes = result.changes
    if as_json or form == "json":
        data = {
            "target": str(result.target),
            "applied": result.applied,
            "create": changes.create,
            "identical": changes.identical,
            "foreign": changes.foreign,
            "extensions": result.roots,
        }
        emit_json("generate", data)
    elif changes.foreign:
        for path in changes.foreign:
            tell(f"{result.target / path}: exists and says something else; it is not overwritten")
        tell("nothing was changed: move these files away, or generate into another folder")
    elif not quiet:
        verb = "would create" if dry_run else "created"
        click.echo(f"{verb} {count(len(changes.create), 'file')}, {len(changes.identical)} unchanged")
        for root in result.roots:
            click.echo(f"  {result.target / root}")
        for blueprint in result.blueprints:
            for path in blueprint.planned:
                click.echo(f"  to add by hand: {blueprint.root}/{path}")
        if not dry_run:
            click.echo(loading_lines(str(result.target), result.roots))
            served = [blueprint.root for blueprint in result.blueprints if blueprint.served]
            if served:
                click.echo(serving_lines(str(result.target), served))
    sys.exit(EXIT_BAD if changes.foreign else EXIT_GOOD)


def serving_lines(target: str, roots: Sequence[str]) -> str:
    """Return the lines that give the tools to an MCP client."""
    import json
    import os

    servers = {
        root.rpartition("/")[2]: {
            "command": sys.executable,
            "args": [os.path.abspath(f"{target}/{root}/mcp_server.py")],
        }
        for root in roots
    }
    text = json.dumps({"mcpServers": servers}, indent=2, ensure_ascii=False)
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f"\nTo use their tools in Claude Code or another MCP client, as its .mcp.json:\n\n{indented}"


def loading_lines(target: str, roots: Sequence[str]) -> str:
    """Return the Python lines that load the trees into an agent."""
    names = [f"    {root!r}," for root in roots]
    return "\n".join(
        [
            "",
            "To load them into an agent (openJiuwen 0.1.16 or newer):",
            "",
            "    from openjiuwen.harness.rails import SkillUseRail",
            "    # Extensions with skills need this rail on the agent before they are loaded:",
            '    agent.add_rail(SkillUseRail(skills_dir=["an/existing/folder"], skill_mode="all", include_tools=False))',
            f"    for tree in [  # below {target}",
            *(f"    {line}" for line in names),
            "    ]:",
            "        await agent.load_plugin(tree)",
            "",
            f"To try them in the real host first: extforge verify {target} --host",
        ]
    )
