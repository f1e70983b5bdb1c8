"""Portable Network Graphics (.png).

Sources:

- W3C PNG (Third Edition) §5.3 chunk layout, §11.2.1 IHDR, §7.2 and §8.1 filter bytes and Adam7: the image data
  inflate to one exact number of bytes.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_chunks", "check_signature"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# colour type -> (samples per pixel, allowed bit depths)
_COLOURS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
# Adam7: x start, y start, x step, y step
_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
# Chunks of one length only (§11.3): libpng and Pillow refuse others.
_LENGTHS = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"tIME": 7}


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as chart.png."""
    if artifact.head(8) != _SIGNATURE:
        found = list(check_disguise(artifact, "png"))
        yield from found
        if not found:
            yield invalid(
                "png-signature", f"starts with {artifact.head(8)!r}", offset=0
            )


def check_chunks(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a picture cut short, or damaged on the way."""
    position = len(_SIGNATURE)
    expected = 0
    data = _ImageData(artifact)
    kind = b""
    while kind != b"IEND":
        header = artifact.read_at(position, 8)
        if len(header) < 8:
            yield invalid(
                "png-truncated",
                "the file ends before the IEND chunk",
                offset=artifact.size,
            )
            return
        length, kind = struct.unpack(">L4s", header)
        name = kind.decode("latin-1")
        if position + 12 + length > artifact.size:
            yield invalid(
                "png-truncated",
                f"the file ends inside its {name!r} chunk",
                offset=artifact.size,
            )
            return
        if position == len(_SIGNATURE):
            if kind != b"IHDR" or length != 13:
                yield invalid(
                    "png-header",
                    f"the first chunk is {name!r}, not IHDR",
                    offset=position,
                )
                return
            problem, expected = _read_header(
                artifact, artifact.read_at(position + 8, 13)
            )
            if problem is not None:
                yield problem
                return
            artifact.facts["frames"] = 1
        if _LENGTHS.get(kind, length) != length:
            words = f"chunk {name!r} has {length:,} bytes; it takes {_LENGTHS[kind]}"
            yield invalid("png-chunk", words, offset=position)
            return
        crc = zlib.crc32(kind)
        for piece in _pieces(artifact, position + 8, length):
            crc = zlib.crc32(piece, crc)
            if kind == b"IDAT":
                data.feed(piece)
            elif kind == b"acTL" and length == 8:
                artifact.facts["frames"] = int.from_bytes(piece[:4], "big")
        if crc != int.from_bytes(artifact.read_at(position + 8 + length, 4), "big"):
            yield invalid(
                "png-crc",
                f"chunk {name!r} is damaged: its CRC-32 is wrong",
                offset=position,
            )
            return
        position += 12 + length
    if problem_words := data.problem(expected):
        yield invalid("png-data", problem_words)
    elif position < artifact.size:
        yield warning(
            "png-trailing",
            f"{artifact.size - position:,} bytes follow the IEND chunk",
            offset=position,
        )


class _ImageData:
    """Inflates the image data as they come, keeping only their size."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._inflater = zlib.decompressobj()
        self._size = 0
        self._error = ""

    def feed(self, piece: bytes) -> None:
        pending = piece
        try:
            while pending and not self._inflater.eof:
                out = self._inflater.decompress(pending, CHUNK)
                self._size += len(out)
                self._artifact.spend(len(out))
                pending = self._inflater.unconsumed_tail
        except zlib.error as exc:
            self._error = self._error or f"the image data do not inflate: {exc}"

    def problem(self, expected: int) -> str:
        if self._error:
            return self._error
        try:
            self._size += len(self._inflater.flush())
        except zlib.error as exc:
            return f"the image data do not inflate: {exc}"
        if self._size != expected:
            return f"the image data inflate to {self._size:,} bytes; this size of image has {expected:,}"
        return ""


def _pieces(artifact: Artifact, position: int, count: int) -> Iterator[bytes]:
    while count > 0:
        piece = artifact.read_at(position, min(CHUNK, count))
        artifact.spend(0)
        yield piece
        position, count = position + len(piece), count - len(piece)


def _read_header(artifact: Artifact, body: bytes) -> tuple[Finding | None, int]:
    """Return what is wrong with IHDR, and how many bytes the image data must inflate to."""
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(
        ">LLBBBBB", body
    )
    artifact.facts["width"], artifact.facts["height"] = width, height
    if (
        colour not in _COLOURS
        or depth not in _COLOURS[colour][1]
        or compression
        or filtering
        or interlace > 1
    ):
        return invalid(
            "png-header",
            f"impossible header: colour type {colour}, bit depth {depth}",
            offset=8,
        ), 0
    if not width or not height or width >> 31 or height >> 31:
        return invalid(
            "png-header", f"impossible size: {width} x {height}", offset=8
        ), 0
    if width * height > artifact.limits.pixels:
        words = (
            f"{width} x {height} pixels; the limit is {artifact.limits.pixels:,} pixels"
        )
        return invalid("budget-exceeded", words, offset=8), 0
    bits = _COLOURS[colour][0] * depth
    if not interlace:
        return None, height * (1 + (width * bits + 7) // 8)
    total = 0
    for x, y, dx, dy in _PASSES:
        columns, rows = (width - x + dx - 1) // dx, (height - y + dy - 1) // dy
        total += (
            rows * (1 + (columns * bits + 7) // 8) if columns > 0 and rows > 0 else 0
        )
    return None, total
