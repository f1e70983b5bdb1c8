"""The labelled files beside the checkout: rates that must hold, and every disagreement explained."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.formats import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

# Valid by their label and rejected by us: one reason each.
DISAGREEMENTS = {
    "openpyxl__967263ab__null_archive.xlsx": "an empty ZIP archive: no program opens it as a workbook",
    "PHPPresentatio__0fa3911e__Sample_01_Simple.pptx": "its slide master is not well-formed XML",
    "python-pptx__4decaca6__minimal.pptx": "a template without slides; an artifact has at least one",
    "python-pptx__9eb8eb82__prs-properties.pptx": "a template without slides; an artifact has at least one",
}
OFFICE = ("pptx", "docx", "xlsx")


@pytest.fixture(scope="module")
def verdicts(shared: Path) -> list[tuple[dict[str, str], Verdict]]:
    with (shared / "corpus" / "manifest.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["format"] in FORMATS]
    assert len(rows) > 1000
    found = []
    for row in rows:
        report = verify_artifact(shared / "corpus" / row["path"], row["format"])
        assert "check-crashed" not in {f.code for f in report.findings}, row["path"]
        found.append((row, report.verdict))
    return found


def test_good_files_pass_but_for_the_listed_ones(verdicts: list[tuple[dict[str, str], Verdict]]) -> None:
    rejected = {
        row["path"].rpartition("/")[2] for row, v in verdicts if row["label"] == "valid" and v is not Verdict.PASS
    }
    assert rejected == set(DISAGREEMENTS)


def test_the_contract_tier_finds_most_damaged_office_files(verdicts: list[tuple[dict[str, str], Verdict]]) -> None:
    counts = Counter(v for row, v in verdicts if row["label"] == "invalid" and row["format"] in OFFICE)
    assert counts[Verdict.FAIL] / counts.total() >= 0.85


@pytest.mark.parametrize("form", ["json", "gif", "jpg"])
def test_every_invalid_file_is_found(verdicts: list[tuple[dict[str, str], Verdict]], form: str) -> None:
    missed = [
        r["path"] for r, v in verdicts if r["label"] == "invalid" and r["format"] == form and v is not Verdict.FAIL
    ]
    assert missed == []
