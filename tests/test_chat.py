"""The chat client against a real local server: what it sends, what it takes, and what never leaks."""

from __future__ import annotations

import asyncio
import builtins
import datetime as dt
import json
import pickle
import socket
import threading
import time
from email.utils import format_datetime
from typing import Any

import pytest
from chat_server import ChatServer, Reply

from extforge_harness import chat
from extforge_harness.chat import Chat, Endpoint
from extforge_harness.errors import ChatFailed, ChatMalformed, ChatMissing, ChatRefused, ChatTimeout, Missing

KEY = "sk-secret-0123456789"
ASK = [{"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(chat, "_pause", lambda _attempt: 0.001)


def ask(
    server: ChatServer | str, *, timeout: float = 20.0, size_limit: int = 4 << 20, **request: Any
) -> dict[str, Any]:
    url = server if isinstance(server, str) else server.url

    async def run() -> dict[str, Any]:
        async with Chat(Endpoint(url, "m1", KEY), timeout=timeout, size_limit=size_limit) as client:
            return await client.complete(request.pop("messages", ASK), **request)

    return asyncio.run(run())


def test_it_sends_model_messages_tools_options_and_the_key() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    with ChatServer("hi") as server:
        answer = ask(server, tools=[tool], temperature=0, seed=None)
    assert answer == {"role": "assistant", "content": "hi"}
    assert server.requests == [{"model": "m1", "messages": ASK, "tools": [tool], "temperature": 0}]
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_without_a_key_there_is_no_authorization() -> None:
    async def run(url: str) -> None:
        async with Chat(Endpoint(url, "m")) as client:
            await client.complete(ASK)

    with ChatServer("hi") as server:
        asyncio.run(run(server.url))
    assert "authorization" not in server.headers[0]


def test_tool_calls_come_back_in_one_shape() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}, "index": 0}
    bare = {"function": {"name": "g"}}
    with ChatServer(Reply(message={"role": "assistant", "content": None, "tool_calls": [call, bare]})) as server:
        answer = ask(server)
    assert answer["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_servers_are_asked_again_and_then_answer(status: int) -> None:
    with ChatServer(Reply(raw=b"busy", status=status), Reply(raw=b"busy", status=status), "hi") as server:
        assert ask(server)["content"] == "hi"
    assert len(server.requests) == 3


def test_two_more_attempts_and_no_third() -> None:
    with ChatServer(Reply(raw=b"", status=503)) as server, pytest.raises(ChatRefused) as caught:
        ask(server)
    assert caught.value.status == 503
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 422])
def test_other_statuses_are_final(status: int) -> None:
    reply = Reply(raw=b'{"error": {"message": "no such model"}}', status=status, headers={"Location": "/elsewhere"})
    with ChatServer(reply) as server, pytest.raises(ChatRefused, match=f"HTTP {status}.*no such model") as caught:
        ask(server)
    assert caught.value.status == status
    assert server.paths == ["/v1/chat/completions"]


def test_retry_after_is_honoured_in_both_forms() -> None:
    soon = format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1), usegmt=True)
    for header in ("1", soon):
        with ChatServer(Reply(raw=b"", status=429, headers={"Retry-After": header}), "hi") as server:
            before = time.monotonic()
            assert ask(server)["content"] == "hi"
            # A date has whole seconds, so what is left of "in one second" may be little.
            assert time.monotonic() - before >= (0.99 if header == "1" else 0.0)
    assert chat._retry_after(format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))) > 3500
    assert chat._retry_after("soon") is None


def test_a_retry_after_beyond_reason_fails_at_once() -> None:
    with ChatServer(Reply(raw=b"", status=429, headers={"Retry-After": "86400"})) as server, pytest.raises(ChatRefused):
        ask(server)
    assert len(server.requests) == 1


def test_nothing_listening_is_something_missing_and_names_the_endpoint() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ChatMissing, match=f"nothing answers at {url}.*OPENAI_BASE_URL"):
            ask(url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "http://h:99999/v1", "http://[::1/v1"]
)
def test_an_endpoint_where_nobody_listens_is_known_without_asking(url: str) -> None:
    with pytest.raises(ChatMissing, match="nothing answers at"):
        Endpoint(url, "m").reach(2.0)


def test_an_endpoint_that_listens_or_lies_behind_a_proxy_is_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer("hi") as server:
        Endpoint(server.url, "m").reach()
    assert server.requests == []
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    Endpoint("http://no-such-host.invalid/v1", "m").reach()


def test_a_key_that_is_a_mere_word_is_not_taken_out_of_what_is_said() -> None:
    refusal = Reply(raw=b'{"error": {"message": "the result is EMPTY"}}', status=400)

    async def run(url: str) -> None:
        async with Chat(Endpoint(url, "m", "EMPTY")) as client:
            await client.complete(ASK)

    with ChatServer(refusal) as server, pytest.raises(ChatRefused, match="the result is EMPTY"):
        asyncio.run(run(server.url))


def test_a_silent_server_and_a_dripping_one_time_out_without_a_second_request() -> None:
    for reply in (Reply(text="late", wait=threading.Event()), Reply(text="drop by drop", drip=True)):
        with ChatServer(reply) as server, pytest.raises(ChatTimeout, match=r"within 0\.3 seconds"):
            ask(server, timeout=0.3)
        assert len(server.requests) == 1


def test_waiting_for_an_answer_can_be_cancelled() -> None:
    async def run(server: ChatServer) -> None:
        async with Chat(Endpoint(server.url, "m")) as client:
            task = asyncio.create_task(client.complete(ASK))
            await asyncio.to_thread(server.asked.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with ChatServer(Reply(text="late", wait=threading.Event())) as server:
        before = time.monotonic()
        asyncio.run(run(server))
        assert time.monotonic() - before < 10


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"<html>Bad gateway</html>", id="html"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"choices": []}', id="no choice"),
        pytest.param(b'{"choices": [{"message": null}]}', id="null message"),
        pytest.param(b'{"choices": [{"message": {"content": null}}]}', id="says nothing"),
        pytest.param(b'{"choices": [{"message": {"content": [1]}}]}', id="content is a list"),
        pytest.param(b'{"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}', id="call without name"),
        pytest.param(b'{"choices": [{"message": {"tool_calls": [{"function": {"name": 1}}]}}]}', id="name is a number"),
        pytest.param(b'{"choices": [{"message": {"tool_calls": 7}}]}', id="calls are a number"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
    ],
)
def test_what_is_no_message_is_said_to_be_none(raw: bytes) -> None:
    with ChatServer(Reply(raw=raw)) as server, pytest.raises(ChatMalformed):
        ask(server)
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut_off() -> None:
    with ChatServer(Reply(raw=b"x" * 200_000)) as server, pytest.raises(ChatMalformed, match="100,000 bytes"):
        ask(server, size_limit=100_000)


def test_a_connection_that_breaks_in_the_middle_is_not_tried_again() -> None:
    reply = Reply(raw=b'{"choices"', headers={"Content-Length": "1000"})
    with ChatServer(reply) as server, pytest.raises(ChatMalformed, match="broke the connection"):
        ask(server)
    assert len(server.requests) == 1


def test_the_key_appears_in_no_message_repr_or_pickle() -> None:
    reply = Reply(raw=json.dumps({"error": {"message": f"Incorrect API key: {KEY}\x1b[31m"}}).encode(), status=401)
    with ChatServer(reply) as server, pytest.raises(ChatRefused) as caught:
        ask(server)
    said = f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {pickle.dumps(caught.value)!r}"
    assert "[key]" in said
    assert "\x1b" not in said
    assert KEY not in said
    assert KEY not in repr(Endpoint("http://h/v1", "m", KEY))


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        pytest.param({}, "OPENAI_BASE_URL and OPENAI_MODEL", id="nothing is set"),
        pytest.param({"OPENAI_API_KEY": KEY}, "OPENAI_MODEL", id="no model"),
        pytest.param({"OPENAI_BASE_URL": "http://h/v1"}, "OPENAI_MODEL", id="no model, no key"),
        pytest.param({"OPENAI_BASE_URL": "file:///etc/passwd", "OPENAI_MODEL": "m"}, "http", id="not http"),
        pytest.param({"OPENAI_BASE_URL": f"http://u:{KEY}@h/v1", "OPENAI_MODEL": "m"}, "OPENAI_API_KEY", id="password"),
        pytest.param(
            {"OPENAI_BASE_URL": "http://h", "OPENAI_MODEL": "m", "OPENAI_API_KEY": f"{KEY}\r\nX: y"}, "KEY", id="header"
        ),
    ],
)
def test_a_missing_or_unusable_endpoint_is_named(environment: dict[str, str], words: str) -> None:
    with pytest.raises(ChatMissing, match=words) as caught:
        Endpoint.from_environment(environment=environment)
    assert isinstance(caught.value, Missing)
    assert KEY not in str(caught.value)


def test_the_environment_gives_an_endpoint_and_arguments_come_first() -> None:
    environment = {"OPENAI_BASE_URL": "http://h/v1/", "OPENAI_MODEL": "m", "OPENAI_API_KEY": KEY}
    assert Endpoint.from_environment(environment=environment) == Endpoint("http://h/v1", "m", KEY)
    own = Endpoint.from_environment("http://o/v1", "n", environment)
    assert (own.base_url, own.model) == ("http://o/v1", "n")
    public = Endpoint.from_environment(environment={"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m"})
    assert public.base_url == "https://api.openai.com/v1"


def test_a_missing_httpx_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "httpx":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ChatMissing, match=r'httpx is not installed.*pip install "extforge\[chat\]"'):
        Chat(Endpoint("http://h/v1", "m"))


def test_all_failures_can_be_caught_together() -> None:
    assert {ChatRefused, ChatTimeout, ChatMalformed} == set(ChatFailed.__subclasses__())
