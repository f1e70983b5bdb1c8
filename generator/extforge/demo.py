"""The whole chain on a bundled plan: check, generate, run the work modules, verify what they made."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge.check import load_plan
from extforge.errors import ExtforgeError
from extforge.generate import generate
from extforge.resources import DEMO_PLAN, shipped
from extforge_harness.acceptance import EXTERNAL, Acceptance, load_acceptance
from extforge_harness.work import run_work, try_tool
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Report, Verdict
from extforge_verifiers.reports.json import overall

if TYPE_CHECKING:
    from collections.abc import Callable

    from extforge.derive import Blueprint, Rail, Tool
    from extforge_harness.acceptance import ToolTest

__all__ = ["DemoOutcome", "run_demo"]


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What the demo made."""

    folder: str
    reports: list[Report]

    @property
    def verdict(self) -> Verdict:
        """The verdict over everything."""
        return overall(self.reports)


def run_demo(*, folder: str | None, host: bool, tell: Callable[[str], None]) -> DemoOutcome:
    """Run the demo and return its reports; `tell` gets one line per step as it happens.

    Raises:
        ExtforgeError: when the folder is not empty.
        HostMissing: with `host`, when openJiuwen is not installed.
    """
    started = time.monotonic()

    def step(text: str) -> None:
        tell(f"[{time.monotonic() - started:5.1f}s] {text}")

    if host:
        from extforge_harness.host.process import require_host  # noqa: PLC0415 -- not without --host

        require_host()
    target = _folder(folder)
    plan = load_plan(str(shipped(DEMO_PLAN)))
    step(f"plan: {len(plan.blueprints)} designs, {len(plan.findings)} warnings")
    made = generate(plan, target)
    step(f"generated {len(made.changes.writes)} files in {len(made.roots)} extensions")
    reports = [verify_extension(os.path.join(target, root)) for root in made.roots]
    step(f"read every tree: {sum(r.verdict is Verdict.PASS for r in reports)} of {len(reports)} would load")
    work = os.path.join(target, "files")
    os.mkdir(work)
    for blueprint in plan.blueprints:
        acceptance = load_acceptance(os.path.join(target, "acceptance", f"{blueprint.name}.yaml"))
        guards = [rail for rail in blueprint.rails if rail.does == "guard"]
        reports += [_try_guard(target, blueprint, rail, acceptance, work, step) for rail in guards]
        for tool in blueprint.tools:
            test = next((t for t in acceptance.tool_tests if t.tool_name == tool.name), None)
            if tool.does in ("artifact", *EXTERNAL) and test is not None:
                reports.append(_run_tool(target, blueprint, tool, test, work, step))
    if host:
        reports += _run_host(target, made.roots, step)
    else:
        tell("openJiuwen was not asked for: `extforge demo --host` also loads and runs the extensions in it")
    return DemoOutcome(target, reports)


def _folder(folder: str | None) -> str:
    if folder is None:
        return os.path.realpath(tempfile.mkdtemp(prefix="extforge-demo-"))
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise ExtforgeError(f"{folder} is not empty")
    return os.path.realpath(folder)


def _run_tool(
    target: str, blueprint: Blueprint, tool: Tool, test: ToolTest, work: str, step: Callable[[str], None]
) -> Report:
    """Run a tool's work module on its acceptance inputs, and hold its result against the file."""
    report, answer = try_tool(os.path.join(target, blueprint.root), tool.does, test, cwd=work)
    if answer is not None:
        with open(os.path.join(work, f"{tool.name}.result.json"), "w", encoding="utf-8") as stream:
            json.dump(answer, stream, ensure_ascii=False, indent=2)
    facts = {k: v for k, v in report.facts.items() if k in ("slides", "pages", "sheets", "rows", "size_bytes")}
    step(f"ran {tool.name}: {os.path.basename(report.path)} {facts} -> {report.verdict.value}")
    return report


def _try_guard(
    target: str, blueprint: Blueprint, rail: Rail, acceptance: Acceptance, work: str, step: Callable[[str], None]
) -> Report:
    """Ask a guard's rule about a call that it must refuse, and about one that it must let through."""
    tree = os.path.join(target, blueprint.root)
    test = next(t for t in acceptance.rail_tests if t.rail == rail.class_name)
    calls: list[list[Any]] = [[test.tool_name, test.blocks], [test.tool_name, test.passes]]
    refused, passed = run_work(tree, rail.work, calls, function="violation", cwd=work)
    findings = []
    if not refused:
        findings.append(Finding("host-guard-open", f"the guard lets {test.blocks} through"))
    if passed:
        findings.append(Finding("host-guard-closed", f"the guard refuses {test.passes}: {passed}"))
    step(f"asked the guard {blueprint.name}: {refused!r}; a good name passes: {not passed}")
    return Report(f"{blueprint.root}/{rail.work}", "guard", ("refuses", "lets through"), {}, {}, tuple(findings))


def _run_host(target: str, roots: list[str], step: Callable[[str], None]) -> list[Report]:
    from extforge_harness.host.run import verify_in_host  # noqa: PLC0415

    step("starting openJiuwen ...")
    scratch = os.path.join(target, "host")
    os.mkdir(scratch)
    run = verify_in_host([os.path.join(target, root) for root in roots], scratch=scratch)
    good = sum(r.verdict is Verdict.PASS for r in run.reports)
    step(f"openJiuwen {run.version} loaded and ran {good} of {len(run.reports)} extensions as they should")
    return run.reports
