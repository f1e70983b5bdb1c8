"""What a tool needs around it to be tried offline: an API that answers, a database, a program that does no harm.

Nothing of the generated code knows about trials.  They use what a person who runs the tool would use: the environment
variables of its base URL, its secrets and its database, and the PATH that its program is found on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import SetupFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_harness.acceptance import RecordedAnswer, Setup

__all__ = ["EXTERNAL", "find_card", "prepared"]

EXTERNAL = ("http", "command", "query")
PRIVATE_HOSTS = "OPENJIUWEN_EXTENSION_PRIVATE_HOSTS"
_SCRIPT_SECONDS = 10
# What a script that makes a database has no need to do; it must not reach another file.
_REFUSED = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)


def find_card(tree: str, tool: str) -> tuple[str, dict[str, Any]] | None:
    """Return the work module of a tool, such as `tools.deck`, and the data beside it; None when there is none."""
    for path in sorted(Path(tree).rglob("*.json")):
        if not path.with_suffix(".py").is_file():
            continue
        try:
            card = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(card, dict) and card.get("name") == tool and isinstance(card.get("options"), dict):
            return ".".join(path.relative_to(tree).with_suffix("").parts), card
    return None


@contextlib.contextmanager
def prepared(setup: Setup, options: dict[str, Any], folder: Path) -> Iterator[dict[str, str]]:
    """Make what a setup says, and yield the environment variables that lead a tool to it.

    Args:
        setup: from an acceptance file.
        options: of the tool, from the data beside its work module.
        folder: an own, existing folder for the database and the stand-in program.

    Raises:
        SetupFailed: naming what cannot be made.
    """
    environment = dict(setup.environment)
    with contextlib.ExitStack() as stack:
        if setup.http:
            port = stack.enter_context(_serve(setup.http))
            environment[_variable(options, "base_url_env", "http")] = f"http://127.0.0.1:{port}"
            environment[PRIVATE_HOSTS] = f"127.0.0.1:{port}"
        if setup.http or environment:
            for secret in (options.get("secrets") or {}).values():
                environment.setdefault(str(secret["env"]), "a-secret-for-trials")
        if setup.sqlite is not None:
            name = _variable(options, "database_env", "sqlite")
            environment[name] = _make_database(setup.sqlite, folder / "trial.db")
        if setup.argv:
            _make_program(setup.argv, options, folder)
            environment["PATH"] = os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath)))
        yield environment


def _variable(options: dict[str, Any], key: str, part: str) -> str:
    name = options.get(key)
    if not isinstance(name, str):
        raise SetupFailed(f"the setup has {part}, and the tool has no use for it")
    return name


# --------------------------------------------------------------------------- an API


@contextlib.contextmanager
def _serve(answers: list[RecordedAnswer]) -> Iterator[int]:
    """Serve recorded answers on 127.0.0.1, and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            status, headers, body = _choose(answers, self.command, self.path, self.rfile.read(length))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 -- the names that the base class calls

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _choose(answers: list[RecordedAnswer], method: str, path: str, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for a request; what was not recorded is a 501 that says so."""
    for item in answers:
        same = path if "?" in item.path else path.partition("?")[0]
        if item.method.upper() != method or item.path != same:
            continue
        if item.sent is not None and _parsed(sent) != item.sent:
            words = f"the request carries {sent[:300].decode('utf-8', 'replace')}, not {json.dumps(item.sent)[:300]}"
            return 400, {"Content-Type": "text/plain; charset=utf-8"}, words.encode()
        if item.text is not None:
            return item.status, {"Content-Type": "text/plain; charset=utf-8", **item.headers}, item.text.encode()
        body = b"" if item.status == 204 else json.dumps(item.json_, ensure_ascii=False).encode()
        return item.status, {"Content-Type": "application/json", **item.headers}, body
    words = f"no answer is recorded for {method} {path}"
    return 501, {"Content-Type": "text/plain; charset=utf-8"}, words.encode()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


# --------------------------------------------------------------------------- a database and a program


def _make_database(script: str, path: Path) -> str:
    deadline = time.monotonic() + _SCRIPT_SECONDS
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action in _REFUSED else sqlite3.SQLITE_OK)
            database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
            database.executescript(script)
            database.commit()
    except (sqlite3.Error, sqlite3.Warning) as exc:
        raise SetupFailed(f"the sqlite script of the setup fails: {exc}") from exc
    return str(path)


def _make_program(argv: list[str], options: dict[str, Any], folder: Path) -> None:
    """Put a script in `folder` that has the name of the tool's program, and runs `argv` with its arguments."""
    program = (options.get("argv") or [""])[0]
    if not program:
        raise SetupFailed("the setup has argv, and the tool runs no program")
    if os.path.basename(program) != program:
        raise SetupFailed(f"the tool runs {program}; only a program without a path can be stood in for")
    if sys.platform == "win32":
        raise SetupFailed("a program cannot be stood in for on Windows")
    real = shutil.which(argv[0])
    if real is None:
        raise SetupFailed(f"the program {argv[0]!r} of the setup is not installed here")
    command = " ".join(shlex.quote(item) for item in (os.path.abspath(real), *argv[1:]))
    script = folder / program
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
