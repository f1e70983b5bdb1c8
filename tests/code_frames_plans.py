"""The frames of the chapters about gaps, plans, runtimes, agents, hosts and workflows; see `code_frames`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from support import merged

from extforge.check import check_plan
from extforge.community import read_collection
from extforge.design.designing import design_gaps
from extforge.design.drafting import draft_plan
from extforge.design.gaps import read_gaps
from extforge.errors import PlanError
from extforge_harness.chat import Endpoint
from extforge_verifiers import DocumentError, Finding
from extforge_verifiers.documents import read_document

if TYPE_CHECKING:
    from code_frames import Case, Frame

    from extforge_harness.chat import Chat

DESIGN = {"gap_id": "g1", "extension_name": "sales_deck", "components": ["tool"]}
PARTS = {"tools": "tool", "rails": "rail", "skills": "skill"}


def value_of(case: Case) -> Any:
    """Return the value of an example: a Python expression, or YAML."""
    return case.python() if case.example.language == "python" else read_document(case.data(), "example.yaml").value


# --------------------------------------------------------------------------- gaps and designs


class Answering:
    """A model that gives one answer."""

    endpoint = Endpoint("https://models.example", "m1", "")

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def complete(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"content": json.dumps(self.answer)}


def gaps_file(case: Case) -> Iterable[Finding]:
    """The example is a file of gaps, with the designs that a model answers beside them."""
    answer = None
    if case.example.language == "markdown":
        text = case.example.text
    else:
        value = value_of(case)
        answer = value.pop("answer", None) if isinstance(value, dict) else None
        text = json.dumps(value)
    path = case.folder / ("gaps.md" if case.example.language == "markdown" else "gaps.json")
    path.write_text(text, encoding="utf-8")
    try:
        gaps = read_gaps(str(path))
        found = design_gaps(gaps)
        if answer is not None:
            chat = cast("Chat", Answering(answer))
            found = asyncio.run(draft_plan(chat, gaps, found, rounds=1))
    except (DocumentError, PlanError) as exc:
        return exc.findings
    return [*gaps.findings, *(found.findings if case.code.startswith("design-") else [])]


# --------------------------------------------------------------------------- plans


def plan_file(case: Case) -> Iterable[Finding]:
    """The example is a plan file, or a text with designs in it."""
    path = case.folder / "answer.txt"
    path.write_text(case.python() if case.example.language == "python" else case.example.text, encoding="utf-8")
    return check_plan(str(path)).findings


def designs(case: Case) -> Iterable[Finding]:
    """The example is put into a minimal good design; a list is several."""
    value = value_of(case)
    patches = value if isinstance(value, list) else [value]
    path = case.folder / "plan.json"
    path.write_text(json.dumps([_design(patch, number) for number, patch in enumerate(patches, 1)]), encoding="utf-8")
    skill = case.folder / "collection" / "brand" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brand\ndescription: Use when writing.\n---\nBe kind.\n", encoding="utf-8")
    return check_plan(str(path), collection=read_collection((str(skill.parents[1]),))).findings


def _design(patch: dict[str, Any], number: int) -> dict[str, Any]:
    named = [part for key, part in PARTS.items() if key in patch]
    components = named or (["rail"] if patch.get("kind") == "constraint" else ["tool"])
    whole: dict[str, Any] = merged({**DESIGN, "gap_id": f"g{number}", "components": components}, patch)
    return whole


def missing_plan(case: Case) -> Iterable[Finding]:
    """A plan that is not there."""
    return check_plan(str(case.folder / "missing.plan.yaml")).findings


FRAMES: dict[str, Frame] = {
    "Gaps and designs": gaps_file,
    "Plans: reading": plan_file,
    "Plans: fields": designs,
    "Plans: content": designs,
}

MAKERS: dict[str, Frame] = {"plan-unreadable: bad": missing_plan}
