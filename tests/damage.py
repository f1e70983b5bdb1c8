"""Real files of every format, and ways to damage them: each way names the code it must raise."""

from __future__ import annotations

import base64
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache

Damage = Callable[[bytes], bytes]


@cache
def good(form: str) -> bytes:
    """Return a small real file."""
    stream = io.BytesIO()
    match form:
        case "pptx":
            import pptx

            deck = pptx.Presentation()
            for title in ("One", "Two"):
                slide = deck.slides.add_slide(deck.slide_layouts[5])
                assert slide.shapes.title is not None
                slide.shapes.title.text = title
            deck.save(stream)
        case "docx":
            import docx

            document = docx.Document()
            document.add_heading("Title")
            document.add_table(1, 2).cell(0, 0).text = "cell"
            document.save(stream)
        case "xlsx":
            import openpyxl

            book = openpyxl.Workbook()
            assert book.active is not None
            book.active.append(["a", 1])
            book.create_sheet("Second").append(["b", 2])
            book.save(stream)
        case "pdf":
            from reportlab.pdfgen.canvas import Canvas

            canvas = Canvas(stream)
            for text in ("one", "two"):
                canvas.drawString(72, 700, text)
                canvas.showPage()
            canvas.save()
        case "json":
            stream.write('{"a": [1, 2], "名": "值"}\n'.encode())
        case "png" | "jpg" | "gif" | "webp":
            from PIL import Image

            image = Image.linear_gradient("L").convert("RGB").resize((64, 48))
            image.save(stream, {"jpg": "jpeg"}.get(form, form))
    return stream.getvalue()


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return stream.getvalue()


def without(name: str) -> Damage:
    return lambda data: pack({k: v for k, v in parts(data).items() if k != name})


def added(name: str, body: bytes = b"x") -> Damage:
    return lambda data: pack({**parts(data), name: body})


def replaced(name: str, pattern: str, by: str) -> Damage:
    def damage(data: bytes) -> bytes:
        found = parts(data)
        text = found[name].decode()
        changed = re.sub(pattern, by, text, flags=re.DOTALL)
        assert changed != text, f"{pattern} is not in {name}"
        return pack({**found, name: changed.encode()})

    return damage


def emptied(*names: str) -> Damage:
    """Take the content out of slides, sheets or a body, and leave them well-formed."""

    def damage(data: bytes) -> bytes:
        found = parts(data)
        for name in names:
            text = found[name].decode()
            text = re.sub(
                r"<p:sp>.*</p:sp>|<w:(p|tbl)\b.*</w:(p|tbl)>|<sheetData>.*</sheetData>", "", text, flags=re.DOTALL
            )
            found[name] = text.encode()
        return pack(found)

    return damage


def header_field(offset: int, value: bytes, *, central: bool = False) -> Damage:
    """Overwrite bytes of the first local header, or of the first central one."""

    def damage(data: bytes) -> bytes:
        at = (data.index(b"PK\x01\x02") if central else 0) + offset
        return data[:at] + value + data[at + len(value) :]

    return damage


def flip_member_data(data: bytes) -> bytes:
    """Change a stored byte without telling the directory."""
    stored = pack(parts(data), zipfile.ZIP_STORED)
    at = re.search(rb"\sxmlns", stored)
    assert at is not None
    return stored[: at.start()] + b"\n" + stored[at.start() + 1 :]  # still well-formed


def twice(data: bytes) -> bytes:
    import warnings

    stream = io.BytesIO(data)
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("[content_types].xml", b"<x/>")
    return stream.getvalue()


def bomb(data: bytes) -> bytes:
    return pack({**parts(data), "media/zeros.bin": bytes(40 << 20)})


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))


def png_with(change: Callable[[list[tuple[bytes, bytes]]], list[tuple[bytes, bytes]]]) -> Damage:
    """Rebuild a PNG with other chunks and right checksums."""

    def damage(data: bytes) -> bytes:
        chunks, at = [], 8
        while at < len(data):
            (length,) = struct.unpack_from(">L", data, at)
            chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
            at += 12 + length
        return data[:8] + b"".join(png_chunk(kind, body) for kind, body in change(chunks))

    return damage


def cut(share: float) -> Damage:
    return lambda data: data[: int(len(data) * share)]


def text(words: str) -> Damage:
    return lambda _: words.encode()


def as_base64(data: bytes) -> bytes:
    return base64.b64encode(data)


def utf8_damaged(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode()


OFFICE = ("pptx", "docx", "xlsx")
MAIN = {"pptx": "ppt/presentation.xml", "docx": "word/document.xml", "xlsx": "xl/workbook.xml"}
BINARY = (*OFFICE, "pdf", "png", "jpg", "gif", "webp")

# (format, id, damage, codes that must be found)
CASES: list[tuple[str, str, Damage, set[str]]] = []
for _form in OFFICE:
    _main = MAIN[_form]
    CASES += [
        (_form, "cut short", cut(0.9), {"zip-unreadable"}),
        (_form, "junk before", lambda data: b"#!/bin/sh\n" * 3 + data, {"zip-prefix"}),
        (_form, "a plain zip", lambda _: pack({"a.txt": b"hello"}), {"ooxml-content-types-missing"}),
        (_form, "no root relation", without("_rels/.rels"), {"ooxml-main-missing"}),
        (_form, "no main part", without(_main), {"ooxml-main-missing"}),
        (_form, "main part of another type", replaced("[Content_Types].xml", r"(presentation|document|sheet)\.main\+xml", "other.main+xml"), {"ooxml-main-type"}),
        (_form, "main part is another element", lambda data, m=_main: pack({**parts(data), m: b"<html/>"}), {"ooxml-main-root"}),
        (_form, "broken XML in a side part", replaced("docProps/app.xml", "</Properties>", "&</Properties>"), {"xml-not-well-formed"}),
        (_form, "broken main part", lambda data, m=_main: pack({**parts(data), m: parts(data)[m][:-20]}), {"xml-not-well-formed"}),
        (_form, "a DOCTYPE", replaced("docProps/core.xml", r"(<\?xml[^>]*\?>)?\s*<cp:", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><cp:'), {"xml-doctype"}),
        (_form, "a member changed", flip_member_data, {"zip-member-crc"}),
        (_form, "a member twice", twice, {"zip-member-duplicate"}),
        (_form, "a member that climbs", added("../../evil.txt"), {"zip-member-path"}),
        (_form, "an absolute member", added("/etc/evil"), {"zip-member-path"}),
        (_form, "encrypted", header_field(8, b"\x01\x00", central=True), {"zip-member-encrypted"}),
        (_form, "another compression", header_field(10, b"\x0c\x00", central=True), {"zip-member-method"}),
        (_form, "a size that lies", header_field(24, b"\x05\x00\x00\x00", central=True), {"zip-member-size"}),
        (_form, "a bomb", bomb, {"zip-bomb"}),
        (_form, "a directory entry", added("media/", b""), {"zip-directory-entry"}),
        (_form, "backslashes", added("media\\x.bin"), {"zip-member-backslash"}),
        (_form, "the magic alone", lambda data: data[:4], {"zip-unreadable"}),
    ]  # fmt: skip
for _form in BINARY:
    CASES += [
        (_form, "empty", lambda _: b"", {"artifact-empty"}),
        (_form, "plain text", text("The deck will be generated downstream."), {"artifact-placeholder"}),
        (_form, "HTML", text("<!DOCTYPE html><html><body>404</body></html>"), {"artifact-placeholder"}),
        (_form, "Markdown", text("# Title\n\n- a\n- b\n"), {"artifact-placeholder"}),
        (_form, "JSON", text('{"slides": [{"title": "x"}]}'), {"artifact-placeholder"}),
        (_form, "base64", as_base64, {"artifact-placeholder"}),
        (_form, "an error message", text("Traceback (most recent call last):\n  File"), {"artifact-placeholder"}),
        (_form, "an OLE file", lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), {"artifact-other-format"}),
        (_form, "zeros", lambda _: bytes(2000), {"artifact-other-format"}),
    ]  # fmt: skip
for _form in ("pdf", "png", "jpg", "gif", "webp"):
    CASES.append((_form, "another binary", lambda _: good("docx"), {"artifact-other-format"}))
for _form in ("png", "jpg"):
    CASES.append((_form, "damaged by a text conversion", utf8_damaged, {"artifact-other-format"}))
_SLIDE1, _SLIDE2 = "ppt/slides/slide1.xml", "ppt/slides/slide2.xml"
CASES += [
    ("pptx", "no slides listed", replaced("ppt/presentation.xml", r"<p:sldIdLst>.*</p:sldIdLst>", ""), {"pptx-no-slides"}),
    ("pptx", "a slide that is gone", without(_SLIDE2), {"pptx-slide-missing"}),
    ("pptx", "a slide id twice", replaced("ppt/presentation.xml", r'<p:sldId (.*?)id="257"', r'<p:sldId \1id="256"'), {"pptx-slide-id"}),
    ("pptx", "a slide id too small", replaced("ppt/presentation.xml", r'<p:sldId (.*?)id="257"', r'<p:sldId \1id="7"'), {"pptx-slide-id"}),
    ("pptx", "a slide that is none", lambda data: pack({**parts(data), _SLIDE2: b"<x/>"}), {"pptx-slide-root"}),
    ("pptx", "a blank slide", emptied(_SLIDE2), {"pptx-slide-blank"}),
    ("pptx", "placeholder text", replaced(_SLIDE1, "One", "Click to add title"), {"placeholder-text"}),
    ("docx", "no body", replaced("word/document.xml", r"<w:body>.*</w:body>", ""), {"docx-no-body"}),
    ("docx", "nothing in it", emptied("word/document.xml"), {"docx-blank"}),
    ("xlsx", "no sheets", replaced("xl/workbook.xml", r"<sheets>.*</sheets>", "<sheets/>"), {"xlsx-no-sheets"}),
    ("xlsx", "a sheet that is gone", without("xl/worksheets/sheet2.xml"), {"xlsx-sheet-missing"}),
    ("xlsx", "a sheet name twice", replaced("xl/workbook.xml", 'name="Second"', 'name="SHEET"'), {"xlsx-sheet-name"}),
    ("xlsx", "a sheet name too long", replaced("xl/workbook.xml", 'name="Second"', f'name="{"x" * 32}"'), {"xlsx-sheet-name"}),
    ("xlsx", "a forbidden sheet name", replaced("xl/workbook.xml", 'name="Second"', 'name="a/b"'), {"xlsx-sheet-name"}),
    ("xlsx", "a sheet that is none", lambda data: pack({**parts(data), "xl/worksheets/sheet2.xml": b"<x/>"}), {"xlsx-sheet-root"}),
    ("xlsx", "an empty sheet", emptied("xl/worksheets/sheet2.xml"), {"xlsx-sheet-blank"}),
    ("pdf", "cut short", cut(0.7), {"pdf-end-missing"}),
    ("pdf", "no startxref", lambda data: data.replace(b"startxref", b"startxxxx"), {"pdf-startxref-missing"}),
    ("pdf", "a shell", text("%PDF-1.7\nstartxref\n0\n%%EOF\n"), {"pdf-empty-shell"}),
    ("pdf", "no page", lambda data: data.replace(b"/Type /Page\n", b"/Type /Xage\n").replace(b"/Type /Page ", b"/Type /Xage ").replace(b"/Type /Page/", b"/Type /Xage/"), {"pdf-no-pages"}),
    ("pdf", "random bytes", lambda _: bytes(range(128, 256)) * 20, {"pdf-header-missing"}),
    ("json", "NaN", text('{"a": NaN}'), {"json-constant"}),
    ("json", "not UTF-8", lambda _: b'{"a": "\xff"}', {"json-not-utf8"}),
    ("json", "UTF-16", lambda data: data.decode().encode("utf-16"), {"json-not-utf8"}),
    ("json", "a trailing comma", text('{"a": 1,}'), {"json-syntax"}),
    ("json", "cut short", text('{"a": [1, 2'), {"json-truncated"}),
    ("json", "a fence", text('```json\n{"a": 1}\n```'), {"json-fenced"}),
    ("json", "HTML", text("<html><body>x</body></html>"), {"artifact-placeholder"}),
    ("json", "nothing", text("  \n"), {"artifact-empty"}),
    ("json", "a BOM", lambda data: b"\xef\xbb\xbf" + data, {"json-bom"}),
    ("json", "a name twice", text('{"a": 1, "a": 2}'), {"json-duplicate-key"}),
    ("json", "hollow", text('{"a": null, "b": {"c": []}}'), {"json-hollow"}),
    ("json", "very deep", text("[" * 5000 + "1" + "]" * 5000), {"json-deep"}),
    ("json", "very deep and broken", text("[" * 5000 + "1" + "]" * 4999), {"json-syntax"}),
    ("png", "cut short", cut(0.8), {"png-truncated"}),
    ("png", "a bit flipped", lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], {"png-crc"}),
    ("png", "an impossible depth", png_with(lambda chunks: [(k, b[:8] + b"\x03" + b[9:] if k == b"IHDR" else b) for k, b in chunks]), {"png-header"}),
    ("png", "no width", png_with(lambda chunks: [(k, bytes(4) + b[4:] if k == b"IHDR" else b) for k, b in chunks]), {"png-header"}),
    ("png", "no header", png_with(lambda chunks: chunks[1:]), {"png-header"}),
    ("png", "too few pixels", png_with(lambda chunks: [(k, zlib.compress(b"\x00" * 10) if k == b"IDAT" else b) for k, b in chunks]), {"png-data"}),
    ("png", "a billion pixels", png_with(lambda chunks: [(k, struct.pack(">LL", 60_000, 60_000) + b[8:] if k == b"IHDR" else b) for k, b in chunks]), {"budget-exceeded"}),
    ("png", "bytes after the end", lambda data: data + b"more", {"png-trailing"}),
    ("png", "random bytes", lambda _: b"\x89PNX" + bytes(range(128, 256)), {"png-signature"}),
    ("jpg", "cut short", cut(0.8), {"jpg-truncated"}),
    ("jpg", "a marker gone", lambda data: data[:2] + b"\x00" + data[3:], {"jpg-signature"}),
    ("jpg", "junk after a segment", lambda data: data[:20] + b"\x11\x22" + data[20:], {"jpg-marker"}),
    ("jpg", "no image", lambda _: b"\xff\xd8\xff\xe0\x00\x04ab\xff\xd9", {"jpg-no-image"}),
    ("gif", "cut short", cut(0.8), {"gif-truncated"}),
    ("gif", "an unknown block", lambda data: data[:-1] + b"\x99", {"gif-block"}),
    ("gif", "no image", lambda data: data[:10] + b"\x00" + data[11:13] + b"\x3b", {"gif-no-image"}),
    ("gif", "bytes after the end", lambda data: data + b"more", {"gif-trailing"}),
    ("gif", "random bytes", lambda _: b"GIX89a" + bytes(range(128, 256)), {"gif-signature"}),
    ("webp", "cut short", cut(0.8), {"webp-truncated"}),
    ("webp", "a chunk that is too long", lambda data: data[:16] + b"\xff\xff\xff\x00" + data[20:], {"webp-truncated"}),
    ("webp", "no image", lambda _: b"RIFF\x04\x00\x00\x00WEBP", {"webp-no-image"}),
    ("webp", "a damaged frame", lambda data: data[:23] + b"\x00\x00\x00" + data[26:], {"webp-frame"}),
    ("webp", "bytes after the end", lambda data: data + b"more", {"webp-trailing"}),
    ("webp", "random bytes", lambda _: b"RIFX" + bytes(range(128, 256)), {"webp-signature"}),
]  # fmt: skip
