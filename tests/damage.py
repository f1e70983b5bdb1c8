"""Real files of every format, and ways to damage them: each way names the code it must raise."""

from __future__ import annotations

import base64
import io
import json
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
        case "png" | "jpg" | "gif" | "webp" | "bmp" | "tiff":
            from PIL import Image

            image = Image.linear_gradient("L").convert("RGB").resize((64, 48))
            image.save(stream, {"jpg": "jpeg"}.get(form, form))
        case "zip":
            stream.write(pack({"a.txt": b"hello " * 20, "folder/b.bin": bytes(range(256))}))
        case _:
            stream.write(TEXTS[form].encode())
    return stream.getvalue()


TEXTS = {
    "txt": "Notes of the meeting, 会议记录.\n",
    "md": "# Report\n\nA paragraph.\n\n## Part\n\n```python\nprint(1)\n```\n",
    "html": "<!DOCTYPE html>\n<html><head>\n<title>t</title></head>\n<body><h1>Report</h1><p>text</p></body></html>\n",
    "csv": 'region,sales,note\nNorth,120,"a, b"\nSouth,80,"two\nlines"\n',
    "jsonl": '{"a": 1}\n{"a": 2, "b": [null]}\n',
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9"/></svg>\n',
}


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


def ole(stream: str) -> bytes:
    """An OLE file ([MS-CFB]) with one stream in its directory."""
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(22) + b"\x09\x00"
    entry = stream.encode("utf-16-le").ljust(64, b"\x00") + bytes(64)
    return header.ljust(512, b"\x00") + b"R\x00o\x00o\x00t\x00".ljust(128, b"\x00") + entry + bytes(256)


def tiff_linked(data: bytes, where: int) -> bytes:
    """Let the last directory of a TIFF that Pillow wrote lead elsewhere."""
    (at,) = struct.unpack_from("<L", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    end = at + 2 + count * 12
    return data[:end] + struct.pack("<L", at if where == 8 else where) + data[end + 4 :]


def tiff_set(data: bytes, tag: int, value: int) -> bytes:
    (at,) = struct.unpack_from("<L", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    for entry in range(at + 2, at + 2 + count * 12, 12):
        if struct.unpack_from("<H", data, entry)[0] == tag:
            return data[: entry + 2] + struct.pack("<HLL", 4, 1, value) + data[entry + 12 :]
    raise AssertionError(tag)


def shape(xml: str) -> Damage:
    """Put DrawingML into the properties of the first slide's title."""
    return replaced("ppt/slides/slide1.xml", "<p:spPr/>", f"<p:spPr>{xml}</p:spPr>")


def with_picture(data: bytes, picture: bytes) -> bytes:
    """Put a PNG into the deck, then other bytes in its place."""
    import pptx

    deck = pptx.Presentation(io.BytesIO(data))
    deck.slides[0].shapes.add_picture(io.BytesIO(good("png")), 0, 0)
    stream = io.BytesIO()
    deck.save(stream)
    return pack({**parts(stream.getvalue()), "ppt/media/image1.png": picture})


def with_table(data: bytes) -> bytes:
    import pptx

    deck = pptx.Presentation(io.BytesIO(data))
    deck.slides[0].shapes.add_table(2, 2, 0, 0, 9999, 9999)
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def with_columns(data: bytes, find: str = "", by: str = "") -> bytes:
    """Make a table of A1:B2, with two names changed."""
    import openpyxl
    from openpyxl.worksheet.table import Table

    book = openpyxl.load_workbook(io.BytesIO(data))
    sheet = book.worksheets[0]
    sheet["A1"], sheet["B1"], sheet["A2"], sheet["B2"] = "a", "b", 1, 2
    sheet.add_table(Table(displayName="T", ref="A1:B2"))
    stream = io.BytesIO()
    book.save(stream)
    if not find:
        return stream.getvalue()
    return replaced("xl/tables/table1.xml", 'name="b"', by)(stream.getvalue())


def flate(data: bytes) -> bytes:
    """Store the streams of a PDF with Flate alone."""
    import pikepdf

    stream = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as document:
        document.save(stream, stream_decode_level=pikepdf.StreamDecodeLevel.generalized)
    return stream.getvalue()


def flate_damaged(data: bytes) -> bytes:
    """Change the checksum at the end of the first compressed stream."""
    body = flate(data)
    at = body.index(b"endstream") - 2
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]


def blank_page() -> bytes:
    import pikepdf

    stream = io.BytesIO()
    with pikepdf.new() as document:
        document.add_blank_page()
        document.save(stream)
    return stream.getvalue()


def pdf_of(instructions: bytes) -> bytes:
    """Return a PDF with one page that these instructions draw."""
    import pikepdf

    stream = io.BytesIO()
    with pikepdf.new() as document:
        document.add_blank_page().obj.Contents = document.make_stream(instructions)
        document.save(stream)
    return stream.getvalue()


def jpeg(**options: object) -> bytes:
    """A JPEG with something to see everywhere."""
    from PIL import Image

    stream = io.BytesIO()
    Image.effect_noise((96, 64), 90).convert("RGB").save(stream, "jpeg", **options)
    return stream.getvalue()


def scan_cut(data: bytes, share: float = 0.5) -> bytes:
    """Cut the data of a JPEG's first scan, and put its end marker behind."""
    at = data.index(b"\xff\xda") + 2
    at += int.from_bytes(data[at : at + 2], "big")
    return data[: at + int((len(data) - at) * share)].rstrip(b"\xff") + b"\xff\xd9"


def half_zeros(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)


def noisy(form: str) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.effect_noise((96, 64), 90).convert("RGB").save(stream, form)
    return stream.getvalue()


def pages_of_one_colour(*colours: str) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    first, *more = [Image.new("RGB", (8, 8), colour) for colour in colours]
    first.save(stream, "tiff", save_all=True, append_images=more)
    return stream.getvalue()


def one_colour() -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "white").save(stream, "png")
    return stream.getvalue()


OFFICE = ("pptx", "docx", "xlsx")
MAIN = {"pptx": "ppt/presentation.xml", "docx": "word/document.xml", "xlsx": "xl/workbook.xml"}
PICTURES = ("png", "jpg", "gif", "webp", "bmp", "tiff")
BINARY = (*OFFICE, "pdf", *PICTURES)

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
        (_form, "a password", lambda _: ole("EncryptedPackage"), {"office-encrypted"}),
        (_form, "an old document", lambda _: ole("WordDocument"), {"artifact-other-format"}),
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
for _form in ("pdf", *PICTURES):
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
    ("pdf", "a shell", text("%PDF-1.7\nxref\nstartxref\n9\n%%EOF\n"), {"pdf-empty-shell"}),
    ("pdf", "a wrong startxref", lambda data: re.sub(rb"startxref\s+\d+", b"startxref\n7", data), {"pdf-startxref-wrong"}),
    ("pdf", "bytes written by Python's repr", lambda data: repr(data).encode(), {"artifact-placeholder"}),
    ("pdf", "bytes in a JSON string", lambda data: json.dumps(data.decode("latin-1")).encode(), {"artifact-placeholder"}),
    ("pdf", "bytes in a JSON object", lambda data: json.dumps({"pdf": data.decode("latin-1")}).encode(), {"artifact-placeholder"}),
    ("pdf", "Markdown about a PDF", text("# Report\n\n%PDF-1.4 is the header; a 1 0 obj has /Root, /Catalog and /Type /Page, then\nstartxref\n0\n%%EOF\n"), {"artifact-placeholder"}),
    ("pdf", "replacement characters", lambda data: utf8_damaged(flate(data)), {"pdf-text-conversion"}),
    ("pdf", "Latin-1 made UTF-8", lambda data: flate(data).decode("latin-1").encode(), {"pdf-text-conversion"}),
    ("pdf", "line ends converted", lambda data: flate(data).replace(b"\n", b"\r\n"), {"pdf-text-conversion"}),
    ("pdf", "a startxref without a number", lambda data: re.sub(rb"startxref\s+\d+", b"startxref", data), {"pdf-startxref-missing"}),
    ("pdf", "no page", lambda data: data.replace(b"/Type /Page\n", b"/Type /Xage\n").replace(b"/Type /Page ", b"/Type /Xage ").replace(b"/Type /Page/", b"/Type /Xage/"), {"pdf-no-pages"}),
    ("pdf", "no root", lambda data: data.replace(b"/Root", b"/Rxxt"), {"pdf-catalog-missing"}),
    ("pdf", "no catalog", lambda data: data.replace(b"/Catalog", b"/Xatalog"), {"pdf-catalog-missing"}),
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
    ("png", "a chunk of the wrong length", png_with(lambda chunks: [*chunks[:1], (b"gAMA", b""), *chunks[1:]]), {"png-chunk"}),
    ("png", "bytes after the end", lambda data: data + b"more", {"png-trailing"}),
    ("png", "random bytes", lambda _: b"\x89PNX" + bytes(range(128, 256)), {"png-signature"}),
    ("jpg", "cut short", cut(0.8), {"jpg-truncated"}),
    ("jpg", "a marker gone", lambda data: data[:2] + b"\x00" + data[3:], {"jpg-signature"}),
    ("jpg", "junk after a segment", lambda data: data[:20] + b"\x11\x22" + data[20:], {"jpg-marker"}),
    ("jpg", "a scan without data", lambda data: scan_cut(data, 0), {"jpg-no-image"}),
    ("jpg", "restart markers gone", lambda _: scan_cut(jpeg(restart_marker_rows=1)), {"jpg-truncated"}),
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
    ("webp", "line ends converted", lambda data: (data + b"\n").replace(b"\n", b"\r\n")[:-2], {"webp-newlines"}),
    ("webp", "the second half zeros", lambda _: half_zeros(noisy("webp")), {"webp-frame"}),
    ("webp", "random bytes", lambda _: b"RIFX" + bytes(range(128, 256)), {"webp-signature"}),
    ("bmp", "cut short", cut(0.8), {"bmp-truncated"}),
    ("bmp", "no width", lambda data: data[:18] + bytes(4) + data[22:], {"bmp-header"}),
    ("bmp", "an impossible depth", lambda data: data[:28] + b"\x05" + data[29:], {"bmp-header"}),
    ("bmp", "a billion pixels", lambda data: data[:18] + struct.pack("<ll", 60_000, 60_000) + data[26:], {"budget-exceeded"}),
    ("bmp", "half its width", lambda data: data[:18] + struct.pack("<l", 32) + data[22:], {"bmp-trailing"}),
    ("bmp", "bytes after the end", lambda data: data + b"more than four", {"bmp-trailing"}),
    ("bmp", "pixels inside the header", lambda data: data[:10] + struct.pack("<L", 5) + data[14:], {"bmp-header"}),
    ("bmp", "line ends converted", lambda _: noisy("bmp").replace(b"\n", b"\r\n"), {"bmp-newlines"}),
    ("bmp", "damaged by a text conversion", utf8_damaged, {"artifact-other-format"}),
    ("bmp", "random bytes", lambda _: bytes(range(128, 256)), {"bmp-signature"}),
    ("tiff", "cut short", cut(0.8), {"tiff-truncated"}),
    ("tiff", "a circle", lambda data: tiff_linked(data, 8), {"tiff-directory"}),
    ("tiff", "a directory beyond the end", lambda data: tiff_linked(data, 1 << 30), {"tiff-truncated"}),
    ("tiff", "no image", lambda _: b"II*\x00" + bytes(4), {"tiff-no-image"}),
    ("tiff", "no width", lambda data: tiff_set(data, 256, 0), {"tiff-header"}),
    ("tiff", "a billion pixels", lambda data: tiff_set(tiff_set(data, 256, 60_000), 257, 60_000), {"budget-exceeded"}),
    ("tiff", "random bytes", lambda _: bytes(range(128, 256)), {"tiff-signature"}),
    ("txt", "nothing", text("  \n"), {"artifact-empty"}),
    ("txt", "a binary", lambda _: good("gif"), {"artifact-other-format"}),
    ("txt", "zero bytes", lambda _: b"abc\x00def", {"text-binary"}),
    ("txt", "Latin-1", lambda _: "Größe".encode("latin-1"), {"text-encoding"}),
    ("txt", "a placeholder", text("TODO: write this"), {"placeholder-text"}),
    ("md", "nothing", text("\n"), {"artifact-empty"}),
    ("md", "a fence around it", text("```markdown\n# Title\n```\n"), {"md-fenced"}),
    ("md", "a placeholder", text("# 报告\n\n待补充\n"), {"placeholder-text"}),
    ("html", "Markdown", text("# Title\n\n- a\n"), {"html-no-element"}),
    ("html", "a page with a script only", text("<html><body>\n<script>go()</script>\n</body></html>"), {"html-blank"}),
    ("csv", "JSON", text('[{"a": 1}]'), {"csv-no-records"}),
    ("csv", "a header alone", text("a,b,c\n"), {"csv-no-records"}),
    ("csv", "uneven records", text("a,b\n1,2\n1,2,3\n"), {"csv-uneven"}),
    ("csv", "a quote that never ends", text('a,b\n"1,2\n3,4\n'), {"csv-syntax"}),
    ("svg", "HTML", text("<!DOCTYPE html><html><body>x<br></body></html>"), {"artifact-placeholder"}),
    ("svg", "prose", text("A drawing of a house."), {"artifact-placeholder"}),
    ("svg", "another root", text("<drawing/>"), {"svg-root"}),
    ("svg", "cut short", cut(0.6), {"xml-not-well-formed"}),
    ("svg", "an entity", text('<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>'), {"svg-entities"}),
    ("svg", "no namespace", text('<svg><rect width="1"/></svg>'), {"svg-namespace"}),
    ("svg", "nothing in it", text('<svg xmlns="http://www.w3.org/2000/svg"/>'), {"svg-blank"}),
    ("svg", "a script", lambda data: data.replace(b"<rect", b"<rect onclick='x()'"), {"svg-script"}),
    ("jsonl", "one document over many lines", text('{\n  "a": 1\n}\n'), {"json-syntax"}),
    ("jsonl", "NaN", text('{"a": NaN}\n'), {"json-syntax"}),
    ("jsonl", "nothing", text(""), {"artifact-empty"}),
    ("zip", "cut short", cut(0.7), {"zip-unreadable"}),
    ("zip", "prose", text("The archive will follow."), {"artifact-placeholder"}),
    ("zip", "empty", lambda _: pack({}), {"zip-empty"}),
    ("zip", "a member changed", lambda data: data.replace(bytes(range(100, 140)), bytes(40)), {"zip-member-crc"}),
    ("zip", "a member that climbs", added("../../evil.txt"), {"zip-member-path"}),
    ("zip", "a bomb", bomb, {"zip-bomb"}),
    ("zip", "a name twice", lambda _: pack({"a.txt": b"1", "b.txt": b"2"}).replace(b"b.txt", b"a.txt"), {"zip-member-duplicate"}),
]  # fmt: skip

# What only the deep tier sees.
_RELS1 = "ppt/slides/_rels/slide1.xml.rels"
DEEP_CASES: list[tuple[str, str, Damage, set[str]]] = [
    ("pptx", "a part that is gone", without("ppt/presProps.xml"), {"ooxml-target-missing", "ooxml-type-phantom"}),
    ("pptx", "a relation that is gone", replaced(_SLIDE1, "</p:spTree>", '<p:pic><p:nvPicPr><p:cNvPr id="90" name="p"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:embed="rId99" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"/></p:blipFill><p:spPr/></p:pic></p:spTree>'), {"ooxml-relation-unresolved"}),
    ("pptx", "a relation id twice", replaced(_RELS1, "</Relationships>", '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/slideLayout" Target="../slideLayouts/slideLayout1.xml"/></Relationships>'), {"ooxml-relation-id"}),
    ("pptx", "relations of nothing", added("ppt/slides/_rels/slide9.xml.rels", b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'), {"ooxml-relations-stray"}),
    ("pptx", "an orphan", added("ppt/slides/slide9.xml", b"<x/>"), {"ooxml-part-orphan"}),
    ("pptx", "a part without a type", added("ppt/lost.bin2"), {"ooxml-part-orphan", "ooxml-type-missing"}),
    ("pptx", "text for a picture", lambda data: with_picture(data, b"The logo goes here."), {"ooxml-media-fake"}),
    ("pptx", "half a picture", lambda data: with_picture(data, cut(0.6)(good("png"))), {"ooxml-media-damaged"}),
    ("pptx", "a GIF named PNG", lambda data: with_picture(data, good("gif")), {"ooxml-media-fake"}),
    ("pptx", "a colour name", shape('<a:solidFill><a:srgbClr val="red"/></a:solidFill>'), {"drawing-colour"}),
    ("pptx", "an unknown shape", shape('<a:prstGeom prst="roundedRect"/>'), {"drawing-preset"}),
    ("pptx", "NaN", shape('<a:xfrm><a:off x="NaN" y="0"/><a:ext cx="5" cy="5"/></a:xfrm>'), {"drawing-measure"}),
    ("pptx", "a negative size", shape('<a:xfrm><a:off x="0" y="0"/><a:ext cx="-5" cy="5"/></a:xfrm>'), {"drawing-negative"}),
    ("pptx", "an unknown anchor", replaced(_SLIDE1, "<a:bodyPr/>", '<a:bodyPr anchor="middle"/>'), {"drawing-anchor"}),
    ("pptx", "a shape without properties", replaced(_SLIDE1, r"<p:spPr/>", ""), {"pptx-shape-parts"}),
    ("pptx", "a shape id twice", replaced(_SLIDE1, r'<p:cNvPr id="2"', '<p:cNvPr id="1"'), {"pptx-shape-id"}),
    ("pptx", "a text body without a paragraph", replaced(_SLIDE1, r"<a:p>.*</a:p>", ""), {"pptx-text-body", "pptx-slide-blank"}),
    ("pptx", "a row without a cell", lambda data: replaced(_SLIDE1, r"(<a:tr\b.*?)<a:tc>.*?</a:tc>", r"\1")(with_table(data)), {"pptx-table-row"}),
    ("pptx", "no layout", lambda data: pack({**parts(data), _RELS1: b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'}), {"pptx-layout-missing"}),
    ("pptx", "no theme", replaced("ppt/slideMasters/_rels/slideMaster1.xml.rels", r"<Relationship [^>]*/theme\"[^>]*/>", ""), {"pptx-theme-missing"}),
    ("pptx", "no master", replaced("ppt/_rels/presentation.xml.rels", r"<Relationship [^>]*/slideMaster\"[^>]*/>", ""), {"pptx-master-missing", "ooxml-relation-unresolved"}),
    ("pptx", "a slide of another type", replaced("[Content_Types].xml", r'(PartName="/ppt/slides/slide1.xml" ContentType="[^"]*)slide\+xml', r"\1slideLayout+xml"), {"pptx-slide-type"}),
    ("pptx", "children out of order", replaced("ppt/presentation.xml", r"(<p:sldIdLst>.*</p:sldIdLst>)(.*)(<p:notesSz[^>]*/>)", r"\2\3\1"), {"pptx-child-order"}),
    ("docx", "a cell without a paragraph", replaced("word/document.xml", r"(<w:tcPr>(?:(?!</w:tcPr>).)*</w:tcPr>)<w:p>.*?</w:p>", r"\1"), {"docx-cell-end"}),
    ("docx", "text outside a run", replaced("word/document.xml", "<w:body>", "<w:body>lost words"), {"docx-text-outside"}),
    ("docx", "a field that never ends", replaced("word/document.xml", "</w:p>", '<w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p>'), {"docx-field-balance"}),
    ("docx", "a comment that is gone", replaced("word/document.xml", "</w:p>", '<w:r><w:commentReference w:id="7"/></w:r></w:p>'), {"docx-comment-missing"}),
    ("xlsx", "a style that is gone", replaced("xl/worksheets/sheet1.xml", '<c r="B1"', '<c r="B1" s="99"'), {"xlsx-style-range"}),
    ("xlsx", "a text that is gone", replaced("xl/worksheets/sheet1.xml", r't="n"><v>1</v>', 't="s"><v>999</v>'), {"xlsx-text-range"}),
    ("xlsx", "a column name twice", lambda data: with_columns(data, 'name="a"', 'name="A"'), {"xlsx-table-column"}),
    ("xlsx", "a table that is too wide", lambda data: replaced("xl/tables/table1.xml", r'ref="A1:B2"', 'ref="A1:C2"')(with_columns(data)), {"xlsx-table-width"}),
    ("pdf", "a damaged stream", lambda data: data.replace(b"hPEM_", b"hQEM_", 1), {"pdf-stream-damaged", "pdf-page-unreadable", "pdf-repaired"}),
    ("pdf", "a wrong checksum", flate_damaged, {"pdf-stream-damaged"}),
    ("pdf", "a filter that is no UTF-8", lambda data: data.replace(b"/ASCII85Decode", b"/\x9aSCII85Decode"), {"pdf-page-unreadable"}),
    ("pdf", "a filter that is no name", lambda data: data.replace(b"/ASCII85Decode", b"7             "), {"pdf-page-unreadable", "pdf-repaired"}),
    ("pdf", "a blank page", lambda _: blank_page(), {"pdf-page-blank"}),
    ("pdf", "a wrong entry in the table", lambda data: data.replace(b"0000000092 ", b"0000000003 "), {"pdf-repaired"}),
    ("pdf", "marked content with a reference", lambda _: pdf_of(b"/F1 <</A 1 0 R>> BDC (x) Tj"), {"pdf-page-unreadable", "pdf-repaired"}),
    ("pdf", "a root that is not there", lambda data: re.sub(rb"/Root \d+", b"/Root 9", data), {"pdf-unreadable"}),
    ("pdf", "a page's content gone", lambda data: data.replace(b"8 0 obj", b"8 0 xxx"), {"pdf-object-lost", "pdf-page-blank"}),
    ("png", "one colour", lambda _: one_colour(), {"image-one-colour"}),
    ("jpg", "data that end early", lambda _: scan_cut(jpeg()), {"image-undecodable"}),
    ("jpg", "progressive data that end early", lambda _: scan_cut(jpeg(progressive=True), 0.9), {"image-undecodable"}),
    ("tiff", "pages of one colour", lambda _: pages_of_one_colour("white", "white"), {"image-one-colour"}),
    ("jpg", "a code table of zeros", lambda data: (at := data.index(b"\xff\xc4")) and data[: at + 5] + bytes(20) + data[at + 25 :], {"image-undecodable"}),
]  # fmt: skip
