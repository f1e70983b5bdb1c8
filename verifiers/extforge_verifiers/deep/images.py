"""Pictures, decoded: every pixel that the header promises must come out.

Pillow decides; it is asked only about files that passed the contract tier, and never about more pixels than the
limits allow (its own limit only warns, and then needs half a gigabyte).
"""

from __future__ import annotations

import io
import os
import random
import tempfile
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Undetermined, invalid, warning
from extforge_verifiers.formats.jpg import end_of_scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL import Image

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_pixels"]

_FRAMES = 500  # decoded at most; an animation that is sound so far is sound
_EOI, _SOS = 0xD9, 0xDA
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length
# Bytes without 0xFF and without a pattern: no run of them decodes to nothing.
_NOISE = bytes(random.Random(1).randrange(0xFF) for _ in range(4096))  # noqa: S311 -- no secret
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "DIB")


def check_pixels(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a picture whose structure is whole and whose pixels are not; or one colour all over."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 -- the deep tier's own library

    artifact.stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(artifact.stream, formats=_FORMATS) as image:
                width, height = image.size
                if width * height > artifact.limits.pixels:
                    words = f"{width} x {height} pixels; the limit is {artifact.limits.pixels:,}"
                    yield invalid("budget-exceeded", words)
                    return
                total = getattr(image, "n_frames", 1)
                # What the contract tier counted stays: Pillow also turns pictures, and counts those behind a JPEG.
                counted = {"width": width, "height": height, "frames": total}
                artifact.facts.update(counted | artifact.facts | {"mode": image.mode})
                frames = min(total, _FRAMES)
                colours: set[Any] = set()
                for frame in range(frames):
                    artifact.spend(0)
                    image.seek(frame)
                    with _complaints(image) as complaints:
                        image.load()
                    if complaints:
                        words = f"does not decode: {complaints[0]}"
                        yield invalid("image-undecodable", words)
                        return
                    if (
                        frame == 0
                        and image.format in ("JPEG", "MPO")
                        and _ends_early(artifact, image)
                    ):
                        words = "its data end before the picture does: the rest is grey"
                        yield invalid("image-undecodable", words)
                        return
                    if len(colours) < 2:
                        colours.add(_colour(image))
                flat = len(colours) == 1 and None not in colours
    except UnidentifiedImageError as exc:
        # Its structure is sound, so it may be a kind that Pillow does not know: HDR TIFF, say.
        raise Undetermined("Pillow cannot decode this kind of picture") from exc
    except Exception as exc:  # decoders raise anything on damaged data
        if str(exc).startswith("Unsupported BMP"):
            raise Undetermined(f"Pillow cannot decode it: {exc}") from exc
        yield invalid(
            "image-undecodable", f"does not decode: {type(exc).__name__}: {exc}"
        )
    else:
        if flat:
            yield warning(
                "image-one-colour",
                f"all {width} x {height} pixels have one colour"
                + (f", in all {frames} frames" if frames > 1 else ""),
            )


@contextmanager
def _complaints(image: Image.Image) -> Iterator[list[str]]:
    """Collect what libtiff writes to standard error: it complains there about damage and goes on.

    Only when no other thread runs: the descriptor belongs to the whole process.
    """
    found: list[str] = []
    if image.format != "TIFF" or threading.active_count() > 1:
        yield found
        return
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            found += file.read(4096).decode("utf-8", "replace").splitlines()


def _colour(image: Image.Image) -> Any:
    """Return the one colour that all pixels have; None when they have more, or there is one pixel."""
    extrema: Any = image.getextrema()
    bands = extrema if isinstance(extrema[0], tuple) else (extrema,)
    flat = all(low == high for low, high in bands) and image.size != (1, 1)
    return (image.mode, *bands) if flat else None


def _ends_early(artifact: Artifact, image: Image.Image) -> bool:
    """Return whether the data of a JPEG end before its last pixel.

    libjpeg fills the rest with grey and only warns, which Pillow does not pass on.  So we decode it once more, with
    noise after the data of each scan: a decoder that had all it needs skips it (T.81 §F.2.2.5), one that runs out of
    data makes pixels of it.
    """
    from PIL import Image as images  # noqa: N813, PLC0415
    from PIL import ImageChops  # noqa: PLC0415

    padded = io.BytesIO()
    position = copied = 0
    while True:
        head = artifact.read_at(position, 4)
        if len(head) < 4 or head[1] == _EOI:
            break
        if head[1] == 0xFF:  # a fill byte
            position += 1
            continue
        if head[1] in _ALONE:
            position += 2
            continue
        position += 2 + int.from_bytes(head[2:4], "big")
        if head[1] == _SOS:
            position = end_of_scan(artifact, position)
            padded.write(artifact.read_at(copied, position - copied) + _NOISE)
            copied = position
        artifact.spend(0)
    padded.write(artifact.read_at(copied, 2))
    with images.open(padded, formats=("JPEG",)) as other:
        if other.size != image.size or other.mode != image.mode:
            return False
        return ImageChops.difference(image, other).getbbox(alpha_only=False) is not None
