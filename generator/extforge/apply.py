"""Put rendered files where they belong: all of them, or none.

Everything is first written to a staging folder on the target's own file system; only when that has worked are
files moved into place, one rename each.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from extforge.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Changes", "apply_changes", "classify"]

STATE_FOLDER = ".extforge"


@dataclass(slots=True)
class Changes:
    """What generating would do to a target, path by path."""

    create: list[str] = field(default_factory=list)
    identical: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # files there that say something else


def classify(target: Path, files: Mapping[str, bytes]) -> Changes:
    """Return what would happen to each file; nothing is changed.

    Raises:
        TargetError: when a path cannot be used: a folder that is a file, or a link that leads out of the target.
    """
    changes = Changes()
    if target.exists() and not target.is_dir():
        raise TargetError(f"{target} is not a folder")
    for path, data in sorted(files.items()):
        full = target / path
        _check_inside(target, full)
        if full.is_symlink() or full.is_dir():
            raise TargetError(f"{full} is in the way: it is a {'link' if full.is_symlink() else 'folder'}")
        if not full.exists():
            changes.create.append(path)
        elif full.read_bytes() == data:
            changes.identical.append(path)
        else:
            changes.foreign.append(path)
    return changes


def _check_inside(target: Path, full: Path) -> None:
    """Refuse a path whose parents, links followed, lead out of the target."""
    root = target.resolve()
    parent = full.parent
    while not parent.exists() and not parent.is_symlink():
        parent = parent.parent
    if parent.exists() and not parent.is_dir():
        raise TargetError(f"{parent} is a file, and a folder is needed there")
    resolved = parent.resolve()
    if target.exists() and resolved != root and root not in resolved.parents:
        raise TargetError(f"{parent} leads out of {target}")


def apply_changes(target: Path, files: Mapping[str, bytes], changes: Changes) -> None:
    """Write the files that are to be created.

    Raises:
        TargetError: when something cannot be written; the target is as it was before.
    """
    made_folders: list[Path] = []
    made_files: list[Path] = []
    staging: Path | None = None
    try:
        _make_folder(target, made_folders)
        staging = Path(tempfile.mkdtemp(prefix=".extforge-staging-", dir=target))
        for path in changes.create:
            staged = staging / path
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(files[path])
        for path in changes.create:
            _make_folder((target / path).parent, made_folders)
            # A link, because a rename would replace a file that appeared meanwhile.
            os.link(staging / path, target / path)
            made_files.append(target / path)
    except BaseException as exc:
        for file in made_files:
            file.unlink(missing_ok=True)
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        for folder in reversed(made_folders):
            folder.rmdir()
        if isinstance(exc, OSError):
            raise TargetError(f"cannot write to {target}: {exc.strerror or exc}; nothing was changed") from exc
        raise
    shutil.rmtree(staging, ignore_errors=True)


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        made.append(path)
