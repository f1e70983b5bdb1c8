"""`extforge generate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from extforge.commands.inputs import named_by
from extforge.commands.plans import plan_data, plan_exit, plan_options, read_plan
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    Examples,
    colour_wanted,
    count,
    emit_json,
    output_options,
    print_findings,
    say,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge.check import CheckedPlan
    from extforge.generate import Generated
    from extforge.target.changes import Changes

__all__ = ["generate"]


@click.command(
    cls=Examples,
    examples=[
        "extforge generate my.plan.yaml --into .",
        "extforge generate my.plan.yaml --into . --diff --dry-run",
        "extforge generate my.plan.yaml --into . --check",
        "extforge generate my.plan.yaml --into . --conflicts inline",
    ],
)
@click.argument("plan")
@plan_options
@click.option(
    "--into", required=True, metavar="DIR", type=click.Path(file_okay=False), help="The folder to generate into."
)
@click.option("--only", metavar="NAME", help="Generate one extension, and the constraints it depends on.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")
@click.option("--diff", is_flag=True, help="Show what changes inside the files.")
@click.option("--check", is_flag=True, help="Exit with 1 when anything would change; change nothing.")
@click.option(
    "--conflicts",
    type=click.Choice(("refuse", "inline", "mine", "generated")),
    default="refuse",
    show_default=True,
    help="Where you and the generator changed the same place: change nothing, write markers, keep yours, or take ours.",
)
@click.option(
    "--force", multiple=True, metavar="PATH", help="Overwrite this file below DIR, whatever it is. Repeatable."
)
@click.option(
    "--template", type=click.Path(exists=True, file_okay=False), help="A template folder instead of the packaged one."
)
@click.option("--merge", is_flag=True, help="Make one extension of all designs, named after the plan's package_name.")
@click.option(
    "--session", metavar="ID", help="Put the trees below DIR/runtime_extensions/ID/, for a session of the auto-harness."
)
@click.option("--repo", is_flag=True, help="Also make DIR a repository: pyproject, README, .gitignore, CI.")
@click.option("--mcp", is_flag=True, help="Give every extension with tools an MCP server: for Claude Code, Codex, ...")
@click.option(
    "--skill-profile",
    type=click.Choice(("openjiuwen", "agentskills")),
    help="Whom SKILL.md is written for: openJiuwen alone, or any reader of the agentskills specification.  "
    "[default: as before, else openjiuwen]",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but problems.")
@output_options
def generate(
    plan: str,
    into: str,
    max_designs: int,
    skills_from: tuple[str, ...],
    check: bool,
    strict: bool,
    quiet: bool,
    form: str,
    as_json: bool,
    template: str | None,
    **how: Any,
) -> None:
    """Make the extensions of PLAN below DIR/openjiuwen/extensions/harness/, or bring them up to date.

    PLAN is a file, a folder with *.plan.yaml, or - for standard input.

    Running it again is updating: what you edited since is merged, what you deleted stays deleted, and a file that is
    not ours is never overwritten.
    """
    from pathlib import Path

    from extforge.errors import PlanError
    from extforge.generate import Options
    from extforge.generate import generate as run_generate

    if template:
        from extforge.templates import find_template

        with named_by("--template"):
            template = str(find_template(template).folder)
    checked = read_plan(plan, into, max_designs, skills_from)
    as_json = as_json or form == "json"
    if checked.errors or (strict and checked.findings):
        refuse(checked, as_json=as_json)
    if not quiet and not as_json:
        print_findings(checked.findings, err=True)
    how["dry_run"] = how["dry_run"] or check
    how["force"] = frozenset(how["force"])
    try:
        result = run_generate(checked, into, Options(**how, template=Path(template) if template else None))
    except PlanError as exc:  # good by itself, and not for these readers of its skills
        checked.findings = list(exc.findings)
        refuse(checked, as_json=as_json)
    if as_json:
        emit_json("generate", result_data(result))
    else:
        print_result(result, quiet=quiet)
    if how["mcp"] and not result.served:
        tell("--mcp changed nothing: no extension here has a tool that can be served")
    changed = bool(result.changes.writes)
    sys.exit(EXIT_BAD if result.changes.blocked or (check and changed) else EXIT_GOOD)


def refuse(checked: CheckedPlan, *, as_json: bool) -> NoReturn:
    """Say what is wrong with the plan, and end."""
    if as_json:
        emit_json("check", plan_data(checked, bad=True))
    else:
        print_findings(checked.findings, err=True)
        tell(f"{checked.label}: nothing was generated")
    sys.exit(plan_exit(checked, bad=True))


def result_data(result: Generated) -> dict[str, Any]:
    """Return what came of it, for programs."""
    from extforge.target.changes import Action

    data: dict[str, Any] = {
        "target": str(result.target),
        "applied": result.applied,
        "recovered": result.recovered,
        **{action.value: result.changes.of(action) for action in Action},
        "reasons": {path: row.reason for path, row in sorted(result.changes.rows.items()) if row.reason},
        "extensions": result.roots,
    }
    return {**data, "diff": result.diff} if result.diff else data


def print_result(result: Generated, *, quiet: bool) -> None:
    """Say what came of it, for people: the problems, then what changed, then what to do next."""
    from extforge.target.changes import Action

    if result.recovered:
        tell("a run that was interrupted has been finished first")
    if result.diff:
        print_diff(result.diff)
    changes = result.changes
    for path in changes.of(Action.CONFLICT, Action.FOREIGN, Action.ORPHANED):
        say(f"{result.target / path}: {changes.rows[path].reason}", err=True)
    if changes.blocked:
        tell("nothing was changed" + _way_out(changes))
        return
    if quiet:
        return
    _print_changes(changes, "" if result.applied else "would ")
    for root in result.roots:
        click.echo(f"  {result.target / root}")
    for blueprint in result.blueprints:
        for path in blueprint.planned:
            click.echo(f"  to add by hand: {blueprint.root}/{path}")
    if result.applied and changes.of(Action.CREATE):
        click.echo(loading_lines(str(result.target), result.roots))
        if result.served:
            click.echo(serving_lines(str(result.target), result.served))


def _print_changes(changes: Changes, verb: str) -> None:
    from extforge.target.changes import Action

    for action in (Action.CREATE, Action.UPDATE, Action.MERGE, Action.DELETE):
        paths = changes.of(action)
        if not paths:
            continue
        click.echo(f"{verb}{action}{'' if verb else 'd'} {count(len(paths), 'file')}")
        if action is Action.CREATE and len(paths) == len(changes.rows):
            continue  # everything is new; the folders say it
        for path in paths:
            reason = changes.rows[path].reason
            say(f"  {path}{f': {reason}' if reason else ''}")
    for action, words in (
        (Action.EDITED, "edited by you and kept"),
        (Action.REMOVED, "deleted by you and left out"),
        (Action.IDENTICAL, "unchanged"),
    ):
        if paths := changes.of(action):
            click.echo(f"{count(len(paths), 'file')} {words}")
            for path in paths if action is Action.REMOVED else ():
                say(f"  {path}")


def _way_out(changes: Changes) -> str:
    from extforge.target.changes import Action

    ways = []
    if changes.of(Action.CONFLICT):
        ways.append("--conflicts inline writes both versions with markers, mine keeps yours, generated takes ours")
    if changes.of(Action.FOREIGN):
        ways.append("move foreign files away, or pass --force PATH for each that may be overwritten")
    return f": {'; '.join(ways)}"


def print_diff(text: str) -> None:
    """Write a diff, in colours on a terminal."""
    from extforge_verifiers.reports.text import printable

    colour = colour_wanted(sys.stdout)
    tints = {"+": "green", "-": "red", "@": "cyan", "#": "bright_white"}
    for line in text.splitlines():
        tint = tints.get(line[:1])
        shown = printable(line)
        click.echo(
            click.style(shown, fg=tint, bold=line.startswith("# ") or None) if colour and tint else shown, color=colour
        )


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
