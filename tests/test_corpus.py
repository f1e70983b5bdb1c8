"""The labelled files beside the checkout: rates that must hold, and every disagreement explained."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.many import verify_many

if TYPE_CHECKING:
    from pathlib import Path

# Label and verdict differ: one reason each.
REJECTED = {
    "openpyxl__967263ab__null_archive.xlsx": "an empty ZIP archive: no program opens it as a workbook",
    "PHPPresentatio__0fa3911e__Sample_01_Simple.pptx": "its slide master is not well-formed XML",
    "python-pptx__4decaca6__minimal.pptx": "a template without slides; an artifact has at least one",
    "python-pptx__9eb8eb82__prs-properties.pptx": "a template without slides; an artifact has at least one",
}
REJECTED_DEEP = {
    "qpdf__ac7d71ed__minimal-linearize-pass1.pdf": "half a product of qpdf: it has no catalog, and no program opens it",
    "pdfminer.six__b28f78e6__patchelf.pdf": "went through a line-end conversion: no stream inflates, every page is lost",
}
MISSED = {
    "Pillow__a6150a6f__baddens1.bmp": "only the print density is absurd; every pixel is there and every program shows it",
    "Pillow__053e4e4e__crash-74d2a78403a5a59db1fb0a2b8735ac068a75f6e3.tif": "a damaged line inside fax-coded data, which only decoding shows: found by the deep tier",
}
MISSED_DEEP = {"Pillow__a6150a6f__baddens1.bmp"}
OFFICE = ("pptx", "docx", "xlsx")
PICTURES = ("png", "jpg", "gif", "webp", "bmp", "tiff")
Verdicts = list[tuple[dict[str, str], Verdict]]


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, str]]:
    with (shared / "corpus" / "manifest.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["format"] in FORMATS]
    assert len(rows) > 1000
    return rows


def judge(rows: list[dict[str, str]], shared: Path, *, deep: bool) -> Verdicts:
    found = []
    paths = [shared / "corpus" / row["path"] for row in rows]
    # In processes of their own, as `--deep` has it: what libtiff complains about is heard only where no threads run.
    reports = verify_many(paths, jobs=2, deep=True) if deep else map(verify_artifact, paths)
    for row, report in zip(rows, reports, strict=True):
        assert report.kind == row["format"]
        assert "check-crashed" not in {f.code for f in report.findings}, row["path"]
        found.append((row, report.verdict))
    return found


@pytest.fixture(scope="module")
def contract(rows: list[dict[str, str]], shared: Path) -> Verdicts:
    return judge(rows, shared, deep=False)


@pytest.fixture(scope="module")
def deep(rows: list[dict[str, str]], shared: Path) -> Verdicts:
    return judge(rows, shared, deep=True)


def names(verdicts: Verdicts, label: str, wrong: Verdict, *forms: str) -> set[str]:
    return {
        row["path"].rpartition("/")[2]
        for row, verdict in verdicts
        if row["label"] == label and verdict is wrong and (not forms or row["format"] in forms)
    }


def detection(verdicts: Verdicts, *forms: str) -> float:
    counts = Counter(v for row, v in verdicts if row["label"] == "invalid" and row["format"] in forms)
    return counts[Verdict.FAIL] / counts.total()


def test_good_files_pass_but_for_the_listed_ones(contract: Verdicts, deep: Verdicts) -> None:
    assert names(contract, "valid", Verdict.FAIL) == set(REJECTED)
    assert names(deep, "valid", Verdict.FAIL) == {*REJECTED, *REJECTED_DEEP}
    valid = sum(row["label"] == "valid" for row, _ in deep)
    assert len({*REJECTED, *REJECTED_DEEP}) / valid <= 0.01


def test_nothing_good_is_undetermined_but_what_no_library_reads(contract: Verdicts, deep: Verdicts) -> None:
    assert names(contract, "valid", Verdict.UNDETERMINED) == set()
    assert len(names(deep, "valid", Verdict.UNDETERMINED, *OFFICE, "json")) == 0


def test_damaged_office_files_are_found(contract: Verdicts, deep: Verdicts) -> None:
    assert detection(contract, *OFFICE) >= 0.85
    assert detection(deep, *OFFICE) >= 0.99


def test_every_invalid_json_and_picture_is_found_but_the_listed_ones(contract: Verdicts, deep: Verdicts) -> None:
    assert names(contract, "invalid", Verdict.PASS, "json") == set()
    assert names(contract, "invalid", Verdict.PASS, *PICTURES) == set(MISSED)
    assert names(deep, "invalid", Verdict.PASS, "json", *PICTURES) == MISSED_DEEP
