"""Start a process in which openJiuwen runs, and talk with it: a job, questions and answers, what came of it.

It gets a scratch folder as working directory and home, a clean environment and a deadline.  Secrets travel in the job,
never in a file, an argument or the environment, and are taken out of whatever comes back.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import HostFailed
from extforge_harness.host.run import environment_for, kill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["converse"]

_HIDDEN = "[secret]"


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
        folder: an empty folder to run in.
        python: a Python that has openJiuwen; default: this one.
        timeout: seconds that it may take, without those that `answer` takes.
        answer: answers its questions, which may mean asking a person.
        secrets: texts that must not come back.

    Raises:
        HostFailed: when it ends without an answer, or takes too long.
    """
    (folder / "work").mkdir(parents=True)
    log = folder / "host.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 -- running it is the point
            [python or sys.executable, "-B", str(script)],
            cwd=folder / "work",
            env=environment_for(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        deadline = _Deadline(process, timeout)
        try:
            facts = _talk(process, job, answer, deadline)
        finally:
            deadline.stop()
            kill(process)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what could not be sent is not missed
                    pipe.close()  # type: ignore[union-attr]
    if deadline.passed:
        raise HostFailed(f"the host process took longer than {timeout:g} seconds (--timeout)")
    if facts is None:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        words = f"the host process ended without an answer (exit {process.returncode}): {' | '.join(last)}"
        raise HostFailed(_hide(words, secrets))
    found: dict[str, Any] = _hide(facts, secrets)
    return found


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
        kill(self.process, wait=False)


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
