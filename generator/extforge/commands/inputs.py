"""What the commands share about what they are given: options that name documents, and options that need each other."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from extforge.commands.printing import EXIT_USAGE, print_findings, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from extforge_verifiers.findings import Finding

__all__ = ["InvalidOption", "OutFile", "Tree", "named_by", "need"]


class InvalidOption(click.ClickException):
    """What an option names cannot be used: every reason is in `findings`."""

    exit_code = EXIT_USAGE

    def __init__(self, option: str, findings: Sequence[Finding]) -> None:
        super().__init__(f"{option}: {'; '.join(finding.message for finding in findings)}")
        self.option, self.findings = option, findings

    def show(self, file: Any = None) -> None:
        """Print the findings, and which option they are about."""
        del file
        print_findings(self.findings, err=True)
        tell(f"error: what {self.option} names cannot be used")


@contextlib.contextmanager
def named_by(option: str) -> Iterator[None]:
    """Read what an option names: whatever is wrong with it is wrong usage, and says nothing of what is checked.

    Raises:
        InvalidOption: instead of every exception that has findings.
    """
    try:
        yield
    except Exception as exc:
        findings = getattr(exc, "findings", None)
        if findings is None:
            raise
        raise InvalidOption(option, findings) from exc


def need(condition: object, words: str, *names: str) -> None:
    """Refuse options that would be passed over in silence.

    Args:
        condition: without it they mean nothing.
        words: what they are for, such as "for --llm".
        names: of the parameters, as the command's function gets them.

    Raises:
        click.UsageError: naming those that were given on the command line.
    """
    if condition:
        return
    context = click.get_current_context()
    given = [
        parameter.opts[0] if parameter.param_type_name == "option" else parameter.human_readable_name
        for parameter in context.command.params
        if parameter.name in names
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} {words}")


class OutFile(click.Path):
    """A file that can be written: said before a long run, and not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; refuse one whose folder is not there, or may not be written."""
        path = str(super().convert(value, param, ctx))
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            self.fail(f"cannot write {path}: there is no folder {folder}", param, ctx)
        if not os.path.exists(path) and not os.access(folder, os.W_OK):
            self.fail(f"cannot write {path}: the folder {folder} may not be changed", param, ctx)
        return path


class Tree(click.Path):
    """The folder of an extension tree."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the folder; refuse one that is no tree before anything is started."""
        from extforge_verifiers.subjects import is_extension

        path = str(super().convert(value, param, ctx))
        if not is_extension(path):
            self.fail(
                f"{path} is no extension: it has neither harness_config.yaml nor a manifest.json of one", param, ctx
            )
        return path
