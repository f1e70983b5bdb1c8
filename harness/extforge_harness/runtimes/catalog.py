"""The capability catalog: every component of some extensions, and on which runtime each may be used.

A pure derivation from facts, which come from trees (`trees`) or from a plan (`extforge.capabilities`); nobody writes
"works on Codex" anywhere.  Per runtime a capability is

* live: the runtime mounts it, and everything it requires is live there;
* partial: the runtime mounts it, but something it would use is not live there;
* deferred: a way is known but not wired, or something it must have is not there: a constraint that cannot be enforced;
* unsupported: there is no way.

Tools whose extension carries an MCP server are live through it wherever MCP servers are, provided that the guards
which apply to them run inside that server.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from extforge_harness.documents import suggest
from extforge_harness.errors import CatalogError
from extforge_harness.gates import MutationLevel, level_of
from extforge_harness.runtimes.descriptors import Registry, load_registry
from extforge_verifiers.findings import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from extforge_harness.runtimes.descriptors import Runtime

__all__ = [
    "Capability",
    "Catalog",
    "Exposure",
    "ExtensionFacts",
    "RailFacts",
    "Requirement",
    "ServerFacts",
    "SkillFacts",
    "Status",
    "ToolFacts",
    "build_catalog",
    "names_in",
    "trust_of",
]

# What a missing rail of the tool's own extension means: these decide whether a call runs, the others only watch.
_DECIDING_RAILS = ("guard", "budget", "custom", "")


class Status(StrEnum):
    """What becomes of a capability on a runtime, best first."""

    LIVE = "live"
    PARTIAL = "partial"
    DEFERRED = "deferred"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What is known of a tool without running it."""

    name: str  # of its ToolCard; empty when it cannot be read
    class_name: str
    description: str
    mutation: str = ""
    artifacts: tuple[str, ...] = ()  # artifact contracts
    source: str = ""
    state: str = ""  # class of the rail whose records it reports
    unwritten: bool = False  # its body only says that it is not implemented
    schema: Mapping[str, Any] = field(default_factory=dict)  # of its inputs


@dataclass(frozen=True, slots=True)
class RailFacts:
    """What is known of a rail."""

    class_name: str
    does: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class SkillFacts:
    """What is known of a skill."""

    name: str
    description: str
    when: str = ""
    body: str = ""
    allowed: tuple[str, ...] = ()  # allowed-tools of its skill.yaml
    source: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """An MCP server that a manifest declares."""

    name: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ExtensionFacts:
    """One extension: what it has, and what it says about itself."""

    name: str
    kind: str = "capability"
    depends_on: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()
    tools: tuple[ToolFacts, ...] = ()
    rails: tuple[RailFacts, ...] = ()
    skills: tuple[SkillFacts, ...] = ()
    servers: tuple[ServerFacts, ...] = ()
    served: tuple[str, ...] = ()  # tools that its own mcp_server.py serves
    guards: tuple[str, ...] = ()  # extensions whose guards run inside that server
    root: str = field(default="", compare=False)  # of the tree, where there is one

    def tool(self, display_name: str) -> ToolFacts:
        """Return a tool by its name, or its class where that cannot be read."""
        return next(tool for tool in self.tools if display_name == (tool.name or tool.class_name))


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something a capability needs on the same runtime; `hard`: it is not usable without."""

    target: str  # a capability id, or the name of a constraint extension
    hard: bool
    constraint: bool = False


@dataclass(frozen=True, slots=True)
class Exposure:
    """What becomes of one capability on one runtime.  A live one has no reason: there is no "live, but"."""

    status: Status
    via: str = ""
    reason: str = ""
    inferred: bool = False  # rests on reading the runtime's source only

    def __post_init__(self) -> None:
        if (self.status is Status.LIVE) == bool(self.reason):
            raise ValueError(f"{self.status} with the reason {self.reason!r}")

    @property
    def usable(self) -> bool:
        """Whether it is live, or partly."""
        return self.status in (Status.LIVE, Status.PARTIAL)


@dataclass(frozen=True, slots=True)
class Capability:
    """One component of an extension."""

    id: str  # "<extension>/<kind>:<component>"
    extension: str
    kind: str
    display_name: str
    tool_names: tuple[str, ...] = ()
    levels: Mapping[str, MutationLevel] = field(default_factory=dict)
    fragment: str = ""  # the one text that models get to read
    source: str = ""  # the file it came from
    artifacts: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()
    exposure: Mapping[str, Exposure] = field(default_factory=dict)

    @property
    def trust(self) -> str | None:
        """What calling its tools takes: see `trust_of`."""
        return trust_of(self.levels.values())


@dataclass(frozen=True, slots=True)
class Catalog:
    """The capabilities of some extensions, in a fixed order."""

    capabilities: tuple[Capability, ...]
    extensions: tuple[ExtensionFacts, ...]
    registry: Registry

    def __getitem__(self, capability_id: str) -> Capability:
        return {capability.id: capability for capability in self.capabilities}[capability_id]

    @property
    def levels(self) -> dict[str, MutationLevel]:
        """Mutation level of every tool."""
        return {tool: level for c in self.capabilities for tool, level in c.levels.items()}

    def skip_approval(self, tool: str) -> bool:
        """Say whether a tool may run without anybody being asked: only a declared safe read."""
        return level_of(tool, self.levels) is MutationLevel.SAFE_READ

    def extension(self, name: str) -> ExtensionFacts | None:
        """Return an extension by its name."""
        return next((e for e in self.extensions if e.name == name), None)

    def status_of(self, extension: str, runtime: str) -> Status:
        """Return the worst status among the components of an extension."""
        found = [c.exposure[runtime].status for c in self.capabilities if c.extension == extension]
        return max(found, key=list(Status).index)

    def live(self, runtime: str) -> tuple[str, ...]:
        """Return the ids of what is usable on a runtime."""
        return tuple(c.id for c in self.capabilities if c.exposure[runtime].usable)


def trust_of(levels: Iterable[MutationLevel]) -> str | None:
    """Return the trust boundary of tools with these levels; None without tools.

    `auto_safe`, `side_effect`, `requires_approval`, or `mixed`; an unclassified tool counts as a mutating one.
    """
    names = {MutationLevel.SAFE_READ: "auto_safe", MutationLevel.SIDE_EFFECT: "side_effect"}
    found = {names.get(level, "requires_approval") for level in levels}
    return None if not found else found.pop() if len(found) == 1 else "mixed"


def names_in(text: str, names: Iterable[str]) -> list[str]:
    """Return which tool names a text mentions, as whole words."""
    return [name for name in names if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


# --------------------------------------------------------------------------- building


def build_catalog(extensions: Sequence[ExtensionFacts], registry: Registry | None = None) -> Catalog:
    """Return the catalog of these extensions on these runtimes (default: all that are known).

    Raises:
        CatalogError: with everything that keeps them from being one catalog.
    """
    registry = registry or load_registry()
    extensions = sorted(extensions, key=lambda extension: extension.name)
    bare = [c for extension in extensions for c in _capabilities(extension, extensions)]
    findings = _problems(extensions, bare)
    if findings:
        raise CatalogError(findings)
    maker = _Exposures({c.id: c for c in bare}, {e.name: e for e in extensions})
    done = tuple(replace(c, exposure={r.id: maker.of(c, r) for r in registry.runtimes}) for c in bare)
    return Catalog(done, tuple(extensions), registry)


def _capabilities(extension: ExtensionFacts, extensions: Sequence[ExtensionFacts]) -> list[Capability]:
    name = extension.name
    depends = tuple(Requirement(other, hard=True, constraint=True) for other in extension.depends_on)
    found = [
        Capability(f"{name}/rail:{r.class_name}", name, "rail", r.class_name, source=r.source, requires=depends)
        for r in extension.rails
    ]
    applying = [
        Requirement(other.name, hard=True, constraint=True)
        for other in extensions
        if other.kind == "constraint"
        and other.name != name
        and extension.kind != "constraint"
        and (not other.applies_to or name in other.applies_to)
        and other.name not in extension.depends_on
    ]
    for tool in extension.tools:
        own = [Requirement(f"{name}/rail:{r.class_name}", hard=_decides(r, tool)) for r in extension.rails]
        level = MutationLevel(tool.mutation) if tool.mutation else MutationLevel.UNCLASSIFIED
        names = (tool.name,) if tool.name else ()
        component = tool.name or tool.class_name
        found.append(
            Capability(
                f"{name}/tool:{component}", name, "tool", component, names, dict.fromkeys(names, level),
                tool.description, tool.source, tool.artifacts, (*depends, *applying, *own),
            )
        )  # fmt: skip
    homes = {tool.name: other.name for other in extensions for tool in other.tools if tool.name}
    siblings = [tool.name for tool in extension.tools]
    for skill in extension.skills:
        used = dict.fromkeys([*(t for t in skill.allowed if t in homes), *names_in(skill.body, siblings)])
        needs = tuple(Requirement(f"{homes[tool]}/tool:{tool}", hard=False) for tool in used)
        fragment = "\n".join(part for part in (skill.description.strip(), skill.when.strip()) if part)
        found.append(
            Capability(
                f"{name}/skill:{skill.name}", name, "skill", skill.name, fragment=fragment, source=skill.source,
                requires=(*depends, *needs),
            )
        )  # fmt: skip
    found += [
        Capability(f"{name}/mcp:{s.name}", name, "mcp", s.name, source=s.source, requires=depends)
        for s in extension.servers
    ]
    return found


def _decides(rail: RailFacts, tool: ToolFacts) -> bool:
    return rail.does in _DECIDING_RAILS or rail.class_name == tool.state


def _problems(extensions: Sequence[ExtensionFacts], capabilities: Sequence[Capability]) -> list[Finding]:
    findings = [
        Finding("runtime-duplicate-id", f"{number} components are {capability!r}", fix="give each its own name")
        for capability, number in Counter(c.id for c in capabilities).items()
        if number > 1
    ]
    findings += [
        Finding("runtime-extension-twice", f"{number} extensions are named {name!r}", fix="pass one of them")
        for name, number in Counter(e.name for e in extensions).items()
        if number > 1
    ]
    claims: dict[str, list[str]] = {}
    for extension in extensions:
        for tool in extension.tools:
            owners = claims.setdefault(tool.name, []) if tool.name else []
            if extension.name not in owners:
                owners.append(extension.name)
    for tool_name, owners in claims.items():
        if len(owners) > 1:
            words = f"the tool {tool_name!r} is claimed by {' and '.join(owners)}; the host binds a name once"
            findings.append(Finding("runtime-tool-twice", words, fix="rename one of them"))
    known = sorted(e.name for e in extensions)
    for extension in extensions:
        for other in extension.depends_on:
            if other not in known:
                words = f"{extension.name} depends on {other!r}, which is not among these extensions"
                fix = suggest(other, known) or f"pass its tree too, or put it beside {extension.name}"
                where = Where(extension.root or None)
                findings.append(Finding("runtime-constraint-unknown", words, where=where, fix=fix))
    return findings


class _Exposures:
    """Derives exposures; each asks for those of what it requires."""

    def __init__(self, capabilities: dict[str, Capability], extensions: dict[str, ExtensionFacts]) -> None:
        self.capabilities, self.extensions = capabilities, extensions
        self.done: dict[tuple[str, str], Exposure] = {}

    def of(self, capability: Capability, runtime: Runtime) -> Exposure:
        key = (capability.id, runtime.id)
        if key not in self.done:
            # Constraints that depend on each other in a circle: what is asked for meanwhile is not there yet.
            self.done[key] = Exposure(Status.DEFERRED, reason="it requires itself")
            self.done[key] = self._derive(capability, runtime)
        return self.done[key]

    def _derive(self, capability: Capability, runtime: Runtime) -> Exposure:
        extension = self.extensions[capability.extension]
        mount = runtime.mount(capability.kind)
        served = self._served(extension, runtime) and capability.display_name in extension.served
        if capability.kind == "tool" and mount.status != "live" and served:
            mount = runtime.mount("mcp").model_copy(update={"via": "mcp"})
        inferred = mount.fact == "inferred"
        if mount.status != "live":
            return Exposure(Status(mount.status), reason=self._reason(capability, runtime), inferred=inferred)
        if problem := self._tool_problem(capability, extension):
            return Exposure(Status.DEFERRED, reason=problem, inferred=inferred)
        soft = ""
        for need in capability.requires:
            reason = self._missing(need, capability, runtime)
            if reason and need.hard:
                return Exposure(Status.DEFERRED, reason=reason, inferred=inferred)
            soft = soft or reason
        via = str(mount.via)
        return Exposure(Status.PARTIAL if soft else Status.LIVE, via, soft, inferred)

    def _reason(self, capability: Capability, runtime: Runtime) -> str:
        """Return why the runtime does not mount it; a guard that runs inside MCP servers is said to."""
        reason = str(runtime.mount(capability.kind).reason)
        if capability.kind == "rail":
            others = self.extensions.values()
            inside = [e.name for e in others if capability.extension in e.guards and self._served(e, runtime)]
            if inside:
                reason += f"; its rule runs inside the MCP server of {', '.join(inside)}"
        if capability.kind == "tool" and capability.display_name not in self.extensions[capability.extension].served:
            facts = self.extensions[capability.extension].tool(capability.display_name)
            if facts.state:
                reason = f"it reports what the rail {facts.state} records, and no rail runs there"
        return reason

    @staticmethod
    def _tool_problem(capability: Capability, extension: ExtensionFacts) -> str:
        if capability.kind != "tool":
            return ""
        if not capability.tool_names:
            return "its tool name cannot be read from the source, so nobody can say that it registers"
        unwritten = extension.tool(capability.display_name).unwritten
        return "its body is not written yet: it answers that it is not implemented" if unwritten else ""

    def _missing(self, need: Requirement, capability: Capability, runtime: Runtime) -> str:
        """Return why a requirement does not hold on this runtime; empty when it does."""
        extension = self.extensions[capability.extension]
        inside = self._served(extension, runtime)
        if need.constraint:
            enforced = inside and self._inside(need.target, extension)
            if enforced or self._all_live(need.target, runtime):
                return ""
            return f"constraint {need.target} cannot be enforced on {runtime.id}"
        target = self.capabilities[need.target]
        exposure = self.of(target, runtime)
        if exposure.status is Status.LIVE:
            return ""
        if target.kind == "rail":
            own_guard = inside and target.extension in extension.guards and self._does(target) == "guard"
            return "" if own_guard else f"its rail {target.display_name} does not run on {runtime.id}"
        return f"it uses the tool {target.display_name}, which is {exposure.status} on {runtime.id}"

    def _inside(self, constraint: str, extension: ExtensionFacts, above: tuple[str, ...] = ()) -> bool:
        """Say whether a constraint is wholly enforced inside an MCP server: its rails, and what it depends on."""
        facts = self.extensions[constraint]
        return (
            constraint in extension.guards
            and constraint not in above
            and bool(facts.rails)
            and all(rail.does == "guard" for rail in facts.rails)
            and all(self._inside(other, extension, (*above, constraint)) for other in facts.depends_on)
        )

    def _does(self, rail: Capability) -> str:
        rails = self.extensions[rail.extension].rails
        return next(r.does for r in rails if r.class_name == rail.display_name)

    def _all_live(self, extension: str, runtime: Runtime) -> bool:
        parts = [c for c in self.capabilities.values() if c.extension == extension and c.kind == "rail"]
        return bool(parts) and all(self.of(part, runtime).status is Status.LIVE for part in parts)

    @staticmethod
    def _served(extension: ExtensionFacts, runtime: Runtime) -> bool:
        """Say whether the extension's own MCP server is how this runtime gets its tools."""
        return (
            bool(extension.served) and runtime.mount("tool").status != "live" and runtime.mount("mcp").status == "live"
        )
