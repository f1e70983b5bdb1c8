"""Real agents with a model that speaks from a script: `python scripted_turns.py SCENES.json RESULTS.json`.

A scene is {name, trees, messages, stream, cwd}: an agent of its own, one turn.  Its result has the answer, what was
streamed, and the messages of every request that the model got.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from extforge_harness.host.probe import ScriptedModel, load, make_agent, stream


async def play(scene: dict[str, Any], folder: Path) -> dict[str, Any]:
    from openjiuwen.core.session.agent import create_agent_session

    here = folder / scene.get("cwd", "")
    os.makedirs(here)
    os.chdir(here)
    model = ScriptedModel()
    agent = make_agent(model.port, folder / "workspace", scene["name"], [])
    for tree in scene["trees"]:
        await load(agent, Path(tree))
    model.script = list(scene["messages"])
    facts: dict[str, Any] = {}
    if scene.get("stream"):
        spec = {"says": scene["messages"][0]["content"], "session": "s", "query": "go"}
        facts["streamed"] = await stream(agent, model, spec)
    else:
        session = create_agent_session(session_id=scene["name"], card=agent.card)
        await session.pre_run(inputs={"query": "go"})
        answer = await agent.invoke({"query": "go", "conversation_id": scene["name"]}, session=session)
        await session.post_run()
        facts["answer"] = str(answer.get("output"))
    facts["requests"] = [request["messages"] for request in model.requests]
    return facts


def main() -> None:
    scenes = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    here = Path.cwd()
    results = {scene["name"]: asyncio.run(play(scene, here / scene["name"])) for scene in scenes}
    Path(sys.argv[2]).write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the host leaves threads behind
