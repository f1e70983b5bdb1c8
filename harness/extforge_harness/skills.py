"""Skill folders: which there are in packs and extensions, and whether all of one can be copied.

A skill is a folder with a SKILL.md, and its name is the folder's, because that is what openJiuwen goes by.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS
from extforge_verifiers.paths import lies_in
from extforge_verifiers.subjects import is_extension

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["check_skill_files", "find_skills", "read_skill_files", "skills_in_extension", "skills_in_pack"]

SIZE_LIMIT = 20 << 20  # bytes of one skill, all files together
FILE_LIMIT = 1_000
# ELF, Windows and Mach-O programs: a skill is text and material, and scripts can be read.
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
_TREES = os.path.join("openjiuwen", "extensions", "harness")


def skills_in_pack(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the skills that lie in a folder; none when it cannot be read."""
    return sorted(path.name for path in _skills_below(Path(folder)))


def skills_in_extension(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the skills in the skill folders of an extension's manifest; none when it has no manifest."""
    return sorted({path.name for path in _skills_of(Path(folder))})


def find_skills(sources: Iterable[str | os.PathLike[str]]) -> dict[str, list[Path]]:
    """Return the skills of several sources: name -> every folder that offers it.

    Args:
        sources: packs, extensions, or folders that extensions were generated into.
    """
    found: dict[str, dict[Path, None]] = {}
    for source in map(Path, sources):
        trees = source / _TREES
        if is_extension(str(source)):
            paths = _skills_of(source)
        elif trees.is_dir():
            paths = [path for tree in sorted(trees.iterdir()) for path in _skills_of(tree)]
        else:
            paths = _skills_below(source)
        for path in paths:
            found.setdefault(path.name, {})[path.resolve()] = None
    return {name: list(paths) for name, paths in sorted(found.items())}


def _skills_below(folder: Path) -> list[Path]:
    """Return the skills of a folder; one that is a link out of it is none of them."""
    try:
        return [
            entry
            for entry in sorted(folder.iterdir())
            if not entry.name.startswith(".")
            and entry.name not in HIDDEN_SKILL_FOLDERS  # the host passes over these
            and (entry / "SKILL.md").is_file()
            and lies_in(entry, folder)
        ]
    except OSError:
        return []


def _skills_of(tree: Path) -> list[Path]:
    """Return the skills of an extension; a skill folder outside it is not looked into."""
    for name in ("manifest.json", "harness_config.yaml"):  # in the host's order
        if not (tree / name).is_file():
            continue  # a pipe might never answer
        try:
            manifest = read_document((tree / name).read_bytes(), name).value
        except OSError:
            continue
        except DocumentError:
            return []
        folders = [tree / folder for folder in _skill_dirs(manifest)]
        return [path for folder in folders if lies_in(folder, tree) for path in _skills_below(folder)]
    return []


def _skill_dirs(manifest: object) -> list[str]:
    """Return the skill folders of either form of manifest, as far as they have the right shape."""
    values = manifest if isinstance(manifest, dict) else {}
    resources = values.get("resources")
    skills = resources.get("skills") if isinstance(resources, dict) else values.get("skills")
    items = skills.get("dirs", [skills]) if isinstance(skills, dict) else skills
    items = items if isinstance(items, list) else []
    dirs = [item.get("dir") if isinstance(item, dict) else item for item in items]
    return [item for item in dirs if isinstance(item, str) and "\0" not in item]


# --------------------------------------------------------------------------- files


def check_skill_files(folder: str) -> Iterator[Finding]:
    """Yield why a skill cannot be copied whole: links out of it, programs, pipes, too much.

    Raises:
        OSError: when a file cannot be read.
    """
    total = count = 0
    for path in _files(folder):
        where, name = Where(path), os.path.relpath(path, folder)
        if not lies_in(path, folder):
            yield Finding("extension-path-escapes", f"{name} is a link that leads out of the skill", where=where)
            continue
        if not os.path.isfile(path):
            words = f"{name} is no file but a link to a folder, a pipe or a device"
            yield Finding("skill-not-a-file", words, where=where, fix="put a copy in its place")
            continue
        count, total = count + 1, total + os.path.getsize(path)
        with open(path, "rb") as stream:
            if stream.read(4).startswith(_PROGRAMS):
                words = f"{name} is a compiled program"
                yield Finding("skill-program", words, where=where, fix="ask for its source, and build it yourself")
    if count > FILE_LIMIT or total > SIZE_LIMIT:
        words = f"the skill has {count:,} files of {total:,} bytes; {FILE_LIMIT:,} and {SIZE_LIMIT:,} are allowed"
        yield Finding("extension-too-large", words, where=Where(folder))


def _files(folder: str) -> Iterator[str]:
    for place, below, names in os.walk(folder):
        links = [name for name in below if os.path.islink(os.path.join(place, name))]
        below[:] = sorted(name for name in below if name not in (".git", "__pycache__", *links))
        yield from (os.path.join(place, name) for name in sorted([*names, *links]))


def read_skill_files(folder: str) -> dict[str, tuple[bytes, bool]]:
    """Return the files of a checked skill: path below it -> bytes, and whether they may be executed."""
    found = {}
    for path in _files(folder):
        with open(path, "rb") as stream:
            executable = bool(os.fstat(stream.fileno()).st_mode & 0o100)
            found[os.path.relpath(path, folder).replace(os.sep, "/")] = (stream.read(), executable)
    return found
