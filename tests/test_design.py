"""Gaps to designs: what is decided, with which values, under which name, and that the plan always passes its check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from designs import GAPS, design_of, designed, gap, labelled, write_gaps
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, run_cli

from extforge.check import check_plan
from extforge.community import read_collection
from extforge.design.deciding import decide
from extforge.design.designing import plan_text
from extforge.design.gaps import Gap
from extforge.generate import generate
from extforge.naming import GENERIC_NAMES
from extforge_harness.host.run import verify_in_host
from extforge_verifiers import Verdict, verify_extension
from extforge_verifiers.documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator


def answer(one: Gap) -> tuple[str, list[str], list[str]]:
    """Return kind, components and formats of a gap's own design."""
    decision = decide(one)[-1]
    formats = [tool.partition(":")[2] for tool in decision.tools if tool.startswith("artifact:")]
    return decision.kind, sorted(decision.components), sorted(formats)


def accuracy(path: Path) -> tuple[float, float, float, list[str]]:
    """Return the shares of kinds, component sets and formats that are right, and the ids of the wrong ones."""
    gaps, expected = labelled(path)
    rows = [(answer(one), expected[one.id], one.id) for one in gaps]
    kinds = [found[0] == want["kind"] for found, want, _ in rows]
    components = [found[1] == sorted(want["components"]) for found, want, _ in rows]
    formats = [found[2] == sorted(want["formats"]) for found, want, _ in rows]
    wrong = [name for (_, _, name), *right in zip(rows, kinds, components, formats, strict=True) if not all(right)]
    return sum(kinds) / len(rows), sum(components) / len(rows), sum(formats) / len(rows), wrong


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param("held_out.yaml", set(), id="of many fields"),
        pytest.param("blind.yaml", set(), id="more of them"),
        pytest.param("requests.yaml", {"r28"}, id="feature requests"),
        pytest.param("wishes.yaml", set(), id="wishes of several trades"),
        pytest.param("look_alikes.yaml", {"l36"}, id="no rules, in the words of rules"),
    ],
)
def test_gaps_of_many_fields_are_designed_as_the_hosts_rules_have_it(name: str, wrong: set[str]) -> None:
    assert set(accuracy(GAPS / name)[3]) <= wrong


def test_the_shared_labelled_gaps_are_met(shared: Path) -> None:
    kinds, components, formats, wrong = accuracy(shared / "gaps" / "labelled-gaps.json")
    assert (kinds >= 0.95, components >= 0.9, formats >= 0.9) == (True, True, True), wrong


def test_what_the_committed_gaps_state_is_in_the_plan() -> None:
    looked_at = 0
    for name in ("held_out.yaml", "blind.yaml", "wishes.yaml", "look_alikes.yaml"):
        gaps, expected = labelled(GAPS / name)
        for one in gaps:
            details = expected[one.id].get("details", [])
            for detail in [details] if isinstance(details, str) else details:
                looked_at += 1
                assert_states(one, detail)
    assert looked_at > 90


def assert_states(one: Gap, details: str) -> None:
    """Hold one gap's designs against what a person read in it: `suffix=_v1`, `every=5 model_calls`, `does=http`."""
    designs = designed(one).plan["designs"]
    options = dict(bodies(designs))
    if "split" in details:
        assert [design["kind"] for design in designs] == ["constraint", "capability"], one.feature
        assert designs[1]["depends_on"] == [designs[0]["extension_name"]]
        assert designs[0]["applies_to"] == [designs[1]["extension_name"]]
    key, _, value = details.removeprefix("split ").partition("=")
    guard, artifact = options.get("guard", {}), options.get("artifact", {})
    require, forbid = guard.get("require", {}), guard.get("forbid", {})
    stated: dict[str, Any] = {
        "suffix": require.get("stem_suffix"),
        "folder": ",".join(require.get("folder", [])),
        "forbidden": ",".join(forbid.get("folder", [])),
        "extension": ",".join(require.get("extension", [])),
        "every": "{every} {of}".format(**{"every": 0, "of": "", **options.get("reminder", {})}),
        "budget": str(options.get("budget", {}).get("calls")),
        "warn": str(options.get("budget", {}).get("warn_at")),
        "characters": str(options.get("result_filter", {}).get("max_characters")),
        "keys": ",".join(artifact.get("required_keys", [])),
        "columns": ",".join(artifact.get("required_columns", [])),
        "slides": str(artifact.get("minimum", {}).get("slides")),
        "does": decide(one)[-1].rail or decide(one)[-1].tools[0],
    }
    assert stated[key] == value, (one.feature, designs)


def bodies(designs: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return what each rail and tool does, with its options."""
    parts = [part for design in designs for kind in ("rails", "tools") for part in design.get(kind, [])]
    return [next(iter(part["does"].items())) for part in parts]


def literals(value: object) -> Iterator[object]:
    """Return the leaves of a plan's value."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from literals(item)
    if not isinstance(value, (dict, list)):
        yield value


@pytest.mark.parametrize("name", sorted(path.name for path in GAPS.glob("*.yaml")))
def test_no_value_is_in_a_plan_that_its_gap_does_not_hold(name: str) -> None:
    gaps, _ = labelled(GAPS / name)
    looked_at = 0
    for one in gaps:
        text = f"{one.feature} {one.suggested_approach} {one.gap_description}".lower().replace(",", "")
        for does, body in bodies(designed(one).plan["designs"]):
            chosen = {
                "guard": [body.get(verb, {}).get(key, []) for verb in ("require", "forbid") for key in ("folder", "extension", "stem_suffix")],
                "budget": [body.get(key, []) for key in ("calls", "characters")],
                "result_filter": [body.get("max_characters", [])],
                "artifact": [body.get(key, []) for key in ("required_keys", "required_columns")],
                "command": [body.get("argv", [])[:-1]],
            }.get(does, [])  # fmt: skip
            for value in literals(chosen):
                looked_at += 1
                default = value in (1_000_000, 20_000, ".")  # --explain calls them extforge's own
                assert default or str(value).lower().lstrip(".") in text, (one.feature, does, value)
    assert looked_at > 2


# --------------------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(("Client advice", "Rapid change", "Share the trail of thought"), ("capability", ["skill"], []), id="cli, api, rail inside words"),
        pytest.param(("How to choose between PDF and Word", "", "Decision guide"), ("capability", ["skill"], []), id="formats as a topic"),
        pytest.param(("PDF 必须带页码", "现在没有页码", "生成 PDF 时加页码"), ("capability", ["tool"], ["pdf"]), id="must, of a product"),
        pytest.param(("审计报告生成", "审计师需要年度审计报告", "生成 Word 文档"), ("capability", ["tool"], ["docx"]), id="an audit report is a document"),
        pytest.param(("Department budget workbook", "Controllers plan the budget", "Write an xlsx"), ("capability", ["tool"], ["xlsx"]), id="a budget is a document"),
        pytest.param(("每季度生成经营汇报 PPT", "", "python-pptx"), ("capability", ["tool"], ["pptx"]), id="every quarter is no turn"),
        pytest.param(("SQL injection awareness", "Developers forget it", "Guide with examples"), ("capability", ["skill"], []), id="injection of another kind"),
        pytest.param(("Turn notes.json into slides", "", "Read the JSON and write a pptx"), ("capability", ["tool"], ["pptx"]), id="an input format"),
        pytest.param(("Log everything the tools do", "Log every tool call", "Let people query it"), ("capability", ["rail", "tool"], []), id="an audit"),
        pytest.param(("Run meetings with guests", "They run over", "Etiquette"), ("capability", ["skill"], []), id="running no program"),
        pytest.param(("", "", ""), ("capability", ["skill"], []), id="nothing to go by"),
    ],
)  # fmt: skip
def test_a_word_counts_for_what_it_means_where_it_stands(
    texts: tuple[str, str, str], expected: tuple[str, list[str], list[str]]
) -> None:
    assert answer(gap(*texts)) == expected


def test_every_decision_names_its_rule_and_its_words() -> None:
    draft = designed(gap("Export invoices to PDF", "Users want to print", "reportlab")).drafts[0]
    reasons = {reason.subject: reason for reason in draft.decision.reasons}
    assert {"tool", "kind", "name"} <= set(reasons)
    assert [(word.words, word.field) for word in reasons["tool"].words] == [("PDF", "feature")]
    assert all(reason.rule for reason in draft.decision.reasons)
    assert str(reasons["tool"]) == "tool: artifact pdf <- it writes a file ('PDF' in feature)"


def test_a_gap_with_nothing_to_go_by_is_marked_and_nothing_is_invented() -> None:
    found = designed(gap("Something for the team"))
    assert found.plan["designs"][0]["components"] == ["skill"]
    assert [finding.code for finding in found.findings] == ["design-low-confidence"]
    api = design_of(gap("Weather lookup", "", "Call the weather API"))
    assert list(api["tools"][0]["does"]) == ["custom"]
    assert "url" in api["tools"][0]["does"]["custom"]["notes"]


def test_a_rule_and_an_ability_in_one_gap_become_two_designs() -> None:
    rule, ability = designed(
        gap("Contract PDF", "Generate the contract PDF; every file name must end with _signed, others are refused", "x")
    ).plan["designs"]
    assert (rule["kind"], rule["components"], rule["applies_to"]) == (
        "constraint",
        ["rail"],
        [ability["extension_name"]],
    )
    assert (ability["kind"], ability["depends_on"]) == ("capability", [rule["extension_name"]])
    assert rule["rails"][0]["does"]["guard"]["require"] == {"stem_suffix": "_signed"}


def test_capabilities_depend_on_the_rules_about_their_files_and_on_no_other() -> None:
    plan = designed(
        gap("File names must end with _v1", "", "Refuse others", "r1"),
        gap("Never reveal phone numbers in answers", "", "Redact", "r2"),
        gap("PPT file names must start with ACME_", "", "Refuse others", "r3"),
        gap("Sales deck", "", "Write a pptx", "c1"),
        gap("Invoice", "", "Write a pdf", "c2"),
        gap("When to use Redis", "", "Guide", "c3"),
    ).plan["designs"]
    names = {design["gap_id"]: design["extension_name"] for design in plan}
    depends = {design["gap_id"]: design["depends_on"] for design in plan}
    assert depends == {"r1": [], "r2": [], "r3": [], "c1": [names["r1"], names["r3"]], "c2": [names["r1"]], "c3": []}
    assert [design["applies_to"] for design in plan[:3]] == [[], [], [names["c1"]]]


def test_a_rule_that_refuses_what_another_design_writes_is_pointed_out() -> None:
    found = designed(
        gap("Only .csv files may be written", "", "Refuse others", "r"), gap("Deck", "", "Write pptx", "c")
    )
    assert [f.code for f in found.findings] == ["design-conflict"]


def test_files_of_the_host_are_designed_as_an_extension_and_said_so() -> None:
    found = designed(gap("Invoice PDF", "", "Write a PDF", target_files=["openjiuwen/core/x.py"]))
    assert found.plan["designs"][0]["file_plan"]["root"].startswith("openjiuwen/extensions/harness/")
    assert [finding.code for finding in found.findings] == ["design-host-file"]


# --------------------------------------------------------------------------- values


def rail(*texts: str) -> dict[str, Any]:
    found: dict[str, Any] = design_of(gap(*texts))["rails"][0]["does"]
    return found


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("所有写入的文件名必须以 _v<数字> 结尾", {"require": {"pattern": r".*_v[0-9]+(\.[A-Za-z0-9]+)?"}}, id="a numbered suffix"),
        pytest.param("文件名必须带 _final 后缀", {"require": {"stem_suffix": "_final"}}, id="Chinese suffix"),
        pytest.param('Every file name must end with "-draft"', {"require": {"stem_suffix": "-draft"}}, id="quoted suffix"),
        pytest.param("File names must start with ACME_", {"require": {"pattern": r"ACME_.*(\.[A-Za-z0-9]+)?"}}, id="prefix"),
        pytest.param("文件名必须以 YYYYMMDD 结尾", {"require": {"pattern": r".*[0-9]{8}(\.[A-Za-z0-9]+)?"}}, id="a date"),
        pytest.param("Files must be written below the out/reports folder", {"require": {"folder": ["out/reports"]}}, id="folder"),
        pytest.param("严禁写入 /etc 与 prod 目录", {"forbid": {"folder": ["/etc", "prod"]}}, id="forbidden folders"),
        pytest.param("Never write .exe or .bat files; forbid these extensions", {"forbid": {"extension": [".exe", ".bat"]}}, id="forbidden types"),
        pytest.param("Only .pdf and .docx file extensions may be saved", {"require": {"extension": [".pdf", ".docx"]}}, id="allowed types"),
        pytest.param("All file names must be lowercase", {"require": {"pattern": "[a-z0-9._-]+"}}, id="lower case"),
        pytest.param("Tools must never overwrite an existing file", {"forbid": {"argument": {"overwrite": "true"}}}, id="overwriting"),
        pytest.param("Never delete files outside the workspace", {"require": {"folder": ["."]}}, id="the workspace"),
    ],
)  # fmt: skip
def test_a_guard_has_the_rule_that_the_gap_states(text: str, rule: dict[str, Any]) -> None:
    guard = rail(text)["guard"]
    assert {key: guard[key] for key in ("require", "forbid") if key in guard} == rule


def test_reminders_budgets_prompts_and_output_guards_have_their_values() -> None:
    assert {
        k: v for k, v in rail("Remind every ten turns", "", "Inject a note")["reminder"].items() if k != "text"
    } == {
        "every": 10,
        "of": "model_calls",
    }
    assert rail("会话预算", "工具调用超过 30 次就停止，到 80% 时告警，可查询")["budget"] == {
        "calls": 30,
        "warn_at": 0.8,
        "on_exceed": "block",
    }
    assert rail("Session time budget", "At most 10 minutes per session, then end the session", "Count, report")[
        "budget"
    ] == {"seconds": 600, "warn_at": 1.0, "on_exceed": "finish"}
    prompt = rail(
        "Pricing note", "When the user mentions pricing or discount, it is needed", "Inject it into the prompt"
    )
    assert prompt["prompt"]["when_mentions"] == ["pricing", "discount"]
    phones = rail("禁止在回答中输出手机号", "", "脱敏")["output_guard"]["patterns"]
    assert re.search(phones[0], "电话13812345678。")
    assert not re.search(phones[0], "订单 138123456789012")
    longest = rail("Logs", "They have 100,000 characters", "Truncate tool results to 8,000 characters")["result_filter"]
    assert longest == {"max_characters": 8000}
    assert rail("Replies must never say “Project Neptune”")["output_guard"]["patterns"] == [r"Project\ Neptune"]


def test_artifacts_commands_and_queries_have_their_values() -> None:
    def does(*texts: str) -> dict[str, Any]:
        found: dict[str, Any] = design_of(gap(*texts))["tools"][0]["does"]
        return found

    assert does("Export", "", "Write a JSON file with the keys name, version and owner")["artifact"] == {
        "format": "json",
        "required_keys": ["name", "version", "owner"],
    }
    assert does("导出 CSV", "包含 order_id、total 列", "生成 csv 文件")["artifact"]["required_columns"] == [
        "order_id",
        "total",
    ]
    assert does("Deck", "", "Generate a pptx of at least five slides")["artifact"]["minimum"] == {"slides": 5}
    assert does("Blame", "", "Wrap git blame as a callable action")["command"]["argv"] == [
        "git",
        "blame",
        "{arguments}",
    ]
    assert does("Rates", "", "Call the API https://api.example.com/rates")["http"] == {
        "url": "https://api.example.com/rates"
    }
    assert does("Orders", "", "Read-only SQL on the database") == {"query": {}}
    assert list(does("Orders", "", "Read-only SQL on PostgreSQL")) == ["custom"]


@pytest.mark.parametrize(
    ("says", "argv"),
    [
        pytest.param("Wrap `ruff check`", ["ruff", "check"], id="in backticks"),
        pytest.param("Wrap git branch -d as an action", ["git", "branch"], id="with an option"),
        pytest.param("Call ffmpeg on the command line", ["ffmpeg"], id="where a command line is spoken of"),
        pytest.param("Wrap bash as an action", None, id="a shell is no program to wrap"),
        pytest.param("Run our linter on the command line", None, id="somebody's"),
        pytest.param("A CLI for the on-call assistant", None, id="a word with `call` in it"),
    ],
)
def test_a_command_runs_the_program_that_is_named_or_is_left_open(says: str, argv: list[str] | None) -> None:
    does = design_of(gap("A program", "", says))["tools"][0]["does"]
    assert does.get("command", {}).get("argv") == (argv and [*argv, "{arguments}"])


def test_two_products_of_one_gap_are_two_tools_and_material_is_for_a_person_to_bring() -> None:
    design = design_of(gap("会议纪要生成 Word 和 PDF", "", "生成 docx 与 pdf，遵循品牌模板"))
    assert [tool["does"]["artifact"]["format"] for tool in design["tools"]] == ["docx", "pdf"]
    assert design["components"] == ["tool", "skill"]
    assert design["skills"][0]["assets"] == ["references/brand_guide.md", "assets/template.docx"]


# --------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("feature", "approach", "name"),
    [
        pytest.param("生成财务excel", "openpyxl", "financial_excel", id="Chinese with a format"),
        pytest.param("季度经营汇报 PPT 生成", "python-pptx", "quarterly_business_report_ppt", id="Chinese"),
        pytest.param("供应商评估报告", "输出 PDF", "supplier_evaluation_report_pdf", id="the format is added"),
        pytest.param("3D chart", "Draw a png", "chart_3d", id="digits first"),
        pytest.param("Never delete outside the workspace", "Guard", "delete_outside_workspace_guard", id="a rule"),
        pytest.param("Grep", "Wrap grep as an action", "grep_command", id="a name of the host's"),
    ],
)
def test_names_keep_the_goals_words(feature: str, approach: str, name: str) -> None:
    assert design_of(gap(feature, "", approach))["extension_name"] == name


def test_a_goal_in_unknown_words_gets_a_stable_name_of_its_own_and_a_warning() -> None:
    found = designed(gap("뭔가 만들기"), gap("ひらがな", name="g2"))
    names = [design["extension_name"] for design in found.plan["designs"]]
    assert names == [
        design["extension_name"] for design in designed(gap("뭔가 만들기"), gap("ひらがな", name="g2")).plan["designs"]
    ]
    assert len(set(names)) == 2
    assert [finding.code for finding in found.findings].count("design-name-hashed") == 2


# --------------------------------------------------------------------------- ranking


def test_the_most_important_gaps_are_kept_and_the_others_named() -> None:
    gaps = [gap(f"Invoice {n} to PDF", "", "Write a PDF", f"g{n}", impact=n, feasibility=1) for n in range(1, 13)]
    found = designed(*gaps, max_designs=10)
    assert [design["gap_id"] for design in found.plan["designs"]] == [f"g{n}" for n in range(12, 2, -1)]
    out = [finding for finding in found.findings if finding.code == "design-left-out"]
    assert ["'g2'" in out[0].message, "'g1'" in out[1].message, len(out)] == [True, True, 2]


def test_a_gap_of_two_designs_is_kept_whole_or_left_out() -> None:
    both = gap(
        "Deck", "Write a pptx; every file name must end with _v1, else refuse", "x", "both", impact=1, feasibility=1
    )
    other = gap("Invoice PDF", "", "Write a PDF", "other", impact=2, feasibility=1)
    found = designed(both, other, max_designs=2)
    assert [design["gap_id"] for design in found.plan["designs"]] == ["other"]
    assert [finding.code for finding in found.findings] == ["design-left-out"]


# --------------------------------------------------------------------------- community skills


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    described = {
        "pptx": "Presentation creation and editing. Use when a deck or slides (.pptx) are to be created for a business report.",
        "brand-guidelines": "Applies brand colours and typography of the company to artifacts.",
        "contract-review": "Review of contracts: clauses, risks, negotiation. Use when a contract is reviewed.",
        "webapp-testing": "Testing local web applications with Playwright.",
    }
    for name, description in described.items():
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f'---\nname: {name}\ndescription: "{description}"\n---\n\n# {name}\n', "utf-8")
    return tmp_path / "skills"


def test_community_skills_are_matched_across_languages_once_with_score_and_reason(skills: Path) -> None:
    gaps = (
        gap("季度经营汇报 PPT 生成", "", "生成 pptx", "g1"),
        gap("Contract review", "", "Guidance on clauses and risks of contracts", "g2"),
        gap("Monthly report deck", "", "Write pptx slides", "g3"),
        gap("Weather lookup", "", "Call the weather API", "g4"),
    )
    found = designed(*gaps, collection=read_collection((str(skills),)))
    sources = {design["gap_id"]: design["skill_source"] for design in found.plan["designs"]}
    assert sources == {"g1": "community:pptx", "g2": "community:contract-review", "g3": "", "g4": ""}
    reason = next(r for r in found.drafts[0].decision.reasons if r.subject == "skill_source")
    assert re.search(r"score 0\.\d\d: shares .*pptx", reason.rule)
    assert "skills" not in found.plan["designs"][0]
    assert found.checked.errors == []


# --------------------------------------------------------------------------- always a plan that passes

WORDS = (
    "生成 导出 PPT pptx Word 文件名 必须 以 _v1 结尾 禁止 回答 手机号 每5轮 提醒 审计 工具调用 预算 会话 API HTTP 接口 SQL 数据库 wrap git"
    " CLI run bash commands guide 规范 export PDF JSON keys name, version never overwrite folder outside ../../etc /etc {{ x }} {% raw %} \"\"\" ''' ` $(rm -rf)"
    " : - # | > & * ! % @ \\ \n \r \t \x00 \x1b \u2028 \ufeff 😀 class import con nul 3d a b".split(" ")
)
TEXT = st.lists(st.sampled_from(WORDS) | st.text(max_size=12), max_size=14).map(" ".join)
HOSTILE = st.builds(
    gap,
    TEXT,
    TEXT,
    TEXT,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    impact=st.integers(0, 10),
)


@given(st.lists(HOSTILE, min_size=1, max_size=4, unique_by=lambda g: g.id))
@settings(max_examples=80, deadline=None)
def test_whatever_gaps_say_the_plan_passes_its_check(gaps: list[Gap]) -> None:
    found = designed(*gaps)
    assert found.checked.errors == []
    names = [design["extension_name"] for design in found.plan["designs"]]
    assert len(set(names)) == len(names) >= len(gaps)
    assert not [name for name in names if GENERIC_NAMES.fullmatch(name)]
    assert read_document(plan_text(found.plan).encode(), "p.yaml").value == found.plan


def test_very_long_texts_are_cut_and_take_no_time() -> None:
    found = designed(gap("生成PPT " * 20_000, "file must end with _v1 " * 20_000, "a" * 200_000))
    assert found.checked.errors == []
    assert len(plan_text(found.plan)) < 20_000


def test_the_same_gaps_make_the_same_plan() -> None:
    gaps, _ = labelled(GAPS / "held_out.yaml")
    assert plan_text(designed(*gaps).plan) == plan_text(designed(*gaps).plan)


# --------------------------------------------------------------------------- the command


def test_the_command_writes_a_plan_that_check_takes_and_says_why(tmp_path: Path) -> None:
    gaps = write_gaps(
        tmp_path / "gaps.json", gap("Export invoices to PDF", "", "reportlab"), gap("季度 PPT", "", "生成", "g2")
    )
    plan = tmp_path / "my.plan.yaml"
    done = run_cli("design", gaps, "-o", str(plan), "--explain")
    assert (done.returncode, done.stderr) == (0, "2 gaps: 2 designs\n")
    assert "tool: artifact pdf <- it writes a file ('PDF' in feature)" in done.stdout
    assert check_plan(str(plan)).errors == []
    again = run_cli("design", gaps, "-o", str(plan))
    assert again.returncode == 0
    plan.write_text("edited: by hand\n", encoding="utf-8")
    refused = run_cli("design", gaps, "-o", str(plan))
    assert (refused.returncode, plan.read_text(encoding="utf-8")) == (2, "edited: by hand\n")
    assert "--force" in refused.stderr
    assert run_cli("design", gaps, "-o", str(plan), "--force").returncode == 0
    assert check_plan(str(plan)).errors == []


def test_the_plan_goes_down_a_pipe_and_reasons_to_standard_error(tmp_path: Path) -> None:
    table = "| feature | gap_description | impact | suggested_approach |\n|---|---|---|---|\n| Invoice PDF | none | 1 | Write a PDF |\n"
    done = run_cli("design", "-", "--explain", stdin=table)
    assert done.returncode == 0
    assert read_document(done.stdout.encode(), "p.yaml").value["designs"][0]["extension_name"] == "invoice_pdf"
    assert "artifact pdf" in done.stderr
    assert run_cli("check", "-", stdin=done.stdout).returncode == 0


def test_a_bad_row_makes_the_exit_code_one_and_the_rest_a_plan(tmp_path: Path) -> None:
    table = "| feature | gap_description | impact |\n|---|---|---|\n| Invoice PDF | none | high |\n| Sales deck pptx | none | 2 |\n"
    (tmp_path / "g.md").write_text(table, encoding="utf-8")
    done = run_cli("design", str(tmp_path / "g.md"), "--json")
    value = read_document(done.stdout.encode(), "r.json").value
    assert done.returncode == 1
    assert (value["schema_version"], value["verdict"]) == ("extforge.design.v1", "fail")
    assert [design["extension_name"] for design in value["plan"]["designs"]] == ["sales_deck_pptx"]
    assert [(f["code"], f["where"]["line"]) for f in value["findings"]] == [("gap-row-number", 3)]
    assert value["decisions"][0]["confidence"] == "high"
    assert {"text": "pptx", "field": "feature"} in value["decisions"][0]["reasons"][0]["words"]
    bad = run_cli("design", str(tmp_path / "none.md"))
    assert (bad.returncode, "Traceback" in bad.stderr) == (2, False)


def test_the_example_is_what_the_page_on_design_says() -> None:
    done = run_cli("design", str(ROOT / "examples/gaps.md"), "--explain")
    assert done.returncode == 0
    page = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(gap_1.*?)```", page, re.DOTALL)
    assert shown is not None
    assert shown[1] in done.stderr.replace("    kind: capability", "")
    assert "openjiuwen/harness/rails/filename.py" in done.stderr
    plan = read_document(done.stdout.encode(), "p.yaml").value["designs"]
    assert [design["kind"] for design in plan].count("constraint") == 1
    assert plan[0]["tools"][0]["does"]["artifact"] == {"format": "pptx", "minimum": {"slides": 5}}


# --------------------------------------------------------------------------- the chain


def test_every_wish_becomes_a_tree_that_passes(tmp_path: Path) -> None:
    gaps, _ = labelled(GAPS / "wishes.yaml")
    result = generate(designed(*gaps).checked, str(tmp_path))
    assert (result.applied, len(result.roots)) == (True, len(gaps))
    for root in result.roots:
        report = verify_extension(str(result.target / root))
        assert (report.verdict, report.findings) == (Verdict.PASS, ()), root


@pytest.mark.host
def test_gaps_become_extensions_that_run_without_a_hand_edit(tmp_path: Path) -> None:
    """Nothing passes in silence: a tool works in the real host, or it is named as not written yet."""
    gaps = labelled(GAPS / "held_out.yaml")[0] + labelled(GAPS / "wishes.yaml")[0]
    chosen = {
        "a05",
        "a07",
        "a09",
        "a11",
        "a12",
        "a17",
        "a30",
        "a33",
        "a34",
        "w01",
        "w06",
        "w12",
        "w14",
        "w19",
        "w42",
        "w54",
    }
    found = designed(*[one for one in gaps if one.id in chosen])
    open_tools = {draft.name for draft in found.drafts if draft.decision.doubts and "http" in draft.decision.tools}
    assert open_tools == {"currency_conversion"}
    result = generate(found.checked, str(tmp_path))
    assert result.applied
    run = verify_in_host([str(result.target / root) for root in result.roots], scratch=str(tmp_path / "scratch"))
    verdicts = {
        Path(report.path).name: (report.verdict.value, [f.code for f in report.findings]) for report in run.reports
    }
    assert len(verdicts) == 17
    assert verdicts.pop("currency_conversion") == ("fail", ["tool-not-implemented"])
    assert verdicts.pop("dynamic_injection_date") == ("undetermined", [])
    assert {verdict for verdict, _ in verdicts.values()} == {"pass"}, verdicts


@pytest.mark.parametrize(
    ("says", "found"),
    [
        (
            "call DELETE https://o.acme.io/v1/orders/{order_id}",
            ("DELETE", "https://o.acme.io/v1/orders/{order_id}", {}),
        ),
        (
            "GET https://a.acme.io/r/{base}?date={date}&apikey=abc.",
            ("GET", "https://a.acme.io/r/{base}", {"date": "{date}"}),
        ),
        ("looks rates up at https://api.acme.io/v1/rates", ("GET", "https://api.acme.io/v1/rates", {})),
        ("POST https://t.acme.io/tickets with a JSON body", ("POST", "https://t.acme.io/tickets", {})),
        ("cancels an order through https://t.acme.io/orders", ("", "https://t.acme.io/orders", {})),
        ("通过 https://t.acme.io/orders 删除订单", ("", "https://t.acme.io/orders", {})),
        ("a web API", ("", "", {})),
    ],
)
def test_a_call_is_what_the_gap_says_and_no_verb_is_guessed(says: str, found: tuple[str, str, dict[str, str]]) -> None:
    from extforge.design.details import call

    assert call(says) == found
