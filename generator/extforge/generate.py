"""From a checked plan to trees in a target: render, check what was rendered, then write all or nothing."""

from __future__ import annotations

import glob
import os
import posixpath
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from extforge.check import CheckedPlan, Installed, derive_again
from extforge.combine import combine
from extforge.errors import TargetError, TemplateError
from extforge.naming import is_module_path
from extforge.patterns import unsafe_reason
from extforge.plan import GuardSpec
from extforge.render import render_plan
from extforge.repository import REPOSITORY_FILES, repository_files, trees_after
from extforge.rules import SESSION_ID
from extforge.staging import staging
from extforge.target.changes import NO_NAME, Changes, Scope, classify
from extforge.target.diff import render_diff
from extforge.target.journal import apply_changes, exclusive, is_interrupted, recover
from extforge.target.lock import Extension, Lock, read_lock
from extforge_harness.documents import STDIN
from extforge_harness.skills import read_skill_files
from extforge_harness.workflows.errors import SkillInvalid
from extforge_harness.workflows.pack import load_skill
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Severity
from extforge_verifiers.frontmatter import SKILL_PROFILES
from extforge_verifiers.subjects import is_extension

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    roots: list[str] = field(default_factory=list)  # of the trees, relative to the target
    served: list[str] = field(default_factory=list)  # of those with an MCP server
    applied: bool = False
    recovered: bool = False  # a run that was killed has been finished first
    diff: str = ""


def existing_extensions(target: str) -> dict[str, Installed]:
    """Return the extensions that extforge made in a target before, by name."""
    found: dict[str, Installed] = {}
    for tree in _trees(target):
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
            found[os.path.basename(tree)] = Installed(
                str(extension.get("kind", "capability")),
                names_of_tools,
                [str(other) for other in extension.get("applies_to") or []],
                guards if len(guards) == len(rails) else (),
                [str(other) for other in extension.get("depends_on") or []],
                [rule for work in guards for rule in _guard_rules(tree, work)],
            )
    return found


def _guard_rules(tree: str, work: str) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield (tools, options) of a guard as it is in a tree; what could hang or mislead us is passed over."""
    name = f"{work.replace('.', '/')}.json"
    if not is_module_path(work):
        return
    for path in (os.path.join(tree, name), *sorted(glob.glob(os.path.join(glob.escape(tree), "*", name)))):
        try:
            with open(path, "rb") as stream:
                value = read_document(stream.read(1 << 20), path).value
            options, tools = GuardSpec.model_validate(value["options"]), value["tools"]
        except (OSError, DocumentError, ValidationError, KeyError, TypeError):
            continue
        rules = [rule for rule in (options.require, options.forbid) if rule is not None]
        patterns = [p for rule in rules for p in (rule.pattern, *(rule.argument or {}).values()) if p]
        if isinstance(tools, list) and not any(unsafe_reason(pattern) for pattern in patterns):
            yield [str(tool) for tool in tools], options.model_dump(mode="json", exclude_none=True)


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
        mcp: give every extension with tools an MCP server, whatever the plan says.
        merge: make one extension of all designs, named after the plan's package.
        session: put the trees below `runtime_extensions/<session>/`, where the auto-harness of a session loads from.
        skill_profile: whom SKILL.md is written for, one of `SKILL_PROFILES`; default: as before, else openJiuwen.
        repo: also make a repository round the trees; once made, it is kept up to date.
    """

    only: str | None = None
    dry_run: bool = False
    diff: bool = False
    force: frozenset[str] = frozenset()
    conflicts: str = "refuse"
    template: Path | None = None
    repo: bool = False
    mcp: bool = False
    merge: bool = False
    session: str | None = None
    skill_profile: str | None = None


def generate(plan: CheckedPlan, into: str, options: Options | None = None) -> Generated:
    """Render the plan's extensions, and make the target what they say: create, update, merge, delete.

    Args:
        plan: a plan without errors.
        into: the folder that `openjiuwen/extensions/harness/` is made in.
        options: how.

    Raises:
        PlanError: when the plan's skills do not fit the profile.
        TargetError: when the target cannot take the files; nothing was changed.
        TemplateError: when the templates do not render, or render something the host would not load.
    """
    options = options or Options()
    target = Path(into)
    if options.only and (options.merge or options.repo):
        raise TargetError("--only speaks of one extension, --merge and --repo of all of them")
    blueprints = _placed(_chosen(plan, options.only), options.session)
    for blueprint in blueprints:
        blueprint.mcp = blueprint.mcp or options.mcp
    _need_skills(blueprints, plan)
    if options.dry_run:
        if is_interrupted(target):
            words = (
                f"a run was interrupted while it changed {target}; run once without --dry-run and --check to finish it"
            )
            raise TargetError(words)
        with staging() as staged:
            return _render(plan, blueprints, target, options, staged)
    with staging() as staged, exclusive(target):
        recovered = recover(target)
        result = _render(plan, blueprints, target, options, staged)
        result.recovered = recovered
        if not result.changes.blocked:
            apply_changes(target, staged, result.changes)
            result.applied = True
    return result


def _render(
    plan: CheckedPlan, blueprints: list[Blueprint], target: Path, options: Options, staged: Staged
) -> Generated:
    """Render everything, look at it, and compare it with what is there."""
    lock = read_lock(target)
    name = _name_of(plan.label, options.session)
    blueprints = _settled(plan, blueprints, options, lock, name)
    render_plan(blueprints, staged, options.template)
    _stage_community(blueprints, plan.collection, staged)
    homes = {b.name: b.root for b in blueprints}
    roots = list(homes.values())
    if options.merge:
        root = combine(blueprints, plan.package_name, staged)
        roots, homes = [root], {b.name: f"{root}/{b.name}" for b in blueprints}
    skills = [f"{homes[b.name]}/skills/{s.name}" for b in blueprints for s in b.skills if not s.source]
    check_rendered(roots, staged, list(existing_extensions(str(target))), skills)
    scope = Scope(
        plan=name,
        package=plan.package_name,
        extensions={homes[b.name]: Extension(b.name, b.design.gap_id, (), b.skill_profile) for b in blueprints},
        whole_plan=options.only is None,
        force=frozenset(posixpath.normpath(path) for path in options.force),
        optional=frozenset(REPOSITORY_FILES),
        conflicts=options.conflicts,
    )
    if options.repo or (options.only is None and set(REPOSITORY_FILES) & set(lock.files)):
        packages = scope.packages(lock)
        command = _command(plan.label, options) if list(packages) == [name] else _command("PLAN", Options())
        # Whichever plan is generated: the first by name gives its name to the repository.
        package = next((packages[p] for p in sorted(packages, key=lambda p: (p == NO_NAME, p)) if packages[p]), "")
        trees = trees_after(target, lock, scope, staged)
        for path, data in repository_files(trees, package, command).items():
            staged.write(path, data)
    result = Generated(target, classify(target, staged, lock, scope), blueprints, roots)
    result.served = [homes[blueprint.name] for blueprint in blueprints if blueprint.served]
    if options.diff:
        result.diff = render_diff(target, staged, result.changes)
    return result


def _name_of(label: str, session: str | None) -> str:
    """Return how the lock calls a plan: by its file name, the same wherever it lies, and apart for each session."""
    if label == STDIN:
        return NO_NAME
    name = os.path.basename(os.path.realpath(label))
    return f"{name} in {session}" if session else name


def _command(label: str, options: Options) -> str:
    """Return what brings the trees up to date, in the same layout."""
    plan = "PLAN" if label == STDIN else os.path.basename(label)
    more = [f" --session {options.session}"] if options.session else []
    more += [f" --{name}" for name in ("merge", "mcp") if getattr(options, name)]
    return f"extforge generate {shlex.quote(plan)} --into .{''.join(more)}"


def _settled(
    plan: CheckedPlan, blueprints: list[Blueprint], options: Options, lock: Lock, name: str
) -> list[Blueprint]:
    """Return the blueprints as they fit the target: not under guards that go, and with skills for their readers.

    Those are whom the user names, or else whom the skills were written for before.
    """
    before = [found for found in lock.extensions.values() if name in found.plans]
    profiles = {}
    for blueprint in plan.blueprints:
        mine = [found for found in before if found.name == blueprint.name]
        mine = mine or [found for home, found in lock.extensions.items() if home == blueprint.root]
        if not mine and name != NO_NAME:  # renamed, or new in a plan whose others are known
            mine = [found for found in before if found.gap and found.gap == blueprint.design.gap_id] or before
        known = {found.skill_profile for found in mine}
        profiles[blueprint.name] = options.skill_profile or (known.pop() if len(known) == 1 else SKILL_PROFILES[0])
    now = {b.root: Extension(b.name, b.design.gap_id) for b in blueprints}
    gone = {f.name for f in before if f.plans == (name,)} - set(profiles)
    if not Scope(plan=name, extensions=now, whole_plan=options.only is None).continues(lock):
        gone = set()
    if not gone and set(profiles.values()) == {SKILL_PROFILES[0]}:
        return blueprints
    found = {blueprint.name: blueprint for blueprint in derive_again(plan, profiles, gone)}
    return [replace(found[b.name], root=b.root, mcp=b.mcp) for b in blueprints]


def _placed(blueprints: list[Blueprint], session: str | None) -> list[Blueprint]:
    """Return the blueprints with their trees where a session's are."""
    if session is None:
        return blueprints
    if not SESSION_ID.fullmatch(session):
        raise TargetError(f"--session {session!r}: use letters, digits, '.', '_' and '-', at most 128")
    return [replace(b, root=f"runtime_extensions/{session}/{b.name}") for b in blueprints]


def _trees(target: str) -> Iterator[str]:
    """Yield the trees at the places that openJiuwen loads from."""
    places = ("openjiuwen/extensions/harness/*", "runtime_extensions/*/*")
    for place in places:
        yield from filter(is_extension, sorted(glob.glob(os.path.join(glob.escape(target), *place.split("/")))))


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


def check_rendered(roots: list[str], staged: Staged, beside: list[str], skills: Iterable[str] = ()) -> None:
    """Look at what was rendered as `extforge verify` would; a finding here is a mistake in the template.

    The generated `skills` are also loaded as a run of their workflows would.

    Raises:
        TemplateError: with every error found.
    """
    errors: list[Finding] = []
    for root in roots:
        report = verify_extension(str(staged.folder / root))
        errors += [
            finding
            for finding in report.findings
            if finding.severity is Severity.ERROR and not _is_known(finding, beside)
        ]
    for skill in skills:
        try:
            load_skill(staged.folder / skill)
        except SkillInvalid as exc:
            errors += exc.findings
    if errors:
        lines = "; ".join(f"{f.where}: {f.message}".replace(str(staged.folder), "").lstrip("/") for f in errors[:5])
        raise TemplateError(f"the template renders what the host would not load: {lines}")


def _is_known(finding: Finding, beside: list[str]) -> bool:
    """A constraint that is in the target already."""
    return finding.code == "extension-constraint-missing" and any(f"{name!r}" in finding.message for name in beside)
