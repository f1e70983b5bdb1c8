"""What the processes share in which openJiuwen runs: the talk with whoever started them, and agents that load trees.

Any Python that has openJiuwen (0.1.14 or newer) runs this, see `extforge_harness.host.process`; it imports nothing of
ours.  Host behaviour it copes with (measured): logging goes to stdout; a `logs/` folder appears in the working
directory; a SkillUseRail must be on the agent before an extension with skills is loaded, and takes `~/.claude/skills`
when it has no folder of its own; background threads keep the process alive, so it ends with os._exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.metadata
import inspect
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["Facts", "Talk", "do_job", "error_facts", "host_version", "jsonable", "load", "make_agent", "missing_requirements", "record_tools", "send_logs_to", "session_for", "skill_settings", "unload"]  # fmt: skip

Facts = dict[str, Any]
MEMORY = 8192 << 20  # bytes of address space; the host maps about 3 GB before it does anything


class Talk:
    """The conversation with the process that started this one, one line of JSON each way."""

    def __init__(self) -> None:
        self.heard, self.out = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
        # The host logs to standard output, and a program that a tool starts may read standard input.
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self.lock = asyncio.Lock()
        with contextlib.suppress(ImportError, AttributeError):  # Windows
            import resource

            # A runaway extension must not take the machine down with it.
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def hear(self) -> Facts:
        found: Facts = json.loads(self.heard.readline())
        return found

    def say(self, message: Facts) -> None:
        print(json.dumps(message, ensure_ascii=True, default=repr), file=self.out, flush=True)

    async def ask(self, question: Facts) -> Facts:
        async with self.lock:
            self.say({"ask": question})
            return await asyncio.to_thread(self.hear)


def do_job(do: Callable[[Facts, Talk], Facts]) -> None:
    """Do the one job that this process was started for, say what came of it, and end."""
    talk = Talk()
    try:
        facts = do(talk.hear(), talk)
    except BaseException as exc:  # noqa: BLE001 -- the other side must always get an answer
        facts = {"crash": error_facts(exc)}
    talk.say({"done": facts})
    sys.stderr.flush()
    os._exit(0)


def error_facts(exc: BaseException) -> Facts:
    """Return an exception as facts."""
    inner = getattr(exc, "error", None)  # a ProviderStartupError says there what the matter is
    trace = "".join(traceback.format_exception(exc, limit=-6))
    return {"type": type(exc).__name__, "message": str(getattr(inner, "message", "") or exc), "trace": trace}


def jsonable(value: Any) -> Any:
    """Return a value as JSON types; what has none is its repr()."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    try:
        return json.loads(json.dumps(value, ensure_ascii=False, default=repr))
    except (TypeError, ValueError):
        return repr(value)


def host_version() -> str:
    """Return which openJiuwen this is: that of the imported one, wherever others lie."""
    import openjiuwen

    for path in Path(openjiuwen.__path__[0]).resolve().parent.glob("openjiuwen-*.dist-info"):
        return path.name.removeprefix("openjiuwen-").removesuffix(".dist-info")
    return importlib.metadata.version("openjiuwen")


def missing_requirements(trees: list[str]) -> list[str]:
    """Return the lines of the trees' requirements.txt whose packages are not installed here."""
    lines: set[str] = set()
    for tree in trees:
        with contextlib.suppress(FileNotFoundError):
            text = (Path(tree) / "requirements.txt").read_text(encoding="utf-8", errors="replace")
            lines.update(line.strip() for line in text.splitlines())
    missing = []
    for line in sorted(line for line in lines if line and not line.startswith(("#", "-"))):
        match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
        try:
            importlib.metadata.version(match[0] if match else line)
        except importlib.metadata.PackageNotFoundError:
            missing.append(line)
    return missing


def send_logs_to(folder: Path) -> None:
    """Keep the host's log files out of the folder where the agent works: relative paths follow the working directory."""
    with contextlib.suppress(Exception):  # versions differ; the logs are no use to anybody here
        from openjiuwen.core.common.logging.log_config import configure_log_config

        configure_log_config({"log_path": str(folder), "output": ["console"]})


# --------------------------------------------------------------------------- agents


def skill_settings(workspace: Path) -> Facts:
    """Return what a SkillUseRail is made with, so that it has no skills but those of extensions."""
    skills = workspace / "no-skills"
    skills.mkdir(parents=True, exist_ok=True)
    return {"skills_dir": str(skills), "skill_mode": "all", "include_tools": False}


def make_agent(name: str, workspace: Path, rails: list[Any], *, client: Facts, request: Facts, **settings: Any) -> Any:
    """Return a fresh DeepAgent with a SkillUseRail, in a workspace of its own.

    Args:
        name: of the agent.
        workspace: a folder that is made.
        rails: which it has besides.
        client: of the model, for ModelClientConfig.
        request: of the model, for ModelRequestConfig.
        settings: for create_deep_agent.
    """
    from openjiuwen.core.foundation.llm import Model, ModelClientConfig, ModelRequestConfig
    from openjiuwen.core.single_agent.schema.agent_card import AgentCard
    from openjiuwen.harness.factory import create_deep_agent
    from openjiuwen.harness.rails import SkillUseRail
    from openjiuwen.harness.schema.config import DeepAgentConfig

    skills = skill_settings(workspace)
    skill_rail = SkillUseRail(**{**skills, "skills_dir": [skills["skills_dir"]]})
    known = {field.name for field in dataclasses.fields(DeepAgentConfig)}
    known |= set(inspect.signature(create_deep_agent).parameters)
    # enable_read_image_multimodal=None would make the host send a probing request of its own.
    wanted = {"auto_create_workspace": False, "enable_read_image_multimodal": False}
    return create_deep_agent(
        Model(ModelClientConfig(client_provider="OpenAI", **client), ModelRequestConfig(**request)),
        card=AgentCard(id=name, name=name, description="extforge"),
        workspace=str(workspace),
        rails=[*rails, skill_rail],
        restrict_to_work_dir=False,
        **settings,
        **{key: value for key, value in wanted.items() if key in known},
    )


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


def record_tools(agent: Any, executed: list[Facts], answers: Facts | None = None) -> None:
    """Note `tool`, `arguments` and `result` of each tool that is really executed: a guard refuses some calls.

    A tool that is in `answers` returns what stands there, and is not run.
    """
    from openjiuwen.core.runner import Runner

    for card in agent.ability_manager.list():
        tool = None
        for identity in (getattr(card, "id", None), card.name):
            with contextlib.suppress(Exception):  # an unknown id raises in some versions
                tool = tool or Runner.resource_mgr.get_tool(identity)
        if tool is not None:
            tool.invoke = _recorded(tool.invoke, card.name, executed, answers)


def _recorded(original: Any, name: str, executed: list[Facts], answers: Facts | None) -> Any:
    async def invoke(*args: Any, **kwargs: Any) -> Any:
        note: Facts = {"tool": name, "arguments": jsonable(args[0] if args else kwargs.get("inputs"))}
        executed.append(note)
        result = answers[name] if answers and name in answers else await original(*args, **kwargs)
        note["result"] = jsonable(result)
        return result

    return invoke


@contextlib.asynccontextmanager
async def session_for(agent: Any, session_id: str, query: str) -> AsyncIterator[tuple[Facts, Any]]:
    """Give what `agent.invoke` and `agent.stream` take for one turn: its inputs and its session."""
    from openjiuwen.core.session.agent import create_agent_session

    session = create_agent_session(session_id=session_id, card=agent.card)
    await session.pre_run(inputs={"query": query})
    try:
        yield {"query": query, "conversation_id": session_id}, session
    finally:
        await session.post_run()
