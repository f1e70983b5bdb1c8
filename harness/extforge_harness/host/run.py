"""Run trees in the real openJiuwen, in a process of its own, and judge what it wrote down.

The process gets a scratch folder as working directory and home, a clean environment, a memory limit and a
deadline.  It runs the trees' code with this user's rights: it is no sandbox.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extforge_harness.acceptance import Acceptance, find_acceptance, load_acceptance
from extforge_harness.errors import HostFailed, HostMissing, Missing, SetupFailed
from extforge_harness.host.judge import Trial, judge, plan_turns
from extforge_harness.setup import find_card, prepared
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Report, Where

__all__ = ["HostRun", "environment_for", "host_available", "kill", "verify_in_host"]

INSTALL = 'pip install "openjiuwen[observability]" opentelemetry-exporter-otlp-proto-common'
PROBE = Path(__file__).with_name("probe.py")
MEMORY_MB = 8192  # address space; the host maps about 3 GB before it does anything
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TZ", "LD_LIBRARY_PATH", "OPENJIUWEN_EXTENSION_FONT")


@dataclass(frozen=True, slots=True)
class HostRun:
    """What came of running trees in the host."""

    version: str  # of openJiuwen
    python: str
    reports: list[Report]
    scratch: str  # where the tools wrote; the caller removes it


def host_available(python: str | None = None) -> bool:
    """Say whether openJiuwen can be imported here, or by another Python."""
    if python is None or python == sys.executable:
        return importlib.util.find_spec("openjiuwen") is not None
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('openjiuwen') is None)"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as exc:
        words = getattr(exc, "strerror", None) or str(exc)
        raise Missing(f"{python} cannot be run: {words}", "name a Python that has openJiuwen with --python") from None
    return done.returncode == 0


def verify_in_host(
    trees: list[str],
    *,
    python: str | None = None,
    timeout: float = 300.0,
    scratch: str | None = None,
    runtime: str = "native",
) -> HostRun:
    """Load and run the trees, each alone and all together, and return a report for each.

    Args:
        trees: roots of extension trees; copies of them are run.
        python: a Python that has openJiuwen; default: this one.
        timeout: seconds that the whole run may take.
        scratch: an empty folder to run in; default: a temporary one.
        runtime: `native` or `native_v2` (openJiuwen 0.1.19): which of the host's own agents loads them.

    Raises:
        HostMissing: when openJiuwen, or something a tree requires, is not installed there.
        HostFailed: when the host process gives no answer.
    """
    if not host_available(python):
        raise HostMissing(f"openJiuwen is not installed for {python or 'this Python'}", INSTALL)
    folder = Path(scratch or tempfile.mkdtemp(prefix="extforge-host-")).resolve()
    trials, early = _prepare(trees, folder)
    with contextlib.ExitStack() as stack:
        for trial in trials:
            _set_up(trial, folder, stack)
        facts = _run(_job(trials, folder, runtime), folder, python or sys.executable, timeout)
    if missing := facts.get("missing_requirements"):
        raise HostMissing(
            f"the trees require packages that are not installed: {', '.join(missing)}",
            f"pip install {' '.join(missing)}",
        )
    if "crash" in facts:
        crash = facts["crash"]
        raise HostFailed(f"the host process failed: {crash['type']}: {crash['message']}")
    reports = judge(trials, facts, str(folder / "work"))
    return HostRun(facts["openjiuwen"], facts["python"], [*early, *reports], str(folder))


def _job(trials: list[Trial], folder: Path, runtime: str) -> dict[str, Any]:
    return {
        "extensions": [{"name": t.name, "path": str(t.copy), "requirements": _requirements(t.copy)} for t in trials],
        "scratch": str(folder / "work"),
        "memory_mb": MEMORY_MB,
        "runtime": runtime,
        **plan_turns(trials),
    }


def _set_up(trial: Trial, folder: Path, stack: contextlib.ExitStack) -> None:
    """Make what its tools need around them; what cannot be made is a finding."""
    for index, test in enumerate(trial.acceptance.tool_tests):
        card = find_card(str(trial.copy), test.tool_name)
        if test.setup is None:
            continue
        own = folder / "setups" / f"{trial.name}-{index}"
        own.mkdir(parents=True)
        try:
            environment = stack.enter_context(prepared(test.setup, card[1]["options"] if card else {}, own))
        except SetupFailed as exc:
            words = f"{test.tool_name!r} could not be tried: {exc}"
            trial.problems.append(Finding("host-setup", words, where=Where(trial.tree)))
            continue
        trial.environments[index] = environment


def _prepare(trees: list[str], folder: Path) -> tuple[list[Trial], list[Report]]:
    """Copy the trees, and read what to try on them."""
    trials: list[Trial] = []
    early: list[Report] = []
    for tree in trees:
        name = os.path.basename(os.path.abspath(tree))
        copy = folder / "trees" / "openjiuwen" / "extensions" / "harness" / name
        if copy.exists():
            words = f"two trees are named {name!r}; they cannot be loaded together"
            early.append(
                Report(tree, "extension", ("host",), {}, {}, (Finding("host-name-twice", words, where=Where(tree)),))
            )
            continue
        shutil.copytree(
            tree, copy, symlinks=False, ignore=shutil.ignore_patterns("__pycache__"), ignore_dangling_symlinks=True
        )
        acceptance, problems = _acceptance(tree, name)
        trials.append(Trial(name, tree, copy, acceptance, problems))
    (folder / "work").mkdir(parents=True, exist_ok=True)
    return trials, early


def _acceptance(tree: str, name: str) -> tuple[Acceptance, list[Finding]]:
    path = find_acceptance(tree)
    if path is None:
        return Acceptance(name=name), []
    try:
        return load_acceptance(path), []
    except DocumentError as exc:
        return Acceptance(name=name), list(exc.findings)


def _requirements(copy: Path) -> list[str]:
    path = copy / "requirements.txt"
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]


def _run(job: dict[str, Any], folder: Path, python: str, timeout: float) -> dict[str, Any]:
    job_file, result = folder / "job.json", folder / "result.json"
    job_file.write_text(json.dumps(job, ensure_ascii=False), encoding="utf-8")
    log = folder / "host.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 -- running the trees is what we are asked for
            [python, str(PROBE), str(job_file), str(result)],
            cwd=folder / "work",
            env=environment_for(folder),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            kill(process)
            raise HostFailed(f"the host process took longer than {timeout:g} seconds (--timeout)") from None
        except BaseException:
            kill(process)
            raise
        kill(process)
    if not result.is_file():
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        raise HostFailed(f"the host process ended without an answer (exit {process.returncode}): {' | '.join(last)}")
    facts: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return facts


def environment_for(folder: Path) -> dict[str, str]:
    """Return the environment of a host process: nothing of the user's, and a home below `folder`."""
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
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
    (folder / "home").mkdir(exist_ok=True)
    return environment


def kill(process: subprocess.Popen[Any], *, wait: bool = True) -> None:
    """End the process and whatever it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    if wait:
        process.wait()
