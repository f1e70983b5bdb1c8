"""Agents in the real openJiuwen: packages that all providers take, turns that answer, gates that hold, keys that stay."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply
from support import ROOT, package_facts, run_cli

from extforge_harness.agents import AgentDefinition, build_package, load_agent, parse_agent
from extforge_harness.agents.running import Options, run_agent
from extforge_harness.errors import AgentBuildError, HostFailed
from extforge_harness.host.probe import ScriptedModel, tool_call
from extforge_harness.host.process import converse

EXAMPLE = ROOT / "examples" / "board-reporter.agent.yaml"
TREES = "openjiuwen/extensions/harness"
KEY = "sk-test-0123456789abcdefghijklmnop"
DECK = {
    "title": "Q3",
    "slides": [{"title": f"Slide {n}", "bullets": ["one", "two"]} for n in range(3)],
    "file_name": "board_v1.pptx",
}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the extensions of the demo plan."""
    folder = tmp_path_factory.mktemp("made")
    done = run_cli("generate", str(ROOT / "examples" / "demo.plan.yaml"), "--into", str(folder), "-q")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def script(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """The scripted model, without its past, as the endpoint of this environment."""
    model.script.clear()
    model.requests.clear()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{model.port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MODEL", "scripted-model")
    return model


def extensions(made: Path) -> list[str]:
    return [str(made / TREES / name) for name in ("versioned_filename_guard", "quarterly_sales_deck")]


def tool_names(request: dict[str, Any]) -> list[str]:
    return sorted(tool["function"]["name"] for tool in request.get("tools", []))


# --------------------------------------------------------------------------- in the host


@pytest.mark.host
def test_an_agent_with_the_skills_of_a_generated_plan_builds_loads_and_answers(
    made: Path, tmp_path: Path, script: ScriptedModel
) -> None:
    built = run_cli("agents", "build", str(EXAMPLE), "--skills", str(made), "--out", str(tmp_path / "agents"))
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stdout.splitlines()[-1].endswith(": native, native_v2, claudecode, codex, dsh")
    package = tmp_path / "agents" / "board-reporter"
    assert sorted(p.name for p in (package / "skills").iterdir()) == ["excel_financial_report", "quarterly_sales_deck"]

    script.script[:] = [
        tool_call("skill_tool", {"skill_name": "quarterly_sales_deck"}, "call-1"),
        tool_call("quarterly_sales_deck", DECK, "call-2"),
        says("I wrote board_v1.pptx."),
    ]
    (tmp_path / "work").mkdir()
    options = [f"--extension={path}" for path in extensions(made)]
    done = run_cli(
        "agents", "run", str(package), "Make the report", "--workdir", "work", "--record", "turn.json", "--json", *options,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(done.stdout)
    assert (data["verdict"], data["status"], data["answer"]) == ("pass", "completed", "I wrote board_v1.pptx.")
    assert data["agent"] == load_agent(EXAMPLE).summary()
    assert [(c["tool"], c["permits"], c["result"]["success"]) for c in data["calls"]] == [
        ("skill_tool", True, True), ("quarterly_sales_deck", True, True),
    ]  # fmt: skip
    assert [claim["verdict"] for claim in data["report"]["facts"]["claims"]] == ["pass", "pass"]
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["board_v1.pptx"], "no logs, no workspace"

    first = script.requests[0]
    assert (first["model"], first["reasoning_effort"]) == ("scripted-model", "high")
    system = first["messages"][0]["content"]
    assert system.startswith("You prepare the quarterly board report.")
    assert "excel_financial_report" in system
    assert "redis_or_memory_cache" not in system
    assert tool_names(first) == ["quarterly_sales_deck", "skill_tool"]
    assert "季度经营汇报" in script.requests[1]["messages"][-1]["content"], "it read the skill"
    for text in (done.stdout, done.stderr, (tmp_path / "turn.json").read_text()):
        assert KEY not in text
    assert json.loads((tmp_path / "turn.json").read_text())["agent"] == data["agent"]
    again = run_cli("verify", "turn.json", "--root", "work", "--claims", cwd=tmp_path)
    assert again.returncode == 0, again.stdout


def run(definition: AgentDefinition, made: Path, tmp_path: Path, **options: Any) -> Any:
    how = Options(skill_sources=[str(made)], extensions=extensions(made), workdir=str(tmp_path), **options)
    return run_agent(definition, "Make the report", how)


@pytest.mark.host
def test_a_person_is_asked_once_per_call_and_a_no_reaches_the_model(
    made: Path, tmp_path: Path, script: ScriptedModel
) -> None:
    second = tool_call("quarterly_sales_deck", {**DECK, "file_name": "second_v1.pptx"}, "call-2")
    third = tool_call("quarterly_sales_deck", {**DECK, "file_name": "third_v1.pptx"}, "call-2")
    first = tool_call("quarterly_sales_deck", DECK, "call-1")
    script.script[:] = [first, second, second, third, says("I wrote second_v1.pptx.")]
    asked, told = [], []

    def confirm(tool: str, request: str) -> bool:
        asked.append((tool, request))
        return len(asked) == 2

    outcome = run(
        load_agent(EXAMPLE), made, tmp_path, runtime="native_v2", request={"approval": "ask"}, confirm=confirm,
        on_call=lambda tool, arguments: told.append((tool, json.loads(arguments)["file_name"])),
    )  # fmt: skip
    # The same call again is not asked about again; the same id with other arguments is another call.
    assert [(tool, request.partition("#")[0]) for tool, request in asked] == [
        ("quarterly_sales_deck", "call-1"), ("quarterly_sales_deck", "call-2"), ("quarterly_sales_deck", "call-2"),
    ]  # fmt: skip
    assert [name for _, name in told] == ["board_v1.pptx", "second_v1.pptx", "second_v1.pptx", "third_v1.pptx"]
    assert [call["permits"] for call in outcome.turn.calls] == [False, True, True, False]
    assert [(call["result"] or {}).get("success") for call in outcome.turn.calls] == [None, True, False, None]
    assert "not approved: quarterly_sales_deck is mutating_local" in script.requests[1]["messages"][-1]["content"]
    assert [path.name for path in tmp_path.iterdir()] == ["second_v1.pptx"]
    assert outcome.good, outcome.report


@pytest.mark.host
def test_plan_mode_hides_what_it_would_refuse_and_refuses_what_is_called_anyway(
    made: Path, tmp_path: Path, script: ScriptedModel
) -> None:
    script.script[:] = [tool_call("quarterly_sales_deck", DECK, "call-1"), says("I wrote board_v1.pptx.")]
    outcome = run(load_agent(EXAMPLE), made, tmp_path, request={"plan": True}, confirm=lambda *_: True)
    assert tool_names(script.requests[0]) == ["skill_tool"]
    assert outcome.turn.offered == ["skill_tool"]
    assert "plan mode allows safe_read tools only" in outcome.turn.removed["quarterly_sales_deck"]
    assert [(call["permits"], call["result"]) for call in outcome.turn.calls] == [(False, None)]
    assert list(tmp_path.iterdir()) == []
    assert outcome.turn.good
    assert not outcome.good, "the answer claims a file that is not there"
    assert [f.code for f in outcome.report.findings] == ["claim-file-missing"]


@pytest.mark.host
def test_a_turn_that_fails_says_where_and_keeps_the_key(made: Path, tmp_path: Path, script: ScriptedModel) -> None:
    definition = replace(load_agent(EXAMPLE), skills=())
    tree = tmp_path / "broken"
    tree.mkdir()
    (tree / "harness_config.yaml").write_text(f"name: broken\nresources: {{tools: [{{module: {KEY}, class: X}}]}}\n")
    outcome = run_agent(definition, "hi", Options(extensions=[str(tree)], workdir=str(tmp_path)))
    assert not outcome.good
    assert outcome.turn.error is not None
    assert outcome.turn.error["where"] == "load"
    assert KEY not in repr(outcome)
    assert script.requests == []


@pytest.mark.host
def test_a_model_that_refuses_is_no_success_although_the_host_calls_it_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server repeats the key, as some do."""
    refusal = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}})
    (tmp_path / "a.agent.yaml").write_text("name: a\n")
    with ChatServer(Reply(raw=refusal.encode(), status=401)) as server:
        done = run_cli(
            "agents", "run", "a.agent.yaml", "hi", "--json", cwd=tmp_path,
            OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY, OPENAI_MODEL="m",
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert (data["verdict"], data["answer"], data["error"]["where"]) == ("fail", "", "turn")
    assert "Incorrect API key provided: [secret]" in data["error"]["message"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in done.stdout + done.stderr


# --------------------------------------------------------------------------- the self check


def host_says(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Stand in for the host: it reads the package rightly, but for what `change` does to its answer."""

    def load_package(package: str, runtimes: Any, **_: Any) -> dict[str, Any]:
        facts = package_facts(package, runtimes)
        change(facts)
        return facts

    monkeypatch.setattr("extforge_harness.host.agents.load_package", load_package)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        pytest.param(lambda f: f["spec"]["agent_card"].update(name="b"), "agent-host-differs", "another name", id="name"),
        pytest.param(lambda f: f["spec"]["prompt_sections"].clear(), "agent-host-differs", "another persona", id="persona"),
        pytest.param(lambda f: f["spec"]["skills"].append({"dir": "/x", "enabled_skills": []}), "agent-host-differs", "another skills", id="skills"),
        pytest.param(lambda f: f["spec"]["metadata"].clear(), "agent-host-differs", "another metadata", id="metadata"),
        pytest.param(lambda f: f.update(error={"message": "no"}), "agent-host-refused", "does not load it: no", id="refused"),
        pytest.param(lambda f: f["providers"].update(dsh={"error": {"message": "no"}}), "agent-host-refused", "provider dsh", id="a provider"),
    ],
)  # fmt: skip
def test_a_package_that_the_host_reads_otherwise_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, code: str, words: str
) -> None:
    definition = parse_agent({"name": "a", "instructions": "Be brief."})
    host_says(monkeypatch, lambda _: None)
    good = build_package(definition, [], tmp_path / "good", host=True)
    assert good.report.checked[-5:] == ("host native", "host native_v2", "host claudecode", "host codex", "host dsh")
    host_says(monkeypatch, change)
    with pytest.raises(AgentBuildError) as caught:
        build_package(definition, [], tmp_path / "out", host=True)
    assert [(f.code, f.where.path) for f in caught.value.findings] == [(code, str(tmp_path / "out" / "a"))]
    assert words in caught.value.findings[0].message
    assert list((tmp_path / "out").iterdir()) == []


# --------------------------------------------------------------------------- the conversation with a process

SCRIPTS = {
    "echo": "print(json.dumps({'done': job}), flush=True)",
    "ask": "print(json.dumps({'ask': {'n': 1}}), flush=True); answer = json.loads(sys.stdin.readline())\n"
    "print(json.dumps({'done': answer}), flush=True)",
    "hang": "import time; time.sleep(60)",
    "crash": "sys.exit(f'cannot go on with {job[chr(107)]}')",
    "babble": "print('not JSON', flush=True)",
    "deaf": "sys.stdin.close(); print(json.dumps({'ask': {}}), flush=True)",
    "place": "import os; print(json.dumps({'done': {'cwd': os.getcwd(), 'env': dict(os.environ)}}), flush=True)",
}


def talk(name: str, folder: Path, job: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    path = folder / f"{name}.py"
    path.write_text(f"import json, sys\njob = json.loads(sys.stdin.readline())\n{SCRIPTS[name]}\n")
    return converse(path, job or {"k": "v"}, folder / "scratch", **options)


def test_a_job_goes_in_and_its_answer_comes_back_without_the_secret(tmp_path: Path) -> None:
    job = {"k": f"a {KEY} b\u2028\n", "list": [KEY, 1, None], KEY: {"deep": KEY}}
    found = talk("echo", tmp_path, job, secrets=(KEY, ""))
    assert found == {"k": "a [secret] b\u2028\n", "list": ["[secret]", 1, None], "[secret]": {"deep": "[secret]"}}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY in path.read_text(errors="ignore")]


def test_a_question_is_answered_and_a_person_may_take_longer_than_the_host(tmp_path: Path) -> None:
    def answer(question: dict[str, Any]) -> dict[str, Any]:
        time.sleep(1.5)  # the clock stands meanwhile
        return {"said": question["n"]}

    assert talk("ask", tmp_path, answer=answer, timeout=1.0) == {"said": 1}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("hang", "took longer than 1 seconds", id="too slow"),
        pytest.param("crash", "without an answer (exit 1): cannot go on with [secret]", id="a crash"),
        pytest.param("babble", "without an answer", id="no JSON"),
        pytest.param("deaf", "without an answer", id="it does not listen"),
    ],
)
def test_a_process_that_gives_no_answer(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(HostFailed) as caught:
        talk(name, tmp_path, {"k": KEY}, secrets=(KEY,), timeout=1.0 if name == "hang" else 30.0)
    assert words in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_interruption_ends_the_process(tmp_path: Path) -> None:
    def interrupted(_: dict[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        talk("ask", tmp_path, answer=interrupted)


def test_the_process_gets_nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = talk("place", tmp_path)
    assert found["cwd"] == str(tmp_path / "scratch" / "work")
    assert found["env"]["HOME"] == str(tmp_path / "scratch" / "home")
    assert KEY not in json.dumps(found)


INSIDE = """
import importlib.util, subprocess, sys
from extforge_harness.host.inside import do_job

def work(job, talk):
    print("a library speaks")
    program = [sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"]
    read = subprocess.run(program, capture_output=True, text=True, timeout=20).stdout.strip()
    ours = [name for name in ("agents", "inside", "process", "run") if importlib.util.find_spec(name)]
    return {"job": job, "read": read, "ours": ours}

do_job(work)
"""


def test_what_runs_inside_neither_disturbs_the_conversation_nor_meets_our_modules(tmp_path: Path) -> None:
    (tmp_path / "inside.py").write_text(INSIDE)
    found = converse(tmp_path / "inside.py", {"k": "v"}, tmp_path / "scratch", timeout=60.0)
    assert found == {"job": {"k": "v"}, "read": "''", "ours": []}
