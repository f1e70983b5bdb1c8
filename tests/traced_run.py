"""A real agent with openJiuwen's tracing on: `python traced_run.py TREE TOOL CALLS.json` in the folder to work in.

Writes spans/traces-*.jsonl, the way openJiuwen's `file` exporter does, and transcript.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from extforge_harness.host.probe import ScriptedModel, load, make_agent, tool_call

WORKSPACE = Path("workspace").absolute()
MESSAGES: list[dict[str, object]] = []


async def run(tree: Path, tool: str, calls: list[dict[str, object]], answer: str) -> None:
    from openjiuwen.core.session.agent import create_agent_session
    from openjiuwen.extensions.observability.config import ObservabilityConfig
    from openjiuwen.harness.observability import acquire_observability, close_agent_run_span, open_agent_run_span
    from opentelemetry import trace

    acquire_observability(ObservabilityConfig(exporter="file", traces_dir="spans"))
    model = ScriptedModel()
    model.script = [tool_call(tool, inputs, f"call_{number}") for number, inputs in enumerate(calls)]
    model.script.append({"role": "assistant", "content": answer})
    agent = make_agent(model.port, WORKSPACE, "traced", [])
    await load(agent, tree)
    handle = open_agent_run_span(session_id="s", mode="agent.fast")
    session = create_agent_session(session_id="s", card=agent.card)
    await session.pre_run(inputs={"query": "go"})
    await agent.invoke({"query": "go", "conversation_id": "s"}, session=session)
    await session.post_run()
    close_agent_run_span(handle, session_id="s", output=answer)
    MESSAGES.extend([*model.requests[-1]["messages"], {"role": "assistant", "content": answer}])
    trace.get_tracer_provider().force_flush()  # type: ignore[attr-defined]


if __name__ == "__main__":
    WORKSPACE.mkdir()
    spec = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2], spec["calls"], spec["answer"]))
    Path("transcript.json").write_text(json.dumps({"messages": MESSAGES}, ensure_ascii=False), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # the host leaves threads behind
