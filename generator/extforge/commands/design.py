"""`extforge design`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from extforge.commands.inputs import OutFile, need
from extforge.commands.plans import plan_options
from extforge.commands.printing import (
    EXIT_BAD,
    EXIT_GOOD,
    Examples,
    count,
    emit,
    emit_json,
    output_options,
    print_findings,
    say,
    tell,
)

if TYPE_CHECKING:
    from extforge.community import Collection
    from extforge.design.designing import Designed
    from extforge.design.gaps import Gaps

__all__ = ["design"]


@click.command(
    cls=Examples,
    examples=[
        "extforge design gaps.json -o my.plan.yaml",
        "extforge design assessment.md --explain",
        "extforge design gaps.yaml --skills-from ~/skills -o my.plan.yaml",
        "extforge design gaps.json --llm --model qwen3 --base-url http://127.0.0.1:8000/v1 -o my.plan.yaml",
    ],
)
@click.argument("gaps", metavar="GAPS")
@click.option(
    "-o",
    "--output",
    type=OutFile(),
    help="Write the plan here (*.json: as JSON), not to standard output.",
)
@click.option("--force", is_flag=True, help="With -o: overwrite a plan that says something else.")
@plan_options
@click.option("--explain", is_flag=True, help="Say for every decision which words and which rule led to it.")
@click.option("--llm", is_flag=True, help="Let a model draft the plan; extforge's checks judge it.")
@click.option("--base-url", metavar="URL", help="With --llm: where the model is (default: $OPENAI_BASE_URL).")
@click.option(
    "--model", metavar="NAME", help="With --llm: which model (default: $OPENAI_MODEL). The key is $OPENAI_API_KEY."
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 10),
    default=3,
    show_default=True,
    help="With --llm: how many answers the model may try.",
)
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=120.0, show_default=True, help="With --llm: seconds per answer."
)
@click.option("--fallback", is_flag=True, help="With --llm: when the model fails, take the offline design.")
@output_options
def design(
    gaps: str,
    output: str | None,
    force: bool,
    max_designs: int,
    skills_from: tuple[str, ...],
    explain: bool,
    llm: bool,
    form: str,
    as_json: bool,
    **model: Any,
) -> None:
    """Turn a list of capability gaps into a plan, by rules and offline.

    GAPS is a file with a gap analysis (JSON, YAML, or openJiuwen's Markdown table), or - for standard input.
    """
    from extforge.community import read_collection
    from extforge.design.gaps import read_gaps

    need(llm, "for --llm", "base_url", "model", "rounds", "timeout", "fallback")
    need(output is not None, "for -o", "force")
    if llm and output is not None and os.path.exists(output) and not force:
        raise click.UsageError(f"{output} exists; pass --force, or name another file")
    found = read_gaps(gaps)
    collection = read_collection(skills_from) if skills_from else None
    designed = _drafted(found, max_designs, collection, model) if llm else _offline(found, max_designs, collection)
    findings = [*found.findings, *designed.findings, *designed.checked.findings]
    bad = any(finding.severity.value == "error" for finding in findings)
    machine = as_json or form == "json"
    if output is not None and designed.plan["designs"]:
        _write(designed, output, force)
    if machine:
        print_json(found, designed, findings, bad=bad)
    else:
        print_findings(findings, err=True)
        if explain:
            print_reasons(designed, err=output is None)
        print_plan(designed, output)
        print_summary(found, designed)
    sys.exit(EXIT_BAD if bad or not designed.plan["designs"] else EXIT_GOOD)


def _offline(gaps: Gaps, max_designs: int, collection: Collection | None) -> Designed:
    from extforge.design.designing import design_gaps

    return design_gaps(gaps, max_designs=max_designs, collection=collection)


def _drafted(gaps: Gaps, max_designs: int, collection: Collection | None, model: dict[str, Any]) -> Designed:
    """Return what a model drafted; when it fails and `--fallback` says so, the offline design."""
    import asyncio

    from extforge.design.drafting import draft_plan
    from extforge.errors import PlanError
    from extforge_harness.chat import Chat, Endpoint
    from extforge_harness.errors import ChatFailed, ChatMissing

    offline = _offline(gaps, max_designs, collection)

    async def ask() -> Designed:
        endpoint = Endpoint.from_environment(model["base_url"], model["model"])
        async with Chat(endpoint, timeout=model["timeout"]) as chat:
            limits = {"max_designs": max_designs, "collection": collection, "rounds": model["rounds"]}
            return await draft_plan(chat, gaps, offline, **limits, tell=tell)

    try:
        return asyncio.run(ask())
    except (ChatFailed, ChatMissing, PlanError) as exc:
        if model["fallback"]:
            reason = count(len(exc.findings), "problem") if isinstance(exc, PlanError) else str(exc)
            tell(f"no plan from the model ({reason}); this is the offline design instead")
            return offline
        if isinstance(exc, PlanError):
            print_findings(exc.findings, err=True)
            tell(
                f"the model gave no plan that passes in {count(model['rounds'], 'answer')}; --fallback takes the offline design"
            )
            sys.exit(EXIT_BAD)
        raise


def _write(designed: Designed, output: str, force: bool) -> None:
    """Write the plan to a file, whole or not at all; a plan that people may have edited stays."""
    text = _text(designed, output)
    try:
        with open(output, encoding="utf-8") as stream:
            same = stream.read() == text
    except FileNotFoundError:
        same = False
    except (OSError, UnicodeDecodeError):
        same = False
    if same:
        return
    if os.path.exists(output) and not force:
        raise click.UsageError(f"{output} exists and says something else; pass --force, or name another file")
    emit(text.removesuffix("\n"), output)


def _text(designed: Designed, output: str | None) -> str:
    from extforge.design.designing import plan_text
    from extforge.serialise import json_text

    if output is not None and output.lower().endswith(".json"):
        return json_text(designed.plan)
    return plan_text(designed.plan)


def print_plan(designed: Designed, output: str | None) -> None:
    """Write the plan to standard output, when it goes to no file."""
    if output is None and designed.plan["designs"]:
        emit(_text(designed, None).removesuffix("\n"))


def print_reasons(designed: Designed, *, err: bool) -> None:
    """Write for every decision the words and the rule behind it."""
    for line in reason_lines(designed):
        say(line, err=err)


def reason_lines(designed: Designed) -> list[str]:
    """Return the explanation of every design."""
    from extforge.design.components import title

    lines = []
    for draft in designed.drafts:
        mark = "  [low confidence]" if draft.decision.doubts else ""
        what = f"{draft.decision.kind}: {' + '.join(draft.decision.components)}"
        lines.append(f"{draft.gap.id} {title(draft.gap, 80)}")
        lines.append(f"  {draft.name} ({what}){mark}")
        lines += [f"    {reason}" for reason in draft.decision.reasons]
        lines += [f"    doubt: {doubt}" for doubt in dict.fromkeys(draft.decision.doubts)]
    return lines


def print_summary(gaps: Gaps, designed: Designed) -> None:
    """Say in one line what became of the gaps."""
    bad = sum(finding.severity.value == "error" for finding in gaps.findings)
    unsure = sum(bool(draft.decision.doubts) for draft in designed.drafts)
    parts = [f"{count(len(gaps.found), 'gap')}: {count(len(designed.plan['designs']), 'design')}"]
    parts += [f"{unsure} of low confidence"] if unsure else []
    parts += [f"{count(bad, 'problem')} in {gaps.label}"] if bad else []
    tell(", ".join(parts))


def print_json(gaps: Gaps, designed: Designed, findings: list[Any], *, bad: bool) -> None:
    """Write plan, reasons and findings as JSON."""
    decisions = [
        {
            "gap_id": draft.gap.id,
            "extension_name": draft.name,
            "kind": draft.decision.kind,
            "components": draft.decision.components,
            "confidence": "low" if draft.decision.doubts else "high",
            "doubts": list(dict.fromkeys(draft.decision.doubts)),
            "reasons": [
                {
                    "subject": reason.subject,
                    "value": reason.value,
                    "rule": reason.rule,
                    "words": [{"text": word.words, "field": word.field} for word in reason.words],
                }
                for reason in draft.decision.reasons
            ],
        }
        for draft in designed.drafts
    ]
    data = {
        "verdict": "fail" if bad else "pass",
        "source": gaps.label,
        "plan": designed.plan,
        "decisions": decisions,
        "findings": findings,
    }
    emit_json("design", data)
