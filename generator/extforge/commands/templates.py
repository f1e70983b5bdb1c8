"""`extforge templates`: for the people who maintain skeletons."""

from __future__ import annotations

import sys

import click

from extforge.commands.inputs import named_by
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    Examples,
    colour_wanted,
    count,
    emit,
    emit_json,
    output_options,
)

__all__ = ["templates"]


@click.group()
def templates() -> None:
    """List, check and render templates: the skeletons that plans are made of."""


@templates.command("list", cls=Examples, examples=["extforge templates list"])
@output_options
def list_templates(form: str, as_json: bool) -> None:
    """Say which templates come with extforge, and where they are."""
    from extforge.templates import packaged_templates

    found = packaged_templates()
    if as_json or form == "json":
        rows = [
            {"name": t.name, "about": t.about, "path": str(t.folder), "examples": [p.name for p in t.examples]}
            for t in found
        ]
        emit_json("templates", {"templates": rows})
        return
    for template in found:
        click.echo(f"{template.name:<10} {template.about} ({count(len(template.examples), 'example')})")
        click.echo(f"           {template.folder}")


@templates.command(
    "check",
    cls=Examples,
    short_help="Say what is wrong with a template.",
    examples=["extforge templates check extension", "extforge templates check ./mine --host"],
)
@click.argument("template")
@click.option("--host", is_flag=True, help="Also load and run what the examples render in the real openJiuwen.")
@click.option("-v", "--verbose", is_flag=True, help="Also list what was checked.")
@output_options
def check_one(template: str, host: bool, verbose: bool, form: str, as_json: bool) -> None:
    """Render every example of a template, and a hostile one, and say what is wrong with it.

    TEMPLATE is a folder with copier.yml, or the name of a packaged one (extforge templates list).
    """
    from extforge.templates import check_template, find_template
    from extforge_verifiers.findings import Verdict
    from extforge_verifiers.reports.json import render as render_json
    from extforge_verifiers.reports.text import render as render_text

    reports = check_template(find_template(template), host=host)
    if as_json or form == "json":
        emit(render_json(reports))
    else:
        emit(render_text(reports, colour=colour_wanted(sys.stdout), verbose=verbose))
    sys.exit(EXIT_GOOD if all(report.verdict is Verdict.PASS for report in reports) else EXIT_BAD)


@templates.command(
    "render", cls=Examples, examples=["extforge templates render ./mine --example my.plan.yaml --into /tmp/look"]
)
@click.argument("template")
@click.option(
    "--example",
    metavar="PLAN",
    help="A plan, the name of one in its examples/ (default: the first), or - for standard input.",
)
@click.option(
    "--into", required=True, type=click.Path(file_okay=False), help="The folder to render into: new or empty."
)
@output_options
def render_one(template: str, example: str | None, into: str, form: str, as_json: bool) -> None:
    """Render one plan with a template, to look at.

    TEMPLATE is a folder with copier.yml, or the name of a packaged one (extforge templates list).
    """
    from pathlib import Path

    from extforge.staging import staging
    from extforge.templates import find_template, render_example

    found = find_template(template)
    target = Path(into)
    if target.exists() and any(target.iterdir()):
        raise click.UsageError(f"{into} is not empty; `extforge generate --template` updates what is there")
    inside = found.folder / "examples" / str(example)
    plan = inside if example and inside.is_file() else Path(example) if example else next(iter(found.examples), None)
    if plan is None:
        raise click.UsageError(f"{template} has no examples; name a plan with --example")
    with staging() as staged, named_by("--example"):
        render_example(found, plan, staged)
        for path, data in staged.read_all().items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
        names = sorted(staged.files)
    if as_json or form == "json":
        emit_json("rendered", {"target": into, "files": names})
        return
    for name in names:
        click.echo(name)
