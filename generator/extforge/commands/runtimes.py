"""`extforge runtimes`: where extensions work, what each tool may do, and what a new runtime must prove first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from extforge.commands.inputs import OutFile, named_by, need
from extforge.commands.plans import skills_from_option
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    EXIT_MISSING,
    Examples,
    colour_wanted,
    emit,
    emit_json,
    output_options,
    print_findings,
    say,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from extforge_harness.runtimes.catalog import Catalog
    from extforge_harness.runtimes.onboarding import Step

__all__ = ["runtimes"]

_PROVIDER = (
    "Where the model comes from: openai-compatible, openai-responses, anthropic, account, a file that describes "
    "another, or - for standard input."
)
EXTENSIONS = click.argument("extensions", nargs=-1, metavar="[EXT]...", type=click.Path(exists=True, file_okay=False))


@click.group()
def runtimes() -> None:
    """Say where extensions work, and what a new runtime must prove."""


def plan_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what a plan instead of trees needs."""
    function = click.option("--mcp", is_flag=True, help="With --plan: as `generate --mcp` would make it.")(function)
    words = "Read a plan instead of trees: a file, a folder with *.plan.yaml, or - for standard input."
    return click.option("--plan", metavar="PLAN", help=words)(skills_from_option(function))


def _catalog(
    extensions: tuple[str, ...], plan: str | None = None, skills_from: tuple[str, ...] = (), *, mcp: bool = False
) -> Catalog:
    """Return the catalog of trees or of a plan."""
    if bool(extensions) == bool(plan):
        raise click.UsageError("name extension trees, or a plan with --plan")
    need(plan, "for --plan: trees are what they are", "mcp", "skills_from")
    if plan is None:
        from extforge_harness.runtimes.trees import catalog

        return catalog(extensions)
    from extforge.capabilities import catalog_from_plan
    from extforge.commands.plans import read_plan
    from extforge.errors import PlanError

    checked = read_plan(plan, None, 100_000, skills_from)
    if checked.errors:
        raise PlanError(checked.label, checked.findings)
    return catalog_from_plan(checked, mcp=mcp)


def _known(catalog: Catalog, runtime: str) -> str:
    if runtime not in catalog.registry.ids:
        from extforge_harness.documents import suggest

        known = list(catalog.registry.ids)
        hint = suggest(runtime, known) or "known: " + ", ".join(known)
        raise click.UsageError(f"unknown runtime {runtime!r}; {hint}")
    return runtime


@runtimes.command(
    "list",
    cls=Examples,
    short_help="List the runtimes, and what each can do.",
    examples=["extforge runtimes list", "extforge runtimes list --host"],
)
@click.option("--host", is_flag=True, help="Ask the installed openJiuwen whether it does what is listed.")
@output_options
def list_command(host: bool, form: str, as_json: bool) -> None:
    """List the runtimes: what each mounts, which model protocols it speaks, what it needs."""
    from extforge_harness.runtimes.descriptors import KINDS, load_registry

    registry = load_registry()
    findings = []
    if host:
        from extforge_harness.host.mounting import try_mounts
        from extforge_harness.runtimes.proving import find_drift

        tell("asking openJiuwen ...")
        findings = find_drift(registry, try_mounts([]))
    if as_json or form == "json":
        data: dict[str, Any] = {
            "runtimes": [{**r.model_dump(mode="json"), "importable": r.importable} for r in registry.runtimes],
            "drift": findings if host else None,
        }
        emit_json("runtimes", data)
    else:
        for runtime in registry.runtimes:
            here = "" if runtime.importable else f"  (not installed here: {runtime.needs or runtime.sdk})"
            wires = ", ".join(f"{wire}{'' if fact == 'verified' else '†'}" for wire, fact in runtime.wires.items())
            emit(f"{runtime.id}  {runtime.name}{here}\n  speaks {wires}")
            for kind in KINDS:
                mount = runtime.mount(kind)
                how = f"through {str(mount.via).replace('_', ' ')}" if mount.status == "live" else mount.reason
                emit(f"  {kind:5} {mount.status}{'' if mount.fact == 'verified' else '†'}: {how}")
        if any(m.fact == "inferred" for r in registry.runtimes for k in KINDS for m in [r.mount(k)]):
            emit("† read in the source, not seen running")
        print_findings(findings)
        if host and not findings:
            emit("the installed openJiuwen does exactly this")
    sys.exit(EXIT_BAD if findings else EXIT_GOOD)


@runtimes.command(
    "catalog",
    cls=Examples,
    short_help="List every capability of extensions.",
    examples=["extforge runtimes catalog openjiuwen/extensions/harness"],
)
@EXTENSIONS
@plan_options
@output_options
def catalog_command(
    extensions: tuple[str, ...], plan: str | None, skills_from: tuple[str, ...], mcp: bool, form: str, as_json: bool
) -> None:
    """List every capability: its tools, what they may change, what it requires, where it is live.

    EXT is an extension tree, or a folder with such trees in it.
    """
    catalog = _catalog(extensions, plan, skills_from, mcp=mcp)
    if as_json or form == "json":
        emit_json("catalog", {"capabilities": [_capability_data(c) for c in catalog.capabilities]})
        return

    if not catalog.capabilities:
        tell("these extensions have no tool, rail, skill or MCP server")
    for capability in catalog.capabilities:
        levels = ", ".join(f"{tool} ({level.value})" for tool, level in capability.levels.items())
        say(f"{capability.id}{f'  {levels}' if levels else ''}")
        for other in capability.requires:
            say(f"  {'requires' if other.hard else 'uses'} {other.target}")
        if capability.artifacts:
            emit(f"  makes {', '.join(capability.artifacts)}")
        for runtime, exposure in capability.exposure.items():
            say(f"  {runtime}: {exposure.status.value}, {exposure.reason or f'through {exposure.via}'}")


def _capability_data(capability: Any) -> dict[str, Any]:
    return {
        "id": capability.id,
        "extension": capability.extension,
        "kind": capability.kind,
        "display_name": capability.display_name,
        "tool_names": list(capability.tool_names),
        "levels": {tool: level.value for tool, level in capability.levels.items()},
        "trust": capability.trust,
        "fragment": capability.fragment,
        "source": capability.source or None,
        "artifacts": list(capability.artifacts),
        "requires": [{"target": r.target, "hard": r.hard, "constraint": r.constraint} for r in capability.requires],
        "exposure": {
            runtime: {
                "status": e.status.value,
                "via": e.via or None,
                "reason": e.reason or None,
                "inferred": e.inferred,
            }
            for runtime, e in capability.exposure.items()
        },
    }


@runtimes.command(
    "matrix",
    cls=Examples,
    short_help="Show where each capability works.",
    examples=[
        "extforge runtimes matrix openjiuwen/extensions/harness",
        "extforge runtimes matrix --plan my.plan.yaml --mcp",
        "extforge runtimes matrix . --prove --html matrix.html",
    ],
)
@EXTENSIONS
@plan_options
@click.option("--provider", metavar="P", help=_PROVIDER)
@click.option(
    "--runtime", "only", multiple=True, metavar="R", help="Show this runtime only (extforge runtimes list). Repeatable."
)
@click.option("--probe", is_flag=True, help="Look whether what a runtime needs is installed here.")
@click.option("--prove", is_flag=True, help="Run it: the trees in openJiuwen, their MCP servers with a client.")
@click.option("--by-extension", is_flag=True, help="In the text: one line per extension, the worst of its components.")
@click.option("--html", type=OutFile(), help="Write it as a web page too.")
@output_options
def matrix_command(
    extensions: tuple[str, ...],
    plan: str | None,
    skills_from: tuple[str, ...],
    mcp: bool,
    provider: str | None,
    only: tuple[str, ...],
    probe: bool,
    prove: bool,
    by_extension: bool,
    html: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Show where each capability works, why not elsewhere, and where instead.

    EXT is an extension tree, or a folder with such trees in it.
    """
    import os
    import shutil

    from extforge_harness.runtimes.descriptors import read_provider
    from extforge_harness.runtimes.matrix import build_matrix

    as_json = as_json or form == "json"
    need(not as_json, "for text; the JSON has every component", "by_extension")
    if prove and plan:
        raise click.UsageError("--prove runs extension trees; a plan has nothing to run")
    with named_by("--provider"):
        where = read_provider(provider) if provider else None
    catalog = _catalog(extensions, plan, skills_from, mcp=mcp)
    for runtime in only:
        _known(catalog, runtime)
    proofs = None
    if prove:
        from extforge_harness.runtimes.proving import prove as run_proofs

        tell("running the extensions ...")
        proofs = run_proofs(catalog)
        for reason in proofs.skipped.values():
            tell(f"not tried: {reason}")
        print_findings(proofs.findings, err=True)
    matrix = build_matrix(catalog, runtimes=only, provider=where, probe=probe, proofs=proofs.shown if proofs else None)
    if html:
        from extforge_harness.runtimes.page import render_page

        emit(render_page(matrix).rstrip("\n"), html)
    if as_json:
        more = {
            "findings": proofs.findings if proofs else [],
            "not_tried": dict(proofs.skipped) if proofs else {},
        }
        emit_json("matrix", {**matrix.data(), **more})
    else:
        from extforge_harness.runtimes.showing import show_matrix

        width = shutil.get_terminal_size((120, 24)).columns
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        emit(
            show_matrix(
                matrix,
                width=width,
                colour=colour_wanted(sys.stdout),
                unicode=encoding.startswith("utf") and os.environ.get("TERM") != "linux",
                by_extension=by_extension,
            )
        )
    bad = [f for f in proofs.findings if f.severity.value == "error"] if proofs else []
    sys.exit(EXIT_BAD if bad else EXIT_MISSING if proofs and proofs.skipped else EXIT_GOOD)


@runtimes.command(
    "compile",
    cls=Examples,
    short_help="Show what a model would read on a runtime.",
    examples=["extforge runtimes compile . --runtime claudecode"],
)
@EXTENSIONS
@click.option("--runtime", required=True, metavar="R", help="The runtime to compile for (extforge runtimes list).")
@click.option(
    "--enable", multiple=True, metavar="ID", help="Only this capability (extforge runtimes catalog). Repeatable."
)
@output_options
def compile_command(
    extensions: tuple[str, ...], runtime: str, enable: tuple[str, ...], form: str, as_json: bool
) -> None:
    """Show what a model would read on a runtime, and what was decided about each capability.

    EXT is an extension tree, or a folder with such trees in it.
    """
    from dataclasses import asdict

    from extforge_harness.runtimes.adapters import AdapterInput, adapt

    as_json = as_json or form == "json"
    catalog = _catalog(extensions)
    output = adapt(_known(catalog, runtime), AdapterInput(catalog, frozenset(enable) if enable else None))
    compiled = output.compiled
    if as_json:
        data = {
            "runtime": output.runtime_id,
            "system_prompt": output.system_prompt,
            "tool_names": list(output.tool_names),
            "tools": [asdict(tool) for tool in compiled.tools],
            "provider_config": dict(output.provider_config),
            "context": dict(output.context),
            "manifest": dict(output.manifest),
            "plugins": list(output.plugins),
            "hints": dict(output.hints.values),
            "suppressed": list(output.suppressed),
            "budget": dict(compiled.budget),
            "decisions": [asdict(decision) for decision in compiled.decisions],
            "dropped": list(compiled.dropped),
            "deduplicated": list(compiled.deduplicated),
        }
        emit_json("compile", data)
        return
    for line in output.system_prompt.splitlines():
        say(line)
    tell("")
    for decision in compiled.decisions:
        say(f"{'+' if decision.included else '-'} {decision.capability}: {decision.reason}", err=True)
    tell(
        f"tools: {', '.join(output.tool_names) or 'none'}; tokens: {sum(compiled.budget[k] for k in ('artifacts', 'capabilities'))}"
    )


@runtimes.command(
    "scan",
    cls=Examples,
    short_help="List what other agent products of yours hold.",
    examples=["extforge runtimes scan", "extforge runtimes scan --runtime codex"],
)
@click.option(
    "--home", type=click.Path(exists=True, file_okay=False), help="Look into this folder instead of your home."
)
@click.option("--project", type=click.Path(exists=True, file_okay=False), help="Look into a project too.")
@click.option("--runtime", metavar="R", help="The runtime in use: what is its own can be used there.")
@output_options
def scan_command(home: str | None, project: str | None, runtime: str | None, form: str, as_json: bool) -> None:
    """List what other agent products of yours hold: names only, no file with credentials is opened."""
    from extforge_harness.runtimes.descriptors import load_registry
    from extforge_harness.runtimes.scanner import scan_external, scan_project

    if runtime is not None and runtime not in load_registry().ids:
        raise click.UsageError(f"unknown runtime {runtime!r}; known: {', '.join(load_registry().ids)}")
    scans = {"external": scan_external(home, runtime)}
    if project:
        scans["user"] = scan_project(project, runtime)
    if as_json or form == "json":
        from dataclasses import asdict

        emit_json("scan", {layer: asdict(scan) for layer, scan in scans.items()})
        return
    for scan in scans.values():
        for entry in scan.entries:
            emit(f"{entry.kind:12} {entry.display_name}  {'usable' if entry.executable else entry.perception_hint}")
        for line in scan.diagnostics:
            tell(line)
    if not any(scan.entries for scan in scans.values()):
        tell("nothing was found")


@runtimes.command(
    "new",
    cls=Examples,
    short_help="Scaffold the package of a new runtime.",
    examples=["extforge runtimes new hermes --differs protocol --out ."],
)
@click.argument("name")
@click.option(
    "--out", default=".", show_default=True, type=click.Path(file_okay=False), help="The folder to make it in."
)
@click.option(
    "--differs",
    type=click.Choice(("protocol", "endpoint", "unsure")),
    help="What differs from the runtimes that exist: the protocol, only the endpoint or model, or you are not sure.",
)
@output_options
def new_command(name: str, out: str, differs: str | None, form: str, as_json: bool) -> None:
    """Scaffold the package of the new runtime NAME: everything deferred, nothing examined yet.

    When only the endpoint or the model differs it is a provider, and nothing is scaffolded.
    """
    from extforge.onboarding import provider_text, scaffold_runtime

    if differs is None:
        if not sys.stdin.isatty():
            raise click.UsageError("say what differs from the runtimes that exist: --differs protocol|endpoint|unsure")
        choice = click.Choice(("protocol", "endpoint", "unsure"))
        differs = click.prompt("What differs from the runtimes that exist?", type=choice, err=True)
    if differs != "protocol":
        why = "when unsure, it is a provider first" if differs == "unsure" else "only the endpoint or model differs"
        if as_json or form == "json":
            emit_json("scaffold", {"created": [], "reason": why, "provider": provider_text(name)})
        else:
            tell(f"no runtime is needed: {why}. Describe a provider, and pass it with --provider:")
            emit(provider_text(name).rstrip("\n"))
        sys.exit(EXIT_BAD)
    folder, created = scaffold_runtime(name, out)
    if as_json or form == "json":
        emit_json("scaffold", {"folder": folder, "created": created})
    else:
        emit(f"created {len(created)} files in {folder}")
        emit(f"next: record the fixtures, then run: extforge runtimes gate {folder}")


@runtimes.command(
    "gate",
    cls=Examples,
    short_help="Run what a new runtime must pass.",
    examples=["extforge runtimes gate hermes_runtime"],
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@output_options
def gate_command(folder: str, form: str, as_json: bool) -> None:
    """Run the seven steps that a new runtime must pass, in order, until one fails.

    DIR is a package that `extforge runtimes new` made. The package's code and tests are run, without network and credentials. gate.json records the run.
    """
    from extforge_harness.runtimes.onboarding import run_gate

    as_json = as_json or form == "json"

    def show(step: Step) -> None:
        (tell if as_json else emit)(f"{step.number} {step.name:15} {step.outcome}")
        if not as_json:
            print_findings(step.findings)

    gate = run_gate(folder, show)
    if as_json:
        emit_json("gate", gate.data())
    else:
        for step in gate.steps:
            if step.outcome == "not reached":
                show(step)
        if gate.stopped_at is not None and gate.stopped_at.name == "smoke matrix":
            emit("a failed smoke is a gap in the fixtures, the catalog or a contract first: find it there, then fix it")
    sys.exit(EXIT_GOOD if gate.passed else EXIT_BAD)
