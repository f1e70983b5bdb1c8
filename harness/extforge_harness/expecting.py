"""Hold what a tool returned against what its test expects, wherever it was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge_verifiers.checking import Requirement
from extforge_verifiers.findings import Finding
from extforge_verifiers.results import read_result, verify_result

if TYPE_CHECKING:
    from extforge_harness.acceptance import ToolTest

__all__ = ["judge_result", "short"]

_FAILED = "tool_result_failed"


def judge_result(test: ToolTest, answer: Any, *, root: str) -> list[Finding]:
    """Return what is wrong with the answer of a tool; files that it claims are looked at, below `root`."""
    name, expect = test.tool_name, test.expect
    result = read_result(answer)
    if result is None:
        words = f"{name!r} returned no structured result: {answer!r:.80}"
        return [Finding("result-shape", words, failure_id="tool_result_schema_missing")]
    succeeded = result.get("success") is not False
    error = str(result.get("error"))
    if expect.success and not succeeded:
        return [Finding("host-tool-failed", f"{name!r} failed: {short(error)}", failure_id=_FAILED)]
    if not expect.success:
        wanted = expect.error_contains
        if succeeded:
            words = f"{name!r} should fail on these inputs, and claims success"
            return [Finding("host-tool-succeeded", words, failure_id=_FAILED)]
        if wanted and wanted not in error:
            words = f"{name!r} fails with {short(error)!r}, not {wanted!r}"
            return [Finding("host-tool-error", words, failure_id=_FAILED)]
        return []
    bounds = [Requirement(fact, ">=", value) for fact, value in expect.minimum.items()]
    report = verify_result(
        answer,
        root=root,
        format=expect.format,
        requirements=bounds,
        keys=expect.required_keys,
        fields=test.assertions.required_fields,
    )
    found = [Finding(f.code, f"{name}: {f.message}", f.severity, f.where, f.fix, f.failure_id) for f in report.findings]
    for key, value in expect.contains.items():
        if result.get(key) != value:
            words = f"{name!r} returned {key}={result.get(key)!r:.200}, not {value!r:.200}"
            found.append(Finding("host-tool-result", words, failure_id=_FAILED))
    return found


def short(text: str) -> str:
    """Return a text on one line of at most 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."
