"""Load and run extensions in the real openJiuwen, and write down what happened.

This file is run on its own, by any Python that has openJiuwen (0.1.14 or newer), as
`python probe.py JOB.json RESULT.json`; it imports nothing of ours.  It judges nothing: `extforge_harness.host.judge`
turns these facts into findings.  It executes the extensions' code and is no sandbox.

Host behaviour it copes with (measured): logging goes to stdout; a `logs/` folder appears in the working directory;
a SkillUseRail must be on the agent before an extension with skills is loaded; hook exceptions are swallowed, so
hooks are wrapped before they are registered; background threads keep the process alive, so it ends with os._exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import os
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
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
        self.executed: list[str] = []
        self.inputs: list[Any] = []  # of each execution
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
                    "result": _jsonable(result),
                    "type": type(result).__name__,
                    "message": getattr(ctx.inputs.tool_msg, "content", None),
                    "exception": str(ctx.exception) if ctx.exception else None,
                }
            )

    return ProbeObserverRail()


def _jsonable(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    try:
        return json.loads(json.dumps(value, ensure_ascii=False, default=repr))
    except (TypeError, ValueError):
        return repr(value)


# --------------------------------------------------------------------------- agents


def make_agent(
    port: int, workspace: Path, name: str, rails: list[Any], *, task_loop: bool = False, runtime: str = "native"
) -> Any:
    """Return a fresh DeepAgent with a SkillUseRail, in a workspace of its own."""
    if runtime == "native_v2":
        return make_native_v2(port, workspace, name, rails, task_loop=task_loop)
    from openjiuwen.core.foundation.llm import Model, ModelClientConfig, ModelRequestConfig
    from openjiuwen.core.single_agent.schema.agent_card import AgentCard
    from openjiuwen.harness.factory import create_deep_agent
    from openjiuwen.harness.rails import SkillUseRail
    from openjiuwen.harness.schema.config import DeepAgentConfig

    client = ModelClientConfig(
        client_provider="OpenAI", api_key="none", api_base=f"http://127.0.0.1:{port}/v1", verify_ssl=False
    )
    skills = workspace / "no-skills"
    skills.mkdir(parents=True, exist_ok=True)
    skill_rail = SkillUseRail(skills_dir=[str(skills)], skill_mode="all", include_tools=False)
    known = {field.name for field in dataclasses.fields(DeepAgentConfig)}
    known |= set(inspect.signature(create_deep_agent).parameters)
    # enable_read_image_multimodal=None would make the host send a probing request that eats a scripted answer.
    wanted = {"auto_create_workspace": False, "enable_read_image_multimodal": False}
    return create_deep_agent(
        Model(client, ModelRequestConfig(model="scripted")),
        card=AgentCard(id=name, name=name, description="extforge probe"),
        workspace=str(workspace),
        rails=[*rails, skill_rail],
        enable_task_loop=task_loop,
        max_iterations=40,
        restrict_to_work_dir=False,
        system_prompt="You are a test agent.",
        **{key: value for key, value in wanted.items() if key in known},
    )


def make_native_v2(port: int, workspace: Path, name: str, rails: list[Any], *, task_loop: bool) -> Any:
    """Return the agent behind the provider native_v2: the same, configured from a spec."""
    from openjiuwen.agent_teams.harness.native_harness import NativeHarness
    from openjiuwen.harness.schema.deep_agent_spec import DeepAgentSpec

    skills = workspace / "no-skills"
    skills.mkdir(parents=True, exist_ok=True)
    client = {"client_provider": "OpenAI", "api_key": "none", "api_base": f"http://127.0.0.1:{port}/v1"}
    spec = DeepAgentSpec.model_validate(
        {
            "model": {
                "model_client_config": {**client, "verify_ssl": False},
                "model_request_config": {"model": "scripted"},
            },
            "card": {"id": name, "name": name, "description": "extforge probe"},
            "workspace": {"root_path": str(workspace)},
            "rails": [
                {
                    "type": "core.skill_use",
                    "params": {"skills_dir": str(skills), "skill_mode": "all", "include_tools": False},
                }
            ],
            "enable_task_loop": task_loop,
            "enable_read_image_multimodal": False,
            "auto_create_workspace": False,
            "max_iterations": 40,
            "system_prompt": "You are a test agent.",
        }
    )
    return NativeHarness(spec, extra_rails=rails)


async def load(agent: Any, path: Path) -> tuple[Any, list[str]]:
    """Load one extension; return what is needed to unload it, and the references the host gave."""
    if hasattr(agent, "load_plugin"):
        record = await agent.load_plugin(str(path))
        return record, [f"{ref.kind.value}:{ref.identity}" for ref in record.refs]
    refs = await agent.load_harness_config(str(path / "harness_config.yaml"))
    return str(path / "harness_config.yaml"), [str(ref) for ref in refs]


async def unload(agent: Any, record: Any) -> None:
    """Take an extension off again."""
    if hasattr(agent, "unload_extension"):
        await agent.unload_extension(record)
    else:
        await agent.unload_harness_config(record)


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


def watch_tools(agent: Any, watch: Watch, seen: set[str]) -> None:
    """Note each execution of a tool, as opposed to a call that a guard refused."""
    from openjiuwen.core.runner import Runner

    for card in agent.ability_manager.list():
        if card.name in seen:
            continue
        tool = None
        for identity in (getattr(card, "id", None), card.name):
            with contextlib.suppress(Exception):  # an unknown id raises in some versions
                tool = tool or Runner.resource_mgr.get_tool(identity)
        if tool is None:
            continue
        seen.add(card.name)

        def wrap(original: Any, name: str) -> Any:
            async def invoke(*args: Any, **kwargs: Any) -> Any:
                watch.executed.append(name)
                watch.inputs.append(_jsonable(args[0] if args else kwargs.get("inputs")))
                if name in watch.answers:
                    return watch.answers[name]
                return await original(*args, **kwargs)

            return invoke

        tool.invoke = wrap(tool.invoke, card.name)


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
    watch.answers = spec.get("answers") or {}
    from openjiuwen.core.session.agent import create_agent_session

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
        session = create_agent_session(session_id=spec["session"], card=agent.card)
        await session.pre_run(inputs={"query": spec["query"]})
        try:
            asked = {"query": spec["query"], "conversation_id": spec["session"]}
            answer = await asyncio.wait_for(agent.invoke(asked, session=session), TURN_SECONDS)
            facts["answer"] = _jsonable({key: answer.get(key) for key in ("output", "result_type")})
        finally:
            await session.post_run()
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
    facts["executed"] = watch.executed[before[2] :]
    facts["inputs"] = watch.inputs[before[2] :]
    facts["seconds"] = round(time.monotonic() - started, 3)
    return facts


async def stream(agent: Any, model: ScriptedModel, spec: Facts) -> list[Any]:
    """Play what the model says once more, as a stream, and return every piece that reaches the user."""
    from openjiuwen.core.session.agent import create_agent_session

    model.script = [{"role": "assistant", "content": spec["says"]}]
    name = f"{spec['session']}-streamed"
    session = create_agent_session(session_id=name, card=agent.card)
    await session.pre_run(inputs={"query": spec["query"]})

    async def read() -> list[Any]:
        asked = {"query": spec["query"], "conversation_id": name}
        return [_jsonable(piece) async for piece in agent.stream(asked, session=session)]

    try:
        return await asyncio.wait_for(read(), TURN_SECONDS)
    finally:
        await session.post_run()


def _error(exc: BaseException) -> Facts:
    return {"type": type(exc).__name__, "message": str(exc), "trace": traceback.format_exc(limit=-6)}


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
        facts["error"] = _error(exc)
        return facts
    facts["loaded"] = True
    after = snapshot(agent)
    facts["added"] = {key: sorted(set(after[key]) - set(before[key])) for key in after}
    facts["cards"] = [
        {
            "name": card.name,
            "description": card.description,
            "input_params": _jsonable(getattr(card, "input_params", None)),
        }
        for card in agent.ability_manager.list()
        if card.name in facts["added"]["abilities"]
    ]
    try:
        await unload(agent, record)
        facts["left_behind"] = _difference(before, snapshot(agent))
    except Exception as exc:  # noqa: BLE001
        facts["unload_error"] = _error(exc)
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
        together["error"] = {**_error(exc), "extension": extensions[len(records)]["name"]}
        return facts
    together["loaded"] = True
    for name in job.get("stand_ins", []):
        add_stand_in(agent, name)
    seen: set[str] = set()
    watch_tools(agent, watch, seen)
    together["watched_tools"] = sorted(seen)
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
        together["unload_error"] = _error(exc)
    return facts


def missing_requirements(job: Facts) -> list[str]:
    """Return the requirements of the trees that are not installed here."""
    import importlib.metadata
    import re

    missing = []
    for line in sorted({line for e in job["extensions"] for line in e.get("requirements", [])}):
        match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
        try:
            importlib.metadata.version(match[0] if match else line)
        except importlib.metadata.PackageNotFoundError:
            missing.append(line)
    return missing


def limit_memory(megabytes: int) -> None:
    """Keep a runaway extension from taking the machine down with it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    if megabytes > 0 and hasattr(resource, "RLIMIT_AS"):
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def main() -> None:
    """Run the job named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    result = Path(sys.argv[2])
    os.dup2(2, 1)  # the host logs to stdout
    facts: Facts = {"python": sys.version.split()[0]}
    try:
        limit_memory(int(job.get("memory_mb", 0)))
        import importlib.metadata

        import openjiuwen

        facts["openjiuwen"] = _version(openjiuwen, importlib.metadata)
        facts["missing_requirements"] = missing_requirements(job)
        if not facts["missing_requirements"]:
            facts.update(asyncio.run(probe(job, ScriptedModel())))
    except BaseException as exc:  # noqa: BLE001 -- the caller must always get an answer
        facts["crash"] = _error(exc)
    temporary = result.with_suffix(".part")
    temporary.write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")
    os.replace(temporary, result)
    sys.stderr.flush()
    os._exit(0)


def _version(module: Any, metadata: Any) -> str:
    folder = Path(module.__file__).resolve().parents[1]
    for path in folder.glob("openjiuwen-*.dist-info"):
        return path.name.removeprefix("openjiuwen-").removesuffix(".dist-info")
    return str(metadata.version("openjiuwen"))


if __name__ == "__main__":
    main()
