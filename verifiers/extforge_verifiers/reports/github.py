"""Reports as GitHub Actions annotations: workflow commands that show findings beside the files of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Report, Severity, Verdict
from extforge_verifiers.reports.text import PARTIAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["render"]

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
# GitHub shows the first ten of a kind, so errors come first.
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def render(reports: Sequence[Report], *, partial: bool = False, **_: Any) -> str:
    """Return one workflow command per finding, and one for every subject that could not be judged."""
    lines = [
        _line(finding, report)
        for severity in _ORDER
        for report in reports
        for finding in report.findings
        if finding.severity is severity
    ]
    lines += list(_open_lines(reports))
    if partial:
        lines.append(_command("warning", {"title": "partial"}, PARTIAL))
    return "\n".join(lines)


def _line(finding: Finding, report: Report) -> str:
    where = finding.where
    properties = {"file": where.path or report.path, "title": finding.code}
    if where.line:
        properties["line"] = str(where.line)
        if where.column:
            properties["col"] = str(where.column)
    place = " ".join(part for part in (where.member, where.json_path) if part)
    message = f"{place}: {finding.message}" if place else finding.message
    if finding.fix:
        message += f"\nfix: {finding.fix}"
    return _command(_COMMANDS[finding.severity], properties, message)


def _open_lines(reports: Sequence[Report]) -> Iterator[str]:
    for report in reports:
        if report.verdict is Verdict.UNDETERMINED:
            words = report.open_question or "; ".join(report.skipped.values())
            properties = {"file": report.path, "title": "undetermined"}
            yield _command("warning", properties, words or "nothing could be checked")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    """Escape as actions/toolkit does: a message must not begin a command of its own."""
    given = ",".join(f"{k}={_escape(v, property=True)}" for k, v in properties.items())
    return f"::{name} {given}::{_escape(message)}"


def _escape(text: str, *, property: bool = False) -> str:  # noqa: A002 -- GitHub's word
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text
