"""PDF documents, opened: pages that are there, streams that inflate, ink on every page.

pikepdf (qpdf) repairs what it can and says so: what it repaired is a warning, what is lost is an error.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

from extforge_verifiers.artifact import CHUNK
from extforge_verifiers.findings import Undetermined, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_document"]

_PAGES = 2_000  # looked at for ink
# Operators that leave something on the page (ISO 32000-2 Annex A): text, painted paths, images, shadings.
_INK = frozenset(
    (
        "Tj",
        "TJ",
        "'",
        '"',
        "f",
        "F",
        "f*",
        "B",
        "B*",
        "b",
        "b*",
        "S",
        "s",
        "Do",
        "BI",
        "EI",
        "sh",
        "INLINE IMAGE",
    )
)
_MOST = 10
# What qpdf says where something of the document is gone.
_LOST = (
    "not found in file after regenerating",
    "unable to find trailer dictionary",
)


def check_document(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a document that readers repair on opening, whose pages or streams are gone, or that is blank."""
    import pikepdf  # noqa: PLC0415 -- the deep tier's own library

    artifact.stream.seek(0)
    try:
        document = pikepdf.open(artifact.stream, suppress_warnings=True)
    except pikepdf.PasswordError as exc:
        raise Undetermined("the document needs a password") from exc
    except (pikepdf.PdfError, ValueError, RuntimeError) as exc:
        yield invalid("pdf-unreadable", f"cannot be opened: {_reason(exc)}")
        return
    with document:
        try:
            pages = len(document.pages)
        except (pikepdf.PdfError, ValueError, RuntimeError) as exc:
            yield invalid("pdf-no-pages", f"its pages cannot be found: {_reason(exc)}")
            return
        artifact.facts["pages"] = pages
        artifact.facts["encrypted"] = document.is_encrypted
        if not pages:
            yield invalid("pdf-no-pages", "the document has no page")
            return
        yield from _check_streams(artifact, document)
        yield from _check_ink(artifact, document)
        repaired = list(
            dict.fromkeys(_reason(item) for item in document.get_warnings())
        )
        lost = [words for words in repaired if any(sign in words for sign in _LOST)]
        for words in lost[:_MOST]:
            yield invalid("pdf-object-lost", f"lost beyond repair: {words}")
        for words in [] if lost else repaired[:_MOST]:
            yield warning("pdf-repaired", f"repaired on opening: {words}")


def _reason(message: object) -> str:
    """Return what qpdf says without the stream's Python name before it."""
    return str(message).rpartition(": ")[2]


def _check_streams(artifact: Artifact, document: Any) -> Iterator[Finding]:
    """Every stream that is compressed with Flate inflates."""
    import pikepdf  # noqa: PLC0415

    lost = 0
    for item in document.objects:
        if not isinstance(item, pikepdf.Stream):
            continue
        artifact.spend(0)
        filters = item.get("/Filter")
        if filters is None:
            continue
        # As bytes: in a damaged file a name need not be UTF-8.
        names = [
            getattr(name, "unparse", bytes)()
            for name in (filters if isinstance(filters, pikepdf.Array) else [filters])
        ]
        if names not in ([b"/FlateDecode"], [b"/ASCII85Decode", b"/FlateDecode"]):
            continue
        # Not qpdf's own decoder: it overlooks a wrong checksum at the end.
        try:
            data = item.read_raw_bytes()
            if len(names) > 1:
                data = base64.a85decode(data.strip().removesuffix(b"~>"))
            complete = _inflates(artifact, data)
        except (pikepdf.PdfError, RuntimeError, ValueError, zlib.error) as exc:
            complete, reason = False, _reason(exc)
        else:
            reason = "it ends too early"
        if not complete:
            lost += 1
            if lost <= _MOST:
                number = item.objgen[0]
                yield invalid(
                    "pdf-stream-damaged",
                    f"the stream of object {number} does not inflate: {reason}",
                )


def _inflates(artifact: Artifact, data: bytes) -> bool:
    """Return whether the data is one whole zlib stream; raise zlib.error where it is damaged."""
    if not data:
        return True
    stream = zlib.decompressobj()
    while data and not stream.eof:
        artifact.spend(len(stream.decompress(data, CHUNK)))
        data = stream.unconsumed_tail
    return stream.eof


def _check_ink(artifact: Artifact, document: Any) -> Iterator[Finding]:
    """A page without a single operator that draws is blank."""
    import pikepdf  # noqa: PLC0415

    blank = []
    for number, page in enumerate(document.pages, 1):
        if number > _PAGES:
            break
        artifact.spend(0)
        try:
            operators = {
                str(entry.operator) for entry in pikepdf.parse_content_stream(page)
            }
        except (pikepdf.PdfError, RuntimeError, TypeError, ValueError) as exc:
            yield invalid(
                "pdf-page-unreadable",
                f"page {number}: its content cannot be read: {_reason(exc)}",
            )
            continue
        if not operators & _INK and "/Annots" not in page.obj:
            blank.append(number)
    if blank:
        shown = ", ".join(str(number) for number in blank[:_MOST])
        yield warning(
            "pdf-page-blank",
            f"{len(blank)} of {len(document.pages)} pages are blank: {shown}",
        )
