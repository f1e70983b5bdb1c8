"""What would change inside the files, as a unified diff."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from extforge.target.changes import Action

if TYPE_CHECKING:
    from pathlib import Path

    from extforge.staging import Staged
    from extforge.target.changes import Changes

__all__ = ["render_diff"]

LONGEST = 20_000  # lines of one file


def render_diff(target: Path, staged: Staged, changes: Changes) -> str:
    """Return the diff from what is in the target to what would be there; conflicts with their markers."""
    pieces = []
    for path in sorted([*changes.writes, *changes.blocked]):
        row = changes.rows[path]
        old = (target / path).read_bytes() if row.before else b""
        deleted = row.action is Action.DELETE
        new = b"" if deleted else row.data if row.data is not None else staged.read(path)
        title = f"{row.action}{f' ({row.reason})' if row.reason else ''}"
        pieces.append(f"# {path}: {title}\n")
        pieces += _diff(path, old, new, created=row.before is None, deleted=deleted)
    return "".join(pieces)


def _diff(path: str, old: bytes, new: bytes, *, created: bool, deleted: bool) -> list[str]:
    try:
        before, after = (data.decode("utf-8").splitlines(keepends=True) for data in (old, new))
    except UnicodeDecodeError:
        return [f"# not text: {len(old):,} -> {len(new):,} bytes\n"]
    if max(len(before), len(after)) > LONGEST:
        return [f"# {len(before):,} -> {len(after):,} lines\n"]
    names = ("/dev/null" if created else f"a/{path}", "/dev/null" if deleted else f"b/{path}")
    lines = difflib.unified_diff(before, after, names[0], names[1])
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
