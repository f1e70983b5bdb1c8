"""Graphics Interchange Format (.gif).

Sources:

- CompuServe GIF89a §17 to §27: header, logical screen, blocks of sub-blocks, trailer 0x3B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_blocks", "check_signature"]

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B


def check_signature(artifact: Artifact) -> Iterator[Finding]:
    """Fake: text, base64 or another picture format saved as anim.gif."""
    if artifact.head(6) not in (b"GIF87a", b"GIF89a"):
        found = list(check_disguise(artifact, "gif"))
        yield from found
        if not found:
            yield invalid(
                "gif-signature", f"starts with {artifact.head(6)!r}", offset=0
            )


def check_blocks(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an animation cut short: the blocks end before the trailer."""
    screen = artifact.read_at(6, 7)
    if len(screen) < 7:
        yield invalid(
            "gif-truncated", "the file ends inside its header", offset=artifact.size
        )
        return
    artifact.facts["width"] = int.from_bytes(screen[0:2], "little")
    artifact.facts["height"] = int.from_bytes(screen[2:4], "little")
    position = 13 + _palette(screen[4])
    frames = 0
    while True:
        head = artifact.read_at(position, 10)
        artifact.spend(0)
        if not head:
            yield invalid(
                "gif-truncated",
                "the file ends before its trailer",
                offset=artifact.size,
            )
            return
        if head[0] == _TRAILER:
            break
        if head[0] == _EXTENSION and len(head) > 1:
            position = _skip_sub_blocks(artifact, position + 2)
        elif head[0] == _IMAGE and len(head) == 10:
            frames += 1
            # The local palette, then one byte of code size.
            position = _skip_sub_blocks(artifact, position + 10 + _palette(head[9]) + 1)
        else:
            yield invalid("gif-block", f"unknown block {head[0]:#04x}", offset=position)
            return
        if position < 0:
            yield invalid(
                "gif-truncated", "the file ends inside a block", offset=artifact.size
            )
            return
    artifact.facts["frames"] = frames
    if not frames:
        yield invalid("gif-no-image", "there is no image in it")
    elif position + 1 < artifact.size:
        yield warning("gif-trailing", "bytes follow the trailer", offset=position + 1)


def _palette(flags: int) -> int:
    """Return the bytes of the colour table that these flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _skip_sub_blocks(artifact: Artifact, position: int) -> int:
    """Return the position after the sub-blocks; -1 when the file ends first."""
    window, base = b"", position
    while True:
        if position - base >= len(window):
            # Little at first: a file may have a million empty blocks.
            count = 65_536 if window else 512
            base, window = position, artifact.read_at(position, count)
            artifact.spend(0)
            if not window:
                return -1
        size = window[position - base]
        position += 1 + size
        if size == 0:
            return position
