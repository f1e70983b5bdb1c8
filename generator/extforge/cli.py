"""The command line: find the command, run it, and turn what went wrong into a message and an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from extforge import __version__
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_BUG,
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_USAGE,
    exit_for,
    print_findings,
    tell,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Finding

__all__ = ["main", "run"]

# Name -> what it does, in the words of its own help: the list is shown without importing any of them.
COMMANDS = {
    "demo": "Run the whole chain on a bundled plan, offline.",
    "init": "Write a commented starter plan.",
    "design": "Turn a list of capability gaps into a plan.",
    "check": "Find every problem of a plan.",
    "generate": "Make the extensions of a plan, or bring them up to date.",
    "verify": "Say whether files, extensions and runs are what they claim.",
    "agents": "Check agent definitions, make packages of them, run them.",
    "workflows": "List, check, show and run the workflows of skills.",
    "runtimes": "Say where extensions work, and what a new runtime must prove.",
    "templates": "List, check and render the skeletons of what is made.",
    "schema": "Print the JSON Schema of a document.",
    "explain": "Print what a finding code means.",
    "doctor": "Say what is installed here.",
}


EXIT_CODES = {
    "0": "good",
    "1": "checked, and found bad",
    "2": "wrong usage, or an input that cannot be opened",
    "3": "something needed is missing here: a package, a model's endpoint",
}


class Commands(click.Group):
    """A group whose commands are imported when they are run: one command needs a third of what all need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {cmd_name!r}{hint}", ctx)
        found: click.Command = getattr(import_module(f"extforge.commands.{cmd_name}"), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="extforge")
def main() -> None:
    """Turn a plan into openJiuwen extensions that really run, and prove which of their files are real."""


def run() -> None:
    """Entry point.  Keeps "your file is bad" apart from "something is missing" and "we are broken"."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 -- for as long as we run
    try:
        main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exc:
        sys.exit(exc.exit_code)
    except (click.Abort, KeyboardInterrupt):
        tell("interrupted")
        _report_json("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as exc:
        exc.show()
        _report_json(exc.format_message(), getattr(exc, "findings", ()))
        sys.exit(EXIT_USAGE)
    except SystemExit as exc:
        # Click answers a broken pipe with 1, which is our word for something bad that was found.
        sys.exit(EXIT_GOOD if type(sys.stdout).__name__.endswith("PacifyFlushWrapper") else exc.code)
    except BrokenPipeError:
        # Whoever read our output has enough of it.  Python would complain again while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_GOOD)
    except Exception as exc:  # noqa: BLE001 -- sorted by kind below
        sys.exit(_report(exc))


def _report_json(message: str, findings: Sequence[Finding] = ()) -> None:
    """Say what went wrong on standard output too, when JSON was asked for: who reads it should not find nothing."""
    import contextlib
    import itertools

    words = sys.argv[1:]
    if not {"--json", "--format=json"} & set(words) and ("--format", "json") not in itertools.pairwise(words):
        return
    from extforge.commands.printing import emit_json

    with contextlib.suppress(OSError):
        emit_json("error", {"error": message, "findings": findings})


def _report(exc: Exception) -> int:
    """Print an exception for people, and return the exit code that it means."""
    from extforge.errors import ExtforgeError
    from extforge_harness.errors import ChatFailed, HarnessError, HostFailed, Missing
    from extforge_verifiers.errors import VerifierError

    findings = getattr(exc, "findings", None)
    _report_json(str(exc), findings or ())
    if isinstance(exc, (ExtforgeError, HarnessError, VerifierError)):
        if findings is None:
            tell(f"error: {exc}")
        else:
            print_findings(findings, err=True)
        for note in getattr(exc, "__notes__", ()):
            tell(note)
        if isinstance(exc, Missing):
            return EXIT_MISSING
        if findings is not None:
            return exit_for(findings)
        return EXIT_BAD if isinstance(exc, (ChatFailed, HostFailed)) else EXIT_USAGE
    if isinstance(exc, OSError) and exc.strerror:  # a folder that may not be read, a disk that is full
        tell(f"error: {f'{exc.filename}: ' if exc.filename else ''}{exc.strerror}")
        return EXIT_USAGE
    if os.environ.get("EXTFORGE_TRACEBACK"):
        import traceback

        traceback.print_exception(exc)
    tell(
        f"bug in extforge {__version__}: {type(exc).__name__}: {exc} (set EXTFORGE_TRACEBACK=1 for the traceback, and please report it)"
    )
    return EXIT_BUG


if __name__ == "__main__":
    run()
