"""`extforge workflows`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from extforge.commands.inputs import Tree, named_by, need
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    Examples,
    count,
    emit_json,
    exit_for,
    output_options,
    print_findings,
    say,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from extforge_harness.workflows import Skill, Surface, WorkflowRun
    from extforge_verifiers.findings import Finding

__all__ = ["workflows"]

_PACK = "name a folder of skill folders, each with skill.yaml or SKILL.md, or an extension tree"
_APPROVALS = ("ask", "auto", "full")
_extensions = click.option(
    "--extension",
    "extensions",
    multiple=True,
    type=Tree(),
    help="An extension tree whose tools are registered. Repeatable. Default: the tree that the skill lies in.",
)


def _approval(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    words = "How much is approved: ask before anything is changed, auto for local changes, full for everything"
    return click.option("--approval", type=click.Choice(_APPROVALS), help=f"{words} (default: {default}).")


@click.group()
def workflows() -> None:
    """List, check, show and run the workflows of skills: steps with guardrails that look at the files."""


@workflows.command(
    "list",
    cls=Examples,
    short_help="List the skills of a folder, or of an extension tree.",
    examples=["extforge workflows list skills/", "extforge workflows list ext/ --audience model"],
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--audience", type=click.Choice(("model", "user")), help="Only what the model, or a user, may start.")
@click.option(
    "--max-chars",
    type=click.IntRange(1),
    default=8000,
    show_default=True,
    help="With --audience: how long the list may be; the last lose their descriptions.",
)
@output_options
def list_(folder: str, audience: Literal["model", "user"] | None, max_chars: int, form: str, as_json: bool) -> None:
    """List the skills of a folder, or of an extension tree, and what is wrong with the others.

    DIR is a folder of skill folders, an extension tree, or a folder that trees were generated into.
    """
    from extforge_harness.workflows import listing, load_pack

    need(audience, "for --audience", "max_chars")
    pack = load_pack(folder)
    if not pack.skills and not pack.problems and not _trees_below(folder):
        raise click.UsageError(f"there are no skills in {folder}; {_PACK}")
    text = listing(pack.skills, audience, max_chars) if audience else ""
    if as_json or form == "json":
        data = {
            "path": pack.path,
            "skills": [_summary(skill) for skill in pack.skills],
            "listing": text if audience else None,
            "findings": pack.problems,
        }
        emit_json("workflows.list", data)
    else:
        lines = [_line(skill) for skill in pack.skills] if audience is None else text.splitlines()
        for line in lines:
            say(line)
        if not lines:
            tell("no skills")
        print_findings(pack.problems)
    sys.exit(exit_for(pack.errors))


def _trees_below(folder: str) -> bool:
    """Say whether there are extension trees, which need not have skills."""
    from extforge_verifiers.subjects import find_subjects

    return any(subject.kind == "extension" for subject in find_subjects(folder).subjects)


def _line(skill: Skill) -> str:
    what = count(len(skill.steps), "step") if skill.steps else "knowledge"
    return f"{skill.id} ({what}, {skill.workflow.invocation}): {' '.join(skill.description.split())}"


def _summary(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.id,
        "description": skill.description,
        "version": skill.workflow.version,
        "invocation": skill.workflow.invocation,
        "steps": [step.name for step in skill.steps],
        "source": skill.source,
    }


@workflows.command(
    cls=Examples,
    short_help="Find every problem of skills.",
    examples=["extforge workflows check skills/", "extforge workflows check skills/deck --extension ext/ --json"],
)
@click.argument("path", metavar="PATH", type=click.Path(exists=True))
@_extensions
@output_options
def check(path: str, extensions: tuple[str, ...], form: str, as_json: bool) -> None:
    """Find every problem of skills.

    PATH is the folder of a skill, its skill.yaml, a folder of skills, an extension tree, or a folder that trees were
    generated into.
    """
    skills, findings = _read(path)
    for skill in skills:
        findings += _unknown_tools(skill, extensions)
    bad = any(finding.severity == "error" for finding in findings)
    if as_json or form == "json":
        data = {
            "verdict": "fail" if bad else "pass",
            "path": path,
            "skills": [_summary(skill) for skill in skills],
            "findings": findings,
        }
        emit_json("workflows.check", data)
    else:
        print_findings(findings)
        errors = sum(finding.severity == "error" for finding in findings)
        click.echo(
            f"{path}: {count(len(skills), 'good skill')}, {count(errors, 'error')}, "
            f"{count(len(findings) - errors, 'warning')}"
        )
    sys.exit(exit_for([finding for finding in findings if finding.severity == "error"]))


def _read(path: str) -> tuple[list[Skill], list[Finding]]:
    """Return the skills at a path and their problems; a folder that is no skill is a pack."""
    from extforge_harness.workflows import RunRefused, SkillInvalid, load_pack, load_skill

    try:
        return [load_skill(path)], []
    except SkillInvalid as exc:
        return [], list(exc.findings)
    except RunRefused:
        if not os.path.isdir(path):
            raise
    pack = load_pack(path)
    if not pack.skills and not pack.problems:
        raise click.UsageError(f"there are no skills in {path}; {_PACK}")
    return pack.skills, pack.problems


def _unknown_tools(skill: Skill, extensions: tuple[str, ...]) -> list[Finding]:
    """With an extension the registry is known, so an allowed tool that it does not have is an error."""
    from extforge_harness.documents import suggest
    from extforge_verifiers.findings import Finding, Where

    trees = _trees(skill, extensions)
    if not trees:
        return []
    known = sorted(_levels(trees))
    return [
        Finding(
            "workflow-unknown-tool",
            f"{skill.id} allows the tool {tool!r}, which no extension has",
            where=Where(skill.source, "$.allowed-tools"),
            fix=suggest(tool, known) or f"known: {', '.join(known) or 'none'}",
        )
        for tool in skill.workflow.allowed_tools or ()
        if tool not in known
    ]


def _trees(skill: Skill, extensions: Sequence[str]) -> list[str]:
    from extforge_harness.workflows.registry import extension_of

    own = extension_of(skill.folder)
    return list(extensions) or ([own] if own else [])


def _levels(trees: Sequence[str]) -> dict[str, str]:
    from extforge_harness.workflows.registry import extension_tools

    return {tool: level for tree in trees for tool, level in extension_tools(tree).items()}


@workflows.command(
    cls=Examples,
    short_help="Show what a run of a skill would do.",
    examples=["extforge workflows show skills/board_report --approval auto"],
)
@click.argument("skill", type=click.Path(exists=True))
@_extensions
@_approval("ask")
@output_options
def show(skill: str, extensions: tuple[str, ...], approval: str | None, form: str, as_json: bool) -> None:
    """Show what a run of SKILL would do: levels of steps, tools, guardrails.

    SKILL is the folder of a skill, or its skill.yaml.
    """
    from extforge_harness.workflows import ArtifactChecker, load_skill, surface
    from extforge_harness.workflows.skill import levels

    found = load_skill(skill)
    cut = _surface(found, _trees(found, extensions), approval)
    checker = ArtifactChecker()
    rules: list[dict[str, Any]] = [
        {
            "id": rule.id,
            "message": rule.message,
            "enforced": rule.enforced,
            "at": rule.subjects(found.steps),
            "checked": checker.covers(rule),
        }
        for rule in found.workflow.guardrails
    ]
    shown = {
        **surface(found, cut.tools),
        "levels": levels(found.steps),
        "removed_tools": cut.removed,
        "missing_tools": list(cut.missing),
        "guardrails": rules,
    }
    if as_json or form == "json":
        emit_json("workflows.show", shown)
        return
    lines = [f"{found.id}: {found.description}"]
    lines += [f"{number}: {', '.join(names)}" for number, names in enumerate(shown["levels"], 1)] or ["no steps"]
    lines += [f"tools: {', '.join(cut.tools) or 'none'}"]
    lines += [f"  without {tool}: {reason}" for tool, reason in cut.removed.items()]
    lines += [f"  missing {tool}: no extension has it" for tool in cut.missing]
    for rule in rules:
        kind = "enforced" if rule["enforced"] else "warning"
        unchecked = "" if rule["checked"] else ", nothing here can check it"
        lines.append(f"guardrail {rule['id']} ({kind}, at {', '.join(rule['at'])}{unchecked}): {rule['message']}")
    lines += [f"ref: {title}" for title in shown["refs"]]
    for line in lines:
        say(line)


def _surface(skill: Skill, trees: Sequence[str], approval: str | None) -> Surface:
    from extforge_harness.workflows import approval_gate, resolve_surface

    levels = _levels(trees)
    # Nobody is asked here: `show` says what would be asked for.
    gate = approval_gate(approval, plan=False, levels=levels, confirm=None)
    return resolve_surface(levels, skill.workflow.allowed_tools, skill.workflow.disallowed_tools, gate)


@workflows.command(
    cls=Examples,
    short_help="Run the steps of a skill.",
    examples=[
        "extforge workflows run skills/board_report --input 'Q3 for the board' --approval auto",
        "extforge workflows run skills/board_report --script answers.yaml --workdir out/",
        "extforge workflows run skills/note --executor chat --json",
    ],
)
@click.argument("skill", type=click.Path(exists=True))
@click.option("--input", "text", default="", metavar="TEXT", help="What the run is asked for.")
@click.option(
    "--executor",
    type=click.Choice(("scripted", "chat", "host")),
    help="What runs the steps: a script (default with --script), an OpenAI-compatible endpoint, or an agent in the "
    "real openJiuwen (default).",
)
@click.option("--script", metavar="FILE", help="Answers of --executor scripted; - for standard input.")
@_extensions
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="FILE",
    help="An agent definition that the skill may name; - for standard input. Repeatable.",
)
@click.option("--workdir", type=click.Path(file_okay=False), help="Where files are made; default: a new folder.")
@_approval("that of the skill's agent, else ask")
@click.option("--parallel", type=click.IntRange(1, 3), default=2, show_default=True, help="Steps at once; at most 3.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=600.0, show_default=True, help="Seconds that a step may take."
)
@click.option("--model", metavar="NAME", help="The model (default: that of the skill, else $OPENAI_MODEL).")
@click.option(
    "--effort",
    type=click.Choice(("low", "medium", "high", "xhigh", "max")),
    help="How hard the model thinks (default: as the skill says).",
)
@click.option("--python", metavar="PY", help="A Python that has openJiuwen, which runs agents and tools.")
@click.option("--allow-unchecked", is_flag=True, help="Run although an enforced guardrail cannot be checked.")
@click.option("-q", "--quiet", is_flag=True, help="No progress lines.")
@output_options
def run(
    skill: str,
    form: str,
    as_json: bool,
    quiet: bool,
    extensions: tuple[str, ...],
    executor: str | None,
    script: str | None,
    agents: tuple[str, ...],
    model: str | None,
    effort: str | None,
    **options: Any,
) -> None:
    """Run SKILL, and say what was really done: live on standard error, the result on standard output.

    SKILL is the folder of a skill, or its skill.yaml.
    """
    from extforge.workflow_runs import Settings, prepare
    from extforge_harness.agents.definition import load_agent
    from extforge_harness.errors import Missing
    from extforge_harness.workflows import load_skill
    from extforge_harness.workflows.scripted import load_script

    found = load_skill(skill)
    kind = executor or ("scripted" if script else "host")
    if (kind == "scripted") != (script is not None):
        raise click.UsageError("--script FILE goes with --executor scripted, and the other way round")
    need(kind != "scripted", "for --executor host or chat", "python")
    need(found.workflow.agent, f"for a skill that names an agent, and {found.id} names none", "agents")
    with named_by("--agent"):
        definitions = tuple(map(load_agent, agents))
    with named_by("--script"):
        answers = load_script(script) if script is not None else None
    trees = _trees(found, extensions)
    settings = Settings(
        executor=kind,
        script=answers,
        agents=definitions,
        trees=trees,
        levels=_levels(trees),
        overrides={key: value for key, value in (("model", model), ("effort", effort)) if value},
        confirm=_confirm if sys.stdin.isatty() and sys.stderr.isatty() else None,
        events=None if quiet else _progress,
        **options,
    )
    workflow_run, execute = prepare(found, settings)
    if kind == "host" and not quiet:
        tell("starting openJiuwen")
    try:
        ended_by = execute()
        code = EXIT_GOOD if ended_by is None else EXIT_MISSING if isinstance(ended_by.__cause__, Missing) else EXIT_BAD
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    result = workflow_run.result
    if as_json or form == "json":
        emit_json("workflows.run", result.to_dict())
    else:
        _print_result(workflow_run)
    if code == EXIT_INTERRUPTED:
        tell("interrupted")
    elif result.error:
        tell(f"error: {result.error}")
    sys.exit(code)


def _progress(kind: str, step: str, data: dict[str, Any]) -> None:

    if kind == "finished":
        files = f": {', '.join(data['artifacts'])}" if data["artifacts"] else ""
        say(f"finished {step} ({data['seconds']:.1f} s){files}", err=True)
    elif kind == "violation":
        weight = "violated" if data["enforced"] else "warning"
        say(f"{weight}: {data['guardrail']} at {step}: {data['detail']}", err=True)
    elif kind == "failed":
        say(f"failed {step}", err=True)
    else:
        say(f"{kind} {step}", err=True)


def _print_result(workflow_run: WorkflowRun) -> None:

    result = workflow_run.result
    steps = workflow_run.skill.steps
    say(f"{result.skill}: {result.status}, {len(result.steps)} of {count(len(steps), 'step')} completed")
    for outcome in result.steps:
        say(f"  {outcome.name}: {' '.join(outcome.output.split()):.200}")
        for path in outcome.artifacts:
            say(f"    file: {path}")
    for violation in result.violations:
        weight = "violated" if violation.enforced else "warning"
        say(f"  {weight}: {violation.guardrail} at {violation.subject}: {violation.message}")
        say(f"    {violation.detail}")
    for rule in result.unchecked:
        say(f"  not checked: {rule}")
    for tool in result.missing:
        say(f"  the skill allows {tool}, which is not registered")
    say(f"  tools: {', '.join(result.tools) or 'none'}")
    denied = {tool: reason for tool, reason in result.removed.items() if reason.startswith("denied")}
    for tool, reason in denied.items():
        say(f"    without {tool}: {reason}")
    if denied:
        click.echo("    (--approval auto or full allows more)")
    if result.workdir and os.path.isdir(result.workdir):
        say(f"  files: {result.workdir}")


def _confirm(tool: str, request: str) -> bool:
    del request
    return click.confirm(f"The skill wants the tool {tool}. Allow it?", default=False, err=True)
