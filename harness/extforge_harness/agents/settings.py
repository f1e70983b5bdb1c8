"""What the settings of an agent become in each runtime of openJiuwen, and what a runtime does not know.

Measured on openJiuwen 0.1.19: the providers `native`, `native_v2`, `claudecode`, `codex` and `dsh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extforge_harness.agents.resolution import Resolved

__all__ = ["NATIVE", "RUNTIMES", "Settings", "provider_settings"]

NATIVE = ("native", "native_v2")
RUNTIMES = (*NATIVE, "claudecode", "codex", "dsh")
_CLAUDE_MODES = {"ask": "default", "auto": "acceptEdits", "full": "bypassPermissions"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of a provider, and each field that is not in it, with the reason."""

    config: dict[str, Any]
    not_applied: list[tuple[str, str]]


def provider_settings(resolved: Resolved, runtime: str) -> Settings:
    """Return what these settings become in a runtime; fields that are not set leave it to the runtime.

    For the native runtimes approval and plan are not part of the configuration: the gate enforces them.

    Raises:
        ValueError: when there is no such runtime.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"unknown runtime {runtime!r}; known: {', '.join(RUNTIMES)}")
    missing: list[tuple[str, str]] = []
    config = {"claudecode": _claudecode, "codex": _codex, "dsh": _dsh}.get(runtime, _native)(resolved, missing)
    if resolved.executor not in (None, "local"):
        missing.append(("executor", f"executor {resolved.executor!r} is not available here"))
    return Settings(config, missing)


def _native(resolved: Resolved, missing: list[tuple[str, str]]) -> dict[str, Any]:
    del missing
    request: dict[str, Any] = {}
    if resolved.model is not None:
        request["model"] = resolved.model
    if resolved.effort is not None:
        request["reasoning"] = {"effort": resolved.effort}
    return {"deep_agent": {"model": {"model_request_config": request}}} if request else {}


def _claudecode(resolved: Resolved, missing: list[tuple[str, str]]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if resolved.model is not None:
        config["model"] = {"model": resolved.model}
    if resolved.effort is not None:
        missing.append(("effort", "the Claude Code provider has no setting for it"))
    # Its own default is bypassPermissions: nothing asked for must not mean everything allowed.
    config["permission_mode"] = "plan" if resolved.plan else _CLAUDE_MODES[resolved.approval or "ask"]
    if resolved.plan and resolved.approval is not None:
        missing.append(("approval", "plan mode comes first"))
    return config


def _codex(resolved: Resolved, missing: list[tuple[str, str]]) -> dict[str, Any]:
    config: dict[str, Any] = {"bypass_approvals_and_sandbox": resolved.approval == "full"}
    if resolved.model is not None:
        config["model"] = {"model": resolved.model}
        if resolved.approval != "full":
            words = "the Codex provider gives full access as soon as a model is named, whatever was approved"
            missing.append(("approval", words))
    if resolved.effort is not None:
        # Inferred from Codex's own configuration; the summary is the provider's default, which this would replace.
        config["thread_config"] = {"model_reasoning_summary": "detailed", "model_reasoning_effort": resolved.effort}
    if resolved.plan:
        missing.append(("plan", "the Codex provider has no plan mode"))
    return config


def _dsh(resolved: Resolved, missing: list[tuple[str, str]]) -> dict[str, Any]:
    config = {"model": resolved.model, "reasoning_effort": resolved.effort}
    for name, there in (("approval", resolved.approval is not None), ("plan", resolved.plan)):
        if there:
            missing.append((name, "the DSH provider has no setting for it"))
    return {key: value for key, value in config.items() if value is not None}
