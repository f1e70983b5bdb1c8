"""Reports as Markdown, for a pull request, an issue or `$GITHUB_STEP_SUMMARY`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Report, Severity, Verdict
from extforge_verifiers.reports.text import PARTIAL, printable, shown_facts, summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["render"]

_MARKS = {
    Verdict.PASS: "✅ pass",
    Verdict.FAIL: "❌ fail",
    Verdict.UNDETERMINED: "❔ undetermined",
}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def render(reports: Sequence[Report], *, partial: bool = False, **_: Any) -> str:
    """Return a table of the subjects, and a list of findings under each that has some."""
    lines = ["# extforge verify", "", summary(reports) or "nothing was verified", ""]
    if partial:
        lines += [f"**{PARTIAL}**", ""]
    lines += ["| verdict | subject | kind | facts |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {_MARKS[r.verdict]} | {_code(r.path)} | {_text(r.kind)} | {_text(shown_facts(r))} |"
        for r in reports
    ]
    for report in reports:
        found = list(_findings(report))
        if found:
            lines += ["", f"## {_code(report.path)}", "", *found]
    return "\n".join(lines)


def _findings(report: Report) -> Iterator[str]:
    for claim in report.facts.get("claims", []):
        mark = _MARKS[Verdict(claim["verdict"])]
        yield f"- {mark}: {_code(claim['path'])}, claimed by {_text(claim['by'])} in {_code(claim['where'])}"
    for finding in report.findings:
        yield _finding(finding)
    if report.verdict is Verdict.UNDETERMINED:
        words = report.open_question or "; ".join(report.skipped.values())
        yield f"- **undetermined**: {_text(words or 'nothing could be checked')}"


def _finding(finding: Finding) -> str:
    severity = finding.severity.value
    word = f"**{severity}**" if finding.severity is Severity.ERROR else severity
    place = f"{_code(str(finding.where))}: " if str(finding.where) else ""
    fix = f" *Fix:* {_text(finding.fix)}" if finding.fix else ""
    return f"- {word} {place}{_text(finding.message)} ({_code(finding.code)}){fix}"


def _text(text: str) -> str:
    """Escape a text: nothing in a file name or message becomes markup, a link or a mention."""
    # A zero-width space keeps a code host from notifying whoever has that name.
    return _SPECIAL.sub(r"\\\1", printable(text)).replace("@", "@\u200b")


def _code(text: str) -> str:
    """Return a code span that holds any text (CommonMark §6.1), in a table too."""
    shown = printable(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
