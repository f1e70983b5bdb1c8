"""Gates: mutation level against approval, row by row."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extforge_harness.gates import (
    ALLOW_ALL,
    ApprovalGate,
    Decision,
    Gate,
    MutationLevel,
    ReadOnlyGate,
    approval_gate,
    decide,
)

LEVELS = {
    "look": "safe_read",
    "write": MutationLevel.MUTATING_LOCAL,
    "mail": "side_effect",
    "deploy": "mutating_external",
}

# tool: plan, ask, auto, full -- with nobody to ask, "ask" is a no.
TABLE = {
    "look": "allow allow allow allow",
    "write": "deny ask allow allow",
    "mail": "deny ask ask allow",
    "deploy": "deny ask ask allow",
    "unheard_of": "deny ask ask ask",
}
ROWS = [
    pytest.param(tool, column, wanted, id=f"{tool}-{column}")
    for tool, row in TABLE.items()
    for column, wanted in zip(("plan", "ask", "auto", "full"), row.split(), strict=True)
]


def gate_for(column: str | None, confirm: object = None) -> ApprovalGate:
    approval = "full" if column == "plan" else column  # plan mode is the stronger of the two
    return approval_gate(approval, column == "plan", LEVELS, confirm)  # type: ignore[arg-type]


@pytest.mark.parametrize(("tool", "column", "wanted"), ROWS)
def test_the_table_of_approval_and_mutation_level(tool: str, column: str, wanted: str) -> None:
    asked: list[tuple[str, str]] = []

    def yes(name: str, request: str) -> bool:
        asked.append((name, request))
        return True

    assert gate_for(column).decision(tool) == wanted
    assert gate_for(column).permits(tool) is (wanted == "allow")
    assert gate_for(column, yes).permits(tool, "call-1") is (wanted != "deny")
    assert asked == ([(tool, "call-1")] if wanted == "ask" else [])
    assert gate_for(column, lambda *_: False).permits(tool) is (wanted == "allow")


def test_no_approval_counts_as_ask() -> None:
    for tool in TABLE:
        assert gate_for(None).decision(tool) == gate_for("ask").decision(tool)


def test_a_wrong_approval_is_refused_when_the_gate_is_made() -> None:
    for wrong in ("", "Full", "yes"):
        with pytest.raises(ValueError, match="approval must be ask, auto or full"):
            gate_for(wrong)
        with pytest.raises(ValueError, match="approval must be ask, auto or full"):
            decide(MutationLevel.SAFE_READ, wrong, plan=True)


def test_a_request_is_asked_about_once() -> None:
    answers = iter([False, True])
    gate = gate_for("ask", lambda *_: next(answers))
    assert [gate.permits("write", "a"), gate.permits("write", "a"), gate.permits("write", "b")] == [False, False, True]
    assert gate.permits("write", "b")
    with pytest.raises(StopIteration):
        gate.permits("write", "c")


def test_a_request_without_an_id_stands_for_the_tool() -> None:
    asked: list[tuple[str, str]] = []
    gate = gate_for("ask", lambda *what: not asked.append(what))
    assert gate.permits("write")
    assert gate.permits("write")
    assert gate.permits("mail")
    assert asked == [("write", "write"), ("mail", "mail")]


def test_an_answer_about_one_tool_is_none_about_another() -> None:
    gate = gate_for("ask", lambda tool, _: tool == "write")
    assert gate.permits("write", "call-1")
    assert not gate.permits("deploy", "call-1")
    # An id that looks like a tool name is no answer about that tool.
    assert gate.permits("write", "mail")
    assert not gate.permits("mail")


def test_only_true_is_a_yes() -> None:
    for answer in ("no", 1, object()):
        assert not gate_for("ask", lambda *_, a=answer: a).permits("write")


def test_two_threads_do_not_ask_the_same_question_twice() -> None:
    asked: list[str] = []
    start = threading.Barrier(8)

    def confirm(tool: str, request: str) -> bool:
        asked.append(request)
        return True

    gate = gate_for("ask", confirm)

    def ask() -> None:
        start.wait(10)
        assert gate.permits("write", "call-1")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert asked == ["call-1"]


def test_a_level_that_does_not_exist_counts_as_none() -> None:
    gate = approval_gate("full", plan=False, levels={"odd": "harmless"})
    assert gate.decision("odd") is Decision.ASK
    assert not gate.permits("odd")


def test_stock_gates() -> None:
    assert ALLOW_ALL.permits("anything")
    assert repr(ALLOW_ALL) == "ALLOW_ALL"
    read_only = ReadOnlyGate(LEVELS)
    assert [tool for tool in TABLE if read_only.permits(tool)] == ["look"]
    assert "unclassified" in read_only.reason("unheard_of")
    for gate in (ALLOW_ALL, read_only, gate_for("ask")):
        assert isinstance(gate, Gate)


def test_reasons_are_for_people_and_ask_nobody() -> None:
    def never(*_: str) -> bool:
        raise AssertionError

    assert gate_for("plan").reason("write") == "write is mutating_local; plan mode allows safe_read tools only"
    assert "nobody can be asked" in gate_for("ask").reason("write")
    assert "allows it" in gate_for("auto").reason("write")
    assert "was not asked yet" in gate_for("ask", never).reason("write")
    for answer, words in ((True, "said yes"), (False, "said no")):
        gate = gate_for("ask", lambda *_, a=answer: a)
        gate.permits("write")
        assert words in gate.reason("write")


@given(st.text(), st.sampled_from(["ask", "auto", "full", None]), st.dictionaries(st.text(), st.text()))
def test_plan_mode_never_allows_more_than_any_approval(tool: str, approval: str | None, levels: dict[str, str]) -> None:
    if approval_gate(approval, plan=True, levels=levels).permits(tool):
        assert approval_gate(approval, plan=False, levels=levels).permits(tool)
        assert ReadOnlyGate(levels).permits(tool)
