"""Check a plan: everything that is wrong with it, at once, and the blueprints when nothing is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge.community import check_skill_source
from extforge.contents import SCHEMAS
from extforge.derive import SHARED_PARTS, Blueprint, Installed, derive, relate
from extforge.errors import PlanError
from extforge.external import check_external
from extforge.lint import check_content
from extforge.naming import is_class_name, is_snake_case, reserved_reason
from extforge.patterns import slow_reason, unsafe_reason
from extforge.plan import DoesRail, DoesTool, ExtensionDesign, ResultFilterSpec
from extforge.reading import Entry, Source, read_plan
from extforge.rules import check_design, check_relations, problem
from extforge.workflows import check_workflows
from extforge_harness.acceptance import EXTERNAL
from extforge_harness.documents import bind, suggest
from extforge_verifiers.documents import json_path
from extforge_verifiers.findings import Finding, Severity, Where
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.frontmatter import LONGEST_DESCRIPTION
from extforge_verifiers.hostnames import HOST_RAILS, HOST_TOOLS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from extforge.community import Collection
    from extforge.derive import Rail, Tool
    from extforge.plan import ArtifactSpec, OutputGuardSpec, RailSpec, ToolSpec

__all__ = ["CheckedPlan", "Installed", "check_plan", "check_source", "derive_again", "load_plan"]

MAX_DESIGNS = 10
STATEFUL = ("audit", "budget", "reminder")


@dataclass(slots=True)
class CheckedPlan:
    """The blueprints of a plan in generation order, and every finding about it."""

    label: str
    package_name: str = ""
    blueprints: list[Blueprint] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    collection: Collection | None = None
    installed: Mapping[str, Installed] = field(default_factory=dict)  # extensions that are already in the target

    @property
    def errors(self) -> list[Finding]:
        """The findings that keep the plan from being used."""
        return [f for f in self.findings if f.severity is Severity.ERROR]


def load_plan(
    source: str,
    *,
    max_designs: int = MAX_DESIGNS,
    existing: Mapping[str, Installed] | None = None,
    collection: Collection | None = None,
) -> CheckedPlan:
    """Return a plan that can be used.

    Args:
        source: a file, a folder, or `-` for standard input.
        max_designs: how many designs a plan may have.
        existing: extensions that are already in the target, by name.
        collection: community skills that designs may name.

    Raises:
        PlanError: with every problem, when it cannot be used.
    """
    plan = check_plan(source, max_designs=max_designs, existing=existing, collection=collection)
    if plan.errors:
        raise PlanError(plan.label, plan.findings)
    return plan


def check_plan(
    source: str,
    *,
    max_designs: int = MAX_DESIGNS,
    existing: Mapping[str, Installed] | None = None,
    collection: Collection | None = None,
) -> CheckedPlan:
    """Return the plan with all its findings; a plan that cannot even be read is a finding too."""
    try:
        found = read_plan(source)
    except PlanError as exc:
        return CheckedPlan(exc.source, findings=list(exc.findings))
    return check_source(found, max_designs=max_designs, existing=existing, collection=collection)


def check_source(
    source: Source,
    *,
    max_designs: int = MAX_DESIGNS,
    existing: Mapping[str, Installed] | None = None,
    collection: Collection | None = None,
) -> CheckedPlan:
    """Check designs that have been read; see `check_plan`."""
    plan = CheckedPlan(source.label, source.package_name)
    installed = existing or {}
    designs: list[tuple[Entry, ExtensionDesign]] = []
    for entry in source.entries:
        design, findings = bind(entry.document, ExtensionDesign, entry.path)
        plan.findings += [_clearer(entry, finding) for finding in findings]
        if design is None:
            continue
        designs.append((entry, design))
        plan.findings += check_design(entry, design)
        plan.findings += check_specs(entry, design)
    if len(source.entries) > max_designs:
        words = f"{len(source.entries)} designs; at most {max_designs} are allowed"
        fix = f"split the plan, or pass --max-designs {len(source.entries)}"
        plan.findings.append(Finding("plan-too-many-designs", words, where=Where(source.label), fix=fix))
    unbound = {e.name: "constraint" for e in source.entries if all(e is not entry for entry, _ in designs)}
    kinds = {name: found.kind for name, found in installed.items()}
    plan.findings += check_relations(designs, {**kinds, **unbound})
    if not plan.errors:
        blueprints = [derive(entry, design) for entry, design in designs]
        relate(blueprints, installed)
        plan.findings += _check_unique(blueprints)
        for blueprint in blueprints:
            plan.findings += _check_derived(blueprint)
            plan.findings += _check_community(blueprint, collection)
            plan.findings += check_content(blueprint)
            plan.findings += check_workflows(blueprint)
        plan.blueprints = _in_order(blueprints)
        plan.collection, plan.installed = collection, installed
    plan.findings.sort(key=lambda f: (f.where.path or "", f.where.line or 0, f.where.column or 0))
    return plan


def derive_again(plan: CheckedPlan, profiles: Mapping[str, str], gone: Container[str] = ()) -> list[Blueprint]:
    """Return the plan's blueprints, derived once more for what is known of the target by now.

    Args:
        plan: a plan without errors.
        profiles: extension -> one of `SKILL_PROFILES`.
        gone: extensions in the target that will not stay there.

    Raises:
        PlanError: when a skill cannot be written for its readers.
    """
    blueprints = [derive(b.entry, b.design, profiles[b.name]) for b in plan.blueprints]
    relate(blueprints, {name: found for name, found in plan.installed.items() if name not in gone})
    findings = list(_check_unique(blueprints))
    for blueprint in blueprints:
        for index, skill in enumerate(blueprint.skills):
            size = len(skill.description)
            if blueprint.skill_profile == "agentskills" and size > LONGEST_DESCRIPTION:
                words = f"the description has {size:,} characters; agentskills allows {LONGEST_DESCRIPTION:,}"
                at = ("skills", index, "description")
                findings.append(problem(blueprint.entry, "plan-skill-description-long", words, *at, fix="shorten it"))
    if findings:
        raise PlanError(plan.label, findings)
    return blueprints


def _clearer(entry: Entry, finding: Finding) -> Finding:
    """Name what the host would have made of `components: tool`: four components, t, o, o and l."""
    value = entry.value
    wrong = value.get("components") if isinstance(value, dict) else None
    if finding.code != "document-wrong-type" or not isinstance(wrong, str):
        return finding
    if finding.where.json_path != json_path((*entry.path, "components")):
        return finding
    words = f"components must be a list, not the text {wrong!r}"
    fix = f"write components: [{wrong}]"
    return problem(entry, "plan-components-not-a-list", words, "components", fix=fix)


def _in_order(blueprints: list[Blueprint]) -> list[Blueprint]:
    """Constraints first, each after what it depends on; otherwise in the order of the plan."""
    by_name = {b.name: b for b in blueprints}
    ordered: dict[str, Blueprint] = {}

    def visit(blueprint: Blueprint) -> None:
        if blueprint.name in ordered:
            return
        for name in blueprint.design.depends_on:
            if name in by_name:
                visit(by_name[name])
        ordered[blueprint.name] = blueprint

    for kind in ("constraint", "capability"):
        for blueprint in blueprints:
            if blueprint.design.kind == kind:
                visit(blueprint)
    return list(ordered.values())


# --------------------------------------------------------------------------- tools, rails and skills as written


def check_specs(entry: Entry, design: ExtensionDesign) -> Iterator[Finding]:
    """Yield what is wrong with the tools, rails and skills that the plan spells out."""
    for index, tool in enumerate(design.tools):
        yield from _check_tool(entry, design, index, tool)
    for index, rail in enumerate(design.rails):
        yield from _check_rail(entry, design, index, rail)
    known = {tool.name for tool in design.tools if tool.name}
    for name in design.acceptance:
        if known and name not in known:
            words = f"acceptance names {name!r}, which is no tool of this design"
            yield problem(
                entry, "plan-acceptance-unknown", words, "acceptance", name, fix=suggest(name, sorted(known)), key=True
            )


def _check_tool(entry: Entry, design: ExtensionDesign, index: int, tool: ToolSpec) -> Iterator[Finding]:
    at = ("tools", index)
    if tool.name is not None and (not is_snake_case(tool.name) or len(tool.name) > 64 or reserved_reason(tool.name)):
        words = f"{tool.name!r} is not a tool name"
        yield problem(entry, "plan-tool-name-invalid", words, *at, "name", fix="use snake_case, at most 64 characters")
    if tool.class_ is not None and not is_class_name(tool.class_):
        yield problem(entry, "plan-class-invalid", f"{tool.class_!r} is not a PascalCase class name", *at, "class")
    if tool.input_params is not None:
        yield from _check_schema(entry, tool.input_params, (*at, "input_params"))
    if not isinstance(tool.does, DoesTool):
        return
    given = [key for key in DoesTool.model_fields if getattr(tool.does, key) is not None]
    if len(given) != 1:
        yield _not_one(entry, given, list(DoesTool.model_fields), (*at, "does"))
        return
    if tool.does.artifact is not None:
        yield from _check_artifact(entry, tool, tool.does.artifact, at)
    if given[0] in EXTERNAL:
        yield from check_external(entry, tool, given[0], getattr(tool.does, given[0]), at)
    if tool.does.report is not None:
        yield from _check_report(entry, design, tool, (*at, "does", "report"))


def _check_artifact(
    entry: Entry, tool: ToolSpec, artifact: ArtifactSpec, at: tuple[str | int, ...]
) -> Iterator[Finding]:
    here = (*at, "does", "artifact")
    form = artifact.format
    if form not in SCHEMAS:
        fix = suggest(form, sorted(SCHEMAS)) or f"known: {', '.join(sorted(SCHEMAS))}"
        words = f"{form!r} is not a format that tools can write"
        yield problem(entry, "plan-format-unknown", words, *here, "format", fix=fix)
        return
    for fact in artifact.minimum:
        if fact not in FORMATS[form].counts:
            words = f"nothing counts {fact!r} in a {form} file"
            fix = f"known: {', '.join(FORMATS[form].counts)}"
            yield problem(entry, "plan-minimum-unknown", words, *here, "minimum", fact, fix=fix, key=True)
    for key, of in (("required_keys", "json"), ("required_columns", "csv")):
        if getattr(artifact, key) and form != of:
            words = f"{key} only make sense for {of}"
            yield problem(entry, "plan-required-keys", words, *here, key, key=True)
    if "style" not in SCHEMAS[form]["properties"] and artifact.style.model_fields_set:
        yield problem(entry, "plan-style-unused", f"a {form} file has no style", *here, "style", warn=True, key=True)
    accent = artifact.style.accent
    if accent is not None and not re.fullmatch(r"#[0-9A-Fa-f]{6}", accent):
        words = f"{accent!r} is not a colour of the form #RRGGBB"
        yield problem(entry, "plan-style-accent", words, *here, "style", "accent")
    allowed = set(SCHEMAS[form]["properties"])
    for name in (tool.input_params or {}).get("properties", {}):
        if name not in allowed:
            words = f"a {form} tool has no input {name!r}"
            fix = suggest(name, sorted(allowed)) or f"known: {', '.join(sorted(allowed))}"
            yield problem(entry, "plan-input-params", words, *at, "input_params", "properties", name, fix=fix, key=True)


def _not_one(entry: Entry, given: list[str], known: list[str], at: tuple[str | int, ...]) -> Finding:
    what = f"says {' and '.join(given)}" if given else "says nothing"
    words = f"`does` {what}; it takes exactly one of {', '.join(known)}"
    return problem(entry, "plan-does-ambiguous", words, *at)


def _check_report(
    entry: Entry, design: ExtensionDesign, tool: ToolSpec, at: tuple[str | int, ...]
) -> Iterator[Finding]:
    if "rail" not in design.components:
        yield problem(entry, "plan-report-without-rail", "a report reads a rail's state, and there is no rail", *at)
        return
    assert isinstance(tool.does, DoesTool)
    assert tool.does.report is not None
    state = tool.does.report.state
    classes = [rail.class_ for rail in design.rails if rail.class_]
    if state is not None and classes and state not in classes:
        words = f"the report reads {state!r}, which is no rail of this design"
        yield problem(entry, "plan-report-state", words, *at, "state", fix=suggest(state, classes))


def _check_schema(entry: Entry, schema: dict[str, Any], at: tuple[str | int, ...]) -> Iterator[Finding]:
    """A model's API takes an object schema; anything else is refused at the first call, or never filled in."""
    if schema.get("type") != "object":
        words = "input_params must be a JSON Schema with type: object"
        yield problem(entry, "plan-input-params", words, *at)
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(v, dict) for v in properties.values()):
        yield problem(entry, "plan-input-params", "properties must map names to schemas", *at, "properties")
        return
    yield from _check_schema_patterns(entry, schema, at)
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield problem(entry, "plan-input-params", "required must be a list of names", *at, "required")
        return
    for index, name in enumerate(required):
        if name not in properties:
            words = f"required names {name!r}, which is no property"
            yield problem(entry, "plan-input-params", words, *at, "required", index)


LONGEST_MATCHED = 1024  # characters of a text that is held against a pattern; as in the generated inputs module


def _check_schema_patterns(entry: Entry, schema: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    """Every call matches the patterns of a schema against what the model wrote, so they must be fast."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _check_schema_patterns(entry, item, (*at, index))
    elif isinstance(schema, dict):
        pattern, most = schema.get("pattern"), schema.get("maxLength", 0)
        if isinstance(pattern, str):
            yield from _check_patterns(entry, {"pattern": pattern}, at)
            if isinstance(most, int) and most > LONGEST_MATCHED:
                words = f"a text with a pattern has at most {LONGEST_MATCHED:,} characters"
                yield problem(entry, "plan-input-params", words, *at, "maxLength")
        for key, item in schema.items():
            yield from _check_schema_patterns(entry, item, (*at, key))


def _check_rail(entry: Entry, design: ExtensionDesign, index: int, rail: RailSpec) -> Iterator[Finding]:
    at = ("rails", index)
    if rail.class_ is not None and not is_class_name(rail.class_):
        yield problem(entry, "plan-class-invalid", f"{rail.class_!r} is not a PascalCase class name", *at, "class")
    if not isinstance(rail.does, DoesRail):
        return
    given = [key for key in DoesRail.model_fields if getattr(rail.does, key) is not None]
    if len(given) != 1:
        yield _not_one(entry, given, list(DoesRail.model_fields), (*at, "does"))
        return
    here = (*at, "does", given[0])
    if (guard := rail.does.guard) is not None:
        for field_name in ("require", "forbid"):
            rule = getattr(guard, field_name)
            if rule is not None:
                patterns = {"pattern": rule.pattern} if rule.pattern else {}
                yield from _check_patterns(entry, patterns, (*here, field_name))
                yield from _check_patterns(entry, rule.argument or {}, (*here, field_name, "argument"))
                yield from _check_guard_texts(entry, rule, (*here, field_name))
        yield from _check_patterns(entry, dict(enumerate(guard.allow_commands)), (*here, "allow_commands"))
        rewritable = guard.require and (guard.require.stem_suffix or guard.require.extension)
        if guard.on_violation == "rewrite" and not rewritable:
            words = "only a required stem_suffix or extension can be rewritten into a file name"
            yield problem(entry, "plan-guard-rewrite", words, *here, "on_violation")
    if (screen := rail.does.output_guard or rail.does.result_filter) is not None:
        yield from _check_screen(entry, screen, here)
    if (budget := rail.does.budget) is not None and not (budget.calls or budget.characters or budget.seconds):
        words = "a budget needs a limit: calls, characters or seconds"
        yield problem(entry, "plan-budget-empty", words, *here)
    if (reminder := rail.does.reminder) is not None and not reminder.text.strip():
        yield problem(entry, "plan-reminder-empty", "a reminder needs a text", *here)
    if (prompt := rail.does.prompt) is not None:
        names = [skill.name or design.extension_name for skill in design.skills]
        names = names or ([design.extension_name] if "skill" in design.components else [])
        if (prompt.text is None) == (prompt.skill is None):
            yield problem(entry, "plan-prompt-source", "a prompt takes either text or skill", *here)
        elif prompt.skill is not None and prompt.skill not in names:
            words = f"{prompt.skill!r} is no skill of this design"
            yield problem(entry, "plan-prompt-source", words, *here, "skill", fix=suggest(prompt.skill, names))


def _check_patterns(entry: Entry, patterns: Mapping[Any, str], at: tuple[str | int, ...]) -> Iterator[Finding]:
    for key, pattern in patterns.items():
        if reason := unsafe_reason(pattern):
            yield problem(entry, "plan-pattern-unsafe", f"{pattern!r}: {reason}", *at, key)


def _check_screen(
    entry: Entry, screen: OutputGuardSpec | ResultFilterSpec, at: tuple[str | int, ...]
) -> Iterator[Finding]:
    """These run over whole answers and results, so their patterns must be fast on long texts."""
    for index, pattern in enumerate(screen.patterns):
        if reason := slow_reason(pattern):
            yield problem(entry, "plan-pattern-unsafe", f"{pattern!r}: {reason}", *at, "patterns", index)
    if isinstance(screen, ResultFilterSpec):
        does_something = screen.patterns or screen.drop_keys or screen.max_characters
        fix = "give it patterns, drop_keys or max_characters"
    else:
        does_something, fix = screen.patterns, "give it patterns"
    if not does_something:
        yield problem(entry, "plan-screen-empty", "nothing would ever be taken out", *at, fix=fix)


def _check_guard_texts(entry: Entry, rule: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    for index, extension in enumerate(rule.extension or []):
        if not re.fullmatch(r"\.[a-z0-9]{1,16}", extension):
            words = f"{extension!r} is not a file extension; write it as .pptx"
            yield problem(entry, "plan-guard-extension", words, *at, "extension", index)
    if rule.stem_suffix is not None and not re.fullmatch(r"[\w.-]{1,64}", rule.stem_suffix):
        words = f"{rule.stem_suffix!r} cannot end a file name"
        yield problem(entry, "plan-guard-suffix", words, *at, "stem_suffix")


# --------------------------------------------------------------------------- what was derived


def _check_unique(blueprints: list[Blueprint]) -> Iterator[Finding]:
    """The host refuses the second tool of a name, and the second rail of a class."""
    seen: dict[tuple[str, str], Blueprint] = {}
    for blueprint in blueprints:
        names = [("tool", "tools", i, tool.name, "name") for i, tool in enumerate(blueprint.tools)]
        names += [("rail class", "rails", i, rail.class_name, "class") for i, rail in enumerate(blueprint.rails)]
        names += [("skill", "skills", i, skill.name, "name") for i, skill in enumerate(blueprint.skills)]
        for what, field_name, index, name, key in names:
            first = seen.get((what, name.casefold()))
            if first is None:
                seen[what, name.casefold()] = blueprint
                continue
            words = f"the {what} {name!r} is already used by {first.name!r}; the host refuses the second"
            code = f"plan-{what.replace(' ', '-')}-duplicate"
            yield problem(blueprint.entry, code, words, field_name, index, key)


def _check_community(blueprint: Blueprint, collection: Collection | None) -> Iterator[Finding]:
    """A community skill that cannot be used is an error, never a silent fallback."""
    for skill in blueprint.skills:
        if not skill.source:
            continue
        if collection is None:
            words = f"the community skill {skill.source!r} was not looked for"
            fix = "pass --skills-from with the folder of the collection"
            yield problem(blueprint.entry, "plan-skill-source-missing", words, "skill_source", fix=fix, warn=True)
            continue
        for finding in check_skill_source(collection, skill.source):
            where = finding.where if finding.where.path else None
            own = problem(blueprint.entry, finding.code, finding.message, "skill_source", fix=finding.fix)
            yield finding if where else own


def _check_derived(blueprint: Blueprint) -> Iterator[Finding]:
    entry = blueprint.entry
    for index, tool in enumerate(blueprint.tools):
        if tool.name in HOST_TOOLS:
            words = f"openJiuwen has a tool named {tool.name!r} itself"
            yield problem(entry, "plan-tool-name-taken", words, "tools", index, "name", warn=True)
        if not is_snake_case(tool.name) or len(tool.name) > 64:
            words = f"the tool's name would be {tool.name!r}, which the model's API does not take"
            yield problem(entry, "plan-tool-name-invalid", words, "tools", index, fix="give the tool a name")
        if not tool.mutation:
            words = f"nobody says what {tool.name!r} may change, so every call is asked about"
            fix = "add mutation: safe_read, mutating_local, mutating_external or side_effect"
            yield problem(entry, "plan-mutation-missing", words, "tools", index, fix=fix, warn=True)
        if tool.does == "report":
            rail = next((r for r in blueprint.rails if r.class_name == tool.options["state"]), None)
            if rail is None or rail.does not in STATEFUL:
                kind = f"a {rail.does} rail, which keeps no state" if rail else "no rail of this design"
                words = f"the report reads {tool.options['state']!r}: {kind}"
                yield problem(entry, "plan-report-state", words, "tools", index, "does")
    if blueprint.mcp and not blueprint.served:
        words = "an MCP server is asked for, and there is no tool that it could serve"
        yield problem(
            entry, "plan-mcp-empty", words, "mcp", fix="a tool that reports what a rail records needs the host"
        )
    for index, rail in enumerate(blueprint.rails):
        if rail.class_name in HOST_RAILS:
            words = f"openJiuwen has a rail class named {rail.class_name!r} itself"
            yield problem(entry, "plan-rail-class-taken", words, "rails", index, "class", warn=True)
        if rail.does == "guard" and not rail.options.get("require") and not rail.options.get("forbid"):
            words = (
                f"{rail.class_name} has no rule of its own: it asks for a portable file name, inside the workspace, "
                "with the extension of its format"
            )
            fix = (
                "add to the design:  rails: [{does: {guard: {require: {stem_suffix: _v1}}}}]  "
                "(or extension, pattern, folder, argument)"
            )
            yield problem(entry, "plan-guard-rule-missing", words, "rails", fix=fix, warn=True)
    yield from _check_modules(blueprint)


def _check_modules(blueprint: Blueprint) -> Iterator[Finding]:
    """Two parts must not need the same file, nor one of the files that all parts share."""
    owners = {
        f"{folder}.{blueprint.name}_{name}": "a shared part"
        for name in (*SHARED_PARTS, "verify")
        for folder in ("tools", "rails")
    }
    tools = [(("tools", index), tool, tool.name) for index, tool in enumerate(blueprint.tools)]
    rails = [(("rails", index), rail, rail.class_name) for index, rail in enumerate(blueprint.rails)]
    parts: list[tuple[tuple[str | int, ...], Tool | Rail, str]] = [*tools, *rails]
    for place, part, called in parts:
        taken = next((module for module in (part.module, part.work) if module.casefold() in owners), None)
        if taken:
            words = f"the module {taken} is needed twice: by {owners[taken.casefold()]} and by {called}"
            at = ("harness_config_patch",) if blueprint.design.harness_config_patch else place
            fix = "choose another name or module path"
            yield problem(blueprint.entry, "plan-path-collision", words, *at, fix=fix)
        owners.update(dict.fromkeys((part.module.casefold(), part.work.casefold()), called))
