"""Verify functions that end badly on some files; at the top of a module, so that another process can import them."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from extforge_verifiers import Report, verify_artifact


def kills(path: str) -> Report:
    if "killer" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    return verify_artifact(path)


def kills_once(path: str) -> Report:
    """Die at the first sight of it, as when somebody else kills the process."""
    if "killer" in path and not Path(f"{path}.seen").exists():
        Path(f"{path}.seen").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return verify_artifact(path)


def hangs(path: str) -> Report:
    """Never come back from C, and hold Python's lock meanwhile."""
    if "killer" in path:
        re.match(r"(a+)+$", "a" * 60 + "b")
    return verify_artifact(path)
