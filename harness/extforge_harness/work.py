"""Run the work of generated tools and guards where openJiuwen is absent: each tree in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from extforge_harness.errors import HarnessError

__all__ = ["WorkFailed", "run_work"]

WORKER = Path(__file__).with_name("worker.py")


class WorkFailed(HarnessError):
    """A work module could not be loaded, or raised instead of returning a result."""


def run_work(
    tree: str, module: str, calls: list[list[Any]], *, function: str = "run", cwd: str, timeout: float = 120.0
) -> list[Any]:
    """Return what `function` of a work module answers to each call.

    Args:
        tree: root of the extension tree.
        module: the work module below it, such as `tools.deck`.
        calls: positional arguments of each call; JSON types only.
        function: `run` for tools, `violation` for guards.
        cwd: the folder that relative paths start from.
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
