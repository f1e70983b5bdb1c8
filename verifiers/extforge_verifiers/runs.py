"""Which claims of a run are true?  Every file that a tool or the assistant says is there is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from extforge_verifiers.claims import claimed_in
from extforge_verifiers.findings import Finding, Report, Severity, Verdict, Where
from extforge_verifiers.records import Claim, RecordUnreadable, read_record
from extforge_verifiers.results import (
    claimed_path,
    read_result,
    shortened,
    verify_result,
)
from extforge_verifiers.subjects import find_subjects
from extforge_verifiers.verify import verify_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from extforge_verifiers.artifact import Limits
    from extforge_verifiers.checking import Requirement

__all__ = ["Contract", "verify_run"]

_ARTIFACT_KEYS = frozenset(
    "absolute_path output_path output_file saved_path format exists size_bytes".split()
)
_MOST_UNCLAIMED = 200


@dataclass(frozen=True, slots=True)
class Contract:
    """What a tool has promised to make."""

    tool: str
    format: str
    requirements: tuple[Requirement, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Judged:
    """A claim and what came of it."""

    claim: Claim
    path: str  # as claimed
    report: Report

    def data(self) -> dict[str, Any]:
        return {
            "by": self.claim.by,
            "where": str(self.claim.where),
            "path": self.path,
            "verdict": self.report.verdict.value,
        }


def verify_run(
    records: str | Sequence[str],
    *,
    root: str | None = None,
    said: bool = False,
    contracts: Iterable[Contract] = (),
    limits: Limits | None = None,
    deep: bool = False,
    walk: bool = True,
) -> Report:
    """Return which claims of a run are true, and what nobody claimed.

    Args:
        records: the record of the run, or several.
        root: the folder that claimed files must lie in (default: the first record's folder).
        said: also hold the assistant's final text to what it says it wrote.
        contracts: what the tools have promised; a tool without a file is an error then.
        limits: what looking at one file may cost.
        deep: also look with libraries.
        walk: also look through `root` for files that nobody claimed.
    """
    paths = [records] if isinstance(records, str) else list(records)
    label = paths[0]
    root = root or os.path.dirname(os.path.abspath(paths[0]))
    promised = {contract.tool: contract for contract in contracts}
    judged: list[_Judged] = []
    problems: list[Finding] = []
    calls = 0
    forms = []
    for path in paths:
        try:
            record = read_record(path)
        except RecordUnreadable as exc:
            problems.append(_unreadable(str(exc), Where(path)))
            continue
        forms.append(record.format)
        calls += record.calls
        problems += record.problems
        judged += _judge_tools(record.claims, root, promised, limits, deep=deep)
        if said and record.answer is not None:
            judged += _judge_answer(record.answer, root, limits, judged, deep=deep)
    problems += [
        _unreadable("the result was cut off", item.claim.where)
        for item in judged
        if item.report.verdict is Verdict.UNDETERMINED and not item.path
    ]
    findings = [
        _placed(finding, item) for item in judged for finding in item.report.findings
    ]
    findings += _unkept(promised, judged)
    findings += problems
    unclaimed = _unclaimed(root, judged, paths) if walk else []
    findings += unclaimed[:_MOST_UNCLAIMED]
    claims = [item.data() for item in judged if item.path]
    facts: dict[str, Any] = {
        "record": ", ".join(sorted(set(forms))),
        "calls": calls,
        "claimed": len(claims),
        "true": sum(item["verdict"] == "pass" for item in claims),
        "unclaimed": len(unclaimed),
        "claims": claims,
    }
    open_questions = [p.message for p in problems]
    open_questions += [
        f"{shortened(item.path)}: {item.report.open_question}"
        for item in judged
        if item.report.open_question
    ]
    return Report(
        label,
        "run",
        checked=("claims",) if judged else (),
        skipped={} if judged else {"claims": "no tool result in it claims a file"},
        facts=facts,
        findings=tuple(findings),
        open_question="; ".join(dict.fromkeys(open_questions))[:500],
    )


def _unreadable(words: str, where: Where) -> Finding:
    return Finding("record-unreadable", words, Severity.WARNING, where)


def _judge_tools(
    claims: list[Claim],
    root: str,
    promised: dict[str, Contract],
    limits: Limits | None,
    *,
    deep: bool,
) -> Iterator[_Judged]:
    last = {}
    for claim in claims:
        path = _artifact_path(claim.value)
        if path:
            last[path] = claim
    for claim in claims:
        result = read_result(claim.value)
        if result is None:
            if _is_cut(claim.value):
                yield _Judged(claim, "", Report("", "result"))
            continue
        path = _artifact_path(claim.value)
        if path is None:
            if result.get("success") is False:
                yield _Judged(claim, "", verify_result(claim.value, root=root))
            continue
        if last[path] is not claim:
            # A later call wrote the same file again, so these sizes and counts speak of what is gone.
            superseded = {"claimed": path, "superseded": True}
            report = Report(path, "result", checked=("superseded",), facts=superseded)
        else:
            contract = promised.get(claim.by.removeprefix("tool "))
            report = verify_result(
                claim.value,
                root=root,
                format=contract.format if contract else None,
                requirements=contract.requirements if contract else (),
                keys=contract.keys if contract else (),
                since=claim.started,
                moved=True,
                limits=limits,
                deep=deep,
            )
        yield _Judged(claim, path, report)


def _artifact_path(value: Any) -> str | None:
    """Return the file that a result says it made; None for results that only mention one, as a reader's do."""
    result = read_result(value)
    if result is None or result.get("success") is False or "content" in result:
        return None
    return claimed_path(result) if result.keys() & _ARTIFACT_KEYS else None


def _is_cut(value: Any) -> bool:
    """Say whether a text is the beginning of a result: exporters and models cut long values."""
    if not isinstance(value, str):
        return False
    start = value.lstrip()[:200]
    looks = ("'success'" in start or '"success"' in start) and start.startswith("{")
    return looks or start.startswith("success=")


def _judge_answer(
    answer: Claim,
    root: str,
    limits: Limits | None,
    judged: list[_Judged],
    *,
    deep: bool,
) -> Iterator[_Judged]:
    known = {os.path.basename(item.path): item for item in judged if item.path}
    for path in claimed_in(answer.value):
        claim = replace(answer, value=path)
        before = known.get(os.path.basename(path.replace("\\", "/")))
        if before is not None:
            yield _Judged(claim, path, replace(before.report, findings=()))
            continue
        result = {"success": True, "path": path}
        report = verify_result(result, root=root, limits=limits, deep=deep)
        if any(f.code == "result-file-missing" for f in report.findings):
            found = _find(root, path)
            if found is not None:
                report = verify_artifact(found, limits=limits, deep=deep)
            else:
                words = f"the assistant says it wrote {shortened(path)}, and there is no such file"
                missing = Finding(
                    "claim-file-missing",
                    words,
                    where=Where(shortened(path)),
                    failure_id="artifact_not_created",
                )
                report = replace(report, findings=(missing,))
        yield _Judged(claim, path, report)


def _find(root: str, path: str) -> str | None:
    """Return the one file below the root with this name, where a text gives the name alone."""
    if os.path.dirname(path):
        return None
    found = [s.path for s in find_subjects(root).subjects if s.kind == "artifact"]
    same = [p for p in found if os.path.basename(p) == path]
    return same[0] if len(same) == 1 else None


def _placed(finding: Finding, item: _Judged) -> Finding:
    """Return the finding with who claimed it and where; the file stays in the message."""
    place = item.claim.where
    path = shortened(item.path)
    about = "" if path in finding.message or not path else f"{path}: "
    return replace(
        finding,
        message=f"{item.claim.by}: {about}{finding.message}",
        where=replace(place, member=finding.where.member),
    )


def _unkept(promised: dict[str, Contract], judged: list[_Judged]) -> Iterator[Finding]:
    made = {item.claim.by.removeprefix("tool ") for item in judged if item.path}
    for tool, contract in promised.items():
        if tool not in made:
            words = f"{tool} has promised a {contract.format} file, and no result of it claims one"
            yield Finding(
                "contract-artifact-missing", words, failure_id="artifact_not_created"
            )


def _unclaimed(root: str, judged: list[_Judged], records: list[str]) -> list[Finding]:
    real_root = os.path.realpath(root)
    claimed = {
        os.path.realpath(os.path.join(real_root, path))
        for item in judged
        for path in (item.path, str(item.report.facts.get("file", "")))
        if path and "\x00" not in path
    }
    claimed |= {os.path.realpath(path) for path in records}
    subjects = find_subjects(root).subjects
    return [
        Finding(
            "run-unclaimed",
            f"nobody claimed {os.path.relpath(subject.path, root)}",
            Severity.INFO,
            Where(subject.path),
        )
        for subject in subjects
        if subject.kind == "artifact" and os.path.realpath(subject.path) not in claimed
    ]
