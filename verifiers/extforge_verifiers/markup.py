"""XML, read with expat: well-formed, namespaces included, and nothing that could fetch or explode.

A DOCTYPE is refused outright (Office parts never have one), which rules out external entities and entity
bombs whatever version of expat is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from xml.parsers import expat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["SEPARATOR", "DoctypeRefused", "MarkupError", "local_name", "scan"]

SEPARATOR = " "  # expat joins namespace and name with this; neither can contain it


class MarkupError(Exception):
    """The XML is not well-formed."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message, line, column)
        self.message, self.line, self.column = message, line, column

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"


class DoctypeRefused(MarkupError):
    """The XML has a DOCTYPE, which could declare entities."""


class _Parser(Protocol):
    CurrentLineNumber: int
    CurrentColumnNumber: int


def local_name(name: str) -> str:
    """Return `sld` for `http://... sld`."""
    return name.rpartition(SEPARATOR)[2]


def scan(
    source: bytes | Iterable[bytes],
    on_start: Callable[[str, dict[str, str]], None] | None = None,
    on_text: Callable[[str], None] | None = None,
    on_end: Callable[[str], None] | None = None,
    *,
    doctype: bool = False,
) -> None:
    """Parse a document, whole or in pieces, calling the handlers as elements, text and ends come by.

    Raises:
        MarkupError: where the document stops being well-formed.
        DoctypeRefused: at a DOCTYPE; with `doctype=True` only at one that declares an entity.
    """
    parser = expat.ParserCreate(namespace_separator=SEPARATOR)
    if doctype:
        parser.EntityDeclHandler = _refuse_entity
    else:
        parser.StartDoctypeDeclHandler = _refuse_doctype
    if on_start is not None:
        parser.StartElementHandler = on_start
    if on_text is not None:
        parser.buffer_text = True
        parser.CharacterDataHandler = on_text
    if on_end is not None:
        parser.EndElementHandler = on_end
    try:
        if isinstance(source, bytes):
            parser.Parse(source, True)  # noqa: FBT003 -- expat takes no keywords
            return
        for piece in source:
            parser.Parse(piece, False)  # noqa: FBT003
        parser.Parse(b"", True)  # noqa: FBT003
    except _Refused as exc:
        raise DoctypeRefused(str(exc), *_position(parser)) from None
    except expat.ExpatError as exc:
        raise MarkupError(
            expat.ErrorString(exc.code), exc.lineno, exc.offset + 1
        ) from exc
    except (
        LookupError,
        ValueError,
    ) as exc:  # an encoding that Python does not know, or cannot use here
        raise MarkupError(f"unusable encoding: {exc}", *_position(parser)) from exc


class _Refused(Exception):
    """From a handler, which does not know where the parser is."""


def _refuse_doctype(*_: object) -> None:
    raise _Refused("DOCTYPE is not allowed here")


def _refuse_entity(*_: object) -> None:
    raise _Refused("it declares an entity")


def _position(parser: _Parser) -> tuple[int, int]:
    return parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
