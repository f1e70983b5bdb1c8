"""`extforge explain`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples, emit_json, output_options

__all__ = ["explain"]


@click.command(cls=Examples, examples=["extforge explain pptx-no-slides"])
@click.argument("code")
@output_options
def explain(code: str, form: str, as_json: bool) -> None:
    """Print what the finding CODE means, and what to do about it."""
    from extforge.explaining import explain_code

    try:
        text = explain_code(code)
    except LookupError as exc:
        raise click.UsageError(str(exc.args[0])) from None
    if as_json or form == "json":
        emit_json("explanation", {"code": code, "text": text.partition("\n\n")[2]})
    else:
        click.echo(text)
