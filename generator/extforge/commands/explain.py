"""`extforge explain`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples

__all__ = ["explain"]


@click.command(cls=Examples, examples=["extforge explain pptx-no-slides"])
@click.argument("code")
def explain(code: str) -> None:
    """Print what a finding code means, and what to do about it."""
    from extforge.explaining import explain_code

    try:
        click.echo(explain_code(code))
    except LookupError as exc:
        raise click.UsageError(str(exc.args[0])) from None
