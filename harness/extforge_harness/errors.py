"""Every exception this package raises on purpose.

* HarnessError
  x HostMissing      -- openJiuwen, or a package that a tree requires, is not installed where it should run
  x HostFailed       -- the host process gave no answer: it crashed, or took too long
  x SetupFailed      -- what a tool needs around it to be tried could not be made
  x WorkFailed       -- (work.py) a work module could not be loaded, or raised
"""

from __future__ import annotations

__all__ = ["HarnessError", "HostFailed", "HostMissing", "SetupFailed"]


class HarnessError(Exception):
    """Base class; catch this to catch them all."""


class HostMissing(HarnessError):
    """Something is not installed; `fix` is the command that installs it."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.message, self.fix = message, fix

    def __str__(self) -> str:
        return f"{self.message}; install it with: {self.fix}"


class HostFailed(HarnessError):
    """The host process gave no answer."""


class SetupFailed(HarnessError):
    """What a tool needs around it to be tried could not be made."""
