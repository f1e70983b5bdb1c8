"""A scripted OpenAI-compatible server on 127.0.0.1: each reply in turn, every request kept."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What the server answers: a text or message of the model, or any bytes."""

    text: str | None = None
    message: dict[str, Any] | None = None
    raw: bytes | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None  # answer only when it is set
    drip: bool = False  # a byte every 50 ms: each in time, all of them not

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        message = self.message or {"role": "assistant", "content": self.text or ""}
        return json.dumps({"id": "x", "object": "chat.completion", "choices": [{"message": message}]}).encode()


class ChatServer:
    """Serves the replies in order; the last one again and again."""

    def __init__(self, *replies: Reply | str) -> None:
        self.replies = [Reply(text=r) if isinstance(r, str) else r for r in replies]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.asked, self.closing = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reply = outer.replies[min(len(outer.requests), len(outer.replies) - 1)]
                outer.requests.append(json.loads(body))
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                outer.paths.append(self.path)
                outer.asked.set()
                if reply.wait is not None:
                    reply.wait.wait(30)
                try:
                    self.send_response(reply.status)
                    headers = {"Content-Type": "application/json", "Content-Length": str(len(reply.body()))}
                    for key, value in {**headers, **reply.headers}.items():
                        self.send_header(key, value)
                    self.end_headers()
                    for byte in reply.body() if reply.drip else ():
                        self.wfile.write(bytes([byte]))
                        outer.closing.wait(0.05)
                    if not reply.drip:
                        self.wfile.write(reply.body())
                except ConnectionError:
                    pass  # the client has gone

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        for reply in self.replies:
            if reply.wait is not None:
                reply.wait.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
