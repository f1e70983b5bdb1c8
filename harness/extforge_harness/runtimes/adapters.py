"""The one way from capabilities to a runtime: `adapt(runtime_id, AdapterInput) -> AdapterOutput`.

A runtime has one small function here, or in its own package, that puts what `assemble` made where that runtime looks
for it.  None of them writes a word that a model reads: texts come from the capabilities' fragments.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import CompileError
from extforge_harness.runtimes.bundle import Bundle, Entry, build_bundle
from extforge_harness.runtimes.compiler import (
    DEFAULT_BUDGET,
    CompiledContext,
    CompileInput,
    Hints,
    Note,
    compile_context,
)
from extforge_harness.runtimes.contracts import BUILT_IN, ArtifactContract
from extforge_harness.runtimes.trees import MCP_SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from extforge_harness.runtimes.catalog import Catalog

__all__ = ["AdapterInput", "AdapterOutput", "adapt", "assemble", "server_name"]

LONGEST_SERVER_NAME = 32  # what DeepSeek Harness takes: [A-Za-z0-9_-]{1,32}


@dataclass(frozen=True, slots=True)
class AdapterInput:
    """What a turn needs, the same for every runtime."""

    catalog: Catalog
    enabled: frozenset[str] | None = None
    contracts: tuple[ArtifactContract, ...] = BUILT_IN
    notes: tuple[Note, ...] = ()
    user: tuple[Entry, ...] = ()
    external: tuple[Entry, ...] = ()
    force_unavailable: Mapping[str, str] = field(default_factory=dict)
    workspace: str | None = None  # a folder of its own for this start
    skills_dir: str | None = None  # an existing folder, where native looks for skills
    max_steps: int | None = None
    system_max: int = DEFAULT_BUDGET  # tokens
    python: str = sys.executable  # that runs MCP servers


@dataclass(frozen=True, slots=True)
class AdapterOutput:
    """What a runtime is started with."""

    runtime_id: str
    system_prompt: str  # "" when there is nothing to say
    tool_names: tuple[str, ...]  # that can be called
    provider_config: Mapping[str, Any]  # for the host's create_harness(config=...)
    context: Mapping[str, Any]  # for the host's build_harness_context(...)
    manifest: Mapping[str, Any]  # sections of the agent template: mcps
    plugins: tuple[str, ...]  # trees to load with load_plugin, constraints first
    hints: Hints
    bundle: Bundle
    compiled: CompiledContext
    suppressed: tuple[str, ...]  # abilities that come along and are outside the surface
    max_steps: int | None


def adapt(runtime_id: str, given: AdapterInput) -> AdapterOutput:
    """Return what `runtime_id` is started with.

    Raises:
        CompileError: when the runtime is unknown or the context cannot be compiled.
        BundleError: when the bundle would mislead.
    """
    registry = given.catalog.registry
    if runtime_id in _ADAPTERS:
        return _ADAPTERS[runtime_id](assemble(runtime_id, given), given)
    package = registry.packages.get(runtime_id)
    if package is None:
        raise CompileError(f"no adapter for the runtime {runtime_id!r}; known: {', '.join(registry.ids)}")
    module = importlib.import_module(f"{package.partition(':')[0]}.adapter")
    output: AdapterOutput = module.adapt(given)
    return output


def assemble(runtime_id: str, given: AdapterInput) -> AdapterOutput:
    """Return the part of an output that is the same everywhere; a runtime's function adds where things go."""
    forced = frozenset(given.force_unavailable)
    wanted = given.enabled if given.enabled is not None else frozenset(c.id for c in given.catalog.capabilities)
    compiled = compile_context(
        CompileInput(
            runtime_id, given.catalog, given.contracts, frozenset(wanted - forced), given.notes, given.system_max
        )
    )
    bundle = build_bundle(
        given.catalog,
        runtime_id,
        enabled=given.enabled,
        user=given.user,
        external=given.external,
        force_unavailable=given.force_unavailable,
    )
    return AdapterOutput(
        runtime_id,
        "\n\n".join(part for part in (compiled.system_text, bundle.text) if part),
        tuple(tool.name for tool in compiled.tools),
        {},
        {},
        {},
        (),
        compiled.hints,
        bundle,
        compiled,
        (),
        given.max_steps,
    )


def server_name(extension: str) -> str:
    """Return the name of an extension's MCP server: one that every runtime takes."""
    if len(extension) <= LONGEST_SERVER_NAME:
        return extension
    digest = hashlib.sha256(extension.encode()).hexdigest()[:8]
    return f"{extension[: LONGEST_SERVER_NAME - 9]}_{digest}"


def _chosen(output: AdapterOutput) -> list[str]:
    return [decision.capability for decision in output.compiled.decisions if decision.included]


def _native(output: AdapterOutput, given: AdapterInput) -> AdapterOutput:
    """Extensions are loaded whole, as plugins, with the constraints that they depend on before them."""
    catalog = given.catalog
    chosen = _chosen(output)
    names: dict[str, None] = {}

    def load(extension: str) -> None:
        needs = [r.target for c in catalog.capabilities if c.extension == extension for r in c.requires if r.constraint]
        for other in needs:
            if other not in names:
                load(other)
        names.setdefault(extension)

    for capability in chosen:
        load(catalog[capability].extension)
    come_along = [t for c in catalog.capabilities if c.extension in names for t in c.tool_names]
    skills_dir = given.skills_dir or given.workspace or os.curdir
    # Without the rail no extension with a skill loads; without skills_dir the host adds ~/.claude/skills; without
    # skill_mode the model is not offered what was loaded.
    rail = {"type": "core.skill_use", "params": {"skills_dir": skills_dir, "skill_mode": "all", "include_tools": False}}
    agent: dict[str, Any] = {"rails": [rail]}
    if given.workspace is not None:
        agent["workspace"] = {"root_path": given.workspace}
    if given.max_steps is not None:
        agent["max_iterations"] = given.max_steps
    hints = {**output.hints.values, **({"plugins": list(names)} if names else {})}
    roots = [e.root for name in names if (e := catalog.extension(name)) is not None and e.root]
    return replace(
        output,
        provider_config={"deep_agent": agent},
        context={"extra_system_prompt": output.system_prompt},
        plugins=tuple(roots),
        hints=Hints(hints),
        suppressed=tuple(t for t in come_along if t not in output.tool_names),
    )


def _portable(output: AdapterOutput, given: AdapterInput) -> AdapterOutput:
    """Skills are copied where the product looks for them; tools come through the MCP servers of their extensions."""
    catalog = given.catalog
    skills, served = [], {}
    for capability in (catalog[name] for name in _chosen(output)):
        extension = catalog.extension(capability.extension)
        if extension is None or not extension.root:
            continue
        if capability.kind == "skill":
            skills.append(os.path.join(os.path.dirname(extension.root), *capability.source.split("/")[:-1]))
        elif capability.kind == "tool":
            served[extension.name] = extension
    servers = [
        {
            "server_name": server_name(name),
            "type": "stdio",
            "command": given.python,
            "args": [os.path.join(extension.root, MCP_SERVER)],
        }
        for name, extension in served.items()
    ]
    come_along = [tool for extension in served.values() for tool in extension.served]
    return replace(
        output,
        provider_config={"skills": skills} if skills else {},
        context={"extra_system_prompt": output.system_prompt},
        manifest={"mcps": servers} if servers else {},
        suppressed=tuple(t for t in come_along if t not in output.tool_names),
    )


_ADAPTERS: Mapping[str, Callable[[AdapterOutput, AdapterInput], AdapterOutput]] = {
    "native": _native,
    "native_v2": _native,
    "claudecode": _portable,
    "codex": _portable,
    "dsh": _portable,
}
