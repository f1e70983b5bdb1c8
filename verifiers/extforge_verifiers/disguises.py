"""What a file really is, when it is not what its name says.

This only words a message: a type sniffer never decides whether a file is good (on a public corpus they accept
four of five damaged Office files, and reject every deck that PptxGenJS writes).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extforge_verifiers.findings import Finding, Where, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["Disguise", "check_disguise", "posing", "recognise"]

_WINDOW = 4096
_RENAME = "or name the file for what it is"

# The first bytes of what people and programs leave behind under a wrong name.
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "pdf", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "png", "a PNG image"),
    (b"\xff\xd8\xff", "jpg", "a JPEG image"),
    (b"GIF87a", "gif", "a GIF image"),
    (b"GIF89a", "gif", "a GIF image"),
    (b"BM", "bmp", "a BMP image"),
    (b"II*\x00", "tiff", "a TIFF image"),
    (b"MM\x00*", "tiff", "a TIFF image"),
    (b"PK\x03\x04", "zip", "a ZIP archive"),
    (b"PK\x05\x06", "zip", "an empty ZIP archive"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "ole",
        "an OLE file, as Office used until 2007",
    ),
    (b"{\\rtf", "rtf", "an RTF document"),
    (b"\x1f\x8b", "gzip", "gzip-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "rar", "a RAR archive"),
    (b"SQLite format 3\x00", "sqlite", "an SQLite database"),
    (b"\x7fELF", "elf", "a Linux program"),
    (b"MZ", "exe", "a Windows program"),
)
# Streams of an OLE file ([MS-CFB] directory entries) -> what the file is.
_OLE_STREAMS = (
    ("EncryptedPackage", "a password-protected Office document"),
    ("WordDocument", "a Word 97-2003 document (.doc)"),
    ("PowerPoint Document", "a PowerPoint 97-2003 presentation (.ppt)"),
    ("Workbook", "an Excel 97-2003 workbook (.xls)"),
)
_REPLACEMENT = b"\xef\xbf\xbd"  # U+FFFD in UTF-8
# Compiled when first needed: good files never are.
_MARKDOWN = rb"(?m)^(#{1,6} \S|[-*] \S|```|\|.+\|\s*$|\d+\. \S)"


@dataclass(frozen=True, slots=True)
class Disguise:
    """What the bytes are: a format name, words for people, and whether it is text posing as an artifact."""

    format: str
    words: str
    is_text: bool = False


def recognise(head: bytes) -> Disguise | None:
    """Return what these first bytes are, or None when nothing is known about them."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Disguise("webp", "a WebP image")
    for signature, name, words in _SIGNATURES:
        if head.startswith(signature) and not (len(signature) == 2 and _is_text(head)):
            return Disguise(name, words)
    if damaged := head.count(_REPLACEMENT):
        return Disguise(
            "damaged",
            f"a binary file damaged by a UTF-8 conversion ({damaged:,} replacement characters)",
        )
    if not head.strip(b"\x00"):
        return Disguise("zeros", "nothing but zero bytes") if head else None
    return _recognise_text(head) if _is_text(head) else None


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True  # UTF-16 with a byte order mark
    if any(byte < 9 or 13 < byte < 27 for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as exc:
        return (
            exc.start >= len(head) - 3 and len(head) >= _WINDOW
        )  # cut inside a character
    return True


def _recognise_text(head: bytes) -> Disguise:
    text = head.removeprefix(b"\xef\xbb\xbf").strip()
    start = text[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return Disguise("html", "an HTML page", is_text=True)
    if b"<svg" in text[:512]:
        return Disguise("svg", "an SVG drawing", is_text=True)
    if start.startswith(b"<?xml"):
        return Disguise("xml", "an XML document", is_text=True)
    if start.startswith((b"{", b"[")) and re.match(
        rb'[{\[]\s*(["{\[\]}0-9-]|null|true|false)', text
    ):
        return Disguise("json", "JSON text", is_text=True)
    if start.startswith((b"traceback (most", b"error", b"exception")):
        return Disguise("txt", f"an error message: {_quote(text)}", is_text=True)
    if inner := _inside_base64(text):
        return Disguise("base64", f"base64 text of {inner.words}", is_text=True)
    if len(re.findall(_MARKDOWN, text)) >= 2 or text.startswith(b"# "):
        return Disguise("md", "Markdown text", is_text=True)
    return Disguise("txt", f"plain text: {_quote(text)}", is_text=True)


def _quote(text: bytes) -> str:
    line = text.decode("utf-8", "replace").splitlines()[0] if text else ""
    return repr(line[:40] + ("..." if len(line) > 40 else ""))


def _inside_base64(text: bytes) -> Disguise | None:
    body = text.partition(b"base64,")[2] if text.startswith(b"data:") else text
    body = b"".join(body.split())[:1024]
    if len(body) < 16 or re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", body) is None:
        return None
    try:
        decoded = base64.b64decode(body[: len(body) // 4 * 4])
    except binascii.Error:
        return None
    inner = recognise(decoded)
    return inner if inner is not None and not inner.is_text else None


def _look_further(artifact: Artifact, found: Disguise) -> Disguise:
    """Name what the first bytes alone do not tell."""
    if found.format == "damaged":
        count = 0
        before = b""
        for chunk in artifact.chunks():
            piece = before + chunk
            count += piece.count(_REPLACEMENT)
            before = piece[-2:]
        words = f"a binary file damaged by a UTF-8 conversion ({count:,} replacement characters)"
        return Disguise("damaged", words)
    if found.format == "ole":
        head = artifact.head(512)
        shift = int.from_bytes(head[30:32], "little")
        sector = int.from_bytes(head[48:52], "little")
        entries = artifact.read_at((sector + 1) << min(shift, 16), 4096)
        for name, words in _OLE_STREAMS:
            if name.encode("utf-16-le") in entries:
                encrypted = name == "EncryptedPackage"
                return Disguise("encrypted" if encrypted else "ole", words)
    return found


def check_disguise(artifact: Artifact, expected: str) -> Iterator[Finding]:
    """Fake: report.pptx that is an HTML page, Markdown, JSON or base64 text, or another format altogether.

    Yields nothing when the bytes are not recognised; the format's own checks then say what is missing.
    """
    found = recognise(artifact.head(_WINDOW))
    if found is not None:
        found = _look_further(artifact, found)
    if artifact.size == 0:
        yield Finding(
            "artifact-empty",
            "the file is empty (0 bytes)",
            failure_id="artifact_format_invalid",
        )
    elif found is not None and found.format == "encrypted":
        yield Finding(
            "office-encrypted",
            f"it is {found.words}; nothing in it can be verified",
            fix="save it without a password",
            failure_id="artifact_format_invalid",
        )
    elif found is not None and found.format != expected:
        kind = artifact.suffix.lstrip(".").upper() or expected.upper()
        if artifact.suffix == f".{found.format}":  # the name does not tell the promise
            kind = "Office" if expected == "zip" else expected.upper()
        if found.is_text:
            yield posing(artifact, found, fix=f"write real {kind} bytes, {_RENAME}")
        else:
            words = _contradiction(artifact, found)
            yield invalid("artifact-other-format", words)


def posing(
    artifact: Artifact,
    found: Disguise,
    *,
    fix: str | None = f"write what the name promises, {_RENAME}",
    where: Where | None = None,
) -> Finding:
    """Return the error that says: the file is another kind of text than was promised."""
    return Finding(
        "artifact-placeholder",
        _contradiction(artifact, found),
        where=where or Where(),
        fix=fix,
        failure_id="artifact_placeholder_output",
    )


def _contradiction(artifact: Artifact, found: Disguise) -> str:
    if artifact.suffix == f".{found.format}":
        return f"it is {found.words}, and something else was promised"
    named = artifact.suffix or "without a suffix"
    return f"named {named}, but it is {found.words}"
