"""The `skill.yaml` beside each generated SKILL.md: the plan's own, or one that follows from the tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from extforge.rules import problem
from extforge.serialise import manifest_text
from extforge_harness.documents import suggest
from extforge_harness.workflows.skill import find_problems
from extforge_verifiers.documents import Document, json_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge.derive import Blueprint, Skill
    from extforge_verifiers.findings import Finding

__all__ = ["check_workflows", "workflow_text"]

_HEAD = """\
# What `extforge workflows run` does with this skill. openJiuwen reads SKILL.md only. Edit it freely: it is yours.
"""
_RUNS = re.compile(r"[a-z][a-z0-9_-]{0,63}")  # a name that a workflow can have


def workflow_text(blueprint: Blueprint, skill: Skill) -> str:
    """Return the text of a skill's `skill.yaml`; empty for a skill whose name no workflow can have."""
    own = blueprint.design.workflows.get(skill.in_plan)
    if own is not None and "name" in own:
        own = {**own, "name": skill.name}
    if own is None and not _RUNS.fullmatch(skill.name):
        return ""
    return _HEAD + manifest_text(own if own is not None else _default(blueprint, skill))


def _default(blueprint: Blueprint, skill: Skill) -> dict[str, Any]:
    head: dict[str, Any] = {"name": skill.name, "when-to-use": " ".join(skill.trigger.split())[:1000]}
    subject = " ".join(blueprint.description.split())
    refs = [{"path": "SKILL.md", "title": f"The skill {skill.name}"}]
    refs += [{"path": f"references/{name}"} for name in sorted(skill.spec.references)][:49]
    if not blueprint.tools:
        step = {"name": "apply", "prompt": "Apply the skill to the input, and say which part you applied."}
        return {**head, "prompt": f"The goal: {subject}"[:20_000], "steps": [step], "refs": refs}
    names = ", ".join(tool.name for tool in blueprint.tools)
    steps = [
        {
            "name": "outline",
            "prompt": f"Plan the inputs of {names} from the request. Name what is missing; invent nothing. "
            "Do not call a tool yet.",
        },
        {
            "name": "produce",
            "prompt": f"Call {names} with the planned inputs. When a call fails, read its error, correct the inputs and "
            "call it again. Answer with what the tool returned.",
            "depends": ["outline"],
        },
        {
            "name": "report",
            "prompt": "Tell the user what was done, with the path of every file. Do not call a tool.",
            "depends": ["produce"],
        },
    ]
    rules = [
        {
            "id": f"real-{tool.format}-{number}",
            "message": f"{tool.name} must leave a real {tool.format} file that keeps the contract of its design.",
            "check": {"artifact": _contract(tool.format, tool.options)},
        }
        for number, tool in enumerate((tool for tool in blueprint.tools if tool.does == "artifact"), 1)
    ]
    return {
        **head,
        "allowed-tools": [tool.name for tool in blueprint.tools],
        "prompt": f"The goal: {subject}"[:20_000],
        "steps": steps,
        "refs": refs,
        **({"guardrails": rules[:50]} if rules else {}),
    }


def _contract(form: str, options: dict[str, Any]) -> dict[str, Any]:
    contract: dict[str, Any] = {"format": form}
    if minimum := options.get("minimum"):
        contract["min-count"] = dict(minimum)
    if keys := options.get("required_keys"):
        contract["require-keys"] = list(keys)
    return contract


def check_workflows(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield what is wrong with the workflows that the plan spells out, each with its line in the plan."""
    entry = blueprint.entry
    own = {skill.name: skill for skill in blueprint.skills if not skill.source}
    for name in blueprint.design.workflows:
        skill = own.get(name)
        if skill is None:
            copied = any(skill.name == name for skill in blueprint.skills)
            words = f"{name!r} is a community skill, which is copied untouched" if copied else f"{name!r} is no skill"
            words += " of this design" if not copied else ""
            fix = suggest(name, list(own))
            yield problem(entry, "plan-workflow-unknown", words, "workflows", name, fix=fix, key=True)
            continue
        base = (*entry.path, "workflows", name)
        files = {"SKILL.md", *(f"references/{item}" for item in skill.spec.references), *skill.spec.assets}
        front = {"name": name, "description": skill.description}
        document = _narrowed(entry.document, base)
        for finding in find_problems(document, name, folder=None, front=front, files=files)[1]:
            yield finding.at(json_path=json_path(base) + (finding.where.json_path or "$")[1:])


def _narrowed(document: Document, base: tuple[str | int, ...]) -> Document:
    """Return a part of a document as a document, with the places it has in the whole."""
    value = document.value
    for step in base:
        value = value[step]
    depth = len(base)
    marks = {path[depth:]: mark for path, mark in document.marks.items() if path[:depth] == base}
    keys = {path[depth:]: mark for path, mark in document.key_marks.items() if path[:depth] == base}
    return Document(value, document.source, marks, keys)
