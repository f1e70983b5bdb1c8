"""Run turns of real openJiuwen agents for another process: one JSON line in, one JSON line out.

`extforge_harness.host.session` starts this file in a process of its own.  Several turns may run at once; `{"op":
"cancel"}` ends one.  Each turn has an agent of its own that loads the trees, has every ability outside the wanted ones
removed, and is unloaded again.

Measured on openJiuwen 0.1.19: abilities such as `skill_tool` appear when an agent initialises itself, so that happens
before they are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import extforge_harness.host.inside as host
from extforge_harness.host.inside import Facts, jsonable
from extforge_harness.host.probe import ScriptedModel, tool_call

__all__ = ["Service"]

LINE_LIMIT = 64 << 20  # bytes of one request
MOST_ITERATIONS = 20  # model calls of one turn


class Service:
    """Answers requests; each is a dict with `op`, and so is each answer."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.numbers = scratch, itertools.count(1)
        self.scripted: Any = None
        self.one_call = asyncio.Lock()

    async def answer(self, job: Facts) -> Facts:
        """Do one job: `tools`, `turn` or `call`."""
        if job["op"] == "tools":
            return await self.tools(job)
        return await (self.turn(job) if job["op"] == "turn" else self.call(job))

    async def tools(self, job: Facts) -> Facts:
        """Load the trees once, and return what an agent that has them could do."""
        if missing := host.missing_requirements(job["trees"]):
            return {"missing_requirements": missing}
        async with self.agent(job) as agent:
            return {
                "tools": [
                    {
                        "name": card.name,
                        "description": card.description,
                        "schema": jsonable(getattr(card, "input_params", None) or {}),
                    }
                    for card in agent.ability_manager.list()
                ]
            }

    @contextlib.asynccontextmanager
    async def agent(self, job: Facts, rails: tuple[Any, ...] = ()) -> Any:
        """Give an agent with the trees, and take everything away again."""
        name = f"step_{next(self.numbers)}"
        workspace = self.scratch / name
        records: list[Any] = []
        agent = make_agent(job, name, workspace, rails)
        try:
            for tree in job["trees"]:
                record, _ = await host.load(agent, Path(tree))
                records.append(record)
            if hasattr(agent, "ensure_initialized"):
                await agent.ensure_initialized()
            yield agent
        finally:
            for record in reversed(records):
                with contextlib.suppress(Exception):  # the agent is thrown away anyway
                    await host.unload(agent, record)
            shutil.rmtree(workspace, ignore_errors=True)

    async def turn(self, job: Facts) -> Facts:
        """Ask an agent that has only `job["tools"]`; return its answer, what it was offered, and what it executed."""
        facts: Facts = {"offered": [], "executed": []}
        os.chdir(job["workdir"])
        async with self.agent(job, (observer(facts),)) as agent:
            for card in list(agent.ability_manager.list()):
                if card.name not in job["tools"]:
                    agent.ability_manager.remove_ability(card.name)
            host.record_tools(agent, facts["executed"])
            async with host.session_for(agent, f"extforge-{next(self.numbers)}", job["query"]) as (asked, session):
                answer = await agent.invoke(asked, session=session)
        output = answer.get("output")
        facts["output"] = output if isinstance(output, str) else json.dumps(jsonable(output), ensure_ascii=False)
        facts["result_type"] = str(answer.get("result_type"))
        return facts

    async def call(self, job: Facts) -> Facts:
        """Execute one tool as an agent would, rails included: a scripted model calls it."""
        async with self.one_call:
            self.scripted = self.scripted or ScriptedModel()
            before = len(self.scripted.requests)
            self.scripted.script = [tool_call(job["tool"], job["arguments"], "call_1")]
            endpoint = {"base_url": f"http://127.0.0.1:{self.scripted.port}/v1", "api_key": "none", "model": "scripted"}
            facts = await self.turn({**job, **endpoint, "tools": [job["tool"]], "query": "Call the tool."})
            messages = self.scripted.requests[-1]["messages"] if len(self.scripted.requests) > before else []
        contents = [message.get("content") for message in messages if message.get("role") == "tool"]
        return {"message": str(contents[-1]) if contents else "the tool was not called", "executed": facts["executed"]}


def observer(facts: Facts) -> Any:
    """Return a rail that notes which tools the model is really offered."""
    from openjiuwen.harness.rails.base import DeepAgentRail

    class ExtforgeObserverRail(DeepAgentRail):  # type: ignore[misc]
        priority = -1000

        async def before_model_call(self, ctx: Any) -> None:
            names = [str(getattr(tool, "name", tool)) for tool in ctx.inputs.tools or []]
            facts["offered"] += [name for name in names if name not in facts["offered"]]

    return ExtforgeObserverRail()


def make_agent(job: Facts, name: str, workspace: Path, rails: tuple[Any, ...]) -> Any:
    """Return the agent of one job."""
    from openjiuwen.core.foundation.llm import ModelRequestConfig

    base_url = job.get("base_url", "http://127.0.0.1:9/v1")
    client = {
        "api_key": job.get("api_key") or "none",
        "api_base": base_url,
        "verify_ssl": base_url.startswith("https:"),
    }
    request: Facts = {"model": job.get("model") or "none"}
    if job.get("effort") and "reasoning" in ModelRequestConfig.model_fields:
        request["reasoning"] = {"effort": job["effort"]}
    return host.make_agent(
        name,
        workspace,
        list(rails),
        client=client,
        request=request,
        enable_task_loop=False,
        max_iterations=MOST_ITERATIONS,
        system_prompt=job.get("system") or "You carry out one step of a skill.",
    )


async def serve(talk: host.Talk) -> None:
    """Answer until nobody asks any more."""
    service = Service(Path.cwd())
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), talk.heard)
    running: dict[int, asyncio.Task[None]] = {}

    async def do(job: Facts) -> None:
        try:
            answer = await service.answer(job)
        except asyncio.CancelledError:
            answer = {"error": "cancelled"}
        except Exception as exc:  # noqa: BLE001 -- whatever a tree or the model does is the answer
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        running.pop(job["id"], None)
        talk.say({**answer, "id": job["id"]})

    while line := await reader.readline():
        job = json.loads(line)
        if job["op"] == "cancel":
            if job["id"] in running:
                running[job["id"]].cancel()
        else:
            running[job["id"]] = asyncio.create_task(do(job))


if __name__ == "__main__":
    conversation = host.Talk()
    host.send_logs_to(Path.cwd() / "logs")
    asyncio.run(serve(conversation))
    os._exit(0)  # background threads of the host would keep it alive
