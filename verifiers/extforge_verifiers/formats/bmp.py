"""Windows bitmaps (.bmp).

Sources:

- Microsoft BITMAPFILEHEADER, BITMAPCOREHEADER and BITMAPINFOHEADER to BITMAPV5HEADER.
"""

from __future__ import annotations

import struct
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.formats.webp import newlines_converted

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
    if artifact.head(2) != b"BM" and not _is_dib(artifact):
        found = list(check_disguise(artifact, "bmp"))
        yield from found
        if not found:
            yield invalid(
                "bmp-signature", f"starts with {artifact.head(4)!r}", offset=0
            )


def check_header(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a picture with an impossible header, or with fewer bytes than pixels."""
    dib = _is_dib(artifact)
    # A .dib has no file header: its pixels follow the colour table at once.
    head = bytes(14) * dib + artifact.head(54)
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
    if dib:
        colours = struct.unpack_from("<L", head, 46)[0] if size >= 40 else 0
        colours = colours or (1 << depth if depth <= 8 else 0)
        masks = {_FIELDS: 12, _ALPHA_FIELDS: 16}.get(compression, 0)
        start = size + 4 * min(colours, 256) + masks * (size == 40)
    elif start < 14 + size:
        words = f"its pixels begin at {start:,}, inside the header of {14 + size} bytes"
        yield invalid("bmp-header", words, offset=10)
        return
    if start > artifact.size or start + max(needed, declared) > artifact.size:
        words = f"its pixels need {max(needed, declared):,} bytes from {start:,}; the file has {artifact.size:,}"
        yield invalid("bmp-truncated", words, offset=artifact.size)
        return
    artifact.facts["frames"] = 1
    whole = artifact.size if dib else int.from_bytes(head[2:6], "little")
    yield from _check_rest(artifact, whole, start + needed if needed else whole, size)


def _is_dib(artifact: Artifact) -> bool:
    """Return whether it is a bitmap without a file header, as Pillow and the clipboard write .dib."""
    (size,) = struct.unpack("<L", artifact.head(4).ljust(4, b"\0"))
    return artifact.suffix == ".dib" and size in (_CORE, *_INFO)


def _check_rest(
    artifact: Artifact, whole: int, end: int, size: int
) -> Iterator[Finding]:
    """What follows the pixels: nothing, or the colour profile of a version 5 header (size 124)."""
    surplus = artifact.size - whole
    if surplus > 0 and newlines_converted(artifact, surplus):
        words = "every line feed in it became CR LF: damaged by a text conversion"
        yield invalid("bmp-newlines", words)
        return
    if surplus and (replaced := _replaced(artifact)):
        words = f"a binary file damaged by a UTF-8 conversion ({replaced:,} replacement characters)"
        yield invalid(
            "artifact-other-format", f"named {artifact.suffix}, but it is {words}"
        )
        return
    profile = artifact.read_at(14 + 112, 8) if size == _INFO[-1] else b""
    if len(profile) == 8:
        offset, length = struct.unpack("<LL", profile)
        end = max(end, 14 + offset + length if length else 0)
    # Photoshop and others pad the pixels with a few bytes.
    if artifact.size - end > 4 or surplus > 4:
        words = f"{artifact.size - min(end, whole):,} bytes follow the pixels: its size may be wrong"
        yield warning("bmp-trailing", words, offset=min(end, whole))


def _replaced(artifact: Artifact) -> int:
    """Return how many U+FFFD it has; 0 when its bytes are not UTF-8 throughout, as no picture's are by chance."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        return sum(decoder.decode(chunk).count("\ufffd") for chunk in artifact.chunks())
    except UnicodeDecodeError:
        return 0


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
