"""Run a format's checks over one file and say what came of it.

This module and what it imports are the contract tier: standard library only, because generated tools carry a
copy of it and check their own files with it before they claim success.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge_verifiers.artifact import (
    Artifact,
    ArtifactUnreadable,
    BudgetExceeded,
    Limits,
)
from extforge_verifiers.findings import (
    Finding,
    Report,
    Severity,
    Undetermined,
    invalid,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Check = Callable[[Artifact], Iterator[Finding]]

__all__ = ["Requirement", "check_file", "parse_requirement"]

_REQUIREMENT = r"\s*([a-z_]{1,32})\s*(>=|<=|==|=|>|<)\s*(\d{1,12})\s*"
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">=": lambda have, want: have >= want,
    "<=": lambda have, want: have <= want,
    "==": lambda have, want: have == want,
    "=": lambda have, want: have == want,
    ">": lambda have, want: have > want,
    "<": lambda have, want: have < want,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on a fact, such as `slides>=3`."""

    fact: str
    operator: str
    value: int

    def __str__(self) -> str:
        return f"{self.fact}{self.operator}{self.value}"


def parse_requirement(text: str) -> Requirement:
    """Return the bound written as `slides>=3`; raise ValueError saying how to write one."""
    match = re.fullmatch(_REQUIREMENT, text)
    if match is None:
        raise ValueError(f"{text!r} is not a requirement; write for example slides>=3")
    return Requirement(match[1], match[2], int(match[3]))


def check_file(
    path: str | os.PathLike[str],
    kind: str,
    checks: Mapping[str, Check],
    requirements: Iterable[Requirement] = (),
    limits: Limits | None = None,
) -> Report:
    """Return what `checks`, run in order, found in the file; never raise because the file is bad.

    After a check that found an error the later ones are skipped, not passed: they may assume what it checked.
    """
    try:
        artifact = Artifact(path, limits)
    except ArtifactUnreadable as exc:
        missing = Finding(
            "artifact-missing",
            f"cannot be read: {exc}",
            failure_id="artifact_not_created",
        )
        return Report(str(path), kind, checked=("exists",), findings=(missing,))
    checked: list[str] = []
    skipped: dict[str, str] = {}
    findings: list[Finding] = []
    question = ""
    with artifact:
        artifact.facts["size_bytes"] = artifact.size
        for name, check in checks.items():
            if (cause := _first_error(findings)) is not None:
                skipped[name] = f"after {cause}"
                continue
            try:
                findings.extend(_guarded(check, artifact))
            except ImportError as exc:
                skipped[name] = f"needs {exc.name or exc}, which is not installed"
                continue
            except Undetermined as exc:
                skipped[name] = question = str(exc)
                continue
            checked.append(name)
        for requirement in requirements:
            if _first_error(findings) is None:
                checked.append(str(requirement))
                findings.extend(_check_requirement(requirement, artifact.facts))
            else:
                skipped[str(requirement)] = "the file is not sound"
        return Report(
            str(path),
            kind,
            tuple(checked),
            skipped,
            artifact.facts,
            tuple(findings),
            question,
        )


def _first_error(findings: list[Finding]) -> str | None:
    return next((f.code for f in findings if f.severity is Severity.ERROR), None)


def _guarded(check: Check, artifact: Artifact) -> Iterator[Finding]:
    """Run one check; what it cannot bear becomes a finding, so that no file takes others down with it."""
    try:
        yield from check(artifact)
    except (ImportError, Undetermined):
        raise
    except BudgetExceeded as exc:
        yield invalid("budget-exceeded", str(exc))
    except OSError as exc:
        yield Finding(
            "artifact-missing",
            f"cannot be read: {exc}",
            failure_id="artifact_not_created",
        )
    except MemoryError:
        yield invalid("budget-exceeded", "needs more memory than there is")
    except Exception as exc:  # noqa: BLE001 -- a bug of ours must not look like a good file, nor stop the run
        yield Finding(
            "check-crashed",
            f"the verifier failed on this file ({type(exc).__name__}: {exc}); please report it",
        )


def _check_requirement(
    requirement: Requirement, facts: Mapping[str, Any]
) -> Iterator[Finding]:
    have = facts.get(requirement.fact)
    if not isinstance(have, int) or isinstance(have, bool):
        known = ", ".join(
            sorted(
                k
                for k, v in facts.items()
                if isinstance(v, int) and not isinstance(v, bool)
            )
        )
        yield invalid(
            "requirement-unproven",
            f"{requirement} is required, but nothing here counts that (known: {known})",
        )
    elif not _COMPARE[requirement.operator](have, requirement.value):
        yield invalid(
            "requirement-unmet",
            f"{requirement} is required, but it has {requirement.fact}={have}",
        )
