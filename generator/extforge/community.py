"""Skills that somebody else wrote, copied untouched from folders that the user names.  No network.

A collection (a checkout of anthropics/skills, say) may nest its skills at any depth; a skill is a folder with a
SKILL.md, and its name is the folder's, because that is what openJiuwen goes by.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extforge_harness.skills import check_skill_files
from extforge_verifiers.documents import read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where
from extforge_verifiers.frontmatter import NAME, check_skill
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS
from extforge_verifiers.paths import lies_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Collection", "read_collection"]

_SKIPPED = frozenset((".git", "__pycache__", ".venv", *HIDDEN_SKILL_FOLDERS))


@dataclass(slots=True)
class Collection:
    """The skills found in the folders: name -> path; names that stand twice; and what was passed over, with why."""

    skills: dict[str, str] = field(default_factory=dict)
    twice: dict[str, list[str]] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)


def read_collection(folders: tuple[str, ...]) -> Collection:
    """Return the skills below these folders.

    Raises:
        OSError: when a folder cannot be read.
    """
    collection = Collection()
    seen: set[str] = set()
    for top in folders:
        os.scandir(top).close()  # os.walk would pass over a missing folder in silence
        _walk(top, collection, seen)
    return collection


def _walk(top: str, collection: Collection, seen: set[str]) -> None:
    for folder, below, names in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # the same folder twice, or a link that leads back
            below.clear()
            continue
        seen.add(real)
        name = os.path.basename(os.path.abspath(folder))
        if not lies_in(folder, top):
            collection.passed_over[name] = f"{folder} is a link that leads out of {top}"
            below.clear()
            continue
        for hidden in (entry for entry in below if entry in _SKIPPED or entry.startswith(".")):
            _note(os.path.join(folder, hidden), "lies in a folder that the host never scans; name it", collection)
        below[:] = sorted(entry for entry in below if entry not in _SKIPPED and not entry.startswith("."))
        if "SKILL.md" not in names:
            if "skill.md" in (entry.lower() for entry in names):
                collection.passed_over.setdefault(name, f"{folder} has no SKILL.md, which must be written in capitals")
            continue
        if folder != top:  # the host passes over a SKILL.md at the top, and stops at the first one of a branch
            for entry in below:
                _note(os.path.join(folder, entry), f"lies inside the skill {name!r}; name its folder", collection)
            below.clear()
        if name in collection.skills:
            collection.twice.setdefault(name, [collection.skills[name]]).append(folder)
        collection.skills.setdefault(name, folder)


def _note(folder: str, why: str, collection: Collection) -> None:
    """Remember the skills below a folder that is not looked into, to be able to say why."""
    for place, _, names in os.walk(folder):
        if "SKILL.md" in names:
            collection.passed_over.setdefault(os.path.basename(place), f"{place} {why} with --skills-from")


def check_skill_source(collection: Collection, name: str) -> Iterator[Finding]:
    """Yield why a community skill cannot be used."""
    if name in collection.twice:
        paths = ", ".join(collection.twice[name])
        words = f"{len(collection.twice[name])} community skills are named {name!r}: {paths}"
        yield Finding(
            "plan-skill-source-missing",
            words,
            fix="pass the folder of the one that is meant to --skills-from, and not the others",
        )
        return
    if name not in collection.skills:
        words = f"there is no community skill {name!r} in the folders of --skills-from"
        if name in collection.passed_over:
            words += f": {collection.passed_over[name]}"
        yield Finding("plan-skill-source-missing", words)
        return
    if not NAME.fullmatch(name):
        words = f"the community skill's folder {name!r} cannot name a skill in the host"
        yield Finding("skill-name-invalid", words, failure_id="skill_manifest_invalid")
    path = os.path.join(collection.skills[name], "SKILL.md")
    try:
        with open(path, "rb") as stream:
            data = stream.read()
        text = "\ufeff" * data.startswith(codecs.BOM_UTF8) + read_text(data, path)  # the host does not strip it
    except DocumentError as exc:
        yield from exc.findings
        return
    except OSError as exc:
        yield Finding("extension-unreadable", f"{path}: {exc.strerror}", where=Where(path))
        return
    yield from check_skill(text, path, name)
    yield from check_skill_files(collection.skills[name])
