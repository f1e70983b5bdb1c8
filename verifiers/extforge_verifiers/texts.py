"""Plain text, as bytes: does it decode, and is it text at all?"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["PLACEHOLDERS", "check_text", "encoding", "lines", "placeholder"]

# What programs show in a place that nobody filled, and what people type when they mean to come back.
PLACEHOLDERS = (
    "click to add",
    "lorem ipsum",
    "单击此处",
    "待补充",
    "此处填写",
    "待下游转换",
    "to be converted downstream",
    "{{",
    "todo:",
)


def placeholder(text: str) -> str | None:
    """Return the placeholder that a text still has, or None."""
    folded = text.casefold()
    return next((words for words in PLACEHOLDERS if words in folded), None)


def check_text(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a binary file, or nothing at all, under the name of a text."""
    head = artifact.head(4096)
    if not head.strip():
        yield invalid(
            "artifact-empty", f"the file holds no text ({artifact.size} bytes)"
        )
        return
    utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\x00" in head and not utf16:
        found = list(check_disguise(artifact, "text"))
        yield from found or [
            invalid(
                "text-binary", "a binary file: it has zero bytes", offset=head.index(0)
            )
        ]
        return
    decoder = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8")()
    position = 0
    try:
        for chunk in artifact.chunks():
            decoder.decode(chunk)
            position += len(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as exc:
        at = position + exc.start
        yield invalid(
            "text-encoding",
            f"not {'UTF-16' if utf16 else 'UTF-8'} at byte {at:,}",
            offset=at,
        )
        return
    if marker := placeholder(head.decode("utf-16" if utf16 else "utf-8", "replace")):
        yield warning("placeholder-text", f"it still has placeholder text: {marker!r}")


def encoding(artifact: Artifact) -> str:
    """Return the encoding of a text that `check_text` passed."""
    return "utf-16" if artifact.head(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def lines(artifact: Artifact, limit: int = 1 << 20) -> Iterator[str]:
    """Yield the lines of a text that `check_text` passed; a line longer than `limit` characters comes in pieces."""
    decoder = codecs.getincrementaldecoder(encoding(artifact))()
    rest = ""
    for chunk in artifact.chunks():
        found = (rest + decoder.decode(chunk)).split("\n")
        rest = found.pop()
        yield from (line.removesuffix("\r") for line in found)
        if len(rest) > limit:
            yield rest
            rest = ""
    if rest:
        yield rest
