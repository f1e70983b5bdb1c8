"""The package of a new runtime that the gate is green for, and ways to write its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from extforge_harness.runtimes.onboarding import FIXTURES, SCENARIOS

PARSING = """\
import json

from extforge_harness.runtimes.contracts import Malformed, Parsed


def parse(value, contract):
    try:
        return Parsed(contract.id, json.loads(value))
    except ValueError as exc:
        return Malformed(contract.id, str(exc))


def accept(value, contract):
    return Parsed(contract.id, {})


def refuse(value, contract):
    return Malformed(contract.id, 'no')


def hide(value):
    return ''
"""
CONTRACT: dict[str, Any] = {
    "id": "widget",
    "display_name": "Widget",
    "source": "fence",
    "descriptor": "show-widget",
    "parser": "hermes_runtime.parsing:parse",
    "renderer": "extforge_harness.runtimes.contracts:show",
    "example": '{"rows": 1}',
}


def write_contract(package: Path, **changes: Any) -> None:
    """Write one artifact contract, and the module with its parsers."""
    (package / "parsing.py").write_text(PARSING)
    (package / "contracts.yaml").write_text(json.dumps([{**CONTRACT, **changes}]))


def write_fixtures(package: Path) -> None:
    """Record a protocol: requests with tools, events, a permission model, and no media."""
    call = {"type": "tool.call", "toolName": "shell", "arguments": {"command": "ls"}}
    values = {
        "requests/minimal.json": {"model": "h-1", "input": "Hello"},
        "requests/with_tools.json": {"model": "h-1", "input": "List", "tools": [{"toolName": "shell"}]},
        "requests/resume.json": {"session": "s-1", "input": "Go on"},
        "events/text.jsonl": {"type": "text", "text": "Hello. ```python\nprint()\n```"},
        "events/tool_call.jsonl": call,
        "events/tool_result.jsonl": {"type": "tool.result", "toolName": "shell", "output": "report.pptx"},
        "events/error.jsonl": {"type": "error", "message": "overloaded"},
        "tools.json": {"name_keys": ["toolName"], "tools": [{"name": "shell", "mutation": "mutating_external"}]},
        "permission.json": {"type": "permission", "id": "p-1", "toolName": "shell"},
        "media.json": {"not_applicable": "the product shows no media"},
    }
    for name, value in values.items():
        (package / "fixtures" / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
    rows = "\n".join(f"| {name} | https://hermes.example/docs/protocol | 2026-11-01 | external |" for name in FIXTURES)
    (package / "fixtures/SOURCES.md").write_text(f"| file | source | date | fact |\n|---|---|---|---|\n{rows}\n")


def describe(package: Path, tool: str = "{status: deferred, reason: tools come over MCP here, fact: verified}") -> None:
    path = package / "runtime.yaml"
    head = path.read_text(encoding="utf-8").partition("mounts:")[0]
    mounts = (
        "mounts:\n"
        "  skill: {status: live, via: skill_directory, fact: verified, fixture: requests/minimal.json}\n"
        "  mcp: {status: live, via: mcp_servers, fact: verified, fixture: requests/with_tools.json}\n"
        f"  tool: {tool}\n"
        "  rail: {status: unsupported, reason: Hermes has no hooks, fact: verified}\n"
    )
    path.write_text(head.replace("approval: false", "approval: true") + mounts, encoding="utf-8")


def smoke(package: Path, **changes: dict[str, str]) -> None:
    (package / "evidence").mkdir(exist_ok=True)
    entries = []
    for scenario in SCENARIOS:
        evidence = package / "evidence" / f"{scenario}.log"
        evidence.write_text(f"{scenario}: seen\n")
        entry = {"id": scenario, "status": "pass", "evidence": f"evidence/{scenario}.log"}
        if scenario in ("S2", "S7", "S8"):
            entry = {"id": scenario, "status": "deferred", "reason": "Hermes has no such thing"}
        entries.append(changes.get(scenario, entry))
    (package / "smoke.yaml").write_text(json.dumps({"scenarios": entries}))
