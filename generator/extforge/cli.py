"""The command line: parse, delegate, print.  No logic lives here, and nothing heavy is imported before its command runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from extforge import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from extforge.check import CheckedPlan
    from extforge_verifiers.findings import Finding, Report

__all__ = ["main", "run"]

# Exit codes are API; see docs/cli.md.
EXIT_GOOD, EXIT_BAD, EXIT_USAGE, EXIT_MISSING, EXIT_BUG, EXIT_INTERRUPTED = (0, 1, 2, 3, 70, 130)

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
FORMAT = click.Choice(("text", "json"))
REPORT_FORMAT = click.Choice(("text", "json", "sarif", "junit", "github", "markdown", "html"))


class Examples(click.Command):
    """A command whose help ends with examples, printed as they are."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write_text(line)


def output_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--format` and `--json` to a command."""
    function = click.option("--json", "as_json", is_flag=True, help="Same as --format json.")(function)
    return click.option("--format", "form", type=FORMAT, default="text", help="How to print the result.")(function)


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="extforge")
def main() -> None:
    """Turn a plan into openJiuwen extensions that really run, and prove which of their files are real."""


# --------------------------------------------------------------------------- printing


def colour_wanted(stream: Any) -> bool:
    """Say whether to colour what goes to a stream: NO_COLOR and FORCE_COLOR decide before the terminal does."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(stream.isatty())


def emit(text: str, path: str | None = None) -> None:
    """Write a result to standard output, or to a file."""
    if path is None:
        click.echo(text, color=colour_wanted(sys.stdout))
        return
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{text}\n")
    except OSError as exc:
        raise click.UsageError(f"cannot write {path}: {exc.strerror}") from exc


def emit_json(kind: str, data: dict[str, Any], path: str | None = None) -> None:
    """Write a result as JSON, with the version of its form."""
    import json

    text = json.dumps({"schema_version": f"extforge.{kind}.v1", **data}, ensure_ascii=False, indent=2)
    emit(text.encode("utf-8", "backslashreplace").decode("utf-8"), path)


def tell(text: str) -> None:
    """Write progress and diagnostics to standard error."""
    click.echo(text, err=True, color=colour_wanted(sys.stderr))


def print_findings(findings: Sequence[Finding], *, err: bool = False) -> None:
    """Write findings as text."""
    from extforge_verifiers.reports.text import finding_lines

    stream = sys.stderr if err else sys.stdout
    for finding in findings:
        for line in finding_lines(finding, colour=colour_wanted(stream)):
            click.echo(line, err=err, color=colour_wanted(stream))


# --------------------------------------------------------------------------- init


@main.command(cls=Examples, examples=["extforge init", "extforge init reports.plan.yaml"])
@click.argument("file", default="extforge.plan.yaml", type=click.Path(dir_okay=False))
@output_options
def init(file: str, form: str, as_json: bool) -> None:
    """Write a commented starter plan to FILE (default: extforge.plan.yaml)."""
    from extforge.starter import STARTER_PLAN

    try:
        with open(file, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(STARTER_PLAN)
    except FileExistsError:
        raise click.UsageError(f"{file} exists; it is not overwritten") from None
    except OSError as exc:
        raise click.UsageError(f"cannot write {file}: {exc.strerror}") from None
    if as_json or form == "json":
        emit_json("init", {"file": file})
    else:
        click.echo(f"wrote {file}")
        tell(f"next: extforge check {file} --explain, then extforge generate {file} --into DIR")


# --------------------------------------------------------------------------- check


def plan_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what `check` and `generate` share."""
    function = click.option(
        "--skills-from",
        multiple=True,
        type=click.Path(exists=True, file_okay=False),
        help="A folder of community skills that designs may name. Repeatable.",
    )(function)
    return click.option(
        "--max-designs",
        type=click.IntRange(1, 100_000),
        default=10,
        show_default=True,
        help="How many designs a plan may have.",
    )(function)


@main.command(
    cls=Examples,
    examples=["extforge check my.plan.yaml", "extforge check my.plan.yaml --explain", "some-model | extforge check -"],
)
@click.argument("plans", nargs=-1, required=True, metavar="PLAN...")
@plan_options
@click.option("--into", type=click.Path(file_okay=False), help="A target whose extensions the plan may build on.")
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
    if machine and len(plans) > 1:
        raise click.UsageError("--json speaks of one PLAN")
    codes = []
    for plan in plans:
        checked = read_plan(plan, into, max_designs, skills_from)
        bad = bool(checked.errors) or (strict and bool(checked.findings))
        if machine:
            print_plan_json(checked, bad=bad)
        else:
            print_plan(checked, explain=explain)
        codes.append(_plan_exit(checked, bad=bad))
    sys.exit(max(codes))


def print_plan(checked: CheckedPlan, *, explain: bool) -> None:
    """Write what is wrong with a plan, and one line on what is in it."""
    print_findings(checked.findings)
    if explain:
        print_choices(checked)
    warnings = _count(len(checked.findings) - len(checked.errors), "warning")
    if checked.errors:
        click.echo(f"{checked.label}: {_count(len(checked.errors), 'error')}, {warnings}")
    else:
        names = ", ".join(blueprint.name for blueprint in checked.blueprints)
        click.echo(f"{checked.label}: {_count(len(checked.blueprints), 'design')}, {warnings}: {names}")


def _plan_exit(checked: CheckedPlan, *, bad: bool) -> int:
    """A plan that cannot be read is a usage error; one that is wrong is a bad result."""
    unreadable = any(f.code == "plan-unreadable" for f in checked.findings)
    return EXIT_USAGE if unreadable else EXIT_BAD if bad else EXIT_GOOD


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
    from extforge_verifiers.reports.text import printable

    for blueprint in checked.blueprints:
        parts = [f"rail {r.class_name} ({r.does})" for r in blueprint.rails]
        parts += [f"tool {t.name} ({t.does}{f' {t.format}' if t.format else ''})" for t in blueprint.tools]
        parts += [f"skill {s.name}" for s in blueprint.skills]
        click.echo(f"{blueprint.name} ({blueprint.design.kind}): {', '.join(parts)}")
        for choice in blueprint.choices:
            click.echo(printable(f"  {choice.subject}: {choice.value}  <- {choice.reason}"))
        for path in blueprint.planned:
            click.echo(printable(f"  to add by hand: {path}"))


def print_plan_json(checked: CheckedPlan, *, bad: bool) -> None:
    """Write a checked plan as JSON."""
    from extforge_verifiers.reports.json import finding_data

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
    emit_json(
        "check",
        {
            "verdict": "fail" if bad else "pass",
            "source": checked.label,
            "package_name": checked.package_name,
            "designs": designs,
            "findings": [finding_data(finding) for finding in checked.findings],
        },
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


# --------------------------------------------------------------------------- generate


@main.command(
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
        sys.exit(_plan_exit(checked, bad=True))
    if not quiet and form == "text" and not as_json:
        print_findings(checked.findings, err=True)
    result = run_generate(checked, into, only=only, dry_run=dry_run)
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
        click.echo(f"{verb} {_count(len(changes.create), 'file')}, {len(changes.identical)} unchanged")
        for root in result.roots:
            click.echo(f"  {result.target / root}")
        for blueprint in result.blueprints:
            for path in blueprint.planned:
                click.echo(f"  to add by hand: {blueprint.root}/{path}")
        if not dry_run:
            click.echo(loading_lines(str(result.target), result.roots))
    sys.exit(EXIT_BAD if changes.foreign else EXIT_GOOD)


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


# --------------------------------------------------------------------------- verify


@main.command(
    cls=Examples,
    examples=[
        "extforge verify report.pptx --require 'slides>=3'",
        "extforge verify out/ --format json -o report.json",
        "extforge verify out/ --deep --format html -o report.html",
        "extforge verify transcript.jsonl --claims --root out/",
        "extforge verify openjiuwen/extensions/harness/quarterly_deck --host",
    ],
)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--as", "as_kind", metavar="FORMAT", help="Verify the one PATH as this: a format, extension, result or run."
)
@click.option(
    "--root", type=click.Path(file_okay=False), help="Where claimed files must lie (default: the result's folder)."
)
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="BOUND",
    help="A bound on a fact, such as 'slides>=3'. Repeatable.",
)
@click.option(
    "--require-key", "keys", multiple=True, metavar="POINTER", help="A JSON Pointer a JSON file must have. Repeatable."
)
@click.option("--plan", metavar="PLAN", help="Hold the files to what the tools of this plan promise.")
@click.option(
    "--claims", is_flag=True, help="In run records, also hold the assistant's answer to what it says it wrote."
)
@click.option("--deep", is_flag=True, help="Also look inside with libraries: relations, pictures, streams, pixels.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--host", is_flag=True, help="Also load and run extension trees in the real openJiuwen. Runs their code.")
@click.option("--python", metavar="PY", help="A Python that has openJiuwen, for --host.")
@click.option("--timeout", type=click.FloatRange(0.1), help="Seconds one file, or the host run, may take.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="How many processes verify.")
@click.option("-v", "--verbose", is_flag=True, help="List what was passed over, and mere facts.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option("--format", "form", type=REPORT_FORMAT, default="text", help="How to print the report.")
def verify(paths: tuple[str, ...], output: str | None, verbose: bool, form: str, as_json: bool, **options: Any) -> None:
    """Say whether each of PATHS is what it claims to be: files, folders, extension trees, tool results."""
    from extforge.verifying import Options, verify_paths
    from extforge_verifiers.findings import Verdict
    from extforge_verifiers.reports import renderer

    try:
        outcome = verify_paths(paths, Options.of(**options), show_progress if sys.stderr.isatty() else None)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from None
    if form == "text" and not as_json:
        from extforge_verifiers.reports.text import render

        colour = output is None and colour_wanted(sys.stdout)
        emit(render(outcome.reports, colour=colour, verbose=verbose, partial=outcome.partial), output)
    else:
        from extforge.explaining import describe

        render_as = renderer("json" if as_json else form)
        emit(render_as(outcome.reports, describe=describe, partial=outcome.partial), output)
    if outcome.passed_over:
        tell(f"passed over: {_count(len(outcome.passed_over), 'path')}{'' if verbose else ' (-v lists them)'}")
        if verbose:
            for path, reason in outcome.passed_over.items():
                tell(f"  {path}: {reason}")
    if outcome.partial:
        tell("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(EXIT_GOOD if all(r.verdict is Verdict.PASS for r in outcome.reports) else EXIT_BAD)


def show_progress(done: int, total: int) -> None:
    """Keep a person at a terminal informed; nothing stays on the screen."""
    if total >= 20:
        end = f"\r{' ' * 40}\r" if done == total else ""
        click.echo(f"\rverified {done} of {total}{end}", nl=False, err=True)


# --------------------------------------------------------------------------- demo


@main.command(cls=Examples, examples=["extforge demo", "extforge demo --host", "extforge demo --keep demo-out"])
@click.option("--host", is_flag=True, help="Also load and run the extensions in the real openJiuwen.")
@click.option("--keep", type=click.Path(file_okay=False), help="Work in this folder instead of a temporary one.")
@output_options
def demo(host: bool, keep: str | None, form: str, as_json: bool) -> None:
    """Run the whole chain on a bundled plan, offline: check, generate, run the tools, verify the files."""
    from extforge.demo import run_demo

    machine = as_json or form == "json"
    outcome = run_demo(folder=keep, host=host, tell=tell)
    if machine:
        from extforge_verifiers.reports.json import report_data

        emit_json(
            "demo",
            {
                "folder": outcome.folder,
                "verdict": outcome.verdict.value,
                "reports": [report_data(r) for r in outcome.reports],
            },
        )
    else:
        print_demo(outcome.reports, outcome.folder)
    sys.exit(EXIT_GOOD if outcome.verdict.value == "pass" else EXIT_BAD)


def print_demo(reports: Sequence[Report], folder: str) -> None:
    """Write what the demo made, and where it is."""
    from extforge_verifiers.reports.text import render

    click.echo(render(reports, colour=colour_wanted(sys.stdout)), color=colour_wanted(sys.stdout))
    click.echo(f"\neverything is in {folder}")


# --------------------------------------------------------------------------- schema, explain, doctor


@main.command(cls=Examples, examples=["extforge schema plan > plan.schema.json"])
@click.argument("kind", type=click.Choice(("plan", "acceptance", "report")))
def schema(kind: str) -> None:
    """Print the JSON Schema of a document."""
    import json

    from extforge.schemas import schema_of

    click.echo(json.dumps(schema_of(kind), indent=2, ensure_ascii=False))


@main.command(cls=Examples, examples=["extforge explain pptx-no-slides"])
@click.argument("code")
def explain(code: str) -> None:
    """Print what a finding code means, and what to do about it."""
    from extforge.explaining import explain_code

    try:
        click.echo(explain_code(code))
    except LookupError as exc:
        raise click.UsageError(str(exc.args[0])) from None


@main.command(cls=Examples, examples=["extforge doctor"])
@output_options
def doctor(form: str, as_json: bool) -> None:
    """Say what is installed here, and what it is needed for."""
    from extforge.doctor import examine

    rows = examine()
    if as_json or form == "json":
        emit_json(
            "doctor",
            {
                "parts": [
                    {"name": r.name, "version": r.version, "needed_for": r.needed_for, "install": r.install}
                    for r in rows
                ]
            },
        )
        return
    for row in rows:
        state = row.version or "missing"
        click.echo(f"{row.name:<22} {state:<18} {row.needed_for}")
        if not row.version:
            click.echo(f"{'':<22} install: {row.install}")


# --------------------------------------------------------------------------- entry point


def run() -> None:
    """Entry point.  Keeps "your file is bad" apart from "something is missing" and "we are broken"."""
    try:
        main(standalone_mode=False)
    except click.exceptions.Exit as exc:
        sys.exit(exc.exit_code)
    except (click.Abort, KeyboardInterrupt):
        tell("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as exc:
        exc.show()
        sys.exit(EXIT_USAGE)
    except BrokenPipeError:
        # Whoever read our output has enough of it.  Python would complain again while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_GOOD)
    except Exception as exc:  # noqa: BLE001 -- sorted by kind below
        sys.exit(_report(exc))


def _report(exc: Exception) -> int:
    """Print an exception for people, and return the exit code that it means."""
    from extforge.errors import ExtforgeError, PlanError
    from extforge_harness.errors import HarnessError, HostMissing
    from extforge_verifiers.errors import DocumentError

    if isinstance(exc, (PlanError, DocumentError)):
        print_findings(exc.findings, err=True)
        return EXIT_USAGE
    if isinstance(exc, HostMissing):
        tell(f"error: {exc}")
        return EXIT_MISSING
    if isinstance(exc, (ExtforgeError, HarnessError)):
        tell(f"error: {exc}")
        return EXIT_USAGE
    if os.environ.get("EXTFORGE_TRACEBACK"):
        import traceback

        traceback.print_exception(exc)
    tell(
        f"bug in extforge {__version__}: {type(exc).__name__}: {exc} (set EXTFORGE_TRACEBACK=1 for the traceback, and please report it)"
    )
    return EXIT_BUG


if __name__ == "__main__":
    run()
