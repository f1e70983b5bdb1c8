"""Portable Document Format (.pdf).

Sources:

- ISO 32000-2:2020 §7.5.2 header, §7.5.5 trailer and `startxref`, §7.5.7 object streams,
  §7.7.2 catalog, §7.7.3.3 page objects.

Laxer than the standard, on purpose: the header may stand anywhere in the first 1,024 bytes (Annex I.3.4.1,
what every reader accepts) and bytes may follow `%%EOF`.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_end", "check_header", "check_objects"]

_HEADER_WINDOW = 1024
_END_WINDOW = 2048
_SMALLEST = 67  # bytes of the shortest PDF that any reader opens
_OVERLAP = 2048  # bytes kept between chunks, longer than any page dictionary's head
_OBJECT_STREAM_LIMIT = 16 << 20
_PAGE = re.compile(rb"/Type\s{0,16}/Page(?![A-Za-z])")
_OBJECT = re.compile(rb"(\d{1,10})\s{1,8}\d{1,5}\s{1,8}obj\b")
_OBJECT_STREAM = re.compile(rb"/Type\s{0,16}/ObjStm(?![A-Za-z])")
_STREAM = re.compile(rb"stream\r?\n")


def check_header(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an HTML error page, a text or an image saved as report.pdf."""
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
    artifact.facts["version"] = head[at + 5 : at + 8].decode("latin-1")


def check_end(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a download cut short; the header is fine, the end is gone."""
    tail = artifact.tail(_END_WINDOW)
    if b"%%EOF" not in tail:
        message = "no %%EOF near the end: the file is cut short"
        yield invalid("pdf-end-missing", message, offset=artifact.size)
    elif b"startxref" not in tail:
        message = "no startxref near the end: the cross-reference table cannot be found"
        yield invalid("pdf-startxref-missing", message, offset=artifact.size)


def check_objects(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a header and an end with nothing, or no page, between them."""
    pages: set[bytes] = set()
    objects = 0
    encrypted = rooted = catalogued = False
    streams: list[int] = []
    for start, window, fresh in _windows(artifact):
        objects += sum(1 for m in _OBJECT.finditer(window) if m.end() > fresh)
        encrypted = encrypted or b"/Encrypt" in window
        rooted = rooted or b"/Root" in window
        catalogued = catalogued or b"/Catalog" in window
        for match in _PAGE.finditer(window):
            owners = _OBJECT.findall(
                window[max(match.start() - _OVERLAP, 0) : match.start()]
            )
            pages.add(owners[-1] if owners else b"@%d" % (start + match.start()))
        streams += [
            start + m.end() for m in _OBJECT_STREAM.finditer(window) if m.end() > fresh
        ]
    artifact.facts["encrypted"] = encrypted
    inside = _pages_in_streams(artifact, streams)
    if inside is not None:
        artifact.facts["pages"] = len(pages) + inside
    if objects == 0 or artifact.size < _SMALLEST:
        yield invalid(
            "pdf-empty-shell",
            f"an empty shell: {artifact.size} bytes, {objects} objects",
        )
    elif artifact.facts.get("pages") == 0:
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


def _pages_in_streams(artifact: Artifact, offsets: list[int]) -> int | None:
    """Return the page objects kept in object streams; None when one cannot be read (encrypted, damaged)."""
    total = 0
    for offset in offsets:
        near = artifact.read_at(offset, _OVERLAP)
        match = _STREAM.search(near)
        if match is None:
            return None
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(
                artifact.read_at(offset + match.end(), CHUNK), _OBJECT_STREAM_LIMIT
            )
        except zlib.error:
            return None
        artifact.spend(len(body))
        total += len(_PAGE.findall(body))
    return total
