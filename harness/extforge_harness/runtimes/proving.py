"""Proof that what the catalog calls live really works here, and the honest word where it was not shown."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import HarnessError, HostMissing
from extforge_harness.runtimes.serving import ServerTrial, try_server
from extforge_verifiers.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge_harness.runtimes.catalog import Capability, Catalog
    from extforge_harness.runtimes.descriptors import Registry

__all__ = ["NOT_PROVED", "PROOFS", "Proofs", "find_drift", "prove"]

NOT_PROVED = "not proved here"
PROOFS = {
    "runtime": "it ran in that product: bound, and called by a scripted model in the real agent loop",
    "mcp-client": "a real MCP client listed and called it, its file was verified, and its guards blocked a bad call",
    "host": "openJiuwen's own code for that product placed it; the product itself was not started",
}


@dataclass(slots=True)
class Proofs:
    """What was shown, per (capability, runtime); what went wrong; what could not be tried, and why."""

    shown: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    trials: list[ServerTrial] = field(default_factory=list)
    mounts: dict[str, Any] = field(default_factory=dict)  # the answer of `host.mounting.try_mounts`


def prove(catalog: Catalog, *, python: str | None = None, timeout: float = 300.0) -> Proofs:
    """Try everything the catalog calls live or partly live, as far as this machine can.

    The extensions' code is run: by their MCP servers, and in openJiuwen where that is installed.

    Args:
        catalog: read from trees; there is nothing to run for a plan.
        python: the Python to run them with; default: this one.
        timeout: seconds for each host run and each server.
    """
    proofs = Proofs()
    with tempfile.TemporaryDirectory(prefix="extforge-prove-") as folder:
        _prove_servers(catalog, proofs, folder, python, timeout)
        try:
            _prove_host(catalog, proofs, os.path.join(folder, "host"), python, timeout)
        except HostMissing as exc:
            proofs.skipped["host"] = str(exc)
        except HarnessError as exc:
            proofs.findings.append(Finding("runtime-host-failed", str(exc)))
    return proofs


def _usable(catalog: Catalog, capability: Capability) -> list[tuple[str, str]]:
    """Return (runtime, via) where a capability is usable."""
    return [(r, capability.exposure[r].via) for r in catalog.registry.ids if capability.exposure[r].usable]


def _prove_servers(catalog: Catalog, proofs: Proofs, folder: str, python: str | None, timeout: float) -> None:
    for facts in catalog.extensions:
        if not facts.served or not facts.root:
            continue
        cwd = os.path.join(folder, f"mcp-{facts.name}")
        os.mkdir(cwd)
        try:
            trial = try_server(facts, cwd, python=python, timeout=timeout)
        except HostMissing as exc:
            proofs.skipped["mcp"] = str(exc)
            return
        except HarnessError as exc:
            proofs.findings.append(Finding("runtime-server-failed", str(exc), where=Where(facts.root)))
            continue
        proofs.trials.append(trial)
        proofs.findings += trial.findings
        for tool in trial.proved:
            capability = catalog[f"{facts.name}/tool:{tool}"]
            proofs.shown.update(
                {(capability.id, r): "mcp-client" for r, via in _usable(catalog, capability) if via == "mcp"}
            )


def _prove_host(catalog: Catalog, proofs: Proofs, scratch: str, python: str | None, timeout: float) -> None:
    from extforge_harness.host.mounting import try_mounts  # noqa: PLC0415 -- only with openJiuwen
    from extforge_harness.host.run import verify_in_host  # noqa: PLC0415

    os.mkdir(scratch)
    roots = {facts.root: facts.name for facts in catalog.extensions if facts.root}
    for runtime in ("native", "native_v2"):
        folder = os.path.join(scratch, runtime)
        os.mkdir(folder)
        run = verify_in_host(list(roots), python=python, timeout=timeout, scratch=folder, runtime=runtime)
        proofs.findings += _differing_cards(catalog, os.path.join(run.scratch, "result.json"))
        for report in run.reports:
            bad = [finding for finding in report.findings if finding.severity is Severity.ERROR]
            proofs.findings += [finding for finding in bad if finding not in proofs.findings]
            for capability in catalog.capabilities:
                shown = f"{capability.kind} {capability.display_name}" in report.checked
                if capability.extension == roots.get(report.path) and shown and not bad:
                    proofs.shown[capability.id, runtime] = "runtime"
    skills = {
        os.path.join(os.path.dirname(facts.root), *os.path.split(skill.source)[:1]): f"{facts.name}/skill:{skill.name}"
        for facts in catalog.extensions
        for skill in facts.skills
        if facts.root
    }
    mounts = proofs.mounts = try_mounts(list(skills), python=python, timeout=timeout)
    proofs.findings += find_drift(catalog.registry, mounts)
    for provider, copied in mounts["skills"].items():
        for folder, problem in copied.items():
            capability = catalog[skills[folder]]
            if problem is not None:
                words = f"{provider} does not take the skill {capability.display_name}: {problem}"
                proofs.findings.append(Finding("runtime-skill-refused", words, where=Where(folder)))
            elif provider in dict(_usable(catalog, capability)):
                proofs.shown[capability.id, provider] = "host"


def _differing_cards(catalog: Catalog, result: str) -> list[Finding]:
    """Return where the tools that registered in the host are others than those that were read from the source."""
    with open(result, encoding="utf-8") as stream:
        alone = json.load(stream)["alone"]
    findings = []
    for item in alone:
        facts = catalog.extension(item["name"])
        if facts is None or not item["loaded"]:
            continue
        registered = {c["name"]: (c["description"], c["input_params"]) for c in item["cards"]}
        read = {tool.name: (tool.description, dict(tool.schema)) for tool in facts.tools}
        for name in sorted(set(registered) | set(read)):
            if registered.get(name) != read.get(name):
                words = f"{facts.name}: the tool {name!r} registers otherwise than its source reads"
                findings.append(Finding("runtime-card-differs", words, where=Where(facts.root)))
    return findings


def find_drift(registry: Registry, mounts: Mapping[str, Any]) -> list[Finding]:
    """Return where the installed openJiuwen does something else than the registry says.

    Args:
        registry: what we say.
        mounts: what it does: the answer of `host.mounting.try_mounts`.
    """
    findings: list[Finding] = []
    ours = [runtime.id for runtime in registry.runtimes if runtime.id not in registry.packages]
    if ours != list(mounts["providers"]):
        words = f"openJiuwen has the providers {', '.join(mounts['providers'])}; the registry has {', '.join(ours)}"
        findings.append(Finding("runtime-drift", words))
    for runtime in registry.runtimes:
        for kind, problem in mounts["accepts"].get(runtime.id, {}).items():
            mount = getattr(runtime.mounts, kind)
            if mount is not None and (mount.status == "live") != (problem is None):
                does = f"refuses it ({problem})" if problem else "takes it"
                words = f"{kind} on {runtime.id} is {mount.status} in the registry, and openJiuwen {does}"
                findings.append(Finding("runtime-drift", words))
    return findings
