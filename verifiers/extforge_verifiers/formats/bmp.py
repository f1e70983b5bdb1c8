"""Windows bitmaps (.bmp).

Sources:

- Microsoft BITMAPFILEHEADER, BITMAPCOREHEADER and BITMAPINFOHEADER to BITMAPV5HEADER.
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

__all__ = ["check_header", "check_signature"]

_CORE, _OS2, _INFO = 12, 64, (16, 40, 52, 56, 64, 108, 124)
_DEPTHS = (0, 1, 2, 4, 8, 16, 24, 32, 64)
_RGB, _RLE8, _RLE4, _FIELDS, _ALPHA_FIELDS = 0, 1, 2, 3, 6


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as image.bmp."""
    if artifact.head(2) != b"BM":
        found = list(check_disguise(artifact, "bmp"))
        yield from found
        if not found:
            yield invalid(
                "bmp-signature", f"starts with {artifact.head(4)!r}", offset=0
            )


def check_header(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a picture with an impossible header, or with fewer bytes than pixels."""
    head = artifact.head(54)
    if len(head) < 26:
        yield invalid(
            "bmp-truncated", "the file ends inside its header", offset=len(head)
        )
        return
    (start,) = struct.unpack_from("<L", head, 10)
    (size,) = struct.unpack_from("<L", head, 14)
    compression = declared = 0
    if size == _CORE:
        width, height, planes, depth = struct.unpack_from("<HHHH", head, 18)
    elif size in _INFO and len(head) >= 14 + min(size, 40):
        width, height, planes, depth = struct.unpack_from("<llHH", head, 18)
        if size >= 40:
            compression, declared = struct.unpack_from("<LL", head, 30)
    else:
        yield invalid("bmp-header", f"unknown header of {size} bytes", offset=14)
        return
    artifact.facts["width"], artifact.facts["height"] = width, abs(height)
    problem = _impossible(width, height, planes, depth, compression)
    if problem:
        yield invalid("bmp-header", problem, offset=14)
        return
    if width * abs(height) > artifact.limits.pixels:
        words = (
            f"{width} x {abs(height)} pixels; the limit is {artifact.limits.pixels:,}"
        )
        yield invalid("budget-exceeded", words, offset=18)
        return
    needed = 0
    if compression in (_RGB, _FIELDS, _ALPHA_FIELDS):
        needed = ((width * depth + 31) // 32) * 4 * abs(height)
    needed = max(needed, declared)
    if start > artifact.size or start + needed > artifact.size:
        words = f"its pixels need {needed:,} bytes from {start:,}; the file has {artifact.size:,}"
        yield invalid("bmp-truncated", words, offset=artifact.size)


def _impossible(
    width: int, height: int, planes: int, depth: int, compression: int
) -> str:
    """Return what is impossible in a header; empty when nothing is."""
    if width <= 0 or height == 0:
        return f"impossible size: {width} x {height}"
    if planes != 1:
        return f"{planes} colour planes; there is one"
    if depth not in _DEPTHS:
        return f"impossible bit depth: {depth}"
    if (compression == _RLE8 and depth != 8) or (compression == _RLE4 and depth != 4):
        return f"run-length compression {compression} does not fit {depth} bits"
    if compression == _FIELDS and depth not in (16, 32):
        return f"bit fields do not fit {depth} bits"
    if compression in (_RLE8, _RLE4) and height < 0:
        return "a compressed bitmap cannot be top-down"
    return ""
