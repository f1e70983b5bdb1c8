"""Packs and skill.yaml: what is found, what is wrong with it and where, and what a model is told of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packs import skill, write_skill

from extforge_harness.workflows import (
    RunRefused,
    Skill,
    SkillInvalid,
    Workflow,
    activate,
    listing,
    load_pack,
    load_skill,
    surface,
)
from extforge_harness.workflows.disclosure import LONGEST_LINE
from extforge_harness.workflows.pack import check_again
from extforge_harness.workflows.skill import levels

GOOD: dict[str, Any] = {
    "description": "Makes decks.",
    "steps": [
        {"name": "outline", "prompt": "plan"},
        {"name": "chart", "prompt": "draw", "depends": ["outline"]},
        {"name": "produce", "prompt": "write", "depends": ["outline"]},
        {"name": "report", "prompt": "tell", "depends": ["produce", "chart"]},
    ],
}


def problems(folder: Path, data: str | dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    """Return (code, json path) of everything that is wrong, each with a line."""
    with pytest.raises(SkillInvalid) as caught:
        load_skill(write_skill(folder, data, **options))
    assert all(f.where.line and f.message for f in caught.value.findings)
    assert caught.value.code == caught.value.findings[0].code
    return [(f.code, f.where.json_path or "") for f in caught.value.findings]


def steps(*depends: tuple[str, list[str]]) -> dict[str, Any]:
    return {"description": "d", "steps": [{"name": n, "prompt": "p", "depends": d} for n, d in depends]}


BAD_VALUE = "document-bad-value"


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        pytest.param({"nmae": "deck"}, "document-unknown-key", "$.nmae", id="unknown key"),
        pytest.param({"name": "other"}, "workflow-name-mismatch", "$.name", id="another name"),
        pytest.param({"description": ""}, BAD_VALUE, "$.description", id="empty description"),
        pytest.param({"description": "x" * 1025}, BAD_VALUE, "$.description", id="long description"),
        pytest.param({"description": None}, "document-missing-key", "$.description", id="no description"),
        pytest.param({"version": 1.2}, "document-wrong-type", "$.version", id="version is a number"),
        pytest.param({"version": " "}, BAD_VALUE, "$.version", id="blank version"),
        pytest.param({"when-to-use": "x" * 1001}, BAD_VALUE, "$.when-to-use", id="long when-to-use"),
        pytest.param({"invocation": "always"}, BAD_VALUE, "$.invocation", id="invocation"),
        pytest.param({"triggers": ["Deck", "deck"]}, BAD_VALUE, "$.triggers[1]", id="trigger twice"),
        pytest.param({"triggers": [""]}, BAD_VALUE, "$.triggers[0]", id="empty trigger"),
        pytest.param({"triggers": [str(n) for n in range(51)]}, BAD_VALUE, "$.triggers", id="51 triggers"),
        pytest.param({"paths": ["../x"]}, BAD_VALUE, "$.paths[0]", id="path with .."),
        pytest.param({"paths": ["/x"]}, BAD_VALUE, "$.paths[0]", id="absolute path"),
        pytest.param({"paths": ["a\\b"]}, BAD_VALUE, "$.paths[0]", id="backslash"),
        pytest.param({"allowed-tools": ["1x"]}, BAD_VALUE, "$.allowed-tools[0]", id="tool name"),
        pytest.param({"allowed-tools": ["x", "x"]}, BAD_VALUE, "$.allowed-tools[1]", id="tool twice"),
        pytest.param({"allowed-tools": "x"}, "document-wrong-type", "$.allowed-tools", id="tools are a text"),
        pytest.param(
            {"allowed-tools": ["x"], "disallowed-tools": ["x"]},
            "workflow-tool-conflict",
            "$.disallowed-tools[0]",
            id="tool in both lists",
        ),
        pytest.param({"agent": "writer"}, BAD_VALUE, "$.agent", id="agent without fork"),
        pytest.param({"effort": "huge"}, BAD_VALUE, "$.effort", id="effort"),
        pytest.param({"metadata": [1]}, "document-wrong-type", "$.metadata", id="metadata is a list"),
        pytest.param({"prompt": "x" * 20_001}, BAD_VALUE, "$.prompt", id="long prompt"),
        pytest.param(steps(("a", []), ("a", [])), "workflow-duplicate-step", "$.steps[1].name", id="step twice"),
        pytest.param(steps(("$final", [])), BAD_VALUE, "$.steps[0].name", id="a step named $final"),
        pytest.param({"steps": [{"name": "a"}]}, "document-missing-key", "$.steps[0].prompt", id="no prompt"),
        pytest.param(
            {"steps": [{"name": "a", "prompt": " "}]}, BAD_VALUE, "$.steps[0].prompt", id="blank prompt of a step"
        ),
        pytest.param(
            steps(("a", []), ("b", ["a", "a"])), BAD_VALUE, "$.steps[1].depends[1]", id="depends twice on one"
        ),
        pytest.param(
            steps(("a", ["x"])), "workflow-unknown-dependency", "$.steps[0].depends[0]", id="depends on no step"
        ),
        pytest.param(steps(*((str(n), []) for n in range(51))), BAD_VALUE, "$.steps", id="51 steps"),
        pytest.param({"refs": [{}]}, BAD_VALUE, "$.refs[0]", id="a ref of nothing"),
        pytest.param({"refs": [{"path": "a", "url": "https://x"}]}, BAD_VALUE, "$.refs[0]", id="a ref of both"),
        pytest.param({"refs": [{"url": "ftp://x"}]}, BAD_VALUE, "$.refs[0].url", id="not http"),
        pytest.param({"refs": [{"path": "gone.md"}]}, "workflow-ref-missing", "$.refs[0].path", id="no such ref"),
        pytest.param({"refs": [{"path": "../deck"}]}, "workflow-ref-escape", "$.refs[0].path", id="ref with .."),
        pytest.param({"refs": [{"path": "/etc"}]}, "workflow-ref-escape", "$.refs[0].path", id="absolute ref"),
        pytest.param({"guardrails": [{"id": "x"}]}, "document-missing-key", "$.guardrails[0].message", id="no message"),
        pytest.param(
            {"guardrails": [{"id": "x", "message": "m", "enforced": "yes"}]},
            "document-wrong-type",
            "$.guardrails[0].enforced",
            id="enforced is a text",
        ),
        pytest.param(
            {"guardrails": [{"id": "x", "message": "m"}] * 2}, BAD_VALUE, "$.guardrails[1].id", id="guardrail twice"
        ),
        pytest.param(
            {"guardrails": [{"id": "x", "message": "m", "at": ["nowhere"]}]},
            "workflow-unknown-subject",
            "$.guardrails[0].at[0]",
            id="at no step",
        ),
        pytest.param(
            {"guardrails": [{"id": "x", "message": "m", "at": []}]}, BAD_VALUE, "$.guardrails[0].at", id="at nothing"
        ),
    ],
)
def test_each_problem_has_its_code_and_its_place(tmp_path: Path, change: dict[str, Any], code: str, path: str) -> None:
    assert problems(tmp_path, {**GOOD, **change}) == [(code, path)]


@pytest.mark.parametrize(
    ("check", "code", "path"),
    [
        pytest.param({}, BAD_VALUE, "", id="none"),
        pytest.param({"text": {"max-chars": 1}, "json": {}}, BAD_VALUE, "", id="two"),
        pytest.param({"command": "rm"}, "document-unknown-key", ".command", id="command"),
        pytest.param({"text": {}}, BAD_VALUE, ".text", id="text that checks nothing"),
        pytest.param({"text": {"must-match": "("}}, "workflow-bad-pattern", ".text.must-match", id="pattern"),
        pytest.param(
            {"text": {"must-not-match": ["a", "["]}}, "workflow-bad-pattern", ".text.must-not-match[1]", id="patterns"
        ),
        pytest.param({"text": {"min-chars": 3, "max-chars": 2}}, BAD_VALUE, ".text.min-chars", id="bounds"),
        pytest.param({"artifact": {"format": "ppt"}}, BAD_VALUE, ".artifact.format", id="format"),
        pytest.param(
            {"artifact": {"format": "pptx", "min-count": {"pages": 1}}},
            BAD_VALUE,
            ".artifact.min-count.pages",
            id="count",
        ),
        pytest.param(
            {"artifact": {"format": "pptx", "require-keys": ["a"]}}, BAD_VALUE, ".artifact.require-keys", id="keys"
        ),
        pytest.param({"artifact": {"format": "pptx", "path": "../*"}}, BAD_VALUE, ".artifact.path", id="path"),
    ],
)
def test_checks_are_checked(tmp_path: Path, check: dict[str, Any], code: str, path: str) -> None:
    rules = [{"id": "x", "message": "m", "check": check}]
    found = problems(tmp_path, {**GOOD, "guardrails": rules})
    assert (code, f"$.guardrails[0].check{path}") in found


def test_a_name_has_small_letters_also_when_it_comes_from_the_folder(tmp_path: Path) -> None:
    assert (BAD_VALUE, "$.name") in problems(tmp_path, {**GOOD, "name": "Deck"})
    with pytest.raises(SkillInvalid) as caught:
        load_skill(write_skill(tmp_path, GOOD, "My Deck"))
    assert [f.where.json_path for f in caught.value.findings] == ["$.name"]


def test_a_cycle_is_shown_as_one_concrete_way_round(tmp_path: Path) -> None:
    data = steps(("a", ["c"]), ("b", ["a"]), ("c", ["b"]), ("d", []))
    with pytest.raises(SkillInvalid) as caught:
        load_skill(write_skill(tmp_path, data))
    assert caught.value.code == "workflow-dependency-cycle"
    assert "a → b → c → a" in caught.value.message
    assert problems(tmp_path, steps(("a", ["a"]))) == [("workflow-dependency-cycle", "$.steps[0].depends")]
    assert problems(tmp_path, steps(("a", ["b"]), ("b", ["a"])))[0][0] == "workflow-dependency-cycle"


def test_a_diamond_is_no_cycle(tmp_path: Path) -> None:
    found = load_skill(write_skill(tmp_path, GOOD))
    assert levels(found.steps) == [["outline"], ["chart", "produce"], ["report"]]


def test_all_problems_at_once_with_lines(tmp_path: Path) -> None:
    text = "description: d\nallowed_tools: [x]\nversion: 1.0\nsteps:\n  - {name: a, prompt: p, depends: [b]}\n"
    with pytest.raises(SkillInvalid) as caught:
        load_skill(write_skill(tmp_path, text))
    found = [(f.code, f.where.line, f.fix) for f in caught.value.findings]
    assert found == [
        ("document-unknown-key", 2, "did you mean 'allowed-tools'?"),
        ("document-wrong-type", 3, 'quote it: version: "1.0"'),
        ("workflow-unknown-dependency", 5, None),
    ]


def test_yaml_that_is_none_and_keys_that_stand_twice(tmp_path: Path) -> None:
    assert problems(tmp_path, "description: [")[0][0] == "document-syntax"
    assert problems(tmp_path, "description: a\ndescription: b\n")[0][0] == "document-duplicate-key"


def test_null_is_absent_and_empty_is_not(tmp_path: Path) -> None:
    found = load_skill(write_skill(tmp_path, {**GOOD, "allowed-tools": None, "invocation": None, "model": None}))
    assert (found.workflow.allowed_tools, found.workflow.invocation) == (None, "auto")
    assert load_skill(write_skill(tmp_path, {**GOOD, "allowed-tools": []})).workflow.allowed_tools == []


def test_texts_are_trimmed_and_the_prompt_is_not(tmp_path: Path) -> None:
    data = {**GOOD, "description": " d ", "prompt": " keep\n  this ", "name": " deck "}
    found = load_skill(write_skill(tmp_path, data))
    assert (found.description, found.workflow.prompt, found.workflow.name) == ("d", " keep\n  this ", "deck")


def test_name_and_description_of_the_knowledge_beside_it(tmp_path: Path) -> None:
    front = "---\nname: deck\ndescription: From SKILL.md.\n---\n\n# Deck\n"
    plain = {"steps": GOOD["steps"]}
    assert load_skill(write_skill(tmp_path, plain, knowledge=front)).description == "From SKILL.md."
    other = front.replace("name: deck", "name: slides")
    assert problems(tmp_path, plain, knowledge=other) == [("workflow-name-mismatch", "$.name")]


def test_a_ref_may_not_leave_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("s")
    root = write_skill(tmp_path, {**GOOD, "refs": [{"path": "notes.txt"}]})
    (root / "notes.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SkillInvalid) as caught:
        load_skill(root)
    assert caught.value.code == "workflow-ref-escape"


def test_a_pack_lists_folders_first_and_hides_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, GOOD, "zebra")
    write_skill(tmp_path, {"steps": 3}, "broken")
    (tmp_path / "about").mkdir()
    (tmp_path / "about/SKILL.md").write_text("---\nname: about\ndescription: Knows.\n---\n\nx\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "quick.yaml").write_text(json.dumps(GOOD))
    (tmp_path / "zebra.yaml").write_text(json.dumps(GOOD))
    (tmp_path / "old.yml").write_text("x: 1")
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong/skill.yml").write_text("x: 1")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "README.txt").write_text("not a skill")
    pack = load_pack(tmp_path)
    assert [s.id for s in pack.skills] == ["about", "zebra", "quick"]
    assert [bool(s.steps) for s in pack.skills] == [False, True, True]
    found = {(f.code, str(f.severity), os.path.basename(f.where.path or "")) for f in pack.problems}
    assert found == {
        ("workflow-ignored", "warning", ".hidden"),
        ("document-missing-key", "error", "skill.yaml"),
        ("document-wrong-type", "error", "skill.yaml"),
        ("workflow-shadowed", "warning", "zebra.yaml"),
        ("workflow-misnamed", "error", "old.yml"),
        ("workflow-misnamed", "error", "skill.yml"),
    }
    with pytest.raises(SkillInvalid):
        load_pack(tmp_path, strict=True)


def test_a_pack_does_not_follow_symlinks_out_of_it(tmp_path: Path) -> None:
    write_skill(tmp_path / "elsewhere", GOOD, "spy")
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "spy").symlink_to(tmp_path / "elsewhere/spy")
    (pack / "loop").symlink_to(pack / "loop")
    (pack / "half").mkdir()
    (pack / "half/skill.yaml").symlink_to(tmp_path / "elsewhere/spy/skill.yaml")
    found = load_pack(pack)
    assert found.skills == []
    assert {f.code for f in found.problems} == {"workflow-ignored"}
    assert len(found.problems) == 3


def test_a_legacy_file_has_its_stem_for_a_name_and_a_folder_for_material(tmp_path: Path) -> None:
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick/tone.txt").write_text("short")
    (tmp_path / "quick.yaml").write_text(json.dumps({**GOOD, "refs": [{"path": "tone.txt"}]}))
    found = load_skill(tmp_path / "quick.yaml")
    assert (found.id, found.folder) == ("quick", str(tmp_path / "quick"))
    assert [s.id for s in load_pack(tmp_path).skills] == ["quick"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "none.yaml", tmp_path):
        with pytest.raises(RunRefused) as caught:
            load_skill(path)
        assert caught.value.code == "workflow-not-found"
    with pytest.raises(RunRefused):
        load_pack(tmp_path / "none")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "deck").mkdir()
    os.mkfifo(tmp_path / "deck/skill.yaml")
    with pytest.raises(SkillInvalid) as caught:
        load_skill(tmp_path / "deck")
    assert caught.value.code == "workflow-unreadable"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.dictionaries(
        st.sampled_from([*(f.alias or n for n, f in Workflow.model_fields.items()), "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["name", "prompt", "depends", "path", "url", "id", "message", "at", "check", "text"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_no_document_makes_the_loader_raise_anything_else(
    data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    try:
        found = load_skill(write_skill(folder, data))
    except SkillInvalid as exc:
        assert exc.findings
        return
    assert check_again(Skill(found.id, found.workflow, found.description, found.folder)) == []


# --------------------------------------------------------------------------- disclosure


def named(name: str, **fields: Any) -> Skill:
    built = skill(**fields)
    return Skill(name, built.workflow, description=f"About {name}.")


def test_a_list_has_what_the_audience_may_start_by_name() -> None:
    skills = [
        named("zoo", when_to_use="on Sundays"),
        named("by-hand", invocation="user"),
        named("inner", invocation="model"),
    ]
    assert listing(skills) == "- inner: About inner.\n- zoo: About zoo. — on Sundays"
    assert listing(skills, "user") == "- by-hand: About by-hand.\n- zoo: About zoo. — on Sundays"


def test_a_long_list_loses_descriptions_first_and_then_says_how_many() -> None:
    skills = [named(f"s{number:02}", when_to_use="x" * 900) for number in range(20)]
    whole = listing(skills, max_chars=10_000).splitlines()
    assert all(len(line) == LONGEST_LINE and line.endswith("…") for line in whole)
    some = listing(skills, max_chars=2_000).splitlines()
    assert len(some) == 20
    assert some[-1] == "- s19"
    assert len(some[0]) == LONGEST_LINE
    few = listing(skills, max_chars=36).splitlines()
    assert few == ["- s00", "- s01", "- s02", "… and 17 more"]
    assert listing(skills, max_chars=1) == "… and 20 more"
    assert listing([]) == ""


def test_the_surface_has_titles_of_material_and_not_its_content() -> None:
    found = skill(
        [{"name": "a"}, {"name": "b", "depends": ["a"]}],
        prompt="Base.",
        refs=[{"url": "https://example.org/x", "title": "Tone"}],
        guardrails=[{"id": "x", "message": "Be short."}],
    )
    assert surface(found, ["t"]) == {
        "name": "deck",
        "prompt": "Base.",
        "steps": [{"name": "a", "depends": []}, {"name": "b", "depends": ["a"]}],
        "guardrails": ["Be short."],
        "refs": ["Tone"],
        "tools": ["t"],
    }


def reasons(skills: list[Skill], **request: Any) -> list[tuple[str, str]]:
    return [(hit.skill.id, hit.reason) for hit in activate(skills, **request)]


def test_triggers_are_whole_words_in_latin_and_substrings_in_chinese() -> None:
    skills = [named("deck", triggers=["deck", "C++"]), named("cn", triggers=["汇报"])]
    assert reasons(skills, text="Make a DECK.") == [("deck", "trigger:deck")]
    assert reasons(skills, text="Ｄｅｃｋ please") == [("deck", "trigger:deck")]
    assert reasons(skills, text="on the decks") == []
    assert reasons(skills, text="use c++17") == [("deck", "trigger:C++")]
    assert reasons(skills, text="做季度汇报吧") == [("cn", "trigger:汇报")]


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.csv", "a.csv", True),
        ("*.csv", "x/a.csv", False),
        ("**/*.csv", "x/y/a.csv", True),
        ("**/*.csv", "a.csv", True),
        ("data/**", "data/x/y", True),
        ("data/**/x.*", "data/x.md", True),
        ("*.CSV", "a.csv", False),
        ("data/*.csv", "data\\a.csv", True),
        ("a**b", "axxb", True),
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 4000, False),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert bool(reasons([named("s", paths=[glob])], paths=[path])) is matches


def test_explicit_comes_alone_then_triggers_then_paths() -> None:
    skills = [
        named("by-path", paths=["*.csv"]),
        named("quiet"),
        named("hand", invocation="user", triggers=["deck"]),
        named("both", triggers=["deck"], paths=["*.csv"]),
        named("inner", invocation="model", triggers=["deck"]),
    ]
    assert reasons(skills, text="deck", paths=["a.csv"]) == [
        ("both", "trigger:deck"),
        ("inner", "trigger:deck"),
        ("by-path", "path:*.csv"),
    ]
    assert reasons(skills, text="deck", explicit="/hand") == [("hand", "explicit")]
    for name, code in (("inner", "workflow-not-invocable"), ("nobody", "workflow-not-found")):
        with pytest.raises(RunRefused) as caught:
            activate(skills, explicit=name)
        assert caught.value.code == code
