"""Every exception this package raises on purpose.

* VerifierError
  x DocumentError  -- a YAML or JSON document cannot be read; `.findings` say where and why

`Unusable` is what it shares with the errors of the other packages that have findings.

A fake artifact is not an error: `verify_artifact()` reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from extforge_verifiers.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Where

__all__ = ["DocumentError", "Unusable", "VerifierError"]


class VerifierError(Exception):
    """Base class; catch this to catch them all."""


class Unusable(Exception):
    """Something cannot be used: every problem found in it is in `findings`."""

    def __init__(self, source: str, findings: Sequence[Finding]) -> None:
        super().__init__(source, findings)  # the same as __init__ got, so it pickles
        self.source = source
        self.findings = tuple(findings)

    @classmethod
    def because(
        cls, code: str, message: str, where: Where, fix: str | None = None
    ) -> Self:
        """Return the error for one problem in the document at `where`."""
        return cls(where.path or "", [Finding(code, message, where=where, fix=fix)])

    def __str__(self) -> str:
        return "\n".join(
            f"{str(f.where) or self.source}: {f.message} [{f.code}]"
            for f in self.findings
        )


class DocumentError(Unusable, VerifierError):
    """A document cannot be read."""
