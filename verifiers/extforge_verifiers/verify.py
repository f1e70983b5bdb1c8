"""Is this file what its name claims?"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import Artifact, ArtifactUnreadable, Limits
from extforge_verifiers.checking import Requirement, check_file
from extforge_verifiers.disguises import recognise
from extforge_verifiers.findings import Finding, Report, Severity, Where
from extforge_verifiers.formats import (
    FORMATS,
    LARGE,
    Format,
    find_format,
    foreign_formats,
    format_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["verify_artifact"]

_MOST, _LONGEST = 20, 200  # findings, characters


def verify_artifact(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 -- the word that users know
    *,
    requirements: Iterable[Requirement] = (),
    keys: Iterable[str] = (),
    schema: dict[str, Any] | None = None,
    limits: Limits | None = None,
    deep: bool = False,
) -> Report:
    """Return what we found out about one file; never raise because it is bad.

    Args:
        path: the file.
        format: the name of a format; by default its suffix decides, and without a known one its content.
        requirements: bounds on its facts, such as `slides>=3`.
        keys: JSON Pointers that a JSON text must have.
        schema: a JSON Schema that a JSON text must fit; its `$ref`s stay inside it.
        limits: what looking may cost.
        deep: also look with libraries (lxml, pikepdf, Pillow); one that is missing is named in `skipped`.

    Raises:
        ValueError: when `format` is not known.
    """
    requirements, keys = tuple(requirements), tuple(keys)
    row = _find_format(os.fspath(path), format)
    if row is None:
        return _unknown(path)
    checks = row.load(deep=deep, size=_size(path))
    report = check_file(path, row.name, checks, requirements, limits)
    if not keys and schema is None:
        return report
    return _check_value(report, path, keys, schema)


def _size(path: str | os.PathLike[str]) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):  # checking says what is wrong
        return 0


def _find_format(path: str, name: str | None) -> Format | None:
    if name is not None:
        named = find_format(name)
        if named is None:
            known = sorted({*FORMATS, *foreign_formats()[0]})
            raise ValueError(f"unknown format {name!r}; known: {', '.join(known)}")
        return named
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
            if broken := foreign_formats()[1] if artifact.suffix else {}:
                named = "; ".join(f"{point}: {why}" for point, why in broken.items())
                reason += f" (formats that could not be loaded: {named})"
            facts = {"size_bytes": artifact.size}
    except ArtifactUnreadable as exc:
        words = f"cannot be read: {exc}"
        missing = Finding("artifact-missing", words, failure_id="artifact_not_created")
        return Report(str(path), "unknown", checked=("exists",), findings=(missing,))
    return Report(str(path), "unknown", skipped={"format": reason}, facts=facts)


def _check_value(
    report: Report,
    path: str | os.PathLike[str],
    keys: tuple[str, ...],
    schema: dict[str, Any] | None,
) -> Report:
    from extforge_verifiers.formats import json as json_format  # noqa: PLC0415 -- only JSON has keys

    def unproven(words: str) -> Report:
        what = [f"required keys {', '.join(keys)}"] if keys else []
        what += ["a JSON Schema"] if schema is not None else []
        words = f"{' and '.join(what)} cannot be held against it: {words}"
        return report.with_findings(Finding("requirement-unproven", words))

    if report.kind != "json":
        return unproven(f"it is {report.kind}, not JSON")
    if any(f.severity is Severity.ERROR for f in report.findings):
        return report
    if _size(path) > LARGE:
        return unproven(f"it has more than {LARGE:,} bytes")
    with Artifact(path) as artifact:
        try:
            value, _ = json_format.load(artifact)
        except (ValueError, RecursionError) as exc:
            return unproven(str(exc))
    for key in keys:
        try:
            json_format.lookup(value, key)
        except LookupError:
            words = f"the key {key} is required, but missing"
            report = report.with_findings(
                Finding("json-key-missing", words, failure_id="artifact_format_invalid")
            )
    return report if schema is None else _check_schema(report, value, schema)


def _check_schema(report: Report, value: Any, schema: dict[str, Any]) -> Report:
    try:
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415 -- an extra
        from jsonschema.validators import validator_for  # noqa: PLC0415
        from referencing import Registry  # noqa: PLC0415
        from referencing.exceptions import Unresolvable  # noqa: PLC0415
    except ImportError as exc:
        words = f"needs {exc.name}, which is not installed"
        return replace(
            report, skipped={**report.skipped, "schema": words}, open_question=words
        )
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as exc:
        raise ValueError(f"the JSON Schema is none: {exc.message}") from None
    # An empty registry: the default one would fetch what a `$ref` names.
    errors = kind(schema, registry=Registry()).iter_errors(value)
    try:
        found = [
            Finding(
                "json-schema",
                f"{error.json_path}: {_shortened(error.message)}",
                where=Where(json_path=error.json_path),
                failure_id="artifact_format_invalid",
            )
            for error in islice(errors, _MOST)
        ]
    except Unresolvable as exc:
        raise ValueError(
            f"the JSON Schema refers to what it does not hold: {exc}"
        ) from None
    except RecursionError:
        raise ValueError("the JSON Schema refers to itself without end") from None
    return replace(report, checked=(*report.checked, "schema")).with_findings(*found)


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
