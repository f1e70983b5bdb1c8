"""Rendered files, on disk in a folder of their own until it is decided what becomes of them.

On disk, because a plan may have a thousand designs; and in one tree, so that it can be looked at as it will be.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from extforge.target.lock import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Staged", "StagedFile", "staging"]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One rendered file."""

    sha: str
    executable: bool = False


@dataclass(slots=True)
class Staged:
    """Every file of a run: path relative to the target -> what it is."""

    folder: Path
    files: dict[str, StagedFile] = field(default_factory=dict)

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Put a file into the tree."""
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
        self.files[path] = StagedFile(digest(data), executable)

    def add_tree(self, root: str) -> None:
        """Take in what was rendered below `root`."""
        for folder, below, names in os.walk(self.folder / root):
            below.sort()
            for name in sorted(names):
                full = Path(folder, name)
                if not full.is_symlink():
                    path = full.relative_to(self.folder).as_posix()
                    self.files[path] = StagedFile(digest(full.read_bytes()))

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        return (self.folder / path).read_bytes()

    def clear(self) -> None:
        """Take every file out again."""
        for entry in self.folder.iterdir():
            shutil.rmtree(entry)
        self.files.clear()

    def read_all(self) -> dict[str, bytes]:
        """Return every file's bytes by path."""
        return {path: self.read(path) for path in self.files}


@contextmanager
def staging() -> Iterator[Staged]:
    """Yield an empty tree, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="extforge-") as folder:
        # The system's temporary folder may be a link; Copier and we both look at real paths.
        yield Staged(Path(folder).resolve())
