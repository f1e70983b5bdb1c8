"""The formats we can judge.  To add one: write its module, add its row here, add its files to the tests.

The table names modules instead of importing them: one verification needs one format, and `extforge verify`
should answer before a person notices that it started.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

    Check = Callable[[Artifact], Iterator[Finding]]

__all__ = ["FORMATS", "LARGE", "Format", "format_for"]

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

    def load(self, *, deep: bool = False, size: int = 0) -> dict[str, Check]:
        """Return the checks by name for a file of so many bytes, importing the format's module now."""
        if self.large and size > LARGE:
            return _deep_check(self.large)
        module = import_module(f"extforge_verifiers.formats.{self.name}")
        found = {name: getattr(module, name) for name in self.checks}
        return {**found, **_deep_check(self.deep)} if deep and self.deep else found


def _deep_check(place: str) -> dict[str, Check]:
    home, _, name = place.partition(":")
    module = import_module(f"extforge_verifiers.deep.{home}")
    return {f"deep:{name}": getattr(module, name)}


_PIXELS = "images:check_pixels"
_SIZE = ("width", "height")
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
        Format("png", (".png",), (_SIGNED, "check_chunks"), _SIZE, _PIXELS),
        Format("jpg", (".jpg", ".jpeg"), (_SIGNED, "check_segments"), _SIZE, _PIXELS),
        Format(
            "gif", (".gif",), (_SIGNED, "check_blocks"), (*_SIZE, "frames"), _PIXELS
        ),
        Format("webp", (".webp",), (_SIGNED, "check_chunks"), _SIZE, _PIXELS),
        Format("bmp", (".bmp", ".dib"), (_SIGNED, "check_header"), _SIZE, _PIXELS),
        Format(
            "tiff",
            (".tif", ".tiff"),
            (_SIGNED, "check_directories"),
            (*_SIZE, "frames"),
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
    return next((row for row in FORMATS.values() if suffix in row.suffixes), None)
