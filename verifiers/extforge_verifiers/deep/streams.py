"""JSON too large to hold in memory, read as a stream of events.

The contract tier builds the whole value, which takes ten times the file's size.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from extforge_verifiers.findings import Finding, Where, invalid, warning
from extforge_verifiers.formats.json import EXTRA, another_text, not_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["check_json"]

_BOM = b"\xef\xbb\xbf"
_TYPES = {"start_map": "object", "start_array": "array"}
_OFTEN = 16_384  # events between two looks at the clock
_STEP = 1 << 18  # bytes handed to the parser at once
_PATIENCE = 5.0  # seconds for finding the place of an error in its step
_DEEP = 1000  # levels: more than Python's own parser bears by default
_CONSTANTS = (b"NaN", b"Infinity", b"-Infinity")
_FOLLOWING = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character


class _Refused(Exception):
    """The parser gave up; the words are its own."""


class _Source:
    """The bytes of an artifact in steps; from `slow` on in single bytes, which tells where a parser gives up.

    A parser may copy a long text once for every step of it, so that is given up after a while: the place is then the
    last one known.
    """

    def __init__(self, artifact: Artifact, start: int, slow: int) -> None:
        self.artifact, self.position, self.slow = artifact, start, slow
        self.before = start  # where the last step began
        self.until = time.monotonic() + _PATIENCE

    def read(self, count: int = -1) -> bytes:
        self.artifact.spend(0)
        if self.position < self.slow:
            self.before, self.until = self.position, time.monotonic() + _PATIENCE
        elif time.monotonic() < self.until:
            self.before, count = self.position, 1
        piece = self.artifact.read_at(self.position, count)
        self.position += len(piece)
        return piece


def check_json(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a large text that stops, or goes wrong, somewhere inside."""
    head = artifact.head(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        yield not_utf8(head, head[0], 0)
        return
    start = len(_BOM) if head.startswith(_BOM) else 0
    source = _Source(artifact, start, artifact.size)
    try:
        hollow, depth = _read(artifact, source)
    except _Refused as exc:
        yield _wrong(artifact, head, start, source.before, str(exc))
        return
    if start:
        words = "starts with a byte order mark; many parsers refuse it"
        yield warning("json-bom", words, offset=0)
    if depth > _DEEP:
        yield warning("json-deep", "nested too deeply for most parsers")
    if hollow:
        yield warning("json-hollow", "holds nothing: every value is empty or null")


def _read(artifact: Artifact, source: _Source) -> tuple[bool, int]:
    """Read all events; return whether every value is empty, and how deep it goes."""
    import ijson  # noqa: PLC0415 -- needed for large files only

    depth = deepest = records = 0
    kind = ""
    hollow = True
    events = ijson.basic_parse(source, buf_size=_STEP, use_float=True)
    try:
        for number, (event, value) in enumerate(events):
            if not number % _OFTEN:
                artifact.spend(0)
            kind = kind or _TYPES.get(event, event)
            if event in ("end_map", "end_array"):
                depth -= 1
                continue
            in_list = kind == "array" and event != "map_key"
            records += depth == 1 and (in_list or event == "map_key")
            if event in _TYPES:
                depth += 1
                deepest = max(deepest, depth)
            elif hollow and event != "map_key":
                hollow = value is None or value == ""
    except (ijson.JSONError, UnicodeDecodeError, OverflowError) as exc:
        raise _Refused(_first_line(exc)) from exc
    artifact.facts["type"] = kind
    if kind in ("object", "array"):
        artifact.facts["records"] = records
    return hollow, deepest


def _wrong(
    artifact: Artifact, head: bytes, start: int, step: int, words: str
) -> Finding:
    """Return what is wrong, and where: the step in which the parser gave up is read again, byte by byte."""
    source = _Source(artifact, start, step)
    try:
        _read(artifact, source)
    except _Refused as exc:
        words = str(exc)
    offset = source.before
    line, column = _place(artifact, offset)
    if other := another_text(artifact, Where(line=line, column=column)):
        return other
    near = artifact.read_at(max(offset - 1, 0), 12)
    for name in _CONSTANTS:
        if near.startswith(name) or near[1:].startswith(name):
            message = f"{name.decode()} is not JSON; most parsers refuse it"
            return invalid("json-constant", message, line=line, column=column)
    if "UTF8" in words or "utf-8" in words.lower():
        return not_utf8(head, artifact.read_at(offset, 1)[0], offset)
    if offset >= artifact.size or "premature EOF" in words:
        code, message = "json-truncated", f"the text ends too early: {words}"
    elif "trailing garbage" in words.lower() or "additional data" in words.lower():
        code, message = "json-syntax", f"not JSON: {EXTRA}"
    else:
        code, message = "json-syntax", f"not JSON: {words}"
    return invalid(code, message, line=line, column=column)


def _place(artifact: Artifact, offset: int) -> tuple[int, int]:
    """Return the line and the column of a byte, both from 1."""
    line = column = 1
    position = 0
    for chunk in artifact.chunks():
        piece = chunk[: offset - position]
        position += len(chunk)
        line += piece.count(b"\n")
        last = piece.rpartition(b"\n")
        column = 1 if last[1] else column
        column += len(last[2].translate(None, _FOLLOWING))
        if position >= offset:
            break
    return line, column


def _first_line(exc: Exception) -> str:
    """Return what a parser says, without its drawing of the place; the C ones say it in bytes."""
    said = exc.args[0] if exc.args else exc
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text.strip().partition("\n")[0]
