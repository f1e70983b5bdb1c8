"""JSON texts (.json).

Sources:

- RFC 8259 §8.1: UTF-8, and no byte order mark is added; §4: names should be unique; NaN and Infinity do not exist.

Python's own `json.loads` accepts NaN, UTF-16 and duplicate names, and gives up on deep nesting and on numbers of
more than 4,300 digits; here the first three are found and the last two are no fault of the file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from extforge_verifiers.disguises import posing, recognise
from extforge_verifiers.findings import Finding, Where, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["EXTRA", "another_text", "check_text", "load", "lookup", "not_utf8"]

EXTRA = "text after the end of the value (several values, one a line, are JSON Lines: name it .jsonl)"
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<punctuation>[{}\[\],:])|(?P<string>\"(?:[^\"\\\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*\")"
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null))"
)


class _Refused(ValueError):
    """A name that Python accepts and JSON does not have."""


class _Number(int):
    """Stands for a number too long to be worth computing."""


def _refuse(name: str) -> Any:
    raise _Refused(f"{name} is not JSON")


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < 400 else _Number(0)


def load(artifact: Artifact) -> tuple[Any, list[str]]:
    """Return the value and the names that stand twice in one object.

    Raises:
        ValueError: when it is not JSON (`json.JSONDecodeError` and `UnicodeDecodeError` included).
        RecursionError: when it is nested too deeply to be built.
    """
    twice: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.extend(sorted(name for name, count in counts.items() if count > 1))
        return value

    text = artifact.head(artifact.size).removeprefix(_BOM).decode("utf-8")
    return json.loads(
        text, parse_constant=_refuse, parse_int=_integer, object_pairs_hook=build
    ), twice


def check_text(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a Markdown fence, a half-written answer, or Python's idea of JSON, saved as data.json."""
    head = artifact.head(64)
    try:
        value, twice = load(artifact)
    except RecursionError:
        yield from _check_deep(artifact)
        return
    except UnicodeDecodeError as exc:
        yield not_utf8(head, exc.object[exc.start], exc.start)
        return
    except json.JSONDecodeError as exc:
        yield _syntax(artifact, exc)
        return
    except _Refused as exc:
        yield invalid("json-constant", f"{exc}; most parsers refuse it")
        return
    artifact.facts["type"] = _type_name(value)
    if isinstance(value, (list, dict)):
        artifact.facts["records"] = len(value)
    if head.startswith(_BOM):
        yield warning(
            "json-bom",
            "starts with a byte order mark; many parsers refuse it",
            offset=0,
        )
    for name in twice[:5]:
        yield warning(
            "json-duplicate-key", f"the name {name!r} stands twice in one object"
        )
    if _is_hollow(value):
        yield warning("json-hollow", "holds nothing: every value is empty or null")


def not_utf8(head: bytes, byte: int, offset: int) -> Finding:
    """Return the finding for a byte that UTF-8 does not have there; UTF-16 and UTF-32 are named."""
    name = "UTF-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else ""
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        name = "UTF-32"
    words = f"it is {name} text" if name else f"byte {byte:#04x} at offset {offset}"
    return Finding(
        "json-not-utf8",
        f"not UTF-8: {words}",
        where=Where(offset=offset),
        fix="save it as UTF-8, without a byte order mark",
        failure_id="artifact_format_invalid",
    )


def another_text(artifact: Artifact, where: Where) -> Finding | None:
    """Return what a text really is that is no JSON from `where` on; None when it is nothing else either."""
    head = artifact.head(4096)
    if head.removeprefix(_BOM).lstrip().startswith(b"```"):
        return Finding(
            "json-fenced",
            "JSON inside a Markdown fence",
            where=where,
            fix="keep only what stands between the fences",
            failure_id="artifact_placeholder_output",
        )
    found = recognise(head)
    if found is not None and found.format not in ("json", "txt"):
        return posing(artifact, found, fix=None, where=where)
    return None


def _syntax(artifact: Artifact, exc: json.JSONDecodeError) -> Finding:
    text = exc.doc.strip()
    where = Where(line=exc.lineno, column=exc.colno)
    if not text:
        return invalid("artifact-empty", "the file holds no text")
    if other := another_text(artifact, where):
        return other
    if exc.pos >= len(exc.doc.rstrip()):
        code, words = "json-truncated", f"the text ends too early: {exc.msg}"
    elif exc.msg == "Extra data":
        code, words = "json-syntax", f"not JSON: {EXTRA}"
    else:
        code, words = "json-syntax", f"not JSON: {exc.msg}"
    return invalid(code, words, line=exc.lineno, column=exc.colno)


def _check_deep(artifact: Artifact) -> Iterator[Finding]:
    """Judge a text that is nested too deeply to build, token by token."""
    text = artifact.head(artifact.size).removeprefix(_BOM).decode("utf-8", "replace")
    stack: list[str] = []
    before = ""
    position = 0
    while match := _TOKEN.match(text, position):
        token = match["punctuation"] or "value"
        if match["string"]:
            token = (
                "name"
                if stack and stack[-1] == "{" and before in ("{", ",")
                else "value"
            )
        if not _may_follow(before, token, stack):
            break
        if token in "{[":
            stack.append(token)
        elif token in "}]":
            stack.pop()
            token = "value"
        before, position = token, match.end()
    if stack or before != "value" or text[position:].strip(" \t\n\r"):
        yield invalid(
            "json-syntax",
            "not JSON: the text breaks off or goes wrong here",
            offset=position,
        )
    else:
        artifact.facts["type"] = "object" if text.lstrip()[0] == "{" else "array"
        yield warning("json-deep", "nested too deeply for most parsers")


def _may_follow(before: str, token: str, stack: list[str]) -> bool:
    inside = stack[-1] if stack else ""
    if token in ("value", "{", "["):
        return (
            before == ":"
            if inside == "{"
            else before in (("[", ",") if inside else ("",))
        )
    if token == "name":
        return True
    if token == ":":
        return before == "name"
    if token == ",":
        return bool(inside) and before == "value"
    return inside == {"}": "{", "]": "["}[token] and before in ("value", inside)


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    names: dict[type, str] = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
    }
    return names.get(type(value), "number")


def _is_hollow(value: object) -> bool:
    waiting = [
        value
    ]  # not recursive: the text may be nested as deeply as its parser allows
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif item is not None and item != "":
            return False
    return True


def lookup(value: Any, pointer: str) -> Any:
    """Return what a JSON Pointer (RFC 6901) leads to.

    Raises:
        LookupError: when it leads nowhere.
    """
    for raw in pointer.split("/")[1:] if pointer.startswith("/") else [pointer]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,9}", step):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value[step]
        else:
            raise LookupError(step)
    return value
