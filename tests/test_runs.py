"""Every claim of a run is looked at, whatever kept the record; what cannot be read is never a pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from damage import good
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, Plans, design, run_cli

from extforge_verifiers import Contract, Verdict, parse_requirement, verify_run
from extforge_verifiers.claims import claimed_in
from extforge_verifiers.records import RecordUnreadable, read_record, recognise_record
from extforge_verifiers.subjects import find_subjects

RECORDS = ROOT / "tests/records"
MADE = 1796032753  # when the recorded run ended


def result(path: str, body: bytes, **more: Any) -> dict[str, Any]:
    return {
        "success": True,
        "path": path,
        "format": path.rpartition(".")[2],
        "exists": True,
        "size_bytes": len(body),
        **more,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with what the recorded run made: one deck of 29,068 bytes cannot be had again, so sizes are put in."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/q3.pptx").write_bytes(good("pptx"))
    (tmp_path / "x.pptx").write_bytes(good("pptx"))
    for path in tmp_path.rglob("*.pptx"):
        os.utime(path, (MADE, MADE))
    for record in RECORDS.iterdir():
        text = record.read_text(encoding="utf-8").replace("@ROOT@", str(tmp_path))
        for size in ("29068", "28213"):
            text = text.replace(size, str(len(good("pptx"))))
        for slides in ("'slides': 1", '\\"slides\\": 1'):
            text = text.replace(slides, slides.replace("1", "2"))
        (tmp_path / record.name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("name", "form"), [("spans.jsonl", "spans"), ("transcript.json", "transcript")])
def test_a_record_that_was_made_for_real_is_read(run: Path, name: str, form: str) -> None:
    assert recognise_record(str(run / name)) == "run"
    report = verify_run(str(run / name))
    assert report.verdict is Verdict.PASS, report.findings
    assert (report.facts["record"], report.facts["calls"], report.facts["claimed"]) == (form, 2, 2)
    assert {claim["by"] for claim in report.facts["claims"]} == {"tool pptx_quarterly_report"}


@pytest.mark.parametrize("name", ["spans.jsonl", "transcript.json"])
def test_what_the_assistant_says_it_wrote_is_a_claim_too(run: Path, name: str) -> None:
    report = verify_run(str(run / name), said=True)
    assert [f.code for f in report.findings] == ["claim-file-missing"]
    assert "out/summary.md" in report.findings[0].message
    assert report.findings[0].failure_id == "artifact_not_created"
    assert report.findings[0].where.path == str(run / name)
    said = [claim for claim in report.facts["claims"] if claim["by"] == "assistant"]
    assert [(claim["path"], claim["verdict"]) for claim in said] == [
        ("out/q3.pptx", "pass"),
        ("out/summary.md", "fail"),
    ]


@pytest.mark.parametrize("name", ["spans.jsonl", "transcript.json"])
def test_a_file_that_is_gone_or_false_fails_the_run(run: Path, name: str) -> None:
    (run / "out/q3.pptx").unlink()
    (run / "x.pptx").write_text("The deck will follow.")
    codes = {finding.code for finding in verify_run(str(run / name)).findings}
    assert {"result-file-missing", "artifact-placeholder", "result-size"} <= codes


def test_a_file_older_than_the_call_was_not_made_by_it(run: Path) -> None:
    os.utime(run / "x.pptx", (MADE - 3600, MADE - 3600))
    report = verify_run(str(run / "spans.jsonl"))
    assert [f.code for f in report.findings] == ["result-file-stale"]


def test_a_run_that_was_moved_is_verified_where_it_is_now(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    there = tmp_path_factory.mktemp("moved") / "run"
    run.rename(there)
    report = verify_run(str(there / "transcript.json"))
    assert report.verdict is Verdict.PASS, report.findings
    assert report.facts["claimed"] == 2


def test_a_folder_is_one_run_with_all_its_records(run: Path) -> None:
    (run / "notes.md").write_text("# Notes\n")
    done = run_cli("verify", str(run), "--as", "run", "--format", "json")
    report = json.loads(done.stdout)["reports"][0]
    assert (done.returncode, report["verdict"], report["facts"]["record"]) == (0, "pass", "spans, transcript")
    unclaimed = [f for f in report["findings"] if f["code"] == "run-unclaimed"]
    assert [(f["severity"], Path(f["where"]["path"]).name) for f in unclaimed] == [("info", "notes.md")]


def test_records_in_a_folder_are_recognised_and_ordinary_json_is_not(run: Path) -> None:
    (run / "data.json").write_text('{"success_rate": 0.5, "messages": "none"}')
    (run / "lines.jsonl").write_text('{"role": "user", "content": "training data"}\n')
    kinds = {Path(s.path).name: s.kind for s in find_subjects(str(run)).subjects}
    assert kinds == {
        "q3.pptx": "artifact",
        "x.pptx": "artifact",
        "spans.jsonl": "run",
        "transcript.json": "run",
        "data.json": "artifact",
        "lines.jsonl": "artifact",
    }


@pytest.mark.host
def test_the_spans_and_messages_of_a_real_run_are_read(plans: Plans, tmp_path: Path) -> None:
    tree = plans.tree(design("status_deck_pptx"))
    work = tmp_path / "work"
    work.mkdir()
    slides = [{"title": "One", "bullets": ["a"]}]
    calls = [
        {"output_path": "out/deck.pptx", "title": "T", "slides": slides},
        {"output_path": "../outside.pptx", "title": "T", "slides": slides},
    ]
    answer = "I saved the deck to out/deck.pptx and exported it to out/deck.pdf."
    (tmp_path / "calls.json").write_text(json.dumps({"calls": calls, "answer": answer}))
    script = [
        sys.executable,
        str(ROOT / "tests/traced_run.py"),
        str(tree),
        "status_deck_pptx",
        str(tmp_path / "calls.json"),
    ]
    allowed = {**os.environ, "OPENJIUWEN_EXTENSION_FOLDERS": str(tmp_path)}
    done = subprocess.run(script, check=False, cwd=work, capture_output=True, text=True, timeout=120, env=allowed)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    spans = next((work / "spans").glob("*.jsonl"))
    for record in (spans, work / "transcript.json"):
        report = verify_run(str(record), root=str(work), said=True)
        assert [f.code for f in report.findings] == ["result-path-outside", "claim-file-missing"], report.findings
        assert (report.facts["calls"], report.facts["true"]) == (2, 2)
        assert [(c["by"], c["verdict"]) for c in report.facts["claims"]] == [
            ("tool status_deck_pptx", "pass"),
            ("tool status_deck_pptx", "fail"),
            ("assistant", "pass"),
            ("assistant", "fail"),
        ]


# --------------------------------------------------------------------------- results


def write_results(folder: Path, *results: Any, name: str = "results.jsonl") -> str:
    path = folder / name
    text = json.dumps(list(results)) if name.endswith(".json") else "".join(json.dumps(r) + "\n" for r in results)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_results_are_read_alone_and_with_their_tool(tmp_path: Path, name: str, wrapped: bool) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    true, false = result("a.pdf", good("pdf")), result("b.pdf", b"")
    entries = [{"tool": "maker", "result": r} for r in (true, false)] if wrapped else [true, false]
    record = write_results(tmp_path, *entries, name=name)
    assert recognise_record(record) == "run"
    report = verify_run(record)
    assert [f.code for f in report.findings] == ["result-file-missing"]
    by = "tool maker" if wrapped else "tool"
    assert [(c["by"], c["path"], c["verdict"]) for c in report.facts["claims"]] == [
        (by, "a.pdf", "pass"),
        (by, "b.pdf", "fail"),
    ]


@pytest.mark.parametrize("first", [{"event": "start"}, {"level": "info", "success": 0.5}])
def test_a_record_may_begin_with_something_else(tmp_path: Path, first: dict[str, Any]) -> None:
    record = write_results(tmp_path, first, result("gone.pdf", b""))
    assert recognise_record(record) == "run"
    assert [f.code for f in verify_run(record).findings] == ["result-file-missing"]


def test_a_chat_that_begins_with_a_large_picture_is_recognised(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (5 << 20)}}
    messages = [{"role": "user", "content": [picture]}, {"role": "assistant", "content": "I saved it as gone.pdf."}]
    record = write_results(tmp_path, *messages)
    assert recognise_record(record) == "run"
    assert [f.code for f in verify_run(record, said=True).findings] == ["claim-file-missing"]


def test_only_the_last_result_for_a_file_is_held_against_it(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    record = write_results(tmp_path, result("a.pdf", b"draft"), result("a.pdf", good("pdf")))
    report = verify_run(record)
    assert report.verdict is Verdict.PASS
    assert report.facts["claimed"] == 2


def test_a_tool_that_reads_claims_nothing(tmp_path: Path) -> None:
    reader = {"success": True, "path": "config.yaml", "content": "a: 1", "size_bytes": 4}
    lister = {"success": True, "path": ".", "files": []}
    report = verify_run(write_results(tmp_path, reader, lister))
    assert report.verdict is Verdict.UNDETERMINED
    assert report.facts["claimed"] == 0
    assert report.skipped == {"claims": "no tool result in it claims a file"}


def test_an_honest_failure_is_no_lie_and_a_silent_one_is(tmp_path: Path) -> None:
    honest = {"success": False, "error": "disk full", "path": "a.pdf"}
    silent = {"success": False, "error": "", "path": "a.pdf"}
    assert verify_run(write_results(tmp_path, honest)).verdict is Verdict.PASS
    assert [f.code for f in verify_run(write_results(tmp_path, silent)).findings] == ["result-error-missing"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param('{"success": true, "path"', "not JSON", id="half a line"),
        pytest.param('{"tool": "t", "result": "{\'success\': True, \'path\': \'a.p"}', "cut off", id="half a result"),
    ],
)
def test_what_cannot_be_read_is_undetermined_and_says_where(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    record = write_results(tmp_path, result("a.pdf", good("pdf")))
    with open(record, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    report = verify_run(record)
    assert report.verdict is Verdict.UNDETERMINED
    assert [(f.code, f.severity, f.where.line) for f in report.findings] == [("record-unreadable", "warning", 2)]
    assert words in report.findings[0].message
    assert words in report.open_question


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret.pdf", "result-path-outside"),
        ("/etc/passwd", "result-path-outside"),
        ("a\x00.pdf", "result-path-invalid"),
        ("gone.pdf", "result-file-missing"),
    ],
)
def test_a_claim_never_leads_outside(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / "secret.pdf").write_bytes(good("pdf"))
    (tmp_path / "run").mkdir()
    report = verify_run(write_results(tmp_path / "run", result(path, good("pdf"))), said=True)
    assert code in {f.code for f in report.findings}


def test_contracts_hold_the_tools_to_their_promises(tmp_path: Path) -> None:
    (tmp_path / "a.pptx").write_bytes(good("pptx"))
    record = write_results(tmp_path, {"tool": "deck", "result": result("a.pptx", good("pptx"))})
    contracts = [Contract("deck", "pptx", (parse_requirement("slides>=3"),)), Contract("book", "xlsx")]
    report = verify_run(record, contracts=contracts)
    assert [f.code for f in report.findings] == ["requirement-unmet", "contract-artifact-missing"]


def test_the_command_line_takes_contracts_from_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "designs:\n- gap_id: g\n  extension_name: sales_deck\n  components: [tool]\n  tools:\n"
        "  - name: sales_deck\n    does:\n      artifact: {format: pptx, minimum: {slides: 3}}\n"
        "- gap_id: h\n  extension_name: sales_book_excel\n  components: [tool]\n",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.pptx").write_bytes(good("pptx"))
    done = run_cli("verify", str(out), "--plan", str(plan), "--format", "json")
    codes = [f["code"] for r in json.loads(done.stdout)["reports"] for f in r["findings"]]
    assert (done.returncode, codes) == (1, ["requirement-unmet", "contract-artifact-missing"])
    broken = run_cli("verify", str(out), "--plan", str(out / "no.yaml"))
    assert broken.returncode == 2
    assert "Traceback" not in broken.stderr


# --------------------------------------------------------------------------- transcripts


def chat(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "go"}, *messages]


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "maker", "arguments": "{}"}}],
}


@pytest.mark.parametrize("shape", ["list", "object", "lines", "conversations"])
@pytest.mark.parametrize("content", ["json", "repr", "parts", "output"])
def test_transcripts_come_in_many_shapes(tmp_path: Path, shape: str, content: str) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    value = result("a.pdf", good("pdf"))
    body: Any = {
        "json": json.dumps(value),
        "repr": repr(value),
        "parts": [{"type": "text", "text": json.dumps(value)}],
        "output": json.dumps({"success": True, "data": value, "error": None}),
    }[content]
    messages = chat(CALL, {"role": "tool", "tool_call_id": "c1", "content": body})
    lines = shape in ("lines", "conversations")
    path = tmp_path / ("chat.jsonl" if lines else "chat.json")
    if shape == "lines":
        text = "\n".join(map(json.dumps, messages))
    else:
        text = json.dumps(messages if shape == "list" else {"messages": messages})
    path.write_text(text)
    report = verify_run(str(path))
    assert report.verdict is Verdict.PASS, report.findings
    assert [(c["by"], c["path"]) for c in report.facts["claims"]] == [("tool maker", "a.pdf")]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("I saved the deck to out/report.pptx.", ["out/report.pptx"]),
        ("The file `my report.xlsx` has been created.", ["my report.xlsx"]),
        (
            "Created [the deck](out/deck.pptx) and [the notes](<out/my notes.docx>).",
            ["out/deck.pptx", "out/my notes.docx"],
        ),
        ("I generated:\n- a.pdf\n- sub/b.png", ["a.pdf", "sub/b.png"]),
        ("Exported to C:\\Users\\me\\report.pdf", ["C:\\Users\\me\\report.pdf"]),
        ("Saved as ./x.json (3 records), based on input.csv.", ["./x.json"]),
        ("I created summary.docx from data.xlsx.", ["summary.docx"]),
        ("已将报告保存到 输出/季度报告.pptx。", ["输出/季度报告.pptx"]),
        ("演示文稿已生成：“季度 报告.pptx”", ["季度 报告.pptx"]),
        ("The report is at out/r.html; it can be found in out/r.html.", ["out/r.html"]),
        ("I could not create report.pptx.", []),
        ("I wasn't able to save report.pptx", []),
        ("未能生成 报告.pptx。", []),
        ("I will save it to report.pptx.", []),
        ("Shall I export it to report.pdf?", []),
        ("I read data.csv and report.pdf.", []),
        ("The config.json is fine.", []),
        ("Saved. See also example.com/page for more.", []),
        ("Done.", []),
        ("I generated a.pdf from the template in b.docx and c.csv.", ["a.pdf"]),
        ("I saved a.pdf with the charts for b.xlsx.", ["a.pdf"]),
        ("I created a summary of a.pdf in b.md.", ["b.md"]),
        ("I wrote report.md based on https://example.org/data.csv", ["report.md"]),
        ("I wrote report.md as described at www.example.org/spec.pdf", ["report.md"]),
        ("I converted notes.docx and saved report.md.", ["report.md"]),
        ("I wrote report.md, summarising input.pdf and data.csv.", ["report.md"]),
        ("I saved report.md, replacing old.md.", ["report.md"]),
        ("I renamed old.md to report.md and saved it.", ["report.md"]),
        ("I saved report.md with a link to [the docs](docs/index.html).", ["report.md"]),
        ("I created a script that writes out.csv when run.", []),
        ("Run make.py to create out.csv yourself.", []),
        ("I wrote report.md (see section 2.md)", ["report.md"]),
        ("I wrote report.md (see section 2.md).", ["report.md"]),
        ("I created nope.pdf but could not add the charts.", ["nope.pdf"]),
        ("Created nope.pdf (it will open in any reader).", ["nope.pdf"]),
        ("I created report.md and nope.pdf, so you can share them.", ["report.md", "nope.pdf"]),
        ("Your deck is ready: nope.pptx", ["nope.pptx"]),
        ("I created a.pdf, b.png, and c.txt.", ["a.pdf", "b.png", "c.txt"]),
        ("I created report.md and could not create nope.pdf.", ["report.md"]),
        ("a.md and b.md could not be created.", []),
        ("report.md and nope.pdf were created.", ["report.md", "nope.pdf"]),
        ("I could not create a.pdf, b.pdf or c.pdf.", []),
        ("Using data.csv, I created report.md.", ["report.md"]),
        ("If you need charts, I saved them in charts.png.", ["charts.png"]),
        ("If you run it, report.md is created.", []),
        (
            "I created these files:\n- a.pdf: the report\n- b.png (a chart)\n\nNext steps:\n- run make.py to create out.csv",
            ["a.pdf", "b.png"],
        ),
        ("I created summary.docx from data.xlsx and more.csv.", ["summary.docx"]),
        ("I created report.md without touching data.csv.", ["report.md"]),
        ("You can find it at out/nope.pdf.", ["out/nope.pdf"]),
        ("report.md — created\nnope.pdf — saved", ["report.md", "nope.pdf"]),
        ("I've saved `a b.docx` to disk as well as c.docx; data.csv was not changed.", ["a b.docx", "c.docx"]),
        ("I wrote report.md to summarise input.pdf.", ["report.md"]),
        ("I wrote report.md containing input.pdf notes", ["report.md"]),
        ("I converted notes.docx to report.pdf.", ["report.pdf"]),
        ("我已根据 data.csv 生成 report.md，但未能生成 nope.pdf。", ["report.md"]),
        ("✅ **out/report.pptx** has been saved", ["out/report.pptx"]),
        ("I haven’t created x.pdf yet.", []),
        ("The report was saved to https://x.org/y/report.md and [here](https://e.org/a.pdf).", []),
        ("I saved report.md. It describes data.csv.", ["report.md"]),
        ("Done! I've created a 5-slide deck for you, as requested, in nope.pptx.", ["nope.pptx"]),
        ("I created the deck, which is saved as deck.pptx.", ["deck.pptx"]),
        ("The following files were created:\n1. a.md\n2. b.md", ["a.md", "b.md"]),
        ("I've put together the deck and saved it as deck.pptx.", ["deck.pptx"]),
        ("Here is what I did: I read data.csv, computed totals, and wrote report.md.", ["report.md"]),
        ("已保存到report.pptx", ["report.pptx"]),
        ("| File | Status |\n| a.pdf | created |", ["a.pdf"]),
    ],
)
def test_only_what_a_text_says_it_wrote_is_a_claim(text: str, paths: list[str]) -> None:
    assert claimed_in(text) == paths


@pytest.mark.parametrize(
    "text",
    [
        "saved " + "a.b-" * 50_000,
        "saved " + "\n" * 190_000 + "-",
        "a.md and " * 20_000 + "were saved",
        "I renamed " + "a.md to " * 25_000,
        "http:" * 40_000,
        '"' * 200_000,
    ],
    ids=["one word", "lines", "a list", "renamed", "addresses", "quotes"],
)
def test_a_long_answer_takes_no_long_time(text: str) -> None:
    started = time.monotonic()
    claimed_in(text)
    assert time.monotonic() - started < 5


def test_a_name_alone_is_looked_for_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/deck.pptx").write_bytes(good("pptx"))
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat(CALL, {"role": "assistant", "content": "I saved it as deck.pptx."})))
    report = verify_run(str(path), said=True)
    assert report.verdict is Verdict.PASS, report.findings
    assert [(c["path"], c["verdict"]) for c in report.facts["claims"]] == [("deck.pptx", "pass")]


# --------------------------------------------------------------------------- hostile

KEYS = (
    "role content tool_calls messages resourceSpans scopeSpans spans attributes key value success path result data "
    "function name id text startTimeUnixNano"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(value=JSON, lines=st.booleans())
def test_no_record_makes_the_reader_crash(tmp_path_factory: pytest.TempPathFactory, value: Any, lines: bool) -> None:
    path = tmp_path_factory.mktemp("r") / ("r.jsonl" if lines else "r.json")
    path.write_text(json.dumps(value))
    recognise_record(str(path))
    try:
        read_record(str(path))
    except RecordUnreadable:
        return
    report = verify_run(str(path), said=True)
    assert report.kind == "run"


@given(st.text(alphabet="abc./\\ `\"'()<>savedto保存到。.pptx\n", max_size=200))
def test_no_text_makes_the_search_for_claims_crash(text: str) -> None:
    for path in claimed_in(text):
        assert path
