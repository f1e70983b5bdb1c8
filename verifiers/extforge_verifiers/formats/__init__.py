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

__all__ = ["FORMATS", "Format", "format_for"]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how it is named, and which checks tell a real one from a fake."""

    name: str
    suffixes: tuple[str, ...]
    checks: tuple[
        str, ...
    ]  # functions of its module, in order; a later one may assume what an earlier checked
    counts: tuple[str, ...] = ()  # the facts that a contract may set minimums for

    def load(self) -> dict[str, Check]:
        """Return the checks by name, importing the format's module now."""
        module = import_module(f"extforge_verifiers.formats.{self.name}")
        return {name: getattr(module, name) for name in self.checks}


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "pptx",
            (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
            ("check",),
            ("slides",),
        ),
        Format(
            "docx",
            (".docx", ".docm", ".dotx", ".dotm"),
            ("check",),
            ("paragraphs", "tables"),
        ),
        Format(
            "xlsx", (".xlsx", ".xlsm", ".xltx", ".xltm"), ("check",), ("sheets", "rows")
        ),
        Format(
            "pdf", (".pdf",), ("check_header", "check_end", "check_objects"), ("pages",)
        ),
        Format("json", (".json",), ("check_text",), ("records",)),
        Format(
            "png", (".png",), ("check_signature", "check_chunks"), ("width", "height")
        ),
        Format(
            "jpg",
            (".jpg", ".jpeg"),
            ("check_signature", "check_segments"),
            ("width", "height"),
        ),
        Format(
            "gif",
            (".gif",),
            ("check_signature", "check_blocks"),
            ("width", "height", "frames"),
        ),
        Format(
            "webp", (".webp",), ("check_signature", "check_chunks"), ("width", "height")
        ),
    )
}


def format_for(path: str) -> Format | None:
    """Return the format that a file name promises, or None when its suffix is unknown."""
    suffix = posixpath.splitext(path)[1].lower()
    return next((row for row in FORMATS.values() if suffix in row.suffixes), None)
