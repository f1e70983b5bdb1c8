"""The smallest real file of every format, made by the libraries that people make such files with."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["build_example", "build_impostor"]

_JSON = b'{"success": true, "path": "report", "note": "this is not what its name says"}\n'
_PNG_HEAD = b"\x89PNG\r\n\x1a\n" + bytes(range(24))
_TEXTS = {
    "json": '{"title": "Report", "total": 3}\n',
    "jsonl": '{"n": 1}\n{"n": 2}\n',
    "csv": "region,revenue\nEast,1280\nNorth,960\n",
    "md": "# Report\n\nRevenue grew.\n",
    "html": "<!DOCTYPE html>\n<html lang='en'><head><title>Report</title></head><body><p>Revenue grew.</p></body></html>\n",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8"/></svg>\n',
    "txt": "Revenue grew.\n",
}


def build_example(form: str) -> bytes:
    """Return a minimal real file of a format.

    Raises:
        KeyError: when nothing here makes that format.
    """
    if form in _TEXTS:
        return _TEXTS[form].encode()
    return _BUILDERS[form]()


def build_impostor(form: str) -> bytes:
    """Return bytes that claim to be of a format and are not: JSON, or for formats of text the head of a picture."""
    return _PNG_HEAD if form in _TEXTS else _JSON


def _pptx() -> bytes:
    from pptx import Presentation  # noqa: PLC0415 -- slow to import

    deck, stream = Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Report"
    deck.save(stream)
    return stream.getvalue()


def _docx() -> bytes:
    from docx import Document  # noqa: PLC0415

    document, stream = Document(), io.BytesIO()
    document.add_paragraph("Revenue grew.")
    document.save(stream)
    return stream.getvalue()


def _xlsx() -> bytes:
    from openpyxl import Workbook  # noqa: PLC0415

    book, stream = Workbook(), io.BytesIO()
    sheet = book.create_sheet("Report", 0)
    sheet.append(["region", "revenue"])
    book.save(stream)
    return stream.getvalue()


def _pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # noqa: PLC0415

    stream = io.BytesIO()
    canvas = Canvas(stream)
    canvas.drawString(72, 720, "Revenue grew.")
    canvas.save()
    return stream.getvalue()


def _image(form: str) -> bytes:
    from PIL import Image  # noqa: PLC0415 -- matplotlib brings it

    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "steelblue").save(stream, form)
    return stream.getvalue()


def _bmp() -> bytes:
    head = struct.pack("<2sIHHI", b"BM", 54 + 16, 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, 2, 2, 1, 24, 0, 16, 2835, 2835, 0, 0) + bytes(16)


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("report.txt", "Revenue grew.\n")
    return stream.getvalue()


_BUILDERS: dict[str, Callable[[], bytes]] = {
    "pptx": _pptx,
    "docx": _docx,
    "xlsx": _xlsx,
    "pdf": _pdf,
    "png": lambda: _image("PNG"),
    "jpg": lambda: _image("JPEG"),
    "gif": lambda: _image("GIF"),
    "webp": lambda: _image("WEBP"),
    "tiff": lambda: _image("TIFF"),
    "bmp": _bmp,
    "zip": _zip,
}
