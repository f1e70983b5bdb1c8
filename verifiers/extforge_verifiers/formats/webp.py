"""WebP images (.webp).

Sources:

- RFC 9649 §2.3 RIFF container, §2.5 and §2.6 simple files, §2.7 extended files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_chunks", "check_signature", "newlines_converted"]


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as photo.webp."""
    head = artifact.head(12)
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        found = list(check_disguise(artifact, "webp"))
        yield from found
        if not found:
            yield invalid("webp-signature", f"starts with {head!r}", offset=0)


def check_chunks(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a photo cut short: the container promises more bytes than there are."""
    declared = int.from_bytes(artifact.read_at(4, 4), "little") + 8
    if declared > artifact.size:
        words = (
            f"the container declares {declared:,} bytes, the file has {artifact.size:,}"
        )
        yield invalid("webp-truncated", words, offset=artifact.size)
        return
    position = 12
    images = 0
    while position + 8 <= declared:
        head = artifact.read_at(position, 18)
        artifact.spend(0)
        kind, length = head[:4], int.from_bytes(head[4:8], "little")
        if position + 8 + length > declared:
            words = f"chunk {kind!r} runs past the end of the container"
            yield invalid("webp-truncated", words, offset=position)
            return
        if kind in (b"VP8 ", b"VP8L", b"ANMF"):
            images += 1
        yield from _read_size(artifact, kind, position)
        if kind in (b"VP8 ", b"VP8L") and _ends_in_zeros(
            artifact, position + 8, length
        ):
            words = (
                f"the last quarter of chunk {kind!r} is zeros: the rest of it is lost"
            )
            yield invalid("webp-frame", words, offset=position)
            return
        position += 8 + length + (length & 1)
    artifact.facts["frames"] = images
    if not images:
        yield invalid("webp-no-image", "there is no image chunk in it")
    elif declared < artifact.size and newlines_converted(
        artifact, artifact.size - declared
    ):
        words = "every line feed in it became CR LF: damaged by a text conversion"
        yield invalid("webp-newlines", words)
    elif declared < artifact.size:
        words = f"{artifact.size - declared:,} bytes follow the container"
        yield warning("webp-trailing", words, offset=declared)


def _ends_in_zeros(artifact: Artifact, start: int, length: int) -> bool:
    """Return whether a chunk's last quarter is zeros; coded pictures of one colour end in a twentieth."""
    quarter = length // 4
    if quarter < 64 or artifact.read_at(start + length - 64, 64).strip(b"\0"):
        return False
    end = start + length
    pieces = range(start + length - quarter, end, CHUNK)
    return not any(
        artifact.read_at(at, min(CHUNK, end - at)).strip(b"\0") for at in pieces
    )


def newlines_converted(artifact: Artifact, surplus: int) -> bool:
    """Return whether the surplus is just what a conversion of LF to CR LF would have added."""
    feeds = 0
    before = b""
    for chunk in artifact.chunks():
        found = chunk.count(b"\n")
        if found != (before + chunk).count(b"\r\n"):
            return False
        feeds += found
        before = chunk[-1:]
    return feeds == surplus


def _read_size(artifact: Artifact, kind: bytes, position: int) -> Iterator[Finding]:
    body = artifact.read_at(position + 8, 10)
    if len(body) < 10 or "width" in artifact.facts:
        return
    if kind == b"VP8X":
        width = int.from_bytes(body[4:7], "little") + 1
        height = int.from_bytes(body[7:10], "little") + 1
    elif kind == b"VP8 ":
        if body[3:6] != b"\x9d\x01\x2a":
            yield invalid(
                "webp-frame", "the VP8 frame has no start code", offset=position + 8
            )
            return
        width = int.from_bytes(body[6:8], "little") & 0x3FFF
        height = int.from_bytes(body[8:10], "little") & 0x3FFF
    elif kind == b"VP8L":
        if body[0] != 0x2F:
            yield invalid(
                "webp-frame",
                "the VP8L frame has no signature byte",
                offset=position + 8,
            )
            return
        bits = int.from_bytes(body[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    else:
        return
    artifact.facts["width"], artifact.facts["height"] = width, height
