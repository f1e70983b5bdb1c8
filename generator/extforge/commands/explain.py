"""`extforge explain`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples, emit_json, output_options

__all__ = ["explain"]


@click.command(cls=Examples, examples=["extforge explain pptx-no-slides"])
@click.argument("code")
@output_options
def explain(code: str, form: str, as_json: bool) -> None:
    """Print what the finding CODE means, what to do about it, and what yields it and what does not."""
    from dataclasses import asdict

    from extforge.explaining import explain_code, find_section

    try:
        chapter, section = find_section(code)
    except LookupError as exc:
        raise click.UsageError(str(exc.args[0])) from None
    if as_json or form == "json":
        value = {"code": code, "severity": section.severity, "meaning": section.meaning, "text": section.text}
        examples = [asdict(example) for example in section.examples]
        emit_json("explanation", {**value, "examples": examples, "about_examples": chapter.reading})
    else:
        click.echo(explain_code(code))
