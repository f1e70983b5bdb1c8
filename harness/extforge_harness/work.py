"""Run the work of generated tools and guards where openJiuwen is absent: each tree in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import HarnessError, SetupFailed
from extforge_harness.expecting import judge_result
from extforge_harness.setup import EXTERNAL, find_card, prepared
from extforge_verifiers.findings import Finding, Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge_harness.acceptance import ToolTest

__all__ = ["WorkFailed", "run_work", "try_tool"]

WORKER = Path(__file__).with_name("worker.py")


class WorkFailed(HarnessError):
    """A work module could not be loaded, or raised instead of returning a result."""


def run_work(
    tree: str,
    module: str,
    calls: list[list[Any]],
    *,
    function: str = "run",
    cwd: str,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> list[Any]:
    """Return what `function` of a work module answers to each call.

    Args:
        tree: root of the extension tree.
        module: the work module below it, such as `tools.deck`.
        calls: positional arguments of each call; JSON types only.
        function: `run` for tools, `violation` for guards.
        cwd: the folder that relative paths start from.
        environment: variables to add to this process's own.
        timeout: seconds for all calls together.

    Raises:
        WorkFailed: naming the module and what went wrong.
    """
    job = {"tree": tree, "module": module, "function": function, "calls": calls}
    try:
        done = subprocess.run(  # noqa: S603 -- running it is the point
            [sys.executable, "-B", str(WORKER)],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorkFailed(f"{module} took longer than {timeout:g} seconds") from None
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise WorkFailed(f"{module} gave no answer (exit {done.returncode}): {last[0]}") from None
    for answer in answers:
        if "error" in answer:
            raise WorkFailed(f"{module}.{function} failed: {answer['error']}")
    return [answer["value"] for answer in answers]


def try_tool(tree: str, does: str, test: ToolTest, *, cwd: str) -> tuple[Report, Any]:
    """Run the work of a tool on the inputs of its test; return a report and what the tool answered.

    Without inputs, or without a setup for a tool that reaches outside, nothing is run and nothing is known.

    Args:
        tree: root of the extension tree.
        does: what the tool does, such as `artifact` or `http`.
        test: from its acceptance file.
        cwd: the folder that it runs in and that claimed files must lie in.
    """
    label, name = f"{os.path.basename(tree)}: {test.tool_name}", test.tool_name
    found = find_card(tree, name)
    reason = "there is no such work module" if found is None else ""
    if test.inputs is None:
        reason = "its test gives it no inputs"
    elif test.setup is None and does in EXTERNAL:
        reason = "it reaches outside, and its test has no setup for it"
    if reason or found is None:
        return Report(label, "tool", skipped={name: reason}, open_question=reason), None
    module, card = found
    try:
        with tempfile.TemporaryDirectory(prefix="extforge-setup-") as folder, contextlib.ExitStack() as stack:
            environment = {}
            if test.setup is not None:
                environment = stack.enter_context(prepared(test.setup, card["options"], Path(folder).resolve()))
            answer = run_work(tree, module, [[test.inputs]], cwd=cwd, environment=environment)[0]
    except SetupFailed as exc:
        finding = Finding("host-setup", f"{name!r} could not be tried: {exc}")
        return Report(label, "tool", (name,), findings=(finding,)), None
    return Report(label, "tool", (name,), findings=tuple(judge_result(test, answer, root=cwd))), answer
