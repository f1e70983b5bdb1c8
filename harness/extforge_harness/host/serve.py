"""Run turns of real openJiuwen agents for another process: one JSON line in, one JSON line out.

Run on its own, by any Python that has openJiuwen, as `python serve.py SCRATCH`; it imports nothing of ours but
`probe.py`, which lies beside it.  Several turns may run at once; `{"op": "cancel"}` ends one.  Each turn has an agent of
its own that loads the trees, has every ability outside the wanted ones removed, and is unloaded again.  It executes the
extensions' code and is no sandbox.

Measured on openJiuwen 0.1.19: abilities such as `skill_tool` appear when an agent initialises itself, so that happens
before they are removed; relative log paths follow the working directory, so they are made absolute.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import inspect
import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

__all__ = ["Service", "main"]

Facts = dict[str, Any]
LINE_LIMIT = 64 << 20  # bytes of one request
MEMORY_MB = 8192  # address space; the host maps about 3 GB before it does anything
MOST_ITERATIONS = 20  # model calls of one turn

_spec = importlib.util.spec_from_file_location("extforge_probe", Path(__file__).with_name("probe.py"))
assert _spec is not None
assert _spec.loader is not None
probe = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(probe)


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
        requirements = [{"requirements": required(Path(tree))} for tree in job["trees"]]
        if missing := probe.missing_requirements({"extensions": requirements}):
            return {"missing_requirements": missing}
        async with self.agent(job) as agent:
            return {
                "tools": [
                    {
                        "name": card.name,
                        "description": card.description,
                        "schema": probe._jsonable(getattr(card, "input_params", None) or {}),
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
                record, _ = await probe.load(agent, Path(tree))
                records.append(record)
            if hasattr(agent, "ensure_initialized"):
                await agent.ensure_initialized()
            yield agent
        finally:
            for record in reversed(records):
                with contextlib.suppress(Exception):  # the agent is thrown away anyway
                    await probe.unload(agent, record)
            shutil.rmtree(workspace, ignore_errors=True)

    async def turn(self, job: Facts) -> Facts:
        """Ask an agent that has only `job["tools"]`; return its answer, what it was offered, and what it executed."""
        from openjiuwen.core.session.agent import create_agent_session

        facts: Facts = {"offered": [], "executed": []}
        os.chdir(job["workdir"])
        async with self.agent(job, (observer(facts),)) as agent:
            for card in list(agent.ability_manager.list()):
                if card.name not in job["tools"]:
                    agent.ability_manager.remove_ability(card.name)
            record_tools(agent, facts["executed"])
            session_id = f"extforge-{next(self.numbers)}"
            session = create_agent_session(session_id=session_id, card=agent.card)
            await session.pre_run(inputs={"query": job["query"]})
            try:
                asked = {"query": job["query"], "conversation_id": session_id}
                answer = await agent.invoke(asked, session=session)
            finally:
                await session.post_run()
        output = answer.get("output")
        facts["output"] = output if isinstance(output, str) else json.dumps(probe._jsonable(output), ensure_ascii=False)
        facts["result_type"] = str(answer.get("result_type"))
        return facts

    async def call(self, job: Facts) -> Facts:
        """Execute one tool as an agent would, rails included: a scripted model calls it."""
        async with self.one_call:
            self.scripted = self.scripted or probe.ScriptedModel()
            before = len(self.scripted.requests)
            self.scripted.script = [probe.tool_call(job["tool"], job["arguments"], "call_1")]
            endpoint = {"base_url": f"http://127.0.0.1:{self.scripted.port}/v1", "api_key": "none", "model": "scripted"}
            facts = await self.turn({**job, **endpoint, "tools": [job["tool"]], "query": "Call the tool."})
            messages = self.scripted.requests[-1]["messages"] if len(self.scripted.requests) > before else []
        contents = [message.get("content") for message in messages if message.get("role") == "tool"]
        return {"message": str(contents[-1]) if contents else "the tool was not called", "executed": facts["executed"]}


def required(tree: Path) -> list[str]:
    """Return the packages that a tree requires, one line each."""
    path = tree / "requirements.txt"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]


def observer(facts: Facts) -> Any:
    """Return a rail that notes which tools the model is really offered."""
    from openjiuwen.harness.rails.base import DeepAgentRail

    class ExtforgeObserverRail(DeepAgentRail):  # type: ignore[misc]
        priority = -1000

        async def before_model_call(self, ctx: Any) -> None:
            names = [str(getattr(tool, "name", tool)) for tool in ctx.inputs.tools or []]
            facts["offered"] += [name for name in names if name not in facts["offered"]]

    return ExtforgeObserverRail()


def record_tools(agent: Any, executed: list[Facts]) -> None:
    """Note each tool that is really executed, as opposed to a call that a guard refused."""
    from openjiuwen.core.runner import Runner

    for card in agent.ability_manager.list():
        tool = None
        for identity in (getattr(card, "id", None), card.name):
            with contextlib.suppress(Exception):  # an unknown id raises in some versions
                tool = tool or Runner.resource_mgr.get_tool(identity)
        if tool is not None:
            tool.invoke = recorded(tool.invoke, card.name, executed)


def recorded(original: Any, name: str, executed: list[Facts]) -> Any:
    """Return `original` with a note of every call and its result."""

    async def invoke(*args: Any, **kwargs: Any) -> Any:
        note: Facts = {"tool": name, "arguments": probe._jsonable(args[0] if args else kwargs.get("inputs"))}
        executed.append(note)
        result = await original(*args, **kwargs)
        note["result"] = probe._jsonable(result)
        return result

    return invoke


def make_agent(job: Facts, name: str, workspace: Path, rails: tuple[Any, ...]) -> Any:
    """Return a fresh DeepAgent with a SkillUseRail, which trees with skills need."""
    from openjiuwen.core.foundation.llm import Model, ModelClientConfig, ModelRequestConfig
    from openjiuwen.core.single_agent.schema.agent_card import AgentCard
    from openjiuwen.harness.factory import create_deep_agent
    from openjiuwen.harness.rails import SkillUseRail
    from openjiuwen.harness.schema.config import DeepAgentConfig

    client = ModelClientConfig(
        client_provider="OpenAI",
        api_key=job.get("api_key") or "none",
        api_base=job.get("base_url", "http://127.0.0.1:9/v1"),
        verify_ssl=str(job.get("base_url", "")).startswith("https:"),
        **({"timeout": job["timeout"]} if job.get("timeout") else {}),
    )
    settings: Facts = {"model": job.get("model") or "none"}
    if job.get("effort") and "reasoning" in ModelRequestConfig.model_fields:
        settings["reasoning"] = {"effort": job["effort"]}
    skills = workspace / "no-skills"
    skills.mkdir(parents=True, exist_ok=True)
    skill_rail = SkillUseRail(skills_dir=[str(skills)], skill_mode="all", include_tools=False)
    known = {field.name for field in dataclasses.fields(DeepAgentConfig)}
    known |= set(inspect.signature(create_deep_agent).parameters)
    # enable_read_image_multimodal=None would make the host send a probing request of its own.
    wanted = {"auto_create_workspace": False, "enable_read_image_multimodal": False}
    return create_deep_agent(
        Model(client, ModelRequestConfig(**settings)),
        card=AgentCard(id=name, name=name, description="a step of a skill"),
        workspace=str(workspace),
        rails=[*rails, skill_rail],
        enable_task_loop=False,
        max_iterations=MOST_ITERATIONS,
        restrict_to_work_dir=False,
        system_prompt=job.get("system") or "You carry out one step of a skill.",
        **{key: value for key, value in wanted.items() if key in known},
    )


def log_into(folder: Path) -> None:
    """Keep the host's log files out of the folder that steps work in."""
    with contextlib.suppress(Exception):  # versions differ; the logs are no use to anybody here
        from openjiuwen.core.common.logging import log_config

        config = log_config.log_config
        config.load_from_dict({**config.get_snapshot(), "log_path": str(folder)})


async def serve(scratch: Path, out: Any) -> None:
    """Answer until standard input ends."""
    service = Service(scratch)
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running: dict[int, asyncio.Task[None]] = {}

    async def do(job: Facts) -> None:
        try:
            answer = await service.answer(job)
        except asyncio.CancelledError:
            answer = {"error": "cancelled"}
        except Exception as exc:  # noqa: BLE001 -- whatever a tree or the model does is the answer
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        running.pop(job["id"], None)
        out.write(json.dumps({**answer, "id": job["id"]}, ensure_ascii=True, default=repr) + "\n")
        out.flush()

    while line := await reader.readline():
        job = json.loads(line)
        if job["op"] == "cancel":
            if job["id"] in running:
                running[job["id"]].cancel()
        else:
            running[job["id"]] = asyncio.create_task(do(job))


def main() -> None:
    """Serve, with standard output kept for answers."""
    scratch = Path(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the host logs to stdout
    probe.limit_memory(MEMORY_MB)
    log_into(scratch / "logs")
    asyncio.run(serve(scratch, out))
    os._exit(0)  # background threads of the host would keep it alive


if __name__ == "__main__":
    main()
