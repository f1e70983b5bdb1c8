"""Skills that somebody else wrote, copied untouched from folders that the user names.  No network.

A collection (a checkout of anthropics/skills, say) may nest its skills at any depth; a skill is a folder with a
SKILL.md, and its name is the folder's, because that is what openJiuwen goes by.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extforge_harness.skills import check_skill_files, read_skill_files
from extforge_verifiers.documents import read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Severity, Where
from extforge_verifiers.frontmatter import NAME, check_skill
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Collection", "read_collection", "read_skill_files"]

_SKIPPED = frozenset((".git", "__pycache__", ".venv", *HIDDEN_SKILL_FOLDERS))


@dataclass(slots=True)
class Collection:
    """The skills found in the folders: name -> path; and names that stand twice."""

    skills: dict[str, str] = field(default_factory=dict)
    twice: dict[str, list[str]] = field(default_factory=dict)


def read_collection(folders: tuple[str, ...]) -> Collection:
    """Return the skills below these folders.

    Raises:
        OSError: when a folder cannot be read.
    """
    collection = Collection()
    for top in folders:
        os.scandir(top).close()  # os.walk would pass over a missing folder in silence
        for folder, below, names in os.walk(top):
            below[:] = sorted(name for name in below if name not in _SKIPPED and not name.startswith("."))
            if "SKILL.md" not in names:
                continue
            below.clear()  # the host stops at the first SKILL.md of a branch
            name = os.path.basename(os.path.abspath(folder))
            if name in collection.skills:
                collection.twice.setdefault(name, [collection.skills[name]]).append(folder)
            collection.skills.setdefault(name, folder)
    return collection


def check_skill_source(collection: Collection, name: str) -> Iterator[Finding]:
    """Yield why a community skill cannot be used."""
    if name in collection.twice:
        paths = ", ".join(collection.twice[name])
        words = f"{len(collection.twice[name])} community skills are named {name!r}: {paths}"
        yield Finding("plan-skill-source-missing", words, fix="name the folder of the one that is meant")
        return
    if name not in collection.skills:
        words = f"there is no community skill {name!r} in the folders of --skills-from"
        yield Finding("plan-skill-source-missing", words)
        return
    if not NAME.fullmatch(name):
        words = f"the community skill's folder {name!r} cannot name a skill in the host"
        yield Finding("skill-name-invalid", words, failure_id="skill_manifest_invalid")
    path = os.path.join(collection.skills[name], "SKILL.md")
    try:
        with open(path, "rb") as stream:
            text = read_text(stream.read(), path)
    except DocumentError as exc:
        yield from exc.findings
        return
    except OSError as exc:
        yield Finding("extension-unreadable", f"{path}: {exc.strerror}", where=Where(path))
        return
    yield from (f for f in check_skill(text, path, name) if f.severity is Severity.ERROR)
    yield from check_skill_files(collection.skills[name])
