"""Plain text, as bytes: does it decode, and is it text at all?"""

from __future__ import annotations

import codecs
import io
import re
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import Finding, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = [
    "PLACEHOLDERS",
    "SOURCE",
    "check_encoding",
    "check_placeholders",
    "check_text",
    "encoding",
    "lines",
    "pieces",
    "placeholder",
]

# What programs show in a place that nobody filled, and what people type when they mean to come back.
PLACEHOLDERS = (
    "click to add",
    "lorem ipsum",
    "单击此处",
    "待补充",
    "此处填写",
    "待下游转换",
    "to be converted downstream",
)
# A name in braces, but no `${{ secrets.X }}` and no `\\frac{{a}}{b}`; a note of what to do, but no heading "Todo:".
_UNFILLED = re.compile(
    r"(?<![\w$}^\\{])\{\{[ \t]*[#/-]?[ \t]*[^\W\d][^{}\\\n]{0,60}\}\}"
)
_TODO = re.compile(r"todo:[*_ \t]*\w", re.IGNORECASE)
# Lines that stand in the source of a program, and in no page and no table.
SOURCE = re.compile(
    r"(?m)^(#!/.*|<\?php.*|import [\w.]+( as \w+)?;?|from [\w.]+ import [\w.,* (]+"
    r"|(async )?def \w+\(.*|class \w+.*[:{]|print\(.*\)|if __name__ ==.*|(const|let|var) \w+ = .*"
    r"|(export )?(async )?function \w+\(.*|package [\w.]+;?|#include [<\"].*|using [\w.]+;)[ \t\r]*$"
)


def placeholder(text: str, *, braces: bool = True) -> str | None:
    """Return the placeholder that a text still has, or None; without `braces`, `{{ name }}` is none."""
    folded = text.casefold()
    known = next((words for words in PLACEHOLDERS if words in folded), None)
    if known is None and (_TODO.search(text) is not None):
        return "todo:"
    if known is None and braces and (found := _UNFILLED.search(text)) is not None:
        return found[0]
    return known


def check_text(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a binary file, or nothing at all, under the name of a text."""
    found = list(check_encoding(artifact))
    yield from found
    if not found:
        head = artifact.head(4096).decode(encoding(artifact), "replace")
        yield from check_placeholders(head)


def check_placeholders(
    text: str, *, braces: bool = True, part: str | None = None
) -> Iterator[Finding]:
    """Fake: a text, or the text of this part of a file, that somebody meant to fill in."""
    if marker := placeholder(text, braces=braces):
        words = f"{part or 'it'} still has placeholder text: {marker!r}"
        yield warning("placeholder-text", words, member=part)


def check_encoding(artifact: Artifact, declared: str = "") -> Iterator[Finding]:
    """Fake: a binary file, or nothing at all, under the name of a text; `declared` is the encoding it says it has."""
    head = artifact.head(4096)
    if not head.strip():
        yield invalid(
            "artifact-empty", f"the file holds no text ({artifact.size} bytes)"
        )
        return
    utf16 = encoding(artifact) == "utf-16"
    if b"\x00" in head and not utf16:
        found = list(check_disguise(artifact, "text"))
        yield from found or [_binary(head.index(0))]
        return
    name = "utf-16" if utf16 else declared or "utf-8"
    decoder = codecs.getincrementaldecoder(name)()
    position = 0
    try:
        for chunk in artifact.chunks():
            if "\x00" in decoder.decode(chunk):
                yield _binary(position + max(chunk.find(0), 0))
                return
            position += len(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as exc:
        at = position + exc.start
        words = f"not {name.upper()} at byte {at:,}"
        if name == declared:
            words += ", although the file declares it"
        yield invalid("text-encoding", words, offset=at)


def _binary(offset: int) -> Finding:
    return invalid("text-binary", "a binary file: it has zero bytes", offset=offset)


def encoding(artifact: Artifact) -> str:
    """Return the encoding of a text that `check_text` passed."""
    return "utf-16" if artifact.head(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def pieces(artifact: Artifact, name: str, *, returns: bool = False) -> Iterator[str]:
    """Yield the text in pieces, decoded from the encoding of that name; with `returns`, lines end as Python's do."""
    plain = codecs.getincrementaldecoder(name)(errors="replace")
    decoder = io.IncrementalNewlineDecoder(plain, translate=True) if returns else plain
    for chunk in artifact.chunks():
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def lines(
    artifact: Artifact, limit: int = 1 << 20, *, returns: bool = False
) -> Iterator[str]:
    """Yield the lines of a text that `check_text` passed; a line longer than `limit` characters comes in pieces.

    With `returns`, a carriage return alone ends a line too.
    """
    rest = ""
    for piece in pieces(artifact, encoding(artifact), returns=returns):
        found = (rest + piece).split("\n")
        rest = found.pop()
        yield from (line.removesuffix("\r") for line in found)
        if len(rest) > limit:
            yield rest
            rest = ""
    if rest:
        yield rest
