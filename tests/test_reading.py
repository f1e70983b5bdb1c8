"""Every shape a plan comes in; and every way openJiuwen's own parser loses one, with the right answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extforge.check import check_plan

A = {"gap_id": "g1", "extension_name": "quarterly_sales_deck", "components": ["tool"]}
B = {"gap_id": "g2", "extension_name": "session_usage_budget", "components": ["rail", "tool"]}


def names(tmp_path: Path, text: str, file: str = "answer.md") -> list[str]:
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    plan = check_plan(str(path))
    assert not plan.errors, plan.findings
    return sorted(blueprint.name for blueprint in plan.blueprints)


def codes(tmp_path: Path, text: str, file: str = "answer.md") -> list[str]:
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    return [f.code for f in check_plan(str(path)).errors]


BOTH = [A["extension_name"], B["extension_name"]]


@pytest.mark.parametrize(
    ("text", "file"),
    [
        pytest.param(json.dumps({"package_name": "p", "designs": [A, B]}), "p.json", id="package in JSON"),
        pytest.param(json.dumps([A, B]), "p.json", id="bare array in JSON"),
        pytest.param(json.dumps([A, B]), "p.yaml", id="JSON in a YAML file"),
        pytest.param(f"designs:\n- {json.dumps(A)}\n- {json.dumps(B)}\n", "p.yaml", id="package in YAML"),
        pytest.param(f"- {json.dumps(A)}\n- {json.dumps(B)}\n", "p.yaml", id="bare list in YAML"),
        # HOST.md 7: the host returns [] for an unfenced array of two designs, the very shape its skill asks for
        pytest.param(json.dumps([A, B], indent=1), "answer.md", id="an unfenced array of two designs"),
        pytest.param(f"Here it is:\n{json.dumps([A, B])}\nDone.", "answer.md", id="an array in prose"),
        # ... reads only the first of two fenced blocks
        pytest.param(f"```json\n{json.dumps(A)}\n```\nand\n```json\n{json.dumps(B)}\n```\n", "answer.md", id="two fenced blocks"),
        # ... is derailed by a fence inside a string
        pytest.param(f"```json\n{json.dumps([{**A, 'description': 'use ```json fences'}, B])}\n```", "answer.md", id="a fence inside a string"),
        # ... and by a brace in the prose
        pytest.param(f"As {{you}} asked:\n{json.dumps([A, B])}\nSee {{appendix}}.", "answer.md", id="braces in the prose"),
        pytest.param(f"Look at {json.dumps({'note': 1})} first.\n{json.dumps([A, B])}", "answer.md", id="another JSON object before"),
        pytest.param("```yaml\ndesigns:\n- {gap_id: g1, extension_name: quarterly_sales_deck, components: [tool]}\n- {gap_id: g2, extension_name: session_usage_budget, components: [rail, tool]}\n```", "answer.md", id="a YAML fence"),
        pytest.param(f"~~~\n{json.dumps([A, B])}\n~~~", "answer.txt", id="a fence of tildes"),
        pytest.param(f"1. First:\n{json.dumps(A)}\n2. Second:\n{json.dumps(B)}", "answer.md", id="two objects in prose"),
    ],
)  # fmt: skip
def test_every_shape_yields_every_design(tmp_path: Path, text: str, file: str) -> None:
    assert names(tmp_path, text, file) == BOTH


def test_a_single_object_is_a_plan_of_one(tmp_path: Path) -> None:
    assert names(tmp_path, json.dumps(A), "p.json") == [A["extension_name"]]


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.plan.yaml").write_text(json.dumps(A))
    (tmp_path / "b.plan.json").write_text(json.dumps([B]))
    (tmp_path / "notes.md").write_text("nothing here")
    plan = check_plan(str(tmp_path))
    assert sorted(b.name for b in plan.blueprints) == BOTH


@pytest.mark.parametrize(
    ("text", "file", "expected"),
    [
        pytest.param("", "p.yaml", ["plan-empty"], id="an empty file"),
        pytest.param("[]", "p.json", ["plan-empty"], id="an empty list"),
        pytest.param("designs: []", "p.yaml", ["plan-empty"], id="an empty package"),
        pytest.param("hello", "p.yaml", ["plan-shape"], id="a text"),
        pytest.param("{a: 1}", "p.yaml", ["plan-shape"], id="another document"),
        pytest.param("designs: {a: 1}", "p.yaml", ["plan-shape"], id="designs is a mapping"),
        pytest.param("just prose, with ```\nfences\n``` but no plan", "answer.md", ["plan-empty"], id="prose without a plan"),
        pytest.param(f'```json\n[{json.dumps(A)}, {{"extension_name": "x", }}]\n```', "answer.md", ["plan-unread"], id="a block cut short is not read in half"),
        pytest.param(f"```json\n{json.dumps(A)}\n```\nbetter:\n```json\n{json.dumps(A)}\n```", "answer.md", ["plan-ambiguous"], id="two versions of one design"),
        pytest.param(json.dumps({"designs": [A], "desings": [B]}), "p.json", ["document-unknown-key"], id="a misspelt key beside designs"),
        # HOST.md 7: the host drops package_name of a one-element array, and takes unknown kinds for capabilities
        pytest.param(json.dumps({**A, "kind": "Constraint"}), "p.json", ["plan-kind-unknown"], id="an unknown kind"),
        pytest.param(json.dumps({**A, "components": "tool"}), "p.json", ["plan-components-not-a-list"], id="components is a text"),
        pytest.param(json.dumps({**A, "components": None}), "p.json", ["document-wrong-type"], id="components is null"),
        pytest.param(json.dumps({**A, "depends_on": "x"}), "p.json", ["document-wrong-type"], id="depends_on is a text"),
        pytest.param(json.dumps({**A, "applies_to": {"a": 1}}), "p.json", ["document-wrong-type"], id="applies_to is a mapping"),
        pytest.param(json.dumps({**A, "file_plan": []}), "p.json", ["document-wrong-type"], id="file_plan is a list"),
        pytest.param(json.dumps({**A, "extension_name": "../evil"}), "p.json", ["plan-name-invalid"], id="a name that climbs"),
        pytest.param(json.dumps({**A, "extension_name": "class"}), "p.json", ["plan-name-invalid"], id="a keyword"),
        pytest.param(json.dumps({**A, "extension_name": "3d_chart"}), "p.json", ["plan-name-invalid"], id="a name that starts with a digit"),
        pytest.param(json.dumps([A, A]), "p.json", ["plan-name-duplicate"], id="a duplicate"),
        pytest.param(json.dumps({**A, "file_plan": {"root": "/etc"}}), "p.json", ["plan-file-plan-root"], id="an absolute root"),
        pytest.param(json.dumps({**A, "file_plan": {"root": "../.."}}), "p.json", ["plan-file-plan-root"], id="a root that climbs"),
        pytest.param(json.dumps({**A, "knid": "constraint"}), "p.json", ["document-unknown-key"], id="an unknown key"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error_and_nothing_is_lost_in_silence(
    tmp_path: Path, text: str, file: str, expected: list[str]
) -> None:
    assert codes(tmp_path, text, file) == expected


def test_a_missing_file_and_a_folder_without_plans_are_named(tmp_path: Path) -> None:
    assert check_plan(str(tmp_path / "no.yaml")).errors[0].code == "plan-unreadable"
    assert check_plan(str(tmp_path)).errors[0].code == "plan-unreadable"


def test_more_designs_than_allowed_are_refused_not_dropped(tmp_path: Path) -> None:
    many = [{**A, "gap_id": f"g{n}", "extension_name": f"quarterly_deck_{n}"} for n in range(11)]
    text = json.dumps(many)
    assert codes(tmp_path, text, "p.json") == ["plan-too-many-designs"]
    path = tmp_path / "p.json"
    assert len(check_plan(str(path), max_designs=11).blueprints) == 11


def test_constraints_come_first_and_after_what_they_depend_on(tmp_path: Path) -> None:
    guard = {"components": ["rail"], "kind": "constraint"}
    designs = [
        {**A, "depends_on": ["suffix_guard"]},
        {**guard, "gap_id": "g3", "extension_name": "suffix_guard", "depends_on": ["folder_guard"]},
        {**guard, "gap_id": "g4", "extension_name": "folder_guard"},
    ]
    path = tmp_path / "p.json"
    path.write_text(json.dumps(designs))
    order = [b.name for b in check_plan(str(path)).blueprints]
    assert order == ["folder_guard", "suffix_guard", "quarterly_sales_deck"]


@settings(max_examples=60, deadline=None)
@given(before=st.text(max_size=60), after=st.text(max_size=60))
def test_no_prose_round_a_fenced_plan_loses_a_design(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    path = tmp_path_factory.mktemp("prose") / "answer.md"
    path.write_text(f"{before}\n\n```json\n{json.dumps([A, B])}\n```\n{after}", encoding="utf-8", errors="replace")
    plan = check_plan(str(path))
    assert plan.errors or sorted(b.name for b in plan.blueprints) == BOTH
