"""What a plan says, held against openJiuwen's own design rules (its design-ext skill).

A design that breaks one of these can be generated and will load; it is probably not what its author wants.  So
they are warnings, and errors with `--strict`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from extforge.derive import FORMAT_WORDS, find_word, words_of
from extforge.rules import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge.derive import Blueprint
    from extforge_verifiers.findings import Finding

__all__ = ["check_content"]

_WRITES = re.compile(
    r"\b(write|generate|create|produce|export|render|build)s?\b|生成|导出|输出|制作|撰写", re.IGNORECASE
)
_KNOWLEDGE = re.compile(
    r"\b(guide|guideline|guidelines|best practices?|when to|how to|conventions?|knowledge|rules of thumb)\b"
    r"|指南|规范|最佳实践|决策|知识",
    re.IGNORECASE,
)
_LIFECYCLE = re.compile(
    r"\b(every|each|before|after|whenever|guard|block|refuse|intercept|audit|log|remind|monitor|budget|usage|count"
    r"|limit|check|verify|inject|prompt)\w*|每|之前|之后|拦截|阻止|审计|日志|提醒|监听|监控|预算|统计|累计|检查|校验|注入",
    re.IGNORECASE,
)
_HARD = re.compile(
    r"\b(must|never|forbid|forbidden|only allowed|refuse|block)\b|必须|禁止|不得|严禁|阻止", re.IGNORECASE
)
_SITUATION = re.compile(
    r"\b(when|whenever|use|used|before|after|if|for|while)\b|当|时|用于|适用|之前|之后", re.IGNORECASE
)
_PROMISES = ("pptx", "docx", "pdf")


def check_content(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a warning for every design rule that this design seems to break."""
    design = blueprint.design
    text = f"{blueprint.name.replace('_', ' ')} {design.description}"
    words = words_of(blueprint.name, design.description)
    promised = find_word(words, FORMAT_WORDS)
    yield from _check_components(blueprint, text, promised)
    yield from _check_rails(blueprint, text)
    yield from _check_tools(blueprint, words, promised)
    for index, skill in enumerate(blueprint.skills):
        if not skill.source and not _SITUATION.search(skill.description):
            message = f"the description of {skill.name!r} names no situation, so the model cannot tell when to read it"
            at = ("skills", index, "description")
            yield problem(
                blueprint.entry, "plan-skill-without-situation", message, *at, fix='add "Use when ..."', warn=True
            )


def _check_components(blueprint: Blueprint, text: str, promised: tuple[str, str] | None) -> Iterator[Finding]:
    design, entry = blueprint.design, blueprint.entry
    if design.kind == "constraint":
        if len(design.components) > 1:
            message = "a constraint stands alone: what else it brings belongs into a capability"
            yield problem(entry, "plan-constraint-not-alone", message, "components", warn=True)
        return
    if "tool" not in design.components and promised and _WRITES.search(text):
        message = f"it promises a file (the word {promised[1]!r}), and there is no tool to write one"
        yield problem(entry, "plan-file-without-tool", message, "components", fix="add 'tool'", warn=True)
    custom = [tool for tool in blueprint.tools if tool.does == "custom"]
    if custom and "skill" in design.components and _KNOWLEDGE.search(text) and not _WRITES.search(text):
        message = "it reads like pure knowledge: a skill alone would do"
        yield problem(entry, "plan-knowledge-with-tool", message, "components", fix="drop 'tool'", warn=True)


def _check_rails(blueprint: Blueprint, text: str) -> Iterator[Finding]:
    design, entry = blueprint.design, blueprint.entry
    if design.kind == "constraint" or not blueprint.rails:
        return
    spelled_out = any(rail.does is not None for rail in design.rails)
    if not spelled_out and not _LIFECYCLE.search(text):
        message = "nothing in the name or description says when a rail would act"
        yield problem(entry, "plan-rail-without-reason", message, "components", fix="drop 'rail'", warn=True)
    kinds = {rail.does for rail in blueprint.rails}
    if kinds & {"budget", "audit"} and "tool" not in design.components:
        message = "what the rail records can only be read back with a tool"
        yield problem(entry, "plan-state-without-tool", message, "components", fix="add 'tool'", warn=True)
    if kinds and kinds <= {"prompt"} and "tool" in design.components and "skill" not in design.components:
        message = "a rail that only injects a text needs no tool beside it"
        yield problem(entry, "plan-tool-without-reason", message, "components", warn=True)
    if "guard" in kinds or (_HARD.search(design.description) and kinds & {"custom"}):
        message = "a hard constraint inside a capability: make it a design of its own with kind: constraint"
        yield problem(entry, "plan-constraint-in-capability", message, "kind", warn=True)


def _check_tools(blueprint: Blueprint, words: list[str], promised: tuple[str, str] | None) -> Iterator[Finding]:
    entry = blueprint.entry
    formats = {tool.format for tool in blueprint.tools if tool.format}
    for index, tool in enumerate(blueprint.tools):
        named = find_word(words_of(tool.name, tool.description), FORMAT_WORDS)
        if tool.does == "custom" and named and tool.mutation != "safe_read":
            message = f"{tool.name!r} seems to write a {named[0]} file, and has no artifact contract"
            fix = f"does: {{artifact: {{format: {named[0]}}}}}"
            yield problem(entry, "plan-artifact-without-contract", message, "tools", index, fix=fix, warn=True)
    if promised and promised[0] in _PROMISES and formats and promised[0] not in formats:
        message = (
            f"it promises {promised[0]} (the word {promised[1]!r}), but its tools write {', '.join(sorted(formats))}"
        )
        yield problem(entry, "plan-intermediate-format", message, "tools", warn=True)
    named_formats = {form for form, known in FORMAT_WORDS.items() if any(k in words for k in known if k.isascii())}
    if len(named_formats) > 2 and len(blueprint.tools) <= 1:
        message = f"one design names {len(named_formats)} formats ({', '.join(sorted(named_formats))})"
        fix = "make one design per ability"
        yield problem(entry, "plan-several-abilities", message, "description", fix=fix, warn=True)
