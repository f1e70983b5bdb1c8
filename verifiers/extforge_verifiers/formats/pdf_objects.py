"""The objects of a PDF, found as a reader finds them: by the cross-reference, from the end of the file.

Sources:

- ISO 32000-2:2020 §7.3 objects, §7.5.4 and §7.5.8 cross-reference tables and streams, §7.5.5 trailer,
  §7.5.7 object streams, §7.7.3 page tree.

Stricter than readers, on purpose: what they repair or guess raises `NotCertain` here, because a wrong count is
worse than none.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from extforge_verifiers.artifact import CHUNK

if TYPE_CHECKING:
    from extforge_verifiers.artifact import Artifact

__all__ = ["NotCertain", "Objects", "Reference", "count_pages"]

_NEAR = 4096  # bytes read for an object at first
_LARGEST = 2 << 20  # bytes of one object that are read at most
_INFLATED = 64 << 20  # bytes that all the streams of one file may inflate to
_ENTRIES = 300_000  # cross-reference entries kept
_SECTIONS = 1_000
_NODES = 100_000  # of the page tree
_DEPTH = 64
_ROW = 20  # bytes of a table's entry
_SPACE = b"\0\t\n\f\r "
_TOKEN = re.compile(
    rb"(?:[\0\t\n\f\r ]++|%[^\r\n]*+[\r\n])*+"
    rb"(?:(?P<reference>(\d{1,10})[\0\t\n\f\r ]+(\d{1,5})[\0\t\n\f\r ]+R(?![A-Za-z]))"
    rb"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    rb"|(?P<name>/[^\0\t\n\f\r ()<>\[\]{}/%]*)"
    rb"|(?P<mark><<|>>|\[|\]|\()"
    rb"|(?P<hex><[0-9A-Fa-f\0\t\n\f\r ]*>)"
    rb"|(?P<word>[A-Za-z]+))"
)
_QUOTE = re.compile(rb"\\.|[()]", re.DOTALL)
_OBJECT = re.compile(
    rb"[\0\t\n\f\r ]*(\d{1,10})[\0\t\n\f\r ]+\d{1,5}[\0\t\n\f\r ]+obj\b"
)
_STREAM = re.compile(rb"[\0\t\n\f\r ]*stream\r?\n")
_SUBSECTION = re.compile(rb"[\0\t\n\f\r ]*(\d{1,10}) (\d{1,10})[ \t]*(?:\r\n|\r|\n)")
_TRAILER = re.compile(rb"[\0\t\n\f\r ]*trailer\b")


class NotCertain(Exception):
    """The file does not lead to what was looked for without a guess."""


class Reference(NamedTuple):
    """`7 0 R`: an object that stands elsewhere."""

    number: int
    generation: int


class _CutShort(Exception):
    """The bytes end inside an object."""


class Objects:
    """The objects of one file; `trailer` is the newest one."""

    def __init__(self, artifact: Artifact, base: int, start: int) -> None:
        """Read the cross-reference at `start`; offsets count from `base`.

        Raises:
            NotCertain: when it is not there or damaged.
        """
        self._artifact = artifact
        self._base = base
        # Object number -> (offset, None), or (number of its object stream, index in it).
        self._places: dict[int, tuple[int, int | None]] = {}
        self._streams: dict[int, tuple[bytes, list[tuple[int, int]]]] = {}
        self._inflated = 0
        self.trailer: dict[bytes, Any] = {}
        sections, seen = [start], set[int]()
        while sections:
            position = sections.pop()
            if position in seen or len(seen) > _SECTIONS:
                raise NotCertain
            seen.add(position)
            trailer = self._read_section(position)
            self.trailer = self.trailer or trailer
            if b"/Prev" in trailer:
                sections.append(_whole(trailer[b"/Prev"]))

    def get(self, value: Any) -> Any:
        """Return what a reference leads to; anything else as it is."""
        for _ in range(_DEPTH):
            if not isinstance(value, Reference):
                return value
            self._artifact.spend(0)
            place, index = self._places.get(value.number, (0, None))
            if not place:
                return None
            if index is None:
                value, _ = self._read_object(place, value.number)
            else:
                value = self._read_packed(place, index, value.number)
        raise NotCertain

    def _read_section(self, position: int) -> dict[bytes, Any]:
        near = self._artifact.read_at(self._base + position, 64)
        head = near.lstrip(_SPACE)
        if head.startswith(b"xref"):
            return self._read_table(position + len(near) - len(head) + 4)
        return self._read_xref_stream(position)

    def _read_table(self, position: int) -> dict[bytes, Any]:
        places: dict[int, int] = {}
        while match := _SUBSECTION.match(
            self._artifact.read_at(self._base + position, 64)
        ):
            position += match.end()
            first, count = int(match[1]), int(match[2])
            if len(places) + count > _ENTRIES:
                raise NotCertain
            rows = self._artifact.read_at(self._base + position, count * _ROW)
            # Some writers end the rows with a line feed alone, a byte short.
            width = _ROW - (rows[18:20].strip() != b"")
            for index in range(count):
                row = rows[index * width : (index + 1) * width]
                if not (row[:10] + row[11:16]).isdigit() or row[17:18] not in (
                    b"n",
                    b"f",
                ):
                    raise NotCertain
                places[first + index] = int(row[:10]) * (row[17:18] == b"n")
            position += count * width
        match = _TRAILER.match(self._artifact.read_at(self._base + position, 64))
        if match is None:
            raise NotCertain
        trailer = _dictionary(self._read_value(position + match.end())[0])
        if b"/XRefStm" in trailer:  # it has objects that the table calls free
            self._read_xref_stream(_whole(trailer[b"/XRefStm"]))
        for number, place in places.items():
            self._place(number, place, None)
        return trailer

    def _read_xref_stream(self, position: int) -> dict[bytes, Any]:
        value, end = self._read_object(position, None)
        trailer = _dictionary(value)
        if trailer.get(b"/Type") != b"/XRef":
            raise NotCertain
        data = self._inflate(trailer, end)
        widths = [_whole(width) for width in _array(trailer.get(b"/W"))]
        if len(widths) != 3 or not 0 < sum(widths) <= 32:
            raise NotCertain
        index = trailer.get(b"/Index", [0, trailer.get(b"/Size")])
        numbers = [_whole(number) for number in _array(index)]
        at, (one, two, _) = 0, widths
        for first, count in zip(numbers[::2], numbers[1::2], strict=False):
            for number in range(first, first + count):
                row = data[at : at + sum(widths)]
                if len(row) < sum(widths):
                    raise NotCertain
                at += len(row)
                kind = int.from_bytes(row[:one], "big") if one else 1
                place = int.from_bytes(row[one : one + two], "big")
                last = int.from_bytes(row[one + two :], "big")
                known = kind in (1, 2)
                self._place(number, place * known, last if kind == 2 else None)
        return trailer

    def _place(self, number: int, place: int, index: int | None) -> None:
        """Note where an object stands; 0 where it is deleted.  What was read first is newest."""
        self._places.setdefault(number, (place, index))
        if len(self._places) > _ENTRIES:
            raise NotCertain

    def _read_object(self, position: int, number: int | None) -> tuple[Any, int]:
        """Return the object at an offset, and where its value ends."""
        match = _OBJECT.match(self._artifact.read_at(self._base + position, 64))
        if match is None or number not in (None, int(match[1])):
            raise NotCertain
        return self._read_value(position + match.end())

    def _read_value(self, position: int) -> tuple[Any, int]:
        size = _NEAR
        while True:
            near = self._artifact.read_at(self._base + position, size)
            try:
                value, end = _parse(near, 0)
            except _CutShort:
                if len(near) < size or size >= _LARGEST:
                    raise NotCertain from None
                size *= 8
                continue
            return value, position + end

    def _read_packed(self, stream: int, index: int, number: int) -> Any:
        """Return an object of an object stream."""
        if stream not in self._streams:
            place, packed = self._places.get(stream, (0, None))
            if not place or packed is not None:
                raise NotCertain
            value, end = self._read_object(place, stream)
            info = _dictionary(value)
            body = self._inflate(info, end) + b" "
            first = _whole(info.get(b"/First"))
            numbers = body[:first].split()
            if not all(word.isdigit() and len(word) <= 10 for word in numbers) or len(
                numbers
            ) < 2 * _whole(info.get(b"/N")):
                raise NotCertain
            pairs = zip(numbers[::2], numbers[1::2], strict=False)
            places = [(int(one), first + int(at)) for one, at in pairs]
            self._streams[stream] = body, places
        body, places = self._streams[stream]
        if index >= len(places) or places[index][0] != number:
            raise NotCertain
        try:
            return _parse(body, places[index][1])[0]
        except _CutShort:
            raise NotCertain from None

    def _inflate(self, info: dict[bytes, Any], position: int) -> bytes:
        """Return the bytes of the stream whose dictionary ends here."""
        match = _STREAM.match(self._artifact.read_at(self._base + position, 64))
        filters = info.get(b"/Filter")
        filters = filters if isinstance(filters, list) else [filters]
        if match is None or filters not in ([None], [b"/FlateDecode"]):
            raise NotCertain
        position += self._base + match.end()
        if filters == [None]:
            length = _whole(self.get(info.get(b"/Length")))
            self._inflated += length
            if self._inflated > _INFLATED:
                raise NotCertain
            return self._artifact.read_at(position, length)
        inflater = zlib.decompressobj()
        body = bytearray()
        try:
            while not inflater.eof:
                piece = self._artifact.read_at(position, CHUNK)
                position += len(piece)
                room = _INFLATED - self._inflated - len(body)
                found = inflater.decompress(piece, room + 1)
                body += found
                self._artifact.spend(0)
                if len(found) > room or not piece:
                    raise NotCertain
        except zlib.error:
            raise NotCertain from None
        self._inflated += len(body)
        parameters = info.get(b"/DecodeParms")
        if isinstance(parameters, list) and len(parameters) == 1:
            parameters = parameters[0]
        return _unpredicted(bytes(body), {} if parameters is None else parameters)


def count_pages(objects: Objects) -> int:
    """Return how many pages the page tree has.

    Raises:
        NotCertain: when it cannot be followed to every page, or counts other pages than it has.
    """
    root = _dictionary(objects.get(objects.trailer.get(b"/Root")))
    if root.get(b"/Type") != b"/Catalog":
        raise NotCertain
    top = root.get(b"/Pages")
    pages, nodes = 0, 0
    seen: set[Any] = set()
    waiting = [top]
    while waiting:
        reference = waiting.pop()
        nodes += 1
        node = _dictionary(objects.get(reference))
        if nodes > _NODES:
            raise NotCertain
        kind = node.get(b"/Type")
        if b"/Kids" in node and kind in (None, b"/Pages"):
            if reference in seen or not isinstance(reference, Reference):
                raise NotCertain
            seen.add(reference)
            waiting += _array(objects.get(node[b"/Kids"]))
        elif kind in (None, b"/Page"):
            pages += 1
        else:
            raise NotCertain
    if pages != objects.get(_dictionary(objects.get(top)).get(b"/Count")):
        raise NotCertain
    return pages


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise NotCertain
    return value


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise NotCertain
    return value


def _dictionary(value: Any) -> dict[bytes, Any]:
    if not isinstance(value, dict):
        raise NotCertain
    return value


def _unpredicted(data: bytes, parameters: Any) -> bytes:
    """Return the rows of a stream before PNG's filters were applied to them (ISO 32000-2 §7.4.4.4)."""
    predictor = _whole(_dictionary(parameters).get(b"/Predictor", 1))
    if predictor == 1:
        return data
    columns = _whole(parameters.get(b"/Columns", 1))
    plain = {
        parameters.get(b"/Colors", 1): 1,
        parameters.get(b"/BitsPerComponent", 8): 8,
    }
    if predictor < 10 or not 0 < columns <= 64 or any(k != v for k, v in plain.items()):
        raise NotCertain
    above = bytes(columns)
    rows = []
    for at in range(0, len(data) - columns, columns + 1):
        row = data[at + 1 : at + 1 + columns]
        if data[at] == 2:
            row = bytes((a + b) & 0xFF for a, b in zip(row, above, strict=True))
        elif data[at] != 0:
            raise NotCertain
        rows.append(row)
        above = row
    return b"".join(rows)


def _parse(data: bytes, position: int) -> tuple[Any, int]:
    """Return the object that starts here, and where it ends; names keep their slash, strings are dropped."""
    # A stack instead of recursion: the file decides how deep it goes.
    stack: list[tuple[bytes, list[Any]]] = []
    while True:
        match = _TOKEN.match(data, position)
        if match is None:
            raise _CutShort
        position = match.end()
        # A token at the very end may go on behind it.
        if position == len(data) and match.lastgroup != "mark":
            raise _CutShort
        mark = match["mark"]
        value: Any
        if mark is None:
            value = _simple(match)
        elif mark == b"(":
            value, position = None, _end_of_text(data, position)
        elif mark in (b"<<", b"["):
            if len(stack) >= _DEPTH:
                raise NotCertain
            stack.append((mark, []))
            continue
        elif stack:
            value = _closed(*stack.pop(), mark)
        else:
            raise NotCertain
        if not stack:
            return value, position
        stack[-1][1].append(value)


def _simple(match: re.Match[bytes]) -> Any:
    """Return a reference, number, name or word; strings in hexadecimal are dropped like others."""
    if match["reference"]:
        return Reference(int(match[2]), int(match[3]))
    if number := match["number"]:
        return float(number) if b"." in number else int(number[:32])
    return match["name"] or {b"true": True, b"false": False}.get(match["word"] or b"")


def _closed(opened: bytes, items: list[Any], mark: bytes) -> Any:
    """Return the array or dictionary of these items."""
    if opened + mark == b"[]":
        return items
    keys = items[::2]
    known = all(isinstance(key, bytes) for key in keys) and len(set(keys)) == len(keys)
    if opened + mark != b"<<>>" or len(items) % 2 or not known:
        raise NotCertain
    return dict(zip(keys, items[1::2], strict=True))


def _end_of_text(data: bytes, position: int) -> int:
    """Return where a string ends whose bracket was just read."""
    depth = 1
    while depth:
        match = _QUOTE.search(data, position)
        if match is None:
            raise _CutShort
        depth += {b"(": 1, b")": -1}.get(match[0], 0)
        if depth > _DEPTH:
            raise NotCertain
        position = match.end()
    return position
