"""Guardrails with a checker: real files pass, fakes and claims without files do not, and doubt is no pass."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from damage import good
from packs import execute, make_run, rule, skill

from extforge_harness.workflows import (
    ArtifactChecker,
    CheckContext,
    GuardrailCheckFailed,
    GuardrailViolated,
    StepResult,
    Verdict,
)
from extforge_harness.workflows import guardrails as module
from extforge_harness.workflows.skill import Guardrail

DECK = {"artifact": {"format": "pptx"}}


def checked(
    workdir: Path, check: dict[str, Any], output: str = "", artifacts: tuple[str, ...] = (), **options: Any
) -> Verdict:
    one = Guardrail.model_validate(rule(check=check))
    context = CheckContext("deck", workdir, artifacts, options.pop("outputs", (output,)))
    return asyncio.run(ArtifactChecker(**options).check(one, "$final", output, context))


@pytest.fixture
def deck(tmp_path: Path) -> Path:
    (tmp_path / "deck.pptx").write_bytes(good("pptx"))
    return tmp_path


def test_a_real_file_is_accepted(deck: Path) -> None:
    verdict = checked(deck, DECK, artifacts=("deck.pptx",))
    assert (verdict.violated, verdict.detail) == (False, "verified: deck.pptx")
    assert not checked(deck, DECK, artifacts=(str(deck / "deck.pptx"),)).violated


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b'{"slides": []}', "JSON", id="JSON renamed"),
        pytest.param(b"All done, enjoy the deck!\n", "text", id="text"),
        pytest.param(b"", "", id="empty"),
        pytest.param(None, "", id="cut short"),
    ],
)
def test_a_fake_is_caught_and_the_evidence_is_the_verifiers(deck: Path, data: bytes | None, words: str) -> None:
    (deck / "deck.pptx").write_bytes(good("pptx")[:-200] if data is None else data)
    verdict = checked(deck, DECK, '{"success": true, "path": "deck.pptx"}')
    assert verdict.violated
    assert words.lower() in verdict.detail.lower()
    assert "deck.pptx" in verdict.detail
    assert verdict.detail.endswith("]")  # the code of a finding


def test_a_claim_may_not_lead_out_of_the_folder(deck: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "deck.pptx"
    outside.write_bytes(good("pptx"))
    (deck / "link.pptx").symlink_to(outside)
    for claim in ("../" * 20 + str(outside)[1:], str(outside), "link.pptx"):
        verdict = checked(deck, DECK, artifacts=(claim,))
        assert verdict.violated
        assert "outside" in verdict.detail
    assert "outside" in checked(deck, {"artifact": {"format": "pptx", "path": "li*.pptx"}}).detail


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        pytest.param((), "no pptx file was claimed", id="none"),
        pytest.param(("deck.pdf",), "no pptx file was claimed (claimed: deck.pdf)", id="another format"),
        pytest.param(("gone.pptx",), "gone.pptx: there is no such file", id="missing"),
        pytest.param(("a\x00.pptx",), "null", id="impossible name"),
        pytest.param(("deck.pptx", "gone.pptx"), "gone.pptx", id="one of two"),
    ],
)
def test_a_claim_without_a_file_is_a_violation(deck: Path, claim: tuple[str, ...], words: str) -> None:
    verdict = checked(deck, DECK, '{"success": true}', claim)
    assert verdict.violated
    assert words in verdict.detail


@pytest.mark.parametrize(
    "output",
    [
        pytest.param('{"success": true, "path": "deck.pptx"}', id="JSON"),
        pytest.param('Done:\n```json\n{"absolute_path": "deck.pptx"}\n```\n', id="fenced JSON"),
        pytest.param("I wrote the deck to `deck.pptx`, enjoy.", id="words"),
        pytest.param("文件（deck.pptx）。", id="Chinese punctuation"),
        pytest.param("see **deck.pptx**.", id="emphasis"),
        pytest.param("deck.pptx, not https://example.org/other.pptx", id="not an address"),
    ],
)
def test_where_claims_are_found(deck: Path, output: str) -> None:
    assert checked(deck, DECK, output).detail == "verified: deck.pptx"


def test_the_first_source_with_a_claim_counts(deck: Path) -> None:
    named = "deck.pptx is not it"
    assert checked(deck, DECK, named, ("gone.pptx",)).violated
    assert checked(deck, DECK, f'```json\n{{"path": "gone.pptx"}}\n```\n{named}').violated
    glob = {"artifact": {"format": "pptx", "path": "**/*.pptx"}}
    assert checked(deck, glob, "gone.pptx", ("gone.pptx",)).detail == "verified: deck.pptx"
    assert checked(deck, {"artifact": {"format": "pptx", "path": "out/*.pptx"}}).violated


def test_at_the_end_the_files_of_all_steps_count_each_by_its_own_format(deck: Path) -> None:
    (deck / "chart.png").write_bytes(good("png"))
    outputs = ("drew chart.png", "wrote deck.pptx")
    assert checked(deck, DECK, outputs=outputs).detail == "verified: deck.pptx"
    assert checked(deck, {"artifact": {"format": "image"}}, outputs=outputs).detail == "verified: chart.png"
    assert checked(deck, DECK, artifacts=("chart.png", "deck.pptx"), outputs=outputs).detail == "verified: deck.pptx"


def test_bounds_and_keys_of_files(deck: Path) -> None:
    def artifact(**fields: Any) -> Verdict:
        return checked(deck, {"artifact": fields})

    assert not artifact(format="pptx", path="*.pptx", **{"min-bytes": 100, "min-count": {"slides": 1}}).violated
    assert "slides>=99" in artifact(format="pptx", path="*.pptx", **{"min-count": {"slides": 99}}).detail
    assert "are required" in artifact(format="pptx", path="*.pptx", **{"min-bytes": 10_000_000}).detail
    (deck / "a.json").write_text('{"title": {"en": 1}, "a/b": 2}')
    assert not artifact(format="json", path="a.json", **{"require-keys": ["title", "/title/en", "a/b"]}).violated
    assert "/owner" in artifact(format="json", path="a.json", **{"require-keys": ["owner"]}).detail


def test_a_verifier_that_fails_or_cannot_tell_is_no_pass(deck: Path) -> None:
    from extforge_verifiers import Report

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        checked(deck, DECK, artifacts=("deck.pptx",), verify=broken)
    with pytest.raises(ValueError, match="nothing could be checked"):
        checked(deck, DECK, artifacts=("deck.pptx",), verify=lambda path, *_, **__: Report(path, "pptx"))


@pytest.mark.parametrize(
    ("check", "output", "detail"),
    [
        ({"must-match": "^Total"}, "x\nTotal", "nothing matches '^Total'"),
        ({"must-match": ["(?m)^Total", "x"]}, "x\nTotal", ""),
        ({"must-not-match": "TODO"}, "a TODO", "'TODO' matches"),
        ({"must-not-match": "TODO"}, "done", ""),
        ({"min-chars": 3}, "ab", "2 characters, and at least 3 are required"),
        ({"max-chars": 3}, "abcd", "4 characters, and at most 3 are allowed"),
        ({"must-match": "汇报"}, "季度汇报 \ud83d", ""),
    ],
)
def test_text(tmp_path: Path, check: dict[str, Any], output: str, detail: str) -> None:
    verdict = checked(tmp_path, {"text": check}, output)
    assert (verdict.violated, verdict.detail) == (bool(detail), detail)


def test_a_pattern_that_takes_for_ever_is_stopped_and_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATTERN_SECONDS", 0.5)
    with pytest.raises(TimeoutError, match="longer than"):
        checked(tmp_path, {"text": {"must-match": "(a+)+b"}}, "a" * 50)


@pytest.mark.parametrize(
    ("output", "keys", "detail"),
    [
        ('{"a": 1}', ["a"], ""),
        ("Here:\n```json\n[1, 2]\n```\n", ["/1"], ""),
        ('{"a": 1}', ["a", "b", "c"], "keys are missing: b, c"),
        ("no", [], "the output is not JSON"),
        ("[" * 100_000, [], "the output is not JSON"),
    ],
)
def test_json(tmp_path: Path, output: str, keys: list[str], detail: str) -> None:
    verdict = checked(tmp_path, {"json": {"require-keys": keys}}, output)
    assert verdict.violated is bool(detail)
    assert verdict.detail.startswith(detail)


def test_rules_without_a_check_go_to_the_fallback_or_stay_unchecked(tmp_path: Path) -> None:
    class Fallback:
        def check(self, *_: Any) -> Verdict:
            return Verdict(violated=True, detail="too long")

    class AsyncFallback:
        async def check(self, *_: Any) -> Verdict:
            return Verdict(violated=True, detail="too long")

    of = skill(guardrails=[rule("words", enforced=False), rule("text", check={"text": {"min-chars": 0}})])
    result = execute(make_run(of, {"a": "x"}, checker=ArtifactChecker(), workdir=tmp_path))
    assert (result.unchecked, result.violations) == (("words",), ())
    for fallback in (Fallback(), AsyncFallback()):
        result = execute(make_run(of, {"a": "x"}, checker=ArtifactChecker(fallback=fallback), workdir=tmp_path))
        assert result.unchecked == ()
        assert {(v.guardrail, v.subject, v.detail) for v in result.violations} == {
            ("words", "a", "too long"),
            ("words", "$final", "too long"),
        }


def test_a_run_whose_deck_is_text_is_ended_with_rule_step_and_evidence(tmp_path: Path) -> None:
    steps = [{"name": "produce"}, {"name": "report", "depends": ["produce"]}]
    of = skill(steps, guardrails=[rule("real-deck", check=DECK, at=["produce"])])

    def produce(request: Any) -> StepResult:
        (request.workdir / "deck.pptx").write_text("slide one, slide two")
        return StepResult(json.dumps({"success": True, "path": "deck.pptx"}), ("deck.pptx",))

    run = make_run(of, produce, checker=ArtifactChecker(), workdir=tmp_path)
    with pytest.raises(GuardrailViolated) as caught:
        execute(run)
    error = str(caught.value)
    for words in ("real-deck", "'produce'", "deck.pptx", "the rule real-deck", "artifact-placeholder"):
        assert words in error, error
    assert [s.name for s in run.result.steps] == ["produce"]


def test_a_check_that_fails_ends_the_run_although_the_rule_is_only_a_warning(tmp_path: Path) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("no disk")

    (tmp_path / "deck.pptx").write_bytes(good("pptx"))
    of = skill(guardrails=[rule("real-deck", check=DECK, enforced=False)])
    run = make_run(of, {"a": "wrote deck.pptx"}, checker=ArtifactChecker(broken), workdir=tmp_path)
    with pytest.raises(GuardrailCheckFailed, match=r"not a pass: OSError: no disk"):
        execute(run)
    assert run.result.status == "failed"
