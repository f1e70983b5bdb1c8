"""Small pictures of what was verified: a person sees at a glance whether a file looks like what it should.

Only of files that passed.  Pictures by Pillow, PDF pages by PDFium, Office documents by LibreOffice, each where it
is installed; nothing here decides a verdict.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Report

__all__ = ["Thumbnail", "make_thumbnails"]

Thumbnail = tuple[
    str, str
]  # data URI (or empty), and words for those who do not see it
_WIDTH, _HEIGHT = 320, 240  # pixels
_OFFICE = ("pptx", "docx", "xlsx")
_PICTURES = ("png", "jpg", "gif", "webp", "bmp", "tiff")
_OFFICE_SECONDS = 120
_MOST_OFFICE, _MOST = 40, 500  # previews in one report
_LARGEST = 32 << 20  # bytes of a file that gets a preview
_PIXELS = 64_000_000


def make_thumbnails(reports: Sequence[Report]) -> dict[str, Thumbnail]:
    """Return path -> picture for every file of a known format; with the reason in words where there is none."""
    found: dict[str, Thumbnail] = {}
    office = []
    for report in reports:
        if report.kind not in (*_OFFICE, *_PICTURES, "pdf"):
            continue
        name = os.path.basename(report.path)
        if report.verdict is Verdict.FAIL:
            found[report.path] = ("", "no preview: the file is not sound")
        elif report.facts.get("size_bytes", 0) > _LARGEST or len(found) >= _MOST:
            found[report.path] = ("", "no preview: too large")
        elif report.kind in _OFFICE:
            office.append(report.path)
            found[report.path] = ("", f"{report.kind}: LibreOffice is not installed")
        else:
            found[report.path] = _picture(report.path, report.kind, name)
    found.update(_office(office[:_MOST_OFFICE]))
    return found


def _picture(path: str, kind: str, name: str) -> Thumbnail:
    try:
        if kind == "pdf":
            return _page(path), f"first page of {name}"
        from PIL import Image  # noqa: PLC0415 -- only for previews

        with Image.open(path) as image:
            if image.width * image.height > _PIXELS:
                return "", "no preview: too many pixels"
            return _encode(image), f"preview of {name}"
    except ImportError as exc:
        return "", f"no preview: {exc.name} is not installed"
    except Exception as exc:  # noqa: BLE001 -- a preview must not keep a report from being written
        return "", f"no preview: {type(exc).__name__}"


def _page(path: str) -> str:
    import pypdfium2  # noqa: PLC0415 -- only for previews

    document = pypdfium2.PdfDocument(path)
    try:
        page = document[0]
        width, height = page.get_size()
        scale = min(_WIDTH / max(width, 1), _HEIGHT / max(height, 1), 2.0) * 2
        if width * height * scale * scale > _PIXELS:
            raise ValueError("a page of impossible size")
        return _encode(page.render(scale=scale).to_pil())
    finally:
        document.close()


def _encode(image: Any) -> str:
    small = image.convert("RGBA" if "A" in image.getbands() else "RGB")
    small.thumbnail((_WIDTH * 2, _HEIGHT * 2))  # twice: for screens with small pixels
    stream = io.BytesIO()
    small.save(stream, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _office(paths: Sequence[str]) -> dict[str, Thumbnail]:
    """Convert all documents in one run of LibreOffice, with a profile of its own and so without macros."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None or not paths:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        copies = {}
        for number, path in enumerate(paths):
            copy = os.path.join(folder, f"{number}{os.path.splitext(path)[1]}")
            shutil.copyfile(path, copy)
            copies[path] = copy
        profile = f"-env:UserInstallation=file://{folder}/profile"
        options = ["--headless", "--norestore", "--convert-to", "pdf", "--outdir"]
        command = [program, profile, *options, folder, *copies.values()]
        try:
            subprocess.run(  # noqa: S603 -- our own copies, under names of our own
                command, capture_output=True, timeout=_OFFICE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            words = "no preview: LibreOffice did not answer in time"
            return dict.fromkeys(paths, ("", words))
        found: dict[str, Thumbnail] = {}
        for path, copy in copies.items():
            page = f"{os.path.splitext(copy)[0]}.pdf"
            if os.path.exists(page):
                found[path] = _picture(page, "pdf", os.path.basename(path))
            else:
                found[path] = ("", "no preview: LibreOffice cannot open it")
        return found
