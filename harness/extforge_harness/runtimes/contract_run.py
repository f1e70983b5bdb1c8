"""A pytest plugin for the contract tests of a runtime: no network, and a record of every outcome.

Used by the onboarding gate with `-p extforge_harness.runtimes.contract_run`; the record goes to the file that
EXTFORGE_CONTRACT_RUN names.
"""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import pytest

__all__ = ["RECORD"]

RECORD = "EXTFORGE_CONTRACT_RUN"
_outcomes: list[dict[str, str]] = []


def pytest_configure(config: pytest.Config) -> None:
    """Take the network away before any test is imported."""
    del config

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError("contract tests run without a network")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember how a test ended; a failure of its fixtures counts as its own."""
    if report.when == "call" or report.outcome != "passed":
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        _outcomes.append({"file": report.fspath, "test": report.nodeid, "outcome": outcome})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported has failed, one that skips itself is skipped."""
    if report.outcome != "passed":
        _outcomes.append({"file": report.fspath, "test": report.nodeid, "outcome": report.outcome})


def pytest_sessionfinish() -> None:
    """Write the record."""
    if path := os.environ.get(RECORD):
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(_outcomes, stream)
