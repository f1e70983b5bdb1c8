"""From a checked plan to trees in a target: render, check what was rendered, then write all or nothing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from extforge.apply import Changes, apply_changes, classify
from extforge.check import CheckedPlan, Installed
from extforge.community import read_skill_files
from extforge.errors import TargetError, TemplateError
from extforge.render import render_plan
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Severity
from extforge_verifiers.subjects import is_extension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge.community import Collection
    from extforge.derive import Blueprint

__all__ = ["Generated", "existing_extensions", "generate"]


@dataclass(slots=True)
class Generated:
    """What came of generating."""

    target: Path
    changes: Changes
    blueprints: list[Blueprint] = field(default_factory=list)
    applied: bool = False

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
            rails = [r for r in extension.get("rails") or [] if isinstance(r, dict)]
            guards = tuple(str(r["work"]) for r in rails if r.get("does") == "guard" and "work" in r)
            found[name] = Installed(
                str(extension.get("kind", "capability")),
                names_of_tools,
                [str(other) for other in extension.get("applies_to") or []],
                guards if len(guards) == len(rails) else (),
                [str(other) for other in extension.get("depends_on") or []],
            )
    return found


def generate(
    plan: CheckedPlan,
    into: str,
    *,
    only: str | None = None,
    dry_run: bool = False,
    template: Path | None = None,
    mcp: bool = False,
) -> Generated:
    """Render the plan's extensions and write them below `into`.

    Args:
        plan: a plan without errors.
        into: the folder that `openjiuwen/extensions/harness/` is made in.
        only: the one extension to generate, with the constraints it depends on.
        dry_run: say what would happen, and change nothing.
        template: a template folder instead of the packaged one.
        mcp: give every extension with tools an MCP server, whatever the plan says.

    Raises:
        TargetError: when the target cannot take the files; nothing was changed.
        TemplateError: when the templates do not render, or render something the host would not load.
    """
    target = Path(into)
    blueprints = _chosen(plan, only)
    for blueprint in blueprints:
        blueprint.mcp = blueprint.mcp or mcp
    _need_skills(blueprints, plan)
    files = render_plan(blueprints, template)
    files.update(_community_files(blueprints, plan.collection))
    check_rendered(blueprints, files, _beside(into))
    changes = classify(target, files)
    result = Generated(target, changes, blueprints)
    if changes.foreign or dry_run:
        return result
    apply_changes(target, files, changes)
    result.applied = True
    return result


def _need_skills(blueprints: list[Blueprint], plan: CheckedPlan) -> None:
    named = sorted({skill.source for b in blueprints for skill in b.skills if skill.source})
    if named and plan.collection is None:
        words = f"the plan uses community skills ({', '.join(named)}): pass --skills-from with their folder"
        raise TargetError(words)


def _community_files(blueprints: list[Blueprint], collection: Collection | None) -> dict[str, bytes]:
    """Return the files of the community skills, as they are."""
    found: dict[str, bytes] = {}
    for blueprint in blueprints:
        for skill in blueprint.skills:
            if skill.source and collection is not None:
                for path, data in read_skill_files(collection.skills[skill.source]).items():
                    found[f"{blueprint.root}/skills/{skill.name}/{path}"] = data
    return found


def _beside(into: str) -> list[str]:
    return list(existing_extensions(into))


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


def check_rendered(blueprints: list[Blueprint], files: Mapping[str, bytes], beside: list[str]) -> None:
    """Look at what was rendered as `extforge verify` would; a finding here is a mistake in the template.

    Raises:
        TemplateError: with every error found.
    """
    errors: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="extforge-check-") as folder:
        for path, data in files.items():
            full = os.path.join(folder, *path.split("/"))
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as stream:
                stream.write(data)
        planned = {blueprint.name for blueprint in blueprints} | set(beside)
        for blueprint in blueprints:
            report = verify_extension(os.path.join(folder, *blueprint.root.split("/")))
            errors += [
                finding
                for finding in report.findings
                if finding.severity is Severity.ERROR and not _is_known(finding, planned)
            ]
    if errors:
        lines = "; ".join(f"{f.where}: {f.message}".replace(folder, "").lstrip("/") for f in errors[:5])
        raise TemplateError(f"the template renders what the host would not load: {lines}")


def _is_known(finding: Finding, planned: set[str]) -> bool:
    """A constraint that is in the plan or the target, but not beside this tree in the check folder."""
    return finding.code == "extension-constraint-missing" and any(f"{name!r}" in finding.message for name in planned)
