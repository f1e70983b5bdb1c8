"""The formats we can judge.  To add one: write its module, add its row here, add its files to the tests.

The table names modules instead of importing them: one verification needs one format, and `extforge verify`
should answer before a person notices that it started.

Another package adds a format with an entry point of the group `extforge.formats` that leads to a `Format`.  They are
looked up only for what the table lacks, because looking costs half the start; none can replace a row of the table.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

    Check = Callable[[Artifact], Iterator[Finding]]

__all__ = ["FORMATS", "LARGE", "Format", "find_format", "foreign_formats", "format_for"]

LARGE = 32 << 20  # bytes; a value that is built from text takes ten times as much


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how it is named, and which checks tell a real one from a fake."""

    name: str
    suffixes: tuple[str, ...]
    # Functions of its module, in order; a later one may assume what an earlier one checked.
    checks: tuple[str, ...]
    counts: tuple[str, ...] = ()  # the facts that a contract may set minimums for
    deep: str = ""  # "module:function" below extforge_verifiers.deep
    large: str = (
        ""  # the same, instead of `checks` for a file that would not fit into memory
    )
    module: str = ""  # of `checks`; by default the one of this package with its name

    def load(self, *, deep: bool = False, size: int = 0) -> dict[str, Check]:
        """Return the checks by name for a file of so many bytes, importing the format's module now."""
        if self.large and size > LARGE:
            return _deep_check(self.large)
        home = self.module or f"extforge_verifiers.formats.{self.name}"
        module = import_module(home)
        found = {name: getattr(module, name) for name in self.checks}
        return {**found, **_deep_check(self.deep)} if deep and self.deep else found


def _deep_check(place: str) -> dict[str, Check]:
    home, _, name = place.partition(":")
    module = import_module(f"extforge_verifiers.deep.{home}")
    return {f"deep:{name}": getattr(module, name)}


_PIXELS = "images:check_pixels"
_COUNTS = ("width", "height", "frames")
_SIGNED = "check_signature"
_TEXT = "check_text"
FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "pptx",
            (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
            ("check",),
            ("slides",),
            "office:check_pptx",
        ),
        Format(
            "docx",
            (".docx", ".docm", ".dotx", ".dotm"),
            ("check",),
            ("paragraphs", "tables"),
            "office:check_docx",
        ),
        Format(
            "xlsx",
            (".xlsx", ".xlsm", ".xltx", ".xltm"),
            ("check",),
            ("sheets", "rows"),
            "office:check_xlsx",
        ),
        Format(
            "pdf",
            (".pdf",),
            ("check_header", "check_end", "check_objects"),
            ("pages",),
            "pdf:check_document",
        ),
        Format("json", (".json",), (_TEXT,), ("records",), large="streams:check_json"),
        Format("jsonl", (".jsonl", ".ndjson"), (_TEXT, "check_lines"), ("records",)),
        Format("png", (".png",), (_SIGNED, "check_chunks"), _COUNTS, _PIXELS),
        Format("jpg", (".jpg", ".jpeg"), (_SIGNED, "check_segments"), _COUNTS, _PIXELS),
        Format("gif", (".gif",), (_SIGNED, "check_blocks"), _COUNTS, _PIXELS),
        Format("webp", (".webp",), (_SIGNED, "check_chunks"), _COUNTS, _PIXELS),
        Format("bmp", (".bmp", ".dib"), (_SIGNED, "check_header"), _COUNTS, _PIXELS),
        Format(
            "tiff",
            (".tif", ".tiff"),
            (_SIGNED, "check_directories"),
            _COUNTS,
            _PIXELS,
        ),
        Format("svg", (".svg",), ("check_drawing",), ("shapes",)),
        Format(
            "csv", (".csv", ".tsv"), (_TEXT, "check_records"), ("records", "columns")
        ),
        Format("md", (".md", ".markdown"), (_TEXT, "check_structure"), ("headings",)),
        Format("html", (".html", ".htm"), (_TEXT, "check_elements"), ("elements",)),
        Format("txt", (".txt",), (_TEXT,)),
        Format("zip", (".zip",), ("check_archive",), ("members",)),
    )
}


def format_for(path: str) -> Format | None:
    """Return the format that a file name promises, or None when its suffix is unknown."""
    suffix = posixpath.splitext(path)[1].lower()
    own = next((row for row in FORMATS.values() if suffix in row.suffixes), None)
    if own is not None or not suffix:
        return own
    foreign, _ = foreign_formats()
    return next((row for row in foreign.values() if suffix in row.suffixes), None)


def find_format(name: str) -> Format | None:
    """Return a format by its name, or None when nobody knows it."""
    return FORMATS.get(name) or foreign_formats()[0].get(name)


@cache
def foreign_formats() -> tuple[dict[str, Format], dict[str, str]]:
    """Return the formats of other packages by name, and for each entry point that is none the reason."""
    from importlib.metadata import entry_points  # noqa: PLC0415 -- slow to import

    found: dict[str, Format] = {}
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group="extforge.formats"), key=str):
        try:
            row = point.load()
        except Exception as exc:  # noqa: BLE001 -- a stranger's package must not stop ours
            broken[point.value] = f"{type(exc).__name__}: {exc}"
            continue
        if not isinstance(row, Format):
            broken[point.value] = "not a Format"
        elif row.name in FORMATS or row.name in found:
            broken[point.value] = f"{row.name} is taken"
        else:
            found[row.name] = row
    return found, broken
