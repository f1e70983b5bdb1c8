"""Reports as SARIF 2.1.0 (OASIS), which code hosts and editors show beside the files.

A finding is a result; a subject that could not be judged is a result of kind `open` (§3.27.9).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from extforge_verifiers.findings import Finding, Report, Severity, Verdict
from extforge_verifiers.reports.json import version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["render"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


def render(
    reports: Sequence[Report],
    *,
    describe: Callable[[str], str] | None = None,
    partial: bool = False,
) -> str:
    """Return the findings of all reports as one SARIF log; `describe` gives a code's explanation."""
    results = [
        _result(finding, report) for report in reports for finding in report.findings
    ]
    results += [
        _open(report) for report in reports if report.verdict is Verdict.UNDETERMINED
    ]
    codes = sorted({result["ruleId"] for result in results if "ruleId" in result})
    driver = {
        "name": "extforge",
        "version": version(),
        "rules": [_rule(code, describe) for code in codes],
    }
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": not partial}],
                "artifacts": [
                    {
                        "location": {"uri": _uri(path)},
                        "roles": ["analysisTarget"],
                    }
                    for path in dict.fromkeys(r.path for r in reports)
                ],
                "results": results,
            }
        ],
    }
    text = json.dumps(log, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _rule(code: str, describe: Callable[[str], str] | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": code}
    if describe is not None:
        rule["shortDescription"] = {"text": describe(code)}
    return rule


def _result(finding: Finding, report: Report) -> dict[str, Any]:
    message = finding.message + (f" Fix: {finding.fix}" if finding.fix else "")
    where = finding.where
    region: dict[str, int] = {}
    if where.line:
        region["startLine"] = where.line
        if where.column:
            region["startColumn"] = where.column
    elif where.offset is not None and where.member is None:
        region["byteOffset"] = where.offset
    place: dict[str, Any] = {
        "artifactLocation": {"uri": _uri(where.path or report.path)}
    }
    if region:
        place["region"] = region
    location: dict[str, Any] = {"physicalLocation": place}
    names = dict.fromkeys(name for name in (where.member, where.json_path) if name)
    if names:
        location["logicalLocations"] = [{"fullyQualifiedName": n} for n in names]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": message},
        "locations": [location],
    }
    if finding.failure_id:
        result["properties"] = {"failure_id": finding.failure_id}
    return result


def _open(report: Report) -> dict[str, Any]:
    reasons = "; ".join(f"{k}: {v}" for k, v in report.skipped.items())
    text = report.open_question or reasons or "nothing could be checked"
    place = {"artifactLocation": {"uri": _uri(report.path)}}
    return {
        "kind": "open",
        "level": "none",
        "message": {"text": f"undetermined: {text}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference (RFC 3986): relative ones stay relative."""
    plain = path.replace(os.sep, "/")
    try:
        encoded = quote(plain.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        encoded = quote(plain.encode("utf-8", "replace"))
    if os.path.isabs(path):
        return f"file://{'' if encoded.startswith('/') else '/'}{encoded}"
    return encoded
