"""Gaps for tests: made from a few words, read from files, and designed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from extforge.design.designing import Designed, design_gaps
from extforge.design.gaps import Gap, Gaps, PlacedGap
from extforge_verifiers.documents import read_document
from extforge_verifiers.findings import Where

GAPS = Path(__file__).with_name("gaps")


def gap(feature: str, description: str = "", approach: str = "", name: str = "g1", **fields: Any) -> Gap:
    texts = {"feature": feature, "gap_description": description, "suggested_approach": approach}
    return Gap.model_validate({"id": name, **texts, **fields})


def designed(*gaps: Gap, **options: Any) -> Designed:
    """Design gaps that need not be read."""
    placed = [PlacedGap(gap, Where("gaps.json", line=number)) for number, gap in enumerate(gaps, 1)]
    return design_gaps(Gaps("gaps.json", placed), **{"max_designs": 100, **options})


def design_of(*gaps: Gap, **options: Any) -> dict[str, Any]:
    """Return the last design for these gaps."""
    found: dict[str, Any] = designed(*gaps, **options).plan["designs"][-1]
    return found


def labelled(path: Path) -> tuple[list[Gap], dict[str, dict[str, Any]]]:
    """Return gaps and what is expected of each, from a file with both."""
    value = read_document(path.read_bytes(), str(path)).value
    return [Gap.model_validate(item) for item in value["gaps"]], value["expected"]


def write_gaps(path: Path, *gaps: Gap) -> str:
    path.write_text(json.dumps({"gaps": [g.model_dump() for g in gaps]}, ensure_ascii=False), encoding="utf-8")
    return str(path)
