"""What `extforge verify` does: recognise, verify one by one, and run trees in the host when asked to."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from extforge_verifiers.artifact import Artifact, ArtifactUnreadable, Limits
from extforge_verifiers.checking import Requirement, parse_requirement
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Report, Severity, Verdict
from extforge_verifiers.formats import FORMATS, find_format, foreign_formats, format_for
from extforge_verifiers.subjects import KINDS, Subject, Walk, find_subjects
from extforge_verifiers.verify import verify_artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from extforge_verifiers.runs import Contract

__all__ = ["Options", "Outcome", "verify_paths"]

_LARGEST_RESULT = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify."""

    as_kind: str | None = None
    root: str | None = None
    requirements: tuple[Requirement, ...] = ()
    keys: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    fail_on: tuple[str, ...] = ()  # codes of warnings
    plan: str | None = None  # where the contracts come from
    contracts: tuple[Contract, ...] = ()
    claims: bool = False
    deep: bool = False
    strict: bool = False
    host: bool = False
    python: str | None = None
    timeout: float | None = None
    jobs: int = 1

    @classmethod
    def of(
        cls, requirements: tuple[str, ...] = (), schema: str | None = None, plan: str | None = None, **rest: Any
    ) -> Options:
        """Return options from the command line's texts.

        Raises:
            ValueError: when one of them cannot be read.
            PlanError: when the plan cannot be used.
        """
        bounds = tuple(parse_requirement(text) for text in requirements)
        contracts = _contracts(plan) if plan else ()
        found = _load_schema(schema) if schema else None
        return cls(requirements=bounds, schema=found, plan=plan, contracts=contracts, **rest)


@dataclass(slots=True)
class Outcome:
    """What was found, and what was passed over."""

    reports: list[Report] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    partial: bool = False  # it was interrupted


def verify_paths(
    paths: tuple[str, ...], options: Options, progress: Callable[[int, int], None] | None = None
) -> Outcome:
    """Return a report per subject, in the order of the paths; when interrupted, those that are done.

    `progress` is told how many of how many are done.

    Raises:
        ValueError: when the options do not fit together.
        HostMissing, HostFailed: from `--host`.
    """
    _check_options(paths, options)
    outcome = Outcome()
    found: list[Subject] = []
    try:
        for path in paths:
            walk = _subjects(path, options)
            outcome.passed_over.update(walk.passed_over)
            words = f"nothing to verify in it ({len(walk.passed_over)} paths passed over)"
            found += walk.subjects or [Subject(path, "folder", reason=words)]
        _check_subjects({subject.kind for subject in found}, options)
        for report in _reports(found, options):
            outcome.reports.append(report)
            if progress is not None:
                progress(len(outcome.reports), len(found))
    except KeyboardInterrupt:
        outcome.partial = True
        return outcome
    trees = [subject.path for subject in found if subject.kind == "extension"]
    if options.contracts and not any(report.kind == "run" for report in outcome.reports):
        outcome.reports += _absent(options.contracts, outcome.reports, str(options.plan))
    if options.host:
        _verify_in_host(outcome, trees, options)
    if options.strict or options.fail_on:
        outcome.reports = [_strict(report, options) for report in outcome.reports]
    return outcome


def _load_schema(path: str) -> dict[str, Any]:
    from extforge_harness.documents import read_source  # noqa: PLC0415 -- pydantic, for two options only
    from extforge_verifiers.documents import parse_json, read_text  # noqa: PLC0415

    try:
        label, data = read_source(path)
        value = parse_json(read_text(data, label), label).value
    except OSError as exc:
        raise ValueError(f"--schema {path}: cannot be read: {exc.strerror}") from None
    except DocumentError as exc:
        raise ValueError("; ".join(f"--schema {f.where}: {f.message}" for f in exc.findings)) from None
    if not isinstance(value, dict):
        raise ValueError(f"--schema {path}: not a JSON Schema, which is an object")  # noqa: TRY004 -- a user's mistake
    with contextlib.suppress(ImportError):  # the report will say what is missing
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415 -- slow to import
        from jsonschema.validators import validator_for  # noqa: PLC0415

        try:
            validator_for(value).check_schema(value)
        except SchemaError as exc:
            raise ValueError(f"--schema {path}: {exc.json_path}: {exc.message}") from None
    return value


def _check_options(paths: tuple[str, ...], options: Options) -> None:
    if options.as_kind is not None:
        if options.as_kind not in KINDS and find_format(options.as_kind) is None:
            known = (*FORMATS, *foreign_formats()[0], *KINDS)
            raise ValueError(f"--as {options.as_kind}: unknown; known: {', '.join(known)}")
        if len(paths) != 1:
            raise ValueError("--as speaks of one PATH")
    if options.fail_on:
        from extforge.explaining import describe  # noqa: PLC0415 -- reads a file

        if unknown := [code for code in options.fail_on if not describe(code)]:
            raise ValueError(f"--fail-on {unknown[0]}: no such code; docs/codes.md lists them")
    if options.python and not options.host:
        raise ValueError("--python is for --host")


def _check_subjects(kinds: set[str], options: Options) -> None:
    """Refuse a wish that nothing here could fail."""
    wishes = (
        (
            "--claims",
            options.claims,
            ("run", "result"),
            "what an assistant said in a run, and there is no record of one",
        ),
        (
            "--root",
            options.root,
            ("run", "result"),
            "the files that results and runs claim, and there is none of these",
        ),
        ("--require", options.requirements, ("artifact", "result"), "files and tool results, and there is none"),
        ("--require-key", options.keys, ("artifact", "result"), "files and tool results, and there is none"),
        ("--schema", options.schema is not None, ("artifact", "result"), "files and tool results, and there is none"),
    )
    for name, wished, wanted, words in wishes:
        if wished and not kinds & {*wanted, "folder"}:  # of a folder with nothing in it nothing is said at all
            raise ValueError(f"{name} speaks of {words} here")


def _subjects(path: str, options: Options) -> Walk:
    if options.as_kind is None:
        return find_subjects(path)
    if options.as_kind == "run" and os.path.isdir(path):
        records = [s for s in find_subjects(path).subjects if s.kind in ("run", "result")]
        return Walk([Subject(path, "run", tuple(s.path for s in records))] if records else [])
    kind = options.as_kind if options.as_kind in KINDS else "artifact"
    return Walk([Subject(path, kind)])


def _reports(subjects: list[Subject], options: Options) -> Iterator[Report]:
    verify = partial(_verify, options=options)
    if options.jobs == 1 and not options.deep:
        yield from map(verify, subjects)
        return
    # Libraries written in C can crash or hang; a process of their own takes that upon itself.
    from extforge_verifiers.many import lost_report, map_reports  # noqa: PLC0415 -- slow to import

    seconds = options.timeout or Limits().seconds
    yield from map_reports(
        subjects,
        verify,
        lambda subject, reason: lost_report(subject.path, reason, seconds=seconds),
        jobs=min(options.jobs, len(subjects)),
        seconds=seconds,
    )


def _contracts(plan: str) -> tuple[Contract, ...]:
    """Return what the artifact tools of a plan have promised; raise PlanError when it cannot be used."""
    from extforge.check import load_plan  # noqa: PLC0415 -- only this option needs plans
    from extforge_verifiers.runs import Contract  # noqa: PLC0415

    return tuple(
        Contract(
            tool.name,
            str(tool.format),
            tuple(Requirement(fact, ">=", count) for fact, count in tool.options.get("minimum", {}).items()),
            tuple(tool.options.get("required_keys", [])),
        )
        for blueprint in load_plan(plan, max_designs=100_000).blueprints
        for tool in blueprint.tools
        if tool.does == "artifact"
    )


def _absent(contracts: Sequence[Contract], reports: list[Report], plan: str) -> list[Report]:
    """Return a report on the contracts for which there is no file at all."""
    there = {report.kind for report in reports}
    findings = tuple(
        Finding(
            "contract-artifact-missing",
            f"{contract.tool} has promised a {contract.format} file, and there is none",
            failure_id="artifact_not_created",
        )
        for contract in contracts
        if contract.format not in there
    )
    return [Report(plan, "plan", checked=("contracts",), findings=findings)]


def _verify(subject: Subject, options: Options) -> Report:
    if subject.kind == "folder":
        return Report(subject.path, "folder", skipped={"*": subject.reason})
    if subject.kind == "extension":
        from extforge_verifiers.extensions import verify_extension  # noqa: PLC0415

        return verify_extension(subject.path)
    if subject.kind == "result":
        return _verify_result(subject.path, options)
    limits = Limits(seconds=options.timeout) if options.timeout else None
    if subject.kind == "run":
        from extforge_verifiers.runs import verify_run  # noqa: PLC0415 -- a single file needs no more than its format

        records = subject.records or (subject.path,)
        root = options.root or (subject.path if subject.records else None)
        report = verify_run(
            records, root=root, said=options.claims, contracts=options.contracts, limits=limits, deep=options.deep
        )
        return replace(report, path=subject.path)
    form = options.as_kind if options.as_kind not in KINDS else None
    requirements, keys = options.requirements, options.keys
    row = find_format(form) if form else format_for(subject.path)
    # Several tools may promise one format; which of them made a file, a file alone does not say.
    promised = [c for c in options.contracts if row is not None and c.format == row.name]
    if len(promised) == 1:
        requirements, keys = (*requirements, *promised[0].requirements), (*keys, *promised[0].keys)
    return verify_artifact(
        subject.path,
        form,
        requirements=requirements,
        keys=keys,
        schema=options.schema,
        limits=limits,
        deep=options.deep,
    )


def _verify_result(path: str, options: Options) -> Report:
    from extforge_verifiers.results import verify_result  # noqa: PLC0415

    try:
        with Artifact(path) as artifact:  # not open(): a pipe might never answer
            data = artifact.head(_LARGEST_RESULT)
        text = data.decode(json.detect_encoding(data))
    except (ArtifactUnreadable, OSError, UnicodeDecodeError) as exc:
        words = f"cannot be read: {exc}"
        finding = Finding("artifact-missing", words, failure_id="artifact_not_created")
        return Report(path, "result", checked=("exists",), findings=(finding,))
    root = options.root or os.path.dirname(os.path.abspath(path))
    value: Any = text
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    return verify_result(
        value,
        root=root,
        requirements=options.requirements,
        keys=options.keys,
        schema=options.schema,
        label=path,
        limits=Limits(seconds=options.timeout) if options.timeout else None,
        deep=options.deep,
    )


def _verify_in_host(outcome: Outcome, trees: list[str], options: Options) -> None:
    """Run the trees, and add what the host showed to their reports."""
    from extforge_harness.errors import HostFailed  # noqa: PLC0415
    from extforge_harness.host.run import verify_in_host  # noqa: PLC0415

    if not trees:
        raise ValueError("--host runs extension trees, and there is none under these paths")
    scratch = tempfile.mkdtemp(prefix="extforge-host-")
    kept = False
    try:
        run = verify_in_host(trees, python=options.python, timeout=options.timeout or 300.0, scratch=scratch)
        kept = any(report.verdict is Verdict.FAIL for report in run.reports)
    except HostFailed as exc:
        kept = True
        words = f"{exc} (what it left behind is in {scratch})"
        outcome.reports = [
            replace(report, skipped={**report.skipped, "host": words}, open_question=words)
            if report.path in trees
            else report
            for report in outcome.reports
        ]
        return
    finally:
        if not kept:
            shutil.rmtree(scratch, ignore_errors=True)
    by_path = {report.path: report for report in run.reports}
    outcome.reports = [
        _merge(report, by_path[report.path], scratch)
        if report.kind == "extension" and report.path in by_path
        else report
        for report in outcome.reports
    ]


def _merge(static: Report, host: Report, scratch: str) -> Report:
    """Return both reports as one; a failing one says where the files of the run are, its evidence."""
    evidence = {"host_files": scratch} if host.verdict is Verdict.FAIL else {}
    return replace(
        static,
        checked=(*static.checked, *host.checked),
        skipped={**static.skipped, **host.skipped},
        facts={**static.facts, **host.facts, **evidence},
        findings=(*static.findings, *host.findings),
        open_question=static.open_question or host.open_question,
    )


def _strict(report: Report, options: Options) -> Report:
    findings = tuple(
        replace(f, severity=Severity.ERROR)
        if f.severity is Severity.WARNING and (options.strict or f.code in options.fail_on)
        else f
        for f in report.findings
    )
    return replace(report, findings=findings)
