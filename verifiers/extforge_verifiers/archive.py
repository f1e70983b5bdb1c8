"""ZIP archives, judged from the central directory and inflated under a budget.

Sources:

- PKWARE APPNOTE 6.3.10: 4.3.7 local header, 4.3.12 central directory, 4.3.16 end record, 4.4.17 names use `/`.
- `zipfile` reads the directory; we inflate the members ourselves, because it stops at the declared size and
  so never notices a member whose size is a lie.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from functools import cached_property
from typing import TYPE_CHECKING

from extforge_verifiers.artifact import CHUNK, Artifact, BudgetExceeded
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import Finding, Undetermined, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = [
    "Archive",
    "ArchiveUnreadable",
    "MemberDamaged",
    "is_small",
    "open_archive",
]

_WHOLE = 1 << 20  # bytes of a member that is inflated in one piece
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AHEAD = (
    542  # bytes: a local header, its name and its extra fields, in all but odd archives
)
_DIRECTORY_LIMIT = 16 << 20  # bytes of central directory; 10,000 parts need about 1 MB
_ENCRYPTED = 0x1
_END = struct.Struct("<4H2LH")  # of the end record, behind its signature
_ENTRY = struct.Struct("<4s4x2H4x3L5H2L")  # of a member in the central directory
# How an archive begins: a member, nothing but the end, or the marker of one that was once split (APPNOTE 8.5.4).
_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PK00")


class ArchiveUnreadable(Exception):
    """There is no usable central directory."""


class MemberDamaged(Exception):
    """The bytes of a member are not what the directory says of them."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


class Archive:
    """The members of a ZIP file by normalised name (`/`, no leading `/`)."""

    def __init__(self, artifact: Artifact) -> None:
        """Read the central directory.

        Raises:
            ArchiveUnreadable: when there is none, or it is larger than any honest one.
        """
        self.artifact = artifact
        _measure_directory(artifact)
        self.infos = _ordinary_directory(artifact.data) or self._zip.infolist()
        self.names: dict[str, zipfile.ZipInfo] = {}
        for info in self.infos:
            self.names.setdefault(info.filename.replace("\\", "/").lower(), info)

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.artifact.stream)
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            NotImplementedError,
            struct.error,
            EOFError,
        ) as exc:
            raise ArchiveUnreadable(str(exc)) from exc

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.names

    def member_name(self, name: str) -> str:
        """Return the name as it stands in the archive; names compare without case (ECMA-376-2 §9.1.1.1)."""
        return _normalise(self.names[name.lower()].filename)

    def check_hygiene(self, *, capitals: bool = False) -> Iterator[Finding]:
        """Fake: an archive made to mislead (duplicate, absolute or climbing names, encryption, bombs).

        With `capitals`, names in which only these differ are warned of: systems that tell them apart see two files.

        Laxer than the standard, on purpose: directory entries and backslashes are only warned of; 76 and 4 of
        2,411 good Office files have them.
        """
        limits = self.artifact.limits
        if len(self.infos) > limits.parts:
            yield invalid(
                "zip-too-many-members",
                f"{len(self.infos):,} members; the limit is {limits.parts:,}",
            )
            return
        if (prefix := self._prefix()) > 0:
            yield invalid(
                "zip-prefix", f"{prefix:,} bytes stand before the archive", offset=0
            )
        total = sum(info.file_size for info in self.infos)
        if total > self.artifact.allowance:
            yield invalid(
                "zip-bomb",
                f"the members inflate to {total:,} bytes; the limit is {self.artifact.allowance:,}",
            )
        seen: dict[str, list[str]] = {}
        twice = len(self.names) < len(self.infos)
        for info in self.infos:
            if twice or _is_odd(info, limits.part_grace):
                yield from _check_name(info, seen, capitals=capitals)
                yield from _check_member(info, limits.part_ratio, limits.part_grace)

    def _prefix(self) -> int:
        """Return how many bytes stand before the first local header (a shebang, an HTML page, junk)."""
        first = min((info.header_offset for info in self.infos), default=0)
        return first if self.artifact.read_at(0, 4) not in _STARTS else 0

    def stream(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield a member's bytes; the end is reached only when size and CRC-32 are right.

        Raises:
            MemberDamaged: naming what is wrong with it.
            BudgetExceeded: when it would inflate past the budget.
        """
        if info.compress_type in _METHODS and is_small(info):
            yield self._whole(info)
            return
        crc, size = 0, 0
        for piece in self._pieces(info):
            self.artifact.spend(len(piece))
            crc, size = zlib.crc32(piece, crc), size + len(piece)
            yield piece
        if size != info.file_size or crc != info.CRC:
            raise _wrong_end(info, size, crc)

    def _pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        if info.compress_type not in _METHODS:
            return self._unpacked(info)
        header = self.artifact.read_at(info.header_offset, 30)
        start = info.header_offset + _data_offset(header)
        pieces = self._compressed(start, info.compress_size)
        deflated = info.compress_type == zipfile.ZIP_DEFLATED
        return _inflate(pieces) if deflated else pieces

    def _unpacked(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield a member in a method that only plain archives may use, as far as Python reads it."""
        try:
            with self._zip.open(info) as member:
                while piece := member.read(CHUNK):
                    yield piece
        except (NotImplementedError, RuntimeError):  # a method, or a module of it
            words = f"{info.filename} uses compression method {info.compress_type}"
            raise Undetermined(f"{words}, which is not read here") from None
        except Exception as exc:  # every unpacker raises errors of its own
            raise MemberDamaged(
                "zip-member-damaged", f"does not unpack: {exc}"
            ) from exc

    def load(self, info: zipfile.ZipInfo) -> bytes | Iterator[bytes]:
        """Return a small member's bytes at once, a larger one's as `stream` does."""
        return self._whole(info) if is_small(info) else self.stream(info)

    def _whole(self, info: zipfile.ZipInfo) -> bytes:
        """Return a small member in one piece: most members are, and pieces cost more than bytes."""
        return self.unpack(info, self.packed(info))

    def packed(self, info: zipfile.ZipInfo) -> bytes:
        """Return the bytes of a small member as they stand in the archive."""
        at, raw = info.header_offset, self.artifact.data
        if raw is None:
            raw, at = self.artifact.read_at(at, info.compress_size + _AHEAD), 0
        start = at + _data_offset(raw, at)
        data = raw[start : start + info.compress_size]
        if len(data) < info.compress_size:
            position = info.header_offset + start - at
            data = b"".join(self._compressed(position, info.compress_size))
        return data

    def unpack(self, info: zipfile.ZipInfo, data: bytes) -> bytes:
        """Return the bytes of a small member out of what `packed` returned."""
        if info.compress_type == zipfile.ZIP_DEFLATED:
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflater.decompress(data, info.file_size + 1)
            except zlib.error as exc:
                words = f"does not inflate: {exc}"
                raise MemberDamaged("zip-member-damaged", words) from exc
            if not inflater.eof and len(data) <= info.file_size:
                words = "its compressed data is cut short"
                raise MemberDamaged("zip-member-damaged", words)
        size, crc = len(data), zlib.crc32(data)
        self.artifact.spend(size)
        if size != info.file_size or crc != info.CRC:
            raise _wrong_end(info, size, crc)
        return data

    def _compressed(self, position: int, count: int) -> Iterator[bytes]:
        while count > 0:
            piece = self.artifact.read_at(position, min(CHUNK, count))
            if not piece:
                raise MemberDamaged("zip-member-damaged", "the file ends inside it")
            yield piece
            position, count = position + len(piece), count - len(piece)


def _ordinary_directory(data: bytes | None) -> list[zipfile.ZipInfo] | None:
    """Return what `zipfile` would of a small archive without anything odd; None when something is.

    That is twice as fast, and an Office file has some forty members.  APPNOTE 4.3.12, 4.3.16.
    """
    at = data.rfind(b"PK\x05\x06") if data is not None else -1
    if data is None or at < 0 or len(data) < at + 22:
        return None
    disk, first, here, count, size, start, comment = _END.unpack_from(data, at + 4)
    if (
        disk
        or first
        or here != count
        or start + size != at
        or comment + at + 22 != len(data)
    ):
        return None
    infos = []
    position = start
    for _ in range(count):
        if position + 46 > at:
            return None
        (
            signature, flags, method, crc, packed, unpacked, name, extra, note, volume, inner, outer, offset
        ) = _ENTRY.unpack_from(data, position)  # fmt: skip
        raw = data[position + 46 : position + 46 + name]
        position += 46 + name + extra + note
        largest = max(packed, unpacked, offset)
        if (
            signature != b"PK\x01\x02"
            or not raw.isascii()
            or b"\x00" in raw
            or method not in _METHODS
            or largest == 0xFFFFFFFF
        ):
            return None
        info = zipfile.ZipInfo.__new__(zipfile.ZipInfo)
        info.filename = info.orig_filename = raw.decode()
        info.flag_bits, info.compress_type, info.CRC = flags, method, crc
        info.compress_size, info.file_size, info.header_offset = (
            packed,
            unpacked,
            offset,
        )
        info.volume, info.internal_attr, info.external_attr = volume, inner, outer
        infos.append(info)
    return infos if position == at else None


def is_small(info: zipfile.ZipInfo) -> bool:
    """Say whether a member is inflated in one piece."""
    return info.compress_size <= _WHOLE and info.file_size <= _WHOLE


def _data_offset(raw: bytes, at: int = 0) -> int:
    """Return where a member's data begin, counted from its local header (APPNOTE 4.3.7)."""
    if at < 0 or raw[at : at + 4] != b"PK\x03\x04" or len(raw) < at + 30:
        raise MemberDamaged("zip-member-damaged", "its local header is missing")
    name, extra = raw[at + 26] | raw[at + 27] << 8, raw[at + 28] | raw[at + 29] << 8
    return 30 + name + extra


def _wrong_end(info: zipfile.ZipInfo, size: int, crc: int) -> MemberDamaged:
    if size != info.file_size:
        more = "more" if size > info.file_size else f"{size:,}"
        words = f"declares {info.file_size:,} bytes but holds {more}"
        return MemberDamaged("zip-member-size", words)
    words = f"CRC-32 is {crc:08x}, the directory says {info.CRC:08x}"
    return MemberDamaged("zip-member-crc", words)


def _measure_directory(artifact: Artifact) -> None:
    """Refuse a central directory so large that reading it would be the attack."""
    tail = artifact.tail(65_557)  # the end record and the longest comment
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise ArchiveUnreadable(
            "there is no end-of-central-directory record: not a ZIP file, or cut short"
        )
    (size,) = struct.unpack_from("<L", tail, at + 12)
    if size != 0xFFFFFFFF and size > _DIRECTORY_LIMIT:
        raise ArchiveUnreadable(f"its central directory takes {size:,} bytes")
    if (
        size == 0xFFFFFFFF
        and (zip64 := tail.rfind(b"PK\x06\x06")) >= 0
        and len(tail) - zip64 >= 56
    ):
        (size,) = struct.unpack_from("<Q", tail, zip64 + 40)
        if size > _DIRECTORY_LIMIT:
            raise ArchiveUnreadable(f"its central directory takes {size:,} bytes")


def _inflate(pieces: Iterator[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for piece in pieces:
            pending = piece
            while pending and not inflater.eof:
                yield inflater.decompress(pending, CHUNK)
                pending = inflater.unconsumed_tail
        if not inflater.eof:
            yield inflater.flush()
    except zlib.error as exc:
        raise MemberDamaged("zip-member-damaged", f"does not inflate: {exc}") from exc
    if not inflater.eof:
        raise MemberDamaged("zip-member-damaged", "its compressed data is cut short")


def _normalise(name: str) -> str:
    # zipfile turns backslashes round on Windows only; the verdict must not depend on the system.
    return name.replace("\\", "/")


def _is_odd(info: zipfile.ZipInfo, grace: int) -> bool:
    """Say whether a member needs a closer look: nearly none does, and this is asked of every one."""
    name = info.orig_filename
    return (
        info.flag_bits & _ENCRYPTED != 0
        or info.compress_type not in _METHODS
        or info.file_size > grace
        or ".." in name
        or ":" in name
        or "\\" in name
        or "\x00" in name
        or name[:1] == "/"
        or name[-1:] == "/"
    )


def _check_name(
    info: zipfile.ZipInfo, seen: dict[str, list[str]], *, capitals: bool
) -> Iterator[Finding]:
    name = _normalise(info.filename)
    before = seen.setdefault(name.lower(), [])
    if before:
        words = f"{name} stands twice in the archive: {before[-1]!r} and {name!r}"
        grade = warning if capitals and name not in before else invalid
        yield grade("zip-member-duplicate", words, member=name)
    before.append(name)


def _check_member(info: zipfile.ZipInfo, ratio: int, grace: int) -> Iterator[Finding]:
    raw = info.orig_filename
    name = _normalise(info.filename)
    if (
        name.startswith("/")
        or re.match(r"[A-Za-z]:", name)
        or ".." in name.split("/")
        or "\x00" in raw
    ):
        yield invalid(
            "zip-member-path",
            f"{name} has a name that leaves the archive: {raw!r}",
            member=name,
        )
    if info.flag_bits & _ENCRYPTED:
        yield invalid("zip-member-encrypted", f"{name} is encrypted", member=name)
    if info.compress_type not in _METHODS:
        yield invalid(
            "zip-member-method",
            f"{name} uses compression method {info.compress_type}; Office reads 0 and 8",
            member=name,
        )
    if info.file_size > grace and info.file_size > ratio * max(info.compress_size, 1):
        yield invalid(
            "zip-bomb",
            f"{name} {info.compress_size:,} bytes inflate to {info.file_size:,}",
            member=name,
        )
    if name.endswith("/"):
        yield warning(
            "zip-directory-entry",
            f"{name} is a directory entry; Office files have none",
            member=name,
        )
    if "\\" in raw:
        yield warning(
            "zip-member-backslash",
            f"{name} has backslashes in its name: {raw!r}",
            member=name,
        )


def check_links(archive: Archive) -> Iterator[Finding]:
    """Fake: a link, and a member below it, which unpacking writes to wherever the link leads."""
    links = {
        _normalise(info.filename).rstrip("/") + "/"
        for info in archive.infos
        if stat.S_ISLNK(info.external_attr >> 16)
    }
    for info in archive.infos if links else ():
        name = _normalise(info.filename)
        if link := next((one for one in links if name.startswith(one)), ""):
            words = f"{name} lies below {link.rstrip('/')}, which is a symbolic link"
            yield invalid("zip-member-path", words, member=name)


def check_members(archive: Archive) -> Iterator[Finding]:
    """Fake: an archive whose directory is fine and whose members are damaged."""
    for info in archive.infos:
        name = _normalise(info.filename)
        try:
            for _ in archive.stream(info):
                pass
        except MemberDamaged as exc:
            yield invalid(exc.code, f"{name}: {exc.message}", member=name)
        except BudgetExceeded as exc:
            yield invalid("budget-exceeded", f"{name}: {exc}", member=name)
            return


def open_archive(artifact: Artifact) -> Generator[Finding, None, Archive | None]:
    """Yield why the file is no archive; return it, or None when something was yielded."""
    disguised = list(check_disguise(artifact, "zip"))
    yield from disguised
    if disguised:
        return None
    try:
        return Archive(artifact)
    except ArchiveUnreadable as exc:
        yield invalid("zip-unreadable", str(exc))
        return None
