"""`extforge agents`."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from extforge.commands.inputs import OutFile, Tree, named_by, need
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    Examples,
    colour_wanted,
    count,
    emit_json,
    exit_for,
    output_options,
    print_findings,
    say,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from extforge_harness.agents.running import AgentRun
    from extforge_verifiers.documents import Document

__all__ = ["agents"]

_FOLDER = click.Path(exists=True, file_okay=False)
_RUNTIME = click.Choice(("native", "native_v2", "claudecode", "codex", "dsh"))
_NOT_CHECKED = "name where the skills are with --skills, or the plan that makes them with --plan"
_SOURCES = "A pack of skills, an extension, or a folder that extensions were generated into. Repeatable."


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def agents() -> None:
    """Check agent definitions, make packages of them, run them.

    A definition is a YAML or JSON file: who the agent is, what skills it needs, how it prefers to run.
    """


def skills_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--skills`."""
    return click.option("--skills", "sources", multiple=True, type=_FOLDER, help=_SOURCES)(function)


def set_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--set`."""
    words = "Ask for a setting, whatever the definition prefers: model, effort, approval, executor or plan. Repeatable."
    return click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help=words)(function)


@agents.command(
    cls=Examples,
    short_help="Find every problem of definitions.",
    examples=[
        "extforge agents check deck-writer.agent.yaml --plan demo.plan.yaml",
        "extforge agents check agents/ --skills out/",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@skills_option
@click.option("--plan", metavar="PLAN", help="A plan whose skills are known as well; - for standard input.")
@output_options
def check(files: tuple[str, ...], sources: tuple[str, ...], plan: str | None, form: str, as_json: bool) -> None:
    """Find every problem in each FILE: a definition, a folder with *.agent.yaml, or - for standard input."""
    from extforge_harness.agents.definition import check_agent, parse_agent, read_agent
    from extforge_harness.documents import STDIN
    from extforge_harness.errors import AgentError

    known = known_skills(sources, plan)
    skipped = {"skills": _NOT_CHECKED} if known is None else {}
    machine, codes, rows = as_json or form == "json", [], []
    for file in (path for name in files for path in definitions_in(name)):
        label = STDIN if file == "-" else file
        summary: dict[str, Any] | None = None
        try:
            document = read_agent(file)
            findings = check_agent(document, known)
            summary = None if findings else parse_agent(document, known).summary()
        except AgentError as exc:
            findings = list(exc.findings)
        codes.append(exit_for(findings))
        rows.append(
            {
                "source": label,
                "verdict": "fail" if findings else "pass",
                "agent": summary,
                "skipped": skipped if summary and summary["skills"] else {},
                "findings": findings,
            }
        )
        if not machine:
            print_findings(findings)
            click.echo(f"{label}: {count(len(findings), 'error') if summary is None else said(summary)}")
    if machine:
        emit_json("agents-check", {"verdict": "fail" if max(codes) else "pass", "agents": rows})
    elif any(row["skipped"] for row in rows):
        tell(f"not checked: whether the skills exist; {_NOT_CHECKED}")
    sys.exit(max(codes))


@agents.command(
    cls=Examples,
    short_help="Make the package of an agent.",
    examples=["extforge agents build deck-writer.agent.yaml --skills out/ --out agents/"],
)
@click.argument("file")
@skills_option
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The folder that the package goes into.",
)
@click.option("--force", is_flag=True, help="Replace a package that is there.")
@click.option("--host/--no-host", default=None, help="Load it in openJiuwen too (default: when it is installed).")
@output_options
def build(
    file: str, sources: tuple[str, ...], out: str, force: bool, host: bool | None, form: str, as_json: bool
) -> None:
    """Make the agent package (agent_template) of FILE in DIR/<name>, and check it.

    FILE is a definition, or - for standard input.
    """
    from extforge_harness.agents.definition import parse_agent, read_agent
    from extforge_harness.agents.package import build_package

    machine = as_json or form == "json"
    with hinting("" if sources else "--skills"):
        definition = parse_agent(read_agent(file), known_skills(sources, None) or [])
        built = build_package(definition, sources, out, force=force, host=host)
    if machine:
        data = {"path": str(built.path), "files": built.files, "report": built.report}
        emit_json("agents-build", {"verdict": built.report.verdict.value, "agent": definition.summary(), **data})
        return
    print_findings(built.report.findings)
    click.echo(f"built {built.path}")
    for path in built.files:
        click.echo(f"  {path}")
    checked = [name.removeprefix("host ") for name in built.report.checked if name.startswith("host ")]
    if checked:
        click.echo(f"loaded by openJiuwen {built.report.facts['openjiuwen']}: {', '.join(checked)}")
    for name, reason in built.report.skipped.items():
        click.echo(f"skipped: {name}: {reason}")


@agents.command(
    cls=Examples,
    short_help="Show what an agent runs with, and why.",
    examples=["extforge agents resolve deck-writer.agent.yaml --set model=glm-4.6 --set plan=false --runtime codex"],
)
@click.argument("file")
@set_option
@click.option("--runtime", type=_RUNTIME, help="Also show what the settings become in this runtime.")
@output_options
def resolve(file: str, settings: tuple[str, ...], runtime: str | None, form: str, as_json: bool) -> None:
    """Show what an agent would run with, and where each setting comes from.

    FILE is its definition, or - for standard input.
    """
    from dataclasses import asdict

    from extforge_harness.agents.definition import load_agent
    from extforge_harness.agents.resolution import check_resolved, origins
    from extforge_harness.agents.resolution import resolve as resolve_agent
    from extforge_harness.agents.settings import provider_settings

    machine, request = as_json or form == "json", read_settings(settings)
    definition = load_agent(file)
    resolved = resolve_agent(definition, request)
    where, findings = origins(definition, request), check_resolved(resolved)
    rows = {name: {"value": value, "from": where[name]} for name, value in asdict(resolved).items()}
    applied = provider_settings(resolved, runtime) if runtime and not findings else None
    if machine:
        found = {
            "agent": definition.summary(),
            "fields": rows,
            "runtime": runtime,
            "config": applied.config if applied else None,
            "not_applied": [{"field": name, "reason": reason} for name, reason in applied.not_applied]
            if applied
            else [],
            "findings": findings,
        }
        emit_json("agents-resolve", {"verdict": "fail" if findings else "pass", **found})
    else:
        for name, row in rows.items():
            value = row["value"]
            shown = "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            say(f"{name:<10} {shown:<20} {row['from']}")
        print_findings(findings)
        if applied:
            import json

            click.echo(f"\n{runtime}: {json.dumps(applied.config, ensure_ascii=False)}")
            print_not_applied(applied.not_applied)
    sys.exit(EXIT_BAD if findings else EXIT_GOOD)


@agents.command(
    cls=Examples,
    short_help="Print the header form of a prompt.",
    examples=['extforge agents prompt deck-writer.agent.yaml "Make the board deck"'],
)
@click.argument("file")
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(("turn", "goal", "coordinator")),
    default="turn",
    help="What TEXT is for; goals and coordinators take no instructions.",
)
@output_options
def prompt(file: str, text: str, kind: str, form: str, as_json: bool) -> None:
    """Print TEXT as it is given to a runtime that takes only a prompt: below a header with the instructions.

    FILE is the agent's definition, or - for standard input.
    """
    from extforge_harness.agents.definition import load_agent
    from extforge_harness.agents.resolution import prepare

    task = prepare(load_agent(file), {"prompt": text, "kind": kind})
    if as_json or form == "json":
        emit_json("agents-prompt", {"agent": task.agent, "prompt": task.prompt})
    else:
        click.echo(task.prompt)


@agents.command(
    cls=Examples,
    short_help="Run one turn of an agent.",
    examples=[
        'extforge agents run deck-writer.agent.yaml "Make the board deck" --extension out/openjiuwen/extensions/harness/quarterly_deck',
        'extforge agents run agents/deck-writer "Make the board deck" --set approval=auto --workdir decks/',
    ],
)
@click.argument("file")
@click.argument("text")
@click.option(
    "--runtime",
    type=_RUNTIME,
    default="native",
    show_default=True,
    help="Where it runs; only native and native_v2 are started from here.",
)
@click.option(
    "--extension", "extensions", multiple=True, type=Tree(), help="An extension tree to load beside it. Repeatable."
)
@skills_option
@set_option
@click.option(
    "--workdir",
    type=click.Path(file_okay=False),
    default=".",
    help="Where it works, and where its files must lie (default: here).",
)
@click.option("--record", type=OutFile(), help="Write the turn to this file, for extforge verify.")
@click.option("--python", metavar="PY", help="A Python that has openJiuwen.")
@click.option("--timeout", type=click.FloatRange(1), default=600, show_default=True, help="Seconds the host may take.")
@output_options
def run(
    file: str,
    text: str,
    runtime: str,
    extensions: tuple[str, ...],
    sources: tuple[str, ...],
    settings: tuple[str, ...],
    record: str | None,
    form: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Ask an agent for TEXT, in openJiuwen, and print its answer.

    FILE is its definition, the folder of its package, or - for standard input.

    The model is the one of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.  Tools are used as far as the approval
    goes; at a terminal you are asked about the others.  Extensions run with your rights.
    """
    import json

    from extforge.commands.printing import emit
    from extforge_harness.agents.definition import parse_agent, read_agent
    from extforge_harness.agents.running import Options, run_agent

    machine = as_json or form == "json"
    package = file if os.path.isdir(file) else None
    if package is not None and not os.path.exists(os.path.join(package, "agent.json")):
        raise click.UsageError(f"{file} is no agent package: it has no agent.json; `extforge agents build` makes one")
    need(package is None, "for a definition: a package holds its skills", "sources")
    offered = (*sources, *extensions)
    with hinting("" if offered else "--skills or --extension"):
        document: Document = read_agent(os.path.join(package, "agent.json") if package else file)
        definition = parse_agent(document, None if package else known_skills(offered, None) or [])
        how = Options(
            request=read_settings(settings),
            runtime=runtime,
            package=package,
            skill_sources=offered,
            extensions=extensions,
            confirm=ask_person if sys.stdin.isatty() else None,
            on_call=show_call,
            **options,
        )
        outcome = run_agent(definition, text, how)
    if record:
        kept = {"agent": outcome.agent, "runtime": outcome.runtime, "messages": outcome.messages}
        emit(json.dumps(kept, ensure_ascii=False, indent=2), record)
    if machine:
        emit_json("agents-run", run_data(outcome))
    else:
        print_run(outcome)
    sys.exit(EXIT_GOOD if outcome.good else EXIT_BAD)


def run_data(outcome: AgentRun) -> dict[str, Any]:
    """Return a run as JSON types."""
    from dataclasses import asdict

    return {
        "verdict": "pass" if outcome.good else "fail",
        "agent": outcome.agent,
        "runtime": outcome.runtime,
        "resolved": asdict(outcome.resolved),
        "not_applied": [{"field": name, "reason": reason} for name, reason in outcome.not_applied],
        **asdict(outcome.turn),
        "report": outcome.report,
    }


def print_run(outcome: AgentRun) -> None:
    """Write the answer to standard output, and what is known about it to standard error."""
    from extforge_verifiers.reports.text import render

    print_not_applied(outcome.not_applied)
    for name, reason in outcome.turn.removed.items():
        say(f"not offered: {name}: {reason}", err=True)
    for call in outcome.turn.calls:
        if not call["permits"]:
            say(f"refused: {call['tool']}: {call['reason']}", err=True)
    for line in outcome.turn.answer.splitlines():
        say(line)
    if outcome.report.checked:
        colour = colour_wanted(sys.stderr)
        click.echo(render([outcome.report], colour=colour), err=True, color=colour)
    if outcome.turn.error:
        error = outcome.turn.error
        say(f"the agent failed ({error['where']}): {error['message']}", err=True)
    elif not outcome.turn.good:
        ended = f"{outcome.turn.status}, {outcome.turn.stop_reason}"
        say(f"the agent came to no answer: {ended}{'' if outcome.turn.answer else ', nothing said'}", err=True)


# --------------------------------------------------------------------------- shared


def definitions_in(name: str) -> list[str]:
    """Return the definitions that an argument names: itself, or those in the folder that it is."""
    if not os.path.isdir(name):
        return [name]
    ends = tuple(f".agent.{suffix}" for suffix in ("yaml", "yml", "json"))
    found = sorted(entry for entry in os.listdir(name) if entry.endswith(ends))
    if not found:
        raise click.UsageError(f"{name} holds no *.agent.yaml, *.agent.yml or *.agent.json")
    return [os.path.join(name, entry) for entry in found]


def known_skills(sources: Sequence[str], plan: str | None) -> list[str] | None:
    """Return the names of the skills that there are; None when nobody says where."""
    if not sources and plan is None:
        return None
    from extforge_harness.skills import find_skills

    known = list(find_skills(sources))
    if plan is not None:
        from extforge.agents import read_plan_skills

        with named_by("--plan"):
            known += read_plan_skills(plan)
    return known


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return what `--set` asks for."""
    from extforge_harness.agents.definition import DEFAULTS
    from extforge_harness.documents import suggest

    words = {"true": True, "1": True, "false": False, "0": False, "null": None}
    request: dict[str, Any] = {}
    for item in settings:
        key, equals, value = item.partition("=")
        if not equals or key not in DEFAULTS:
            hint = suggest(key, list(DEFAULTS)) or f"known: {', '.join(DEFAULTS)}"
            raise click.UsageError(f"--set {item}: write KEY=VALUE; {hint}")
        if key == "plan" and value not in words:
            raise click.UsageError(f"--set {item}: plan is true or false")
        request[key] = words[value] if key == "plan" else value
    return request


def said(summary: dict[str, Any]) -> str:
    """Return an agent's identity in words."""
    version = f" {summary['version']}" if summary["version"] else ""
    names = f": {', '.join(summary['skills'])}" if summary["skills"] else ""
    return f"agent {summary['name']}{version}, {count(len(summary['skills']), 'skill')}{names}"


@contextlib.contextmanager
def hinting(options: str) -> Iterator[None]:
    """Name the options that would make skills known, when one is not."""
    from extforge_harness.errors import AgentError

    try:
        yield
    except AgentError as exc:
        if options and any(finding.code == "agent-unknown-skill" for finding in exc.findings):
            exc.add_note(f"name where its skills are with {options}")
        raise


def print_not_applied(pairs: Sequence[tuple[str, str]]) -> None:
    """Say which settings a runtime passes over."""
    for name, reason in pairs:
        tell(f"not applied: {name}: {reason}")


def show_call(tool: str, arguments: Any) -> None:
    """Say which tool the agent wants to use."""
    from extforge_verifiers.reports.text import printable

    shown = printable(arguments if isinstance(arguments, str) else repr(arguments))
    say(f"{tool} {shown if len(shown) <= 200 else f'{shown[:197]}...'}", err=True)


def ask_person(tool: str, request: str) -> bool:
    """Ask the person at the terminal."""
    del request
    return click.confirm(f"let it use {tool}?", default=False, err=True)
