"""Find the designs in what somebody hands us: a file, a folder, standard input, or a model's answer.

openJiuwen's own parser returns nothing for an unfenced array of two designs, reads only the first of two fenced
blocks, and is derailed by a fence inside a string or a brace in the prose.  Here a design is either read or
reported; none gets lost.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge.errors import PlanError
from extforge_harness.documents import STDIN, read_source
from extforge_verifiers.documents import Document, Path, json_path, parse_text, parse_yaml, read_text, scan_json
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Entry", "Source", "blocks_in", "has_fence", "read_answer", "read_plan"]

_NAME_KEY = re.compile(r"""["']?extension_name["']?\s*:""")
_QUOTED_NAME_KEY = re.compile(r'"extension_name"\s*:')
_FENCE = re.compile(r"^[ \t]*```[ \t]*([A-Za-z0-9]*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_HAS_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One design as it was written: a value at a path of a document."""

    document: Document
    path: Path

    @property
    def value(self) -> Any:
        """The raw value of the design."""
        value: Any = self.document.value
        for step in self.path:
            value = value[step]
        return value

    @property
    def name(self) -> str:
        """The extension's name as far as there is one; for messages."""
        value = self.value
        name = value.get("extension_name") if isinstance(value, dict) else None
        return name if isinstance(name, str) else json_path(self.path)


@dataclass(slots=True)
class Source:
    """What was found in the sources together."""

    label: str
    entries: list[Entry] = field(default_factory=list)
    package_name: str = ""
    findings: list[Finding] = field(default_factory=list)


def read_plan(source: str) -> Source:
    """Return the designs in `source`: a file, a folder with `*.plan.yaml|yml|json`, or `-` for standard input.

    Raises:
        PlanError: when there is nothing to read, or some of it cannot be read; with every problem.
    """
    result = Source(label=STDIN if source == "-" else source)
    for path in _files(source):
        try:
            label, data = read_source(path)
            _collect(result, read_text(data, label), label)
        except OSError as exc:
            result.findings.append(_unreadable(exc, path))
        except DocumentError as exc:
            result.findings.extend(exc.findings)
    return _usable(result)


def read_answer(text: str, label: str) -> Source:
    """Return the designs in a text that is already here, such as a model's answer.

    Raises:
        PlanError: as `read_plan`.
    """
    result = Source(label=label)
    try:
        _collect(result, text, label)
    except DocumentError as exc:
        result.findings.extend(exc.findings)
    return _usable(result)


def _usable(result: Source) -> Source:
    if result.findings:
        raise PlanError(result.label, result.findings)
    if not result.entries:
        words = "there is no design in it"
        fix = "`extforge init` writes a plan to start from"
        raise PlanError(result.label, [Finding("plan-empty", words, where=Where(result.label), fix=fix)])
    return result


def _files(source: str) -> list[str]:
    """Return the files behind `source`.

    Raises:
        PlanError: when it is a folder without any, or one that cannot be read.
    """
    if not os.path.isdir(source):
        return [source]
    try:
        names = sorted(os.listdir(source))
    except OSError as exc:
        raise PlanError(source, [_unreadable(exc, source)]) from None
    paths = [os.path.join(source, name) for name in names if re.search(r"\.plan\.(ya?ml|json)$", name)]
    if not paths:
        words = "no *.plan.yaml, *.plan.yml or *.plan.json in this folder"
        raise PlanError(source, [Finding("plan-unreadable", words, where=Where(source), fix="name the plan itself")])
    return paths


def _unreadable(exc: OSError, path: str) -> Finding:
    path = str(exc.filename or path)
    return Finding("plan-unreadable", f"cannot be read: {exc.strerror}", where=Where(path))


def _collect(result: Source, text: str, label: str) -> None:
    if _is_prose(text, label):
        _collect_blocks(result, text, label)
        return
    document = parse_text(text, label)
    found = list(_designs(document))
    beside = list(_beside_designs(document))
    if found:
        result.entries += [Entry(document, path) for path in found]
        if isinstance(document.value, dict) and isinstance(document.value.get("package_name"), str):
            result.package_name = result.package_name or document.value["package_name"]
    elif not beside:
        result.findings.append(_wrong_shape(document))
    result.findings += beside


def _is_prose(text: str, label: str) -> bool:
    """Say whether the designs stand inside other text, as in a model's answer."""
    start = text.lstrip()[:1]
    if label.lower().endswith((".yaml", ".yml", ".json")):
        return has_fence(text)
    if start in ("{", "["):
        try:
            parse_text(text, label)
        except DocumentError as exc:
            return "more text after" in exc.findings[0].message
        return False
    return _HAS_FENCE.search(text) is not None or _QUOTED_NAME_KEY.search(text) is not None


def _designs(document: Document) -> Iterator[Path]:
    """Yield the paths of the designs, for the three shapes that the host knows."""
    value = document.value
    if isinstance(value, dict):
        if isinstance(value.get("designs"), list):
            yield from (("designs", index) for index in range(len(value["designs"])))
        elif "extension_name" in value:
            yield ()
    elif isinstance(value, list):
        yield from ((index,) for index in range(len(value)))


def _wrong_shape(document: Document) -> Finding:
    value = document.value
    if value is None:
        return Finding("plan-empty", "the document is empty", where=document.where(()))
    if isinstance(value, dict) and "designs" in value:
        return Finding("plan-shape", "`designs` must be a list of designs", where=document.where(("designs",)))
    if value == []:
        return Finding("plan-empty", "the list of designs is empty", where=document.where(()))
    words = "not a plan: expected {designs: [...]}, a list of designs, or one design with an extension_name"
    return Finding("plan-shape", words, where=document.where(()))


def _beside_designs(document: Document) -> Iterator[Finding]:
    """Report what stands beside `designs` and would otherwise be ignored."""
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("designs"), list):
        return
    if not value["designs"]:
        yield Finding("plan-empty", "the list of designs is empty", where=document.where(("designs",)))
    for key in value:
        if key not in ("designs", "package_name", "$schema"):
            words = f"unknown key {key!r} beside `designs`"
            fix = "known keys: designs, package_name"
            yield Finding("document-unknown-key", words, where=document.where((key,), key=True), fix=fix)
    if not isinstance(value.get("package_name", ""), str):
        yield Finding("document-wrong-type", "must be a text", where=document.where(("package_name",)))


# --------------------------------------------------------------------------- a model's answer


def _collect_blocks(result: Source, text: str, label: str) -> None:
    """Read every block of designs in prose; a design that is mentioned and not read is an error."""
    covered: list[tuple[int, int]] = []
    blocks: list[Document] = []
    for document, start, end in blocks_in(text, label, _looks_like_designs):
        covered.append((start, end))
        blocks.append(document)
    blocks.sort(key=lambda block: block.marks[()])
    for mention in _NAME_KEY.finditer(text):
        if not any(first <= mention.start() < last for first, last in covered):
            result.findings.append(_unread(text, label, mention.start()))
            break
    names: dict[str, Entry] = {}
    for block in blocks:
        for path in _designs(block):
            entry = Entry(block, path)
            first = names.setdefault(entry.name, entry)
            if first is not entry and first.document is not block:
                words = (
                    f"two blocks define {entry.name!r}: at lines {first.document.marks[()][0]} and {block.marks[()][0]}"
                )
                fix = "keep the block that is meant"
                result.findings.append(Finding("plan-ambiguous", words, where=block.where(path), fix=fix))
            result.entries.append(entry)
        result.findings += _beside_designs(block)
        if isinstance(block.value, dict) and isinstance(block.value.get("package_name"), str):
            result.package_name = result.package_name or block.value["package_name"]


def _looks_like_designs(value: object) -> bool:
    if isinstance(value, dict):
        return "extension_name" in value or isinstance(value.get("designs"), list)
    return isinstance(value, list) and any(isinstance(v, dict) and "extension_name" in v for v in value)


def has_fence(text: str) -> bool:
    """Say whether a text starts with a fenced block, as a saved answer does."""
    return _HAS_FENCE.match(text.lstrip()) is not None


def blocks_in(text: str, label: str, wanted: Callable[[object], bool]) -> Iterator[tuple[Document, int, int]]:
    """Yield each JSON value or YAML block in prose that is `wanted`, with where it starts and ends.

    Raises:
        DocumentError: when a block that says it is YAML is not.
    """
    covered: list[tuple[int, int]] = []
    for document, start, end in [*_json_values(text, label, wanted), *_yaml_fences(text, label)]:
        if wanted(document.value) and not any(first <= start < last for first, last in covered):
            covered.append((start, end))
            yield document, start, end


def _json_values(text: str, label: str, wanted: Callable[[object], bool]) -> Iterator[tuple[Document, int, int]]:
    """Yield each JSON object or array that stands in the text, outermost first."""
    position = 0
    attempts = 0
    while (match := re.compile(r"[{\[]").search(text, position)) and attempts < 500:
        attempts += 1
        try:
            document, end = scan_json(text, label, match.start())
        except DocumentError:
            position = match.start() + 1
            continue
        yield document, match.start(), end
        position = end if wanted(document.value) else match.start() + 1


def _yaml_fences(text: str, label: str) -> Iterator[tuple[Document, int, int]]:
    """Yield the fenced blocks that say they are YAML, or say nothing and are."""
    for match in _FENCE.finditer(text):
        if match[1].lower() not in ("yaml", "yml", ""):
            continue
        line_offset = text.count("\n", 0, match.start(2))
        try:
            yield (parse_yaml(match[2], label, line_offset=line_offset), match.start(2), match.end(2))
        except DocumentError:
            if match[1]:
                raise


def _unread(text: str, label: str, offset: int) -> Finding:
    """Say why the block round `offset` could not be read."""
    line = text.count("\n", 0, offset) + 1
    fallback = Finding(
        "plan-unread",
        "a design is mentioned here but could not be read",
        where=Where(label, line=line),
        fix="give each design as JSON, or in a ```yaml block",
    )
    fence = next((m for m in _FENCE.finditer(text) if m.start(2) <= offset < m.end(2)), None)
    start = fence.start(2) if fence else max(text.rfind("\n[", 0, offset), text.rfind("\n{", 0, offset)) + 1
    body = text[start:].lstrip()
    if body[:1] not in ("{", "["):
        return fallback
    try:
        scan_json(text, label, text.index(body[0], start))
    except DocumentError as exc:
        reason = exc.findings[0]
        return Finding("plan-unread", f"this block of designs is not JSON: {reason.message}", where=reason.where)
    return fallback
