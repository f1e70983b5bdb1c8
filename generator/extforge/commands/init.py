"""`extforge init`."""

from __future__ import annotations

import click

from extforge.commands.printing import Examples, emit_json, output_options, tell

__all__ = ["init"]


@click.command(cls=Examples, examples=["extforge init", "extforge init reports.plan.yaml"])
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
