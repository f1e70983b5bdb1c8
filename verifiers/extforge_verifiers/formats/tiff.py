"""Tagged Image File Format (.tif, .tiff), BigTIFF included.

Sources:

- TIFF 6.0 §2: header, image file directories, entries; strips (§3) and tiles (§15) lie inside the file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_directories", "check_signature"]

_MARKS = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
# Entry type -> bytes of one value.
_SIZES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_WIDTH, _HEIGHT = 256, 257
_OFFSETS, _COUNTS = (273, 324), (279, 325)  # of strips and of tiles
_MOST_DIRECTORIES, _MOST_PIECES = 10_000, 2_000_000


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as scan.tiff."""
    if artifact.head(4) not in _MARKS:
        found = list(check_disguise(artifact, "tiff"))
        yield from found
        if not found:
            yield invalid(
                "tiff-signature", f"starts with {artifact.head(4)!r}", offset=0
            )


def check_directories(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a scan cut short: its directory or its strips lie beyond the end."""
    head = artifact.head(16)
    order = "<" if head[:2] == b"II" else ">"
    big = head[2:4] in (b"+\x00", b"\x00+")
    if len(head) < (16 if big else 8):
        yield invalid(
            "tiff-truncated", "the file ends inside its header", offset=len(head)
        )
        return
    (position,) = struct.unpack_from(
        order + ("Q" if big else "L"), head, 8 if big else 4
    )
    seen: set[int] = set()
    while position:
        if position in seen or len(seen) > _MOST_DIRECTORIES:
            yield invalid(
                "tiff-directory",
                "its directories go round in a circle",
                offset=position,
            )
            return
        seen.add(position)
        tags, following = _read_directory(artifact, position, order, big=big)
        if tags is None:
            words = f"a directory lies beyond the end of the file, at {position:,}"
            yield invalid("tiff-truncated", words, offset=artifact.size)
            return
        yield from _check_image(artifact, tags, position)
        position = following
    artifact.facts["frames"] = len(seen)
    if not seen:
        yield invalid("tiff-no-image", "there is no image in it")


def _read_directory(
    artifact: Artifact, position: int, order: str, *, big: bool
) -> tuple[dict[int, list[int]] | None, int]:
    """Return the integer tags of a directory, and where the next one is."""
    counter, entry, value = ("Q", 20, "Q") if big else ("H", 12, "L")
    width = struct.calcsize(counter)
    raw = artifact.read_at(position, width)
    artifact.spend(0)
    if len(raw) < width:
        return None, 0
    (count,) = struct.unpack(order + counter, raw)
    body = artifact.read_at(position + width, min(count, 65_535) * entry)
    if count > 65_535 or len(body) < count * entry:
        return None, 0
    tags = {}
    for index in range(count):
        tag, kind, number = struct.unpack_from(
            order + "HH" + value, body, index * entry
        )
        size = _SIZES.get(kind, 0) * number
        inline = struct.calcsize(order + value)
        field = body[index * entry + entry - inline : (index + 1) * entry]
        if tag in (_WIDTH, _HEIGHT, *_OFFSETS, *_COUNTS) and 0 < number <= _MOST_PIECES:
            data = field
            if size > inline:
                data = artifact.read_at(struct.unpack(order + value, field)[0], size)
            letter = {1: "B", 3: "H", 4: "L", 13: "L", 16: "Q"}.get(kind)
            if letter is not None and len(data) >= size:
                tags[tag] = list(struct.unpack_from(f"{order}{number}{letter}", data))
    link = struct.calcsize(order + value)
    end = artifact.read_at(position + width + count * entry, link)
    return tags, struct.unpack(order + value, end)[0] if len(end) == link else 0


def _check_image(
    artifact: Artifact, tags: dict[int, list[int]], position: int
) -> Iterator[Finding]:
    width, height = tags.get(_WIDTH, [0])[0], tags.get(_HEIGHT, [0])[0]
    if not width or not height:
        yield invalid(
            "tiff-header", f"impossible size: {width} x {height}", offset=position
        )
        return
    artifact.facts.setdefault("width", width)
    artifact.facts.setdefault("height", height)
    if width * height > artifact.limits.pixels:
        words = f"{width} x {height} pixels; the limit is {artifact.limits.pixels:,}"
        yield invalid("budget-exceeded", words, offset=position)
        return
    for offsets, counts in zip(_OFFSETS, _COUNTS, strict=True):
        pieces = zip(tags.get(offsets, []), tags.get(counts, []), strict=False)
        beyond = sum(start + length > artifact.size for start, length in pieces)
        if beyond:
            words = f"{beyond} of {len(tags[offsets])} strips lie beyond the end of the file"
            yield invalid("tiff-truncated", words, offset=artifact.size)
