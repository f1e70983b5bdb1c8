"""Reports as JUnit XML, which CI servers show as test results: one test case per subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from extforge_verifiers.findings import Report, Severity, Verdict
from extforge_verifiers.reports.text import finding_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["render"]

# What XML 1.0 §2.2 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(reports: Sequence[Report], *, partial: bool = False, **_: Any) -> str:
    """Return all reports as one test suite: errors fail, what could not be judged is an error of the run."""
    counts = {
        "tests": len(reports),
        "failures": sum(r.verdict is Verdict.FAIL for r in reports),
        "errors": sum(r.verdict is Verdict.UNDETERMINED for r in reports),
        "skipped": 0,
    }
    numbers = {key: str(value) for key, value in counts.items()}
    suites = ET.Element("testsuites", {"name": "extforge verify", **numbers})
    suite = ET.SubElement(suites, "testsuite", {"name": "extforge verify", **numbers})
    if partial:
        properties = ET.SubElement(suite, "properties")
        ET.SubElement(properties, "property", {"name": "partial", "value": "true"})
    for report in reports:
        _add_case(suite, report)
    ET.indent(suites)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + ET.tostring(suites, encoding="unicode")


def _add_case(suite: ET.Element, report: Report) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": f"extforge.{report.kind}", "name": _clean(report.path)},
    )
    lines = "\n".join(line for f in report.findings for line in finding_lines(f))
    if report.verdict is Verdict.FAIL:
        first = next(f for f in report.findings if f.severity is Severity.ERROR)
        place = {"type": first.code, "message": _clean(first.message)}
        ET.SubElement(case, "failure", place).text = _clean(lines)
        return
    if report.verdict is Verdict.UNDETERMINED:
        reasons = "; ".join(f"{k}: {v}" for k, v in report.skipped.items())
        words = report.open_question or reasons or "nothing could be checked"
        place = {"type": "undetermined", "message": _clean(words)}
        ET.SubElement(case, "error", place).text = _clean(lines)
        return
    if lines:
        ET.SubElement(case, "system-out").text = _clean(lines)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
