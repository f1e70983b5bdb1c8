"""Pictures, decoded: every pixel that the header promises must come out.

Pillow decides; it is asked only about files that passed the contract tier, and never about more pixels than the
limits allow (its own limit only warns, and then needs half a gigabyte).
"""

from __future__ import annotations

import os
import tempfile
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Undetermined, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL import Image

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_pixels"]

_FRAMES = 500  # decoded at most; an animation that is sound so far is sound
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
                frames = min(getattr(image, "n_frames", 1), _FRAMES)
                for frame in range(frames):
                    artifact.spend(0)
                    image.seek(frame)
                    with _complaints(image) as complaints:
                        image.load()
                    if complaints:
                        words = f"does not decode: {complaints[0]}"
                        yield invalid("image-undecodable", words)
                        return
                artifact.facts["frames"] = getattr(image, "n_frames", 1)
                artifact.facts["width"], artifact.facts["height"] = image.size
                artifact.facts["mode"] = image.mode
                flat = frames == 1 and _is_flat(image)
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
                "image-one-colour", f"all {width} x {height} pixels have one colour"
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


def _is_flat(image: Image.Image) -> bool:
    extrema: Any = image.getextrema()
    bands = extrema if isinstance(extrema[0], tuple) else (extrema,)
    return all(low == high for low, high in bands) and image.size != (1, 1)
