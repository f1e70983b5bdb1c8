"""`extforge demo`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from extforge.commands.printing import EXIT_BAD, EXIT_GOOD, Examples, colour_wanted, emit_json, output_options, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Report

__all__ = ["demo"]


@click.command(cls=Examples, examples=["extforge demo", "extforge demo --host", "extforge demo --keep demo-out"])
@click.option("--host", is_flag=True, help="Also load and run the extensions in the real openJiuwen.")
@click.option(
    "--keep", type=click.Path(file_okay=False), help="Work in this new or empty folder instead of a temporary one."
)
@output_options
def demo(host: bool, keep: str | None, form: str, as_json: bool) -> None:
    """Run the whole chain on a bundled plan, offline: check, generate, run the tools, verify the files."""
    from extforge.demo import run_demo

    machine = as_json or form == "json"
    outcome = run_demo(folder=keep, host=host, tell=tell)
    if machine:
        emit_json(
            "demo",
            {
                "folder": outcome.folder,
                "verdict": outcome.verdict.value,
                "reports": outcome.reports,
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
