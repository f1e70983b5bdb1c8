"""A real MCP client session with the server of an extension: list, call every tool, and try to get past its guards."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge_harness.acceptance import Acceptance, find_acceptance, load_acceptance
from extforge_harness.errors import HarnessError, HostFailed, HostMissing
from extforge_harness.runtimes.trees import MCP_SERVER
from extforge_verifiers.findings import Finding, Severity, Where
from extforge_verifiers.results import verify_result

if TYPE_CHECKING:
    from extforge_harness.acceptance import RailTest
    from extforge_harness.runtimes.catalog import ExtensionFacts

__all__ = ["ServerTrial", "try_server"]

INSTALL = "pip install 'mcp>=1.10,<2'"
SECONDS = 120.0


@dataclass(slots=True)
class ServerTrial:
    """What a client saw of a server."""

    extension: str
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> {description, schema}
    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # tool -> what a good call returned
    refusals: dict[str, str] = field(default_factory=dict)  # guard extension -> why it refused a bad call
    findings: list[Finding] = field(default_factory=list)

    @property
    def proved(self) -> tuple[str, ...]:
        """The tools that a client listed, called, and got something real from."""
        bad = any(finding.severity is Severity.ERROR for finding in self.findings)
        return () if bad else tuple(self.results)

    def find(self, code: str, message: str, path: str, **more: Any) -> None:
        """Note what is wrong with the server."""
        self.findings.append(Finding(code, message, where=Where(path), **more))


def try_server(facts: ExtensionFacts, cwd: str, *, python: str | None = None, timeout: float = SECONDS) -> ServerTrial:
    """Start the MCP server of an extension tree, and try everything it promises.

    The tools are called with the inputs of `acceptance/<extension>.yaml`; every guard with the call that it must
    refuse.  The server runs the tree's code with this user's rights.

    Args:
        facts: the extension, from `trees.read_tree`.
        cwd: an empty folder, where relative paths start.
        python: the Python to run it with; it needs `mcp` and what the tools need.
        timeout: seconds for the whole session.

    Raises:
        HostMissing: when the package `mcp` is not installed here.
        HostFailed: when the session does not come about, or takes too long.
    """
    try:
        import anyio  # noqa: PLC0415 -- only here
        import mcp  # noqa: F401, PLC0415
    except ImportError as exc:
        raise HostMissing("the package mcp is not installed here", INSTALL) from exc
    trial = ServerTrial(facts.name)
    log = os.path.join(cwd, f"{facts.name}.server.log")
    try:
        with open(log, "w", encoding="utf-8") as errors:
            anyio.run(_session, trial, facts, cwd, python or sys.executable, timeout, errors)
    except TimeoutError:
        raise HostFailed(f"the MCP session with {facts.name} took longer than {timeout:g} seconds") from None
    except HarnessError:
        raise
    except Exception as exc:
        with open(log, encoding="utf-8", errors="replace") as stream:
            said = [line.strip() for line in stream if line.strip()]
        why = said[-1] if said else f"{type(exc).__name__}: {exc}"
        raise HostFailed(f"there is no MCP session with {facts.name}: {why}") from exc
    return trial


async def _session(
    trial: ServerTrial, facts: ExtensionFacts, cwd: str, python: str, seconds: float, errors: Any
) -> None:
    import anyio  # noqa: PLC0415
    from mcp import ClientSession, StdioServerParameters  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    server = StdioServerParameters(command=python, args=["-B", os.path.join(facts.root, MCP_SERVER)], cwd=cwd)
    with anyio.fail_after(seconds):
        async with stdio_client(server, errlog=errors) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            await _list(trial, facts, session)
            good = await _call(trial, facts, session, cwd)
            for guard in facts.guards:
                await _refuse(trial, facts, guard, session, good)


async def _list(trial: ServerTrial, facts: ExtensionFacts, session: Any) -> None:
    path = os.path.join(facts.root, MCP_SERVER)
    listed = (await session.list_tools()).tools
    trial.tools = {t.name: {"description": t.description, "schema": t.inputSchema} for t in listed}
    if set(trial.tools) != set(facts.served):
        words = f"it lists {sorted(trial.tools)}, and the manifest promises {sorted(facts.served)}"
        trial.find("runtime-server-tools", words, path)
    for tool in facts.tools:
        offered = trial.tools.get(tool.name)
        if offered is not None and offered != {"description": tool.description, "schema": tool.schema}:
            words = f"it describes {tool.name}, or its inputs, in other words than its ToolCard"
            trial.find("runtime-server-tools", words, path)


async def _call(trial: ServerTrial, facts: ExtensionFacts, session: Any, cwd: str) -> dict[str, dict[str, Any]]:
    """Call every tool as its acceptance says; return the inputs that worked."""
    good: dict[str, dict[str, Any]] = {}
    tests = {test.tool_name: test for test in _acceptance(facts.root, facts.name).tool_tests if test.inputs is not None}
    for tool in facts.tools:
        if tool.name not in trial.tools:
            continue
        test = tests.get(tool.name)
        if test is None:
            words = f"nothing says what to call {tool.name} with"
            fix = f"add inputs to acceptance/{facts.name}.yaml"
            trial.find("runtime-server-untried", words, facts.root, fix=fix, severity=Severity.WARNING)
            continue
        answer = await _answer(session, tool.name, test.inputs or {})
        if answer.get("success") is not test.expect.success:
            words = f"{tool.name} answered {answer.get('error') or 'success'}, against acceptance/{facts.name}.yaml"
            trial.find("runtime-server-tool-failed", words, facts.root)
            continue
        if tool.artifacts and answer.get("success"):
            report = verify_result(answer, root=cwd, format=tool.artifacts[0], fields=("success", "path"))
            trial.findings += [f for f in report.findings if f.severity is Severity.ERROR]
        trial.results[tool.name] = answer
        good[tool.name] = test.inputs or {}
    return good


async def _answer(session: Any, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await session.call_tool(tool, arguments)
    if result.structuredContent is not None:
        return dict(result.structuredContent)
    text = "".join(block.text for block in result.content if block.type == "text")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"success": False, "error": text}


async def _refuse(
    trial: ServerTrial, facts: ExtensionFacts, guard: str, session: Any, good: dict[str, dict[str, Any]]
) -> None:
    """Try the calls that the rails of a guard must refuse or correct; nothing may come of the first."""
    home = facts.root if guard == facts.name else os.path.join(os.path.dirname(facts.root), guard)
    tried = False
    for test in _acceptance(home, guard).rail_tests:
        bad = test.blocks if test.blocks is not None else test.rewrites
        if test.does != "guard" or bad is None or not good:
            continue
        tried = True
        tool = test.tool_name if test.tool_name in good else next(iter(good))
        answer = await _answer(session, tool, {**good[tool], **bad})
        if test.blocks is None:
            _hold_rewrite(trial, test, guard, answer)
        elif answer.get("refused") is not True:
            words = f"{guard} lets {tool} run with {bad}"
            trial.find("runtime-guard-open", words, facts.root, fix="the server must ask every guard before a call")
        else:
            trial.refusals[guard] = str(answer.get("error"))
    if not tried:
        words = f"nothing says what {guard} must refuse, so it was not shown to block"
        trial.find("runtime-guard-untried", words, home, fix=f"add blocks to acceptance/{guard}.yaml")


def _hold_rewrite(trial: ServerTrial, test: RailTest, guard: str, answer: dict[str, Any]) -> None:
    wanted = {str(value) for value in (test.into or {}).values()}
    path = str(answer.get("path", ""))
    if answer.get("refused") is True or path in wanted:
        trial.refusals[guard] = f"corrected to {path}" if path in wanted else str(answer.get("error"))
    else:
        words = f"{guard} should have corrected a call into {test.into}, and {path or answer.get('error')} came of it"
        trial.find("runtime-guard-open", words, path)


def _acceptance(tree: str, name: str) -> Acceptance:
    path = find_acceptance(tree)
    return load_acceptance(path) if path is not None else Acceptance(name=name)
