"""Read YAML and JSON strictly, and remember where everything stood.

Every document that people write passes through here: plans, manifests, front matter, acceptance files.  What
comes out has JSON types only, whatever the syntax; PyYAML alone would turn `on` into True, `2026-01-01` into a
date, `12:30:45` into 45045 and `017` into 15.

Sources:

- RFC 8259 (JSON); YAML 1.2 §10.3 core schema, without its octal and hexadecimal numbers, `.inf` and `.nan`.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from json import JSONDecodeError, decoder
from typing import Any

from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where

__all__ = [
    "Document",
    "Path",
    "json_path",
    "parse_json",
    "parse_text",
    "parse_yaml",
    "read_document",
    "read_text",
    "scan_json",
]

Path = tuple[str | int, ...]

SIZE_LIMIT = 8 << 20  # bytes
NODE_LIMIT = 200_000  # values, after aliases have been expanded
DEPTH_LIMIT = 100

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_YAML_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_YAML_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# What `json` itself reads strings with, in C; its stub does not list it.
_scan_string: Any = decoder.scanstring  # type: ignore[attr-defined]
_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_INFINITE = (float("inf"), float("-inf"))
_LONGEST_NUMBER = (
    400  # digits; Python refuses to convert more than 4,300, and nobody means them
)
_CONSTANTS = {
    "null": None,
    "Null": None,
    "NULL": None,
    "~": None,
    "": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_STRING = "tag:yaml.org,2002:str"
_PYTHON = "tag:yaml.org,2002:python"
_COLLECTIONS = frozenset(("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


@dataclass(frozen=True, slots=True)
class Document:
    """A value of JSON types, and the line and column where each part of it stands."""

    value: Any
    source: str  # what to call it in messages: a path, or "<stdin>"
    marks: dict[Path, tuple[int, int]] = field(default_factory=dict)  # of values
    key_marks: dict[Path, tuple[int, int]] = field(
        default_factory=dict
    )  # of mapping keys

    def where(self, path: Path, *, key: bool = False) -> Where:
        """Return the place of a value (or of its key); of its nearest ancestor when it is not there."""
        marks = self.key_marks if key else self.marks
        mark = marks.get(path)
        known = path
        while mark is None and known:
            mark = self.marks.get(known)
            known = known[:-1]
        line, column = mark or self.marks.get((), (1, 1))
        return Where(self.source, json_path(path), line, column)


def json_path(path: Path) -> str:
    """Return `$.designs[0].kind` for ("designs", 0, "kind")."""
    text = "$"
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}"
        else:
            text += f"[{step!a}]"
    return text


def read_text(data: bytes, source: str) -> str:
    """Return the text of a document: UTF-8, with or without a byte order mark.

    Raises:
        DocumentError: when it is too large, or not UTF-8.
    """
    if len(data) > SIZE_LIMIT:
        words = f"{len(data):,} bytes; a document may have {SIZE_LIMIT:,}"
        raise DocumentError.because("document-too-large", words, Where(source))
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        words = f"not UTF-8: byte {data[exc.start]:#04x}"
        where = Where(source, line=line, offset=exc.start)
        raise DocumentError.because(
            "document-encoding", words, where, "save the file as UTF-8"
        ) from None


def read_document(data: bytes, source: str) -> Document:
    """Parse JSON or YAML; text that starts like JSON and is JSON is read as JSON.

    Raises:
        DocumentError: with every problem that could be found.
    """
    return parse_text(read_text(data, source), source)


def parse_text(text: str, source: str) -> Document:
    """Parse JSON or YAML from a string; see `read_document`.  A source named `*.json` is JSON only."""
    if source.lower().endswith(".json"):
        return parse_json(text, source)
    if text.lstrip()[:1] not in ("{", "["):
        return parse_yaml(text, source)
    try:
        return parse_json(text, source)
    except DocumentError as as_json:
        if as_json.findings[0].code != "document-syntax":
            raise
        try:
            return parse_yaml(text, source)  # YAML's flow style starts like JSON
        except DocumentError as as_yaml:
            if as_yaml.findings[0].code == "document-syntax":
                raise as_json from None
            raise  # it is YAML: what is wrong with it is not that it is no JSON


class _Lines:
    """Turns offsets into (line, column), both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(m.end() for m in re.finditer(r"\n", text))]

    def mark(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


# --------------------------------------------------------------------------- JSON


class _Syntax(Exception):
    def __init__(
        self, message: str, offset: int, code: str = "document-syntax"
    ) -> None:
        super().__init__(message, offset, code)
        self.message, self.offset, self.code = message, offset, code


def parse_json(
    text: str, source: str, *, start: int = 0, line_offset: int = 0
) -> Document:
    """Parse one JSON value; duplicate names, NaN and trailing text are errors.

    Args:
        text: the text.
        source: what to call it in messages.
        start: the offset where the value begins.
        line_offset: added to every line number, for a text cut out of a larger one.

    Raises:
        DocumentError: at the first syntax error, or with all duplicate names.
    """
    document, end = scan_json(text, source, start, line_offset)
    rest = _JSON_SPACE.match(text, end)
    if rest is not None and rest.end() < len(text):
        line, column = _Lines(text).mark(rest.end())
        where = Where(source, line=line + line_offset, column=column)
        words = "more text after the end of the JSON value"
        raise DocumentError.because("document-syntax", words, where)
    return document


def scan_json(
    text: str, source: str, start: int = 0, line_offset: int = 0
) -> tuple[Document, int]:
    """Parse the JSON value that begins at `start`; return it and the offset after it."""
    reader = _JsonReader(text, source, line_offset)
    try:
        value, end = reader.read(reader.skip(start), ())
    except _Syntax as exc:
        where = reader.where(exc.offset)
        raise DocumentError.because(exc.code, exc.message, where) from None
    if reader.duplicates:
        raise DocumentError(source, reader.duplicates)
    return Document(value, source, reader.marks, reader.key_marks), end


class _JsonReader:
    def __init__(self, text: str, source: str, line_offset: int) -> None:
        self.text, self.source, self.line_offset = text, source, line_offset
        self.lines = _Lines(text)
        self.marks: dict[Path, tuple[int, int]] = {}
        self.key_marks: dict[Path, tuple[int, int]] = {}
        self.duplicates: list[Finding] = []

    def mark(self, offset: int) -> tuple[int, int]:
        line, column = self.lines.mark(offset)
        return line + self.line_offset, column

    def where(self, offset: int, path: Path | None = None) -> Where:
        line, column = self.mark(offset)
        return Where(
            self.source, json_path(path) if path is not None else None, line, column
        )

    def skip(self, offset: int) -> int:
        match = _JSON_SPACE.match(self.text, offset)
        return match.end() if match else offset

    def read(self, offset: int, path: Path) -> tuple[Any, int]:
        if len(path) > DEPTH_LIMIT:
            raise _Syntax(
                f"nested more than {DEPTH_LIMIT} levels deep",
                offset,
                "document-too-deep",
            )
        if len(self.marks) > NODE_LIMIT:
            raise _Syntax(
                f"more than {NODE_LIMIT:,} values", offset, "document-too-large"
            )
        self.marks[path] = self.mark(offset)
        match self.text[offset : offset + 1]:
            case "{":
                return self._read_object(offset + 1, path)
            case "[":
                return self._read_array(offset + 1, path)
            case '"':
                return self._read_string(offset)
            case "":
                raise _Syntax("the text ends where a value should stand", offset)
            case _:
                return self._read_scalar(offset)

    def _read_scalar(self, offset: int) -> tuple[Any, int]:
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self.text.startswith(word, offset):
                return value, offset + len(word)
        number = _JSON_NUMBER.match(self.text, offset)
        if number is None:
            raise _Syntax(
                f"expected a value, found {self.text[offset : offset + 12]!r}", offset
            )
        if number.end() - offset > _LONGEST_NUMBER:
            raise _Syntax(
                f"a number of more than {_LONGEST_NUMBER} digits",
                offset,
                "document-number",
            )
        numeric = float(number[0]) if number[1] or number[2] else int(number[0])
        if numeric in _INFINITE:
            raise _Syntax(
                f"{number[0]} is too large for a number", offset, "document-number"
            )
        return numeric, number.end()

    def _read_string(self, offset: int) -> tuple[str, int]:
        try:
            value, end = _scan_string(self.text, offset + 1, True)  # noqa: FBT003 -- takes no keywords
        except JSONDecodeError as exc:
            raise _Syntax(exc.msg, exc.pos) from None
        if _SURROGATE.search(value):
            raise _Syntax(
                "half a surrogate pair is not text", offset, "document-character"
            )
        return value, end

    def _read_array(self, offset: int, path: Path) -> tuple[list[Any], int]:
        items: list[Any] = []
        offset = self.skip(offset)
        if self.text[offset : offset + 1] == "]":
            return items, offset + 1
        while True:
            item, offset = self.read(self.skip(offset), (*path, len(items)))
            items.append(item)
            offset = self.skip(offset)
            if self.text[offset : offset + 1] == "]":
                return items, offset + 1
            if self.text[offset : offset + 1] != ",":
                raise _Syntax(
                    f"expected ',' or ']' in the array that starts at line {self.marks[path][0]}",
                    offset,
                )
            offset += 1

    def _read_object(self, offset: int, path: Path) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        offset = self.skip(offset)
        if self.text[offset : offset + 1] == "}":
            return items, offset + 1
        while True:
            offset = self.skip(offset)
            if self.text[offset : offset + 1] != '"':
                raise _Syntax("expected a name in double quotes", offset)
            key_at = offset
            key, offset = self._read_string(offset)
            here = (*path, key)
            if key in items:
                first = self.key_marks[here][0]
                words = f"the key {key!r} stands twice (first at line {first})"
                self.duplicates.append(
                    Finding(
                        "document-duplicate-key", words, where=self.where(key_at, here)
                    )
                )
            else:
                self.key_marks[here] = self.mark(key_at)
            offset = self.skip(offset)
            if self.text[offset : offset + 1] != ":":
                raise _Syntax(f"expected ':' after the name {key!r}", offset)
            items[key], offset = self.read(self.skip(offset + 1), here)
            offset = self.skip(offset)
            if self.text[offset : offset + 1] == "}":
                return items, offset + 1
            if self.text[offset : offset + 1] != ",":
                raise _Syntax(
                    f"expected ',' or '}}' in the object that starts at line {self.marks[path][0]}",
                    offset,
                )
            offset += 1


# --------------------------------------------------------------------------- YAML


def parse_yaml(text: str, source: str, *, line_offset: int = 0) -> Document:
    """Parse one YAML document into JSON types; see the module's docstring for how scalars are read.

    Raises:
        DocumentError: at the first syntax error, or with all other problems (duplicate keys, tags, aliases
            that lead back to themselves or multiply without end).
    """
    import yaml  # noqa: PLC0415 -- 20 ms that JSON and artifacts should not pay

    try:
        # libyaml is ten times faster; where PyYAML was built without it, its own parser reads the same language.
        root = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = (
            Where(source, line=mark.line + 1 + line_offset, column=mark.column + 1)
            if mark
            else Where(source)
        )
        words = ", ".join(str(part) for part in (exc.context, exc.problem) if part)
        fix = _yaml_fix(text, words)
        raise DocumentError.because("document-syntax", words, where, fix) from None
    except yaml.YAMLError as exc:  # a character that YAML forbids
        position = getattr(exc, "position", None)
        line = (
            text.count("\n", 0, position) + 1 + line_offset
            if isinstance(position, int)
            else None
        )
        character = getattr(exc, "character", None)
        shown = (
            f"U+{ord(character) if isinstance(character, str) else character:04X}"
            if character is not None
            else ""
        )
        words = f"a character that YAML does not allow: {shown}".rstrip(": ")
        where = Where(source, line=line)
        raise DocumentError.because("document-character", words, where) from None
    except RecursionError:
        words = f"nested more than {DEPTH_LIMIT} levels deep"
        raise DocumentError.because("document-too-deep", words, Where(source)) from None
    builder = _YamlBuilder(source, line_offset)
    if root is None:
        return Document(None, source, {(): (1 + line_offset, 1)})
    value = builder.build(root, ())
    if builder.findings:
        raise DocumentError(source, builder.findings)
    return Document(value, source, builder.marks, builder.key_marks)


def _yaml_fix(text: str, words: str) -> str | None:
    if "\t" in text and ("tab" in words.lower() or "\\t" in words):
        return "indent with spaces; YAML does not allow tabs"
    if "mapping values are not allowed" in words:
        return 'put quotes round a value that contains ": "'
    return None


class _YamlBuilder:
    """Turns composed nodes into JSON types, counting what aliases multiply."""

    def __init__(self, source: str, line_offset: int) -> None:
        self.source, self.line_offset = source, line_offset
        self.marks: dict[Path, tuple[int, int]] = {}
        self.key_marks: dict[Path, tuple[int, int]] = {}
        self.findings: list[Finding] = []
        self._nodes = 0
        self._open: set[int] = set()

    def _where(self, node: Any, path: Path) -> Where:
        line, column = self._mark(node)
        return Where(self.source, json_path(path), line, column)

    def _mark(self, node: Any) -> tuple[int, int]:
        return node.start_mark.line + 1 + self.line_offset, node.start_mark.column + 1

    def _report(
        self, code: str, words: str, node: Any, path: Path, fix: str | None = None
    ) -> None:
        self.findings.append(
            Finding(code, words, where=self._where(node, path), fix=fix)
        )

    def build(self, node: Any, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > NODE_LIMIT:
            if self._nodes == NODE_LIMIT + 1:
                words = f"more than {NODE_LIMIT:,} values once aliases are expanded"
                self._report("document-too-large", words, node, path)
            return None
        if len(path) > DEPTH_LIMIT:
            self._report(
                "document-too-deep",
                f"nested more than {DEPTH_LIMIT} levels deep",
                node,
                path,
            )
            return None
        if id(node) in self._open:
            self._report(
                "document-alias-loop", "an alias that leads back to itself", node, path
            )
            return None
        self.marks[path] = self._mark(node)
        kind = type(node).__name__
        if kind == "ScalarNode":
            return self._scalar(node, path)
        if node.tag not in _COLLECTIONS:
            self._report(
                "document-tag", f"tags are not allowed here: {node.tag}", node, path
            )
        self._open.add(id(node))
        try:
            if kind == "SequenceNode":
                return [
                    self.build(item, (*path, index))
                    for index, item in enumerate(node.value)
                ]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if self._nodes > NODE_LIMIT:
                break
            key = key_node.value if type(key_node).__name__ == "ScalarNode" else None
            if key is None:
                self._report(
                    "document-key", "a key must be a plain text", key_node, path
                )
                continue
            here = (*path, key)
            if key == "<<" and key_node.style in (None, ""):
                words = "merge keys (<<) are not allowed here"
                self._report(
                    "document-tag", words, key_node, here, "write the keys out"
                )
                continue
            if here in self.key_marks and key in items:
                words = f"the key {key!r} stands twice (first at line {self.key_marks[here][0]})"
                self._report("document-duplicate-key", words, key_node, here)
                continue
            self.key_marks[here] = self._mark(key_node)
            items[key] = self.build(value_node, here)
        return items

    def _scalar(self, node: Any, path: Path) -> Any:
        text = str(node.value)
        if _SURROGATE.search(text):
            self._report(
                "document-character", "half a surrogate pair is not text", node, path
            )
        explicit_text = node.tag == _STRING and (
            text in _CONSTANTS or _YAML_INT.fullmatch(text)
        )
        foreign = not node.tag.startswith("tag:yaml.org,2002:") or node.tag.startswith(
            _PYTHON
        )
        quoted = node.style not in (
            None,
            "",
        )  # libyaml writes "" where PyYAML writes None
        if foreign or (quoted and node.tag != _STRING):
            self._report(
                "document-tag", f"tags are not allowed here: {node.tag}", node, path
            )
        if quoted or explicit_text:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if len(text) > _LONGEST_NUMBER:
            return text
        if _YAML_INT.fullmatch(text):
            return int(text)
        if _YAML_FLOAT.fullmatch(text):
            number = float(text)
            if number in _INFINITE:
                self._report(
                    "document-number", f"{text} is too large for a number", node, path
                )
            return number
        return text
