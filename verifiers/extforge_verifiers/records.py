"""The record of a run: which tool claimed what, and what the assistant said in the end.

Read are only records that were produced for real and kept as samples in the tests:

- results: what tools returned, as JSON (one, or a list) or JSON Lines; each alone or as `{tool, result}`.
- transcript: OpenAI chat messages, as a list, `{messages: [...]}`, or JSON Lines.
- spans: OTLP JSON Lines as openJiuwen's `file` exporter writes them (`openjiuwen[observability]` 0.1.19);
  attributes of OpenTelemetry's GenAI conventions.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from extforge_verifiers.artifact import Artifact, ArtifactUnreadable
from extforge_verifiers.errors import VerifierError
from extforge_verifiers.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Claim", "Record", "RecordUnreadable", "read_record", "recognise_record"]

_LIMIT = 64 << 20  # bytes of a JSON record, or of one line
_PEEK = 4 << 20  # bytes read to recognise one
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
_RESULT_KEYS = frozenset(("path", "absolute_path", "data", "error"))
_NAME_KEYS = ("tool", "tool_name", "name")
_HINTS = (
    b'"success"',
    b'"assistant"',
    b'"tool_calls"',
    b'"tool_call_id"',
    b'"resourceSpans"',
)


class RecordUnreadable(VerifierError):
    """The file is no record of a run, or cannot be read."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one tool call returned, or one path that the assistant's text names."""

    by: str  # "tool quarterly_deck", "assistant"
    value: Any
    where: Where
    started: float | None = None  # seconds since the epoch, when the record knows


@dataclass(slots=True)
class Record:
    """A run, read."""

    path: str
    format: str  # "results", "transcript", "spans"
    claims: list[Claim] = field(default_factory=list)  # in the order they were made
    answer: Claim | None = None  # the assistant's final text
    problems: list[Finding] = field(default_factory=list)
    calls: int = 0

    def unreadable(self, words: str, where: Where) -> None:
        """Remember a piece that could not be read: it makes the verdict undetermined, not good."""
        self.problems.append(
            Finding("record-unreadable", words, Severity.WARNING, where)
        )


def recognise_record(path: str) -> str | None:
    """Return "result" for one tool's result, "run" for the record of a run, None for anything else."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".json", ".jsonl", ".ndjson") or not os.path.isfile(path):
        return None  # a pipe might never answer
    try:
        with open(path, "rb") as stream:
            if suffix == ".json":
                if os.fstat(stream.fileno()).st_size > _LIMIT or not _has_hint(stream):
                    return None
                stream.seek(0)
                head = stream.read(_LIMIT)
            else:
                return "run" if any(map(_classify_line, _lines(stream))) else None
        form = _classify(value := json.loads(head))
    except (OSError, ValueError, RecursionError):
        return None
    if form == "results" and isinstance(value, dict) and suffix == ".json":
        return "result"
    return "run" if form else None


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the first lines with a word of a record in them: a log may begin with something else."""
    left = _LIMIT
    while left > 0 and (line := stream.readline(left)):
        left -= len(line)
        if any(hint in line for hint in _HINTS):
            yield line


def _classify_line(line: bytes) -> str | None:
    try:
        return _classify(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _has_hint(stream: BinaryIO) -> bool:
    """Look for a word of a record chunk by chunk: most JSON files are none, and are not read into memory for it."""
    before = b""
    while chunk := stream.read(_PEEK):
        if any(hint in before + chunk for hint in _HINTS):
            return True
        before = chunk[-32:]  # a word may lie across two chunks
    return False


def _classify(value: Any) -> str | None:
    if isinstance(value, list):
        return _classify(value[0]) if value and isinstance(value[0], dict) else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("resourceSpans"), list):
        return "spans"
    if isinstance(value.get("messages"), list) or _role(value):
        return "transcript"
    inner = value["result"] if isinstance(value.get("result"), dict) else value
    if isinstance(inner.get("success"), bool) and inner.keys() & _RESULT_KEYS:
        return "results"
    return None


def read_record(path: str) -> Record:
    """Return the claims in a record.

    Raises:
        RecordUnreadable: when it is none, or cannot be read at all.
    """
    entries = list(_entries(path))
    values = [value for value, _ in entries if not isinstance(value, Finding)]
    form = next((f for f in map(_classify, values) if f), None)
    if form is None:
        raise RecordUnreadable(
            f"{path}: no tool results, no chat messages and no spans in it"
        )
    record = Record(path, form)
    record.problems += [value for value, _ in entries if isinstance(value, Finding)]
    pairs = [(v, w) for v, w in entries if not isinstance(v, Finding)]
    _READERS[form](record, pairs)
    return record


def _entries(path: str) -> Iterator[tuple[Any, Where]]:
    """Yield the values of a JSON or JSON Lines file; a Finding in place of one that cannot be read."""
    try:
        with Artifact(path) as artifact:  # not open(): a pipe might never answer
            stream = artifact.stream
            stream.seek(0)
            if path.lower().endswith(".json"):
                data = stream.read(_LIMIT + 1)
                if len(data) > _LIMIT:
                    raise RecordUnreadable(f"{path}: larger than {_LIMIT:,} bytes")
                yield json.loads(data), Where(path)
                return
            number = 0
            while line := stream.readline(_LIMIT):
                number += 1
                if not line.strip():
                    continue
                where = Where(path, line=number)
                try:
                    yield json.loads(line), where
                except (ValueError, RecursionError) as exc:
                    words = f"this line is not JSON: {exc}"
                    found = Finding("record-unreadable", words, Severity.WARNING, where)
                    yield found, where
    except (ArtifactUnreadable, OSError) as exc:
        raise RecordUnreadable(f"{path}: cannot be read: {exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise RecordUnreadable(f"{path}: not JSON: {exc}") from exc


def _numbered(
    pairs: list[tuple[Any, Where]], key: str | None = None
) -> Iterator[tuple[Any, Where]]:
    """Yield the entries, and the items of those that are lists (or hold one under `key`), with their places."""
    for value, where in pairs:
        items = value.get(key) if isinstance(value, dict) and key else value
        if not isinstance(items, list):
            yield value, where
            continue
        prefix = f"$.{key}" if isinstance(value, dict) else "$"
        for index, item in enumerate(items):
            place = f"{prefix}[{index}]"
            yield item, Where(where.path, json_path=place, line=where.line)


def _by(name: object) -> str:
    return f"tool {name}" if isinstance(name, str) and name else "tool"


# --------------------------------------------------------------------------- results


def _read_results(record: Record, pairs: list[tuple[Any, Where]]) -> None:
    for value, where in _numbered(pairs):
        record.calls += 1
        inner, by = value, "tool"
        if isinstance(value, dict) and "result" in value and "success" not in value:
            inner = value["result"]
        if isinstance(value, dict):
            by = _by(next((value[k] for k in _NAME_KEYS if value.get(k)), ""))
        record.claims.append(Claim(by, inner, where))


# --------------------------------------------------------------------------- transcripts


def _read_transcript(record: Record, pairs: list[tuple[Any, Where]]) -> None:
    names: dict[str, str] = {}
    for message, where in _numbered(pairs, "messages"):
        role = _role(message)
        if role is None:
            record.unreadable("not a chat message", where)
            continue
        text = _text(message.get("content"))
        if role == "assistant":
            calls = message.get("tool_calls")
            for call in calls if isinstance(calls, list) else []:
                function = call.get("function") if isinstance(call, dict) else None
                if isinstance(function, dict):
                    names[str(call.get("id"))] = str(function.get("name"))
            if text.strip():
                record.answer = Claim("assistant", text, where)
        elif role in ("tool", "function"):
            record.calls += 1
            identity = str(message.get("tool_call_id"))
            name = names.get(identity) or message.get("name")
            record.claims.append(Claim(_by(name), text, where))


def _role(message: Any) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) and role in _ROLES else None


def _text(content: Any) -> str:
    """Return the text of a message: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


# --------------------------------------------------------------------------- spans


def _read_spans(record: Record, pairs: list[tuple[Any, Where]]) -> None:
    spans = sorted(_spans(record, pairs), key=lambda found: found[0])
    for _, attributes, where, started in spans:
        operation = attributes.get("gen_ai.operation.name")
        if operation == "execute_tool":
            record.calls += 1
            by = _by(attributes.get("gen_ai.tool.name"))
            result = attributes.get("gen_ai.tool.call.result", "")
            record.claims.append(Claim(by, result, where, started))
        elif operation == "chat" and (text := _answer(attributes)):
            record.answer = Claim("assistant", text, where)


def _spans(
    record: Record, pairs: list[tuple[Any, Where]]
) -> Iterator[tuple[int, dict[str, str], Where, float]]:
    """Yield (end, attributes, place, start) of every span; start in seconds since the epoch."""
    for value, where in pairs:
        try:
            for resource in value["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        attributes = {
                            item["key"]: item["value"].get("stringValue", "")
                            for item in span.get("attributes", [])
                        }
                        start = int(span["startTimeUnixNano"]) / 1e9
                        yield int(span["endTimeUnixNano"]), attributes, where, start
        except (TypeError, KeyError, ValueError, AttributeError):
            record.unreadable("not an OTLP span", where)


def _answer(attributes: dict[str, str]) -> str:
    try:
        messages = json.loads(attributes.get("gen_ai.output.messages", "[]"))
        parts = [part for message in messages for part in message["parts"]]
        return "\n".join(part["content"] for part in parts if part["type"] == "text")
    except (TypeError, KeyError, ValueError):
        return ""


_READERS = {
    "results": _read_results,
    "transcript": _read_transcript,
    "spans": _read_spans,
}
