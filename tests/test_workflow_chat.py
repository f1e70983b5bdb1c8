"""Steps on an OpenAI-compatible endpoint: real HTTP against a scripted server on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply
from packs import execute, make_run, skill, write_skill

from extforge_harness.chat import Endpoint
from extforge_harness.workflows import Persona, StepFailed, load_skill
from extforge_harness.workflows.chat import ChatExecutor

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
KEY = "sk-very-secret-0123456789"


def calls(*wanted: tuple[str, str]) -> Reply:
    """The model calls tools: (name, arguments as text)."""
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(wanted)
    ]
    return Reply(message={"role": "assistant", "content": None, "tool_calls": made})


def executor(server: ChatServer, **tools: Any) -> ChatExecutor:
    return ChatExecutor(Endpoint(server.url, "m", KEY), {name: (SCHEMA, call) for name, call in tools.items()})


async def double(arguments: dict[str, Any]) -> Any:
    return {"success": True, "path": "n.json", "n": 2 * arguments["n"]}


def test_what_a_step_reads(tmp_path: Path) -> None:
    data = {
        "description": "d",
        "prompt": "Base.",
        "context": "fork",
        "agent": "writer",
        "effort": "high",
        "steps": [{"name": "a", "prompt": "do a"}, {"name": "b", "prompt": "do b", "depends": ["a"]}],
        "refs": [
            {"path": "tone.md", "title": "Tone"},
            {"path": "long.md"},
            {"path": "logo.png"},
            {"url": "https://example.org/style", "title": "Style"},
        ],
    }
    root = tmp_path / "deck"
    root.mkdir()
    (root / "tone.md").write_text("Be kind.")
    (root / "long.md").write_text("x" * 20_001)
    (root / "logo.png").write_bytes(b"\x89PNG\xff\x00")
    of = load_skill(write_skill(tmp_path, data))
    with ChatServer("first", "second") as server:
        agents = {"writer": Persona("You write.")}
        result = execute(make_run(of, executor(server), input="Q3 please", agents=agents, overrides={"model": "big"}))
    assert [s.output for s in result.steps] == ["first", "second"]
    body = server.requests[1]
    assert (body["model"], body["reasoning_effort"]) == ("big", "high")
    assert "tools" not in body
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == "You write.\n\nBase."
    parts = body["messages"][1]["content"].split("\n\n")
    assert parts[:7] == [
        "do b", "# Input", "Q3 please", "# Output of a", "first", "# Reference: Tone", "Be kind.",
    ]  # fmt: skip
    assert parts[7:] == [
        "# Further references",
        "- long.md\n- logo.png\n- Style (https://example.org/style)",
        "No tools are available in this step.",
    ]


def test_an_inline_step_has_the_conversation_in_front() -> None:
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    with ChatServer("x") as server:
        execute(make_run(skill(), executor(server), conversation=talk))
    assert server.requests[0]["messages"][:-1] == talk


def test_the_loop_of_tool_calls() -> None:
    with ChatServer(calls(("double", '{"n": 4}'), ("double", '{"n": 5}')), "It is 8.") as server:
        result = execute(make_run(skill(), executor(server, double=double)))
    (step,) = result.steps
    assert (step.output, step.artifacts) == ("It is 8.", ("n.json",))
    assert [(c.name, c.arguments) for c in step.tool_calls] == [("double", {"n": 4}), ("double", {"n": 5})]
    assert server.requests[0]["tools"][0]["function"] == {"name": "double", "description": "", "parameters": SCHEMA}
    answers = [m for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in answers] == ["call_0", "call_1"]
    assert json.loads(answers[0]["content"])["n"] == 8


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        pytest.param(
            "other", '{"n": 1}', "not available in this step; available: ['double']", id="outside the surface"
        ),
        pytest.param("nobody", "{}", "not available", id="no such tool"),
        pytest.param("double", "{n: 1", "not JSON", id="no JSON"),
        pytest.param("double", "[1]", "must be a JSON object, not list", id="no object"),
        pytest.param("double", "{}", "KeyError: 'n'", id="the tool raises"),
    ],
)
def test_a_call_that_cannot_be_made_is_told_to_the_model(name: str, arguments: str, words: str) -> None:
    ran = []

    async def other(arguments: dict[str, Any]) -> str:
        ran.append(arguments)
        return "ran"

    with ChatServer(calls((name, arguments)), "sorry") as server:
        of = skill(allowed_tools=["double"])
        result = execute(make_run(of, executor(server, double=double, other=other)))
    assert result.steps[0].output == "sorry"
    assert result.tools == ("double",)
    assert [t["function"]["name"] for t in server.requests[0]["tools"]] == ["double"]
    assert words in json.loads(server.requests[1]["messages"][-1]["content"])["error"]
    assert ran == []


def test_a_model_that_never_stops_calling_tools_fails_the_step() -> None:
    with ChatServer(calls(("double", '{"n": 1}'))) as server:
        with pytest.raises(StepFailed, match="more than 8 rounds"):
            execute(make_run(skill(), executor(server, double=double)))
        assert len(server.requests) == 9


def test_what_is_busy_is_asked_again_and_what_is_refused_is_not() -> None:
    busy = Reply(raw=b"{}", status=429, headers={"Retry-After": "0"})
    with ChatServer(busy, busy, "at last") as server:
        assert execute(make_run(skill(), executor(server))).steps[0].output == "at last"
    refused = Reply(raw=json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(), status=401)
    with ChatServer(refused) as server:
        run = make_run(skill(), executor(server))
        with pytest.raises(StepFailed, match="HTTP 401") as caught:
            execute(run)
        assert len(server.requests) == 1
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(caught.value) + repr(run.result) + json.dumps(run.result.to_dict()) + repr(run.options)


@pytest.mark.parametrize("raw", [b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": 3}}]}'])
def test_an_answer_that_is_none_fails_the_step(raw: bytes) -> None:
    with ChatServer(Reply(raw=raw)) as server, pytest.raises(StepFailed, match="answer"):
        execute(make_run(skill(), executor(server)))


def test_cancelling_ends_the_request_at_once() -> None:
    async def main(server: ChatServer) -> Any:
        run = make_run(skill([{"name": "a"}, {"name": "b", "depends": ["a"]}]), executor(server))
        task = asyncio.create_task(run.execute())
        while len(server.requests) < 2:
            await asyncio.to_thread(server.asked.wait, 20)
            server.asked.clear()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        return run.result

    with ChatServer("first", Reply(text="never", wait=threading.Event())) as server:
        result = asyncio.run(main(server))
    assert (result.status, [s.output for s in result.steps]) == ("cancelled", ["first"])
