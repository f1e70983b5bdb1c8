"""What is told of a skill, and when: a line in a list, then its surface, then its material; and which skill starts.

All pure functions.  A list never drops a skill without saying how many.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from extforge_harness.workflows.errors import RunRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from extforge_harness.workflows.skill import Skill

__all__ = ["Activation", "activate", "listing", "surface"]

LONGEST_LINE = 250  # characters of one skill's line
_STARTS = {"model": ("auto", "model"), "user": ("auto", "user")}


def listing(skills: Iterable[Skill], audience: Literal["model", "user"] = "model", max_chars: int = 8_000) -> str:
    """Return one line per skill that the audience may start, by name.

    When the whole is longer than `max_chars`, the last entries become bare names, and then a count.
    """
    shown = [skill for skill in skills if skill.workflow.invocation in _STARTS[audience]]
    shown.sort(key=lambda skill: skill.id)
    full = [_line(skill) for skill in shown]
    bare = [f"- {skill.id}" for skill in shown]
    for details in range(len(shown), -1, -1):  # how many keep their description
        text = "\n".join([*full[:details], *bare[details:]])
        if len(text) <= max_chars:
            return text
    for names in range(len(shown) - 1, -1, -1):
        text = "\n".join([*bare[:names], f"… and {len(shown) - names} more"])
        if len(text) <= max_chars:
            break
    return text


def _line(skill: Skill) -> str:
    parts = [part for part in (skill.description, skill.workflow.when_to_use) if part]
    line = " ".join(f"- {skill.id}: {' — '.join(parts)}".split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def surface(skill: Skill, tools: Sequence[str]) -> dict[str, Any]:
    """Return what a model sees of a skill that it started: titles of refs, not their contents."""
    workflow = skill.workflow
    return {
        "name": skill.id,
        "prompt": workflow.prompt,
        "steps": [{"name": step.name, "depends": list(step.depends)} for step in workflow.steps],
        "guardrails": [rule.message for rule in workflow.guardrails],
        "refs": [ref.title or ref.path or ref.url for ref in workflow.refs],
        "tools": list(tools),
    }


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill that a request starts, and why."""

    skill: Skill
    reason: str  # "explicit", "trigger:<text>" or "path:<glob>"


def activate(
    skills: Sequence[Skill], *, text: str = "", paths: Sequence[str] = (), explicit: str | None = None
) -> list[Activation]:
    """Return the skills that a request starts: by name, else by trigger, then by path, each group in pack order.

    Args:
        skills: the skills of a pack.
        text: what the user wrote.
        paths: files that the request is about.
        explicit: the name that the user typed, with or without its `/`.

    Raises:
        RunRefused: when the named skill does not exist (`workflow-not-found`), or is not for users to start
            (`workflow-not-invocable`).
    """
    if explicit is not None:
        name = explicit.removeprefix("/")
        skill = next((skill for skill in skills if skill.id == name), None)
        if skill is None:
            known = ", ".join(skill.id for skill in skills) or "none"
            raise RunRefused("workflow-not-found", name, f"there is no skill {name!r} (known: {known})")
        if skill.workflow.invocation == "model":
            raise RunRefused("workflow-not-invocable", name, "only the model may start this skill")
        return [Activation(skill, "explicit")]
    found = [(skill, _reason(skill, text, paths)) for skill in skills if skill.workflow.invocation != "user"]
    hits = [Activation(skill, reason) for skill, reason in found if reason]
    return sorted(hits, key=lambda hit: hit.reason.startswith("path:"))


def _reason(skill: Skill, text: str, paths: Sequence[str]) -> str:
    folded = _fold(text)
    for trigger in skill.workflow.triggers:
        if _occurs(_fold(trigger), folded):
            return f"trigger:{trigger}"
    clean = [path.replace("\\", "/").removeprefix("./") for path in paths]
    for pattern in skill.workflow.paths:
        if any(_matches(pattern, path) for path in clean):
            return f"path:{pattern}"
    return ""


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _occurs(trigger: str, text: str) -> bool:
    """A word of Latin letters counts as a whole word; Chinese has no spaces, so there it counts anywhere."""
    word = "[A-Za-z0-9_]"
    before = f"(?<!{word})" if re.match(word, trigger) else ""
    after = f"(?!{word})" if re.search(f"{word}$", trigger) else ""
    return re.search(f"{before}{re.escape(trigger)}{after}", text) is not None


def _matches(pattern: str, path: str) -> bool:
    """`*` stays in one folder, `**` crosses them; matched piece by piece, so no pattern takes for ever."""
    return _match_parts(pattern.removeprefix("./").split("/"), path.split("/"))


def _match_parts(pattern: list[str], path: list[str]) -> bool:
    rows = [True] + [False] * len(path)  # can the pattern so far stand for the first n parts?
    for part in pattern:
        if part == "**":
            first = rows.index(True) if True in rows else len(rows)
            rows = [index >= first for index in range(len(rows))]
        else:
            rows = [False] + [rows[index] and _match_name(part, path[index]) for index in range(len(path))]
    return rows[-1]


def _match_name(pattern: str, name: str) -> bool:
    rows = [True] + [False] * len(name)
    for character in pattern:
        if character == "*":
            first = rows.index(True) if True in rows else len(rows)
            rows = [index >= first for index in range(len(rows))]
        else:
            rows = [False] + [rows[i] and character in (name[i], "?") for i in range(len(name))]
    return rows[-1]
