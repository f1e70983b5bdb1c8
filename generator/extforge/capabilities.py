"""The capability catalog of a plan, before anything is generated; equal to that of the generated trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge.errors import ExtforgeError
from extforge.skills import skill_files
from extforge_harness.runtimes.catalog import (
    Catalog,
    ExtensionFacts,
    RailFacts,
    ToolFacts,
    build_catalog,
)
from extforge_harness.runtimes.trees import read_skill_facts
from extforge_harness.skills import read_skill_files
from extforge_verifiers.errors import DocumentError

if TYPE_CHECKING:
    from extforge.check import CheckedPlan
    from extforge.derive import Blueprint, Skill
    from extforge_harness.runtimes.catalog import SkillFacts
    from extforge_harness.runtimes.descriptors import Registry

__all__ = ["catalog_from_plan"]


def catalog_from_plan(plan: CheckedPlan, registry: Registry | None = None, *, mcp: bool = False) -> Catalog:
    """Return the catalog of a plan without errors.

    Args:
        plan: the plan.
        registry: the runtimes; default: all that are known.
        mcp: as if every extension with tools had an MCP server, like `generate --mcp`.

    Raises:
        CatalogError: when its extensions do not make a catalog together.
        ExtforgeError: when a community skill cannot be read.
    """
    for blueprint in plan.blueprints:
        blueprint.mcp = blueprint.mcp or mcp
    return build_catalog([_facts(blueprint, plan) for blueprint in plan.blueprints], registry)


def _facts(blueprint: Blueprint, plan: CheckedPlan) -> ExtensionFacts:
    name, design = blueprint.name, blueprint.design
    tools = tuple(
        ToolFacts(
            tool.name,
            tool.class_name,
            tool.description,
            tool.mutation,
            (tool.format,) if tool.format else (),
            f"{name}/{tool.work.replace('.', '/')}.json",
            str(tool.options["state"]) if tool.does == "report" else "",
            tool.does == "custom",
            tool.input_params,
        )
        for tool in blueprint.tools
    )
    rails = tuple(
        RailFacts(rail.class_name, rail.does, f"{name}/{rail.module.replace('.', '/')}.py") for rail in blueprint.rails
    )
    skills = sorted(blueprint.skills, key=lambda skill: skill.name)
    served = tuple(tool.name for tool in blueprint.served)
    return ExtensionFacts(
        name,
        design.kind,
        tuple(design.depends_on),
        tuple(design.applies_to),
        tools,
        rails,
        tuple(_skill(blueprint, skill, plan) for skill in skills),
        (),
        served,
        tuple(sorted(guard.extension for guard in blueprint.applying)) if served else (),
    )


def _skill(blueprint: Blueprint, skill: Skill, plan: CheckedPlan) -> SkillFacts:
    source = f"{blueprint.name}/skills/{skill.name}/SKILL.md"
    if not skill.source:
        files = skill_files(blueprint, skill)
        return read_skill_facts(skill.name, files["text"], files.get("workflow") or "", source)
    if plan.collection is None or skill.source not in plan.collection.skills:
        raise ExtforgeError(f"the plan uses the community skill {skill.source!r}: pass --skills-from with its folder")
    found = read_skill_files(plan.collection.skills[skill.source])
    text, workflow = (found.get(name, (b"", False))[0].decode("utf-8-sig") for name in ("SKILL.md", "skill.yaml"))
    try:
        return read_skill_facts(skill.name, text, workflow, source)
    except DocumentError as exc:
        raise ExtforgeError(f"the community skill {skill.source!r} cannot be read: {exc}") from exc
