"""Every rule about a design: what breaks it, what does not, and where the finding points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import Plans, design

from extforge.check import check_plan
from extforge.patterns import example, unsafe_reason

GUARD = design(
    "suffix_guard",
    kind="constraint",
    components=["rail"],
    rails=[{"does": {"guard": {"require": {"stem_suffix": "_v1"}}}}],
)
PREFIX = "openjiuwen.extensions.harness.quarterly_sales_deck"


def patch(**resources: Any) -> dict[str, Any]:
    return {"harness_config_patch": {"resources": resources}}


def resource(module: str = f"{PREFIX}.tools.deck_tool", cls: str = "DeckTool", **more: Any) -> dict[str, Any]:
    return {"type": "package", "module": module, "class": cls, **more}


RAILS = {"components": ["rail"]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"gap_id": ""}, {"plan-gap-id-missing"}, id="no gap"),
        pytest.param({"extension_name": "Quarterly"}, {"plan-name-invalid"}, id="upper case"),
        pytest.param({"extension_name": "quarterly__deck"}, {"plan-name-invalid"}, id="double underscore"),
        pytest.param({"extension_name": "季度汇报"}, {"plan-name-invalid"}, id="not ASCII"),
        pytest.param({"extension_name": "q" * 65}, {"plan-name-invalid"}, id="too long"),
        pytest.param({"extension_name": "nul"}, {"plan-name-reserved"}, id="a device"),
        pytest.param({"extension_name": "com1"}, {"plan-name-reserved"}, id="a port"),
        pytest.param({"extension_name": "runtime_extension"}, {"plan-name-generic", "plan-mutation-missing"}, id="generic"),
        pytest.param({"extension_name": "user_demand_office_extension"}, {"plan-name-generic", "plan-mutation-missing"}, id="generic with more"),
        pytest.param({"extension_name": "pptx"}, {"plan-name-generic"}, id="a bare format"),
        pytest.param({"kind": "rule"}, {"plan-kind-unknown"}, id="unknown kind"),
        pytest.param({"kind": "constraint"}, {"plan-constraint-without-rail"}, id="constraint without rail"),
        pytest.param({"applies_to": ["quarterly_sales_deck"]}, {"plan-applies-to-on-capability", "plan-applies-to-self"}, id="applies_to on a capability"),
        pytest.param({"components": []}, {"plan-components-empty"}, id="no component"),
        pytest.param({"components": ["tool", "tools"]}, {"plan-component-unknown"}, id="unknown component"),
        pytest.param({"components": ["tool", "tool"]}, {"plan-component-duplicate"}, id="component twice"),
        pytest.param({"skills": [{"name": "deck"}]}, {"plan-components-disagree"}, id="skills without the component"),
        pytest.param({"file_plan": {"root": "elsewhere/quarterly_sales_deck"}}, {"plan-file-plan-root"}, id="another root"),
        pytest.param({"file_plan": {"root": "runtime_extensions/s1/quarterly_sales_deck"}}, set(), id="a runtime root"),
        pytest.param({"file_plan": {"root": "runtime_extensions/s1/other"}}, {"plan-file-plan-root"}, id="a runtime root of another name"),
        pytest.param({"file_plan": {"root": "runtime_extensions/../quarterly_sales_deck"}}, {"plan-file-plan-root"}, id="a runtime root that climbs"),
        pytest.param({"file_plan": {"manifest": "x/harness_config.yaml"}}, {"plan-file-plan-manifest"}, id="another manifest"),
        pytest.param({"file_plan": {"assets": "../logo.png"}}, {"plan-file-plan-path"}, id="a planned file outside"),
        pytest.param({"file_plan": {"assets": ["assets/a.png", "/etc/passwd"]}}, {"plan-file-plan-path"}, id="an absolute planned file"),
        pytest.param({"file_plan": {"assets": "assets\\a.png"}}, {"plan-file-plan-path"}, id="backslashes"),
        pytest.param({"file_plan": {"assets": "assets/con.txt"}}, {"plan-file-plan-path"}, id="a device as file"),
        pytest.param({"file_plan": {"more": 3}}, {"plan-file-plan-path"}, id="a number as path"),
        pytest.param({"file_plan": {"more": "manifest.json"}}, {"plan-file-reserved"}, id="a manifest.json"),
        pytest.param({"file_plan": {"more": "prompt_sections/sections.yaml"}}, {"plan-file-reserved"}, id="a sidecar"),
        pytest.param({"file_plan": {"more": "skills/x/README.md"}}, {"plan-file-needless"}, id="a README in a skill"),
        pytest.param({"file_plan": {"more": "assets/logo.png"}}, set(), id="a planned asset"),
        pytest.param(patch(tools=[resource()]), set(), id="a good patch"),
        pytest.param(patch(tools=[resource(module=f"{PREFIX}.tools.office.deep.deck_tool")]), set(), id="a deep module path"),
        pytest.param(patch(tools=[resource(type="entry_point")]), {"plan-patch-type"}, id="an entry point"),
        pytest.param(patch(tools=[resource(module="json")]), {"plan-patch-module"}, id="a foreign module"),
        pytest.param(patch(tools=[resource(module=f"{PREFIX}.tools.../x")]), {"plan-patch-module"}, id="a module that climbs"),
        pytest.param(patch(tools=[resource(module=f"{PREFIX}_more.tools.x")]), {"plan-patch-module"}, id="a module of a neighbour"),
        pytest.param(patch(tools=[resource(cls="deckTool")]), {"plan-patch-class"}, id="a class in camel case"),
        pytest.param(patch(tools=[resource(params={"a": 1})]), {"plan-patch-shape"}, id="an unknown key of a resource"),
        pytest.param(patch(tools=["x"]), {"plan-patch-shape"}, id="a resource that is a text"),
        pytest.param(patch(tools={}), {"plan-patch-shape"}, id="tools as a mapping"),
        pytest.param(patch(tool=[]), {"plan-patch-shape"}, id="an unknown resource"),
        pytest.param(patch(rails=[resource(cls="DeckRail")], tools=[resource()]), {"plan-components-disagree"}, id="a rail that is no component"),
        pytest.param(patch(tools=[]), {"plan-components-disagree"}, id="a component without resource"),
        pytest.param({**patch(tools=[resource()], skills={"dirs": ["../x"]}), "components": ["tool", "skill"]}, {"plan-patch-skills-dir"}, id="a skill folder outside"),
        pytest.param({**patch(tools=[resource()], skills={"dirs": ["skills/"]}), "components": ["tool", "skill"]}, set(), id="the usual skill folder"),
        pytest.param({"skill_source": "community:pptx"}, {"plan-skill-source-without-skill"}, id="a skill source without skill"),
        pytest.param({"skill_source": "pptx", "components": ["skill"]}, {"plan-skill-source-invalid"}, id="a bad skill source"),
        pytest.param({"skill_source": None}, set(), id="a null skill source"),
        pytest.param({"components": ["tool", "skill"], "skills": [{"name": "My Skill"}]}, {"plan-skill-name-invalid"}, id="a skill name with a space"),
        pytest.param({"components": ["tool", "skill"], "skills": [{"name": "assets"}]}, {"plan-skill-name-reserved"}, id="a skill the host passes over"),
        pytest.param({"components": ["tool", "skill"], "skills": [{"references": {"../x.md": "t"}}]}, {"plan-file-plan-path"}, id="a reference outside"),
        pytest.param({"components": ["tool", "skill"], "skills": [{"references": {"README.md": "t"}}]}, {"plan-file-needless"}, id="a README as reference"),
        pytest.param({"components": ["tool", "skill"], "skills": [{"assets": ["/x.png"]}]}, {"plan-file-plan-path"}, id="an absolute asset"),
        pytest.param({"requirements": ["lxml>=5", "attrs"]}, set(), id="good requirements"),
        pytest.param({"requirements": ["evil @ https://x"]}, {"plan-requirement-invalid"}, id="a requirement with an address"),
        pytest.param({"requirements": ["-r other.txt"]}, {"plan-requirement-invalid"}, id="a requirement that is an option"),
        pytest.param({"description": "a\x00b"}, {"plan-text-character"}, id="a NUL in a text"),
        pytest.param({"description": "a\x1b[31mb"}, {"plan-text-character"}, id="an escape sequence in a text"),
        pytest.param({"description": "x" * 60_000}, {"plan-text-too-long"}, id="a very long text"),
        pytest.param({"tools": [{"name": "Make Deck"}]}, {"plan-tool-name-invalid"}, id="a bad tool name"),
        pytest.param({"tools": [{"class": "deck"}]}, {"plan-class-invalid"}, id="a bad tool class"),
        pytest.param({"tools": [{"name": "bash"}]}, {"plan-tool-name-taken"}, id="a tool of the host"),
        pytest.param({"tools": [{"does": {}}]}, {"plan-does-ambiguous"}, id="does nothing"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptx"}, "custom": {}}}]}, {"plan-does-ambiguous"}, id="does two things"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptz"}}}]}, {"plan-format-unknown"}, id="an unknown format"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptx", "minimum": {"pages": 2}}}}]}, {"plan-minimum-unknown"}, id="a minimum nobody counts"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptx", "required_keys": ["a"]}}}]}, {"plan-required-keys"}, id="keys of a deck"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptx", "style": {"accent": "blue"}}}}]}, {"plan-style-accent"}, id="a colour by name"),
        pytest.param({"tools": [{"does": {"report": {}}}]}, {"plan-report-without-rail"}, id="a report without rail"),
        pytest.param({"tools": [{"input_params": {}}]}, {"plan-input-params"}, id="an empty schema"),
        pytest.param({"tools": [{"input_params": {"type": "object", "properties": []}}]}, {"plan-input-params"}, id="properties as a list"),
        pytest.param({"tools": [{"input_params": {"type": "object", "required": ["x"]}}]}, {"plan-input-params"}, id="required without property"),
        pytest.param({"tools": [{"does": {"artifact": {"format": "pptx"}}, "input_params": {"type": "object", "properties": {"colour": {"type": "string"}}}}]}, {"plan-input-params"}, id="an input no deck tool takes"),
        pytest.param({"acceptance": {"other": {}}, "tools": [{"name": "quarterly_sales_deck"}]}, {"plan-acceptance-unknown"}, id="acceptance of another tool"),
        pytest.param({**RAILS, "rails": [{"does": {"budget": {}}}]}, {"plan-budget-empty"}, id="a budget without limit"),
        pytest.param({**RAILS, "rails": [{"does": {"reminder": {"every": 3}}}]}, {"plan-reminder-empty"}, id="a reminder without text"),
        pytest.param({**RAILS, "rails": [{"does": {"prompt": {}}}]}, {"plan-prompt-source"}, id="a prompt without source"),
        pytest.param({**RAILS, "rails": [{"does": {"prompt": {"skill": "other"}}}]}, {"plan-prompt-source"}, id="a prompt of another skill"),
        pytest.param({**RAILS, "rails": [{"class": "SkillUseRail", "does": {"prompt": {"text": "x"}}}]}, {"plan-rail-class-taken"}, id="a rail of the host"),
        pytest.param({**RAILS, "kind": "constraint"}, {"plan-guard-rule-missing"}, id="a guard without rule"),
        pytest.param({**RAILS, "kind": "constraint", "rails": [{"does": {"guard": {"require": {"extension": ["pptx"]}}}}]}, {"plan-guard-extension"}, id="an extension without dot"),
        pytest.param({**RAILS, "kind": "constraint", "rails": [{"does": {"guard": {"require": {"stem_suffix": "/x"}}}}]}, {"plan-guard-suffix"}, id="a suffix with a slash"),
        pytest.param({**RAILS, "kind": "constraint", "rails": [{"does": {"guard": {"require": {"pattern": "(a+)+"}}}}]}, {"plan-pattern-unsafe"}, id="a pattern that hangs"),
        pytest.param({**RAILS, "kind": "constraint", "rails": [{"does": {"guard": {"require": {"pattern": "["}}}}]}, {"plan-pattern-unsafe"}, id="a broken pattern"),
        pytest.param({**RAILS, "kind": "constraint", "rails": [{"does": {"guard": {"on_violation": "rewrite", "require": {"pattern": "a"}}}}]}, {"plan-guard-rewrite"}, id="nothing to rewrite to"),
        pytest.param({"tools": [{"class": "DeckTool"}], **patch(tools=[resource(module=f"{PREFIX}.tools.quarterly_sales_deck_inputs")])}, {"plan-path-collision"}, id="a module that a shared part needs"),
    ],
)  # fmt: skip
def test_a_rule_of_one_design(plans: Plans, fields: dict[str, Any], expected: set[str]) -> None:
    assert set(plans.codes({**design(), **fields})) == expected


def deck(name: str = "quarterly_sales_deck", **fields: Any) -> dict[str, Any]:
    return design(name, **fields)


@pytest.mark.parametrize(
    ("designs", "expected"),
    [
        pytest.param([deck(depends_on=["suffix_guard"]), GUARD], [], id="a good dependency"),
        pytest.param([deck(depends_on=["sufix_guard"]), GUARD], ["plan-depends-on-unknown"], id="an unknown dependency"),
        pytest.param([deck(depends_on=["suffix_guard", "suffix_guard"]), GUARD], ["plan-depends-on-duplicate"], id="a dependency twice"),
        pytest.param([deck(depends_on=["quarterly_sales_deck"])], ["plan-depends-on-self"], id="a dependency on itself"),
        pytest.param([deck(depends_on=["contract_word"]), deck("contract_word")], ["plan-depends-on-capability"], id="a dependency on a capability"),
        pytest.param([{**GUARD, "applies_to": ["nobody"]}], ["plan-applies-to-unknown"], id="applies to nobody"),
        pytest.param([{**GUARD, "applies_to": ["contract_word"]}, deck("contract_word")], [], id="applies to a capability"),
        pytest.param([deck(), {**deck(), "gap_id": "other"}], ["plan-name-duplicate"], id="a name twice"),
        pytest.param([deck(gap_id="g"), deck("contract_word", gap_id="g")], ["plan-gap-id-duplicate"], id="a gap twice"),
        pytest.param([deck(tools=[{"name": "write_it"}]), deck("contract_word", tools=[{"name": "write_it"}])], ["plan-tool-duplicate"], id="a tool name twice"),
        pytest.param([deck(components=["rail"], rails=[{"class": "OneRail", "does": "audit"}, {"class": "OneRail", "does": "custom"}])], ["plan-rail-class-duplicate"], id="a rail class twice in one design"),
        pytest.param([deck(components=["skill"], skills=[{"name": "style"}]), deck("contract_word", components=["skill"], skills=[{"name": "style"}])], ["plan-skill-duplicate"], id="a skill twice"),
    ],
)  # fmt: skip
def test_a_rule_between_designs(plans: Plans, designs: list[dict[str, Any]], expected: list[str]) -> None:
    lint = {
        "plan-skill-without-situation",
        "plan-rail-without-reason",
        "plan-state-without-tool",
        "plan-path-collision",
    }
    assert [code for code in plans.codes(*designs) if code not in lint] == expected


def test_a_circle_is_shown_in_order(plans: Plans) -> None:
    rail = {"kind": "constraint", "components": ["rail"]}
    found = plans.check(
        design("a_guard", depends_on=["b_guard"], **rail),
        design("b_guard", depends_on=["c_guard"], **rail),
        design("c_guard", depends_on=["a_guard"], **rail),
    ).errors
    assert [f.code for f in found] == ["plan-depends-on-cycle"]
    assert "a_guard -> b_guard -> c_guard -> a_guard" in found[0].message


def test_two_tools_in_one_module_are_refused_where_they_stand(plans: Plans) -> None:
    # The first tool has the extension's name for a module, whatever it is called itself.
    (found,) = plans.check(deck(tools=[{"name": "write_deck"}, {"name": "quarterly_sales_deck"}])).errors
    assert (found.code, found.where.json_path) == ("plan-path-collision", "$[0].tools[1]")
    assert "by write_deck and by quarterly_sales_deck" in found.message


def test_a_tool_that_only_reads_needs_no_artifact_contract(plans: Plans) -> None:
    tool = {"name": "read_pdf", "does": "custom"}
    assert plans.codes(deck(tools=[{**tool, "mutation": "mutating_local"}])) == ["plan-artifact-without-contract"]
    assert plans.codes(deck(tools=[{**tool, "mutation": "safe_read"}])) == []


def test_findings_point_at_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "- gap_id: g1\n  extension_name: deck_of_quarter\n  components: [tool]\n  depends_on:\n    - nobody\n"
    )
    (finding,) = check_plan(str(path)).errors
    assert (finding.where.path, finding.where.line, finding.where.column) == (str(path), 5, 7)
    assert finding.where.json_path == "$[0].depends_on[0]"


def test_all_problems_of_all_designs_come_at_once(plans: Plans) -> None:
    found = plans.codes(
        design("Bad", kind="x"),
        {"extension_name": "second_deck", "components": "tool"},
        design("third_deck", depends_on=["x"], skill_source="y"),
    )
    assert set(found) >= {
        "plan-name-invalid",
        "plan-kind-unknown",
        "plan-components-not-a-list",
        "plan-depends-on-unknown",
        "plan-skill-source-invalid",
    }


# --------------------------------------------------------------------------- content


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"extension_name": "pptx_outline_guide", "components": ["skill"], "description": "Generate the quarterly PPTX deck"}, "plan-file-without-tool", id="a file without tool"),
        pytest.param({"extension_name": "redis_choice", "components": ["tool", "skill"], "description": "When to use Redis: a guide"}, "plan-knowledge-with-tool", id="knowledge with a tool"),
        pytest.param({"extension_name": "suffix_rule", "kind": "constraint", "components": ["rail", "skill"]}, "plan-constraint-not-alone", id="a constraint with a skill"),
        pytest.param({"extension_name": "corporate_colours", "components": ["rail", "skill"], "description": "Our colours"}, "plan-rail-without-reason", id="a rail without reason"),
        pytest.param({"extension_name": "call_audit_log", "components": ["rail"]}, "plan-state-without-tool", id="a record nobody reads"),
        pytest.param({"extension_name": "tone_prompt", "components": ["rail", "tool"], "rails": [{"does": {"prompt": {"text": "Be brief."}}}]}, "plan-tool-without-reason", id="a tool beside a prompt"),
        pytest.param({"extension_name": "deck_guarded", "components": ["rail", "tool"], "rails": [{"does": "guard"}]}, "plan-constraint-in-capability", id="a guard in a capability"),
        pytest.param({"extension_name": "invoice_pdf", "tools": [{"does": "custom"}], "components": ["tool"], "description": "Write the invoice as PDF"}, "plan-artifact-without-contract", id="a file tool without contract"),
        pytest.param({"extension_name": "invoice_pdf_writer", "tools": [{"does": {"artifact": {"format": "json"}}}]}, "plan-intermediate-format", id="JSON instead of PDF"),
        pytest.param({"extension_name": "office_of_all", "description": "pptx and docx and xlsx and pdf"}, "plan-several-abilities", id="several abilities"),
        pytest.param({"extension_name": "brand_style", "components": ["skill"], "skills": [{"description": "Our brand style."}]}, "plan-skill-without-situation", id="a skill without situation"),
    ],
)  # fmt: skip
def test_a_content_rule_warns_and_fails_with_strict_only(plans: Plans, fields: dict[str, Any], expected: str) -> None:
    plan = plans.check({**design(), **fields})
    assert expected in [f.code for f in plan.findings]
    assert not plan.errors


def test_the_demo_plan_breaks_no_content_rule() -> None:
    assert check_plan(str(Path(__file__).parents[1] / "examples" / "demo.plan.yaml")).findings == []


# --------------------------------------------------------------------------- patterns


@pytest.mark.parametrize(
    "pattern",
    [r"[A-Z]{2}-\d+_v\d+\.pptx", r"report_(draft|final)\.pdf", r"\w+", r"(?:ab)?c", r"a{3}", r"[^/]+\.md", r".+"],
)
def test_a_plain_pattern_is_accepted_and_has_an_example(pattern: str) -> None:
    assert unsafe_reason(pattern) is None
    assert example(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+", r"(ab|ba)*c", r"(.*)*", r"(\w+\s?)+$", r"(a)\1", r".*a.*b.*c.*", "(", "x" * 600]
)
def test_a_pattern_that_could_hang_is_refused(pattern: str) -> None:
    assert unsafe_reason(pattern)
