"""Runtimes as data: what each can mount, which model protocols it speaks, and which are known here.

A runtime executes turns (Claude Code); a provider is where its model comes from (an endpoint and its wire protocol).
Built-in runtimes are in `registry.yaml`; an onboarded one is a package that names itself in the entry point group
`extforge.runtimes`: its `runtime.yaml` is read as data, and its code is not imported to look at it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from extforge_harness.documents import Model, bind, read_source
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ENTRY_POINTS",
    "KINDS",
    "NOT_EXAMINED",
    "PROVIDERS",
    "Mount",
    "Provider",
    "Registry",
    "Runtime",
    "load_registry",
    "read_provider",
    "read_runtime",
]

KINDS = ("rail", "tool", "skill", "mcp")  # of capabilities; every runtime says what it does with each
ENTRY_POINTS = "extforge.runtimes"
NOT_EXAMINED = "not examined yet"
Fact = Literal["verified", "inferred"]
Wire = Literal["openai_chat", "openai_responses", "anthropic_messages", "account"]


class Mount(Model):
    """How a runtime takes one kind of component."""

    status: Literal["live", "deferred", "unsupported"]
    via: str | None = Field(None, description="the way it gets there, when live", min_length=1)
    reason: str | None = Field(None, description="what is missing, when not live; 'live, but' does not exist")
    fact: Fact = Field(description="verified by running, or inferred from reading")
    fixture: str | None = Field(None, description="the fixture file that shows it (onboarded runtimes)")

    @model_validator(mode="after")
    def _complete(self) -> Mount:
        if self.status == "live" and (self.reason is not None or self.via is None):
            raise ValueError("a live mount says `via` and has no `reason`; what does not quite work is deferred")
        if self.status != "live" and not (self.reason or "").strip():
            raise ValueError(f"a mount that is {self.status} needs a reason")
        return self


class Mounts(Model):
    """What becomes of each kind of component.  The first four are capabilities; the others belong to an agent."""

    rail: Mount
    tool: Mount
    skill: Mount
    mcp: Mount
    persona: Mount | None = None
    subagent: Mount | None = None


class Runtime(Model):
    """One runtime: an agent framework that executes a turn."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    name: Annotated[str, Field(min_length=1, max_length=80)]
    sdk: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")] | None = Field(
        description="importable module that it needs; null: part of the host"
    )
    needs: str = Field("", description="what to install")
    wires: Annotated[dict[Wire, Fact], Field(min_length=1)]
    approval: bool = Field(default=False, description="the runtime itself asks before a tool runs")
    checkpoint: bool = Field(default=False, description="a session can be resumed")
    mounts: Mounts

    def mount(self, kind: str) -> Mount:
        """Return what becomes of a kind of capability."""
        found: Mount = getattr(self.mounts, kind)
        return found

    @property
    def importable(self) -> bool:
        """Say whether what it needs can be imported here."""
        if self.sdk is None:
            return True
        try:
            return importlib.util.find_spec(self.sdk) is not None
        except (ImportError, ValueError):
            return False


class Provider(Model):
    """Where the model comes from.  It can only make a runtime unusable, never add a capability."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
    wire: Wire
    tools: bool = Field(default=True, description="the model can call tools")


PROVIDERS = {
    provider.id: provider
    for provider in (
        Provider(id="openai-compatible", wire="openai_chat"),
        Provider(id="openai-responses", wire="openai_responses"),
        Provider(id="anthropic", wire="anthropic_messages"),
        Provider(id="account", wire="account"),
    )
}


@dataclass(frozen=True, slots=True)
class Registry:
    """The known runtimes, in the order in which one is suggested, and the packages of the onboarded ones."""

    runtimes: tuple[Runtime, ...]
    packages: dict[str, str]  # runtime id -> importable package

    def __getitem__(self, runtime_id: str) -> Runtime:
        return {runtime.id: runtime for runtime in self.runtimes}[runtime_id]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in order."""
        return tuple(runtime.id for runtime in self.runtimes)

    def with_runtime(self, runtime: Runtime, package: str = "") -> Registry:
        """Return this registry with one more runtime, or with another description of the same."""
        kept = tuple(r for r in self.runtimes if r.id != runtime.id)
        packages = {**self.packages, **({runtime.id: package} if package else {})}
        return Registry((*kept, runtime), packages)


def read_runtime(path: str | Path) -> Runtime:
    """Return the runtime that a `runtime.yaml` describes.

    Raises:
        DocumentError: with every problem in it; also when it cannot be read.
    """
    document = _read(path)
    runtime, findings = bind(document, Runtime)
    if runtime is None:
        raise DocumentError(str(path), findings)
    return runtime


def read_provider(name: str) -> Provider:
    """Return a built-in provider by its id, or the one that a file describes; `-` is standard input.

    Raises:
        DocumentError: when it is neither.
    """
    if name in PROVIDERS:
        return PROVIDERS[name]
    if name != "-" and not Path(name).is_file():
        words = f"unknown provider {name!r}"
        fix = f"use {', '.join(PROVIDERS)}, or a file with id, wire and tools (- for standard input)"
        raise DocumentError(name, [Finding("runtime-provider-unknown", words, fix=fix)])
    document = _read(name)
    provider, findings = bind(document, Provider)
    if provider is None:
        raise DocumentError(name, findings)
    return provider


def _read(path: str | Path) -> Any:
    try:
        label, data = read_source(str(path))
        return read_document(data, label)
    except OSError as exc:
        words = f"cannot be read: {exc.strerror}"
        finding = Finding("runtime-descriptor-unreadable", words, where=Where(str(path)))
        raise DocumentError(str(path), [finding]) from exc


@cache
def built_in() -> tuple[Runtime, ...]:
    """Return the runtimes that ship with extforge."""
    path = Path(__file__).with_name("registry.yaml")
    document = _read(path)
    found: list[Runtime] = []
    problems: list[Finding] = []
    for index in range(len(document.value)):
        runtime, findings = bind(document, Runtime, (index,))
        problems += findings
        found += [runtime] if runtime is not None else []
    if problems:
        raise DocumentError(str(path), problems)
    return tuple(found)


def load_registry(more: Iterable[tuple[str, str]] | None = None) -> Registry:
    """Return the built-in runtimes and the onboarded ones that are installed.

    Args:
        more: (id, package) pairs instead of the installed entry points.

    Raises:
        DocumentError: when an onboarded description is bad, or takes an id that is taken.
    """
    registry = Registry(built_in(), {})
    pairs = more if more is not None else sorted((e.name, e.value) for e in entry_points(group=ENTRY_POINTS))
    for name, package in pairs:
        path = _descriptor_of(package)
        runtime = read_runtime(path)
        if runtime.id != name or runtime.id in registry.ids:
            words = f"the entry point {name!r} brings the runtime {runtime.id!r}"
            words += ", which is taken" if runtime.id in registry.ids else "; the two must be equal"
            raise DocumentError(str(path), [Finding("runtime-id-taken", words, where=Where(str(path)))])
        registry = registry.with_runtime(runtime, package)
    return registry


def _descriptor_of(package: str) -> Path:
    """Return where a package's runtime.yaml must be, without importing the package."""
    spec = importlib.util.find_spec(package.partition(":")[0].partition(".")[0])
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0] if places else package) / "runtime.yaml"
