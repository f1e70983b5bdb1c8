"""What a design must be, beyond its shape.  One generator of findings per field, so each can be read alone.

Sources: openJiuwen's design-ext skill (the fields and their meaning) and the host's measured behaviour (what
refuses to load, what is ignored in silence).
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from extforge.naming import GENERIC_NAMES, LONGEST_NAME, is_class_name, is_module_path, is_snake_case, reserved_reason
from extforge_harness.documents import suggest
from extforge_verifiers.findings import Finding, Severity
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS, RESERVED_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from extforge.plan import ExtensionDesign
    from extforge.reading import Entry
    from extforge_verifiers.documents import Path

__all__ = ["MODULE_PREFIX", "SESSION_ID", "check_design", "check_relations", "problem"]

MODULE_PREFIX = "openjiuwen.extensions.harness"
COMPONENTS = ("rail", "tool", "skill")
KINDS = ("capability", "constraint")
LONGEST_TEXT = 50_000  # characters
LONGEST_KEY = 200
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RUNTIME_ROOT = re.compile(f"runtime_extensions/{SESSION_ID.pattern}")
_NEEDLESS = re.compile(r"(readme|install(ation)?|changelog|changes|contributing|license)(\.\w+)?", re.IGNORECASE)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?\s*(>=\s*[0-9][0-9A-Za-z.]*)?")


def problem(
    entry: Entry,
    code: str,
    message: str,
    *path: str | int,
    fix: str | None = None,
    warn: bool = False,
    key: bool = False,
) -> Finding:
    """Return a finding about a value of this design, with its line."""
    where = entry.document.where((*entry.path, *path), key=key)
    severity = Severity.WARNING if warn else Severity.ERROR
    return Finding(code, message, severity, where, fix)


def check_design(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    """Yield what is wrong with one design on its own."""
    yield from _check_texts(entry)
    yield from _check_name(entry, design)
    yield from _check_kind(entry, design)
    yield from _check_components(entry, design)
    yield from _check_file_plan(entry, design)
    yield from _check_patch(entry, design)
    yield from _check_skill_source(entry, design)
    yield from _check_own_fields(entry, design)


def _check_texts(entry: Entry) -> Iterator[Finding]:
    """Control characters cannot be stored in YAML, Markdown or an Office file, and nobody means them."""
    for path, text, is_key in _texts(entry.value, ()):
        if match := _CONTROL.search(text):
            words = f"the text has a control character (U+{ord(match[0]):04X}) at position {match.start() + 1}"
            yield problem(entry, "plan-text-character", words, *path, fix="remove it", key=is_key)
        limit = LONGEST_KEY if is_key else LONGEST_TEXT
        if len(text) > limit:
            words = f"the text has {len(text):,} characters; {limit:,} are allowed"
            yield problem(entry, "plan-text-too-long", words, *path, key=is_key)


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yield every text in `value` with its path, and whether it is a key."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), key, True
            yield from _texts(item, (*path, key))


def _check_name(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    name = design.extension_name
    path = ("extension_name",)
    if not is_snake_case(name):
        words = f"{_shown(name)} is not a snake_case Python identifier"
        fix = "use a-z, 0-9 and single underscores, starting with a letter, and no Python keyword"
        yield problem(entry, "plan-name-invalid", words, *path, fix=fix)
    elif len(name) > LONGEST_NAME:
        words = f"the name has {len(name)} characters; {LONGEST_NAME} are allowed"
        yield problem(entry, "plan-name-invalid", words, *path)
    elif reason := reserved_reason(name):
        yield problem(entry, "plan-name-reserved", f"{name!r} {reason}", *path, fix="choose another name")
    elif GENERIC_NAMES.fullmatch(name):
        words = f"{name!r} does not say what the extension is for"
        yield problem(entry, "plan-name-generic", words, *path, fix=_better_name(design), warn=True)
    if not design.gap_id.strip():
        yield problem(entry, "plan-gap-id-missing", "gap_id is empty", "gap_id", warn=True)


def _better_name(design: ExtensionDesign) -> str:
    words = re.findall(r"[a-z][a-z0-9]+", design.description.lower())
    skip = {"the", "and", "for", "with", "that", "this", "from", "into", "write", "create", "generate", "make"}
    good = [w for w in words if w not in skip][:3]
    example = "_".join(good) if len(good) > 1 else "quarterly_sales_deck"
    return f"keep the goal's own words, for example {example!r}"


def _check_kind(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    if design.kind not in KINDS:
        fix = suggest(design.kind, list(KINDS)) or "use 'capability' or 'constraint'"
        yield problem(entry, "plan-kind-unknown", f"{_shown(design.kind)} is not a kind", "kind", fix=fix)
    if design.kind == "constraint" and "rail" not in design.components:
        words = "a constraint acts through a rail, and this one has none"
        yield problem(entry, "plan-constraint-without-rail", words, "components", fix="add 'rail'")
    if design.applies_to and design.kind != "constraint":
        words = "applies_to has a meaning on a constraint only"
        yield problem(entry, "plan-applies-to-on-capability", words, "applies_to", key=True)


def _check_components(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    if not design.components:
        yield problem(
            entry, "plan-components-empty", "there is no component", "components", fix="list rail, tool or skill"
        )
    for index, component in enumerate(design.components):
        if component not in COMPONENTS:
            fix = suggest(component, list(COMPONENTS)) or "use rail, tool or skill"
            words = f"{_shown(component)} is not a component"
            yield problem(entry, "plan-component-unknown", words, "components", index, fix=fix)
        elif component in design.components[:index]:
            words = f"{component!r} is listed twice"
            yield problem(entry, "plan-component-duplicate", words, "components", index)
    for component, field in (("tool", "tools"), ("rail", "rails"), ("skill", "skills")):
        if getattr(design, field) and component not in design.components:
            words = f"`{field}` is given, but {component!r} is not among the components"
            yield problem(entry, "plan-components-disagree", words, field, key=True)


def _check_file_plan(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    name, plan = design.extension_name, design.file_plan
    standard = f"openjiuwen/extensions/harness/{name}"
    root = plan.root if plan.root is not None else standard
    parent, _, last = root.rstrip("/").rpartition("/")
    if root.rstrip("/") != standard and not (last == name and _RUNTIME_ROOT.fullmatch(parent)):
        words = f"root {_shown(root)} is neither {standard} nor runtime_extensions/<session_id>/{name}"
        yield problem(entry, "plan-file-plan-root", words, "file_plan", "root", fix=f"use {standard}")
        root = standard
    if plan.manifest is not None and plan.manifest != f"{root.rstrip('/')}/harness_config.yaml":
        words = f"manifest {_shown(plan.manifest)} is not <root>/harness_config.yaml"
        yield problem(entry, "plan-file-plan-manifest", words, "file_plan", "manifest")
    for key, value in (plan.model_extra or {}).items():
        paths = [value] if isinstance(value, str) else value
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            words = "must be a path or a list of paths"
            yield problem(entry, "plan-file-plan-path", words, "file_plan", key)
            continue
        for index, path in enumerate(paths):
            at = ("file_plan", key) if isinstance(value, str) else ("file_plan", key, index)
            inside = path.removeprefix(root.rstrip("/") + "/")
            if reason := _path_problem(inside):
                yield problem(entry, "plan-file-plan-path", f"{_shown(path)} {reason}", *at)
            elif inside in RESERVED_FILES:
                words = f"{inside!r} changes what the host loads"
                yield problem(entry, "plan-file-reserved", words, *at, fix="use another name")
            elif inside.startswith("skills/") and _NEEDLESS.fullmatch(posixpath.basename(inside)):
                words = f"{inside!r} is for people, not for the skill"
                yield problem(entry, "plan-file-needless", words, *at, fix="leave it out")


def _path_problem(path: str) -> str | None:
    if not path or path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return "is not relative to the extension's root"
    if "\\" in path:
        return "has backslashes; write paths with /"
    for part in path.rstrip("/").split("/"):
        if part in ("", ".", ".."):
            return "leaves the extension's root" if part == ".." else "has an empty step"
        if re.search(r'[<>:"|?*\x00-\x1f]', part) or part.endswith((" ", ".")) or reserved_reason(part):
            return "has a name that not every system allows"
    return None


def _check_patch(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    resources = design.harness_config_patch.get("resources", {})
    at = ("harness_config_patch", "resources")
    if not isinstance(resources, dict):
        yield problem(entry, "plan-patch-shape", "resources must be a mapping", *at)
        return
    for key in resources:
        if key not in ("rails", "tools", "skills"):
            fix = suggest(key, ["rails", "tools", "skills"])
            yield problem(entry, "plan-patch-shape", f"unknown resource {key!r}", *at, key, fix=fix, key=True)
    for field, component in (("rails", "rail"), ("tools", "tool")):
        items = resources.get(field)
        if items is None:
            continue
        if not isinstance(items, list):
            yield problem(entry, "plan-patch-shape", f"{field} must be a list", *at, field)
            continue
        if items and component not in design.components:
            words = f"the patch has {field}, but {component!r} is not among the components"
            yield problem(entry, "plan-components-disagree", words, *at, field, key=True)
        if not items and component in design.components:
            words = f"{component!r} is a component, but the patch has no {field}"
            yield problem(entry, "plan-components-disagree", words, *at, field, key=True)
        for index, item in enumerate(items):
            yield from _check_resource(entry, design, (*at, field, index), item)
    yield from _check_skill_dirs(entry, design, resources.get("skills"))
    if resources.get("rails") is None and resources.get("tools") is None:
        return
    for field, component in (("rails", "rail"), ("tools", "tool"), ("skills", "skill")):
        if component in design.components and field not in resources:
            words = f"{component!r} is a component, but the patch leaves {field} out"
            yield problem(entry, "plan-components-disagree", words, *at)


def _check_resource(
    entry: Entry, design: ExtensionDesign, at: tuple[str | int, ...], item: object
) -> Iterator[Finding]:
    if not isinstance(item, dict):
        yield problem(entry, "plan-patch-shape", "must be a mapping with type, module and class", *at)
        return
    prefix = f"{MODULE_PREFIX}.{design.extension_name}."
    if item.get("type", "package") != "package":
        words = f"type {_shown(item.get('type'))} is not allowed; only 'package' loads from the extension"
        yield problem(entry, "plan-patch-type", words, *at, "type", fix="use type: package")
    module, cls = item.get("module"), item.get("class")
    if not isinstance(module, str) or not module.startswith(prefix) or not is_module_path(module[len(prefix) :]):
        words = f"module {_shown(module)} is not a module of this extension"
        fix = f"start it with {prefix} followed by identifiers"
        yield problem(entry, "plan-patch-module", words, *at, "module", fix=fix)
    if not isinstance(cls, str) or not is_class_name(cls):
        words = f"class {_shown(cls)} is not a PascalCase identifier"
        yield problem(entry, "plan-patch-class", words, *at, "class")
    for key in item:
        if key not in ("type", "module", "class"):
            words = f"unknown key {key!r}; only type, module and class are used"
            yield problem(entry, "plan-patch-shape", words, *at, key, key=True)


def _check_skill_dirs(entry: Entry, design: ExtensionDesign, skills: object) -> Iterator[Finding]:
    at = ("harness_config_patch", "resources", "skills")
    if skills is None:
        return
    if "skill" not in design.components:
        words = "the patch has skills, but 'skill' is not among the components"
        yield problem(entry, "plan-components-disagree", words, *at, key=True)
    dirs = skills.get("dirs") if isinstance(skills, dict) else None
    if not isinstance(dirs, list) or not all(isinstance(item, str) for item in dirs):
        yield problem(entry, "plan-patch-shape", "skills must be {dirs: [a folder, ...]}", *at)
        return
    for index, folder in enumerate(dirs):
        if reason := _path_problem(folder):
            yield problem(entry, "plan-patch-skills-dir", f"{_shown(folder)} {reason}", *at, "dirs", index)
        elif posixpath.normpath(folder) != "skills":
            words = f"skills are made below skills/, not {_shown(folder)}"
            yield problem(entry, "plan-patch-skills-dir", words, *at, "dirs", index, fix="use skills/")


def _check_skill_source(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    source = design.skill_source or ""
    if not source:
        return
    if not re.fullmatch(r"community:[A-Za-z0-9][A-Za-z0-9._-]{0,127}", source):
        words = f"{_shown(source)} is not a skill source"
        yield problem(entry, "plan-skill-source-invalid", words, "skill_source", fix="write community:<skill>")
    elif "skill" not in design.components:
        words = "a skill source is given, but 'skill' is not among the components"
        yield problem(entry, "plan-skill-source-without-skill", words, "skill_source")


def _check_own_fields(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    for index, text in enumerate(design.requirements):
        if not _REQUIREMENT.fullmatch(text):
            words = f"{_shown(text)} is not a requirement of the form name or name>=1.0"
            yield problem(entry, "plan-requirement-invalid", words, "requirements", index)
    for index, skill in enumerate(design.skills):
        if skill.name is not None:
            yield from _check_skill_name(entry, skill.name, ("skills", index, "name"))
        for name in skill.references:
            if _path_problem(name) or "/" in name or not name.endswith((".md", ".txt")):
                words = f"{_shown(name)} is not the name of a .md or .txt file"
                yield problem(entry, "plan-file-plan-path", words, "skills", index, "references", name, key=True)
            elif _NEEDLESS.fullmatch(name):
                words = f"{name!r} is for people, not for the skill"
                yield problem(entry, "plan-file-needless", words, "skills", index, "references", name, key=True)
        for number, path in enumerate(skill.assets):
            if reason := _path_problem(path):
                at = ("skills", index, "assets", number)
                yield problem(entry, "plan-file-plan-path", f"{_shown(path)} {reason}", *at)


def _check_skill_name(entry: Entry, name: str, at: tuple[str | int, ...]) -> Iterator[Finding]:
    if not re.fullmatch(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", name) or len(name) > LONGEST_NAME:
        words = f"{_shown(name)} is not a skill name"
        fix = "use a-z, 0-9 and single - or _ between them, at most 64 characters"
        yield problem(entry, "plan-skill-name-invalid", words, *at, fix=fix)
    elif name in HIDDEN_SKILL_FOLDERS or reserved_reason(name):
        words = f"the host passes over skill folders named {name!r}"
        yield problem(entry, "plan-skill-name-reserved", words, *at, fix="choose another name")


# --------------------------------------------------------------------------- designs together


def check_relations(designs: list[tuple[Entry, ExtensionDesign]], existing: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is wrong between designs.

    Args:
        designs: the designs of the plan, in its order.
        existing: extensions that are already in the target, name -> kind.
    """
    kinds = {**existing, **{design.extension_name: design.kind for _, design in designs}}
    first_by_name: dict[str, Entry] = {}
    first_by_gap: dict[str, Entry] = {}
    for entry, design in designs:
        folded = design.extension_name.casefold()
        if folded in first_by_name:
            line = first_by_name[folded].document.where((*first_by_name[folded].path, "extension_name")).line
            words = f"two designs are named {design.extension_name!r} (the first at line {line})"
            yield problem(entry, "plan-name-duplicate", words, "extension_name")
        first_by_name.setdefault(folded, entry)
        gap = design.gap_id.strip()
        if gap and gap in first_by_gap:
            words = f"two designs answer the gap {gap!r}"
            yield problem(entry, "plan-gap-id-duplicate", words, "gap_id", warn=True)
        first_by_gap.setdefault(gap, entry)
        yield from _check_references(entry, design, kinds)
    yield from _check_cycles(designs)


def _check_references(entry: Entry, design: ExtensionDesign, kinds: Mapping[str, str]) -> Iterator[Finding]:
    for field, names in (("depends_on", design.depends_on), ("applies_to", design.applies_to)):
        code = f"plan-{field.replace('_', '-')}"
        for index, name in enumerate(names):
            at = (field, index)
            if name == design.extension_name:
                yield problem(entry, f"{code}-self", f"{field} names the design itself", *at)
            elif name in names[:index]:
                yield problem(entry, f"{code}-duplicate", f"{field} names {name!r} twice", *at)
            elif name not in kinds:
                fix = suggest(name, sorted(kinds))
                words = f"{field} names {_shown(name)}, which is neither in this plan nor in the target"
                yield problem(entry, f"{code}-unknown", words, *at, fix=fix)
            elif field == "depends_on" and kinds[name] != "constraint":
                words = f"depends_on names {name!r}, which is a {kinds[name]}; only constraints can be depended on"
                yield problem(entry, f"{code}-capability", words, *at)


def _check_cycles(designs: list[tuple[Entry, ExtensionDesign]]) -> Iterator[Finding]:
    edges = {design.extension_name: design.depends_on for _, design in designs}
    reported: set[frozenset[str]] = set()
    for entry, design in designs:
        trail: list[str] = []
        found = _find_cycle(design.extension_name, edges, trail, set())
        if found and frozenset(found) not in reported:
            reported.add(frozenset(found))
            words = "depends_on goes round in a circle: " + " -> ".join([*found, found[0]])
            yield problem(entry, "plan-depends-on-cycle", words, "depends_on")


def _find_cycle(name: str, edges: Mapping[str, list[str]], trail: list[str], done: set[str]) -> list[str]:
    if name in trail:
        cycle = trail[trail.index(name) :]
        return cycle if len(cycle) > 1 else []
    if name in done or len(trail) > 100:
        return []
    trail.append(name)
    for following in edges.get(name, ()):
        if found := _find_cycle(following, edges, trail, done):
            return found
    trail.pop()
    done.add(name)
    return []


def _shown(value: object) -> str:
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 70 else f"{text[:67]}..."
