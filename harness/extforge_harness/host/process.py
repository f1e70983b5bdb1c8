"""Start a process in which openJiuwen runs, and talk with it: a job, questions and answers, what came of it.

It gets a scratch folder as working directory and home, a clean environment, a memory limit and a deadline.  It runs the
code of extensions with this user's rights: it is no sandbox.  Secrets travel in the job, never in a file, an argument or
the environment, and are taken out of whatever comes back.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import HostFailed, HostMissing, Missing

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

__all__ = ["INSTALL", "checked", "command", "converse", "host_available", "kill", "last_words", "require_host", "surroundings"]  # fmt: skip

INSTALL = 'pip install "openjiuwen[observability]" opentelemetry-exporter-otlp-proto-common'
_HIDDEN = "[secret]"
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TZ", "LD_LIBRARY_PATH", "OPENJIUWEN_EXTENSION_FONT")
# The scripts import what they share by its full name.  Of what lies beside our package nothing else may be found: that
# may belong to another Python, and a module of an extension may have the name of one of ours.
_START = """\
import runpy, sys
sys.path.insert(0, sys.argv[1])
import extforge_harness.host
del sys.path[0]
runpy.run_path(sys.argv[2], run_name="__main__")
"""


def host_available(python: str | None = None) -> bool:
    """Say whether openJiuwen can be imported here, or by another Python.

    Raises:
        Missing: when that Python cannot be run.
    """
    if python is None or python == sys.executable:
        return importlib.util.find_spec("openjiuwen") is not None
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('openjiuwen') is None)"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as exc:
        words = getattr(exc, "strerror", None) or str(exc)
        raise Missing(f"{python} cannot be run: {words}", "name a Python that has openJiuwen with --python") from None
    return done.returncode == 0


def require_host(python: str | None = None) -> None:
    """Raise HostMissing unless openJiuwen can be imported here, or by another Python."""
    if not host_available(python):
        raise HostMissing(f"openJiuwen is not installed for {python or 'this Python'}", INSTALL)


def command(script: Path, python: str | None = None) -> list[str]:
    """Return what runs a script of this folder in a Python that has openJiuwen; default: this one."""
    return [python or sys.executable, "-P", "-c", _START, str(Path(__file__).parents[2]), str(script)]


def surroundings(folder: Path, *kept: str) -> dict[str, Any]:
    """Return what a process is started with: pipes, and nothing of the user's but the variables named in `kept`.

    `folder` gets its working directory, its home and its other files; its standard error belongs in `host.log` there.
    """
    for name in ("work", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    environment = {key: os.environ[key] for key in (*_KEPT, *kept) if key in os.environ}
    environment.update(
        HOME=str(folder / "home"),
        TMPDIR=str(folder),
        OPENJIUWEN_EXTENSION_STATE=str(folder / "state"),
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONIOENCODING="utf-8",
        NO_PROXY="127.0.0.1,localhost",
        no_proxy="127.0.0.1,localhost",
        MPLCONFIGDIR=str(folder / "home"),
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # A session of its own: Ctrl-C is ours to handle, and whatever it starts ends with it.
    return {"cwd": folder / "work", "env": environment, "start_new_session": True, **pipes}


def kill(process: subprocess.Popen[Any] | asyncio.subprocess.Process) -> None:
    """End the process and whatever it started; who has it then waits for it."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def last_words(folder: Path) -> str:
    """Return the end of what a process wrote to its standard error."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = (folder / "host.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return " | ".join(line[:300] for line in lines[-3:]) or "without a word"


def checked(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts, unless they say that there are none.

    Raises:
        HostMissing: when a package that a tree requires is not installed.
        HostFailed: when the process failed.
    """
    if missing := facts.get("missing_requirements"):
        words = f"the trees require packages that are not installed: {', '.join(missing)}"
        raise HostMissing(words, f"pip install {' '.join(missing)}")
    if crash := facts.get("crash"):
        raise HostFailed(f"the host process failed: {crash['type']}: {crash['message']}")
    return facts


def converse(
    script: Path,
    job: dict[str, Any],
    folder: Path,
    *,
    python: str | None = None,
    timeout: float = 300.0,
    answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    secrets: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what the process says when it is done.

    Args:
        script: what it runs.
        job: what it is told.
        folder: a folder of its own.
        python: a Python that has openJiuwen; default: this one.
        timeout: seconds that it may take, without those that `answer` takes.
        answer: answers its questions, which may mean asking a person.
        secrets: texts that must not come back.

    Raises:
        HostMissing: when a package that a tree requires is not installed.
        HostFailed: when it fails, ends without an answer, or takes too long.
    """
    around = surroundings(folder)
    with (folder / "host.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 -- running it is the point
            command(script, python), **around, stderr=log, text=True, encoding="utf-8"
        )
        deadline = _Deadline(process, timeout)
        try:
            facts = _talk(process, job, answer, deadline)
        finally:
            deadline.stop()
            kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what could not be sent is not missed
                    pipe.close()  # type: ignore[union-attr]
    if deadline.passed:
        raise HostFailed(f"the host process took longer than {timeout:g} seconds (--timeout)")
    if facts is None:
        words = f"the host process ended without an answer (exit {process.returncode}): {last_words(folder)}"
        raise HostFailed(_hide(words, secrets))
    return checked(_hide(facts, secrets))


def _talk(
    process: subprocess.Popen[str],
    job: dict[str, Any],
    answer: Callable[[dict[str, Any]], dict[str, Any]] | None,
    deadline: _Deadline,
) -> dict[str, Any] | None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        print(json.dumps(job), file=process.stdin, flush=True)  # on one line: ASCII has no other line breaks
        for line in process.stdout:
            message = json.loads(line)
            if "done" in message:
                found: dict[str, Any] = message["done"]
                return found
            deadline.stop()
            reply = answer(message["ask"]) if answer is not None else {}
            deadline.start()
            print(json.dumps(reply), file=process.stdin, flush=True)
    except (BrokenPipeError, ValueError):  # ValueError: half a line, because it was ended
        return None
    return None


class _Deadline:
    """Ends the process when its time is up; the clock stands while a question is being answered."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self.process, self.left, self.passed = process, seconds, False
        self.start()

    def start(self) -> None:
        self.since = time.monotonic()
        self.timer = threading.Timer(max(self.left, 0.0), self._end)
        self.timer.daemon = True
        self.timer.start()

    def stop(self) -> None:
        self.timer.cancel()
        self.left -= time.monotonic() - self.since

    def _end(self) -> None:
        self.passed = True
        kill(self.process)


def _hide(value: Any, secrets: Sequence[str]) -> Any:
    """Return a value of JSON types without the secrets."""
    if isinstance(value, str):
        for secret in filter(None, secrets):
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, list):
        return [_hide(item, secrets) for item in value]
    if isinstance(value, dict):
        return {_hide(key, secrets): _hide(item, secrets) for key, item in value.items()}
    return value
