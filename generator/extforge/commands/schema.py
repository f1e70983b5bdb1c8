"""`extforge schema`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples, output_options

__all__ = ["schema"]

_KINDS = ("plan", "gaps", "agent", "workflow", "runtime", "provider", "acceptance", "report")


@click.command(cls=Examples, examples=["extforge schema plan > plan.schema.json"])
@click.argument("kind", metavar="KIND", type=click.Choice(_KINDS))
@output_options
def schema(kind: str, form: str, as_json: bool) -> None:
    """Print the JSON Schema of a document, which is JSON however it is asked for.

    KIND is plan, gaps, agent, workflow, runtime, provider, acceptance or report.
    """
    del form, as_json
    import json

    from extforge.schemas import schema_of

    click.echo(json.dumps(schema_of(kind), indent=2, ensure_ascii=False))
