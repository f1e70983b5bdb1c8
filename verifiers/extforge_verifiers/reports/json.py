"""Reports as JSON: the form that other programs read; its schema is `report_schema()`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Report, Severity, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "SCHEMA_VERSION",
    "finding_data",
    "overall",
    "render",
    "report_data",
    "report_schema",
    "version",
]

SCHEMA_VERSION = "extforge.report.v1"
_PLACE = ("path", "json_path", "line", "column", "member", "offset")


def overall(reports: Sequence[Report], *, partial: bool = False) -> Verdict:
    """Return the verdict over all: fail before undetermined before pass; what is partial cannot pass."""
    verdicts = {report.verdict for report in reports}
    for verdict in (Verdict.FAIL, Verdict.UNDETERMINED):
        if verdict in verdicts:
            return verdict
    return Verdict.PASS if verdicts and not partial else Verdict.UNDETERMINED


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain data, without what it does not say."""
    where = {
        key: value
        for key in _PLACE
        if (value := getattr(finding.where, key)) is not None
    }
    data: dict[str, Any] = {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "where": where,
    }
    for key in ("fix", "failure_id"):
        if getattr(finding, key) is not None:
            data[key] = getattr(finding, key)
    return data


def report_data(report: Report) -> dict[str, Any]:
    """Return a report as plain data."""
    return {
        "path": report.path,
        "kind": report.kind,
        "verdict": report.verdict.value,
        "checked": list(report.checked),
        "skipped": report.skipped,
        "facts": report.facts,
        "findings": [finding_data(finding) for finding in report.findings],
        **({"open_question": report.open_question} if report.open_question else {}),
    }


def version() -> str:
    """Return the version of extforge that is installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 -- slow to import

    try:
        return version("extforge")
    except PackageNotFoundError:
        return "unknown"


def render(reports: Sequence[Report], *, partial: bool = False, **_: Any) -> str:
    """Return all reports as one JSON text."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": overall(reports, partial=partial).value,
        "reports": [report_data(report) for report in reports],
        **({"partial": True} if partial else {}),
    }
    # Surrogates (a file name that is not UTF-8) must not keep a report from being written.
    text = json.dumps(data, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the JSON form."""
    text = {"type": "string"}
    verdict = {"enum": [item.value for item in Verdict]}
    finding = {
        "type": "object",
        "required": ["code", "severity", "message", "where"],
        "additionalProperties": False,
        "properties": {
            "code": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
            "severity": {"enum": [item.value for item in Severity]},
            "message": text,
            "where": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **dict.fromkeys(("path", "json_path", "member"), text),
                    **{
                        key: {"type": "integer", "minimum": 0}
                        for key in ("line", "column", "offset")
                    },
                },
            },
            "fix": text,
            "failure_id": {"type": "string", "pattern": "^[a-z_]+$"},
        },
    }
    report = {
        "type": "object",
        "required": [
            "path",
            "kind",
            "verdict",
            "checked",
            "skipped",
            "facts",
            "findings",
        ],
        "additionalProperties": False,
        "properties": {
            "path": text,
            "kind": text,
            "verdict": verdict,
            "checked": {"type": "array", "items": text},
            "skipped": {"type": "object", "additionalProperties": text},
            "facts": {"type": "object"},
            "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
            "open_question": text,
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "extforge report",
        "type": "object",
        "required": ["schema_version", "verdict", "reports"],
        "additionalProperties": False,
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "verdict": verdict,
            "reports": {"type": "array", "items": {"$ref": "#/$defs/report"}},
            "partial": {"type": "boolean"},
        },
        "$defs": {"finding": finding, "report": report},
    }
