"""Agent definitions: every rule with its line, what is resolved, what is delivered, what a package holds."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, Plans, design, run_cli

from extforge import cli
from extforge.agents import read_plan_skills, skills_in_plan
from extforge.check import load_plan
from extforge.errors import PlanError
from extforge.generate import generate
from extforge_harness.agents import (
    AgentDefinition,
    Resolved,
    agent_schema,
    build_agent,
    build_package,
    check_agent,
    check_resolved,
    load_agent,
    origins,
    parse_agent,
    prepare,
    provider_settings,
    resolve,
    skills_in_extension,
    skills_in_pack,
    with_header,
)
from extforge_harness.agents.definition import SIZE_LIMIT, read_agent
from extforge_harness.agents.package import check_own
from extforge_harness.agents.running import Options, run_agent, tools_of
from extforge_harness.errors import AgentBuildError, AgentDefinitionError, HarnessError, HostMissing
from extforge_harness.skills import find_skills
from extforge_verifiers.extensions import verify_extension

EXAMPLES = sorted((ROOT / "examples").glob("*.agent.*"))
FULL: dict[str, Any] = {
    "name": "deck-writer",
    "version": "1.2",
    "description": "Writes board decks",
    "instructions": "You prepare board decks. Always finish with the file path.\n",
    "skills": ["deck", "notes"],
    "defaults": {"model": "glm-4.6", "effort": "high", "approval": "auto", "executor": "local", "plan": False},
}
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"


def agent(**fields: Any) -> dict[str, Any]:
    return {"name": "a", **fields}


def defaults(**fields: Any) -> dict[str, Any]:
    return agent(defaults=fields)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def skill(pack: Path, name: str, text: str | None = None) -> Path:
    folder = pack / name
    folder.mkdir(parents=True)
    write(folder / "SKILL.md", text or f"---\nname: {name}\ndescription: Knows {name}.\n---\n\nHow to {name}.\n")
    return folder


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    for name in ("deck", "notes", "spare"):
        skill(folder, name)
    return folder


# --------------------------------------------------------------------------- the table of rules

RULES = [
    pytest.param([], "agent-not-object", "agent must be an object", "$", id="a list"),
    pytest.param(None, "agent-not-object", "agent must be an object", "$", id="nothing"),
    pytest.param("name: a", "agent-not-object", "agent must be an object", "$", id="a text"),
    pytest.param(agent(zeta=1, alpha=2), "agent-unknown-field", "agent has unknown field(s): alpha, zeta", "$.zeta", id="unknown, sorted"),
    pytest.param(defaults(temperature=1), "agent-unknown-field", "agent.defaults has unknown field(s): temperature", "$.defaults.temperature", id="unknown default"),
    pytest.param({"name": "a", 7: 1}, "agent-unknown-field", "agent has unknown field(s): 7", "$", id="a key that is no text"),
    pytest.param({"name": "a", ("x", 1): 1}, "agent-unknown-field", "agent has unknown field(s): ('x', 1)", "$", id="a key that is a tuple"),
    pytest.param(agent(routing={}), "agent-routing-not-supported", "routing is a runtime-wide policy in v1; it cannot be set per agent", "$.routing", id="routing"),
    pytest.param(agent(routing_policy=None), "agent-routing-not-supported", "routing_policy is a runtime-wide policy in v1; it cannot be set per agent", "$.routing_policy", id="routing_policy"),
    *(
        pytest.param({"name": name}, "agent-bad-name", "agent.name must match [a-z0-9][a-z0-9_-]{0,63}", "$.name", id=f"name {name!r:.20}")
        for name in ("a\n", "A", " a", "a ", "", "-a", "_a", "a" * 65, "é", "a.b", None, 1, ["a"], {})
    ),
    pytest.param({}, "agent-bad-name", "agent.name must match [a-z0-9][a-z0-9_-]{0,63}", "$.name", id="no name"),
    pytest.param(agent(version=1.2), "agent-bad-type", "agent.version must be a string", "$.version", id="a YAML number as version"),
    pytest.param(agent(version=True), "agent-bad-type", "agent.version must be a string", "$.version", id="a boolean as version"),
    pytest.param(agent(version=" \t"), "agent-empty", "agent.version must be a non-empty string", "$.version", id="a blank version"),
    pytest.param(agent(version=f" {'x' * 65} "), "agent-too-long", "agent.version has 65 characters; the limit is 64", "$.version", id="a long version"),
    pytest.param(agent(description=["x"]), "agent-bad-type", "agent.description must be a string", "$.description", id="description"),
    pytest.param(agent(description="𝄞" * 1001), "agent-too-long", "agent.description has 1001 characters; the limit is 1000", "$.description", id="a long description"),
    pytest.param(agent(instructions={}), "agent-bad-type", "agent.instructions must be a string", "$.instructions", id="instructions"),
    pytest.param(agent(instructions="字" * 8001), "agent-too-long", "agent.instructions has 8001 characters; the limit is 8000", "$.instructions", id="long instructions"),
    pytest.param(agent(instructions="\ud800"), "agent-bad-type", "agent.instructions has half of a surrogate pair, which is not text", "$.instructions", id="a surrogate"),
    pytest.param(agent(instructions=f"use {SECRET}"), "agent-secret", "agent.instructions holds what looks like a secret (sk-a...)", "$.instructions", id="a secret"),
    pytest.param(agent(skills="deck"), "agent-bad-type", "agent.skills must be a list", "$.skills", id="skills as a text"),
    pytest.param(agent(skills=[1]), "agent-bad-type", "agent.skills[0] must be a string", "$.skills[0]", id="a number as skill"),
    pytest.param(agent(skills=["deck", None]), "agent-bad-type", "agent.skills[1] must be a string", "$.skills[1]", id="nothing as skill"),
    pytest.param(agent(skills=[" "]), "agent-empty", "agent.skills[0] must be a non-empty string", "$.skills[0]", id="a blank skill"),
    pytest.param(agent(skills=["deck"] * 21), "agent-too-many", "agent.skills has 21 entries; the limit is 20", "$.skills", id="21 skills, all equal"),
    pytest.param(agent(skills=["deck", "y", "x", "y"]), "agent-unknown-skill", "agent.skills unknown skill(s): y, x", "$.skills[1]", id="unknown skills, as listed"),
    pytest.param(agent(defaults=[]), "agent-bad-type", "agent.defaults must be an object", "$.defaults", id="defaults"),
    pytest.param(defaults(model=" "), "agent-empty", "agent.defaults.model must be a non-empty string", "$.defaults.model", id="a blank model"),
    pytest.param(defaults(model=4), "agent-bad-type", "agent.defaults.model must be a string", "$.defaults.model", id="a number as model"),
    *(
        pytest.param(defaults(effort=value), "agent-bad-choice", "agent.defaults.effort must be low, medium, high, xhigh or max", "$.defaults.effort", id=f"effort {value!r}")
        for value in ("hgh", "High", "", True, 1, [], {"a": []})
    ),
    pytest.param(defaults(approval="always"), "agent-bad-choice", "agent.defaults.approval must be ask, auto or full", "$.defaults.approval", id="approval"),
    pytest.param(defaults(executor="podman"), "agent-bad-choice", "agent.defaults.executor must be local, docker or cloud", "$.defaults.executor", id="executor"),
    *(
        pytest.param(defaults(plan=value), "agent-bad-plan", "agent.defaults.plan must be true or false", "$.defaults.plan", id=f"plan {value!r}")
        for value in (1.0, 0.0, "true", 2, -1, [], {})
    ),
    *(
        pytest.param(agent(defaults=value), "agent-plan-conflict", 'plan mode is read-only and approval "full" is unrestricted; choose one', at, id=f"conflict {value}")
        for value, at in (({"plan": True, "approval": "full"}, "$.defaults.approval"), ({"approval": "full", "plan": 1}, "$.defaults.plan"))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code", "message", "place"), RULES)
def test_each_rule_has_its_code_its_words_and_its_place(data: Any, code: str, message: str, place: str) -> None:
    before = copy.deepcopy(data)
    findings = check_agent(data, ["deck", "notes"])
    assert [(f.code, f.message, f.where.json_path) for f in findings] == [(code, message, place)]
    with pytest.raises(AgentDefinitionError) as caught:
        parse_agent(data, ["deck", "notes"])
    assert caught.value.findings == tuple(findings)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, HarnessError)
    assert data == before, "the input was changed"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(FULL, id="everything"),
        pytest.param({"name": "0" * 64}, id="only a name"),
        pytest.param(agent(version="x" * 64, description="d" * 1000, instructions="i" * 8000), id="at the limits"),
        pytest.param(
            agent(version=f" {'x' * 64}\n", instructions=f"\n{'i' * 8000}  "), id="at the limits once trimmed"
        ),
        pytest.param(agent(skills=["deck"] * 20), id="20 skills"),
        pytest.param(dict.fromkeys(FULL) | {"name": "a"}, id="null is absent"),
        pytest.param(
            defaults(**dict.fromkeys(("model", "effort", "approval", "executor", "plan"))), id="null defaults"
        ),
        pytest.param(defaults(plan=False, approval="full"), id="only a true plan conflicts"),
        pytest.param(defaults(plan=0, approval="full"), id="0 is false"),
        pytest.param(agent(description=""), id="an empty description"),
        pytest.param(agent(instructions=" \n "), id="blank instructions are none"),
    ],
)
def test_what_is_allowed_passes(data: dict[str, Any]) -> None:
    assert check_agent(data, ["deck", "notes"]) == []
    jsonschema.validate(data, agent_schema())


def test_the_normal_form() -> None:
    definition = parse_agent(agent(
        version=" 2 ", description=" kept ", instructions="\n hello \n", skills=[" deck ", "notes", "deck"],
        defaults={"model": " glm ", "plan": 1, "effort": None},
    ))  # fmt: skip
    assert definition == AgentDefinition("a", "2", " kept ", "hello", ("deck", "notes"), {"model": "glm", "plan": True})
    assert definition.defaults["plan"] is True
    assert parse_agent(agent(instructions=" ")).instructions is None
    assert definition.summary() == {"name": "a", "version": "2", "skills": ["deck", "notes"]}
    assert parse_agent(definition.data()) == definition


def test_no_known_skills_and_unchecked_skills_are_two_things() -> None:
    listed = agent(skills=["deck"])
    assert check_agent(listed, None) == []
    assert [f.fix for f in check_agent(listed, [])] == ["known skills: none"]
    assert [f.fix for f in check_agent(agent(skills=["dek"]), ["deck"])] == ["dek: did you mean 'deck'?"]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param("skils", "did you mean 'skills'?", id="a typo"),
        pytest.param("tools", "loaded beside the agent", id="tools"),
        pytest.param("API_KEY", "come from the environment", id="a credential"),
        pytest.param("extends", "stands alone", id="inheritance"),
        pytest.param("subagents", "sub-agents are not part", id="sub-agents"),
        pytest.param("model", "belongs into defaults", id="a default at the top"),
        pytest.param("colour", "remove it", id="anything else"),
    ],
)
def test_an_unknown_key_is_told_where_it_belongs(key: str, words: str) -> None:
    (finding,) = check_agent(agent(**{key: SECRET}))
    assert words in (finding.fix or "")
    assert SECRET not in repr(finding), "a value is never repeated"


BAD = """\
nam: x
version: 1.2
colour: red
routing: {a: 1}
skills: [deck, dek, "", 3]
defaults:
  efort: high
  effort: hgh
  plan: 1.0
  approval: full
"""


def test_every_problem_of_a_file_comes_at_once_with_its_line(tmp_path: Path) -> None:
    path = str(write(tmp_path / "bad.agent.yaml", BAD))
    findings = check_agent(read_agent(path), ["deck"])
    assert [(f.code, f.where.path, f.where.line, f.where.column) for f in findings] == [
        ("agent-bad-name", path, 1, 1),
        ("agent-unknown-field", path, 1, 1),
        ("agent-bad-type", path, 2, 10),
        ("agent-routing-not-supported", path, 4, 1),
        ("agent-empty", path, 5, 21),
        ("agent-bad-type", path, 5, 25),
        ("agent-unknown-skill", path, 5, 16),
        ("agent-unknown-field", path, 7, 3),
        ("agent-bad-choice", path, 8, 11),
        ("agent-bad-plan", path, 9, 9),
    ]
    assert findings[1].fix == "nam (line 1): did you mean 'name'?; colour (line 3): remove it"


JSON_TYPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from([*FULL, *FULL["defaults"], "routing"])


@settings(max_examples=300, deadline=None)
@given(JSON_TYPES | st.dictionaries(KEYS | st.text(max_size=5), JSON_TYPES | st.dictionaries(KEYS, JSON_TYPES)))
def test_whatever_is_given_is_answered(data: Any) -> None:
    before = copy.deepcopy(data)
    findings = check_agent(data, ["deck"])
    assert data == before
    if findings:
        assert all(f.code.startswith("agent-") and f.where.json_path for f in findings)
        return
    definition = parse_agent(data, ["deck"])
    assert parse_agent(definition.data(), ["deck"]) == definition
    jsonschema.validate(definition.data(), agent_schema())


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({"name": st.sampled_from(["a", "A", None, 3])}, optional={
    "version": st.sampled_from(["1", " ", 1, None]),
    "skills": st.sampled_from([[], ["x"], "x", None, ["x"] * 20, ["x"] * 21, [1]]),
    "defaults": st.fixed_dictionaries({}, optional={
        "model": st.sampled_from(["m", "", 1, None]),
        "effort": st.sampled_from(["high", "no", None, 1]),
        "approval": st.sampled_from(["full", "ask", None]),
        "plan": st.sampled_from([True, 1, 0, False, None, "x"]),
    }),
    "extra": st.none(),
}))  # fmt: skip
def test_the_schema_agrees_with_the_check(data: dict[str, Any]) -> None:
    allowed = jsonschema.Draft202012Validator(agent_schema()).is_valid(data)
    assert allowed is (check_agent(data) == []), check_agent(data)


# --------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "data", "code", "line"),
    [
        pytest.param("a.yaml", b"name: a\nname: b\n", "document-duplicate-key", 2, id="a duplicate key in YAML"),
        pytest.param("a.json", b'{"name": "a",\n "name": "b"}', "document-duplicate-key", 2, id="a duplicate key in JSON"),
        pytest.param("a.yaml", b"name: a\nskills: [\n", "document-syntax", 3, id="broken YAML"),
        pytest.param("a.json", b"{name: a}", "document-syntax", 1, id="YAML in a JSON file"),
        pytest.param("a.json", b'{"name": NaN}', "document-syntax", 1, id="a constant that JSON does not have"),
        pytest.param("a.yaml", b"name: \xff\n", "document-encoding", 1, id="not UTF-8"),
        pytest.param("a.yaml", b"name: a\n#" + b"x" * SIZE_LIMIT, "document-too-large", None, id="too large"),
        pytest.param("a.yaml", b"name: !!python/object:os.system a\n", "document-tag", 1, id="a tag"),
        pytest.param("a.yaml", b"[" * 200 + b"]" * 200, "document-too-deep", None, id="nested"),
        pytest.param("b.yaml", None, "agent-unreadable", None, id="no such file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_document(tmp_path: Path, name: str, data: bytes | None, code: str, line: int | None) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(AgentDefinitionError) as caught:
        load_agent(path)
    assert code in [f.code for f in caught.value.findings]
    if line is not None:
        assert caught.value.findings[0].where.line == line


@pytest.mark.parametrize("name", ["a.agent.yaml", "a.agent.yml", "a.agent.json", "a.yaml"])
def test_both_syntaxes_and_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    text = json.dumps(FULL) if name.endswith("json") else yaml.safe_dump(FULL)
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_agent(path, known_skills=["deck", "notes"]) == parse_agent(FULL)


def test_special_files_are_refused_before_they_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")  # opening it would wait for ever
    for path in (tmp_path / "pipe.yaml", tmp_path, "nul\0.yaml"):
        with pytest.raises(AgentDefinitionError, match="agent-unreadable"):
            load_agent(path)


def test_a_path_cannot_leave_the_folder_of_definitions(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    (folder / "sub").mkdir(parents=True)
    write(folder / "in.yaml", "name: inside\n")
    write(folder / "sub" / "deep.yaml", "name: deep\n")
    outside = write(tmp_path / "out.yaml", "name: outside\n")
    (folder / "link.yaml").symlink_to(outside)
    (folder / "alias.yaml").symlink_to(folder / "in.yaml")
    (folder / "up").symlink_to(tmp_path)
    assert load_agent("in.yaml", folder).name == "inside"
    assert load_agent("sub/../sub/deep.yaml", folder).name == "deep"
    assert load_agent("alias.yaml", folder).name == "inside"
    assert load_agent(folder / "in.yaml", folder).name == "inside"
    for path in ("../out.yaml", str(outside), "link.yaml", "up/out.yaml", "/etc/passwd", "../agents-not/none.yaml"):
        with pytest.raises(AgentDefinitionError) as caught:
            load_agent(path, folder)
        assert [f.code for f in caught.value.findings] == ["agent-path-escape"], path
    assert load_agent(outside).name == "outside"


def test_a_relative_path_starts_at_the_folder_or_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.yaml", "name: here\n")
    (tmp_path / "agents").mkdir()
    write(tmp_path / "agents" / "a.yaml", "name: there\n")
    monkeypatch.chdir(tmp_path)
    assert load_agent("a.yaml").name == "here"
    assert load_agent("a.yaml", "agents").name == "there"


# --------------------------------------------------------------------------- resolution

NAMED = parse_agent(agent(defaults={"model": "m", "effort": "low", "approval": "full", "executor": "cloud"}))
PLANNED = parse_agent(defaults(plan=True))


@pytest.mark.parametrize(
    ("definition", "request_", "wanted"),
    [
        pytest.param(None, {}, Resolved(), id="nothing"),
        pytest.param(None, None, Resolved(), id="no request"),
        pytest.param(NAMED, "model", Resolved("m", "low", "full", "cloud"), id="a request that is no mapping"),
        pytest.param(NAMED, {}, Resolved("m", "low", "full", "cloud"), id="the definition"),
        pytest.param(NAMED, {"model": "n", "approval": "ask"}, Resolved("n", "low", "ask", "cloud"), id="a request comes first"),
        pytest.param(NAMED, {"model": None}, Resolved("m", "low", "full", "cloud"), id="None is not asked for"),
        pytest.param(NAMED, {"model": ""}, Resolved("", "low", "full", "cloud"), id="an empty text is"),
        pytest.param(None, {"model": "n", "other": 1}, Resolved("n"), id="without a definition"),
        pytest.param(PLANNED, {}, Resolved(plan=True), id="plan of the definition"),
        *(pytest.param(PLANNED, {"plan": value}, Resolved(plan=False), id=f"plan {value!r} is off") for value in (None, False, 0, "true", 2, 1.0, [])),
        *(pytest.param(None, {"plan": value}, Resolved(plan=True), id=f"plan {value!r} is on") for value in (True, 1)),
    ],
)  # fmt: skip
def test_request_then_definition_then_runtime(
    definition: AgentDefinition | None, request_: Any, wanted: Resolved
) -> None:
    before = copy.deepcopy(request_)
    resolved = resolve(definition, request_)
    assert resolved == wanted
    assert isinstance(resolved.plan, bool)
    assert request_ == before


def test_where_each_setting_comes_from() -> None:
    assert origins(NAMED, {"effort": "max", "plan": None, "model": None}) == {
        "model": "definition", "effort": "request", "approval": "definition", "executor": "definition", "plan": "request",
    }  # fmt: skip
    assert set(origins(None).values()) == {"runtime default"}


def test_what_a_request_makes_wrong_fails_like_a_definition() -> None:
    conflict = check_resolved(resolve(PLANNED, {"approval": "full"}))
    assert [f.code for f in conflict] == ["agent-plan-conflict"]
    assert check_resolved(resolve(PLANNED, {"approval": "full", "plan": False})) == []
    wrong = {"model": "", "effort": "hgh", "approval": 1, "executor": "x"}
    ours = [(f.code, f.message.partition(" ")[2]) for f in check_agent(agent(defaults=wrong))]
    theirs = [(f.code, f.message.partition(" ")[2]) for f in check_resolved(resolve(None, wrong))]
    assert theirs == ours
    assert [f.code for f in check_resolved(Resolved(plan="yes"))] == ["agent-bad-plan"]


def test_the_header_has_three_shapes() -> None:
    prompt = "Make a deck"
    spoken = parse_agent(agent(instructions="Be brief.\nReally."))
    assert with_header(spoken, prompt) == "[Agent: a]\nBe brief.\nReally.\n\nMake a deck"
    versioned = parse_agent(agent(version="1.2", instructions="Be brief."))
    assert with_header(versioned, prompt) == "[Agent: a 1.2]\nBe brief.\n\nMake a deck"
    assert with_header(None, prompt) is prompt
    assert with_header(parse_agent(agent(version="1")), prompt) is prompt


def test_a_task_is_prepared() -> None:
    spoken = parse_agent(agent(instructions="Be brief.", skills=["x"], defaults={"effort": "low"}))
    task = prepare(spoken, {"prompt": "hi", "model": "m"})
    assert (task.prompt, task.resolved) == ("[Agent: a]\nBe brief.\n\nhi", Resolved("m", "low"))
    assert task.agent == {"name": "a", "version": None, "skills": ["x"]}
    assert prepare(spoken, {"prompt": "hi"}, persona=True).prompt == "hi"
    assert prepare(None, {"prompt": "hi"}).agent is None


@pytest.mark.parametrize("kind", ["goal", "coordinator"])
def test_instructions_do_not_get_into_goals(kind: str) -> None:
    with pytest.raises(AgentDefinitionError) as caught:
        prepare(parse_agent(agent(instructions="x")), {"prompt": "p", "kind": kind})
    assert [f.code for f in caught.value.findings] == ["agent-instructions-not-applicable"]
    assert prepare(parse_agent(agent()), {"prompt": "p", "kind": kind}).prompt == "p"
    assert prepare(None, {"prompt": "p", "kind": kind}).prompt == "p"


def test_all_that_is_wrong_with_a_task_comes_at_once() -> None:
    with pytest.raises(AgentDefinitionError) as caught:
        prepare(PLANNED, {"kind": "chat", "approval": "full", "effort": "x"})
    assert [f.code for f in caught.value.findings] == [
        "agent-bad-type", "agent-bad-choice", "agent-bad-choice", "agent-plan-conflict",
    ]  # fmt: skip


# --------------------------------------------------------------------------- runtimes


@pytest.mark.parametrize(
    ("runtime", "resolved", "config", "missing"),
    [
        ("native", Resolved(), {}, []),
        ("native", Resolved("m", "high", "full", "local", plan=True), {"deep_agent": {"model": {"model_request_config": {"model": "m", "reasoning": {"effort": "high"}}}}}, []),
        ("native_v2", Resolved(effort="low"), {"deep_agent": {"model": {"model_request_config": {"reasoning": {"effort": "low"}}}}}, []),
        ("claudecode", Resolved(), {"permission_mode": "default"}, []),
        ("claudecode", Resolved("m", "high", "auto"), {"model": {"model": "m"}, "permission_mode": "acceptEdits"}, ["effort"]),
        ("claudecode", Resolved(approval="full"), {"permission_mode": "bypassPermissions"}, []),
        ("claudecode", Resolved(approval="auto", plan=True), {"permission_mode": "plan"}, ["approval"]),
        ("codex", Resolved(approval="full"), {"bypass_approvals_and_sandbox": True}, []),
        ("codex", Resolved("m", "high", "auto", plan=True), {"bypass_approvals_and_sandbox": False, "model": {"model": "m"}, "thread_config": {"model_reasoning_summary": "detailed", "model_reasoning_effort": "high"}}, ["approval", "plan"]),
        ("dsh", Resolved("m", "high", "ask", plan=True), {"model": "m", "reasoning_effort": "high"}, ["approval", "plan"]),
        ("dsh", Resolved(executor="docker"), {}, ["executor"]),
    ],
)  # fmt: skip
def test_what_settings_become_in_each_runtime(
    runtime: str, resolved: Resolved, config: Any, missing: list[str]
) -> None:
    found = provider_settings(resolved, runtime)
    assert found.config == config
    assert [name for name, reason in found.not_applied] == missing
    assert all(reason for _, reason in found.not_applied)


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown runtime 'x'"):
        provider_settings(Resolved(), "x")


# --------------------------------------------------------------------------- skills


def test_skills_of_a_pack(pack: Path, tmp_path: Path) -> None:
    (pack / "empty").mkdir()
    (pack / "file.md").write_text("x")
    skill(pack, ".hidden")
    skill(pack, "assets")  # the host passes over it
    outside = skill(tmp_path, "outside")
    (pack / "linked").symlink_to(outside)
    assert skills_in_pack(pack) == ["deck", "notes", "spare"]
    assert skills_in_pack(tmp_path / "none") == []
    assert skills_in_pack(pack / "file.md") == []


def test_skills_of_a_generated_extension_a_target_and_a_plan(plans: Plans, tmp_path: Path) -> None:
    one, two = design("sales_deck", components=["tool", "skill"]), design("brand_voice", components=["skill"])
    result = plans.generate(one, two, into=tmp_path / "out")
    assert skills_in_extension(tmp_path / "out" / result.roots[0]) == ["sales_deck"]
    assert sorted(find_skills([tmp_path / "out"])) == ["brand_voice", "sales_deck"]
    assert skills_in_plan(plans.check(one, two)) == ["brand_voice", "sales_deck"]
    reused = design("voice", components=["skill"], skill_source="community:house-style")
    assert read_plan_skills(plans.write(one, reused)) == ["house-style", "sales_deck"]
    with pytest.raises(PlanError):
        read_plan_skills(plans.write(design("Bad Name")))


@pytest.mark.parametrize(
    "manifest",
    ["resources: {skills: {dirs: [../pack]}}", "resources: [", "resources: {skills: 3}", "- 1", "resources: {skills: {dirs: [1, null, ~]}}", ""],
)  # fmt: skip
def test_a_hostile_manifest_has_no_skills(pack: Path, tmp_path: Path, manifest: str) -> None:
    (tmp_path / "ext").mkdir()
    write(tmp_path / "ext" / "harness_config.yaml", manifest)
    assert skills_in_extension(tmp_path / "ext") == []


# --------------------------------------------------------------------------- packages


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def build(definition: AgentDefinition, sources: list[Path], out: Path, **options: Any) -> Path:
    return build_package(definition, sources, out, host=False, **options).path


def test_a_package_holds_the_listed_skills_and_nothing_else(pack: Path, tmp_path: Path) -> None:
    (pack / "deck" / "references").mkdir()
    (pack / "deck" / "references" / "logo.bin").write_bytes(bytes(range(256)))
    script = write(pack / "deck" / "run.sh", "#!/bin/sh\n")
    script.chmod(0o755)
    definition = parse_agent(FULL)
    package = build(definition, [pack], tmp_path / "out")
    assert package == tmp_path / "out" / "deck-writer"
    assert sorted(tree(package)) == [
        "agent.json", "manifest.json", "persona/identity.md", "skills/deck/SKILL.md", "skills/deck/references/logo.bin",
        "skills/deck/run.sh", "skills/notes/SKILL.md",
    ]  # fmt: skip
    assert tree(package / "skills" / "deck") == tree(pack / "deck")
    assert os.access(package / "skills" / "deck" / "run.sh", os.X_OK)
    assert not os.access(package / "manifest.json", os.X_OK)
    assert (package / "persona" / "identity.md").read_text() == FULL["instructions"].strip()
    assert load_agent(package / "agent.json") == definition
    manifest = json.loads((package / "manifest.json").read_text())
    assert manifest == {
        "package_type": "agent_template", "name": "deck-writer", "description": "Writes board decks",
        "persona": {"dir": "persona"},
        "skills": [{"dir": "skills", "mode": "all", "enabled_skills": ["deck", "notes"]}],
        "metadata": {"agent_definition": {
            "name": "deck-writer", "version": "1.2", "skills": ["deck", "notes"], "defaults": FULL["defaults"],
        }},
    }  # fmt: skip
    assert verify_extension(str(package)).findings == ()
    assert os.listdir(tmp_path / "out") == ["deck-writer"], "nothing is left over"


def test_equal_input_gives_equal_bytes(pack: Path, tmp_path: Path) -> None:
    definition = parse_agent(FULL)
    first = tree(build(definition, [pack], tmp_path / "out"))
    assert tree(build(definition, [pack], tmp_path / "out", force=True)) == first
    assert tree(build(definition, [pack], tmp_path / "other")) == first


@pytest.mark.parametrize(
    ("fields", "description", "persona"),
    [
        ({"instructions": "Be brief. Always."}, "Be brief.", "Be brief. Always."),
        ({"instructions": "请写报告。谢谢"}, "请写报告。", "请写报告。谢谢"),
        ({"instructions": "version 1.2 of it\ngoes on"}, "version 1.2 of it goes on", "version 1.2 of it\ngoes on"),
        ({}, "a", "You are a: a\n"),
        ({"description": " "}, "a", "You are a: a\n"),
        ({"description": "Writes decks."}, "Writes decks.", "You are a: Writes decks.\n"),
    ],
)
def test_what_the_host_must_have_is_made_of_what_there_is(
    tmp_path: Path, fields: dict[str, Any], description: str, persona: str
) -> None:
    package = build(parse_agent(agent(**fields)), [], tmp_path)
    manifest = json.loads((package / "manifest.json").read_text())
    assert manifest["description"] == description
    assert "skills" not in manifest
    assert (package / "persona" / "identity.md").read_text() == persona


HOSTILE = "{{ 7*7 }} {% for x in y %} {# c #} \"quote\" \\ ---\n'''\n{{ name }} \u2028 ${HOME} \r\n <script>"


def test_texts_are_data_in_the_template(tmp_path: Path) -> None:
    package = build(parse_agent(agent(instructions=HOSTILE, description=HOSTILE, version="{{ 1 }}")), [], tmp_path)
    assert (package / "persona" / "identity.md").read_bytes() == HOSTILE.strip().encode()
    assert json.loads((package / "manifest.json").read_bytes())["description"] == HOSTILE
    assert load_agent(package / "agent.json").version == "{{ 1 }}"


def refused(definition: dict[str, Any], sources: list[Path], out: Path, **options: Any) -> list[str]:
    before = tree(out) if out.exists() else None
    with pytest.raises(AgentBuildError) as caught:
        build(parse_agent(definition), sources, out, **options)
    assert (tree(out) if out.exists() else None) == before, "something was changed"
    return [f.code for f in caught.value.findings]


def test_skills_that_are_missing_or_ambiguous(pack: Path, tmp_path: Path) -> None:
    skill(tmp_path / "second", "deck")
    listed = agent(skills=["deck", "x", "y"])
    assert refused(listed, [pack, tmp_path / "second"], tmp_path / "out") == [
        "agent-unknown-skill", "agent-ambiguous-skill",
    ]  # fmt: skip
    assert build(parse_agent(agent(skills=["deck"])), [pack, pack, pack / "."], tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("---\nname: other\ndescription: x\n---\nx\n", "skill-name-folder", id="another name"),
        pytest.param("---\nname: deck\n---\nx\n", "skill-description-missing", id="no description"),
        pytest.param("no front matter", "skill-front-matter-missing", id="no front matter"),
        pytest.param(f"---\nname: deck\ndescription: x\n---\nkey {SECRET}\n", "extension-secret", id="a secret"),
    ],
)
def test_a_skill_that_not_all_runtimes_would_load(tmp_path: Path, text: str, code: str) -> None:
    skill(tmp_path / "pack", "deck", text)
    (tmp_path / "out").mkdir()
    assert refused(agent(skills=["deck"]), [tmp_path / "pack"], tmp_path / "out") == [code]


def test_what_cannot_be_copied_is_refused(pack: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.txt", "x")
    (pack / "deck" / "out").symlink_to(tmp_path / "secret.txt")
    (pack / "deck" / "inside").symlink_to(pack / "deck" / "SKILL.md")
    (pack / "deck" / "folder").symlink_to(pack)
    (pack / "deck" / "gone").symlink_to(pack / "deck" / "none")
    os.mkfifo(pack / "deck" / "pipe")
    (pack / "notes" / "tool").write_bytes(b"\x7fELF....")
    codes = refused(agent(skills=["deck", "notes"]), [pack], tmp_path / "out")
    assert sorted(codes) == [
        "extension-path-escapes", "extension-path-escapes", "skill-not-a-file", "skill-not-a-file", "skill-program",
    ]  # fmt: skip
    for name in ("out", "folder", "gone", "pipe"):
        (pack / "deck" / name).unlink()
    package = build(parse_agent(agent(skills=["deck"])), [pack], tmp_path / "out")
    assert not (package / "skills/deck/inside").is_symlink()
    assert (package / "skills/deck/inside").read_bytes() == (pack / "deck/SKILL.md").read_bytes()


def test_only_a_package_is_ever_replaced(pack: Path, tmp_path: Path) -> None:
    out, listed = tmp_path / "out", agent(skills=["deck"])
    target = build(parse_agent(listed), [pack], out)
    write(target / "mine.txt", "x")
    assert refused(listed, [pack], out) == ["agent-target-exists"]
    build(parse_agent(agent(skills=["notes"])), [pack], out, force=True)
    assert sorted(p.name for p in (target / "skills").iterdir()) == ["notes"]
    assert not (target / "mine.txt").exists()
    shutil.rmtree(target)
    target.mkdir()
    write(target / "thesis.txt", "x")
    assert refused(listed, [pack], out, force=True) == ["agent-target-exists"]
    (target / "thesis.txt").unlink()
    assert build(parse_agent(listed), [pack], out) == target, "an empty folder is not in the way"
    shutil.rmtree(target)
    target.symlink_to(tmp_path / "pack")
    assert refused(listed, [pack], out, force=True) == ["agent-target-exists"]
    target.unlink()
    write(out / "a", "a file")
    assert refused(listed, [pack], out) == ["agent-target-exists"]


def test_a_place_that_cannot_be_written(pack: Path, tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    assert refused(agent(), [], tmp_path / "file" / "below") == ["agent-unwritable"]


def test_build_agent_returns_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extforge_harness.agents.package.host_available", lambda: False)
    path = build_agent(parse_agent(agent()), [], tmp_path)
    assert path == tmp_path / "a"
    report = build_package(parse_agent(agent()), [], tmp_path, force=True).report
    assert report.skipped["host"] == "host not installed"
    assert not [name for name in report.checked if "host" in name]


def test_an_old_host_skips_the_check_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extforge_harness.agents.package.host_available", lambda: True)
    monkeypatch.setattr("extforge_harness.host.agents.require_host", lambda _: None)
    monkeypatch.setattr("extforge_harness.host.agents.converse", lambda *_, **__: {"too_old": "0.1.15"})
    report = build_package(parse_agent(agent()), [], tmp_path).report
    assert "openJiuwen 0.1.15 has no providers" in report.skipped["host"]
    with pytest.raises(HostMissing, match=r">=0\.1\.19"):
        build_package(parse_agent(agent()), [], tmp_path, force=True, host=True)


def test_only_our_own_packages_are_run(pack: Path, tmp_path: Path) -> None:
    package = build(parse_agent(agent(skills=["deck"])), [pack], tmp_path)
    assert check_own(str(package)) == []
    manifest = json.loads((package / "manifest.json").read_text())
    (package / "manifest.json").write_text(json.dumps(manifest | {"rails": [], "model": {}}))
    (finding,) = check_own(str(package))
    assert finding.message == "the package has model, rails, which extforge does not write"
    for options in (Options(package=str(package)), Options(package=str(tmp_path / "none"))):
        with pytest.raises(AgentBuildError, match="agent-package"):
            run_agent(parse_agent(agent()), "hi", options)


def test_tools_say_what_they_may_change(plans: Plans, tmp_path: Path) -> None:
    root = plans.tree(design("sales_deck", components=["tool", "skill"]))
    assert tools_of([str(root)])["sales_deck"]["mutation"] == "mutating_local"
    (tmp_path / "odd").mkdir()
    write(tmp_path / "odd" / "harness_config.yaml", "metadata: {extension: {tools: [3]}}")
    assert tools_of([str(tmp_path / "odd"), str(tmp_path / "none")]) == {}


# --------------------------------------------------------------------------- command line


@pytest.fixture
def counter(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a good and a bad definition, and a place that is taken."""
    write(tmp_path / "good.yaml", 'name: a\nversion: "1"\ninstructions: Be brief.\nskills: [deck]\n')
    write(tmp_path / "bad.agent.yaml", BAD)
    (tmp_path / "taken" / "a").mkdir(parents=True)
    write(tmp_path / "taken" / "a" / "x", "x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])
    return tmp_path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_are_good_for_their_plan_and_their_schema(path: Path) -> None:
    plan = str(ROOT / "examples" / "demo.plan.yaml")
    done = run_cli("agents", "check", str(path), "--plan", plan, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["schema_version"] == "extforge.agents-check.v1"
    assert [(row["verdict"], row["findings"], row["skipped"]) for row in data["agents"]] == [("pass", [], {})]
    jsonschema.validate(read_agent(path).value, json.loads(run_cli("schema", "agent").stdout))


def test_the_page_on_agents_shows_a_good_definition_and_good_python(
    plans: Plans, tmp_path: Path, monkeypatch: Any
) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    shown, python = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("yaml", "python"))
    plan = str(ROOT / "examples" / "demo.plan.yaml")
    file = write(tmp_path / "deck-writer.agent.yaml", shown)
    assert check_agent(read_agent(file), read_plan_skills(plan)) == []
    generate(load_plan(plan), str(tmp_path / "out"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("extforge_harness.agents.package.host_available", lambda: False)
    names: dict[str, Any] = {}
    exec(python, names)
    assert names["package"] == Path("packages/deck-writer")
    assert names["resolved"].approval == "ask"


def test_there_are_examples_in_both_syntaxes() -> None:
    assert {path.suffix for path in EXAMPLES} == {".yaml", ".json"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["check"], 2, "Missing argument", id="no file"),
        pytest.param(["check", "no.yaml"], 2, "No such file", id="a missing file"),
        pytest.param(["check", "."], 2, "holds no *.agent.yaml", id="a folder without definitions"),
        pytest.param(["check", "bad.agent.yaml"], 1, "7:3: $.defaults.efort", id="a wrong definition"),
        pytest.param(["check", "good.yaml"], 0, "not checked: whether the skills exist", id="skills unchecked"),
        pytest.param(["check", "good.yaml", "--skills", "pack"], 0, "agent a 1, 1 skill: deck", id="skills checked"),
        pytest.param(["check", "good.yaml", "--skills", "none"], 2, "does not exist", id="a missing pack"),
        pytest.param(["check", "good.yaml", "--plan", "none"], 2, "No such file", id="a missing plan"),
        pytest.param(["build", "good.yaml", "--out", "o"], 1, "name where its skills are with --skills", id="no skills"),
        pytest.param(["build", "good.yaml", "--skills", "pack", "--out", "taken"], 2, "is not empty", id="a taken place"),
        pytest.param(["build", "bad.agent.yaml", "--out", "o"], 1, "agent-bad-name", id="building a wrong definition"),
        pytest.param(["resolve", "good.yaml", "--set", "modle=x"], 2, "did you mean 'model'", id="an unknown setting"),
        pytest.param(["resolve", "good.yaml", "--set", "plan=yes"], 2, "plan is true or false", id="a plan in words"),
        pytest.param(["resolve", "good.yaml", "--set", "effort=x"], 1, "resolved.effort must be low", id="a wrong setting"),
        pytest.param(["resolve", "good.yaml", "--set", "model="], 1, "must be a non-empty string", id="an empty setting"),
        pytest.param(["prompt", "good.yaml", "hi"], 0, "[Agent: a 1]\nBe brief.\n\nhi", id="the header"),
        pytest.param(["prompt", "good.yaml", "hi", "--kind", "goal"], 1, "instructions", id="a goal"),
        pytest.param(["run", "good.yaml", "hi", "--skills", "pack", "--set", "executor=docker"], 1, "executor 'docker' is not available here", id="no docker"),
        pytest.param(["run", "good.yaml", "hi", "--skills", "pack", "--set", "plan=1", "--set", "approval=full"], 1, "choose one", id="a conflict by mixing"),
        pytest.param(["run", "good.yaml", "hi", "--skills", "pack", "--runtime", "codex"], 3, "does not start codex", id="another runtime"),
        pytest.param(["run", "none", "hi"], 2, "No such file", id="running nothing"),
        pytest.param(["walk"], 2, "No such command", id="an unknown command"),
    ],
)  # fmt: skip
def test_the_commands_have_clear_answers(
    counter: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments == ["check", "."]:
        (counter / "bad.agent.yaml").unlink()
    sys.argv = ["extforge", "agents", *arguments]
    ended = 0
    try:
        cli.run()  # in this process: twenty of their own would take half a minute
    except SystemExit as exc:
        ended = int(exc.code or 0)
    out, err = capsys.readouterr()
    assert ended == code, out + err
    assert words in out + err
    assert "Traceback" not in err


@pytest.mark.host
def test_without_an_endpoint_the_missing_variables_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "name: a\n")
    done = run_cli(
        "agents", "run", "a.yaml", "hi", cwd=tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="", OPENAI_MODEL=""
    )
    assert done.returncode == 3
    assert "set OPENAI_BASE_URL and OPENAI_MODEL" in done.stderr


def test_resolve_shows_each_field_its_origin_and_what_is_not_applied(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "name: a\ndefaults: {model: m, approval: ask}\n")
    done = run_cli("agents", "resolve", "a.yaml", "--set", "approval=auto", "--runtime", "codex", cwd=tmp_path)
    assert [line.split(maxsplit=2) for line in done.stdout.splitlines()[:5]] == [
        ["model", "m", "definition"],
        ["effort", "-", "runtime default"],
        ["approval", "auto", "request"],
        ["executor", "-", "runtime default"],
        ["plan", "false", "runtime default"],
    ]
    assert "not applied: approval: the Codex provider gives full access" in done.stderr
    data = json.loads(run_cli("agents", "resolve", "a.yaml", "--runtime", "dsh", "--json", cwd=tmp_path).stdout)
    assert data["fields"]["model"] == {"value": "m", "from": "definition"}
    assert data["config"] == {"model": "m"}
    assert [item["field"] for item in data["not_applied"]] == ["approval"]


def test_several_files_a_folder_and_standard_input(tmp_path: Path) -> None:
    write(tmp_path / "a.agent.yaml", "name: a\n")
    write(tmp_path / "b.agent.json", '{"name": "B"}')
    write(tmp_path / "c.yaml", "name: C\n")
    done = run_cli("agents", "check", str(tmp_path), "--json")
    assert done.returncode == 1
    assert [row["verdict"] for row in json.loads(done.stdout)["agents"]] == ["pass", "fail"]
    for text in ("name: x\n", '{"name": "x"}'):
        assert "agent x" in run_cli("agents", "check", "-", stdin=text).stdout


def test_a_built_package_is_printed_verified_and_can_be_shown(pack: Path, tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "name: a\nskills: [deck]\n")
    done = run_cli("agents", "build", "a.yaml", "--skills", "pack", "--out", "o", "--no-host", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "built o/a", "  agent.json", "  manifest.json", "  persona/identity.md", "  skills/deck/SKILL.md",
        "skipped: host: not asked for",
    ]  # fmt: skip
    assert run_cli("verify", "o/a", cwd=tmp_path).returncode == 0
    again = run_cli(
        "agents", "build", "a.yaml", "--skills", "pack", "--out", "o", "--no-host", "--json", "--force", cwd=tmp_path
    )
    data = json.loads(again.stdout)
    assert (data["verdict"], data["path"], data["agent"]["name"]) == ("pass", "o/a", "a")
