"""What is there to verify under a path?  Recognised, counted, and never guessed in silence."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from extforge_verifiers.formats import format_for

__all__ = ["KINDS", "Subject", "Walk", "find_subjects", "is_extension"]

YAML_MANIFEST, JSON_MANIFEST = "harness_config.yaml", "manifest.json"
KINDS = ("artifact", "extension", "result", "run")
_SKIPPED_FOLDERS = frozenset(
    (
        ".git", ".hg", ".svn", ".extforge", ".venv", "venv", "env", "node_modules", "__pycache__", ".mypy_cache",
        ".pytest_cache", ".ruff_cache", ".tox", ".nox", "acceptance", "logs",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to verify."""

    path: str
    kind: str
    records: tuple[str, ...] = ()  # of a run that is a folder
    reason: str = ""  # why there is nothing to verify


@dataclass(slots=True)
class Walk:
    """What a walk found and what it passed over: path -> why."""

    subjects: list[Subject] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)


def is_extension(path: str) -> bool:
    """Say whether a folder is the root of an extension tree."""
    if os.path.isfile(os.path.join(path, YAML_MANIFEST)):
        return True
    manifest = os.path.join(path, JSON_MANIFEST)
    if not os.path.isfile(manifest):
        return False
    try:
        with open(manifest, "rb") as stream:
            return b'"package_type"' in stream.read(1 << 20)
    except OSError:
        return False


def find_subjects(path: str) -> Walk:
    """Return what there is to verify at `path`: a file, an extension tree, or a folder with such things in it."""
    walk = Walk()
    if not os.path.isdir(path):
        walk.subjects.append(Subject(path, _kind(path)))
    else:
        _walk_folder(path, walk)
    return walk


def _walk_folder(folder: str, walk: Walk) -> None:
    if is_extension(folder):
        walk.subjects.append(Subject(folder, "extension"))
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as exc:
        walk.passed_over[folder] = f"cannot be read: {exc.strerror}"
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name in _SKIPPED_FOLDERS or entry.name.endswith(".egg-info"):
                walk.passed_over[entry.path] = "a folder that holds no artifacts"
            else:
                _walk_folder(entry.path, walk)
        elif entry.is_symlink():
            walk.passed_over[entry.path] = "a symbolic link"
        elif format_for(entry.name) is not None:
            walk.subjects.append(Subject(entry.path, _kind(entry.path)))
        else:
            walk.passed_over[entry.path] = "no checks for its suffix"


def _kind(path: str) -> str:
    if not path.lower().endswith((".json", ".jsonl", ".ndjson")):
        return "artifact"
    from extforge_verifiers.records import recognise_record  # noqa: PLC0415 -- most files are none

    return recognise_record(path) or "artifact"
