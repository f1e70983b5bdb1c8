"""JPEG images (.jpg, .jpeg).

Sources:

- ITU-T T.81 (ISO/IEC 10918-1) §B.1.1 markers, §B.2 segments: from SOI through the scans to EOI.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_segments", "check_signature", "end_of_scan"]

_SOI, _EOI, _SOS, _DRI = 0xD8, 0xD9, 0xDA, 0xDD
_SEQUENTIAL = (0xC0, 0xC1)
_FILL = re.compile(rb"(?:\xff(?=\xff)|\xff[\x01\xd0-\xd7])++")
_RESTART = re.compile(rb"\xff[\xd0-\xd7]")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # one that ends a scan
_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))  # markers without a length


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as photo.jpg."""
    if artifact.head(3) != b"\xff\xd8\xff":
        found = list(check_disguise(artifact, "jpg"))
        yield from found
        if not found:
            yield invalid(
                "jpg-signature", f"starts with {artifact.head(4)!r}", offset=0
            )


def check_segments(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a photo cut short: the picture ends before its end marker."""
    position = 2
    scans = interval = units = components = 0
    while True:
        head = artifact.read_at(position, 4)
        artifact.spend(0)
        if len(head) < 2:
            yield invalid(
                "jpg-truncated",
                "the file ends before its EOI marker",
                offset=artifact.size,
            )
            return
        if head[0] != 0xFF:
            yield invalid(
                "jpg-marker",
                f"expected a marker, found byte {head[0]:#04x}",
                offset=position,
            )
            return
        marker = head[1]
        if marker == 0xFF or marker in _ALONE:
            position = _end_of_fill(artifact, position)
            continue
        if marker == _EOI:
            break
        length = int.from_bytes(head[2:4], "big") if len(head) == 4 else 0
        if length < 2 or position + 2 + length > artifact.size:
            yield invalid(
                "jpg-truncated",
                f"segment {marker:#04x} runs past the end",
                offset=position,
            )
            return
        if marker in _FRAMES:
            body = artifact.read_at(position + 4, min(length, 18))
            if marker in _SEQUENTIAL:
                components, units = _count_units(body)
            artifact.facts["height"] = int.from_bytes(body[1:3], "big")
            artifact.facts["width"] = int.from_bytes(body[3:5], "big")
        elif marker == _DRI:
            interval = int.from_bytes(artifact.read_at(position + 4, 2), "big")
        in_scan = artifact.read_at(position + 4, 1)[:1]
        position += 2 + length
        if marker == _SOS:
            scans += 1
            begin, position = position, end_of_scan(artifact, position)
            whole = interval and in_scan == bytes([components])
            expected = (units - 1) // interval if whole else 0
            if problem := _incomplete(artifact, begin, position, expected):
                yield problem
                return
    artifact.facts["frames"] = 1
    if not scans or not artifact.facts.get("width"):
        yield invalid(
            "jpg-no-image", "there is no image between the start and the end marker"
        )


def _count_units(frame: bytes) -> tuple[int, int]:
    """Return how many components a frame has, and the units (MCU, §A.2) of a scan of all of them."""
    count = frame[5] if len(frame) >= 6 else 0
    factors = frame[7 : 6 + 3 * count : 3]
    if (
        not factors
        or len(factors) != count
        or not all(f >> 4 and f & 15 for f in factors)
    ):
        return 0, 0
    height, width = (int.from_bytes(frame[at : at + 2], "big") for at in (1, 3))
    # A scan of one component has units of one block, whatever the factors.
    across, down = (
        (8 * max(f >> 4 for f in factors), 8 * max(f & 15 for f in factors))
        if count > 1
        else (8, 8)
    )
    return count, -(-width // across) * -(-height // down)


def _incomplete(
    artifact: Artifact, begin: int, end: int, expected: int
) -> Finding | None:
    """Return what a scan lacks: all of its data, or some of its restart markers (§E.1.3)."""
    if begin == end:
        return invalid("jpg-no-image", "a scan has no data", offset=begin)
    if expected <= 0:
        return None
    found = _count_restarts(artifact, begin, end)
    if found >= expected:
        return None
    words = f"a scan has {found:,} of its {expected:,} restart markers"
    return invalid("jpg-truncated", words, offset=end)


def _count_restarts(artifact: Artifact, begin: int, end: int) -> int:
    count, before = 0, b""
    while begin < end:
        piece = artifact.read_at(begin, min(CHUNK, end - begin))
        artifact.spend(0)
        count += len(_RESTART.findall(before + piece))
        begin, before = begin + len(piece), piece[-1:]
    return count


def _end_of_fill(artifact: Artifact, position: int) -> int:
    """Return where the next marker with a length begins: behind fill bytes and markers that stand alone."""
    while fill := _FILL.match(artifact.read_at(position, CHUNK)):
        artifact.spend(0)
        position += fill.end()
    return position


def end_of_scan(artifact: Artifact, position: int) -> int:
    """Return where the next real marker stands: entropy-coded data escapes 0xFF as FF 00."""
    while piece := artifact.read_at(position, CHUNK):
        artifact.spend(0)
        if (marker := _MARKER.search(piece)) is not None:
            return position + marker.start()
        if len(piece) < CHUNK:
            break
        position += len(piece) - (1 if piece.endswith(b"\xff") else 0)
    return artifact.size
