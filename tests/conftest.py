"""Fixtures, and the skipping of what cannot run here."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from support import SHARED, Plans

from extforge_harness.host.process import host_available

if TYPE_CHECKING:
    from pathlib import Path


# A shell that starts us in the background has us ignore Ctrl-C, and what we start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need openJiuwen where it is not installed, with the reason."""
    if host_available():
        return
    skip = pytest.mark.skip(reason='openJiuwen is not installed: pip install "extforge[host]"')
    for item in items:
        if item.get_closest_marker("host"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared reference material, which is not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the shared reference material is not beside the checkout")
    return SHARED


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    return Plans(tmp_path)
