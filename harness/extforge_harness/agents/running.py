"""Run one turn of an agent in the real host, with its approval as the gate, and hold what it claims against the files."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.agents.package import build_package, check_own
from extforge_harness.agents.resolution import check_resolved, resolve
from extforge_harness.agents.settings import NATIVE, provider_settings
from extforge_harness.chat import Endpoint
from extforge_harness.errors import AgentBuildError, AgentDefinitionError, Missing
from extforge_harness.gates import approval_gate
from extforge_harness.host.agents import HOST_LEVELS, Task, Turn, run_turn
from extforge_harness.host.process import require_host
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Report, Verdict, Where
from extforge_verifiers.runs import Contract, verify_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from extforge_harness.agents.definition import AgentDefinition
    from extforge_harness.agents.resolution import Resolved

__all__ = ["AgentRun", "Options", "run_agent", "tools_of"]

_CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Options:
    """How to run, besides what the agent itself says."""

    request: Mapping[str, Any] = field(default_factory=dict)  # what was asked for explicitly; see `resolve`
    runtime: str = "native"
    package: str | None = None  # a package that is there; default: one is built for the run
    skill_sources: Sequence[str] = ()
    extensions: Sequence[str] = ()  # loaded beside the agent; their code runs with this user's rights
    workdir: str = "."  # where tools write, and where claimed files must lie
    confirm: Callable[[str, str], bool] | None = None  # see `approval_gate`
    on_call: Callable[[str, Any], None] | None = None  # told of each call before the gate is
    timeout: float = 600.0  # seconds
    python: str | None = None


@dataclass(slots=True)
class AgentRun:
    """What an agent did, with what, and what of it is true."""

    agent: dict[str, Any]
    runtime: str
    resolved: Resolved
    not_applied: list[tuple[str, str]]
    turn: Turn
    report: Report
    messages: list[dict[str, Any]]  # the turn as a transcript, which `extforge verify` reads

    @property
    def good(self) -> bool:
        """Whether the turn came to its end, and nothing that it claims is false."""
        return self.turn.good and self.report.verdict is not Verdict.FAIL


def run_agent(definition: AgentDefinition, prompt: str, options: Options) -> AgentRun:
    """Run one turn of the agent.

    Args:
        definition: the agent.
        prompt: what it is asked.
        options: how to run.

    Raises:
        AgentDefinitionError: when what it resolves to is wrong, or cannot be had here.
        AgentBuildError: when no package can be made of it, or the one that is there is not ours.
        Missing: when the host, the model's endpoint or the runtime is not here.
        HostFailed: when the host gives no answer.
    """
    resolved = resolve(definition, options.request)
    if findings := [*check_resolved(resolved), *_check_executor(resolved)]:
        raise AgentDefinitionError(definition.name, findings)
    if options.package is not None and (findings := check_own(options.package)):
        raise AgentBuildError(definition.name, findings)
    settings = provider_settings(resolved, options.runtime)
    if options.runtime not in NATIVE:
        words = f"extforge does not start {options.runtime}: it needs a program and an account of its own"
        fix = "build the package, and give it to create_harness() where they are"
        raise Missing(words, fix)
    require_host(options.python)
    endpoint = Endpoint.from_environment(model=resolved.model)
    endpoint.reach()
    tools = tools_of(options.extensions)
    levels = {**HOST_LEVELS, **{name: str(tool.get("mutation")) for name, tool in tools.items()}}
    gate = approval_gate(resolved.approval, resolved.plan, levels, options.confirm)
    with tempfile.TemporaryDirectory(prefix="extforge-agent-") as folder:
        package = options.package
        if package is None:
            package = str(build_package(definition, options.skill_sources, folder, host=False).path)
        chinese = _CHINESE.search(f"{definition.instructions or ''}{prompt}")
        task = Task(
            package, prompt, options.runtime, settings.config, endpoint, options.extensions, options.workdir,
            "cn" if chinese else "en",
        )  # fmt: skip
        os.makedirs(options.workdir, exist_ok=True)
        turn = run_turn(task, gate, python=options.python, timeout=options.timeout, on_call=options.on_call)
        if turn.error and not turn.calls:
            endpoint.reach()  # the server went away while the host was started
        messages = _transcript(prompt, turn)
        used = {call["tool"] for call in turn.calls if call["permits"]}
        promised = {name: tool for name, tool in tools.items() if name in used}
        report = _verify(messages, folder, options.workdir, promised)
    return AgentRun(definition.summary(), options.runtime, resolved, settings.not_applied, turn, report, messages)


def _check_executor(resolved: Resolved) -> list[Finding]:
    if resolved.executor in (None, "local"):
        return []
    words = f"executor {resolved.executor!r} is not available here"
    fix = "run it with executor local"
    return [Finding("agent-executor-unavailable", words, where=Where(json_path="$.executor"), fix=fix)]


def tools_of(extensions: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what extensions say about their tools (name, mutation, format), as extforge writes it into manifests."""
    found: dict[str, dict[str, Any]] = {}
    for tree in extensions:
        try:
            manifest = read_document((Path(tree) / "harness_config.yaml").read_bytes(), tree).value
            tools = manifest["metadata"]["extension"]["tools"]
            found |= {str(tool["name"]): dict(tool) for tool in tools}
        except (OSError, DocumentError, KeyError, TypeError, ValueError):
            continue  # made by somebody else: its tools count as unclassified
    return found


def _transcript(prompt: str, turn: Turn) -> list[dict[str, Any]]:
    """Return the turn as chat messages; a call that was refused has made nothing, and is left out."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for number, call in enumerate(c for c in turn.calls if c["permits"]):
        key = str(call["request_id"] or f"call_{number}")
        arguments = call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])
        function = {"name": call["tool"], "arguments": arguments}
        calls = [{"id": key, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        content = json.dumps(call["result"], ensure_ascii=False)
        messages.append({"role": "tool", "tool_call_id": key, "name": call["tool"], "content": content})
    return [*messages, {"role": "assistant", "content": turn.answer}]


def _verify(messages: list[dict[str, Any]], folder: str, workdir: str, tools: Mapping[str, Any]) -> Report:
    record = os.path.join(folder, "run.json")
    Path(record).write_text(json.dumps(messages, ensure_ascii=False), encoding="utf-8")
    contracts = [Contract(name, tool["format"]) for name, tool in tools.items() if isinstance(tool.get("format"), str)]
    # Not walked: the folder may be anybody's home, and its other files were there before.
    report = verify_run(record, root=workdir, said=True, contracts=contracts, walk=False)
    # The record goes away with its folder; its places stay: the messages.
    named = [f.at(path=None) if f.where.path == record else f for f in report.findings]
    claims = [{**c, "where": c["where"].removeprefix(f"{record}: ")} for c in report.facts["claims"]]
    return replace(report, path=workdir, facts={**report.facts, "claims": claims}, findings=tuple(named))
