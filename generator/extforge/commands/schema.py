"""`extforge schema`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples

__all__ = ["schema"]


@click.command(cls=Examples, examples=["extforge schema plan > plan.schema.json"])
@click.argument(
    "kind", type=click.Choice(("plan", "gaps", "agent", "workflow", "runtime", "provider", "acceptance", "report"))
)
def schema(kind: str) -> None:
    """Print the JSON Schema of a document."""
    import json

    from extforge.schemas import schema_of

    click.echo(json.dumps(schema_of(kind), indent=2, ensure_ascii=False))
