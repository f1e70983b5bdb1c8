"""Is what a tool returned true?  Every claim in it is held against the file system.

Shapes that are understood: openJiuwen's ToolOutput (`{success, data, error}`), its data alone, a plain dict, JSON
text, the Python repr that openJiuwen shows the model for a dict (`{'success': True, ...}`), and the text of a ToolOutput
that its spans hold (`success=True data={...} error=None`).
"""

from __future__ import annotations

import ast
import json
import mimetypes
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Finding, Report, Where
from extforge_verifiers.formats import FORMATS, find_format, format_for
from extforge_verifiers.hostnames import FAILURES
from extforge_verifiers.paths import lies_in
from extforge_verifiers.verify import verify_artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from extforge_verifiers.artifact import Limits
    from extforge_verifiers.checking import Requirement

__all__ = ["claimed_path", "read_result", "shortened", "verify_result"]

_CLOCK_SLACK = 2.0  # seconds: FAT and ZIP keep times in steps of two
_MOST_ENDS = 20  # places tried as the end of `data`
_LONGEST = 4 << 20  # characters of a result in text form
_FIELDS: dict[str, tuple[type, ...]] = {
    "success": (bool,),
    "path": (str,),
    "absolute_path": (str,),
    "format": (str,),
    "exists": (bool,),
    "size_bytes": (int,),
}
PATH_KEYS = (
    "absolute_path", "path", "output_path", "file_path", "output_file", "saved_path"
)  # fmt: skip
_UNSURE_KEYS = ("filename", "file_name", "file")  # also what was read, if alone
_COUNTS = frozenset(count for row in FORMATS.values() for count in row.counts)
_NO_ERRORS = frozenset(("", "none", "null", "no error", "[]", "{}", "false", "0"))
_SHOWN = 200  # characters of a claimed path
_OUTPUT_KEYS = frozenset(("success", "data", "error"))


def read_result(value: Any) -> dict[str, Any] | None:
    """Return a result as one flat dict with `success` in it, or None when it is not in a known shape."""
    if isinstance(value, str):
        value = _parse_text(value)
    if not isinstance(value, dict):
        return None
    if "success" not in value and isinstance(value.get("result"), dict):
        value = value["result"]  # with the tool that returned it
    if set(value) >= _OUTPUT_KEYS and isinstance(
        value["data"], (dict, str, type(None))
    ):
        inner = value["data"]
        data = _parse_text(inner) if isinstance(inner, str) else inner
        flat = dict(data) if isinstance(data, dict) else {}
        flat["success"] = value["success"]
        if value.get("error"):
            flat["error"] = value["error"]
        if isinstance(data, dict) and data.get("success") is False:
            flat["success"] = False
        return flat
    return (
        value
        if "success" in value or "path" in value or "absolute_path" in value
        else None
    )


def _parse_text(text: str) -> Any:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if text.startswith("success="):
        return _parse_output(text)
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _parse_output(text: str) -> dict[str, Any] | None:
    """Read what pydantic writes for `str(ToolOutput(...))`; where `data` ends, only trying tells."""
    match = re.match(r"success=(True|False) data=", text)
    if match is None:
        return None
    rest = text[match.end() :]
    position = len(rest)
    for _ in range(_MOST_ENDS):
        position = rest.rfind(" error=", 0, position)
        if position < 0:
            break
        try:
            data = ast.literal_eval(rest[:position])
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        error = rest[position + len(" error=") :].partition(" extracted_content=")[0]
        error = "" if error == "None" else error.strip("'\"")
        return {"success": match[1] == "True", "data": data, "error": error}
    return None


def claimed_path(result: dict[str, Any]) -> str | None:
    """Return the path of the file that a result claims, or None when it claims none."""
    sure = result.keys() & {"exists", "size_bytes", "format"}
    for key in (*PATH_KEYS, *(_UNSURE_KEYS if sure else ())):
        if isinstance(result.get(key), str) and result[key]:
            return str(result[key])
    return None


def verify_result(  # noqa: PLR0913 -- independent options, all by keyword
    value: Any,
    *,
    root: str,
    format: str | None = None,  # noqa: A002 -- the word that users know
    requirements: Iterable[Requirement] = (),
    keys: Iterable[str] = (),
    schema: dict[str, Any] | None = None,
    fields: Iterable[str] = (),
    label: str = "result",
    since: float | None = None,
    moved: bool = False,
    limits: Limits | None = None,
    deep: bool = False,
) -> Report:
    """Return what is true and what is not in a tool's result.

    Args:
        value: what the tool returned, in any of the known shapes.
        root: the folder that claimed paths must lie in, and that relative ones start from.
        format: the format that the tool is supposed to make.
        requirements: bounds on the file's facts.
        keys: JSON Pointers that a JSON file must have.
        schema: a JSON Schema that a JSON file must fit.
        fields: fields that the result must have.
        label: what to call the result in the report.
        since: when the call began, in seconds since the epoch; an older file was not made by it.
        moved: the files were moved since: an absolute path that is not there may stand for its relative one.
        limits: what looking at the file may cost.
        deep: also look with libraries.
    """
    result = read_result(value)
    if result is None:
        words = f"not a result in a known shape: {value!r:.80}"
        finding = _wrong("result-shape", words)
        return Report(label, "result", checked=("shape",), findings=(finding,))
    fields = tuple(fields)
    findings = list(_check_fields(result, fields, format))
    success = result.get("success")
    path = _moved_path(result, root) if moved else claimed_path(result)
    facts: dict[str, Any] = {"success": success}
    checked = ["shape", "fields"]
    report: Report | None = None
    questions: list[str] = []
    error = str(result.get("error") or "").strip()
    if success is True and error.lower() not in _NO_ERRORS:
        words = f"success is true, but an error is there: {error:.80}"
        wrong = _wrong("result-error-contradicts", words, None, "tool_result_failed")
        findings.append(wrong)
    if success is False:
        if not error:
            words = "success is false, and no error says why"
            findings.append(_wrong("result-error-missing", words))
    elif path is None:
        if format is not None:
            words = f"success is true, but no path says where the {format} file is"
            findings.append(_wrong("result-path-missing", words))
        elif not fields:
            questions.append("no field of it says which file was made")
    else:
        checked.append("file")
        facts["claimed"] = path
        verify = partial(
            verify_artifact,
            requirements=requirements,
            keys=keys,
            schema=schema,
            limits=limits,
            deep=deep,
        )
        report, more = _check_file(result, path, root, format, verify)
        findings += more
        if report is not None:
            facts.update(report.facts)
            facts["file"] = report.path
            if since is not None:
                findings += _check_age(report.path, path, since)
            findings += [finding.at(path=path) for finding in report.findings]
            questions += [report.open_question, *_unproven(result, report)]
    skipped = report.skipped if report is not None else {}
    question = "; ".join(filter(None, questions))
    return Report(
        label, "result", tuple(checked), skipped, facts, tuple(findings), question
    )


def _wrong(
    code: str, words: str, path: str | None = None, failure_id: str | None = None
) -> Finding:
    failure_id = failure_id or FAILURES.get(code)
    place = Where(shortened(path) if path is not None else None)
    return Finding(code, words, where=place, failure_id=failure_id)


def _moved_path(result: dict[str, Any], root: str) -> str | None:
    claimed = claimed_path(result)
    relative = result.get("path")
    if claimed is None or not isinstance(relative, str) or os.path.isabs(relative):
        return claimed
    there = os.path.join(root, relative)
    try:
        return (
            claimed
            if os.path.exists(claimed) or not os.path.exists(there)
            else relative
        )
    except ValueError:  # an embedded NUL
        return claimed


def _check_age(real: str, path: str, since: float) -> Iterator[Finding]:
    written = os.path.getmtime(real)
    if written < since - _CLOCK_SLACK:
        words = f"{path} was written {since - written:,.0f} seconds before the call that claims to have made it"
        yield _wrong("result-file-stale", words, path)


def _check_fields(
    result: dict[str, Any], fields: Iterable[str], form: str | None
) -> Iterator[Finding]:
    wanted = list(fields)
    if form is not None and result.get("success") is not False:
        wanted += [
            name for name in ("format", "exists", "size_bytes") if name not in wanted
        ]
    for name in wanted:
        missing = name not in result
        if name in ("path", "absolute_path"):
            missing = claimed_path(result) is None
        if missing and result.get("success") is not False:
            words = f"the field {name!r} is missing"
            yield _wrong("result-field-missing", words)
    for name, kinds in _FIELDS.items():
        value = result.get(name)
        wrong_bool = isinstance(value, bool) and bool not in kinds
        if value is not None and (not isinstance(value, kinds) or wrong_bool):
            words = f"the field {name!r} must be {kinds[0].__name__}, not {type(value).__name__}"
            yield _wrong("result-field-type", words)


def _check_file(
    result: dict[str, Any],
    path: str,
    root: str,
    form: str | None,
    verify: Callable[[str, str | None], Report],
) -> tuple[Report | None, list[Finding]]:
    try:
        real = os.path.realpath(os.path.join(root, os.path.expanduser(path)))
    except ValueError as exc:  # an embedded NUL
        words = f"the claimed path cannot exist: {exc}"
        return None, [_wrong("result-path-invalid", words, path)]
    if not lies_in(real, root):
        words = f"the claimed file lies outside {root}: {shortened(path)}"
        return None, [_wrong("result-path-outside", words, path)]
    if not os.path.isfile(real):
        words = f"success is true, but there is no file {shortened(path)!r}"
        return None, [_wrong("result-file-missing", words, path)]
    findings: list[Finding] = []
    said = result["format"] if isinstance(result.get("format"), str) else None
    said = _format_named(said, path) if said else None
    named = form or said
    row = find_format(named) if named is not None else None
    if row is not None and os.path.splitext(path)[1].lower() not in row.suffixes:
        words = f"the format is {named}, but the file is named {shortened(os.path.basename(path))!r}"
        findings.append(_wrong("result-suffix", words, path))
        row = format_for(path) or row  # said once: it may be a sound file of its own
    if form is not None and said is not None and said != form:
        words = f"a {form} file was asked for, but the result says format {said!r}"
        findings.append(_wrong("result-format", words, path))
    report = verify(real, row.name if row is not None else None)
    findings += _compare(result, report, path)
    return report, findings


def _format_named(said: str, path: str) -> str:
    """Return a format's name for what a result calls it: `.PPTX`, a suffix, a media type."""
    name = said.strip().lower().lstrip(".")
    if "/" in name:
        suffixes = mimetypes.guess_all_extensions(name.partition(";")[0].strip())
        fitting = os.path.splitext(path)[1].lower()
        name = fitting if fitting in suffixes else next(iter(suffixes), name)
        name = name.lstrip(".")
    if find_format(name) is None and (row := format_for(f"x.{name}")) is not None:
        return row.name
    return name


def _unproven(result: dict[str, Any], report: Report) -> Iterator[str]:
    """Yield what the result says of its file and nothing here can hold against it."""
    said = result.get("format")
    if isinstance(said, str) and find_format(_format_named(said, report.path)) is None:
        yield f"the format {said[:_SHOWN]!r} is not known"
    for name in sorted(_COUNTS & result.keys() - report.facts.keys()):
        if _is_number(result[name]):
            yield f"the result says {name}={result[name]}, and nothing here counts that"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shortened(text: str) -> str:
    """Return a claimed path as a message shows it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _compare(result: dict[str, Any], report: Report, path: str) -> Iterator[Finding]:
    """Hold the numbers in the result against the file's own."""
    if result.get("exists") is False:
        words = "exists is false, but the file is there"
        yield _wrong("result-count", words, path, "artifact_not_created")
    for name, fact in report.facts.items():
        claimed = result.get(name)
        text = claimed if isinstance(claimed, str) and name in _COUNTS else ""
        if re.fullmatch(r"\s*[0-9]+\s*", text) is not None:
            words = f"the field {name!r} must be a number, not text"
            yield _wrong("result-field-type", words, path)
        if not _is_number(claimed) or isinstance(fact, (bool, str)):
            continue
        if claimed != fact:
            code = "result-size" if name == "size_bytes" else "result-count"
            words = f"the result says {name}={claimed}, the file has {fact}"
            yield _wrong(code, words, path)
