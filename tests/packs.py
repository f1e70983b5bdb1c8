"""Helpers of the workflow tests: skills in memory and on disk, and executors that meet at barriers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from extforge_harness.workflows import ALLOW_ALL, RunOptions, ScriptedExecutor, Skill, Workflow, WorkflowRun

SECONDS = 20  # after which a test that would hang fails


def skill(steps: list[dict[str, Any]] | None = None, **fields: Any) -> Skill:
    """Return a skill in memory; `allowed_tools=` stands for `allowed-tools`."""
    data = {key.replace("_", "-"): value for key, value in fields.items()}
    data["steps"] = [{"prompt": f"do {step['name']}", **step} for step in steps or [{"name": "a"}]]
    return Skill("deck", Workflow.model_validate(data), description="Makes decks.")


def write_skill(folder: Path, text: str | dict[str, Any], name: str = "deck", knowledge: str | None = None) -> Path:
    """Write a skill's folder, and return it."""
    root = folder / name
    root.mkdir(parents=True, exist_ok=True)
    (root / "skill.yaml").write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    if knowledge is not None:
        (root / "SKILL.md").write_text(knowledge, encoding="utf-8")
    return root


def make_run(of: Skill, executor: Any, **options: Any) -> WorkflowRun:
    """Return a run with everything allowed."""
    options.setdefault("workdir", Path(tempfile.gettempdir()))  # nothing is written; the default would be left behind
    executor = executor if hasattr(executor, "execute") else ScriptedExecutor(executor)
    return WorkflowRun(of, RunOptions(**{"executor": executor, "gate": ALLOW_ALL, **options}))


def execute(run: WorkflowRun) -> Any:
    """Execute a run; one that hangs fails."""

    async def bounded() -> Any:
        async with asyncio.timeout(SECONDS):
            return await run.execute()

    return asyncio.run(bounded())


def rule(id_: str = "rule", **fields: Any) -> dict[str, Any]:
    return {"id": id_, "message": f"the rule {id_}", **fields}
