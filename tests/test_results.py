"""Every way a tool's result can lie, and every shape an honest one comes in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from damage import good
from hypothesis import given
from hypothesis import strategies as st
from support import run_cli

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


@pytest.mark.parametrize("key", ["output_file", "saved_path", "file", "filename", "file_name"])
def test_the_common_names_of_a_path_are_read(tmp_path: Path, key: str) -> None:
    missing = {"success": True, "data": {key: "nope.json", "exists": True}, "error": None}
    assert codes(missing, tmp_path) == ["result-file-missing"]


@pytest.mark.parametrize(
    "more",
    [
        {"files": ["nope.json"]},
        {"filename": "perhaps only read.csv"},
        {"data": [{"path": "nope.json"}], "error": None},
        {"data": "Saved to nope.json", "error": None},
        {},
    ],
)
def test_a_result_that_names_no_file_is_undetermined(tmp_path: Path, more: dict[str, Any]) -> None:
    report = verify_result({"success": True, **more}, root=str(tmp_path))
    assert (report.verdict, report.findings) == (Verdict.UNDETERMINED, ())
    assert "which file" in report.open_question


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "pptxx"}, "'pptxx' is not known"),
        ({"frames": 99}, "frames=99, and nothing here counts that"),
    ],
)
def test_what_nothing_can_prove_is_undetermined(
    deck: dict[str, Any], tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    report = verify_result({**deck, **change}, root=str(tmp_path))
    assert (report.verdict, report.findings) == (Verdict.UNDETERMINED, ())
    assert words in report.open_question


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": "application/json"}, ["result-suffix"]),
        ({"format": "application/vnd.openxmlformats-officedocument.presentationml.presentation"}, []),
        ({"format": "PPTX"}, []),
        ({"slides": "99"}, ["result-field-type"]),
        ({"slides": ["One", "Two"]}, []),
        ({"error": "disk full"}, ["result-error-contradicts"]),
        ({"error": "None"}, []),
    ],
)
def test_formats_counts_and_errors_are_held_against_the_file(
    deck: dict[str, Any], tmp_path: Path, change: dict[str, Any], expected: list[str]
) -> None:
    assert [code for code in codes({**deck, **change}, tmp_path) if code != "artifact-placeholder"] == expected


def test_a_sound_file_of_another_format_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"a": 1}')
    claim = {"success": True, "path": "data.json", "format": "pptx", "exists": True}
    assert codes(claim, tmp_path) == ["result-suffix"]


def test_a_long_path_is_shown_in_part(tmp_path: Path) -> None:
    (finding,) = verify_result({"success": True, "path": "a/" * 2500 + "b.json"}, root=str(tmp_path)).findings
    assert len(finding.message + str(finding.where)) < 600


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_command_line_reads_a_result_with_its_tool_and_with_a_byte_order_mark(
    tmp_path: Path, start: str, wrapped: bool
) -> None:
    (tmp_path / "note.json").write_text('{"a": 1}')
    true = {"success": True, "path": "note.json", "format": "json", "exists": True, "size_bytes": 8}
    value = {"tool": "t", "result": true} if wrapped else true
    (tmp_path / "result.json").write_text(start + json.dumps(value), encoding="utf-8")
    done = run_cli("verify", str(tmp_path / "result.json"), "--json")
    (report,) = json.loads(done.stdout)["reports"]
    assert (done.returncode, report["kind"], report["facts"]["claimed"]) == (0, "result", "note.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["run", "result"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "f.json")
    command = [sys.executable, "-m", "extforge", "verify", str(tmp_path / "f.json"), "--as", kind]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "not a regular file" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("value", ["done!", None, 3, [], {}, {"a": 1}, "[1, 2]", "{'a': __import__('os')}"])
def test_what_is_no_result_is_said_to_be_none(tmp_path: Path, value: Any) -> None:
    assert codes(value, tmp_path) == ["result-shape"]


@given(st.text(max_size=100))
def test_no_text_makes_reading_a_result_raise(text: str) -> None:
    assert read_result(text) is None or isinstance(read_result(text), dict)
