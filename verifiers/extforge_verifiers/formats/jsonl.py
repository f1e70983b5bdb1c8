"""JSON Lines (.jsonl, .ndjson): one JSON value per line (jsonlines.org; RFC 8259 for each)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from extforge_verifiers.findings import invalid
from extforge_verifiers.texts import check_text, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_lines", "check_text"]

_MOST = 5
_LONGEST = 32 << 20  # characters of a line


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def check_lines(artifact: Artifact) -> Iterator[Finding]:
    """Fake: one pretty-printed document, or a log, saved as records.jsonl."""
    records = bad = 0
    for number, line in enumerate(lines(artifact, _LONGEST), 1):
        if not line.strip():
            continue
        try:
            json.loads(line, parse_constant=_refuse, parse_int=len)
        except (ValueError, RecursionError) as exc:
            bad += 1
            if bad <= _MOST:
                yield invalid(
                    "json-syntax", f"line {number} is not JSON: {exc}", line=number
                )
            continue
        records += 1
    artifact.facts["records"] = records
