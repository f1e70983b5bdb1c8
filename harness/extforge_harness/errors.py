"""Every exception this package raises on purpose.

* HarnessError
  x HostMissing      -- openJiuwen, or a package that a tree requires, is not installed where it should run
  x HostFailed       -- the host process gave no answer: it crashed, or took too long
  x CatalogError     -- extensions do not make a catalog together; `.findings` say why
  x CompileError     -- a context cannot be compiled for a runtime
  x BundleError      -- a bundle would mislead whoever reads it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Finding

__all__ = ["BundleError", "CatalogError", "CompileError", "HarnessError", "HostFailed", "HostMissing"]


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


class CatalogError(HarnessError):
    """Extensions do not make a catalog together; every reason is in `findings`."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(findings)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "; ".join(finding.message for finding in self.findings)


class CompileError(HarnessError):
    """A context cannot be compiled: an unknown name, a contract that does not hold, or no room."""


class BundleError(HarnessError):
    """A bundle would mislead: an entry without a hint, twice the same id, a relation to nothing."""
