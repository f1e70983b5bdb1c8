"""The harness bundle: one envelope per turn, with what the extensions, the user and other frameworks bring.

Three layers, never merged.  What cannot be called here is still told about, with where it can be; a runtime may not
skip a layer, and nothing that is not callable is ever among the tools.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extforge_harness.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from extforge_harness.runtimes.catalog import Capability, Catalog

__all__ = ["Bundle", "Entry", "Unavailable", "build_bundle"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something a model may know of."""

    id: str
    kind: str
    display_name: str
    origin: str
    executable: bool
    perception_hint: str = ""  # where it can be used, when not here
    related: tuple[str, ...] = ()  # capability ids


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A capability that was asked for and does not run here."""

    capability: str
    reason: str
    suggested_runtime: str | None


@dataclass(frozen=True, slots=True)
class Bundle:
    """The envelope of one turn."""

    runtime_id: str
    built_in: tuple[Entry, ...]  # from the loaded extensions
    user: tuple[Entry, ...]  # from this project
    external: tuple[Entry, ...]  # from other frameworks of this user
    unavailable: tuple[Unavailable, ...]
    diagnostics: Mapping[str, str]  # capability -> what was decided

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All layers, in order."""
        return (*self.built_in, *self.user, *self.external)

    @property
    def text(self) -> str:
        """The block for the prompt; empty when there is nothing to say.  Rails are in no model's hands."""
        shown = [entry for entry in self.entries if entry.kind != "rail"]
        callable_here = [f"  - {e.kind} {e.display_name}" for e in shown if e.executable]
        known = [f"  - {e.kind} {e.display_name} — {e.perception_hint}" for e in shown if not e.executable]
        lines = ["Callable here:", *callable_here] if callable_here else []
        if known:
            lines += ["Known but not callable here (do not claim to call them; the user can switch runtime):", *known]
        return "\n".join(["## Your extensions", *lines]) if lines else ""


def build_bundle(
    catalog: Catalog,
    runtime_id: str,
    *,
    enabled: frozenset[str] | None = None,
    user: Sequence[Entry] = (),
    external: Sequence[Entry] = (),
    force_unavailable: Mapping[str, str] | None = None,
) -> Bundle:
    """Return the bundle of a turn.

    Args:
        catalog: the capabilities.
        runtime_id: where the turn runs.
        enabled: what was asked for; None: everything.
        user: from `scanner.scan_project`.
        external: from `scanner.scan_external`.
        force_unavailable: capabilities that a provider takes away, with the reason.

    Raises:
        BundleError: when an entry that cannot be called says no word about where it can, an id comes twice, or an
            entry relates to a capability that does not exist.
    """
    forced = force_unavailable or {}
    known = {capability.id for capability in catalog.capabilities}
    unknown = sorted({*(enabled or ()), *forced} - known)
    if unknown:
        raise BundleError(f"unknown capability {unknown[0]!r}")
    entries: list[Entry] = []
    unavailable: list[Unavailable] = []
    diagnostics: dict[str, str] = {}
    for capability in catalog.capabilities:
        if enabled is not None and capability.id not in enabled:
            diagnostics[capability.id] = "not enabled"
            continue
        reason = forced.get(capability.id) or _reason(capability, runtime_id)
        diagnostics[capability.id] = reason or "callable"
        if reason:
            instead = next((r for r in catalog.registry.ids if r != runtime_id and not _reason(capability, r)), None)
            unavailable.append(Unavailable(capability.id, reason, instead))
            reason += f"; use {instead}" if instead else "; no runtime here can"
        about = (capability.id, capability.kind, capability.display_name, capability.extension)
        entries.append(Entry(*about, not reason, reason, (capability.id,)))
    bundle = Bundle(runtime_id, tuple(entries), tuple(user), tuple(external), tuple(unavailable), diagnostics)
    _check(bundle, known)
    return bundle


def _reason(capability: Capability, runtime_id: str) -> str:
    exposure = capability.exposure[runtime_id]
    return "" if exposure.usable else exposure.reason


def _check(bundle: Bundle, known: set[str]) -> None:
    for entry_id, number in Counter(entry.id for entry in bundle.entries).items():
        if number > 1:
            raise BundleError(f"{number} entries have the id {entry_id!r}")
    for entry in bundle.entries:
        if not entry.executable and not entry.perception_hint.strip():
            raise BundleError(f"{entry.id} cannot be called here, and does not say where it can")
        if missing := sorted(set(entry.related) - known):
            raise BundleError(f"{entry.id} relates to {missing[0]!r}, which does not exist")
