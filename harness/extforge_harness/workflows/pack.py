"""Packs: folders of skills, each a folder with SKILL.md and/or skill.yaml, or an older single `<name>.yaml`.

One bad skill does not hide the others: what is wrong with it is among the pack's problems.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.workflows.errors import RunRefused, SkillInvalid
from extforge_harness.workflows.skill import Skill, Workflow, find_problems
from extforge_verifiers.artifact import Artifact, ArtifactUnreadable
from extforge_verifiers.documents import SIZE_LIMIT, Document, parse_json, read_document, read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Severity, Where
from extforge_verifiers.frontmatter import read_skill
from extforge_verifiers.paths import lies_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Pack", "check_again", "load_pack", "load_skill"]

WORKFLOW_FILE, KNOWLEDGE_FILE = "skill.yaml", "SKILL.md"


@dataclass(slots=True)
class Pack:
    """The skills of a folder, folders first and each group by name, and everything that is wrong with the others."""

    path: str
    skills: list[Skill] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """The problems that keep a skill from being used."""
        return [finding for finding in self.problems if finding.severity is Severity.ERROR]


def load_pack(path: str | os.PathLike[str], *, strict: bool = False) -> Pack:
    """Return the skills of a folder.

    Args:
        path: the folder; or an extension tree, or a folder that trees were generated into: then all of theirs.
        strict: raise for the first bad skill instead of collecting.

    Raises:
        RunRefused: when the folder is not there, or may not be read (`workflow-not-found`).
        SkillInvalid: with `strict`, for the first skill that cannot be used.
    """
    pack = Pack(str(path))
    for folder in _skill_folders(Path(path)):
        _load_folder(pack, folder, strict=strict)
    return pack


def _skill_folders(root: Path) -> list[Path]:
    """Return the folders of skills of an extension tree, or of the trees that were generated into a folder."""
    if (root / "harness_config.yaml").is_file():
        own = root / "skills"
        return [own] if own.is_dir() else sorted(root.glob("*/skills"))  # of a merged tree
    places = ("openjiuwen/extensions/harness/*", "runtime_extensions/*/*")
    trees = sorted(found.parent for place in places for found in root.glob(f"{place}/harness_config.yaml"))
    return [folder for tree in trees for folder in _skill_folders(tree)] if trees else [root]


def _load_folder(pack: Pack, folder: Path, *, strict: bool) -> None:
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as exc:
        words = f"no folder of skills: {exc.strerror or exc}"
        raise RunRefused("workflow-not-found", folder.name, words, str(folder)) from None
    found: dict[str, str] = {}
    for entry in sorted(_usable(pack, folder, entries), key=lambda entry: not entry.is_dir()):
        id_ = entry.name if entry.is_dir() else entry.stem
        try:
            is_file = entry.suffix in (".yaml", ".yml") and entry.is_file()
            if not is_file and not _is_skill_folder(entry):
                continue
            if id_ in found:
                words = f"{entry.name} is ignored: the folder {found[id_]} has the same name"
                pack.problems.append(Finding("workflow-shadowed", words, Severity.WARNING, Where(str(entry))))
                continue
            found[id_] = str(entry)
            pack.skills.append(load_skill(entry))
        except SkillInvalid as exc:
            if strict:
                raise
            pack.problems += exc.findings


def load_skill(path: str | os.PathLike[str]) -> Skill:
    """Return the skill in a folder, a `skill.yaml`, or an older single file.

    Raises:
        RunRefused: when there is nothing of the kind (`workflow-not-found`).
        SkillInvalid: with every problem of the skill.
    """
    given = Path(os.path.abspath(path))
    if given.is_dir():
        if (given / "skill.yml").exists():
            raise SkillInvalid(given.name, [_misnamed(given / "skill.yml", WORKFLOW_FILE)])
        if (given / WORKFLOW_FILE).exists():
            return _load(given.name, given / WORKFLOW_FILE, given)
        if (given / KNOWLEDGE_FILE).exists():
            return _knowledge(given)
        words = f"the folder has neither {WORKFLOW_FILE} nor {KNOWLEDGE_FILE}"
        raise RunRefused("workflow-not-found", given.name, words, str(path))
    if not given.exists():
        raise RunRefused("workflow-not-found", given.stem, "there is no such file or folder", str(path))
    if given.name == KNOWLEDGE_FILE:
        return load_skill(given.parent)
    if given.suffix != ".yaml":
        right = WORKFLOW_FILE if given.stem == "skill" else f"{given.stem}.yaml"
        raise SkillInvalid(given.stem, [_misnamed(given, right)])
    if given.name == WORKFLOW_FILE:
        return _load(given.parent.name, given, given.parent)
    return _load(given.stem, given, given.parent / given.stem)


def check_again(skill: Skill) -> list[Finding]:
    """Return what is wrong with a skill that was built in memory, where nothing has looked at it yet."""
    import json  # noqa: PLC0415 -- only to look at it as the document it stands for

    try:
        text = json.dumps(skill.workflow.model_dump(by_alias=True, exclude_none=True, warnings=False))
        document = parse_json(text, skill.source)
    except (TypeError, ValueError) as exc:
        return [Finding("document-bad-value", f"not a document: {exc}", where=Where(skill.source))]
    except DocumentError as exc:
        return list(exc.findings)
    front = {"description": skill.description}
    return find_problems(document, skill.id, folder=skill.folder, front=front)[1]


def _misnamed(path: Path, right: str) -> Finding:
    words = f"{path.name} is not read"
    return Finding("workflow-misnamed", words, where=Where(str(path)), fix=f"rename it to {right}")


def _is_skill_folder(entry: Path) -> bool:
    names = (WORKFLOW_FILE, KNOWLEDGE_FILE, "skill.yml")
    return entry.is_dir() and any((entry / name).exists() for name in names)


def _usable(pack: Pack, folder: Path, entries: list[Path]) -> Iterator[Path]:
    """Yield what is not hidden and does not lead out of the pack."""
    for entry in entries:
        names = (entry, entry / WORKFLOW_FILE, entry / KNOWLEDGE_FILE)
        if entry.name.startswith("."):
            reason = "it is hidden"
        elif (entry.is_symlink() and not entry.exists()) or not all(lies_in(name, folder) for name in names):
            reason = "it is a symlink that leaves the pack"
        else:
            yield entry
            continue
        words = f"{entry.name} is ignored: {reason}"
        pack.problems.append(Finding("workflow-ignored", words, Severity.WARNING, Where(str(entry))))


def _read(path: Path) -> bytes:
    """Return a file's bytes; whoever reads a document too large for one says so."""
    try:
        with Artifact(path) as artifact:
            data: bytes = artifact.head(SIZE_LIMIT + 1)
            return data
    except ArtifactUnreadable as exc:
        finding = Finding("workflow-unreadable", f"cannot be read: {exc}", where=Where(str(path)))
        raise DocumentError(str(path), [finding]) from None


def _load(id_: str, path: Path, folder: Path) -> Skill:
    findings: list[Finding] = []
    front: dict[str, Any] = {}
    document: Document | None = None
    try:
        document = read_document(_read(path), str(path))
    except DocumentError as exc:
        findings += exc.findings
    try:
        if (folder / KNOWLEDGE_FILE).exists():
            front = _front_matter(folder / KNOWLEDGE_FILE)
    except DocumentError as exc:
        findings += exc.findings
        front = {"description": "unknown"}  # one problem, not two
    workflow = None
    if document is not None:
        workflow, more = find_problems(document, id_, folder=str(folder), front=front)
        findings += more
    if findings or workflow is None:
        raise SkillInvalid(id_, findings)
    description = workflow.description or str(front["description"]).strip()
    return Skill(id_, workflow, description, str(folder), str(path))


def _front_matter(path: Path) -> dict[str, Any]:
    value = read_skill(read_text(_read(path), str(path)), str(path)).document.value
    return value if isinstance(value, dict) else {}


def _knowledge(folder: Path) -> Skill:
    path = folder / KNOWLEDGE_FILE
    try:
        front = _front_matter(path)
    except DocumentError as exc:
        raise SkillInvalid(folder.name, exc.findings) from None
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        where = Where(str(path), line=1)
        raise SkillInvalid(
            folder.name, [Finding("skill-description-missing", "the front matter has no description", where=where)]
        )
    # The host goes by the folder, whatever the front matter says.
    return Skill(folder.name, Workflow(), description.strip(), str(folder), str(path))
