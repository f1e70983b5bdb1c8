"""What a plan with only the host's fields means; and that every choice is explained."""

from __future__ import annotations

from typing import Any

import pytest
from support import Plans, design

from extforge.derive import Blueprint


def derived(plans: Plans, name: str, components: list[str], **fields: Any) -> Blueprint:
    plan = plans.check(design(name, components=components, **fields))
    assert not plan.errors, plan.errors
    return plan.blueprints[0]


@pytest.mark.parametrize(
    ("name", "components", "fields", "rails", "tools"),
    [
        pytest.param("filename_policy", ["rail"], {"kind": "constraint"}, ["guard"], [], id="a constraint guards"),
        pytest.param("session_budget", ["rail", "tool"], {}, ["budget"], ["report"], id="budget and report"),
        pytest.param("token_usage_view", ["rail", "tool"], {}, ["budget"], ["report"], id="usage is a budget"),
        pytest.param("call_audit", ["rail", "tool"], {}, ["audit"], ["report"], id="audit and report"),
        pytest.param("change_log_keeper", ["rail", "tool"], {}, ["audit"], ["report"], id="log is an audit"),
        pytest.param("goal_remind_every", ["rail", "tool"], {}, ["reminder"], ["report"], id="reminder and report"),
        pytest.param("invoice_pdf_checked", ["rail", "tool"], {}, ["artifact_gate"], ["artifact pdf"], id="gate and artifact"),
        pytest.param("mystery_helper_x", ["rail", "tool"], {}, ["audit"], ["report"], id="otherwise audit and report"),
        pytest.param("brand_voice", ["rail", "skill"], {}, ["prompt"], [], id="rail and skill: prompt"),
        pytest.param("remind_goal", ["rail"], {}, ["reminder"], [], id="a rail alone that reminds"),
        pytest.param("tone_of_voice", ["rail"], {}, ["prompt"], [], id="a rail alone without period"),
        pytest.param("quarterly_ppt", ["tool"], {}, [], ["artifact pptx"], id="ppt"),
        pytest.param("sales_slides", ["tool", "skill"], {}, [], ["artifact pptx"], id="slides"),
        pytest.param("contract_writer", ["tool"], {}, [], ["artifact docx"], id="contract"),
        pytest.param("finance_excel", ["tool"], {}, [], ["artifact xlsx"], id="excel"),
        pytest.param("order_json_export", ["tool"], {}, [], ["artifact json"], id="json"),
        pytest.param("trend_chart", ["tool"], {}, [], ["artifact png"], id="chart"),
        pytest.param("order_csv_export", ["tool"], {}, [], ["artifact csv"], id="csv"),
        pytest.param("release_notes_md", ["tool", "skill"], {}, [], ["artifact md"], id="md"),
        pytest.param("status_html_page", ["tool"], {}, [], ["artifact html"], id="html"),
        pytest.param("order_flow_diagram", ["tool"], {}, [], ["artifact svg"], id="diagram"),
        pytest.param("logo_svg", ["tool"], {}, [], ["artifact svg"], id="svg"),
        pytest.param("order_flow", ["tool"], {"description": "画出订单流程图"}, [], ["artifact svg"], id="a Chinese diagram"),
        pytest.param("order_csv_checked", ["rail", "tool"], {}, ["artifact_gate"], ["artifact csv"], id="gate and csv"),
        pytest.param("csvkit_runner", ["tool"], {}, [], ["custom"], id="whole words only: csvkit is not csv"),
        pytest.param("jsonata_query", ["tool"], {}, [], ["custom"], id="whole words only: jsonata is not json"),
        pytest.param("deployment_control", ["tool"], {}, [], ["custom"], id="no format: custom"),
        pytest.param("monthly_output", ["tool"], {"description": "生成月度经营汇报幻灯片"}, [], ["artifact pptx"], id="a Chinese word in the description"),
        pytest.param("monthly_pdf", ["tool"], {"description": "from the Excel sheet"}, [], ["artifact pdf"], id="the name decides before the description"),
    ],
)  # fmt: skip
def test_a_seed_only_design_means_what_the_table_says(
    plans: Plans, name: str, components: list[str], fields: dict[str, Any], rails: list[str], tools: list[str]
) -> None:
    blueprint = derived(plans, name, components, **fields)
    assert [rail.does for rail in blueprint.rails] == rails
    assert [f"{tool.does} {tool.format}".strip() for tool in blueprint.tools] == tools


def test_names_follow_the_hosts_convention(plans: Plans) -> None:
    blueprint = derived(plans, "session_budget", ["rail", "tool", "skill"])
    (tool,), (rail,), (skill,) = blueprint.tools, blueprint.rails, blueprint.skills
    assert (tool.name, tool.class_name, tool.module, tool.work) == (
        "session_budget",
        "SessionBudgetTool",
        "tools.session_budget_tool",
        "tools.session_budget",
    )
    assert (rail.class_name, rail.module) == ("SessionBudgetRail", "rails.session_budget_rail")
    assert skill.name == "session_budget"


def test_the_patch_decides_modules_and_classes(plans: Plans) -> None:
    prefix = "openjiuwen.extensions.harness.sales_deck"
    resources = {
        "tools": [
            {"type": "package", "module": f"{prefix}.tools.office.deck_maker", "class": "MakerTool"},
            {"type": "package", "module": f"{prefix}.tools.pdf.handout_tool", "class": "HandoutTool"},
        ]
    }
    specs = [{"class": "HandoutTool", "does": {"artifact": {"format": "pdf"}}}]
    blueprint = derived(plans, "sales_deck", ["tool"], harness_config_patch={"resources": resources}, tools=specs)
    assert [(t.module, t.work, t.class_name, t.format) for t in blueprint.tools] == [
        ("tools.office.deck_maker", "tools.office.deck_maker_work", "MakerTool", "pptx"),
        ("tools.pdf.handout_tool", "tools.pdf.handout", "HandoutTool", "pdf"),
    ]


def test_every_derived_choice_has_a_reason(plans: Plans) -> None:
    blueprint = derived(plans, "session_budget", ["rail", "tool"])
    choices = {choice.subject: choice for choice in blueprint.choices}
    assert "'budget'" in choices["rails[0].does"].reason
    assert choices["tools[0].does"].value == "report"
    assert all(choice.reason for choice in blueprint.choices)


def test_what_the_plan_says_is_not_derived(plans: Plans) -> None:
    tool = {"name": "write_deck", "class": "WriteDeckTool", "description": "Writes it.", "mutation": "mutating_local"}
    tool["does"] = {"artifact": {"format": "pdf"}}  # type: ignore[assignment]
    blueprint = derived(plans, "quarterly_ppt", ["tool"], tools=[tool])
    assert blueprint.choices == []
    assert (blueprint.tools[0].name, blueprint.tools[0].format, blueprint.tools[0].description) == (
        "write_deck",
        "pdf",
        "Writes it.",
    )


def test_planned_assets_are_listed_for_the_user(plans: Plans) -> None:
    blueprint = derived(
        plans,
        "brand_deck",
        ["tool", "skill"],
        file_plan={"assets": ["assets/logo.png"]},
        skills=[{"name": "brand", "assets": ["assets/font.ttf"]}],
    )
    assert blueprint.planned == ["assets/logo.png", "skills/brand/assets/font.ttf"]


def test_a_chinese_design_gets_chinese_descriptions(plans: Plans) -> None:
    blueprint = derived(plans, "finance_excel", ["tool", "skill"], description="生成财务报表")
    assert blueprint.tools[0].description == "写出真实的 XLSX 文件：生成财务报表。先读技能 finance_excel。"
    assert "使用" in blueprint.skills[0].description


def test_a_guard_learns_the_tools_it_watches_and_tools_the_names_it_wants(plans: Plans) -> None:
    guard = design(
        "suffix_guard",
        kind="constraint",
        components=["rail"],
        applies_to=["sales_deck"],
        rails=[{"does": {"guard": {"require": {"stem_suffix": "_v2"}}}}],
    )
    plan = plans.check(design("sales_deck", tools=[{"name": "write_deck"}]), design("invoice_pdf"), guard)
    by_name = {b.name: b for b in plan.blueprints}
    assert by_name["suffix_guard"].rails[0].options["tools"] == ["write_deck"]
    assert (by_name["sales_deck"].suffix, by_name["invoice_pdf"].suffix) == ("_v2", "")
