"""`extforge workflows` as its users run it, and the workflow that each generated skill carries."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
from chat_server import ChatServer, Reply
from damage import good
from packs import write_skill
from support import ROOT, Plans, design, run_cli

from extforge.check import load_plan
from extforge.cli import run
from extforge.errors import TemplateError
from extforge.generate import check_rendered, generate
from extforge.render import render_plan
from extforge.schemas import schema_of
from extforge.staging import staging
from extforge_harness.workflows import load_pack, load_skill
from extforge_harness.workflows.registry import ExtensionUnreadable, extension_of, extension_tools
from extforge_verifiers.documents import read_document

DECK = {
    "description": "Makes decks.",
    "allowed-tools": ["deck"],
    "steps": [
        {"name": "outline", "prompt": "plan"},
        {"name": "produce", "prompt": "write", "depends": ["outline"]},
        {"name": "chart", "prompt": "draw", "depends": ["outline"]},
    ],
    "guardrails": [
        {"id": "real-deck", "message": "A real deck.", "check": {"artifact": {"format": "pptx"}}},
        {"id": "polite", "message": "Be polite.", "enforced": False},
    ],
}
ANSWERS = {"outline": "1", "produce": "wrote deck.pptx", "chart": "none"}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the bundled example."""
    result = generate(load_plan(str(ROOT / "examples/board_report.plan.yaml")), str(tmp_path_factory.mktemp("tree")))
    return result.target / result.roots[0]


def run_here(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run extforge in this process: the same entry point and exit codes as `run_cli`, without its start."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["extforge", *arguments]),
        mock.patch.dict(os.environ, environment),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
            code = 0
        except SystemExit as exc:
            code = int(exc.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def script(folder: Path, answers: Any) -> str:
    path = folder / "answers.json"
    path.write_text(json.dumps(answers))
    return str(path)


# --------------------------------------------------------------------------- list, check, show


def test_list_shows_what_can_be_used_and_what_cannot(tmp_path: Path) -> None:
    write_skill(tmp_path, DECK)
    write_skill(tmp_path, {**DECK, "invocation": "user"}, "by-hand")
    done = run_here("workflows", "list", str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["by-hand (3 steps, user): Makes decks.", "deck (3 steps, auto): Makes decks."],
    )
    done = run_here("workflows", "list", str(tmp_path), "--audience", "model")
    assert done.stdout == "- deck: Makes decks.\n"
    write_skill(tmp_path, {"nmae": "x"}, "bad")
    done = run_here("workflows", "list", str(tmp_path), "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert [skill["name"] for skill in data["skills"]] == ["by-hand", "deck"]
    assert {f["code"] for f in data["findings"]} == {"document-unknown-key", "document-missing-key"}
    assert data["schema_version"] == "extforge.workflows.list.v1"


def test_check_says_where_and_what_to_do(tmp_path: Path) -> None:
    root = write_skill(tmp_path, "description: d\nallowed_tools: []\nsteps:\n  - {name: a, prompt: p, depends: [a]}\n")
    for path in (tmp_path, root, root / "skill.yaml"):
        done = run_here("workflows", "check", str(path))
        assert done.returncode == 1
        assert "skill.yaml:2:1: $.allowed_tools" in done.stdout
        assert "did you mean 'allowed-tools'?" in done.stdout
        assert "a → a" in done.stdout
    (root / "skill.yaml").write_text(json.dumps(DECK))
    done = run_here("workflows", "check", str(root), "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "pass")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run_here("workflows", "check", str(empty)).returncode == 2
    assert run_here("workflows", "check", str(tmp_path / "none")).returncode == 2


def test_check_knows_the_tools_of_an_extension(example: Path, tmp_path: Path) -> None:
    for path in (example, example.parents[3]):  # the tree, and the folder that it was generated into
        done = run_here("workflows", "check", str(path))
        assert (done.returncode, "1 good skill" in done.stdout) == (0, True)
    root = write_skill(tmp_path, {**DECK, "allowed-tools": ["board_reprot"]})
    done = run_here("workflows", "check", str(root), "--extension", str(example), "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["code"]) == (1, "workflow-unknown-tool")
    assert finding["fix"] == "did you mean 'board_report'?"
    assert run_here("workflows", "check", str(root)).returncode == 0  # no registry, no verdict on it
    assert run_here("workflows", "check", str(root), "--extension", str(tmp_path)).returncode == 2


def test_show_has_levels_tools_and_guardrails(example: Path) -> None:
    skill = str(example / "skills/board_report")
    done = run_here("workflows", "show", skill)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[1:5] == ["1: outline", "2: produce", "3: report", "tools: none"]
    assert "mutating_local" in lines[5]
    done = run_here("workflows", "show", skill, "--approval", "auto", "--json")
    data = json.loads(done.stdout)
    assert data["tools"] == ["board_report"]
    assert [(r["id"], r["at"], r["enforced"]) for r in data["guardrails"]] == [
        ("real-deck", ["produce", "$final"], True),
        ("names-the-file", ["report"], False),
    ]


# --------------------------------------------------------------------------- run


def test_run_with_a_script_whose_file_is_real(tmp_path: Path) -> None:
    root = write_skill(tmp_path, {**DECK, "allowed-tools": None})
    work = tmp_path / "out"
    work.mkdir()
    (work / "deck.pptx").write_bytes(good("pptx"))
    answers = script(tmp_path, ANSWERS)
    done = run_cli("workflows", "run", str(root), "--script", answers, "--workdir", str(work))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "deck: done, 3 of 3 steps completed"
    assert "not checked: polite" in done.stdout
    assert done.stderr.splitlines()[:3] == ["started outline", "finished outline (0.0 s)", "started produce"]
    done = run_cli("workflows", "run", str(root), "--script", answers, "--workdir", str(work), "--json", "-q")
    data = json.loads(done.stdout)
    assert (data["schema_version"], data["status"]) == ("extforge.workflows.run.v1", "done")
    assert (data["unchecked"], data["violations"]) == (["polite"], [])
    assert done.stderr == ""


def test_run_with_a_script_that_only_says_so(example: Path, tmp_path: Path) -> None:
    answers = str(ROOT / "examples/board_report.script.yaml")
    arguments = ("workflows", "run", str(example / "skills/board_report"), "--script", answers)
    done = run_here(*arguments, "--workdir", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "board.pptx: there is no such file" in done.stdout
    assert "guardrail 'real-deck' is violated at 'produce'" in done.stderr
    done = run_here(*arguments, "--workdir", str(tmp_path / "out"), "--json")
    assert [s["name"] for s in json.loads(done.stdout)["steps"]] == ["outline", "produce"]


def test_a_failed_step_is_exit_1_with_what_was_done(tmp_path: Path) -> None:
    root = write_skill(tmp_path, DECK)
    done = run_here("workflows", "run", str(root), "--script", script(tmp_path, {"outline": "1"}), "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["status"]) == (1, "failed")
    assert [s["name"] for s in data["steps"]] == ["outline"]
    assert not Path(data["workdir"]).exists()  # nothing was made, so nothing is left behind


@pytest.mark.parametrize(
    ("change", "extra", "code", "words"),
    [
        pytest.param({"steps": []}, [], 2, "workflow-not-runnable", id="no steps"),
        pytest.param({"stpes": []}, [], 1, "did you mean 'steps'?", id="invalid"),
        pytest.param({"guardrails": [{"id": "polite", "message": "m"}]}, [], 2, "workflow-no-checker", id="no checker"),
        pytest.param(
            {"guardrails": [{"id": "polite", "message": "m"}]}, ["--allow-unchecked"], 0, "", id="unchecked allowed"
        ),
        pytest.param({"guardrails": []}, ["--executor", "chat"], 2, "--script", id="script and chat"),
        pytest.param({"context": "fork", "agent": "who"}, [], 2, "workflow-unknown-agent", id="unknown agent"),
        pytest.param({}, ["--workdir", "/dev/null/x"], 2, "workflow-no-workdir", id="no folder"),
        pytest.param({}, ["--script", "skill.yaml"], 2, "", id="no script"),
    ],
)
def test_what_keeps_a_run_from_starting_is_said(
    tmp_path: Path, change: dict[str, Any], extra: list[str], code: int, words: str
) -> None:
    root = write_skill(tmp_path, {**DECK, **change})
    answers = script(tmp_path, ANSWERS)
    done = run_here("workflows", "run", str(root), "--script", answers, *extra, cwd=root)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_endpoint_is_exit_3_and_named(tmp_path: Path) -> None:
    root = write_skill(tmp_path, DECK)
    bare = {"OPENAI_BASE_URL": "", "OPENAI_MODEL": "", "OPENAI_API_KEY": ""}
    for kind in ("chat", "host"):
        done = run_cli("workflows", "run", str(root), "--executor", kind, **bare)
        assert done.returncode == 3
        assert "OPENAI_BASE_URL" in done.stderr


def test_an_agent_definition_gives_persona_model_and_approval(tmp_path: Path) -> None:
    root = write_skill(tmp_path, {**DECK, "context": "fork", "agent": "board-reporter", "guardrails": []})
    text = "name: board-reporter\ninstructions: You report.\ndefaults: {model: m-agent, effort: low, approval: full}\n"
    agent = tmp_path / "board-reporter.agent.yaml"
    agent.write_text(text)
    with ChatServer("x") as server:
        endpoint = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": ""}
        done = run_here(
            "workflows", "run", str(root), "--executor", "chat", "--agent", str(agent), "--json", "-q",
            "--workdir", str(tmp_path), **endpoint,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agent"] == {"name": "board-reporter", "model": "m-agent", "effort": "low"}
    body = server.requests[0]
    assert (body["model"], body["reasoning_effort"]) == ("m-agent", "low")
    assert body["messages"][0] == {"role": "system", "content": "You report."}
    agent.write_text(text.replace("name:", "nmae:"))
    done = run_here("workflows", "run", str(root), "--executor", "chat", "--agent", str(agent), **endpoint)
    assert done.returncode == 2
    assert "nmae" in done.stderr


def test_the_approval_of_the_agent_decides_unless_one_is_given(example: Path, tmp_path: Path) -> None:
    agent = tmp_path / "a.agent.yaml"
    data = read_document((example / "skills/board_report/skill.yaml").read_bytes(), "x").value
    root = write_skill(
        tmp_path, {**data, "context": "fork", "agent": "a", "refs": [], "guardrails": []}, "board_report"
    )
    answers = script(tmp_path, {"outline": "", "produce": "", "report": ""})

    def tools(defaults: str, *more: str) -> list[str]:
        agent.write_text(f"name: a\ndefaults: {{{defaults}}}\n")
        done = run_here(
            "workflows", "run", str(root), "--script", answers, "--extension", str(example), "--agent", str(agent),
            "--workdir", str(tmp_path / "out"), "--json", *more,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout)["tools"])

    assert tools("approval: auto") == ["board_report"]
    assert tools("approval: auto, plan: true") == []
    assert tools("approval: auto", "--approval", "ask") == []
    assert tools("effort: low") == []


class Reached(threading.Event):
    """Says that a request waits for its reply."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.reached.set()
        return super().wait(timeout)


def test_an_endpoint_that_nobody_serves_is_exit_3_too(tmp_path: Path) -> None:
    root = write_skill(tmp_path, {**DECK, "allowed-tools": [], "guardrails": []})
    with ChatServer("") as server:
        url = server.url  # free again below
    endpoint = {"OPENAI_BASE_URL": url, "OPENAI_MODEL": "m"}
    done = run_here("workflows", "run", str(root), "--executor", "chat", **endpoint)
    assert done.returncode == 3
    assert "nothing answers" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_a_partial_result_and_exit_130(tmp_path: Path) -> None:
    root = write_skill(tmp_path, {**DECK, "allowed-tools": [], "guardrails": []})
    gate = Reached()
    with ChatServer("the outline", Reply(text="never", wait=gate)) as server:
        endpoint = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "m", "OPENAI_API_KEY": "sk-secret"}
        process = subprocess.Popen(
            [sys.executable, "-m", "extforge", "workflows", "run", str(root), "--executor", "chat", "--json",
             "--workdir", str(tmp_path / "out")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **endpoint},
        )  # fmt: skip
        assert gate.reached.wait(60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    data = json.loads(out)
    assert (data["status"], [s["name"] for s in data["steps"]]) == ("cancelled", ["outline"])
    assert data["steps"][0]["output"] == "the outline"
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


# --------------------------------------------------------------------------- what generated skills carry


def test_a_tool_and_a_skill_make_three_steps_and_a_rule_per_artifact(tmp_path: Path) -> None:
    tree = Plans(tmp_path).tree(
        design(
            "quarterly_pack",
            components=["tool", "skill"],
            tools=[
                {"name": "pack_deck", "does": {"artifact": {"format": "pptx", "minimum": {"slides": 3}}}},
                {"name": "pack_data", "does": {"artifact": {"format": "json", "required_keys": ["/total"]}}},
                {"name": "pack_send", "does": "custom"},
            ],
        )
    )
    skill = load_skill(tree / "skills/quarterly_pack")
    assert [(s.name, s.depends) for s in skill.steps] == [
        ("outline", []),
        ("produce", ["outline"]),
        ("report", ["produce"]),
    ]
    assert skill.workflow.allowed_tools == ["pack_deck", "pack_data", "pack_send"]
    rules = [(r.enforced, r.subjects(skill.steps), r.check.artifact) for r in skill.workflow.guardrails if r.check]
    assert [(e, at, a.format, a.min_count, a.require_keys) for e, at, a in rules if a] == [
        (True, ["$final"], "pptx", {"slides": 3}, []),
        (True, ["$final"], "json", {}, ["/total"]),
    ]
    assert extension_of(skill.folder) == str(tree)
    assert extension_tools(tree) == {
        "pack_deck": "mutating_local", "pack_data": "mutating_local", "pack_send": "unclassified",
    }  # fmt: skip


def test_a_skill_alone_is_one_step_without_rules(tmp_path: Path) -> None:
    skill = load_skill(Plans(tmp_path).tree(design("brand_voice", components=["skill"])) / "skills/brand_voice")
    assert [s.name for s in skill.steps] == ["apply"]
    assert skill.workflow.guardrails == []


def test_hostile_text_gives_skills_that_load(tmp_path: Path) -> None:
    from test_generate import HOSTILE

    texts = [text for text in HOSTILE if text.strip() and not any(c in text for c in "\x00\x1b")]
    assert texts
    skills = [{"name": f"s{n}", "description": text, "trigger": text, "steps": [text]} for n, text in enumerate(texts)]
    tree = Plans(tmp_path).tree(design("hostile", description=texts[0], components=["skill"], skills=skills))
    found = load_pack(tree)
    assert found.problems == []
    assert [bool(skill.steps) for skill in found.skills] == [True] * len(texts)


def test_a_design_spells_out_its_workflow_and_its_problems_have_lines_in_the_plan(tmp_path: Path) -> None:
    plan = tmp_path / "p.plan.yaml"
    text = """\
- gap_id: g
  extension_name: brand_voice
  components: [skill]
  skills: [{references: {tone.md: Be kind.}}]
  workflows:
    brand_voice:
      steps: [{name: a, prompt: p, depends: [b]}]
      refs: [{path: references/tone.md}, {path: references/gone.md}]
    brand_vioce: {}
"""
    plan.write_text(text)
    done = run_here("check", str(plan), "--json")
    found = [(f["code"], f["where"]["json_path"], f["where"]["line"]) for f in json.loads(done.stdout)["findings"]]
    base = "$[0].workflows"
    assert done.returncode == 1
    assert found == [
        ("workflow-unknown-dependency", f"{base}.brand_voice.steps[0].depends[0]", 7),
        ("workflow-ref-missing", f"{base}.brand_voice.refs[1].path", 8),
        ("plan-workflow-unknown", f"{base}.brand_vioce", 9),
    ]
    good_text = text.replace(", depends: [b]", "").replace(", {path: references/gone.md}", "")
    plan.write_text(good_text.replace("    brand_vioce: {}\n", ""))
    done = run_here("generate", str(plan), "--into", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    skill = load_skill(tmp_path / "out/openjiuwen/extensions/harness/brand_voice/skills/brand_voice")
    assert [(s.name, s.prompt) for s in skill.steps] == [("a", "p")]
    assert [r.path for r in skill.workflow.refs] == ["references/tone.md"]


def test_a_community_skill_is_copied_without_a_workflow(tmp_path: Path) -> None:
    source = tmp_path / "skills/deck_style"
    source.mkdir(parents=True)
    (source / "SKILL.md").write_text("---\nname: deck_style\ndescription: Style. Use for decks.\n---\n\n# Style\n")
    one = design("styles", components=["skill"], skill_source="community:deck_style")
    plan = Plans(tmp_path).write(one)
    done = run_here("generate", plan, "--into", str(tmp_path / "out"), "--skills-from", str(tmp_path / "skills"))
    assert done.returncode == 0, done.stderr
    copied = tmp_path / "out/openjiuwen/extensions/harness/styles/skills/deck_style"
    assert [p.name for p in copied.iterdir()] == ["SKILL.md"]
    assert (copied / "SKILL.md").read_bytes() == (source / "SKILL.md").read_bytes()


def test_a_template_whose_workflow_does_not_load_is_refused(tmp_path: Path) -> None:
    plan = load_plan(Plans(tmp_path).write(design("brand_voice", components=["skill"])))
    with staging() as staged:
        render_plan(plan.blueprints, staged)
        path = next(path for path in staged.files if path.endswith("skill.yaml"))
        staged.write(path, staged.read(path) + b"stpes: []\n")
        with pytest.raises(TemplateError, match="stpes"):
            check_rendered([plan.blueprints[0].root], staged, [], [path.removesuffix("/skill.yaml")])


def test_merged_trees_keep_their_workflows_and_are_found(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run_here("generate", str(ROOT / "examples/board_report.plan.yaml"), "--into", str(out), "--merge")
    assert done.returncode == 0, done.stderr
    tree = out / "openjiuwen/extensions/harness/board_report_example"
    skill = load_skill(tree / "board_report/skills/board_report")
    assert extension_of(skill.folder) == str(tree)
    for path in (out, tree):
        done = run_here("workflows", "check", str(path))
        assert (done.returncode, "1 good skill" in done.stdout) == (0, True)
    done = run_here("workflows", "show", skill.source, "--approval", "auto", "--json")
    assert json.loads(done.stdout)["tools"] == ["board_report"]


# --------------------------------------------------------------------------- schema and registry


def test_the_schema_takes_what_the_loader_takes(example: Path) -> None:
    schema = schema_of("workflow")
    jsonschema.Draft202012Validator.check_schema(schema)
    path = example / "skills/board_report/skill.yaml"
    value = read_document(path.read_bytes(), str(path)).value
    jsonschema.validate(value, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "allowed_tools": []}, schema)
    assert json.loads(run_here("schema", "workflow").stdout) == schema


def test_the_tools_of_a_hand_written_tree_are_read_from_their_cards(tmp_path: Path) -> None:
    from trees import write_tree

    assert extension_tools(write_tree(tmp_path)) == {"write_note": "unclassified"}
    with pytest.raises(ExtensionUnreadable):
        extension_tools(tmp_path)
