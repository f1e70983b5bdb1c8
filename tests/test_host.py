"""In the real openJiuwen: what is generated loads and works, what is broken is found, each with its failure id."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import Plans, design, example, run_cli
from trees import ACCEPTANCE, BROKEN, FILES, NAME, Broken, edited, numbered, write_tree

from extforge.check import load_plan
from extforge.generate import existing_extensions, generate
from extforge_harness.errors import HostFailed, HostMissing
from extforge_harness.host.judge import _load_failures
from extforge_harness.host.run import HostRun, verify_in_host
from extforge_verifiers import Verdict
from extforge_verifiers.hostnames import HOOKS, HOST_RAILS, HOST_TOOLS

pytestmark = pytest.mark.host

TEN = example("seed_only")
RICH = example("everything")


def run_plan(folder: Path, designs: list[dict[str, Any]], **options: Any) -> HostRun:
    result = generate(load_plan(Plans(folder).write(*designs)), str(folder / "out"))
    return verify_in_host([str(result.target / root) for root in result.roots], **options)


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> HostRun:
    return run_plan(tmp_path_factory.mktemp("ten"), TEN)


def test_ten_seed_only_designs_load_together_and_each_does_its_work(ten: HostRun) -> None:
    assert len(ten.reports) == 10
    for report in ten.reports:
        assert report.verdict is Verdict.PASS, (report.path, report.findings)
        assert "together" in report.checked
    checked = [item for report in ten.reports for item in report.checked]
    assert sum(item.startswith("tool ") for item in checked) == 8
    assert sum(item.startswith("rail ") for item in checked) == 6
    assert sum(item.startswith("skill ") for item in checked) == 4


def test_the_files_of_the_ten_are_really_there(ten: HostRun) -> None:
    from extforge_verifiers import verify_artifact

    made = [
        p
        for p in (Path(ten.scratch) / "work").rglob("*.*")
        if p.suffix in (".pptx", ".pdf", ".xlsx", ".docx", ".png", ".json")
    ]
    assert sorted(p.suffix for p in made) == [".docx", ".json", ".pdf", ".png", ".pptx", ".xlsx"]
    for path in made:
        assert verify_artifact(path).verdict is Verdict.PASS


def test_a_budget_tool_reads_what_its_rail_wrote(ten: HostRun) -> None:
    facts = json.loads((Path(ten.scratch) / "result.json").read_text())
    turn = next(t for t in facts["together"]["turns"] if t["id"] == "session_budget:tool-0")
    data = turn["results"][-1]["result"]["data"]
    assert data["recorded"] is True
    assert data["state"]["calls"] == 1
    assert "extforge_probe" in data["state"]["tools"]
    assert data["state"]["limits"] == {"calls": 50}


def test_a_scripted_model_calls_the_tool_and_reads_its_result(ten: HostRun) -> None:
    facts = json.loads((Path(ten.scratch) / "result.json").read_text())
    turn = next(t for t in facts["together"]["turns"] if t["id"] == "quarterly_sales_deck:tool-0")
    assert (turn["requests"], turn["answer"]["output"]) == (2, "done")
    message = json.loads(turn["tool_messages"][-1])
    assert (message["success"], message["slides"]) == (True, 4)


def test_everything_that_a_plan_can_spell_out_works_together(tmp_path: Path) -> None:
    run = run_plan(tmp_path, RICH)
    for report in run.reports:
        assert report.verdict is Verdict.PASS, (report.path, report.findings)
    turns = {t["id"]: t for t in json.loads((Path(run.scratch) / "result.json").read_text())["together"]["turns"]}
    refused = turns["strict_budget:rail-0"]
    assert refused["executed"].count("extforge_probe") == 8
    assert "budget of this session is used up" in refused["tool_messages"][-1]
    lie = turns["truth_gate:lie-0"]
    assert "claimed success, but that is not true" in lie["tool_messages"][-1]
    fixed = turns["name_fixer:rewrites-0"]
    assert fixed["inputs"] == [{"output_path": "report_final.pptx"}]  # corrected, not refused


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> HostRun:
    return run_plan(tmp_path_factory.mktemp("more"), example("archetypes"))


def test_tools_that_reach_outside_are_really_run_with_their_setups(more: HostRun) -> None:
    for report in more.reports:
        assert report.verdict is Verdict.PASS, (report.path, report.findings)
    turns = {t["id"]: t for t in json.loads((Path(more.scratch) / "result.json").read_text())["together"]["turns"]}
    for turn, key, value in (
        ("order_api_client:tool-0", "response", {"id": "AB-1234", "status": "已发货", "total": 12.5}),
        ("order_api_client:tool-1", "status", 201),
        ("order_database_reader:tool-0", "rows", [[3, 7.25], [1, 12.5]]),
        ("git_history_reader:tool-0", "exit_code", 0),
    ):
        assert json.loads(turns[turn]["tool_messages"][-1])[key] == value, turns[turn]
    assert "stand-in for git" in turns["git_history_reader:tool-0"]["tool_messages"][-1]
    assert not list(Path(more.scratch).rglob("pwned"))
    ended = turns["turn_budget:rail-0"]
    assert (len(ended["executed"]), "used up" in ended["answer"]["output"]) == (6, True)


def test_the_text_files_and_drawings_are_really_there(more: HostRun) -> None:
    from extforge_verifiers import verify_artifact

    suffixes = (".csv", ".md", ".html", ".svg")
    made = [p for p in (Path(more.scratch) / "work").rglob("*") if p.suffix in suffixes]
    names = ["order_csv_export.csv", "order_flow_diagram.svg", "release_notes_markdown.md", "status_html_page.html"]
    assert sorted(p.name for p in made) == names
    for path in made:
        assert verify_artifact(path).verdict is Verdict.PASS


def test_a_tool_that_reaches_outside_is_undetermined_without_a_setup(tmp_path: Path) -> None:
    designs = [d for d in example("archetypes") if d["extension_name"] == "order_api_client"]
    del designs[0]["acceptance"]["place_order"]["setup"]
    (report,) = run_plan(tmp_path, designs).reports
    assert (report.verdict, report.findings) == (Verdict.UNDETERMINED, ())
    assert "give it a setup in acceptance/order_api_client.yaml" in report.skipped["tool place_order"]
    assert "tool find_order" in report.checked
    assert "tool place_order" not in report.checked
    done = run_cli("verify", str(tmp_path / "out"), "--host", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["reports"][0]["verdict"] == "undetermined"


def test_what_differs_from_the_recording_is_found_in_the_host(tmp_path: Path) -> None:
    designs = [d for d in example("archetypes") if d["extension_name"] == "order_database_reader"]
    acceptance = designs[0]["acceptance"]
    acceptance["orders_of_customer"]["expect"] = {"contains": {"rows": []}}
    acceptance["ask_order_database"]["setup"] = {"sqlite": "CREATE TABLE"}
    (report,) = run_plan(tmp_path, designs).reports
    assert sorted(f.code for f in report.findings) == ["host-setup", "host-tool-result"]
    assert report.verdict is Verdict.FAIL


def test_hostile_text_reaches_the_host_as_exactly_that_text(tmp_path: Path) -> None:
    from test_generate import HOSTILE

    texts = [t for t in HOSTILE if t.strip() and not any(c in t for c in "\x00\x1b")]
    designs = [
        design(
            f"hostile_{n}",
            description=text,
            components=["tool", "skill"],
            tools=[{"description": text, "does": {"artifact": {"format": "json"}}}],
            skills=[{"description": text, "steps": [text]}],
        )
        for n, text in enumerate(texts)
    ]
    result = generate(load_plan(Plans(tmp_path).write(*designs), max_designs=50), str(tmp_path / "out"))
    run = verify_in_host([str(result.target / root) for root in result.roots])
    assert [(r.path, r.findings) for r in run.reports if r.verdict is not Verdict.PASS] == []
    facts = json.loads((Path(run.scratch) / "result.json").read_text())
    offered = {c["name"]: c["description"] for e in facts["alone"] for c in e["cards"]}
    assert offered == {f"hostile_{n}": text for n, text in enumerate(texts)}


# --------------------------------------------------------------------------- broken trees


@pytest.fixture(scope="module")
def broken_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run every broken tree in one host process; each has names of its own."""
    folder = tmp_path_factory.mktemp("broken")
    trees = {}
    for number, broken in enumerate(BROKEN):
        texts = numbered({**broken.files, "ACCEPTANCE": ACCEPTANCE}, number)
        acceptance = texts.pop("ACCEPTANCE")
        name = f"audit_note_{number}" if broken.name == NAME else broken.name
        trees[broken.id] = str(write_tree(folder, texts, name, acceptance.replace(f"audit_note_{number}", NAME)))
    reports = {report.path: report for report in verify_in_host(list(trees.values())).reports}
    return {key: reports[tree] for key, tree in trees.items()}


@pytest.mark.parametrize("broken", [pytest.param(b, id=b.id) for b in BROKEN])
def test_a_broken_tree_gets_its_failure_id_in_the_host(broken_runs: dict[str, Any], broken: Broken) -> None:
    report = broken_runs[broken.id]
    found = {f.failure_id for f in report.findings if f.severity == "error"}
    if broken.host:
        assert broken.host in found, report.findings
    else:
        assert report.verdict is Verdict.PASS, report.findings


def test_a_good_hand_written_tree_passes(tmp_path: Path) -> None:
    (report,) = verify_in_host([str(write_tree(tmp_path))]).reports
    assert report.verdict is Verdict.PASS, report.findings
    assert report.facts["openjiuwen"]


def test_two_extensions_with_one_tool_name_do_not_load_together(tmp_path: Path) -> None:
    files = {path: text.replace("audit_note", "second_note") for path, text in FILES.items()}
    trees = [write_tree(tmp_path), write_tree(tmp_path, files, "second_note")]
    first, second = verify_in_host([str(tree) for tree in trees]).reports
    assert [f.code for f in second.findings] == ["host-together"]
    assert "already bound" in second.findings[0].message
    assert first.findings == ()


def test_a_guard_that_does_not_block_is_found(tmp_path: Path) -> None:
    files = edited(
        "rails/count_rail.py",
        "async def after_tool_call(self, ctx) -> None:\n        self.calls += 1",
        "async def before_tool_call(self, ctx) -> None:\n        self.calls += 1",
    )
    tree = write_tree(tmp_path, files)
    acceptance = tmp_path / "acceptance/audit_note.yaml"
    acceptance.write_text(
        acceptance.read_text().replace(
            "{rail: CountRail}", "{rail: CountRail, does: guard, blocks: {path: bad}, passes: {path: good}}"
        )
    )
    (report,) = verify_in_host([str(tree)]).reports
    assert [f.code for f in report.findings] == ["host-guard-open"]


def limited(name: str, does: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return design(name, components=["rail"], rails=[{"does": does}], **fields)


DECK = design("deal_deck", description="pptx")
ITS = {"kind": "constraint", "applies_to": ["deal_deck"]}
LIMITED = [
    DECK,
    limited("deal_gate", {"artifact_gate": {}}, **ITS),
    limited("deal_screen", {"result_filter": {"patterns": ["key-[a-z]{4,8}"]}}, **ITS),
    limited("read_screen", {"result_filter": {"tools": ["read_file"], "max_characters": 150}}),
    limited("list_gate", {"artifact_gate": {"tools": ["list_files"]}}),
    limited("idle_gate", {"artifact_gate": {"tools": ["glob_files"]}}),
]
DAMAGE = {  # what is changed in which module, and what is then found
    "deal_gate": ("rail", "if not problem:", "if True:", "host-gate-open"),
    "deal_screen": ("rail", 'not in OPTIONS["tools"]', 'in OPTIONS["tools"]', "host-screen-open"),
    "read_screen": ("screen", 'f"{text[:most]}', 'f"', "host-screen-closed"),
    "list_gate": ("rail", "if not problem:", 'problem = "x"\n        if not problem:', "host-gate-closed"),
}


def test_rails_that_look_at_the_results_of_named_tools_are_really_tried(tmp_path: Path) -> None:
    target = generate(load_plan(Plans(tmp_path).write(*LIMITED)), str(tmp_path / "out")).target
    trees = sorted((target / "openjiuwen/extensions/harness").iterdir())

    def found() -> dict[str, list[str]]:
        reports = verify_in_host([str(tree) for tree in trees]).reports
        return {Path(report.path).name: [finding.code for finding in report.findings] for report in reports}

    assert found() == {tree.name: [] for tree in trees}
    for name, (module, old, new, _) in DAMAGE.items():
        path = target / f"openjiuwen/extensions/harness/{name}/rails/{name}_{module}.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    idle = target / "acceptance/idle_gate.yaml"
    idle.write_text(idle.read_text().replace("lie: true", "lie: false"))
    expected = {name: [code] for name, (*_, code) in DAMAGE.items()}
    assert found() == {"deal_deck": [], "idle_gate": ["host-rail-not-tried"], **expected}


NAMING = design(
    "naming_rule",
    kind="constraint",
    components=["rail"],
    rails=[{"does": {"guard": {"require": {"stem_suffix": "_v1", "folder": ["out"]}}}}],
)


def test_inputs_pass_the_guards_that_are_in_the_target_already(tmp_path: Path) -> None:
    plans, target = Plans(tmp_path), str(tmp_path / "out")
    rule = {"guard": {"require": {"extension": [".pptx"]}}}
    own = design("deal_rule", kind="constraint", applies_to=["deal_deck"], components=["rail"], rails=[{"does": rule}])
    later = plans.write(DECK, own)

    def run(plan: str) -> dict[str, list[str]]:
        generate(load_plan(plan, existing=existing_extensions(target)), target)
        trees = sorted(Path(target, "openjiuwen/extensions/harness").iterdir())
        reports = verify_in_host([str(tree) for tree in trees]).reports
        return {Path(report.path).name: [f"{f.code}: {f.message}" for f in report.findings] for report in reports}

    generate(load_plan(later), target)
    found = run(plans.write(NAMING))  # which the deck knew nothing of
    assert found["naming_rule"] == []
    (deck,), (rule_,) = found["deal_deck"], found["deal_rule"]
    assert deck.startswith("host-tool-not-called: NamingRuleRail of naming_rule refused the call of 'deal_deck': ")
    assert "must end in '_v1'" in deck
    assert rule_.startswith("host-guard-closed: NamingRuleRail of naming_rule refused a good call of deal_deck: ")
    assert run(later) == {"deal_deck": [], "deal_rule": [], "naming_rule": []}


def test_a_tool_without_acceptance_inputs_is_not_passed(tmp_path: Path) -> None:
    tree = write_tree(tmp_path)
    (tmp_path / "acceptance/audit_note.yaml").unlink()
    (report,) = verify_in_host([str(tree)]).reports
    assert [(f.code, f.failure_id) for f in report.findings] == [("host-tool-not-called", "tool_not_called")]


def test_a_custom_tool_is_reported_as_not_implemented(tmp_path: Path) -> None:
    run = run_plan(tmp_path, [design("deploy_control")])
    assert [f.code for f in run.reports[0].findings] == ["tool-not-implemented"]


def test_a_missing_requirement_is_named_with_the_pip_line(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**FILES, "requirements.txt": "no-such-package-anywhere>=1\n"})
    with pytest.raises(HostMissing, match="pip install no-such-package-anywhere>=1"):
        verify_in_host([str(tree)])


def test_a_tree_that_hangs_is_stopped(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path, edited("tools/note_tool.py", "import json\n", "import json\nimport time\ntime.sleep(600)\n")
    )
    with pytest.raises(HostFailed, match="longer than 12 seconds"):
        verify_in_host([str(tree)], timeout=12)


def test_the_original_tree_is_never_touched(tmp_path: Path) -> None:
    tree = write_tree(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    verify_in_host([str(tree)])
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("harness.tool.entry_point provider requires params.entry_point", "entry_point_not_allowed"),
        ("Unknown tool type 'core.x'. Registered types: ['core.web_search', 'entry_point']", "harness_load_failed"),
    ],
)
def test_the_host_is_not_taken_at_a_word_of_a_list(message: str, failure: str) -> None:
    error = {"type": "ValueError", "message": message, "trace": f"Traceback ... ValueError: {message}"}
    assert _load_failures(error)[0] == failure


# --------------------------------------------------------------------------- command line and names


def test_verify_host_from_the_command_line(tmp_path: Path) -> None:
    write_tree(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = run_cli("verify", str(tmp_path), "--host", "--json", TMPDIR=str(scratch))
    assert done.returncode == 0, done.stderr
    assert list(scratch.glob("extforge-host-*")) == []
    report = json.loads(done.stdout)
    assert report["reports"][0]["facts"]["openjiuwen"]
    assert "together" in report["reports"][0]["checked"]


def test_the_files_of_a_run_that_failed_are_kept(tmp_path: Path) -> None:
    write_tree(tmp_path, acceptance_text=ACCEPTANCE.replace("tool_name: write_note", "tool_name: no_such_tool"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = run_cli("verify", str(tmp_path), "--host", "--json", TMPDIR=str(scratch))
    assert done.returncode == 1, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    assert report["verdict"] == "fail"
    assert [report["facts"]["host_files"]] == [str(path) for path in scratch.glob("extforge-host-*")]


def test_the_demo_runs_through_the_host(tmp_path: Path) -> None:
    done = run_cli("demo", "--host", "--json", "--keep", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert "loaded and ran 6 of 6" in done.stderr


def test_a_python_without_openjiuwen_is_exit_3(tmp_path: Path) -> None:
    write_tree(tmp_path)
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = run_cli("verify", str(tmp_path), "--host", "--python", str(bare), TMPDIR=str(tmp_path))
    assert done.returncode == 3
    assert list(tmp_path.glob("extforge-host-*")) == []
    assert "pip install" in done.stderr


@pytest.mark.filterwarnings("ignore")  # the host's own deprecations
def test_the_names_we_know_of_the_host_are_still_its_names() -> None:
    import re

    from openjiuwen.harness.rails import base

    package = Path(base.__file__).parents[2]
    prompts = "".join(p.read_text(encoding="utf-8") for p in (package / "harness/prompts/tools").glob("*.py"))
    named = set(re.findall(r'def get_name\(self\)[^\n]*\n\s+return "(\w+)"', prompts))
    assert named
    assert named <= HOST_TOOLS, named - HOST_TOOLS
    rails = set(
        re.findall(
            r"^class (\w+Rail)\b",
            "".join(p.read_text(encoding="utf-8") for p in (package / "harness/rails").rglob("*.py")),
            re.MULTILINE,
        )
    )
    assert rails <= HOST_RAILS, rails - HOST_RAILS
    from openjiuwen.core.single_agent.rail.base import EVENT_METHOD_MAP
    from openjiuwen.harness.rails.base import DEEP_EVENT_METHOD_MAP

    assert {*EVENT_METHOD_MAP.values(), *DEEP_EVENT_METHOD_MAP.values()} <= HOOKS
