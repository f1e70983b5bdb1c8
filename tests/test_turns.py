"""Rails in real turns of a real agent: what the tool did, what the model then read, what the user got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, Plans, design

from extforge_harness.host.probe import tool_call

pytestmark = pytest.mark.host

KEY = "key-ABCDEF0123456789"
PATTERN = "key-[A-Za-z0-9]{8,64}"
# A tool that says whatever its input asks for, and does one thing or another first.
LIES = """

def run(inputs: dict[str, Any]) -> dict[str, Any]:
    kind = inputs.get("kind", "")
    Path("ran.txt").open("a").write(kind + "\\n")
    if kind == "slow":
        import time
        time.sleep(1.1)
    if kind == "fail":
        return {"success": False, "error": "refused with KEY"}
    if kind == "leak":
        return {"success": True, "token": "KEY", "nested": [{"password": "open sesame", "kept": "yes"}]}
    if kind == "long":
        return {"success": True, "text": "word " * 1000}
    path, text = Path(f"{kind}.{'txt' if kind == 'unknown' else 'json'}"), '{"n": 1}'
    if kind != "missing":
        path.write_text({"fake": "to be converted", "empty": ""}.get(kind, text))
    size = path.stat().st_size + (1 if kind == "size" else 0) if path.exists() else 1
    result = {"success": True, "path": str(path), "format": "json", "exists": True, "size_bytes": size}
    return {**result, "records": 7} if kind == "count" else result
""".replace("KEY", KEY)
KINDS = ("missing", "fake", "empty", "size", "count", "true", "unknown", "fail")


def call(*kinds: str, says: str = "") -> dict[str, Any]:
    calls = [
        {"id": f"{kind}_{n}", "type": "function", "function": {"name": "note_writer", "arguments": json.dumps({"kind": kind})}}
        for n, kind in enumerate(kinds)
    ]  # fmt: skip
    return {"role": "assistant", "content": says, **({"tool_calls": calls} if calls else {})}


RAILS: dict[str, dict[str, Any]] = {
    "truth_gate": {"artifact_gate": {}},
    "finish_guard": {"output_guard": {"patterns": [PATTERN], "on_match": "finish", "message": "Nothing to say."}},
    "replace_guard": {"output_guard": {"patterns": [PATTERN], "on_match": "replace", "message": "Nothing to say."}},
    "redact_guard": {"output_guard": {"patterns": [PATTERN]}},
    "result_screen": {"result_filter": {"patterns": [PATTERN], "drop_keys": ["password"]}},
    "kind_guard": {"guard": {"forbid": {"argument": {"kind": "leak"}}, "message": "Say no secrets."}},
    "short_screen": {"result_filter": {"max_characters": 200}},
    "other_screen": {"result_filter": {"patterns": [PATTERN], "tools": ["another_tool"]}},
    "warn_budget": {"budget": {"calls": 2, "warn_at": 0.5, "on_exceed": "warn"}},
    "block_budget": {"budget": {"characters": 400, "on_exceed": "block"}},
    "finish_budget": {"budget": {"seconds": 1, "on_exceed": "finish"}},
}
SCENES: dict[str, tuple[list[str], list[dict[str, Any]], bool]] = {
    "gate": (["truth_gate"], [*(call(kind) for kind in KINDS), call(says="done")], False),
    "gate_parallel": (["truth_gate"], [call("missing", "true"), call(says="done")], False),
    "finish": (["finish_guard"], [call("true", says=f"Using {KEY}"), call(says="done")], False),
    "replace": (["replace_guard"], [call("true", says=f"Using {KEY}"), call(says="done")], False),
    "replace_answer": (["replace_guard"], [call(says=f"It is {KEY}")], False),
    "redact": (["redact_guard"], [call(says=f"It is {KEY}, and {KEY}.")], False),
    "redact_stream": (["redact_guard"], [call(says=f"It is {KEY}, and {KEY}.")], True),
    "innocent": (["redact_guard", "finish_guard"], [call("true", says="Writing."), call(says="done")], False),
    "innocent_stream": (["redact_guard"], [call(says="A good answer.")], True),
    "too_long": (["redact_guard"], [call(says="x" * 200_001)], False),
    "leak": (["result_screen"], [call("leak"), call("fail"), call(says="done")], False),
    "refused": (["kind_guard", "result_screen"], [call("leak"), call(says="done")], False),
    "short": (["short_screen"], [call("long"), call("true"), call(says="done")], False),
    "other": (["other_screen"], [call("leak"), call(says="done")], False),
    "gate_and_screen": (["truth_gate", "result_screen"], [call("missing"), call(says="done")], False),
    "warn": (["warn_budget"], [call("true"), call("true"), call("true"), call(says="done")], False),
    "block": (["block_budget"], [*(call("true") for _ in range(6)), call(says="done")], False),
    "finish_late": (["finish_budget"], [call("slow"), call("true"), call(says="done")], False),
}  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Every scene, in one host process; each has an agent and a folder of its own."""
    folder = tmp_path_factory.mktemp("turns")
    rails = [design(name, components=["rail"], rails=[{"does": does}]) for name, does in RAILS.items()]
    schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
    writer = design("note_writer", tools=[{"does": "custom", "input_params": schema}])
    keeper = design("note_keeper", tools=[{"name": "keep_note", "does": {"artifact": {"format": "json"}}}])
    target = Plans(folder).generate(writer, keeper, *rails).target / "openjiuwen/extensions/harness"
    work = target / "note_writer/tools/note_writer.py"
    work.write_text(work.read_text() + LIES)
    scenes = [
        {"name": name, "trees": [str(target / tree) for tree in ("note_writer", *trees)], "messages": messages, "stream": s}
        for name, (trees, messages, s) in SCENES.items()
    ]  # fmt: skip
    places = [f"{folder}/places/workspace/x.json", "x.json", "../x.json", "../inner/../../x.json"]
    calls = [tool_call("keep_note", {"data": {"n": 1}, "output_path": path}, path) for path in places]
    keeps = {"name": "places", "trees": [str(target / "note_keeper")], "messages": [*calls, call(says="done")]}
    scenes.append({**keeps, "cwd": "inner"})
    (folder / "scenes.json").write_text(json.dumps(scenes))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/scripted_turns.py"), "scenes.json", str(folder / "results.json")],
        cwd=folder,
        env={**os.environ, "OPENJIUWEN_EXTENSION_STATE": str(folder / "state"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (folder / "results.json").is_file(), (done.stdout + done.stderr)[-3000:]
    return folder, json.loads((folder / "results.json").read_text())


@pytest.fixture
def turn(played: tuple[Path, dict[str, Any]]) -> Any:
    """What came of a scene: the last request's tool messages, the answer, which calls ran."""
    folder, results = played

    class Turn:
        def __init__(self, name: str) -> None:
            facts = results[name]
            self.answer = facts.get("answer")
            self.streamed = json.dumps(facts.get("streamed"), ensure_ascii=False)
            self.requests = facts["requests"]
            messages = self.requests[-1]
            self.read = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
            self.tool_messages = [m["content"] for m in messages if m["role"] == "tool"]
            self.everything = json.dumps(self.requests, ensure_ascii=False)
            path = folder / name / "ran.txt"
            self.ran = path.read_text().split() if path.exists() else []

    return Turn


# --------------------------------------------------------------------------- where files may go


def test_a_tool_writes_where_the_agent_works_and_nowhere_else(played: tuple[Path, dict[str, Any]], turn: Any) -> None:
    folder = played[0] / "places"
    places = turn("places")
    taken = [json.loads(text) for text in places.tool_messages if text.startswith("{")]
    written = [str(folder / "workspace/x.json"), str(folder / "inner/x.json")]
    assert [(result["success"], result["absolute_path"]) for result in taken] == [(True, path) for path in written]
    assert all(f"lies outside {folder / 'inner'}" in text for text in places.tool_messages[2:])
    assert sorted(str(path) for path in played[0].rglob("x.json")) == sorted(written)


# --------------------------------------------------------------------------- artifact_gate


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        pytest.param("missing", "there is no file 'missing.json'", id="no file"),
        pytest.param("fake", "'fake.json': ", id="a text under the name of JSON"),
        pytest.param("empty", "'empty.json': ", id="an empty file"),
        pytest.param("size", "has 8 bytes, not 9", id="another size"),
        pytest.param("count", "it has 1 records, not 7", id="another count"),
    ],
)
def test_a_false_claim_becomes_a_failure_that_the_model_reads(turn: Any, kind: str, words: str) -> None:
    gate = turn("gate")
    assert gate.ran == list(KINDS)  # the tool did run, and did claim success
    message = gate.read[f"{kind}_0"]
    assert message.startswith("The tool claimed success, but that is not true: ")
    assert words in message
    # It stands in the very next request: nobody went on with the lie.
    following = gate.requests[KINDS.index(kind) + 1]
    assert following[-1]["content"] == message


def test_a_true_claim_and_an_honest_failure_pass_unchanged(turn: Any) -> None:
    gate = turn("gate")
    assert json.loads(gate.read["true_0"])["success"] is True
    assert json.loads(gate.read["unknown_0"])["path"] == "unknown.txt"
    assert gate.read["fail_0"] == f"refused with {KEY}"
    parallel = turn("gate_parallel")
    assert "not true" in parallel.read["missing_0"]
    assert json.loads(parallel.read["true_1"])["success"] is True


def test_a_gate_sees_the_result_before_a_filter_does(turn: Any) -> None:
    assert "that is not true" in turn("gate_and_screen").tool_messages[0]


# --------------------------------------------------------------------------- output_guard


def test_finish_ends_the_turn_before_the_tool_runs(turn: Any) -> None:
    finish = turn("finish")
    assert (finish.answer, finish.ran, len(finish.requests)) == ("Nothing to say.", [], 1)


def test_replace_changes_what_is_said_and_lets_the_turn_go_on(turn: Any) -> None:
    replace = turn("replace")
    assert (replace.answer, replace.ran) == ("done", ["true"])
    assert KEY not in replace.everything  # not even the model reads it again
    assert turn("replace_answer").answer == "Nothing to say."


def test_redact_takes_out_every_match_streamed_or_not(turn: Any) -> None:
    assert turn("redact").answer == "It is [removed], and [removed]."
    streamed = turn("redact_stream").streamed
    assert KEY not in streamed
    assert "It is [removed], and [removed]." in streamed


def test_an_innocent_answer_is_left_as_it_is(turn: Any) -> None:
    innocent = turn("innocent")
    assert (innocent.answer, innocent.ran) == ("done", ["true"])
    assert "A good answer." in turn("innocent_stream").streamed


def test_an_answer_that_cannot_be_looked_through_is_withheld(turn: Any) -> None:
    assert turn("too_long").answer == "This answer was withheld."


# --------------------------------------------------------------------------- result_filter


def test_results_and_errors_reach_the_model_without_what_is_to_be_kept_from_it(turn: Any) -> None:
    leak = turn("leak")
    assert json.loads(leak.tool_messages[0]) == {"success": True, "token": "[removed]", "nested": [{"kept": "yes"}]}
    assert leak.tool_messages[1] == "refused with [removed]"
    assert KEY not in leak.everything
    assert "open sesame" not in leak.everything


def test_a_refusal_is_read_through_a_filter(turn: Any) -> None:
    refused = turn("refused")
    assert refused.ran == []
    assert "must not match leak. Say no secrets." in refused.tool_messages[0]


def test_a_long_result_is_shortened_and_a_short_one_is_not(turn: Any) -> None:
    long, short = turn("short").tool_messages
    assert len(long) < 260
    assert "more characters were left out" in long
    assert json.loads(short)["success"] is True


def test_a_filter_of_another_tool_changes_nothing(turn: Any) -> None:
    assert KEY in turn("other").tool_messages[0]


# --------------------------------------------------------------------------- budget


def test_a_budget_that_warns_says_so_and_refuses_nothing(turn: Any) -> None:
    warn = turn("warn")
    assert (warn.answer, len(warn.ran)) == ("done", 3)
    shown = [next(m["content"] for m in request if m["role"] == "system") for request in warn.requests]
    assert ["Budget" in text for text in shown] == [False, True, True, True]
    assert "nearly used up: 1 of 2 calls" in shown[1]
    assert "Budget used up: 2 of 2 calls" in shown[2]


def test_a_budget_of_characters_refuses_what_comes_after(turn: Any) -> None:
    block = turn("block")
    assert 0 < len(block.ran) < 6
    assert "the budget of this session is used up" in block.tool_messages[-1]
    assert "characters" in block.tool_messages[-1]


def test_a_budget_of_seconds_ends_the_turn(turn: Any) -> None:
    late = turn("finish_late")
    assert late.ran == ["slow"]
    assert late.answer.startswith("The budget of this session is used up: 1.")
