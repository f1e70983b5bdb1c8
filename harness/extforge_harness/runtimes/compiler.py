"""From capabilities to what a model reads: pure, so equal input gives equal text, everywhere and always.

Only `adapters` calls `compile_context`; everything else goes through the facade there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import CompileError
from extforge_harness.runtimes.contracts import BUILT_IN, ArtifactContract, check_round_trip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge_harness.runtimes.catalog import Capability, Catalog

__all__ = [
    "CompileInput",
    "CompiledContext",
    "Decision",
    "Fragment",
    "Hints",
    "Note",
    "ToolDescriptor",
    "compile_context",
]

CHARACTERS_PER_TOKEN = 4
DEFAULT_BUDGET = 100_000  # tokens
_IDENTIFIER = re.compile(r"[A-Za-z0-9_./:@-]{1,256}")


@dataclass(frozen=True, slots=True)
class Note:
    """A text fetched before: workspace instructions, a memory."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class CompileInput:
    """Everything a context is made of."""

    runtime_id: str
    catalog: Catalog
    contracts: tuple[ArtifactContract, ...] = BUILT_IN
    enabled: frozenset[str] | None = None  # capability ids; None: all that are usable there
    notes: tuple[Note, ...] = ()
    system_max: int = DEFAULT_BUDGET  # tokens


@dataclass(frozen=True, slots=True)
class Fragment:
    """One text for the model, and where it came from."""

    id: str
    text: str
    source: str

    @property
    def tokens(self) -> int:
        """A quarter of its characters, rounded up."""
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class ToolDescriptor:
    """A tool that can be called, whose it is, and the way it gets there."""

    name: str
    capability: str
    via: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one capability, and why."""

    capability: str
    included: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Hints:
    """Identifiers and options for an adapter: names, ids, numbers, switches.  Prose has no place here.

    Raises:
        CompileError: when a text is anything but an identifier.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_hint("hints", self.values)


def _check_hint(where: str, value: Any) -> None:
    if isinstance(value, str):
        if not _IDENTIFIER.fullmatch(value):
            raise CompileError(f"{where}: {value!r:.60} is no identifier; text for models belongs into fragments")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_hint(f"{where}.{key}", str(key))
            _check_hint(f"{where}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_hint(f"{where}[{index}]", item)
    elif not isinstance(value, (bool, int, float)):
        raise CompileError(f"{where}: {type(value).__name__} is not allowed in a hint")


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """What came of compiling.  `system_text` has artifacts first, then capabilities; notes are not in it."""

    runtime_id: str
    capability_fragments: tuple[Fragment, ...]
    artifact_fragments: tuple[Fragment, ...]
    note_fragments: tuple[Fragment, ...]
    tools: tuple[ToolDescriptor, ...]
    hints: Hints
    system_text: str
    budget: Mapping[str, int]  # tokens per category
    decisions: tuple[Decision, ...]  # one for every capability
    dropped: tuple[str, ...]  # notes that had no room
    deduplicated: tuple[str, ...]  # fragments that would have said the same again


def compile_context(given: CompileInput) -> CompiledContext:
    """Return the context of one turn on one runtime.

    Raises:
        CompileError: for an unknown runtime or capability, a contract whose example does not round-trip, a fragment
            that repeats such an example, or capabilities that do not fit into the budget.
    """
    catalog, runtime = given.catalog, given.runtime_id
    if runtime not in catalog.registry.ids:
        raise CompileError(f"unknown runtime {runtime!r}; known: {', '.join(catalog.registry.ids)}")
    known = {capability.id for capability in catalog.capabilities}
    if unknown := sorted((given.enabled or frozenset()) - known):
        raise CompileError(f"unknown capability {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}")
    contracts = _checked(given.contracts)
    decisions = [_decide(capability, given) for capability in catalog.capabilities]
    chosen = [catalog[decision.capability] for decision in decisions if decision.included]
    repeated: list[str] = []
    texts = [Fragment(f"cap.{c.id}", c.fragment.strip(), c.source) for c in chosen]
    capabilities = _without_repeats([text for text in texts if text.text], repeated)  # rails have no text
    _check_copies(capabilities, contracts)
    artifacts = _without_repeats(_artifact_fragments(chosen, contracts), repeated)
    needed = sum(f.tokens for f in [*artifacts, *capabilities])
    if needed > given.system_max:
        raise CompileError(f"the capabilities take {needed} tokens, and there is room for {given.system_max}")
    notes, dropped = _fitting(
        [Fragment(f"note.{n.id}", n.text, n.kind) for n in given.notes], given.system_max - needed
    )
    tools = tuple(ToolDescriptor(t, c.id, c.exposure[runtime].via) for c in chosen for t in c.tool_names)
    budget = {
        "artifacts": sum(f.tokens for f in artifacts),
        "capabilities": sum(f.tokens for f in capabilities),
        "notes": sum(f.tokens for f in notes),
        "system_max": given.system_max,
    }
    return CompiledContext(
        runtime,
        tuple(capabilities),
        tuple(artifacts),
        notes,
        tools,
        Hints(_hints(chosen, runtime)),
        "\n\n".join(fragment.text for fragment in [*artifacts, *capabilities]),
        budget,
        tuple(decisions),
        dropped,
        tuple(repeated),
    )


def _checked(contracts: tuple[ArtifactContract, ...]) -> dict[str, ArtifactContract]:
    for contract in contracts:
        for finding in check_round_trip(contract, pure=True):
            raise CompileError(finding.message)
    return {contract.id: contract for contract in contracts}


def _decide(capability: Capability, given: CompileInput) -> Decision:
    exposure = capability.exposure[given.runtime_id]
    if given.enabled is not None and capability.id not in given.enabled:
        return Decision(capability.id, included=False, reason="not enabled")
    if not exposure.usable:
        return Decision(capability.id, included=False, reason=exposure.reason)
    missing = [a for a in capability.artifacts if a not in {contract.id for contract in given.contracts}]
    if missing:
        raise CompileError(f"{capability.id} makes {missing[0]!r}, and no such artifact contract is registered")
    return Decision(capability.id, included=True, reason=exposure.reason or f"live through {exposure.via}")


def _artifact_fragments(chosen: list[Capability], contracts: Mapping[str, ArtifactContract]) -> list[Fragment]:
    ids = dict.fromkeys(artifact for capability in chosen for artifact in capability.artifacts)
    found = [contracts[artifact] for artifact in ids]
    return [Fragment(f"artifact.{c.id}", c.wire_text, "contracts") for c in found if c.wire_text]


def _without_repeats(fragments: list[Fragment], repeated: list[str]) -> list[Fragment]:
    texts: set[str] = set()
    kept = []
    for fragment in fragments:
        if fragment.text in texts:
            repeated.append(fragment.id)
        else:
            kept.append(fragment)
        texts.add(fragment.text)
    return kept


def _check_copies(fragments: list[Fragment], contracts: Mapping[str, ArtifactContract]) -> None:
    """Two copies of an example would drift apart: it stands in its contract only."""
    for contract in contracts.values():
        literal = contract.literal if contract.source != "file" else None
        for fragment in fragments:
            if literal and literal in fragment.text:
                raise CompileError(f"{fragment.id} repeats the example of the contract {contract.id}")


def _fitting(notes: list[Fragment], room: int) -> tuple[tuple[Fragment, ...], tuple[str, ...]]:
    """Drop notes from the last on until the others fit."""
    kept, dropped = list(notes), []
    while kept and sum(note.tokens for note in kept) > room:
        dropped.append(kept.pop().id)
    return tuple(kept), tuple(dropped)


def _hints(chosen: list[Capability], runtime: str) -> dict[str, list[str]]:
    ways = {
        "abilities": [t for c in chosen for t in c.tool_names],
        "skills": [c.display_name for c in chosen if c.kind == "skill"],
        "mcp_servers": [c.extension for c in chosen if c.kind == "tool" and c.exposure[runtime].via == "mcp"]
        + [c.display_name for c in chosen if c.kind == "mcp"],
    }
    return {key: list(dict.fromkeys(values)) for key, values in ways.items() if values}
