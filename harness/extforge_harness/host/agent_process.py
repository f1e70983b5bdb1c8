"""Load an agent package in the real openJiuwen, and run one turn of it.

`extforge_harness.host.agents` starts this file in a process of its own, by any Python that has openJiuwen 0.1.19 or
newer.  It asks before each tool call.

Host behaviour it copes with (measured): an exception in a hook lets the call through, only AbortError stops it.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from extforge_harness.host.inside import Facts, Talk, do_job, error_facts, host_version, send_logs_to, skill_settings

START_SECONDS = 60
GATE = "extforge.gate"


def mend_locks() -> None:
    """Do without the host's file locks, which since filelock 4.0.12 it cannot release: every reading of a skill fails.

    It takes and releases them in tasks of their own, and filelock lets only the task that took one release it
    (openJiuwen 0.1.19, `_async_read_write_lock.py`).  They would guard against other processes, and lie in the
    temporary folder, which is this process's own; the locks between its tasks stay.
    """
    from openjiuwen.core.sys_operation.local._async_read_write_lock import HybridAsyncReadWriteLock

    async def nothing(*_: Any) -> None:
        pass

    HybridAsyncReadWriteLock._acquire_file = HybridAsyncReadWriteLock._release_file = nothing


# --------------------------------------------------------------------------- loading


def load(job: Facts) -> Facts:
    """Return what the host makes of the package, and which providers take it."""
    from openjiuwen.harness_providers import create_harness
    from openjiuwen.harness_providers.factory import load_manifest

    facts: Facts = {"openjiuwen": host_version(), "providers": {}}
    try:
        facts["spec"] = load_manifest(job["package"]).model_dump(mode="json", exclude={"model"})
    except Exception as exc:  # noqa: BLE001 -- whatever the host raises is the answer
        return {**facts, "error": error_facts(exc)}
    for name, config in job["providers"].items():
        try:
            harness = create_harness(job["package"], provider=name, config=config)
            facts["providers"][name] = {"card": harness.card.name}
        except Exception as exc:  # noqa: BLE001 -- as above
            facts["providers"][name] = {"error": error_facts(exc)}
    return facts


# --------------------------------------------------------------------------- the turn


def install_gate(talk: Talk) -> None:
    """Make a rail known that asks the other side before each tool call; it is in the agent before any extension."""
    from openjiuwen.core.runner.callback.errors import AbortError
    from openjiuwen.harness.rails.base import DeepAgentRail
    from openjiuwen.harness.schema.deep_agent_spec import register_rail_provider

    class ExtforgeGateRail(DeepAgentRail):  # type: ignore[misc]
        priority = 1000  # before every other rail

        async def before_tool_call(self, ctx: Any) -> None:
            try:
                call = ctx.inputs.tool_call
                question = {
                    "tool": ctx.inputs.tool_name,
                    "request_id": getattr(call, "id", None),
                    "arguments": ctx.inputs.tool_args,
                }
                answer = await talk.ask({"call": question})
            except Exception as exc:
                raise AbortError(f"nobody could be asked: {exc}") from exc
            if answer.get("permits") is not True:
                raise AbortError(f"not approved: {answer.get('reason')}")

    register_rail_provider(GATE, lambda _params, _context: ExtforgeGateRail())


def _config(job: Facts, scratch: Path) -> Facts:
    """Return the configuration with everything that keeps the agent to itself."""
    config: Facts = json.loads(json.dumps(job["config"]))
    spec = config.setdefault("deep_agent", {})
    spec.update(
        enable_task_loop=False,
        enable_read_image_multimodal=False,  # the host would send a request of its own to find out
        max_iterations=job["max_iterations"],
        workspace={"root_path": str(scratch / "workspace")},
        cwd=job["workdir"],
        rails=[{"type": GATE}, {"type": "core.skill_use", "params": skill_settings(scratch)}],
    )
    config["language"] = spec["language"] = job["language"]
    return config


async def take_turn(job: Facts, talk: Talk) -> Facts:
    """Start the agent (native or native_v2), give it its extensions and the prompt, and return what it answered."""
    from openjiuwen.harness_protocol import HarnessInput
    from openjiuwen.harness_providers import build_harness_context, create_harness

    send_logs_to(Path(job["scratch"]) / "logs")
    mend_locks()
    install_gate(talk)
    provider = job["provider"]
    harness = create_harness(job["package"], provider=provider, config=_config(job, Path(job["scratch"])))
    context = build_harness_context(
        job["package"], provider=provider, host_session_id=job["session"], language=job["language"], cwd=job["workdir"]
    )
    os.chdir(job["workdir"])
    facts: Facts = {"calls": [], "offered": [], "answer": "", "status": "", "stop_reason": ""}
    where = "start"
    try:
        await asyncio.wait_for(harness.start(context), START_SECONDS)
        where = "load"
        await _equip(harness.agent, job, talk, facts)
        where = "turn"
        receipt = await harness.send(HarnessInput(content=job["prompt"]))
        async for event in harness.turn_events(receipt.turn_id):
            _note(event.event, event.item_id, facts)
        await asyncio.wait_for(harness.stop(), START_SECONDS)
    except Exception as exc:  # noqa: BLE001 -- as above
        facts["error"] = {"where": where, **error_facts(exc)}
    return facts


async def _equip(agent: Any, job: Facts, talk: Talk, facts: Facts) -> None:
    """Load the extensions, and take off every tool that the gate would never let through."""
    for tree in job["extensions"]:
        await agent.load_plugin(tree)
    names = sorted(card.name for card in agent.ability_manager.list())
    answer = await talk.ask({"surface": names})
    for name in answer["remove"]:
        agent.ability_manager.remove_ability(name)
    facts["offered"] = sorted(card.name for card in agent.ability_manager.list())


def _note(event: Any, call_id: str | None, facts: Facts) -> None:
    """Keep what matters of an event of the turn: tools that ran, and how the turn ended.

    A native turn whose model call failed is `completed` all the same, with no answer; only an event on the way tells.
    """
    kind, result = getattr(event, "kind", None), getattr(event, "result", None)
    if getattr(event, "item_type", None) == "tool" and kind == "completed":
        data = _plain(event.data)
        facts["calls"].append({"id": call_id, "tool": data.get("tool_name"), "result": data.get("result")})
    elif getattr(event, "event_type", None) == "controller_output":
        data = _plain(event.payload)
        if data.get("type") == "task_failed":
            words = " ".join(str(part.get("text") or part) for part in data.get("data") or [])
            facts["error"] = {"where": "turn", "type": "task_failed", "message": words}
    elif result is not None:
        facts["status"], facts["stop_reason"] = str(result.status.value), str(result.stop_reason)
        facts["answer"] = result.final_output or ""
        if result.error is not None:
            facts.setdefault("error", {"where": "turn", "type": result.error.code, "message": result.error.message})


def _plain(value: Any) -> Any:
    from openjiuwen.harness_protocol import json_value_to_builtin

    return json_value_to_builtin(value)


def run(job: Facts, talk: Talk) -> Facts:
    """Do the job, unless this openJiuwen cannot."""
    import openjiuwen

    if not (Path(openjiuwen.__path__[0]) / "harness_providers").is_dir():
        return {"too_old": host_version()}
    return load(job) if job["do"] == "load" else asyncio.run(take_turn(job, talk))


if __name__ == "__main__":
    do_job(run)
