"""Agent packages in the real openJiuwen: which providers take them, and what a turn of one does.

Everything of the host runs in a process of its own, see `agent_process.py`; every tool call is asked for here first.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.chat import is_secret
from extforge_harness.errors import HostMissing
from extforge_harness.gates import MutationLevel
from extforge_harness.host.process import converse, require_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from extforge_harness.chat import Endpoint
    from extforge_harness.gates import ApprovalGate

__all__ = ["HOST_LEVELS", "Task", "Turn", "load_package", "run_turn"]

NEWER = 'pip install "openjiuwen[observability]>=0.1.19" opentelemetry-exporter-otlp-proto-common'
SCRIPT = Path(__file__).with_name("agent_process.py")
# The host's own tools that a native agent has (measured on 0.1.19): one reads skills, the others belong to goals.
HOST_LEVELS = {"skill_tool": MutationLevel.SAFE_READ}
_GOAL_TOOLS = ("get_current_goal", "submit_goal_report")


@dataclass(frozen=True, slots=True)
class Task:
    """One turn of an agent."""

    package: str  # folder of the agent package
    prompt: str
    runtime: str  # native or native_v2
    config: Mapping[str, Any]  # the provider's settings, from `provider_settings`
    endpoint: Endpoint  # its key goes to the host process, and nowhere else
    extensions: Sequence[str] = ()  # loaded beside the agent; their code runs with this user's rights
    workdir: str = "."  # where tools write
    language: str = "en"  # of the host's own prompts: en or cn


@dataclass(slots=True)
class Turn:
    """What an agent did with a prompt."""

    answer: str = ""
    status: str = ""  # of the host: completed, failed, ...
    stop_reason: str = ""  # of the host: answer, error, ...
    offered: list[str] = field(default_factory=list)  # the tools that the model could call
    removed: dict[str, str] = field(default_factory=dict)  # tool -> why it was taken off
    calls: list[dict[str, Any]] = field(default_factory=list)  # tool, arguments, permits, reason, result
    error: dict[str, str] | None = None  # where (start, load or turn), type and message

    @property
    def good(self) -> bool:
        """Whether the turn came to its end with an answer."""
        ended = (self.status, self.stop_reason) == ("completed", "answer")
        return ended and self.error is None and bool(self.answer.strip())


def load_package(package: str, runtimes: Iterable[str], *, python: str | None = None, timeout: float = 120.0) -> Any:
    """Return what openJiuwen makes of a package: its version, the loaded `spec`, and each of `providers`.

    Raises:
        HostMissing: when openJiuwen is not installed.
        HostFailed: when it gives no answer.
    """
    job = {"do": "load", "package": str(Path(package).resolve()), "providers": {name: {} for name in runtimes}}
    return _converse(job, python=python, timeout=timeout)


def run_turn(
    task: Task,
    gate: ApprovalGate,
    *,
    python: str | None = None,
    timeout: float = 600.0,
    on_call: Callable[[str, Any], None] | None = None,
) -> Turn:
    """Run one turn of an agent, and return what it did.

    Args:
        task: the agent, and what it is asked.
        gate: asked about every tool, before the turn and before each call.
        python: a Python that has openJiuwen; default: this one.
        timeout: seconds that the host may take, without those in which a person is asked.
        on_call: told each tool and its arguments before the gate is asked.

    Raises:
        HostMissing: when openJiuwen is not installed.
        HostFailed: when it gives no answer.
    """
    turn = Turn()
    asked: list[dict[str, Any]] = []

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        if "surface" in question:
            names = [name for name in question["surface"] if name not in _GOAL_TOOLS]
            # What a person may still allow stays; what nobody can allow is not even shown to the model.
            hopeless = [
                n for n in names if gate.decision(n) == "deny" or (gate.decision(n) == "ask" and not gate.confirm)
            ]
            turn.removed = {name: gate.reason(name) for name in hopeless}
            return {"remove": [*hopeless, *(name for name in question["surface"] if name in _GOAL_TOOLS)]}
        call = question["call"]
        if on_call is not None:
            on_call(call["tool"], call["arguments"])
        permits = gate.permits(call["tool"], _request_id(call))
        asked.append({**call, "permits": permits, "reason": gate.reason(call["tool"])})
        return asked[-1]

    job = {
        "do": "run",
        "package": str(Path(task.package).resolve()),
        "prompt": task.prompt,
        "provider": task.runtime,
        "config": _with_endpoint(task.config, task.endpoint),
        "extensions": [str(Path(tree).resolve()) for tree in task.extensions],
        "workdir": str(Path(task.workdir).resolve()),
        "language": task.language,
        "max_iterations": 40,
        "session": uuid.uuid4().hex,
    }
    key = task.endpoint.api_key
    secrets = (key,) if is_secret(key) else ()
    facts = _converse(job, python=python, timeout=timeout, answer=answer, secrets=secrets)
    for key in ("answer", "status", "stop_reason", "offered"):
        setattr(turn, key, facts[key])
    error = facts.get("error")
    turn.error = {key: str(error[key]) for key in ("where", "type", "message")} if error else None
    turn.calls = _joined(asked, facts["calls"])
    return turn


def _request_id(call: Mapping[str, Any]) -> str:
    """Return what a person's answer holds for: this call with these arguments.  Some models count their calls anew."""
    digest = hashlib.sha256(json.dumps(call["arguments"], sort_keys=True).encode()).hexdigest()
    return f"{call['request_id']}#{digest[:16]}"


def _with_endpoint(config: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """Return the settings with where the model is."""
    request = {"model": endpoint.model, **config.get("deep_agent", {}).get("model", {}).get("model_request_config", {})}
    client = {
        "client_provider": "OpenAI",
        "api_base": endpoint.base_url,
        "api_key": endpoint.api_key or "none",  # the host wants one, even for a server that does not
        "verify_ssl": endpoint.base_url.startswith("https:"),
    }
    return {"deep_agent": {"model": {"model_client_config": client, "model_request_config": request}}}


def _joined(asked: list[dict[str, Any]], ran: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each call that was asked for with its result; a refused call has none."""
    left = list(ran)
    calls = []
    for call in asked:
        key = (call["request_id"], call["tool"])
        match = next((item for item in left if (item["id"], item["tool"]) == key and call["permits"]), None)
        if match is not None:
            left.remove(match)
        calls.append({**call, "result": match["result"] if match else None})
    return calls


def _converse(job: dict[str, Any], *, python: str | None, timeout: float, **options: Any) -> dict[str, Any]:
    require_host(python)
    with tempfile.TemporaryDirectory(prefix="extforge-agent-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch).resolve()
        told = {**job, "scratch": str(folder)}
        facts = converse(SCRIPT, told, folder, python=python, timeout=timeout, **options)
    if version := facts.get("too_old"):
        words = f"openJiuwen {version} has no providers that take agent packages; 0.1.19 and newer have"
        raise HostMissing(words, NEWER)
    return facts
