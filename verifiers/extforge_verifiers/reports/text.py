"""Reports as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Report, Severity, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PARTIAL", "finding_lines", "printable", "render", "shown_facts", "summary"]

_COLOURS = {
    Verdict.PASS: "32",
    Verdict.FAIL: "31",
    Verdict.UNDETERMINED: "33",
    Severity.ERROR: "31",
    Severity.WARNING: "33",
    Severity.INFO: "36",
}
PARTIAL = "interrupted: not everything was verified"
_HIDDEN_FACTS = frozenset(
    ("size_bytes", "name", "files", "refs", "python", "file", "claims")
)


def render(
    reports: Sequence[Report],
    *,
    colour: bool = False,
    verbose: bool = False,
    partial: bool = False,
    **_: Any,
) -> str:
    """Return one block per report: verdict, path, facts, then the findings; mere facts only when verbose."""
    lines = [
        line
        for report in reports
        for line in _report_lines(report, colour=colour, verbose=verbose)
    ]
    if partial:
        lines += ["", PARTIAL]
    if len(reports) > 1:
        lines += ["", summary(reports)]
    return "\n".join(lines)


def summary(reports: Sequence[Report]) -> str:
    """Return how many passed, failed, and could not be judged."""
    counts = {
        verdict: sum(r.verdict is verdict for r in reports) for verdict in Verdict
    }
    words = {
        Verdict.PASS: "passed",
        Verdict.FAIL: "failed",
        Verdict.UNDETERMINED: "undetermined",
    }
    return ", ".join(f"{counts[v]} {words[v]}" for v in Verdict if counts[v])


def shown_facts(report: Report) -> str:
    """Return what is worth a person's time among the facts."""
    return ", ".join(
        f"{key}: {value}"
        for key, value in report.facts.items()
        if key not in _HIDDEN_FACTS and value not in ([], report.path)
    )


def _report_lines(report: Report, *, colour: bool, verbose: bool) -> Iterator[str]:
    verdict = report.verdict.value.upper()
    facts = shown_facts(report)
    yield f"{_paint(f'{verdict:<12}', report.verdict, colour=colour)} {printable(report.path)} ({report.kind}{f'; {printable(facts)}' if facts else ''})"
    for claim in report.facts.get("claims", []):
        verdict = Verdict(claim["verdict"])
        word = _paint(f"{verdict.value:<12}", verdict, colour=colour)
        yield f"    {word} {printable(claim['path'])} (claimed by {printable(claim['by'])}, {printable(claim['where'])})"
    for finding in report.findings:
        if finding.severity is Severity.INFO and not verbose:
            continue
        yield from (
            f"    {line}" for line in finding_lines(finding, report.path, colour=colour)
        )
    if (
        report.verdict is Verdict.UNDETERMINED
        and report.open_question
        and report.open_question not in report.skipped.values()
    ):
        yield f"    undetermined: {printable(report.open_question)}"
    if report.verdict is not Verdict.FAIL:  # there the errors say why the rest was left
        yield from (
            f"    not checked: {'' if name == '*' else f'{printable(name)}: '}{printable(reason)}"
            for name, reason in report.skipped.items()
        )


def finding_lines(
    finding: Finding, subject: str = "", *, colour: bool = False
) -> Iterator[str]:
    """Yield the lines of one finding; the place is left out where it only repeats the subject."""
    place = str(finding.where)
    if subject and place.startswith(subject):
        place = place.removeprefix(subject).lstrip(":!/")
    severity = _paint(finding.severity.value, finding.severity, colour=colour)
    said = finding.message.startswith(f"{place} ")  # a part that the message names
    head = f"{printable(place)}: " if place and not said else ""
    yield f"{severity} {head}{printable(finding.message)} [{finding.code}]"
    if finding.fix:
        yield f"      fix: {printable(finding.fix)}"


def printable(text: str) -> str:
    """Return a text that cannot move the cursor or change colours: control characters are shown as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _paint(text: str, key: Verdict | Severity, *, colour: bool) -> str:
    return f"\x1b[{_COLOURS[key]}m{text}\x1b[0m" if colour else text
