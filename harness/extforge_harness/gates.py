"""Which tools a run may use: what a tool may change, set against how much was approved.

Gates take plain values and know nothing of agents, workflows or runtimes; those meet here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "ALLOW_ALL",
    "APPROVALS",
    "ApprovalGate",
    "Decision",
    "Gate",
    "MutationLevel",
    "ReadOnlyGate",
    "approval_gate",
    "decide",
    "level_of",
]


class MutationLevel(StrEnum):
    """What a tool may change, as its author declared it; never guessed from its name."""

    SAFE_READ = "safe_read"
    MUTATING_LOCAL = "mutating_local"
    SIDE_EFFECT = "side_effect"
    MUTATING_EXTERNAL = "mutating_external"
    UNCLASSIFIED = "unclassified"  # nobody said, so it counts as the worst


class Decision(StrEnum):
    """What is done about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@runtime_checkable
class Gate(Protocol):
    """Says which tools may be used.  A run without a gate is refused; everything open must be asked for by name."""

    def permits(self, tool: str) -> bool:
        """Say whether the tool may be used."""

    def reason(self, tool: str) -> str:
        """Return why, for people; asks nobody."""


class _AllowAll:
    def permits(self, tool: str) -> bool:
        del tool
        return True

    def reason(self, tool: str) -> str:
        del tool
        return "every tool is allowed"

    def __repr__(self) -> str:
        return "ALLOW_ALL"


ALLOW_ALL: Gate = _AllowAll()

APPROVALS = ("ask", "auto", "full")

# Rows: what the tool may change.  Columns: how much was approved.
_COLUMNS = ("plan", *APPROVALS)
_A, _Q, _D = Decision.ALLOW, Decision.ASK, Decision.DENY
_TABLE = {
    MutationLevel.SAFE_READ: (_A, _A, _A, _A),
    MutationLevel.MUTATING_LOCAL: (_D, _Q, _A, _A),
    MutationLevel.SIDE_EFFECT: (_D, _Q, _Q, _A),
    MutationLevel.MUTATING_EXTERNAL: (_D, _Q, _Q, _A),
    MutationLevel.UNCLASSIFIED: (_D, _Q, _Q, _Q),
}


def level_of(tool: str, levels: Mapping[str, str]) -> MutationLevel:
    """Return the declared level of a tool; a level that does not exist counts as none."""
    try:
        return MutationLevel(levels.get(tool, MutationLevel.UNCLASSIFIED))
    except ValueError:
        return MutationLevel.UNCLASSIFIED


def decide(level: MutationLevel, approval: str | None, *, plan: bool = False) -> Decision:
    """Return what is done about a call of a tool with this level.

    Args:
        level: what the tool may change.
        approval: `ask`, `auto` or `full`; None counts as `ask`.
        plan: only safe reads, whatever was approved.

    Raises:
        ValueError: when the approval is none of these.
    """
    approval = "ask" if approval is None else approval
    if approval not in APPROVALS:
        raise ValueError(f"approval must be ask, auto or full, not {approval!r}")
    return _TABLE[level][_COLUMNS.index("plan" if plan else approval)]


@dataclass(frozen=True, slots=True)
class ReadOnlyGate:
    """Lets through what its author declared a safe read, and nothing else."""

    levels: Mapping[str, str]

    def permits(self, tool: str) -> bool:
        """Say whether the tool is a safe read."""
        return level_of(tool, self.levels) is MutationLevel.SAFE_READ

    def reason(self, tool: str) -> str:
        """Return what the tool is, and that only safe reads pass."""
        return f"{tool} is {level_of(tool, self.levels)}; only safe_read tools may be used"


@dataclass(slots=True)
class ApprovalGate:
    """Decides by mutation level and approval, and asks a person where the two say so.

    Each request is asked about once: the answer is kept under its id.  A request without an id stands for the tool
    as a whole.  An id that comes back with another tool is refused, since the person answered about the first.
    """

    approval: str | None
    plan: bool
    levels: Mapping[str, str]
    confirm: Callable[[str, str], bool] | None = None
    _answers: dict[str, tuple[str, bool]] = field(default_factory=dict, init=False, repr=False)
    # Two tool calls of one model answer may arrive in two threads; one person answers one question at a time.
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        decide(MutationLevel.SAFE_READ, self.approval)  # a wrong approval is met here, not at the first call

    def decision(self, tool: str) -> Decision:
        """Return what is done about the tool, before anybody is asked."""
        return decide(level_of(tool, self.levels), self.approval, plan=self.plan)

    def permits(self, tool: str, request_id: str | None = None) -> bool:
        """Say whether the tool may be used; asks if it has to.  Whatever `confirm` raises comes through."""
        decision = self.decision(tool)
        if decision is not Decision.ASK or self.confirm is None:
            return decision is Decision.ALLOW
        key = f"tool {tool}" if request_id is None else f"id {request_id}"
        with self._lock:
            if key not in self._answers:
                # Only a plain True is a yes: a coroutine or a text would be true as well.
                self._answers[key] = (tool, self.confirm(tool, request_id or tool) is True)
            asked_about, yes = self._answers[key]
            return yes and asked_about == tool

    def reason(self, tool: str) -> str:
        """Return what the tool may change, and what that means here."""
        level = level_of(tool, self.levels)
        what = f"{tool} is {level}"
        if self.plan:
            return f"{what}; plan mode allows safe_read tools only"
        decision = self.decision(tool)
        shown = f'approval "{self.approval or "ask"}"'
        if decision is Decision.ALLOW:
            return f"{what}; {shown} allows it"
        if self.confirm is None:
            return f"{what}; {shown} asks before it is used, and nobody can be asked here"
        answers = [yes for asked_about, yes in self._answers.values() if asked_about == tool]
        said = "was not asked yet" if not answers else "said yes" if answers[-1] else "said no"
        return f"{what}; {shown} asks before it is used, and the person {said}"


def approval_gate(
    approval: str | None,
    plan: bool,  # noqa: FBT001 -- the order is that of the table: approval, plan, levels
    levels: Mapping[str, str],
    confirm: Callable[[str, str], bool] | None = None,
) -> ApprovalGate:
    """Return the gate that approval, plan mode and mutation levels make together.

    Args:
        approval: `ask`, `auto` or `full`; None counts as `ask`.
        plan: plan mode: only safe reads.
        levels: tool name -> mutation level; a tool that is not in it is unclassified.
        confirm: asked with the tool and the id of the request, answers True for yes; None: nobody can be asked,
            so what would be asked is refused.

    Raises:
        ValueError: when the approval is none of these.
    """
    return ApprovalGate(approval, plan, levels, confirm)
