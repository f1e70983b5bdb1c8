"""From a checked plan to trees in a target: render, check what was rendered, then write all or nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from extforge.check import CheckedPlan, Installed
from extforge.community import read_skill_files
from extforge.errors import TargetError, TemplateError
from extforge.reading import STDIN_LABEL
from extforge.render import render_plan
from extforge.repository import REPOSITORY_FILES, repository_files
from extforge.staging import staging
from extforge.target.changes import Changes, Scope, classify
from extforge.target.diff import render_diff
from extforge.target.journal import apply_changes, exclusive, is_interrupted, recover
from extforge.target.lock import read_lock
from extforge_harness.workflows.errors import SkillInvalid
from extforge_harness.workflows.pack import load_skill
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Severity
from extforge_verifiers.subjects import is_extension

if TYPE_CHECKING:
    from extforge.community import Collection
    from extforge.derive import Blueprint
    from extforge.staging import Staged

__all__ = ["Generated", "Options", "existing_extensions", "generate"]


@dataclass(slots=True)
class Generated:
    """What came of generating."""

    target: Path
    changes: Changes
    blueprints: list[Blueprint] = field(default_factory=list)
    applied: bool = False
    recovered: bool = False  # a run that was killed has been finished first
    diff: str = ""

    @property
    def roots(self) -> list[str]:
        """The roots of the trees, relative to the target."""
        return [blueprint.root for blueprint in self.blueprints]


def existing_extensions(target: str) -> dict[str, Installed]:
    """Return the extensions that extforge made in a target before, by name."""
    found: dict[str, Installed] = {}
    folder = os.path.join(target, "openjiuwen", "extensions", "harness")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return found
    for name in names:
        tree = os.path.join(folder, name)
        if not is_extension(tree):
            continue
        try:
            with open(os.path.join(tree, "harness_config.yaml"), "rb") as stream:
                value = read_document(stream.read(), tree).value
        except (OSError, DocumentError):
            continue
        metadata = value.get("metadata") if isinstance(value, dict) else None
        extension = metadata.get("extension") if isinstance(metadata, dict) else None
        if isinstance(extension, dict):
            tools = extension.get("tools")
            names_of_tools = [
                str(t["name"])
                for t in (tools if isinstance(tools, list) else [])
                if isinstance(t, dict) and "name" in t
            ]
            found[name] = Installed(str(extension.get("kind", "capability")), names_of_tools)
    return found


@dataclass(frozen=True, slots=True)
class Options:
    """How to generate.

    Attributes:
        only: the one extension to generate, with the constraints it depends on.
        dry_run: say what would happen, and change nothing.
        diff: also say what would change inside the files.
        force: paths below the target that are overwritten whatever is there.
        conflicts: what becomes of a place that a person and we changed: `refuse` (nothing is changed anywhere),
            `inline` (markers), `mine` or `generated`.
        template: a template folder instead of the packaged one.
        repo: also make a repository round the trees; once made, it is kept up to date.
    """

    only: str | None = None
    dry_run: bool = False
    diff: bool = False
    force: frozenset[str] = frozenset()
    conflicts: str = "refuse"
    template: Path | None = None
    repo: bool = False


def generate(plan: CheckedPlan, into: str, options: Options | None = None) -> Generated:
    """Render the plan's extensions, and make the target what they say: create, update, merge, delete.

    Args:
        plan: a plan without errors.
        into: the folder that `openjiuwen/extensions/harness/` is made in.
        options: how.

    Raises:
        TargetError: when the target cannot take the files; nothing was changed.
        TemplateError: when the templates do not render, or render something the host would not load.
    """
    options = options or Options()
    target = Path(into)
    blueprints = _chosen(plan, options.only)
    _need_skills(blueprints, plan)
    with staging() as staged:
        render_plan(blueprints, staged, options.template)
        _stage_community(blueprints, plan.collection, staged)
        check_rendered(blueprints, staged, list(existing_extensions(into)))
        if options.repo or (options.only is None and set(REPOSITORY_FILES) & set(read_lock(target).files)):
            for path, data in repository_files(plan.blueprints, plan.package_name, _name_of(plan.label)).items():
                staged.write(path, data)
        scope = Scope(
            plan=_name_of(plan.label),
            roots={b.name: _record(b, plan.label) for b in blueprints},
            whole_plan=options.only is None,
            force=options.force,
            optional=frozenset(REPOSITORY_FILES),
            conflicts=options.conflicts,
        )
        result = Generated(target, Changes(), blueprints)
        if options.dry_run and not is_interrupted(target):
            _classify(result, staged, scope, options)
            return result
        with exclusive(target):
            result.recovered = recover(target)
            _classify(result, staged, scope, options)
            if not (result.changes.blocked or options.dry_run):
                apply_changes(target, staged, result.changes)
                result.applied = True
    return result


def _classify(result: Generated, staged: Staged, scope: Scope, options: Options) -> None:
    result.changes = classify(result.target, staged, read_lock(result.target), scope)
    if options.diff:
        result.diff = render_diff(result.target, staged, result.changes)


def _name_of(label: str) -> str:
    """Return how the lock calls a plan: by its file name, the same wherever it lies.  Standard input has none."""
    return "" if label == STDIN_LABEL else os.path.basename(os.path.realpath(label))


def _record(blueprint: Blueprint, label: str) -> dict[str, str]:
    return {"root": blueprint.root, "gap": blueprint.design.gap_id, "plan": _name_of(label)}


def _need_skills(blueprints: list[Blueprint], plan: CheckedPlan) -> None:
    named = sorted({skill.source for b in blueprints for skill in b.skills if skill.source})
    if named and plan.collection is None:
        words = f"the plan uses community skills ({', '.join(named)}): pass --skills-from with their folder"
        raise TargetError(words)


def _stage_community(blueprints: list[Blueprint], collection: Collection | None, staged: Staged) -> None:
    """Put the community skills into the trees, as they are."""
    for blueprint in blueprints:
        for skill in blueprint.skills:
            if skill.source and collection is not None:
                for path, (data, executable) in read_skill_files(collection.skills[skill.source]).items():
                    staged.write(f"{blueprint.root}/skills/{skill.name}/{path}", data, executable=executable)


def _chosen(plan: CheckedPlan, only: str | None) -> list[Blueprint]:
    """Return the blueprints to generate; one of them brings the constraints that it depends on."""
    if only is None:
        return plan.blueprints
    by_name = {blueprint.name: blueprint for blueprint in plan.blueprints}
    if only not in by_name:
        raise TargetError(f"the plan has no extension {only!r}; it has {', '.join(sorted(by_name))}")
    wanted: set[str] = set()
    waiting = [only]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in wanted:
            wanted.add(name)
            waiting += by_name[name].design.depends_on
    return [blueprint for blueprint in plan.blueprints if blueprint.name in wanted]


def check_rendered(blueprints: list[Blueprint], staged: Staged, beside: list[str]) -> None:
    """Look at what was rendered as `extforge verify` would; a finding here is a mistake in the template.

    Raises:
        TemplateError: with every error found.
    """
    errors: list[Finding] = []
    for blueprint in blueprints:
        report = verify_extension(str(staged.folder / blueprint.root))
        errors += _check_skills(staged.folder / blueprint.root, blueprint)
        errors += [
            finding
            for finding in report.findings
            if finding.severity is Severity.ERROR and not _is_known(finding, beside)
        ]
    if errors:
        lines = "; ".join(f"{f.where}: {f.message}".replace(str(staged.folder), "").lstrip("/") for f in errors[:5])
        raise TemplateError(f"the template renders what the host would not load: {lines}")


def _check_skills(root: Path, blueprint: Blueprint) -> list[Finding]:
    """Load each generated skill as a run of it would."""
    errors: list[Finding] = []
    for skill in blueprint.skills:
        if not skill.source:
            try:
                load_skill(root / "skills" / skill.name)
            except SkillInvalid as exc:
                errors += exc.findings
    return errors


def _is_known(finding: Finding, beside: list[str]) -> bool:
    """A constraint that is in the target already."""
    return finding.code == "extension-constraint-missing" and any(f"{name!r}" in finding.message for name in beside)
