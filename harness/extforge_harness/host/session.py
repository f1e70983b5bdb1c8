"""Turns of real openJiuwen agents, in a process of their own.

The process gets a scratch folder as home, a clean environment, and ends with the session.  It runs the trees' code with
this user's rights: it is no sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from extforge_harness.chat import is_secret
from extforge_harness.errors import HostFailed
from extforge_harness.host.process import checked, command, kill, last_words, require_host, surroundings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from extforge_harness.chat import Endpoint

__all__ = ["HostSession", "toolbox", "tools_of"]

SERVE = Path(__file__).with_name("serve.py")
LINE_LIMIT = 64 << 20  # bytes of one answer
START_SECONDS = 180.0  # importing openJiuwen takes some on a cold disk
# What a model behind a company's proxy or certificate needs.
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")  # fmt: skip


class HostSession:
    """A host process; use it with `async with`.  It is started by the first request."""

    def __init__(self, trees: Sequence[str], *, python: str | None = None) -> None:
        """Prepare for these extension trees.

        Args:
            trees: roots of extension trees, loaded in this order.
            python: a Python that has openJiuwen; default: this one.

        Raises:
            HostMissing: when openJiuwen is not installed there.
        """
        require_host(python)
        self.trees, self.python = [os.path.abspath(tree) for tree in trees], python
        self._process: asyncio.subprocess.Process | None = None
        self._folder: Path | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._workdirs: dict[int, str] = {}  # of the turns that run now
        self._numbers = itertools.count(1)
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            kill(process)
            await process.wait()
        if self._reader is not None:
            await self._reader
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def tools(self) -> list[dict[str, Any]]:
        """Return name, description and JSON Schema of everything that an agent with the trees could call.

        Raises:
            HostMissing: when a package that a tree requires is not installed.
            HostFailed: when a tree does not load.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._ask("tools")
        except TimeoutError:
            raise HostFailed(f"the host process did not answer within {START_SECONDS:g} seconds") from None
        found: list[dict[str, Any]] = checked(answer)["tools"]
        return found

    async def turn(
        self,
        query: str,
        *,
        endpoint: Endpoint,
        tools: Sequence[str],
        workdir: str,
        system: str = "",
        model: str | None = None,
        effort: str | None = None,
    ) -> dict[str, Any]:
        """Return `output` and `result_type` of a turn, the tools it was `offered`, and those that were `executed`.

        Raises:
            HostFailed: when the turn raised, the process ended, or it works in another folder right now.
        """
        return await self._ask(
            "turn",
            query=query,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            model=model or endpoint.model,
            effort=effort,
            tools=list(tools),
            workdir=workdir,
            system=system,
        )

    async def call(self, tool: str, arguments: dict[str, Any], *, workdir: str) -> dict[str, Any]:
        """Execute one tool, rails included; return the `message` that a model would read, and what was `executed`.

        Raises:
            HostFailed: when the turn raised, or the process ended.
        """
        return await self._ask("call", tool=tool, arguments=arguments, workdir=workdir)

    async def _ask(self, op: str, **job: Any) -> dict[str, Any]:
        process = await self._start()
        if self._reader is not None and self._reader.done():
            raise HostFailed(self._ended())
        number, workdir = next(self._numbers), job.get("workdir")
        if workdir is not None:
            if others := set(self._workdirs.values()) - {workdir}:
                raise HostFailed(f"the host process still works in {', '.join(others)}; it has one folder at a time")
            self._workdirs[number] = workdir
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._send(process, {"op": op, "id": number, "trees": self.trees, **job})
        try:
            answer = await future
        except asyncio.CancelledError:
            self._send(process, {"op": "cancel", "id": number})
            raise
        finally:
            self._waiting.pop(number, None)
            self._workdirs.pop(number, None)
        if "error" in answer:
            key, words = job.get("api_key", ""), str(answer["error"])
            raise HostFailed(words.replace(key, "[key]") if is_secret(key) else words)
        return answer

    def _send(self, process: asyncio.subprocess.Process, job: dict[str, Any]) -> None:
        if process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(json.dumps(job).encode() + b"\n")

    async def _start(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None:
                self._folder = _scratch_folder()
                around = surroundings(self._folder, *_NETWORK)
                with (self._folder / "host.log").open("wb") as log:
                    self._process = await asyncio.create_subprocess_exec(
                        *command(SERVE, self.python), **around, stderr=log, limit=LINE_LIMIT
                    )
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError):  # an answer longer than the limit: nothing after it can be trusted
            while line := await process.stdout.readline():
                answer = json.loads(line)
                if (future := self._waiting.get(answer.get("id"))) is not None and not future.done():
                    future.set_result(answer)
        for future in self._waiting.values():
            if not future.done():
                future.set_result({"error": self._ended()})

    def _ended(self) -> str:
        assert self._folder is not None
        return f"the host process ended: {last_words(self._folder)}"


def _scratch_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="extforge-host-")).resolve()


async def tools_of(session: HostSession, workdir: str) -> dict[str, Any]:
    """Return the tools of a session's trees as name -> (JSON Schema, async function of the arguments, description); they run with the trees' rails.

    Raises:
        HostMissing: when a package that a tree requires is not installed.
        HostFailed: when a tree does not load.
    """

    def caller(name: str) -> Any:
        async def call(arguments: dict[str, Any]) -> Any:
            facts = await session.call(name, arguments, workdir=workdir)
            return facts["message"]

        return call

    return {tool["name"]: (tool["schema"], caller(tool["name"]), tool["description"]) for tool in await session.tools()}


@contextlib.asynccontextmanager
async def toolbox(
    extension_dirs: Sequence[str], *, workdir: str, python: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Give the tools of extension trees, see `tools_of`, run by a host process that ends with the context.

    Raises:
        HostMissing: when openJiuwen, or a package that a tree requires, is not installed.
        HostFailed: when a tree does not load.
    """
    async with HostSession(extension_dirs, python=python) as session:
        yield await tools_of(session, workdir)
