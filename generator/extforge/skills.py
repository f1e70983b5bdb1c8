"""Skills: a folder with a SKILL.md that is short, operational, and always has valid front matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from extforge.serialise import front_matter
from extforge.workflows import workflow_text

if TYPE_CHECKING:
    from extforge.derive import Blueprint, Skill

__all__ = ["skill_body", "skill_files"]


def skill_files(blueprint: Blueprint, skill: Skill) -> dict[str, Any]:
    """Return the skill as the template takes it: name, text of SKILL.md and skill.yaml, references."""
    fields: dict[str, Any] = {"name": skill.name, "description": skill.description}
    trigger = {"trigger": skill.trigger}
    head = front_matter(fields | ({"metadata": trigger} if blueprint.skill_profile == "agentskills" else trigger))
    workflow = workflow_text(blueprint, skill)
    references = [{"name": name, "text": _ending(text)} for name, text in sorted(skill.spec.references.items())]
    return {
        "name": skill.name,
        "text": f"{head}\n{skill_body(blueprint, skill)}",
        "references": references,
        "workflow": workflow,
    }


def skill_body(blueprint: Blueprint, skill: Skill) -> str:
    """Return the Markdown below the front matter."""
    spec = skill.spec
    title = skill.name.replace("_", " ").replace("-", " ").capitalize()
    parts = [f"# {title}\n\n{_paragraph(blueprint.description)}\n"]
    parts.append(_section("When", spec.when or [skill.trigger]))
    parts.append(_section("Steps", spec.steps or _default_steps(blueprint), numbered=True))
    parts.append(_section("Rules", spec.rules or _default_rules(blueprint)))
    parts.append(_section("Examples", spec.examples))
    parts.append(_section("Accept the result when", spec.acceptance or _default_acceptance(blueprint)))
    parts.append(_section("Read when needed", [f"`references/{name}`" for name in sorted(spec.references)]))
    parts.append(_section("Files that a person provides", [f"`{path}`" for path in spec.assets]))
    return "\n".join(part for part in parts if part)


def _section(title: str, items: list[str], *, numbered: bool = False) -> str:
    if not items:
        return ""
    lines = [f"{f'{i}.' if numbered else '-'} {_item(text)}\n" for i, text in enumerate(items, 1)]
    return f"## {title}\n\n{''.join(lines)}"


def _item(text: str) -> str:
    """Return a text that stays inside its list item, whatever lines it has."""
    return re.sub(r"\r\n?|\n", "\n   ", text.strip())


def _paragraph(text: str) -> str:
    """Return a text whose lines cannot be taken for a heading or the end of front matter."""
    return re.sub(r"^([ \t]*)(#|---|===|```)", r"\1\\\2", text.strip(), flags=re.MULTILINE)


def _ending(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _default_steps(blueprint: Blueprint) -> list[str]:
    steps = ["Collect what the task needs; ask for what is missing, and do not invent figures."]
    for tool in blueprint.tools:
        names = [f"`{name}`" for name in tool.input_params.get("required", [])]
        if tool.does == "artifact":
            given = ", ".join([*names, "`output_path`"])
            steps.append(f"Call `{tool.name}` once with {given} (ending in `.{tool.format}`).")
        elif tool.does == "report":
            steps.append(f"Call `{tool.name}` to read what has been recorded.")
        else:
            steps.append(f"Call `{tool.name}`{' with ' + ', '.join(names) if names else ''}.")
    steps.append(
        "Tell the user what was done, and give the path of every file."
        if blueprint.tools
        else "Apply it, and say which part you applied."
    )
    return steps


def _default_rules(blueprint: Blueprint) -> list[str]:
    if any(tool.does == "artifact" for tool in blueprint.tools):
        return [
            "A file exists only when the tool says `success: true`; never report one otherwise.",
            "When the tool fails, read its `error`, correct the inputs, and call it again.",
        ]
    return ["Say so when the guidance does not cover the case."]


def _default_acceptance(blueprint: Blueprint) -> list[str]:
    found = []
    for tool in blueprint.tools:
        if tool.does == "artifact":
            found.append(
                f"`{tool.name}` returned `success: true` and `exists: true`, and `size_bytes` is greater than 0."
            )
            found += [f"`{fact}` is at least {count}." for fact, count in tool.options.get("minimum", {}).items()]
    return found
