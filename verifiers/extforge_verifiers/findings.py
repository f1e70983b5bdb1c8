"""What a check found: pure data, no I/O, no formatting.

A finding is an answer, not an error: whoever cannot do their job raises, whoever looked and found something
wrong returns a `Finding`.  Plain dataclasses, because this module is imported by every command and is copied
into generated extensions, where only the standard library may be assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

__all__ = [
    "Finding",
    "Report",
    "Severity",
    "Undetermined",
    "Verdict",
    "Where",
    "invalid",
    "warning",
]


class Undetermined(Exception):
    """A check can honestly say neither yes nor no: the file needs a password, say."""


class Severity(StrEnum):
    """How much a finding weighs: only an error makes a verdict `fail`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Verdict(StrEnum):
    """What follows from the findings."""

    PASS = "pass"
    FAIL = "fail"
    UNDETERMINED = "undetermined"  # nothing ran: "no findings" is not "no problems"


@dataclass(frozen=True, slots=True)
class Where:
    """The place a finding speaks of; every part is optional."""

    path: str | None = None
    json_path: str | None = None  # "$.designs[0].kind"
    line: int | None = None  # 1-based, as editors count
    column: int | None = None  # 1-based, in characters
    member: str | None = None  # a part inside an archive
    offset: int | None = None  # in bytes, from the start of the file

    def __str__(self) -> str:
        position = self.path or ""
        if self.line is not None:
            position += f":{self.line}"
            if self.column is not None:
                position += f":{self.column}"
        if self.member is not None:
            position += f"!{self.member}" if position else self.member
        if self.offset is not None:
            position += f"@{self.offset}"
        return ": ".join(
            part for part in (position.lstrip(":"), self.json_path) if part
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about one subject, with where it is and what to do about it."""

    code: str  # a stable kebab-case slug; `docs/codes.md` has a section for each
    message: str  # one line for people; may be reworded at any time
    severity: Severity = Severity.ERROR
    where: Where = field(default_factory=Where)
    fix: str | None = None
    failure_id: str | None = None  # openJiuwen's attribution id, where one applies

    def at(self, **place: Any) -> Finding:
        """Return the same finding with some parts of its place filled in."""
        return replace(self, where=replace(self.where, **place))


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one verification did.  The verdict is computed, never stored."""

    path: str
    kind: (
        str  # "pptx", "extension", "result", ...; "unknown" when it was not recognised
    )
    checked: tuple[str, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)  # check -> why it did not run
    facts: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    open_question: str = ""  # why there can be no pass, although nothing was found

    @property
    def verdict(self) -> Verdict:
        """`fail` with an error, `pass` without one, `undetermined` when that cannot be said."""
        if any(finding.severity is Severity.ERROR for finding in self.findings):
            return Verdict.FAIL
        known = bool(self.checked) and not self.open_question
        return Verdict.PASS if known else Verdict.UNDETERMINED

    def with_findings(self, *more: Finding) -> Report:
        """Return this report with further findings after its own."""
        return replace(self, findings=(*self.findings, *more))


def invalid(code: str, message: str, **place: Any) -> Finding:
    """Return an error that says: these bytes are not a sound file of their format."""
    return Finding(
        code, message, where=Where(**place), failure_id="artifact_format_invalid"
    )


def warning(code: str, message: str, **place: Any) -> Finding:
    """Return a warning: the file opens, but a person should look."""
    return Finding(code, message, Severity.WARNING, Where(**place))
