"""Is this file what its name claims?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import Artifact, ArtifactUnreadable, Limits
from extforge_verifiers.checking import Requirement, check_file
from extforge_verifiers.disguises import recognise
from extforge_verifiers.findings import Finding, Report, Severity
from extforge_verifiers.formats import FORMATS, LARGE, Format, format_for

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["verify_artifact"]


def verify_artifact(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 -- the word that users know
    *,
    requirements: Iterable[Requirement] = (),
    keys: Iterable[str] = (),
    limits: Limits | None = None,
    deep: bool = False,
) -> Report:
    """Return what we found out about one file; never raise because it is bad.

    Args:
        path: the file.
        format: a key of `FORMATS`; by default its suffix decides, and without a known one its content.
        requirements: bounds on its facts, such as `slides>=3`.
        keys: JSON Pointers that a JSON text must have.
        limits: what looking may cost.
        deep: also look with libraries (lxml, pikepdf, Pillow); one that is missing is named in `skipped`.

    Raises:
        ValueError: when `format` is not one of `FORMATS`.
    """
    requirements, keys = tuple(requirements), tuple(keys)
    row = _find_format(os.fspath(path), format)
    if row is None:
        return _unknown(path)
    checks = row.load(deep=deep, size=_size(path))
    report = check_file(path, row.name, checks, requirements, limits)
    return _check_keys(report, path, keys) if keys else report


def _size(path: str | os.PathLike[str]) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):  # checking says what is wrong
        return 0


def _find_format(path: str, name: str | None) -> Format | None:
    if name is not None:
        if name not in FORMATS:
            raise ValueError(
                f"unknown format {name!r}; known: {', '.join(sorted(FORMATS))}"
            )
        return FORMATS[name]
    row = format_for(path)
    if row is None and not os.path.splitext(path)[1]:
        try:
            with Artifact(path) as artifact:
                found = recognise(artifact.head(4096))
        except ArtifactUnreadable:
            return None
        row = FORMATS.get(found.format) if found is not None else None
    return row


def _unknown(path: str | os.PathLike[str]) -> Report:
    """Say that nothing was checked, or that there is nothing to check."""
    try:
        with Artifact(path) as artifact:
            reason = (
                f"no checks for the suffix {artifact.suffix!r}"
                if artifact.suffix
                else "its content is not known"
            )
            facts = {"size_bytes": artifact.size}
    except ArtifactUnreadable as exc:
        missing = Finding(
            "artifact-missing",
            f"cannot be read: {exc}",
            failure_id="artifact_not_created",
        )
        return Report(str(path), "unknown", checked=("exists",), findings=(missing,))
    return Report(str(path), "unknown", skipped={"format": reason}, facts=facts)


def _check_keys(
    report: Report, path: str | os.PathLike[str], keys: tuple[str, ...]
) -> Report:
    from extforge_verifiers.formats import json as json_format  # noqa: PLC0415 -- only JSON has keys

    if report.kind != "json":
        words = f"required keys {', '.join(keys)} can only be looked up in JSON, not in {report.kind}"
        return report.with_findings(Finding("requirement-unproven", words))
    if any(f.severity is Severity.ERROR for f in report.findings):
        return report
    if _size(path) > LARGE:
        words = f"required keys are not looked up in more than {LARGE:,} bytes"
        return report.with_findings(Finding("requirement-unproven", words))
    with Artifact(path) as artifact:
        try:
            value, _ = json_format.load(artifact)
        except (ValueError, RecursionError) as exc:
            return report.with_findings(
                Finding(
                    "requirement-unproven", f"required keys cannot be looked up: {exc}"
                )
            )
    for key in keys:
        try:
            json_format.lookup(value, key)
        except LookupError:
            words = f"the key {key} is required, but missing"
            report = report.with_findings(
                Finding("json-key-missing", words, failure_id="artifact_format_invalid")
            )
    return report
