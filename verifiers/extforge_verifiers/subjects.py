"""What is there to verify under a path?  Recognised, counted, and never guessed in silence."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from extforge_verifiers.formats import format_for

__all__ = ["KINDS", "Subject", "Walk", "find_subjects", "is_extension"]

YAML_MANIFEST, JSON_MANIFEST = "harness_config.yaml", "manifest.json"
KINDS = ("artifact", "extension", "result")
_RESULT_LIMIT = 4 << 20  # bytes; a larger JSON file is an artifact
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
        walk.subjects.append(
            Subject(path, "result" if _is_result(path) else "artifact")
        )
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
            walk.subjects.append(
                Subject(entry.path, "result" if _is_result(entry.path) else "artifact")
            )
        else:
            walk.passed_over[entry.path] = "no checks for its suffix"


def _is_result(path: str) -> bool:
    """Say whether a JSON file is a tool's result: it says success and what came of it."""
    if not path.lower().endswith(".json"):
        return False
    try:
        if os.path.getsize(path) > _RESULT_LIMIT:
            return False
        with open(path, "rb") as stream:
            data = stream.read()
        value = json.loads(data) if b'"success"' in data else None
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not isinstance(value.get("success"), bool):
        return False
    return bool(value.keys() & {"path", "absolute_path", "data", "error"})
