"""The tools of a run: what is registered, cut down by the skill and by the gate.  Nothing can add to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from extforge_harness.gates import Gate

__all__ = ["Surface", "resolve_surface"]


@dataclass(frozen=True, slots=True)
class Surface:
    """The tools that a run may use, and why it may not use the others."""

    tools: tuple[str, ...] = ()  # in the order they are registered
    removed: dict[str, str] = field(default_factory=dict)  # tool -> reason
    missing: tuple[str, ...] = ()  # allowed by the skill, and registered nowhere


def resolve_surface(
    registered: Iterable[str], allowed: Collection[str] | None, disallowed: Collection[str], gate: Gate
) -> Surface:
    """Return what is left of the registered tools; whatever the gate raises comes through.

    Args:
        registered: every tool there is; repeated names count once.
        allowed: what the skill restricts itself to; None is no restriction, empty is no tool at all.
        disallowed: what the skill never uses.
        gate: asked once per tool that the skill would use.
    """
    names = list(dict.fromkeys(registered))
    tools, removed = [], {}
    for tool in names:
        if allowed is not None and tool not in allowed:
            removed[tool] = "not allowed by the skill"
        elif tool in disallowed:
            removed[tool] = "disallowed by the skill"
        elif gate.permits(tool) is not True:
            removed[tool] = f"denied by the gate: {gate.reason(tool)}"
        else:
            tools.append(tool)
    missing = tuple(name for name in dict.fromkeys(allowed or ()) if name not in names)
    return Surface(tuple(tools), removed, missing)
