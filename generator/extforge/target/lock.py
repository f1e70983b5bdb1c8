"""What the last run wrote: every file with its digest, and the pristine bytes to merge from.

`.extforge/lock.json` and `.extforge/base/` belong into version control beside the trees: whoever generates next needs
them to tell a person's edit from our own text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge.errors import TargetError
from extforge_verifiers.frontmatter import SKILL_PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = [
    "ATTRIBUTES",
    "IGNORE",
    "STATE",
    "Entry",
    "Extension",
    "Lock",
    "base_path",
    "digest",
    "is_inside",
    "parse_lock",
    "read_base",
    "read_lock",
    "stray_bases",
]

STATE = ".extforge"
SCHEMA = "extforge.lock.v1"
LOCK = f"{STATE}/lock.json"
ATTRIBUTES = b"# Digests are of bytes: no line end may change.\n* -text\n"
IGNORE = b"# What a run needs only while it runs.\nstaging/\njournal.json\nrunning\n"
_SHA = re.compile(r"[0-9a-f]{64}")


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def base_path(sha: str) -> str:
    """Return where the pristine bytes of this digest are kept, relative to the target."""
    return f"{STATE}/base/{sha[:2]}/{sha}"


def is_inside(path: str) -> bool:
    """Say whether a path out of a file of ours is one that we could have written."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and "\\" not in path and not {"", ".", "..", STATE} & set(parts)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as it was generated."""

    sha: str
    plans: tuple[str, ...] = ()  # which plans it comes from, by name


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension as it was generated."""

    name: str
    gap: str
    plans: tuple[str, ...] = ()
    skill_profile: str = SKILL_PROFILES[0]

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON has it; what is usual is left out."""
        data = {"name": self.name, "gap": self.gap, "plans": sorted(self.plans)}
        return data if self.skill_profile == SKILL_PROFILES[0] else {**data, "skill_profile": self.skill_profile}


@dataclass(slots=True)
class Lock:
    """Everything that was generated into a target."""

    files: dict[str, Entry] = field(default_factory=dict)
    extensions: dict[str, Extension] = field(default_factory=dict)  # by the folder it is in
    packages: dict[str, str] = field(default_factory=dict)  # plan -> how it calls its package

    def to_bytes(self) -> bytes:
        """Return lock.json: sorted, so that two people's changes merge line by line."""
        files = {path: {"sha256": entry.sha, "plans": sorted(entry.plans)} for path, entry in self.files.items()}
        extensions = {home: found.to_data() for home, found in self.extensions.items()}
        data = {"schema_version": SCHEMA, "extensions": extensions, "files": files, "packages": self.packages}
        return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def read_lock(target: Path) -> Lock:
    """Return the lock of a target; an empty one when nothing was generated there.

    Raises:
        TargetError: when there is one that cannot be used.
    """
    path = target / LOCK
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Lock()
    except OSError as exc:
        raise TargetError(f"{path} cannot be read: {exc.strerror}") from exc
    return parse_lock(data, path)


def parse_lock(text: bytes, path: Path) -> Lock:
    """Return the lock in these bytes; raise TargetError when it cannot be used."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise TargetError(f"{path} cannot be read ({exc}): {_HINT}") from exc
    if not isinstance(data, dict) or data.get("schema_version") != SCHEMA:
        raise TargetError(f"{path} is not a lock of this version of extforge ({SCHEMA}); {_HINT}")
    lock = Lock()
    try:
        for name, entry in data["files"].items():
            lock.files[_sound(name)] = Entry(_sound(entry["sha256"], _SHA.fullmatch), _names(entry["plans"]))
        for home, found in data["extensions"].items():
            profile = _sound(found.get("skill_profile", SKILL_PROFILES[0]), SKILL_PROFILES.__contains__)
            plans = _names(found["plans"])
            lock.extensions[_sound(home)] = Extension(str(found["name"]), str(found["gap"]), plans, profile)
        lock.packages = {str(plan): str(name) for plan, name in data.get("packages", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise TargetError(f"{path} is damaged at {exc}: {_HINT}") from exc
    return lock


def _names(values: list[object]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values}))


def _sound(text: str, test: Callable[[str], object] = is_inside) -> str:
    """Return a text out of the lock, which anybody may have written; raise ValueError when it is not one of ours."""
    if not test(text):
        raise ValueError(text)
    return text


def read_base(target: Path, sha: str) -> bytes | None:
    """Return pristine bytes, or None when they are gone or are not what they were."""
    try:
        data = (target / base_path(sha)).read_bytes()
    except OSError:
        return None
    unix = data.replace(b"\r\n", b"\n")  # git may have rewritten the line ends of a clone
    return next((found for found in (data, unix) if digest(found) == sha), None)


def stray_bases(target: Path, lock: Lock) -> list[str]:
    """Return the pristine files that nothing refers to any more, relative to the target."""
    wanted = {base_path(entry.sha) for entry in lock.files.values()}
    found = []
    for folder, _, names in os.walk(target / STATE / "base"):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), target).replace(os.sep, "/")
            if path == base_path(name) and _SHA.fullmatch(name) and path not in wanted:
                found.append(path)
    return found


_HINT = (
    "restore it from version control; or remove it, and files that still are what the plan says are taken over, while"
    " the others need --force or --conflicts mine"
)
