"""What the commands share: exit codes, help with examples, and the only places that write to the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from extforge_verifiers.findings import Finding

__all__ = [
    "EXIT_BAD", "EXIT_BUG", "EXIT_GOOD", "EXIT_INTERRUPTED", "EXIT_MISSING", "EXIT_USAGE", "Examples", "colour_wanted",
    "count", "emit", "emit_json", "exit_for", "output_options", "print_findings", "say", "tell",
]  # fmt: skip

# Exit codes are API; see docs/cli.md.
EXIT_GOOD, EXIT_BAD, EXIT_USAGE, EXIT_MISSING, EXIT_BUG, EXIT_INTERRUPTED = (0, 1, 2, 3, 70, 130)

_FORMAT = click.Choice(("text", "json"))
# What could not be opened, or has nothing of the kind in it, is mended before anything can be checked.
_UNOPENED = frozenset(("plan-unreadable", "gap-unreadable", "agent-unreadable", "agent-path-escape", "agent-target-exists",
    "agent-unwritable", "workflow-unreadable", "runtime-no-extension", "runtime-no-package"))  # fmt: skip


class Examples(click.Command):
    """A command whose help ends with examples, printed as they are."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless something is named by nothing: `--out "$FOLDER"` where FOLDER is not set."""
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if "" in (value if isinstance(value, tuple) else (value,)) and parameter.name != "text":
                folder = isinstance(parameter.type, click.Path) and parameter.type.dir_okay
                hint = "; for the current folder write ." if folder else ""
                raise click.BadParameter(f"it is empty{hint}", ctx, parameter)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:  # not wrapped: they are there to be copied
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def output_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--format` and `--json` to a command."""
    function = click.option("--json", "as_json", is_flag=True, help="Same as --format json.")(function)
    return click.option("--format", "form", type=_FORMAT, default="text", help="How to print the result.")(function)


def exit_for(findings: Sequence[Finding]) -> int:
    """Return what errors mean for the shell: something could not be opened, or what is in it is wrong."""
    if any(finding.code in _UNOPENED for finding in findings):
        return EXIT_USAGE
    return EXIT_BAD if findings else EXIT_GOOD


def colour_wanted(stream: Any) -> bool:
    """Say whether to colour what goes to a stream: NO_COLOR and FORCE_COLOR decide before the terminal does."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(stream.isatty())


def emit(text: str, path: str | None = None) -> None:
    """Write a result to standard output, or to a file."""
    if path is None:
        click.echo(text, color=colour_wanted(sys.stdout))
        return
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{text}\n")
    except OSError as exc:
        raise click.UsageError(f"cannot write {path}: {exc.strerror}") from exc


def emit_json(kind: str, data: dict[str, Any]) -> None:
    """Write a result as JSON, with the version of its form; findings and reports become what they are in JSON."""
    import json

    whole = {"schema_version": f"extforge.{kind}.v1", **data}
    text = json.dumps(whole, ensure_ascii=False, indent=2, default=_data)
    emit(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _data(value: object) -> dict[str, Any]:
    from extforge_verifiers.findings import Finding, Report
    from extforge_verifiers.reports.json import finding_data, report_data

    if isinstance(value, Finding):
        return finding_data(value)
    assert isinstance(value, Report), value
    return report_data(value)


def say(text: str, *, err: bool = False) -> None:
    """Write one line of a result, or of progress, whatever is in it: control characters are shown as escapes."""
    from extforge_verifiers.reports.text import printable

    click.echo(printable(text), err=err)


def tell(text: str) -> None:
    """Write progress and diagnostics to standard error."""
    click.echo(text, err=True, color=colour_wanted(sys.stderr))


def print_findings(findings: Sequence[Finding], *, err: bool = False) -> None:
    """Write findings as text."""
    from extforge_verifiers.reports.text import finding_lines

    stream = sys.stderr if err else sys.stdout
    for finding in findings:
        for line in finding_lines(finding, colour=colour_wanted(stream)):
            click.echo(line, err=err, color=colour_wanted(stream))


def count(number: int, word: str) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
