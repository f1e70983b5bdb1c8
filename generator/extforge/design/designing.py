"""Make a plan of decisions: rank, name, relate, fill in, and hold the result against our own check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge.check import CheckedPlan, check_source
from extforge.design.artifacts import subjects
from extforge.design.components import plain, rail_spec, skill_spec, title, tool_specs, trials
from extforge.design.deciding import Decision, decide
from extforge.design.matching import Match, match_skills
from extforge.design.naming import name_design
from extforge.reading import read_answer
from extforge.rules import MODULE_PREFIX
from extforge.serialise import manifest_text
from extforge_verifiers.findings import Finding, Severity

if TYPE_CHECKING:
    from extforge.community import Collection
    from extforge.design.gaps import Gap, Gaps, PlacedGap

__all__ = ["Designed", "Draft", "design_gaps", "plan_text"]

HOST_SOURCE = ("openjiuwen/harness", "openjiuwen/core")


@dataclass(slots=True)
class Draft:
    """One design in the making."""

    placed: PlacedGap
    decision: Decision
    name: str = ""
    partner: Draft | None = None  # the other half of a gap that was split
    depends_on: list[str] = field(default_factory=list)
    applies_to: list[str] = field(default_factory=list)
    match: Match | None = None

    @property
    def gap(self) -> Gap:
        """The gap it answers."""
        return self.placed.gap

    @property
    def formats(self) -> list[str]:
        """What it writes."""
        return [tool.partition(":")[2] for tool in self.decision.tools if tool.startswith("artifact:")]

    @property
    def does(self) -> str:
        """What it mainly does, in one word."""
        first = next(iter(self.decision.tools), "skill").partition(":")[0]
        return self.decision.rail or first


@dataclass(slots=True)
class Designed:
    """A plan, how it came about, and what should be known about it."""

    plan: dict[str, Any]
    drafts: list[Draft]
    findings: list[Finding]
    checked: CheckedPlan


def design_gaps(gaps: Gaps, *, max_designs: int = 10, collection: Collection | None = None) -> Designed:
    """Return the plan for these gaps; it passes `extforge check`.

    Args:
        gaps: what was read.
        max_designs: how many designs the plan may have; gaps beyond are reported, least important first.
        collection: community skills that may be reused.
    """
    if not gaps.found:
        return Designed({"package_name": "", "designs": []}, [], [], CheckedPlan(gaps.label))
    drafts, findings = _rank([_drafts(placed) for placed in gaps.found], max_designs)
    taken: set[str] = set()
    for draft in drafts:
        findings += _name(draft, taken)
    _relate(drafts)
    for draft, match in zip(drafts, match_skills([d.gap for d in drafts], collection), strict=True):
        # A prompt rail injects a skill of its own design.
        if draft.decision.kind == "capability" and draft.decision.rail != "prompt":
            draft.match = match
    designs = [_design(draft) for draft in drafts]
    plan = {"package_name": _package_name(drafts), "designs": designs}
    for draft in drafts:
        findings += _notes(draft)
    findings += _conflicts(drafts, designs)
    text = plan_text(plan)
    checked = check_source(read_answer(text, "plan.yaml"), max_designs=max_designs, collection=collection)
    if checked.errors:
        raise AssertionError("\n".join(f"{f.where}: {f.message} [{f.code}]" for f in checked.errors))
    return Designed(plan, drafts, findings, checked)


def plan_text(plan: dict[str, Any]) -> str:
    """Return a plan as YAML."""
    return manifest_text(plan)


def _drafts(placed: PlacedGap) -> list[Draft]:
    drafts = [Draft(placed, decision) for decision in decide(placed.gap)]
    if len(drafts) == 2:
        drafts[0].partner, drafts[1].partner = drafts[1], drafts[0]
    return drafts


def _rank(groups: list[list[Draft]], limit: int) -> tuple[list[Draft], list[Finding]]:
    """Take the most important gaps, whole, as far as there is room; name the others."""
    kept: list[Draft] = []
    findings = []
    for group in sorted(groups, key=lambda group: -group[0].gap.priority):
        if len(kept) + len(group) <= limit:
            kept += group
            continue
        gap = group[0].gap
        words = (
            f"{gap.id!r:.80} is left out: the plan is full with {limit} designs,"
            f" and its impact x feasibility is {gap.priority:g} ({title(gap, 80)})"
        )
        fix = "raise --max-designs, or design the remaining gaps in a second plan"
        findings.append(Finding("design-left-out", words, Severity.WARNING, group[0].placed.where, fix))
    return kept, findings


def _name(draft: Draft, taken: set[str]) -> list[Finding]:
    gap = draft.gap
    name = name_design(plain(gap.feature, 300), plain(gap.gap_description, 300), draft.does, draft.formats, taken)
    draft.name = name.value
    draft.decision.because("name", name.value, "the goal's own words" if not name.hashed else "a hash of the goal")
    if name.hashed:
        words = f"no word of {title(gap, 80)!r} could be put into an English name"
        fix = f"rename {name.value!r} to what it is for"
        return [Finding("design-name-hashed", words, Severity.WARNING, draft.placed.where, fix)]
    if name.partial:
        draft.decision.doubts.append(f"the name {name.value!r} holds less than half of the goal's words")
    return []


def _relate(drafts: list[Draft]) -> None:
    """Let capabilities depend on the constraints that concern their files."""
    for rule in drafts:
        if rule.decision.kind != "constraint" or rule.decision.rail != "guard":
            continue
        writers = [draft for draft in drafts if draft.decision.kind == "capability" and draft.formats]
        if rule.partner is not None:
            concerned = [rule.partner]
            rule.applies_to = [rule.partner.name]
            rule.decision.because("applies_to", rule.partner.name, "the rule and this ability stand in one gap")
        else:
            named = subjects(rule.gap.feature)
            concerned = [draft for draft in writers if named & set(draft.formats)] if named else []
            rule.applies_to = [draft.name for draft in concerned]
            if concerned:
                rule.decision.because("applies_to", ", ".join(rule.applies_to), "the rule names their formats")
            else:
                concerned = writers
                rule.decision.because("applies_to", "every tool", "the rule names none")
        for draft in concerned:
            draft.depends_on.append(rule.name)
            draft.decision.because("depends_on", rule.name, "the constraint concerns the files it writes")


# --------------------------------------------------------------------------- a design, written out


def _design(draft: Draft) -> dict[str, Any]:
    gap, decision, name = draft.gap, draft.decision, draft.name
    if draft.match is not None:
        decision.skill = True
        decision.because(
            "skill_source",
            draft.match.skill,
            f"its description fits, score {draft.match.score:.2f}: {draft.match.reason}",
        )
    skill = draft.match.skill if draft.match else name if decision.skill else ""
    root = f"openjiuwen/extensions/harness/{name}"
    rails = [rail_spec(decision, gap, name, skill)] if decision.rail else []
    state = rails[0]["class"] if rails else ""
    tools = tool_specs(decision, gap, name, skill, state)
    own_skill = decision.skill and draft.match is None
    skills = [skill_spec(gap, name, draft.formats)] if own_skill else []
    design: dict[str, Any] = {
        "gap_id": plain(gap.id, 200),
        "extension_name": name,
        "kind": decision.kind,
        "depends_on": draft.depends_on,
        "applies_to": draft.applies_to,
        "components": decision.components,
        "file_plan": {"root": root, "manifest": f"{root}/harness_config.yaml"},
        "harness_config_patch": {"resources": _resources(decision, name, rails, tools)},
        "skill_source": f"community:{draft.match.skill}" if draft.match else "",
        "description": title(gap, 300),
    }
    parts = (("tools", tools), ("rails", rails), ("skills", skills), ("acceptance", trials(tools)))
    return {**design, **{key: value for key, value in parts if value}}


def _resources(
    decision: Decision, name: str, rails: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> dict[str, Any]:
    prefix = f"{MODULE_PREFIX}.{name}"
    resources: dict[str, Any] = {}
    if rails:
        module = f"{prefix}.rails.{name}_rail"
        resources["rails"] = [{"type": "package", "module": module, "class": rail["class"]} for rail in rails]
    if tools:
        resources["tools"] = [
            {"type": "package", "module": f"{prefix}.tools.{tool['name']}_tool", "class": tool["class"]}
            for tool in tools
        ]
    if decision.skill:
        resources["skills"] = {"dirs": ["skills/"]}
    return resources


def _package_name(drafts: list[Draft]) -> str:
    """Return the name of the most important ability, cut at a word: at most 30 characters, as the host wants."""
    first = next(
        (draft.name for draft in drafts if draft.decision.kind == "capability"), drafts[0].name if drafts else ""
    )
    while len(first) > 30:
        first = first.rpartition("_")[0] or first[:30]
    return first


# --------------------------------------------------------------------------- what should be known


def _notes(draft: Draft) -> list[Finding]:
    gap, where = draft.gap, draft.placed.where
    findings = []
    if doubts := list(dict.fromkeys(draft.decision.doubts)):
        words = f"{draft.name}: low confidence: {'; '.join(doubts)}"
        fix = f"read `extforge design --explain`, and correct {draft.name} in the plan where it is wrong"
        findings.append(Finding("design-low-confidence", words, Severity.WARNING, where, fix))
    host = [path for path in gap.target_files if any(part in path.replace("\\", "/") for part in HOST_SOURCE)]
    if host:
        words = f"{draft.name}: the gap names {plain(host[0], 80)!r}, a file of openJiuwen itself; it is designed as an extension"
        findings.append(Finding("design-host-file", words, Severity.INFO, where))
    return findings


def _conflicts(drafts: list[Draft], designs: list[dict[str, Any]]) -> list[Finding]:
    """Report rules that refuse what other designs of the same plan make."""
    findings = []
    for rule, design in zip(drafts, designs, strict=True):
        does = design["rails"][0]["does"] if rule.decision.rail == "guard" else {}
        allowed = does.get("guard", {}).get("require", {}).get("extension")
        for draft in drafts if allowed else ():
            refused = [form for form in draft.formats if f".{form}" not in allowed]
            if refused and (not rule.applies_to or draft.name in rule.applies_to):
                words = f"{rule.name} allows only {', '.join(allowed)}, and {draft.name} writes {', '.join(refused)}"
                fix = f"give {rule.name} an applies_to, or drop one of the two"
                findings.append(Finding("design-conflict", words, Severity.WARNING, rule.placed.where, fix))
    return findings
