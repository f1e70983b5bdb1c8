"""Runtime x provider x capability: what may be used where, why not, and where instead.

Every cell is derived from the catalog; no other table exists.  A provider only ever takes away.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from extforge_harness.runtimes.catalog import Status
from extforge_harness.runtimes.proving import NOT_PROVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from extforge_harness.runtimes.catalog import Capability, Catalog
    from extforge_harness.runtimes.descriptors import Provider, Runtime

__all__ = ["Cell", "CellStatus", "Matrix", "build_matrix"]


class CellStatus(StrEnum):
    """What a person gets."""

    EXECUTABLE = "executable"
    PERCEPTION_ONLY = "perception_only"  # known here, usable on another runtime
    UNAVAILABLE = "unavailable"
    UNDETERMINED = "undetermined"  # what the runtime needs is not importable here, so nobody can say


@dataclass(frozen=True, slots=True)
class Cell:
    """One capability on one runtime."""

    capability: str
    runtime: str
    status: CellStatus
    partial: bool = field(default=False, kw_only=True)
    line: str  # one sentence, always
    via: str = ""
    tool_names: tuple[str, ...] = ()  # only what can be called
    suggested_runtime: str | None = None
    trust: str | None = None
    proved: str | None = None  # only of what is executable
    inferred: bool = False

    def __post_init__(self) -> None:
        usable = self.status is CellStatus.EXECUTABLE
        if not self.line or (not usable and (self.tool_names or self.trust or self.proved)):
            raise ValueError(f"a cell that is {self.status} cannot be {self!r}")
        if (self.status is CellStatus.PERCEPTION_ONLY) != (self.suggested_runtime is not None):
            raise ValueError(f"a cell that is {self.status} suggests {self.suggested_runtime}")


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows are capabilities, columns runtimes."""

    capabilities: tuple[Capability, ...]
    runtimes: tuple[Runtime, ...]
    provider: Provider | None
    cells: tuple[Cell, ...]  # row by row

    def row(self, capability: str) -> tuple[Cell, ...]:
        """Return the cells of a capability."""
        return tuple(cell for cell in self.cells if cell.capability == capability)

    def cell(self, capability: str, runtime: str) -> Cell:
        """Return one cell."""
        return next(cell for cell in self.row(capability) if cell.runtime == runtime)

    def extension_row(self, extension: str) -> tuple[CellStatus, ...]:
        """Return, per runtime, the worst cell of an extension."""
        ids = [c.id for c in self.capabilities if c.extension == extension]
        order = list(CellStatus)
        return tuple(max((self.cell(i, r.id).status for i in ids), key=order.index) for r in self.runtimes)

    def data(self) -> dict[str, Any]:
        """Return the matrix as JSON has it."""
        return {
            "provider": None if self.provider is None else self.provider.id,
            "runtimes": [{"id": r.id, "name": r.name, "importable": r.importable} for r in self.runtimes],
            "capabilities": [{"id": c.id, "kind": c.kind, "extension": c.extension} for c in self.capabilities],
            "cells": [
                {**asdict(cell), "via": cell.via or None, "tool_names": list(cell.tool_names)} for cell in self.cells
            ],
            "extensions": {
                name: dict(zip((r.id for r in self.runtimes), self.extension_row(name), strict=True))
                for name in dict.fromkeys(c.extension for c in self.capabilities)
            },
        }


def build_matrix(
    catalog: Catalog,
    *,
    runtimes: Sequence[str] = (),
    provider: Provider | None = None,
    probe: bool = False,
    proofs: Mapping[tuple[str, str], str] | None = None,
) -> Matrix:
    """Return the matrix of a catalog.

    Args:
        catalog: the capabilities.
        runtimes: ids of the columns, in registry order whatever the order given; default: all.
        provider: where the model comes from; it may take columns or tools away.
        probe: look whether what a runtime needs can be imported here; a column that cannot is undetermined.
        proofs: what was shown, from `proving.prove`.

    Raises:
        KeyError: when a runtime is not known.
    """
    for runtime_id in runtimes:
        catalog.registry[runtime_id]  # the KeyError
    chosen = tuple(r for r in catalog.registry.runtimes if not runtimes or r.id in runtimes)
    cells = []
    for capability in catalog.capabilities:
        problems = {r.id: _problem(capability, r, provider, probe=probe) for r in chosen}
        elsewhere = next((r.id for r in chosen if problems[r.id] is None), None)
        for runtime in chosen:
            shown = (proofs or {}).get((capability.id, runtime.id), NOT_PROVED)
            cells.append(_cell(capability, runtime, problems[runtime.id], elsewhere, shown))
    return Matrix(catalog.capabilities, chosen, provider, tuple(cells))


@dataclass(frozen=True, slots=True)
class _Problem:
    line: str
    status: CellStatus | None = None  # decided already; None: it depends on whether it works elsewhere


def _problem(capability: Capability, runtime: Runtime, provider: Provider | None, *, probe: bool) -> _Problem | None:
    """Return why a capability is not usable on a runtime; None when it is."""
    if provider is not None and provider.wire not in runtime.wires:
        words = f"{runtime.id} speaks {', '.join(runtime.wires)}, and {provider.id} speaks {provider.wire}"
        return _Problem(words, CellStatus.UNAVAILABLE)
    if probe and not runtime.importable:
        words = f"{runtime.needs or runtime.sdk} is not installed here, so nobody can say"
        return _Problem(words, CellStatus.UNDETERMINED)
    exposure = capability.exposure[runtime.id]
    if not exposure.usable:
        return _Problem(exposure.reason)
    if provider is not None and not provider.tools and capability.kind in ("tool", "mcp"):
        return _Problem(f"the model behind {provider.id} calls no tools")
    return None


def _cell(
    capability: Capability, runtime: Runtime, problem: _Problem | None, elsewhere: str | None, shown: str
) -> Cell:
    exposure = capability.exposure[runtime.id]
    if problem is not None:
        status = problem.status or (CellStatus.PERCEPTION_ONLY if elsewhere else CellStatus.UNAVAILABLE)
        suggested = elsewhere if status is CellStatus.PERCEPTION_ONLY else None
        line = problem.line
        return Cell(capability.id, runtime.id, status, line, suggested_runtime=suggested, inferred=exposure.inferred)
    return Cell(
        capability.id,
        runtime.id,
        CellStatus.EXECUTABLE,
        exposure.reason or f"works through {exposure.via.replace('_', ' ')}",
        partial=exposure.status is Status.PARTIAL,
        via=exposure.via,
        tool_names=capability.tool_names,
        trust=capability.trust,
        proved=shown,
        inferred=exposure.inferred,
    )
