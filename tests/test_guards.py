"""The rule of a guard, without openJiuwen: what it refuses, what it lets through, what it corrects."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import Plans, design, load_work


def guard(
    plans: Plans,
    does: dict[str, Any],
    *,
    applies_to: list[str] | None = None,
    extra: list[dict[str, Any]] | None = None,
) -> Any:
    fields = {"rails": [{"does": {"guard": does}}]} if does is not None else {}
    rule = design("file_guard", kind="constraint", components=["rail"], applies_to=applies_to or [], **fields)
    return load_work(plans.tree(*(extra or []), rule), "rails.file_guard")


@pytest.mark.parametrize(
    ("does", "arguments", "refused"),
    [
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "a/deck_v1.pptx"}, False, id="suffix there"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "a/deck.pptx"}, True, id="suffix missing"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "deck.pptx_v1"}, True, id="suffix after the extension"),
        pytest.param({"require": {"extension": [".pdf"]}}, {"path": "A.PDF"}, False, id="extension in capitals"),
        pytest.param({"require": {"extension": [".pdf"]}}, {"path": "a.pdf.exe"}, True, id="a double extension"),
        pytest.param({"require": {"pattern": "[a-z]+\\.txt"}}, {"file_name": "abc.txt"}, False, id="pattern matches"),
        pytest.param({"require": {"pattern": "[a-z]+\\.txt"}}, {"file_name": "abc.txt\n"}, True, id="pattern must match to the end"),
        pytest.param({"require": {"folder": ["out"]}}, {"path": "out/a.txt"}, False, id="inside the folder"),
        pytest.param({"require": {"folder": ["out"]}}, {"path": "out/../a.txt"}, True, id="out of the folder and back"),
        pytest.param({"require": {"folder": ["out"]}}, {"path": "outside/a.txt"}, True, id="a folder with the same beginning"),
        pytest.param({"forbid": {"extension": [".exe"]}}, {"path": "a.exe"}, True, id="a forbidden extension"),
        pytest.param({"forbid": {"extension": [".exe"]}}, {"path": "a.txt"}, False, id="another extension"),
        pytest.param({"forbid": {"stem_suffix": "_draft"}}, {"target": "x_draft.md"}, True, id="a forbidden suffix"),
        pytest.param({"forbid": {"folder": ["secret"]}}, {"dest": "secret/x.md"}, True, id="a forbidden folder"),
        pytest.param({"forbid": {"pattern": ".*tmp.*"}}, {"path": "mytmpfile"}, True, id="a forbidden pattern"),
        pytest.param({"require": {"argument": {"mode": "read|list"}}}, {"mode": "read"}, False, id="an argument that fits"),
        pytest.param({"require": {"argument": {"mode": "read|list"}}}, {"mode": "write"}, True, id="an argument that does not"),
        pytest.param({"require": {"argument": {"mode": "read"}}}, {}, True, id="an argument that is missing"),
        pytest.param({"forbid": {"argument": {"mode": "delete"}}}, {"mode": "delete"}, True, id="a forbidden argument"),
        pytest.param({"forbid": {"argument": {"mode": "delete"}}}, {}, False, id="a forbidden argument that is absent"),
        pytest.param({"require": {"stem_suffix": "_v1"}, "arguments": ["where"]}, {"where": "x.txt"}, True, id="an argument the plan names"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": ["x"]}, True, id="a list as path"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "a_v1/../x.txt"}, True, id="a suffix on a folder"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "C:\\dir\\x.txt"}, True, id="a Windows path"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"output_path": "CON_v1.txt"}, False, id="not a device"),
        pytest.param({"require": {"extension": [".txt"]}}, {"output_path": "con.txt"}, True, id="a device"),
        pytest.param({"require": {"extension": [".txt"]}}, {"output_path": "a|b.txt"}, True, id="a name Windows refuses"),
        pytest.param({"require": {"extension": [".txt"]}}, {"output_path": "x" * 300 + ".txt"}, True, id="a name too long"),
        pytest.param({"require": {"stem_suffix": "_v1"}}, {"question": "what?"}, False, id="a call without files"),
    ],
)  # fmt: skip
def test_a_rule(plans: Plans, does: dict[str, Any], arguments: dict[str, Any], refused: bool) -> None:
    problem = guard(plans, does).violation("write_file", arguments)
    assert bool(problem) is refused, problem


def test_without_a_rule_files_stay_in_the_workspace_with_the_suffix_of_their_format(
    plans: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deck = design("sales_deck")
    rule = design("file_guard", kind="constraint", components=["rail"])
    work = load_work(plans.tree(deck, rule), "rails.file_guard")
    monkeypatch.chdir(tmp_path)
    assert work.violation("sales_deck", {"output_path": "a.pptx"}) is None
    assert "must end in .pptx" in work.violation("sales_deck", {"output_path": "a.txt"})
    assert "outside the workspace" in work.violation("write_file", {"file_path": "../x.txt"})
    assert "outside the workspace" in work.violation("write_file", {"file_path": "/etc/passwd"})
    assert work.violation("write_file", {"file_path": "/srv/project/x.txt"}, "/srv/project") is None
    os.symlink("/etc", tmp_path / "link")
    assert "outside the workspace" in work.violation("write_file", {"file_path": "link/x.txt"})


def test_a_guard_watches_the_tools_it_applies_to_and_no_other(plans: Plans) -> None:
    work = guard(plans, {"require": {"stem_suffix": "_v1"}}, applies_to=["sales_deck"], extra=[design("sales_deck")])
    assert work.violation("sales_deck", {"output_path": "x.pptx"})
    assert work.violation("write_file", {"file_path": "x.txt"}) is None
    assert work.violation("bash", {"command": "touch x"}) is None


def test_a_guard_of_everything_refuses_shell_commands_that_are_not_allowed(plans: Plans) -> None:
    work = guard(plans, {"require": {"stem_suffix": "_v1"}, "allow_commands": ["git status"]})
    assert "cannot be checked" in work.violation("bash", {"command": "echo x > a.txt"})
    assert "cannot be checked" in work.violation("code", {"code": "open('x','w')"})
    assert work.violation("bash", {"command": "git status; rm -rf /"})
    assert work.violation("bash", {"command": "git status"}) is None
    assert work.violation("bash", {})


def test_the_refusal_says_what_to_do(plans: Plans) -> None:
    problem = guard(plans, {"require": {"stem_suffix": "_v1"}, "message": "Ask Ann."}).violation("t", {"path": "x.txt"})
    assert "as in x_v1.txt" in problem
    assert problem.endswith("Ask Ann.")


def test_a_guard_can_correct_names_instead(plans: Plans) -> None:
    work = guard(plans, {"require": {"stem_suffix": "_v1", "extension": [".pdf"]}, "on_violation": "rewrite"})
    assert work.rewrite("t", {"path": "a/x.txt", "n": 1}) == {"path": "a/x_v1.pdf", "n": 1}
    assert work.rewrite("t", {"path": "a/x_v1.pdf"}) is None
    assert work.violation("t", work.rewrite("t", {"path": "a/x.txt"})) is None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.text(max_size=20),
    arguments=st.dictionaries(
        st.sampled_from(["path", "output_path", "file_name", "command", "mode", "x"]),
        st.text(max_size=60) | st.integers() | st.none() | st.lists(st.text(max_size=5), max_size=2),
        max_size=4,
    ),
)
def test_a_guard_always_answers_quickly(
    tmp_path_factory: pytest.TempPathFactory, tool: str, arguments: dict[str, Any]
) -> None:
    work = _shared_guard(tmp_path_factory)
    started = time.monotonic()
    problem = work.violation(tool, arguments)
    assert problem is None or isinstance(problem, str)
    assert time.monotonic() - started < 1
    for name in ("path", "output_path", "file_name"):
        value = arguments.get(name)
        if isinstance(value, str) and value and problem is None:
            assert os.path.splitext(value)[0].endswith("_v1")


_GUARDS: list[Any] = []


def _shared_guard(factory: pytest.TempPathFactory) -> Any:
    if not _GUARDS:
        _GUARDS.append(guard(Plans(factory.mktemp("guard")), {"require": {"stem_suffix": "_v1"}}))
    return _GUARDS[0]


def test_a_slow_pattern_stays_fast_on_the_longest_name(plans: Plans) -> None:
    work = guard(plans, {"require": {"pattern": "a*a*a*b"}})
    started = time.monotonic()
    assert work.violation("t", {"path": "a" * 255})
    assert time.monotonic() - started < 3
