"""`extforge doctor`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples, emit_json, output_options

__all__ = ["doctor"]


@click.command(cls=Examples, examples=["extforge doctor"])
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
