"""Every code of docs/codes.md has a bad example that yields it, and a good one, close by, that does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import code_frames_host
import pytest
from code_frames import FRAMES, MAKERS, Case, findings_of
from support import run_cli

from extforge.explaining import Chapter, Example, Section, read_chapters
from extforge_verifiers import Severity

CHAPTERS = read_chapters()
SECTIONS = {code: section for chapter in CHAPTERS for code, section in chapter.sections.items()}

# Codes that cannot come alone: what else the bad example yields.
BESIDE: dict[str, set[str]] = {
    "host-class-init-failed": {"host-harness-load-failed"},
    "host-entry-point-not-allowed": {"host-harness-load-failed"},
    "host-module-import-failed": {"host-harness-load-failed"},
    "host-tool-not-offered": {"host-tool-not-called"},
    "runtime-plan-mapping": {"runtime-fixture"},
}

IN_HOST = next(chapter.sections for chapter in CHAPTERS if chapter.title == code_frames_host.CHAPTER)

# Copier leaves a folder open when it fails.
_COPIER = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MARKS = {"template-does-not-render": [_COPIER], **{code: [pytest.mark.host] for code in IN_HOST}}

CASES = [
    pytest.param(chapter, section, example, id=f"{section.code}: {example.kind}", marks=MARKS.get(section.code, []))
    for chapter in CHAPTERS
    for section in chapter.sections.values()
    for example in section.examples
]


@pytest.mark.parametrize(("chapter", "section", "example"), CASES)
def test_a_bad_example_yields_its_code_and_a_good_one_does_not(
    tmp_path: Path, chapter: Chapter, section: Section, example: Example
) -> None:
    found = findings_of(chapter.title, Case(section, example, tmp_path))
    codes = {finding.code for finding in found}
    if example.kind == "bad":
        assert codes == {section.code} | BESIDE.get(section.code, set()), found
        assert {f.severity for f in found if f.code == section.code} == {Severity(section.severity)}, found
    else:
        assert section.code not in codes, found
        assert Severity.ERROR not in {finding.severity for finding in found}, found


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_every_code_has_a_bad_example_and_a_good_one(section: Section) -> None:
    bad, good = section.examples
    assert (bad.kind, good.kind) == ("bad", "good")
    assert bad != replace(good, kind="bad")
    for example in (bad, good):
        assert (f"{section.code}: {example.kind}" in MAKERS) == (not example.text)
        assert example.text or example.note
    assert section.text.count("\n- ") == 2, "a list item that is not read as an example"


def test_every_chapter_has_a_frame() -> None:
    assert {chapter.title for chapter in CHAPTERS} == FRAMES.keys()
    assert SECTIONS.keys() >= BESIDE.keys()
    assert all(chapter.reading for chapter in CHAPTERS)


def test_explain_prints_the_examples_and_how_to_read_them() -> None:
    code = "json-fenced"
    text = run_cli("explain", code).stdout
    assert SECTIONS[code].text in text
    assert "Examples are JSON files" in text
    value = json.loads(run_cli("explain", code, "--json").stdout)
    assert (value["severity"], value["meaning"]) == ("error", "JSON inside a Markdown fence.")
    assert [(e["kind"], e["language"], e["text"]) for e in value["examples"]] == [
        ("bad", "text", '```json\n{"a": 1}\n```\n'),
        ("good", "", '{"a": 1}'),
    ]
    assert "Examples are JSON files" in value["about_examples"]
