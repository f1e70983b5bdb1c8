"""Every way a tool's result can lie, and every shape an honest one comes in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from damage import good
from hypothesis import given
from hypothesis import strategies as st

from extforge_verifiers import Verdict, verify_result
from extforge_verifiers.results import read_result


@pytest.fixture
def deck(tmp_path: Path) -> dict[str, Any]:
    """A true result, with its file."""
    (tmp_path / "deck.pptx").write_bytes(good("pptx"))
    return {
        "success": True,
        "path": "deck.pptx",
        "absolute_path": str(tmp_path / "deck.pptx"),
        "format": "pptx",
        "exists": True,
        "size_bytes": len(good("pptx")),
        "slides": 2,
    }


def codes(value: Any, root: Path, **options: Any) -> list[str]:
    return [f.code for f in verify_result(value, root=str(root), **options).findings]


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda r: r, id="a dict"),
        pytest.param(json.dumps, id="JSON text"),
        pytest.param(repr, id="Python repr, as the model sees it"),
        pytest.param(lambda r: {"success": True, "data": r, "error": None}, id="a ToolOutput"),
        pytest.param(lambda r: f"success=True data={r!r} error=None", id="the text of a ToolOutput"),
        pytest.param(lambda r: f"success=True data={r | {'note': 'x error=None'}!r} error=None extracted_content=None", id="the text of a newer ToolOutput"),
        pytest.param(lambda r: {"success": True, "data": json.dumps(r), "error": None}, id="a ToolOutput with JSON text"),
        pytest.param(lambda r: {"success": True, "data": r, "error": None, "extracted_content": None}, id="a newer ToolOutput"),
        pytest.param(lambda r: {k: v for k, v in r.items() if k != "absolute_path"}, id="a relative path"),
    ],
)  # fmt: skip
def test_an_honest_result_passes_in_every_shape(deck: dict[str, Any], tmp_path: Path, shape: Any) -> None:
    report = verify_result(shape(deck), root=str(tmp_path), format="pptx", fields=("success", "path"))
    assert report.verdict is Verdict.PASS, report.findings
    assert report.facts["slides"] == 2


@pytest.mark.parametrize(
    ("change", "expected", "failure_id"),
    [
        pytest.param({"absolute_path": "/nowhere/deck.pptx"}, "result-path-outside", "artifact_not_created", id="a file outside"),
        pytest.param({"absolute_path": "gone.pptx"}, "result-file-missing", "artifact_not_created", id="no file"),
        pytest.param({"size_bytes": 5}, "result-size", "artifact_format_invalid", id="a wrong size"),
        pytest.param({"slides": 12}, "result-count", "artifact_format_invalid", id="a wrong count"),
        pytest.param({"exists": False}, "result-count", "artifact_not_created", id="exists is false"),
        pytest.param({"exists": "yes"}, "result-field-type", "tool_result_schema_missing", id="a text as bool"),
        pytest.param({"size_bytes": True}, "result-field-type", "tool_result_schema_missing", id="a bool as number"),
        pytest.param({"format": "pdf"}, "result-format", "artifact_format_invalid", id="another format"),
        pytest.param({"success": False}, "result-error-missing", "tool_result_failed", id="a failure without error"),
        pytest.param({"absolute_path": "a\x00b"}, "result-path-invalid", None, id="a NUL in the path"),
    ],
)  # fmt: skip
def test_a_lie_is_found(
    deck: dict[str, Any], tmp_path: Path, change: dict[str, Any], expected: str, failure_id: str | None
) -> None:
    report = verify_result({**deck, **change}, root=str(tmp_path), format="pptx")
    found = {f.code: f.failure_id for f in report.findings}
    assert found.get(expected, "absent") == failure_id, report.findings
    assert report.verdict is Verdict.FAIL


def test_text_in_a_pptx_is_found_through_the_result(deck: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "deck.pptx").write_text("# Title\n\n- one\n- two\n")
    report = verify_result({**deck, "size_bytes": 22, "slides": None}, root=str(tmp_path), format="pptx")
    assert "artifact_placeholder_output" in {f.failure_id for f in report.findings}


def test_a_link_that_leads_out_is_outside(deck: dict[str, Any], tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "deck.pptx").symlink_to(tmp_path / "deck.pptx")
    assert codes({**deck, "absolute_path": str(inner / "deck.pptx")}, inner) == ["result-path-outside"]


def test_missing_fields_are_named(deck: dict[str, Any], tmp_path: Path) -> None:
    short = {"success": True, "path": "deck.pptx"}
    assert codes(short, tmp_path, format="pptx") == ["result-field-missing"] * 3
    assert codes({"success": True}, tmp_path, format="pptx", fields=("path",)) == ["result-field-missing"] * 4 + [
        "result-path-missing"
    ]


def test_an_honest_failure_passes(tmp_path: Path) -> None:
    assert verify_result({"success": False, "error": "no space left"}, root=str(tmp_path)).verdict is Verdict.PASS


@pytest.mark.parametrize("value", ["done!", None, 3, [], {}, {"a": 1}, "[1, 2]", "{'a': __import__('os')}"])
def test_what_is_no_result_is_said_to_be_none(tmp_path: Path, value: Any) -> None:
    assert codes(value, tmp_path) == ["result-shape"]


@given(st.text(max_size=100))
def test_no_text_makes_reading_a_result_raise(text: str) -> None:
    assert read_result(text) is None or isinstance(read_result(text), dict)
