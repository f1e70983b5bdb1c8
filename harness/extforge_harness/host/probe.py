"""Load and run extensions in the real openJiuwen, and write down what happened.

`extforge_harness.host.run` starts this file in a process of its own, by any Python that has openJiuwen (0.1.14 or
newer).  It judges nothing: `extforge_harness.host.judge` turns these facts into findings.

Host behaviour it copes with (measured): hook exceptions are swallowed, so hooks are wrapped before they are registered.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import extforge_harness.host.inside as host
from extforge_harness.host.inside import Facts, jsonable, load, unload

__all__ = ["ScriptedModel", "make_agent", "stream", "tool_call"]

TURN_SECONDS = 60


# --------------------------------------------------------------------------- a scripted model


class ScriptedModel:
    """An OpenAI-compatible server on 127.0.0.1 that answers from a script and keeps every request."""

    def __init__(self) -> None:
        self.script: list[Facts] = []
        self.requests: list[Facts] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                owner.requests.append(body)
                message = owner.script.pop(0) if owner.script else {"role": "assistant", "content": "done"}
                kind, payload = _stream(message) if body.get("stream") else _plain(message)
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def _finish(message: Facts) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _plain(message: Facts) -> tuple[str, bytes]:
    choice = {"index": 0, "message": message, "finish_reason": _finish(message)}
    answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
    return "application/json", json.dumps({**answer, "usage": _USAGE}).encode()


def _stream(message: Facts) -> tuple[str, bytes]:
    delta: Facts = {"role": "assistant", "content": message.get("content") or ""}
    if message.get("tool_calls"):
        delta["tool_calls"] = [{**call, "index": i} for i, call in enumerate(message["tool_calls"])]
    head: Facts = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(message)}], "usage": _USAGE},
    ]
    lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return "text/event-stream", b"".join(lines) + b"data: [DONE]\n\n"


def tool_call(name: str, arguments: Facts, call_id: str) -> Facts:
    """Return the assistant message that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


# --------------------------------------------------------------------------- watching the host


class Watch:
    """What the hooks and tools of the extensions did, as seen from outside."""

    def __init__(self, roots: list[str]) -> None:
        self.roots = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
        self.hooks: dict[str, dict[str, Facts]] = {}
        self.results: list[Facts] = []
        self.executed: list[Facts] = []
        self.answers: Facts = {}  # tool -> what it returns in this turn, without being run
        self._wrapped: dict[tuple[int, str], Any] = {}
        self._kept: list[Any] = []

    def install(self) -> None:
        """Wrap every hook at registration; the host asks each rail for its hooks with get_callbacks()."""
        from openjiuwen.harness.rails.base import DeepAgentRail

        original = DeepAgentRail.get_callbacks
        watch = self

        def get_callbacks(rail: Any) -> dict[Any, Any]:
            found: dict[Any, Any] = original(rail)
            if not watch._is_theirs(type(rail)):
                return found
            return {event: watch._wrap(rail, event, hook) for event, hook in found.items()}

        DeepAgentRail.get_callbacks = get_callbacks

    def _is_theirs(self, cls: type) -> bool:
        """Say whether a class stands in one of the trees; module names differ between versions."""
        codes = [getattr(value, "__code__", None) for value in vars(cls).values()]
        files = [os.path.realpath(code.co_filename) for code in codes if code is not None]
        return any(file.startswith(self.roots) for file in files)

    def _wrap(self, rail: Any, event: Any, hook: Any) -> Any:
        name = str(getattr(hook, "__name__", event))
        key = (id(rail), name)
        if key in self._wrapped:
            return self._wrapped[key]
        self._kept.append(rail)  # so that no other rail gets its id
        # `before_task_iteration` and its twin are listed for every DeepAgentRail, overridden or not.
        from openjiuwen.harness.rails.base import DeepAgentRail

        own = getattr(type(rail), name, None) is not getattr(DeepAgentRail, name, None)
        facts = self.hooks.setdefault(type(rail).__name__, {})
        if own:
            facts.setdefault(name, {"calls": 0, "aborts": [], "errors": []})

        async def watched(ctx: Any) -> Any:
            if not own:
                return await hook(ctx)
            facts[name]["calls"] += 1
            try:
                return await hook(ctx)
            except Exception as exc:
                kind = "aborts" if type(exc).__name__ == "AbortError" else "errors"
                facts[name][kind].append(f"{type(exc).__name__}: {exc}")
                raise

        watched.__name__ = name
        self._wrapped[key] = watched
        return watched


def _observer(watch: Watch) -> Any:
    from openjiuwen.harness.rails.base import DeepAgentRail

    class ProbeObserverRail(DeepAgentRail):  # type: ignore[misc]
        """Runs last, and writes down what rails and model get to see of each call."""

        priority = -1000

        async def after_tool_call(self, ctx: Any) -> None:
            result = ctx.inputs.tool_result
            watch.results.append(
                {
                    "tool": ctx.inputs.tool_name,
                    "result": jsonable(result),
                    "type": type(result).__name__,
                    "message": getattr(ctx.inputs.tool_msg, "content", None),
                    "exception": str(ctx.exception) if ctx.exception else None,
                }
            )

    return ProbeObserverRail()


# --------------------------------------------------------------------------- agents


def make_agent(
    port: int, workspace: Path, name: str, rails: list[Any], *, task_loop: bool = False, runtime: str = "native"
) -> Any:
    """Return a fresh agent of the runtime `native` or `native_v2`, whose model is scripted."""
    client = {"api_key": "none", "api_base": f"http://127.0.0.1:{port}/v1", "verify_ssl": False}
    request = {"model": "scripted"}
    settings = {"enable_task_loop": task_loop, "max_iterations": 40, "system_prompt": "You are a test agent."}
    if runtime == "native":
        return host.make_agent(name, workspace, rails, client=client, request=request, **settings)
    from openjiuwen.agent_teams.harness.native_harness import NativeHarness
    from openjiuwen.harness.schema.deep_agent_spec import DeepAgentSpec

    spec = {
        "model": {"model_client_config": {"client_provider": "OpenAI", **client}, "model_request_config": request},
        "card": {"id": name, "name": name, "description": "extforge"},
        "workspace": {"root_path": str(workspace)},
        "rails": [{"type": "core.skill_use", "params": host.skill_settings(workspace)}],
        "enable_read_image_multimodal": False,
        "auto_create_workspace": False,
        **settings,
    }
    return NativeHarness(DeepAgentSpec.model_validate(spec), extra_rails=rails)


def snapshot(agent: Any) -> Facts:
    """Return what an extension may change on an agent."""
    rails = [*getattr(agent, "_pending_rails", []), *getattr(agent, "_registered_rails", [])]
    skills: list[str] = []
    for rail in rails:
        if type(rail).__name__ == "SkillUseRail":
            dirs = rail.skills_dir
            skills += [dirs] if isinstance(dirs, str) else [str(item) for item in dirs]
    builder = getattr(agent, "system_prompt_builder", None)
    sections = getattr(builder, "_sections", None) or {}
    return {
        "abilities": sorted(card.name for card in agent.ability_manager.list()),
        "rails": sorted(type(rail).__name__ for rail in rails),
        "skills": sorted(skills),
        "sections": sorted(sections if isinstance(sections, dict) else []),
    }


def stand_in(name: str) -> Any:
    """Return a tool that does nothing."""
    from openjiuwen.core.foundation.tool import Tool, ToolCard

    class StandInTool(Tool):  # type: ignore[misc]
        def __init__(self) -> None:
            schema = {"type": "object", "properties": {}, "additionalProperties": True}
            super().__init__(ToolCard(id=name, name=name, description="stand-in", input_params=schema))

        async def invoke(self, inputs: Any, **kwargs: Any) -> Any:
            del inputs, kwargs
            return {"success": True, "ran": name}

        async def stream(self, inputs: Any, **kwargs: Any) -> Any:
            yield await self.invoke(inputs, **kwargs)

    return StandInTool()


def add_stand_in(agent: Any, name: str) -> None:
    """Put a stand-in tool on the agent unless something of that name is there."""
    if agent.ability_manager.get(name) is not None:
        return
    tool = stand_in(name)
    if hasattr(agent.ability_manager, "add_ability"):
        agent.ability_manager.add_ability(tool.card, tool)
    else:
        from openjiuwen.core.runner import Runner

        Runner.resource_mgr.add_tool(tool)
        agent.ability_manager.add(tool.card)


# --------------------------------------------------------------------------- turns


async def turn(agent: Any, model: ScriptedModel, watch: Watch, spec: Facts, work: Path) -> Facts:
    """Play one turn: the model makes the calls, one after the other, and then says it is done.

    Each extension has a working directory of its own, so that two that write `report.pdf` do not meet.
    """
    folder = work / spec["extension"]
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    for path, text in (spec.get("files") or {}).items():
        (folder / path).write_text(text, encoding="utf-8", newline="")
    watch.answers.clear()
    watch.answers.update(spec.get("answers") or {})
    model.script = [
        tool_call(call["tool_name"], call["arguments"], f"call_{index}") for index, call in enumerate(spec["calls"])
    ]
    if "says" in spec:
        model.script.append({"role": "assistant", "content": spec["says"]})
    before = (len(model.requests), len(watch.results), len(watch.executed))
    started = time.monotonic()
    facts: Facts = {"id": spec["id"]}
    usual = dict(os.environ)
    os.environ.update(spec.get("environment") or {})
    try:
        async with host.session_for(agent, spec["session"], spec["query"]) as (asked, session):
            answer = await asyncio.wait_for(agent.invoke(asked, session=session), TURN_SECONDS)
        facts["answer"] = jsonable({key: answer.get(key) for key in ("output", "result_type")})
        if spec.get("streams"):
            facts["streamed"] = await stream(agent, model, spec)
    except Exception as exc:  # noqa: BLE001 -- whatever an extension does to a turn is a fact about it
        facts["error"] = f"{type(exc).__name__}: {exc}"
    finally:
        os.environ.clear()
        os.environ.update(usual)
        for path in spec.get("files") or {}:
            (folder / path).unlink(missing_ok=True)
    requests = model.requests[before[0] :]
    last = requests[-1] if requests else {}
    facts["requests"] = len(requests)
    facts["tool_messages"] = [m.get("content") for m in last.get("messages", []) if m.get("role") == "tool"]
    facts["system"] = [
        "\n".join(str(m.get("content")) for m in request["messages"] if m.get("role") == "system")
        for request in requests
    ]
    facts["offered"] = [t["function"]["name"] for t in (requests[0].get("tools") or [])] if requests else []
    facts["results"] = watch.results[before[1] :]
    facts["executed"] = [note["tool"] for note in watch.executed[before[2] :]]
    facts["inputs"] = [note["arguments"] for note in watch.executed[before[2] :]]
    facts["seconds"] = round(time.monotonic() - started, 3)
    return facts


async def stream(agent: Any, model: ScriptedModel, spec: Facts) -> list[Any]:
    """Play what the model says once more, as a stream, and return every piece that reaches the user."""
    model.script = [{"role": "assistant", "content": spec["says"]}]
    async with host.session_for(agent, f"{spec['session']}-streamed", spec["query"]) as (asked, session):

        async def read() -> list[Any]:
            return [jsonable(piece) async for piece in agent.stream(asked, session=session)]

        return await asyncio.wait_for(read(), TURN_SECONDS)


async def probe_alone(extension: Facts, job: Facts, model: ScriptedModel) -> Facts:
    """Load one extension on an agent of its own, and take it off again."""
    path = Path(extension["path"])
    workspace = Path(job["scratch"]) / ".alone" / extension["name"]
    agent = make_agent(model.port, workspace, f"alone_{extension['name']}", [], runtime=job.get("runtime", "native"))
    facts: Facts = {"name": extension["name"], "loaded": False}
    before = snapshot(agent)
    try:
        record, facts["refs"] = await load(agent, path)
    except Exception as exc:  # noqa: BLE001 -- any failure to load is the answer
        facts["error"] = host.error_facts(exc)
        return facts
    facts["loaded"] = True
    after = snapshot(agent)
    facts["added"] = {key: sorted(set(after[key]) - set(before[key])) for key in after}
    facts["cards"] = [
        {
            "name": card.name,
            "description": card.description,
            "input_params": jsonable(getattr(card, "input_params", None)),
        }
        for card in agent.ability_manager.list()
        if card.name in facts["added"]["abilities"]
    ]
    try:
        await unload(agent, record)
        facts["left_behind"] = _difference(before, snapshot(agent))
    except Exception as exc:  # noqa: BLE001
        facts["unload_error"] = host.error_facts(exc)
    return facts


def _difference(before: Facts, after: Facts) -> list[str]:
    return [f"{key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key]]


async def probe(job: Facts, model: ScriptedModel) -> Facts:
    """Do the whole job: each extension alone, all together, every turn, and unloading."""
    watch = Watch([extension["path"] for extension in job["extensions"]])
    watch.install()
    facts: Facts = {"alone": [await probe_alone(e, job, model) for e in job["extensions"]]}
    # A tree that does not load must not hide what the others do.
    loaded = {item["name"] for item in facts["alone"] if item["loaded"]}
    extensions = [e for e in job["extensions"] if e["name"] in loaded]
    if not extensions:
        return facts
    watch.hooks.clear()
    watch._wrapped.clear()
    workspace = Path(job["scratch"])
    loop = bool(job.get("task_loop"))
    agent = make_agent(
        model.port, workspace, "together", [_observer(watch)], task_loop=loop, runtime=job.get("runtime", "native")
    )
    records = []
    together: Facts = {"loaded": False}
    facts["together"] = together
    try:
        for extension in extensions:
            record, _ = await load(agent, Path(extension["path"]))
            records.append(record)
    except Exception as exc:  # noqa: BLE001
        together["error"] = {**host.error_facts(exc), "extension": extensions[len(records)]["name"]}
        return facts
    together["loaded"] = True
    for name in job.get("stand_ins", []):
        add_stand_in(agent, name)
    host.record_tools(agent, watch.executed, watch.answers)
    specs = [spec for spec in job["turns"] if spec["extension"] in loaded]
    together["turns"] = [await turn(agent, model, watch, spec, workspace) for spec in specs]
    together["hooks"] = watch.hooks
    try:
        for record in reversed(records):
            await unload(agent, record)
        after = snapshot(agent)
        whole = [item for item in facts["alone"] if item["loaded"]]
        added = {key: {n for e in whole for n in e["added"][key]} for key in after}
        # Only what an extension brought counts: the host adds rails and sections of its own during turns.
        added["sections"] = {name for name in after["sections"] if name.startswith("extforge")}
        together["left_behind"] = [f"{key}: {sorted(left)}" for key in after if (left := added[key] & set(after[key]))]
    except Exception as exc:  # noqa: BLE001
        together["unload_error"] = host.error_facts(exc)
    return facts


def run(job: Facts, _: host.Talk) -> Facts:
    """Do the job, unless something that the trees require is missing."""
    facts: Facts = {"python": sys.version.split()[0], "openjiuwen": host.host_version()}
    if missing := host.missing_requirements([extension["path"] for extension in job["extensions"]]):
        return {"missing_requirements": missing}
    return {**facts, **asyncio.run(probe(job, ScriptedModel()))}


if __name__ == "__main__":
    host.do_job(run)
