"""pytest plugin: assert that a test's file is real, and verify a folder after the tests.

    def test_report(artifact, tmp_path):
        make_report(tmp_path / "report.pptx")
        artifact(tmp_path / "report.pptx").is_real("pptx", min_slides=3)

`pytest --verify-artifacts DIR` verifies everything below DIR once the tests are done, and fails the run when something
there is not what it claims to be.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from extforge_verifiers.checking import Requirement
    from extforge_verifiers.findings import Report

__all__ = ["Artifact", "artifact"]

_REPORTS = pytest.StashKey["list[Report]"]()
_BOUNDS = {"min": ">=", "max": "<="}


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file under test."""

    path: str | os.PathLike[str]

    def is_real(
        self,
        format: str | None = None,  # noqa: A002 -- the word that users know
        *,
        deep: bool = False,
        keys: Iterable[str] = (),
        strict: bool = False,
        **bounds: int,
    ) -> Report:
        """Return the report of a file that is what it claims to be; fail the test when it is not.

        Args:
            format: what it must be; by default its suffix decides.
            deep: also look inside with libraries.
            keys: JSON Pointers that a JSON file must have.
            strict: warnings fail too.
            bounds: `min_slides=3`, `max_pages=10` or `records=5`: bounds on the file's facts.
        """
        from extforge_verifiers.findings import Severity, Verdict  # noqa: PLC0415 -- pytest starts without us
        from extforge_verifiers.reports.text import render  # noqa: PLC0415
        from extforge_verifiers.verify import verify_artifact  # noqa: PLC0415

        __tracebackhide__ = True
        requirements = [_bound(name, value) for name, value in bounds.items()]
        report = verify_artifact(
            self.path, format, requirements=requirements, keys=keys, deep=deep
        )
        warned = any(f.severity is Severity.WARNING for f in report.findings)
        if report.verdict is not Verdict.PASS or (strict and warned):
            pytest.fail(
                f"{os.fspath(self.path)} is not real\n{render([report])}", pytrace=False
            )
        return report


def _bound(name: str, value: int) -> Requirement:
    from extforge_verifiers.checking import Requirement  # noqa: PLC0415

    prefix, _, fact = name.partition("_")
    if prefix in _BOUNDS and fact:
        return Requirement(fact, _BOUNDS[prefix], value)
    return Requirement(name, "==", value)


@pytest.fixture
def artifact() -> Callable[[str | os.PathLike[str]], Artifact]:
    """Wrap a path: `artifact(path).is_real("pptx", min_slides=3)`."""
    return Artifact


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--verify-artifacts`."""
    parser.getgroup("extforge").addoption(
        "--verify-artifacts",
        action="append",
        default=[],
        metavar="DIR",
        help="after the tests, verify every artifact below this folder (repeatable)",
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Verify the folders; with pytest-xdist only where the tests are collected, and so once."""
    folders = session.config.getoption("--verify-artifacts")
    if not folders or hasattr(session.config, "workerinput"):
        return
    from extforge_verifiers.findings import Verdict  # noqa: PLC0415

    reports = [report for folder in folders for report in _verify(folder)]
    session.config.stash[_REPORTS] = reports
    # No artifact at all is no success either: a run that made nothing must not look like a good one.
    if not reports or any(report.verdict is not Verdict.PASS for report in reports):
        session.exitstatus = max(
            int(session.exitstatus), int(pytest.ExitCode.TESTS_FAILED)
        )


def _verify(folder: str) -> Iterator[Report]:
    from extforge_verifiers.extensions import verify_extension  # noqa: PLC0415
    from extforge_verifiers.runs import verify_run  # noqa: PLC0415
    from extforge_verifiers.subjects import find_subjects  # noqa: PLC0415
    from extforge_verifiers.verify import verify_artifact  # noqa: PLC0415

    for subject in find_subjects(folder).subjects:
        match subject.kind:
            case "extension":
                yield verify_extension(subject.path)
            case "run" | "result":
                yield verify_run(subject.path)
            case _:
                yield verify_artifact(subject.path)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show what was verified."""
    reports = config.stash.get(_REPORTS, None)
    if reports is None:
        return
    from extforge_verifiers.reports.text import render  # noqa: PLC0415

    terminalreporter.section("verified artifacts")
    terminalreporter.write_line(render(reports) if reports else "there is no artifact")
