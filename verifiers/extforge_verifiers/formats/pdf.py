"""Portable Document Format (.pdf).

Sources:

- ISO 32000-2:2020 §7.5.2 header, §7.5.5 trailer and `startxref`, §7.5.7 object streams,
  §7.7.2 catalog, §7.7.3 page tree.

Laxer than the standard, on purpose: the header may stand anywhere in the first 1,024 bytes (Annex I.3.4.1,
what every reader accepts) and bytes may follow `%%EOF`.
"""

from __future__ import annotations

import re
import zlib
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.disguises import (
    Disguise,
    check_disguise,
    posing,
    recognise,
)
from extforge_verifiers.findings import Finding, invalid, warning
from extforge_verifiers.formats.pdf_objects import NotCertain, Objects, count_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["check_end", "check_header", "check_objects"]

_HEADER_WINDOW = 1024
_END_WINDOW = 2048
_SMALLEST = 67  # bytes of the shortest PDF that any reader opens
_OVERLAP = 2048  # bytes kept between chunks
_OBJECT_STREAM_LIMIT = 16 << 20
_MOST_STREAMS = 2_000
_PAGE = re.compile(rb"/Type\s{0,16}/Page(?![A-Za-z])")
_OBJECT = re.compile(rb"\d\s{1,8}\d{1,5}\s{1,8}obj\b")
_OBJECT_STREAM = re.compile(rb"/Type\s{0,16}/ObjStm(?![A-Za-z])")
_STREAM = re.compile(rb"stream\r?\n")
_STARTXREF = re.compile(rb"startxref\s+(\d{1,18})\b")
_XREF = re.compile(rb"\s*(?:xref\b|\d+\s+\d+\s+obj\b)")
# A stream whose bytes as they stand are no text.
_BINARY = re.compile(rb"/Filter\s{0,16}(?:\[\s{0,16})?/(?:Flate|LZW|DCT)Decode")
_QUOTES = (b"b'", b'b"', b"'", b'"')  # what Python's repr and JSON put before a text
_TEXTS = frozenset(("html", "json", "md", "svg", "xml"))


def check_header(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an HTML error page, a text or an image saved as report.pdf; a text that quotes a PDF."""
    head = artifact.head(_HEADER_WINDOW)
    at = head.find(b"%PDF-")
    if at < 0:
        found = list(check_disguise(artifact, "pdf"))
        yield from found
        if not found:
            yield invalid(
                "pdf-header-missing", f"starts with {head[:8]!r}, not %PDF-", offset=0
            )
        return
    before = head[:at].strip()
    text = recognise(before) if before else None
    if before in _QUOTES:
        text = Disguise("quoted", "a PDF's bytes written as text", is_text=True)
    if text is not None and (before in _QUOTES or text.format in _TEXTS):
        fix = "write real PDF bytes, or name the file for what it is"
        yield posing(artifact, text, fix=fix)
        return
    artifact.facts["version"] = head[at + 5 : at + 8].decode("latin-1")


def check_end(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a download cut short; a file that went through a text conversion."""
    tail = artifact.tail(_END_WINDOW)
    if b"%%EOF" not in tail:
        message = "no %%EOF near the end: the file is cut short"
        yield invalid("pdf-end-missing", message, offset=artifact.size)
    elif _STARTXREF.search(tail) is None:
        message = "no startxref with a number near the end: the cross-reference table cannot be found"
        yield invalid("pdf-startxref-missing", message, offset=artifact.size)
    elif _find_xref(artifact) is None:
        yield _converted(artifact) or warning(
            "pdf-startxref-wrong",
            "startxref does not lead to the cross-reference table: readers have to rebuild it",
            offset=artifact.size,
        )


def check_objects(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a header and an end with nothing, or no page, between them."""
    place = _find_xref(artifact)
    if place is None:
        yield from _scan(artifact)
        return
    try:
        objects = Objects(artifact, *place)
        artifact.facts["pages"] = pages = count_pages(objects)
        artifact.facts["encrypted"] = b"/Encrypt" in objects.trailer
    except NotCertain:
        problem = _converted(artifact)
        yield from _scan(artifact) if problem is None else (problem,)
        return
    if not pages:
        yield invalid("pdf-no-pages", "the document has no page")


def _find_xref(artifact: Artifact) -> tuple[int, int] | None:
    """Return (where offsets count from, offset of the last cross-reference); None when startxref leads nowhere."""
    header = max(artifact.head(_HEADER_WINDOW).find(b"%PDF-"), 0)
    found = _STARTXREF.findall(artifact.tail(_END_WINDOW))
    for base in (header, 0) if found else ():
        if _XREF.match(artifact.read_at(base + int(found[-1]), 64)):
            return base, int(found[-1])
    return None


def _converted(artifact: Artifact) -> Finding | None:
    """Return what a text conversion did to a file that leads astray; None when there was none."""
    decoder = getincrementaldecoder("utf-8")()
    replaced = 0
    utf8 = crlf = plain = True
    binary, before = False, b""
    target = int(_STARTXREF.findall(artifact.tail(_END_WINDOW))[-1])
    # Where startxref leads once every CR LF is a line feed again.
    position, undone = 0, b""
    for chunk in artifact.chunks():
        plain = plain and chunk.isascii()
        binary = binary or _BINARY.search(before + chunk) is not None
        piece = (before[-1:] if before.endswith(b"\r") else b"") + chunk
        crlf = crlf and (before[-1:] + chunk).count(b"\r\n") == chunk.count(b"\n")
        if crlf:
            piece = piece.removesuffix(b"\r").replace(b"\r\n", b"\n")
            if position + len(piece) > target and len(undone) < 64:
                undone += piece[max(target - position, 0) :][: 64 - len(undone)]
            position += len(piece)
        if utf8:
            try:
                replaced += decoder.decode(chunk).count("\ufffd")
            except UnicodeDecodeError:
                utf8 = False
        if not utf8 and not crlf:
            return None
        before = chunk[-64:]
    # No compressed stream is UTF-8 by chance: what is, was made so.
    if utf8 and (replaced or (binary and not plain)):
        words = f"damaged by a UTF-8 conversion ({replaced:,} replacement characters)"
    elif crlf and binary and not plain and _XREF.match(undone):
        words = "every line feed in it became CR LF: damaged by a text conversion"
    else:
        return None
    return invalid("pdf-text-conversion", words)


def _scan(artifact: Artifact) -> Iterator[Finding]:
    """Look for what any document has, where nothing leads to it."""
    objects = paged = encrypted = rooted = catalogued = False
    streams: list[int] = []
    for start, window, fresh in _windows(artifact):
        objects = objects or _OBJECT.search(window) is not None
        paged = paged or _PAGE.search(window) is not None
        encrypted = encrypted or b"/Encrypt" in window
        rooted = rooted or b"/Root" in window
        catalogued = catalogued or b"/Catalog" in window
        if len(streams) <= _MOST_STREAMS:
            streams += [
                start + m.end()
                for m in _OBJECT_STREAM.finditer(window)
                if m.end() > fresh
            ]
    artifact.facts["encrypted"] = encrypted
    if not objects or artifact.size < _SMALLEST:
        words = f"an empty shell: {artifact.size} bytes, "
        words += "little in it" if objects else "no object"
        yield invalid("pdf-empty-shell", words)
    elif not paged and _streams_lack_pages(artifact, streams):
        yield invalid("pdf-no-pages", "the document has no page")
    elif not rooted:
        words = "no trailer has a /Root: nothing says where the document begins"
        yield invalid("pdf-catalog-missing", words)
    elif not catalogued and not streams:
        words = "no object is a /Catalog: nothing leads to the pages"
        yield invalid("pdf-catalog-missing", words)


def _windows(artifact: Artifact) -> Iterator[tuple[int, bytes, int]]:
    """Yield (offset, bytes, how many of them were seen before): chunks that overlap."""
    position, kept = 0, b""
    for chunk in artifact.chunks():
        yield position - len(kept), kept + chunk, len(kept)
        position += len(chunk)
        kept = (kept + chunk)[-_OVERLAP:]


def _streams_lack_pages(artifact: Artifact, offsets: list[int]) -> bool:
    """Return whether no object stream has a page; False when one cannot be read (encrypted, damaged)."""
    if len(offsets) > _MOST_STREAMS:
        return False
    for offset in offsets:
        match = _STREAM.search(artifact.read_at(offset, _OVERLAP))
        if match is None:
            return False
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(
                artifact.read_at(offset + match.end(), CHUNK), _OBJECT_STREAM_LIMIT
            )
        except zlib.error:
            return False
        artifact.spend(len(body))
        if not inflater.eof or _PAGE.search(body):
            return False
    return True
