"""Is it real?  Judge files, tool results and extension trees that somebody claims are done.

    from extforge_verifiers import verify_artifact
    report = verify_artifact("deck.pptx")
    print(report.verdict, report.facts, report.findings)

Names are imported when they are used, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extforge_verifiers.artifact import Limits
    from extforge_verifiers.checking import Requirement, parse_requirement
    from extforge_verifiers.errors import DocumentError, VerifierError
    from extforge_verifiers.extensions import verify_extension
    from extforge_verifiers.findings import Finding, Report, Severity, Verdict, Where
    from extforge_verifiers.many import verify_many
    from extforge_verifiers.results import verify_result
    from extforge_verifiers.runs import Contract, verify_run
    from extforge_verifiers.verify import verify_artifact

_HOMES = {
    "Contract": "runs",
    "DocumentError": "errors",
    "Finding": "findings",
    "Limits": "artifact",
    "Report": "findings",
    "Requirement": "checking",
    "Severity": "findings",
    "Verdict": "findings",
    "VerifierError": "errors",
    "Where": "findings",
    "parse_requirement": "checking",
    "verify_artifact": "verify",
    "verify_extension": "extensions",
    "verify_many": "many",
    "verify_result": "results",
    "verify_run": "runs",
}

__all__ = [
    "Contract",
    "DocumentError",
    "Finding",
    "Limits",
    "Report",
    "Requirement",
    "Severity",
    "Verdict",
    "VerifierError",
    "Where",
    "parse_requirement",
    "verify_artifact",
    "verify_extension",
    "verify_many",
    "verify_result",
    "verify_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
