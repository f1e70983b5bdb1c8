"""Run trees in the real openJiuwen, in a process of its own, and judge what it wrote down."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from extforge_harness.acceptance import Acceptance, find_acceptance, load_acceptance
from extforge_harness.errors import SetupFailed
from extforge_harness.host.judge import Trial, judge, plan_turns
from extforge_harness.host.process import converse, require_host
from extforge_harness.setup import find_card, prepared
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Report, Where

__all__ = ["HostRun", "verify_in_host"]

PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True, slots=True)
class HostRun:
    """What came of running trees in the host."""

    version: str  # of openJiuwen
    python: str
    reports: list[Report]
    scratch: str  # where the tools wrote; the caller removes it


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
    require_host(python)
    folder = Path(scratch or tempfile.mkdtemp(prefix="extforge-host-")).resolve()
    trials, early = _prepare(trees, folder)
    with contextlib.ExitStack() as stack:
        for trial in trials:
            _set_up(trial, folder, stack)
        job = {
            "extensions": [{"name": trial.name, "path": str(trial.copy)} for trial in trials],
            "scratch": str(folder / "work"),
            "runtime": runtime,
            **plan_turns(trials),
        }
        facts = converse(PROBE, job, folder, python=python, timeout=timeout)
    (folder / "result.json").write_text(json.dumps(facts), encoding="utf-8")
    reports = judge(trials, facts, str(folder / "work"))
    return HostRun(facts["openjiuwen"], facts["python"], [*early, *reports], str(folder))


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
    return trials, early


def _acceptance(tree: str, name: str) -> tuple[Acceptance, list[Finding]]:
    path = find_acceptance(tree)
    if path is None:
        return Acceptance(name=name), []
    try:
        return load_acceptance(path), []
    except DocumentError as exc:
        return Acceptance(name=name), list(exc.findings)
