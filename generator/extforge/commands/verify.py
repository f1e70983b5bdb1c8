"""`extforge verify`."""

from __future__ import annotations

import sys
from typing import Any

import click

from extforge.commands.inputs import OutFile, named_by
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    Examples,
    colour_wanted,
    count,
    emit,
    tell,
)

__all__ = ["verify"]

_FORMAT = click.Choice(("text", "json", "sarif", "junit", "github", "markdown", "html"))


@click.command(
    cls=Examples,
    examples=[
        "extforge verify report.pptx --require 'slides>=3'",
        "extforge verify out/ --format json -o report.json",
        "extforge verify out/ --deep --format html -o report.html",
        "extforge verify transcript.jsonl --claims --root out/",
        "extforge verify openjiuwen/extensions/harness/quarterly_deck --host",
    ],
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
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
    "--require-key",
    "keys",
    multiple=True,
    metavar="POINTER",
    help="A JSON Pointer, such as /version, that JSON files must have. Repeatable.",
)
@click.option("--schema", metavar="FILE", help="A JSON Schema that JSON files must fit; - for standard input.")
@click.option(
    "--plan", metavar="PLAN", help="Hold the files to what the tools of this plan promise; - for standard input."
)
@click.option(
    "--claims", is_flag=True, help="In records of runs, also hold the assistant's answer to what it says it wrote."
)
@click.option("--deep", is_flag=True, help="Also look inside with libraries: relations, pictures, streams, pixels.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--fail-on", multiple=True, metavar="CODE", help="Treat this warning as an error. Repeatable.")
@click.option("--host", is_flag=True, help="Also load and run extension trees in the real openJiuwen. Runs their code.")
@click.option("--python", metavar="PY", help="A Python that has openJiuwen, for --host.")
@click.option("--timeout", type=click.FloatRange(0.1), help="Seconds one file, or the host run, may take.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="How many processes verify.")
@click.option("-v", "--verbose", is_flag=True, help="List what was passed over, and mere facts.")
@click.option("-o", "--output", type=OutFile(), help="Write the report to this file.")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option("--format", "form", type=_FORMAT, default="text", help="How to print the report.")
def verify(paths: tuple[str, ...], output: str | None, verbose: bool, form: str, as_json: bool, **options: Any) -> None:
    """Say whether each PATH is what it claims to be.

    PATH is a file, a folder, an extension tree, the result of a tool, or the record of a run.
    """
    from extforge.verifying import Options, verify_paths
    from extforge_verifiers.findings import Verdict
    from extforge_verifiers.reports import renderer

    if as_json and form not in ("text", "json"):
        raise click.UsageError(f"--json and --format {form} ask for two things")
    if output is not None and any(_is_inside(output, path) for path in paths):
        raise click.UsageError(f"-o {output} would overwrite what is verified")
    try:
        with named_by("--plan"):
            how = Options.of(**options)
        outcome = verify_paths(paths, how, show_progress if sys.stderr.isatty() else None)
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
        tell(f"passed over: {count(len(outcome.passed_over), 'path')}{'' if verbose else ' (-v lists them)'}")
        if verbose:
            for path, reason in outcome.passed_over.items():
                tell(f"  {path}: {reason}")
    if outcome.partial:
        tell("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(EXIT_GOOD if all(r.verdict is Verdict.PASS for r in outcome.reports) else EXIT_BAD)


def _is_inside(output: str, path: str) -> bool:
    """Say whether the report would replace a file that is there and verified."""
    import os

    from extforge_verifiers.paths import lies_in

    return os.path.exists(output) and lies_in(output, path)


def show_progress(done: int, total: int) -> None:
    """Keep a person at a terminal informed; nothing stays on the screen."""
    if total >= 20:
        end = f"\r{' ' * 40}\r" if done == total else ""
        click.echo(f"\rverified {done} of {total}{end}", nl=False, err=True)
