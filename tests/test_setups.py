"""What a tool needs around it to be tried offline; and the work of every example tool, really run that way."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, Plans, design, example

from extforge.check import load_plan
from extforge.generate import generate
from extforge_harness.acceptance import Acceptance, RecordedAnswer, Setup, ToolTest, load_acceptance
from extforge_harness.errors import SetupFailed
from extforge_harness.setup import find_card, prepared
from extforge_harness.work import try_tool
from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.findings import Report

DESIGNS = {d["extension_name"]: d for d in example("archetypes")}
TOOLS = [
    (b.name, t.name, t.does) for b in load_plan(str(ROOT / "examples/archetypes.plan.yaml")).blueprints for t in b.tools
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("archetypes")
    return generate(load_plan(str(ROOT / "examples/archetypes.plan.yaml")), str(into)).target


def tree_of(target: Path, name: str) -> str:
    return str(target / "openjiuwen/extensions/harness" / name)


def case_of(target: Path, extension: str, tool: str) -> ToolTest:
    acceptance: Acceptance = load_acceptance(str(target / "acceptance" / f"{extension}.yaml"))
    return next(test for test in acceptance.tool_tests if test.tool_name == tool)


@pytest.mark.parametrize(("extension", "tool", "does"), [pytest.param(*t, id=t[1]) for t in TOOLS])
def test_every_example_tool_does_its_work_offline(
    target: Path, tmp_path: Path, extension: str, tool: str, does: str
) -> None:
    report, answer = try_tool(tree_of(target, extension), does, case_of(target, extension, tool), cwd=str(tmp_path))
    assert report.verdict is Verdict.PASS, report
    assert answer["success"] is True
    if does == "artifact":
        assert verify_artifact(tmp_path / answer["path"]).verdict is Verdict.PASS
    else:
        assert list(tmp_path.iterdir()) == []  # no $(touch pwned) has run


def test_the_example_tries_every_kind_of_tool() -> None:
    assert {does for _, _, does in TOOLS} == {"artifact", "http", "command", "query", "report"}


@pytest.mark.parametrize(
    ("extension", "tool"), [(e, t) for e, t, does in TOOLS if does in ("http", "command", "query")]
)
def test_without_a_setup_nothing_runs_and_nothing_is_known(
    target: Path, tmp_path: Path, extension: str, tool: str
) -> None:
    test = case_of(target, extension, tool).model_copy(update={"setup": None})
    report, answer = try_tool(tree_of(target, extension), "http", test, cwd=str(tmp_path))
    assert (report.verdict, answer) == (Verdict.UNDETERMINED, None)
    assert tool in report.skipped


@pytest.mark.parametrize(
    ("extension", "tool", "change", "code"),
    [
        pytest.param("order_api_client", "find_order", {"expect": {"contains": {"status": 201}}}, "host-tool-result", id="another status"),
        pytest.param("order_api_client", "find_order", {"inputs": {"order_id": "ZZ-9999"}}, "host-tool-failed", id="nothing recorded"),
        pytest.param("order_api_client", "find_order", {"inputs": {"order_id": "7"}}, "host-tool-failed", id="a number that does not match"),
        pytest.param("order_api_client", "place_order", {"inputs": {"item": "tea", "quantity": 4}}, "host-tool-failed", id="another body"),
        pytest.param("order_database_reader", "orders_of_customer", {"inputs": {"customer": "Ann"}}, "host-tool-result", id="other rows"),
        pytest.param("order_database_reader", "orders_of_customer", {"setup": {"sqlite": "CREATE TABLE t (x)"}}, "host-tool-failed", id="no such table"),
        pytest.param("order_database_reader", "orders_of_customer", {"setup": {"sqlite": "CREATE"}}, "host-setup", id="a script that is none"),
        pytest.param("git_history_reader", "git_history", {"setup": {"argv": ["false"]}}, "host-tool-failed", id="a program that fails"),
        pytest.param("git_history_reader", "git_history", {"setup": {"argv": ["no-such-program"]}}, "host-setup", id="no such program"),
        pytest.param("git_history_reader", "git_history", {"setup": {"sqlite": ""}}, "host-setup", id="a setup for another tool"),
    ],
)  # fmt: skip
def test_what_is_not_as_expected_is_found(
    target: Path, tmp_path: Path, extension: str, tool: str, change: dict[str, Any], code: str
) -> None:
    test = case_of(target, extension, tool)
    test = ToolTest.model_validate({**test.model_dump(by_alias=True), **change})
    report, _ = try_tool(tree_of(target, extension), "http", test, cwd=str(tmp_path))
    assert [finding.code for finding in report.findings] == [code], report.findings


def test_a_setup_script_cannot_reach_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    setup = Setup(sqlite=f"ATTACH '{other}' AS o; CREATE TABLE o.t (x)")
    with pytest.raises(SetupFailed, match="not authorized"), prepared(setup, {"database_env": "X"}, tmp_path):
        pass
    assert not other.exists()
    endless = Setup(
        sqlite="CREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("extforge_harness.setup._SCRIPT_SECONDS", 0.2)
        with pytest.raises(SetupFailed, match="interrupted"), prepared(endless, {"database_env": "X"}, tmp_path):
            pass


def test_recorded_answers_are_served_as_they_were_recorded(tmp_path: Path) -> None:
    import http.client

    setup = Setup(
        http=[
            RecordedAnswer(path="/a?x=1", text="exactly this"),
            RecordedAnswer(path="/a", json_={"any": "query"}),
            RecordedAnswer(method="POST", path="/a", sent={"n": 1}, status=204),
        ],
        environment={"MORE": "1"},
    )
    options = {"base_url_env": "BASE", "secrets": {"Authorization": {"env": "TOKEN"}}}
    with prepared(setup, options, tmp_path) as environment:
        assert sorted(environment) == ["BASE", "MORE", "OPENJIUWEN_EXTENSION_PRIVATE_HOSTS", "TOKEN"]
        host = environment["BASE"].removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=10)

        def ask(method: str, path: str, body: str | None = None) -> tuple[int, str]:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode()

        assert ask("GET", "/a?x=1") == (200, "exactly this")
        assert ask("GET", "/a?x=2") == (200, '{"any": "query"}')
        assert ask("POST", "/a", '{"n": 1}') == (204, "")
        assert ask("POST", "/a", '{"n": 2}')[0] == 400
        assert ask("GET", "/b") == (501, "no answer is recorded for GET /b")
        connection.close()
    connection = http.client.HTTPConnection(host, timeout=2)
    with pytest.raises(OSError):  # noqa: PT011 -- which one, the system decides
        connection.request("GET", "/a")
    connection.close()


def test_a_stand_in_program_comes_first_and_gets_the_arguments(tmp_path: Path) -> None:
    import subprocess

    setup = Setup(argv=["printf", "%s|", "it's $HOME"])
    with prepared(setup, {"argv": ["some_program", "x"]}, tmp_path) as environment:
        assert environment["PATH"] == f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([tmp_path / "some_program", "a b", "$(id)"], capture_output=True, text=True, check=True)
        assert done.stdout == "it's $HOME|a b|$(id)|"
    with pytest.raises(SetupFailed, match="without a path"), prepared(setup, {"argv": ["/bin/ls"]}, tmp_path):
        pass


def test_cards_are_found_by_the_tools_name(target: Path) -> None:
    found = find_card(tree_of(target, "order_api_client"), "place_order")
    assert found is not None
    assert (found[0], found[1]["options"]["method"]) == ("tools.place_order", "POST")
    assert find_card(tree_of(target, "order_api_client"), "nothing") is None


def test_inputs_are_derived_and_a_setup_is_not(plans: Plans) -> None:
    from extforge.acceptance import build_acceptance

    params = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "kind": {"enum": ["a", "b"]},
            "n": {"type": "integer", "minimum": 3},
            "optional": {"type": "string"},
        },
        "required": ["id", "kind", "n"],
    }
    does = {"http": {"method": "POST", "url": "https://a.example/{id}", "body": ["{kind}", "{n}", "{optional}"]}}
    plan = plans.check(design("order_lookup", tools=[{"does": does, "input_params": params}]))
    assert plan.findings == []
    (test,) = build_acceptance(plan.blueprints[0], {})["tool_tests"]
    assert test["inputs"] == {"id": "AA-0000", "kind": "a", "n": 3}
    assert "setup" not in test
    report: Report
    report, _ = try_tool(".", "http", ToolTest(tool_name="order_lookup", inputs=test["inputs"]), cwd=".")
    assert report.verdict is Verdict.UNDETERMINED


def test_the_schema_of_acceptance_files_knows_setups() -> None:
    from extforge.schemas import schema_of

    text = json.dumps(schema_of("acceptance"))
    assert '"sqlite"' in text
    assert '"json"' in text
