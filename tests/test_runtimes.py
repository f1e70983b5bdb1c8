"""Where extensions work: the catalog, the exposure rules, the matrix, the compiler, the adapters, the bundle."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, Plans, design, example, run_cli
from trees import write_tree

from extforge.capabilities import catalog_from_plan
from extforge.check import load_plan
from extforge.generate import Options, generate
from extforge_harness.errors import BundleError, CatalogError, CompileError
from extforge_harness.gates import MutationLevel
from extforge_harness.runtimes.adapters import AdapterInput, adapt, server_name
from extforge_harness.runtimes.bundle import Entry, build_bundle
from extforge_harness.runtimes.catalog import (
    Capability,
    Catalog,
    Exposure,
    ExtensionFacts,
    RailFacts,
    ServerFacts,
    SkillFacts,
    Status,
    ToolFacts,
    build_catalog,
    names_in,
    trust_of,
)
from extforge_harness.runtimes.compiler import CompileInput, Hints, Note, compile_context
from extforge_harness.runtimes.contracts import BUILT_IN, ArtifactContract, Malformed, call, check_round_trip, show
from extforge_harness.runtimes.descriptors import KINDS, PROVIDERS, Provider, Registry, load_registry, read_runtime
from extforge_harness.runtimes.matrix import CellStatus, Matrix, build_matrix
from extforge_harness.runtimes.page import render_page
from extforge_harness.runtimes.showing import show_matrix
from extforge_harness.runtimes.trees import catalog
from extforge_harness.runtimes.trial import SAMPLE, broken_rules
from extforge_verifiers.errors import DocumentError

REGISTRY = Registry(load_registry([]).runtimes, {})
OTHERS = ("claudecode", "codex", "dsh")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo plan, generated with MCP servers."""
    folder = tmp_path_factory.mktemp("demo")
    generate(load_plan(str(ROOT / "examples/demo.plan.yaml")), str(folder), Options(mcp=True))
    return folder


def build(*extensions: ExtensionFacts) -> Catalog:
    return build_catalog(extensions, REGISTRY)


def statuses(catalog: Catalog, capability: str) -> dict[str, str]:
    return {runtime: exposure.status.value for runtime, exposure in catalog[capability].exposure.items()}


TOOL = ToolFacts("make_deck", "MakeDeckTool", "Make a deck.", "mutating_local", ("pptx",))
GUARD = ExtensionFacts("name_guard", "constraint", applies_to=("deck",), rails=(RailFacts("NameGuardRail", "guard"),))


# --------------------------------------------------------------------------- the catalog


@pytest.mark.parametrize(("name", "mcp"), [("demo", True), ("everything", True), ("seed_only", False)])
def test_the_catalog_of_a_plan_is_that_of_its_trees(name: str, mcp: bool, tmp_path: Path) -> None:
    plan = str(ROOT / "examples" / f"{name}.plan.yaml")
    generate(load_plan(plan), str(tmp_path), Options(mcp=mcp))
    assert catalog_from_plan(load_plan(plan), REGISTRY, mcp=mcp) == catalog([str(tmp_path)], REGISTRY)


def test_every_component_is_in_the_catalog_with_its_text_and_its_source(demo: Path) -> None:
    found = catalog([str(demo)], REGISTRY)
    assert [c.id for c in found.capabilities] == [
        "excel_financial_report/tool:excel_financial_report",
        "excel_financial_report/skill:excel_financial_report",
        "incident_brief_pdf/tool:incident_brief_pdf",
        "quarterly_sales_deck/tool:quarterly_sales_deck",
        "quarterly_sales_deck/skill:quarterly_sales_deck",
        "redis_or_memory_cache/skill:redis_or_memory_cache",
        "session_tool_budget/rail:SessionToolBudgetRail",
        "session_tool_budget/tool:session_tool_budget",
        "versioned_filename_guard/rail:VersionedFilenameGuardRail",
    ]
    deck = found["quarterly_sales_deck/tool:quarterly_sales_deck"]
    assert deck.fragment.startswith("生成季度经营汇报 PPTX")
    assert deck.artifacts == ("pptx",)
    assert deck.levels == {"quarterly_sales_deck": MutationLevel.MUTATING_LOCAL}
    home = demo / "openjiuwen/extensions/harness"
    for capability in found.capabilities:
        if capability.source:
            text = (home / capability.source).read_text(encoding="utf-8")
            assert capability.fragment.partition("\n")[0] in text
    assert found.levels["session_tool_budget"] is MutationLevel.SAFE_READ
    assert [t for t in (*found.levels, "unknown") if found.skip_approval(t)] == ["session_tool_budget"]


def test_a_workflow_beside_a_skill_says_what_it_uses(tmp_path: Path) -> None:
    tree = write_tree(tmp_path)
    steps = "when-to-use: Before a note is written.\nallowed-tools: [write_note, read_file]\n"
    (tree / "skills/notes/skill.yaml").write_text(steps)
    skill = catalog([str(tree)], REGISTRY)["audit_note/skill:notes"]
    assert [r.target for r in skill.requires] == ["audit_note/tool:write_note"]
    assert skill.fragment.endswith("\nBefore a note is written.")
    (tree / "skills/notes/skill.yaml").write_text("steps: [")
    with pytest.raises(CatalogError) as caught:
        catalog([str(tree)], REGISTRY)
    assert caught.value.findings[0].code.startswith("document-")


def test_a_foreign_tree_is_read_too(tmp_path: Path) -> None:
    found = catalog([str(write_tree(tmp_path))], REGISTRY)
    assert [c.id for c in found.capabilities] == [
        "audit_note/rail:CountRail", "audit_note/tool:write_note", "audit_note/skill:notes",
    ]  # fmt: skip
    tool = found["audit_note/tool:write_note"]
    assert (tool.fragment, tool.levels) == ("Write a note.", {"write_note": MutationLevel.UNCLASSIFIED})
    assert tool.trust == "requires_approval"


def test_a_plugin_with_mcp_servers_is_read_without_their_secrets(tmp_path: Path) -> None:
    root = tmp_path / "box"
    root.mkdir()
    servers = [{"server_name": "notes", "command": "x", "env": {"KEY": "s3cret-value"}}]
    (root / "manifest.json").write_text(json.dumps({"package_type": "plugin", "id": "box", "mcps": servers}))
    found = catalog([str(root)], REGISTRY)
    assert statuses(found, "box/mcp:notes") == dict.fromkeys(REGISTRY.ids, "live")
    assert "s3cret-value" not in repr(found)
    (root / "mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {}}}))
    (root / "manifest.json").write_text(
        json.dumps({"package_type": "plugin", "id": "box", "mcps": {"file": "mcp.json"}})
    )
    assert [c.id for c in catalog([str(root)], REGISTRY).capabilities] == ["box/mcp:a", "box/mcp:b"]


def test_a_constraint_beside_the_tree_comes_along(demo: Path) -> None:
    tree = demo / "openjiuwen/extensions/harness/quarterly_sales_deck"
    names = [e.name for e in catalog([str(tree)], REGISTRY).extensions]
    assert names == ["quarterly_sales_deck", "versioned_filename_guard"]


def test_everything_that_keeps_extensions_from_a_catalog_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        build(
            ExtensionFacts("a", tools=(TOOL, TOOL)),
            ExtensionFacts("b", tools=(TOOL,), depends_on=("gaurd",)),
            ExtensionFacts("b"),
            ExtensionFacts("guard", "constraint"),
        )
    assert sorted({f.code for f in caught.value.findings}) == [
        "runtime-constraint-unknown", "runtime-duplicate-id", "runtime-extension-twice", "runtime-tool-twice",
    ]  # fmt: skip
    assert "did you mean 'guard'?" in [f.fix for f in caught.value.findings]
    tree = write_tree(tmp_path)
    (tree / "tools/note_tool.py").unlink()
    with pytest.raises(CatalogError, match="no such file"):
        catalog([str(tree)], REGISTRY)
    with pytest.raises(CatalogError, match="no extension here"):
        catalog([str(tmp_path / "acceptance")], REGISTRY)


def test_a_tool_whose_name_is_computed_is_not_called_live(tmp_path: Path) -> None:
    tree = write_tree(tmp_path)
    path = tree / "tools/note_tool.py"
    path.write_text(path.read_text().replace('name="write_note"', 'name="_".join(["write", "note"])'))
    found = catalog([str(tree)], REGISTRY)
    assert statuses(found, "audit_note/tool:NoteTool")["native"] == "deferred"
    assert found["audit_note/tool:NoteTool"].tool_names == ()


def test_an_unwritten_body_is_deferred_until_somebody_writes_it(plans: Plans) -> None:
    tree = plans.tree(design("deploy_control"))
    assert set(statuses(catalog([str(tree)], REGISTRY), "deploy_control/tool:deploy_control").values()) == {"deferred"}
    work = tree / "tools/deploy_control.py"
    body = 'return {"success": False, "error": "not implemented"}'
    assert body in work.read_text()
    work.write_text(work.read_text().replace(body, 'return {"success": True}'))
    assert statuses(catalog([str(tree)], REGISTRY), "deploy_control/tool:deploy_control")["native"] == "live"


@pytest.mark.parametrize(
    ("levels", "trust"),
    [
        ([], None),
        (["safe_read", "safe_read"], "auto_safe"),
        (["side_effect"], "side_effect"),
        (["mutating_local", "mutating_external"], "requires_approval"),
        (["unclassified"], "requires_approval"),
        (["safe_read", "unclassified"], "mixed"),
        (["side_effect", "safe_read"], "mixed"),
    ],
    ids=str,
)
def test_trust_is_what_the_tools_may_change(levels: list[str], trust: str | None) -> None:
    assert trust_of([MutationLevel(level) for level in levels]) == trust


def test_names_are_found_as_whole_words_only() -> None:
    assert names_in("Call `deck` and then make-deck or deck_2.", ["deck", "make", "deck_2"]) == ["deck", "deck_2"]


def test_levels_are_declared_and_never_guessed(plans: Plans) -> None:
    checked = plans.check(design("read_only_list", tools=[{"does": "custom"}]))
    assert "plan-mutation-missing" in [f.code for f in checked.findings]
    assert catalog_from_plan(checked, REGISTRY).levels["read_only_list"] is MutationLevel.UNCLASSIFIED


# --------------------------------------------------------------------------- exposure


def test_a_python_tool_is_live_on_the_hosts_own_runtimes_only() -> None:
    found = build(ExtensionFacts("deck", tools=(TOOL,)))
    assert statuses(found, "deck/tool:make_deck") == {
        "native": "live", "native_v2": "live", "claudecode": "deferred", "codex": "deferred", "dsh": "deferred",
    }  # fmt: skip


def test_an_mcp_server_makes_it_live_everywhere_and_says_so() -> None:
    found = build(ExtensionFacts("deck", tools=(TOOL,), served=("make_deck",)))
    for runtime in OTHERS:
        assert found["deck/tool:make_deck"].exposure[runtime] == Exposure(Status.LIVE, "mcp")
    assert found["deck/tool:make_deck"].exposure["native"].via == "plugin"


@pytest.mark.parametrize("how", ["depends_on", "applies_to", "every tool"])
def test_a_constraint_that_cannot_be_enforced_takes_the_tool_away(how: str) -> None:
    plain = ExtensionFacts("other")
    guard = GUARD if how != "every tool" else dataclasses.replace(GUARD, applies_to=())
    guard = dataclasses.replace(guard, applies_to=("other",)) if how == "depends_on" else guard
    deck = ExtensionFacts(
        "deck",
        depends_on=("name_guard",) if how == "depends_on" else (),
        tools=(TOOL,),
        served=("make_deck",),
    )
    found = build(deck, guard, plain)
    for runtime in OTHERS:
        exposure = found["deck/tool:make_deck"].exposure[runtime]
        assert exposure.status is Status.DEFERRED
        assert exposure.reason == f"constraint name_guard cannot be enforced on {runtime}"
    assert statuses(found, "deck/tool:make_deck")["native"] == "live"
    with_guard = build(dataclasses.replace(deck, guards=("name_guard",)), guard, plain)
    assert set(statuses(with_guard, "deck/tool:make_deck").values()) == {"live"}
    reason = with_guard["name_guard/rail:NameGuardRail"].exposure["codex"].reason
    assert reason.endswith("its rule runs inside the MCP server of deck")


def test_a_skill_without_its_tool_works_partly_and_names_it() -> None:
    skill = SkillFacts("style", "How decks look.", body="Call `make_deck` once.")
    found = build(ExtensionFacts("deck", tools=(TOOL,), skills=(skill,)))
    exposure = found["deck/skill:style"].exposure["codex"]
    assert (exposure.status, exposure.reason) == (
        Status.PARTIAL,
        "it uses the tool make_deck, which is deferred on codex",
    )
    assert found["deck/skill:style"].exposure["native"].status is Status.LIVE


def test_a_workflow_uses_tools_of_other_extensions() -> None:
    skill = SkillFacts("style", "How decks look.", allowed=("make_deck", "read_file"))
    found = build(ExtensionFacts("deck", tools=(TOOL,)), ExtensionFacts("house", skills=(skill,)))
    assert [r.target for r in found["house/skill:style"].requires] == ["deck/tool:make_deck"]
    assert found["house/skill:style"].exposure["dsh"].status is Status.PARTIAL


@pytest.mark.parametrize(
    ("does", "status"),
    [
        ("guard", "deferred"),
        ("budget", "deferred"),
        ("custom", "deferred"),
        ("audit", "partial"),
        ("reminder", "partial"),
    ],
)
def test_a_tool_without_the_rails_of_its_extension(does: str, status: str) -> None:
    deck = ExtensionFacts("deck", tools=(TOOL,), rails=(RailFacts("DeckRail", does),), served=("make_deck",))
    assert statuses(build(deck), "deck/tool:make_deck")["codex"] == status
    own = build(dataclasses.replace(deck, guards=("deck",)))
    assert statuses(own, "deck/tool:make_deck")["codex"] == ("live" if does == "guard" else status)


def test_constraints_that_depend_on_each_other_in_a_circle_do_not_hang() -> None:
    rail = (RailFacts("R", "guard"),)
    a = ExtensionFacts("a", "constraint", depends_on=("b",), rails=rail)
    b = ExtensionFacts("b", "constraint", depends_on=("a",), rails=(RailFacts("S", "guard"),))
    assert statuses(build(a, b), "a/rail:R")["native"] == "deferred"


def test_an_extension_is_as_good_as_its_worst_component() -> None:
    found = build(ExtensionFacts("deck", tools=(TOOL,), skills=(SkillFacts("style", "How."),)))
    assert (found.status_of("deck", "native"), found.status_of("deck", "dsh")) == (Status.LIVE, Status.DEFERRED)


def test_live_never_has_a_but() -> None:
    with pytest.raises(ValueError, match="reason"):
        Exposure(Status.LIVE, "plugin", "but slowly")
    with pytest.raises(ValueError, match="reason"):
        Exposure(Status.DEFERRED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id: hermes", "id: Hermes-2"),
        ("  rail: {status: unsupported, reason: No hooks., fact: verified}\n", ""),
        ("reason: No hooks., ", ""),
        ("status: unsupported", "status: maybe"),
        ("name: Hermes", "name: Hermes\ncolour: red"),
        ("openai_chat", "morse"),
        ("{status: live, via: dir", "{status: live, reason: slowly, via: dir"),
    ],
    ids=["id", "missing mount", "no reason", "status", "unknown key", "wire", "live, but"],
)
def test_a_descriptor_that_is_wrong_does_not_load(tmp_path: Path, before: str, after: str) -> None:
    text = (
        "id: hermes\nname: Hermes\nsdk: null\nwires: {openai_chat: verified}\nmounts:\n"
        "  skill: {status: live, via: dir, fact: verified}\n  mcp: {status: live, via: servers, fact: verified}\n"
        "  tool: {status: deferred, reason: Later., fact: verified}\n"
        "  rail: {status: unsupported, reason: No hooks., fact: verified}\n"
    )
    path = tmp_path / "runtime.yaml"
    path.write_text(text)
    assert read_runtime(path).id == "hermes"
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(DocumentError):
        read_runtime(path)


# --------------------------------------------------------------------------- the matrix


def test_the_matrix_of_the_demo_plan_is_right_in_every_cell(demo: Path) -> None:
    matrix = build_matrix(catalog([str(demo)], REGISTRY))
    everywhere = dict.fromkeys(REGISTRY.ids, "executable")
    native_only = {**everywhere, **dict.fromkeys(OTHERS, "perception_only")}
    wanted = {
        "excel_financial_report/tool:excel_financial_report": everywhere,
        "excel_financial_report/skill:excel_financial_report": everywhere,
        "incident_brief_pdf/tool:incident_brief_pdf": everywhere,
        "quarterly_sales_deck/tool:quarterly_sales_deck": everywhere,
        "quarterly_sales_deck/skill:quarterly_sales_deck": everywhere,
        "redis_or_memory_cache/skill:redis_or_memory_cache": everywhere,
        "session_tool_budget/rail:SessionToolBudgetRail": native_only,
        "session_tool_budget/tool:session_tool_budget": native_only,
        "versioned_filename_guard/rail:VersionedFilenameGuardRail": native_only,
    }
    assert {c: {x.runtime: x.status.value for x in matrix.row(c)} for c in wanted} == wanted
    assert len(matrix.cells) == len(wanted) * len(REGISTRY.ids)
    assert not any(cell.partial or cell.inferred for cell in matrix.cells)
    for cell in matrix.cells:
        tool = cell.capability.partition("/tool:")[2]
        works = cell.status is CellStatus.EXECUTABLE
        assert cell.tool_names == ((tool,) if tool and works else ())
        assert cell.suggested_runtime == (None if works else "native")
        assert cell.proved == ("not proved here" if works else None)
        levels = {"session_tool_budget": "auto_safe"}
        assert cell.trust == (levels.get(tool, "requires_approval") if tool and works else None)
        if tool and works:
            assert cell.via == ("plugin" if cell.runtime.startswith("native") else "mcp")


def test_without_mcp_servers_the_demo_plan_says_why_not() -> None:
    matrix = build_matrix(catalog_from_plan(load_plan(str(ROOT / "examples/demo.plan.yaml")), REGISTRY))
    deck = matrix.cell("quarterly_sales_deck/tool:quarterly_sales_deck", "claudecode")
    assert (deck.status, deck.suggested_runtime) == (CellStatus.PERCEPTION_ONLY, "native")
    assert "serve the tool over MCP" in deck.line
    skill = matrix.cell("quarterly_sales_deck/skill:quarterly_sales_deck", "codex")
    assert skill.line == "constraint versioned_filename_guard cannot be enforced on codex"
    half = matrix.cell("excel_financial_report/skill:excel_financial_report", "dsh")
    assert (half.status, half.partial) == (CellStatus.EXECUTABLE, True)
    assert matrix.cell("redis_or_memory_cache/skill:redis_or_memory_cache", "dsh").partial is False
    report = matrix.cell("session_tool_budget/tool:session_tool_budget", "codex")
    assert report.line == "it reports what the rail SessionToolBudgetRail records, and no rail runs there"


facts = st.builds(
    ExtensionFacts,
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["capability", "constraint"]),
    st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(["t1", "t2"]), max_size=2, unique=True).map(
        lambda names: tuple(ToolFacts(n, n, f"Do {n}.", "safe_read") for n in names)
    ),
    st.lists(st.sampled_from([RailFacts("R", "guard"), RailFacts("S", "audit")]), max_size=2, unique=True).map(tuple),
    st.lists(st.builds(SkillFacts, st.sampled_from(["k", "l"]), st.just("How."), body=st.sampled_from(["", "t1"])), max_size=1).map(tuple),
    st.lists(st.just(ServerFacts("m")), max_size=1).map(tuple),
    st.sampled_from([(), ("t1",), ("t1", "t2")]),
    st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(tuple),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(facts, max_size=4, unique_by=lambda e: e.name),
    st.sampled_from([None, *PROVIDERS.values(), Provider(id="dumb", wire="openai_chat", tools=False)]),
    st.booleans(),
)
def test_whatever_the_extensions_every_cell_keeps_its_promises(
    extensions: list[ExtensionFacts], provider: Provider | None, probe: bool
) -> None:
    names = {e.name for e in extensions}
    mine = [
        dataclasses.replace(
            e,
            depends_on=tuple(n for n in e.depends_on if n in names),
            tools=tuple(dataclasses.replace(t, name=f"{e.name}_{t.name}") for t in e.tools),
            served=tuple(f"{e.name}_{t}" for t in e.served),
        )
        for e in extensions
    ]
    found = build_catalog(mine, REGISTRY)
    matrix = build_matrix(found, provider=provider, probe=probe)
    assert len(matrix.cells) == len(found.capabilities) * len(matrix.runtimes)
    for cell in matrix.cells:
        capability = found[cell.capability]
        exposure = capability.exposure[cell.runtime]
        works = cell.status is CellStatus.EXECUTABLE
        assert cell.line
        assert works or not (cell.tool_names or cell.trust or cell.proved)
        assert not works or (cell.tool_names, cell.trust) == (capability.tool_names, capability.trust)
        assert not works or exposure.status in (Status.LIVE, Status.PARTIAL)  # nothing promotes
        assert (exposure.status is Status.LIVE) == (exposure.reason == "")
        if cell.status is CellStatus.PERCEPTION_ONLY:
            assert cell.suggested_runtime is not None
            assert matrix.cell(cell.capability, cell.suggested_runtime).status is CellStatus.EXECUTABLE
    # The reference runtime is never less complete than another.
    usable = (Status.LIVE, Status.PARTIAL)
    for capability in found.capabilities:
        if any(e.status in usable for e in capability.exposure.values()):
            assert capability.exposure["native"].status in usable
    show_matrix(matrix, width=70)
    assert render_page(matrix).count('<td class="cell') == len(matrix.cells)


def test_a_provider_only_takes_away(demo: Path) -> None:
    found = catalog([str(demo)], REGISTRY)
    matrix = build_matrix(found, provider=PROVIDERS["anthropic"])
    cell = matrix.cell("incident_brief_pdf/tool:incident_brief_pdf", "codex")
    assert cell.status is CellStatus.UNAVAILABLE
    assert cell.line == "codex speaks openai_responses, account, and anthropic speaks anthropic_messages"
    dumb = build_matrix(found, provider=Provider(id="dumb", wire="openai_chat", tools=False))
    tool = dumb.cell("incident_brief_pdf/tool:incident_brief_pdf", "native")
    assert (tool.status, tool.line) == (CellStatus.UNAVAILABLE, "the model behind dumb calls no tools")
    assert dumb.cell("redis_or_memory_cache/skill:redis_or_memory_cache", "native").status is CellStatus.EXECUTABLE


def test_a_probe_says_unknown_where_the_product_is_not_installed(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    matrix = build_matrix(catalog([str(demo)], REGISTRY), probe=True)
    assert {cell.status for cell in matrix.cells} == {CellStatus.UNDETERMINED}
    assert "claude-agent-sdk is not installed here" in matrix.cell(matrix.capabilities[0].id, "claudecode").line


def matrix_of(name: str = "deck") -> Matrix:
    extension = ExtensionFacts(name, tools=(TOOL,), skills=(SkillFacts("style", "How.", body="make_deck"),))
    return build_matrix(build_catalog([extension], REGISTRY))


def test_the_terminal_shows_marks_reasons_and_fits(demo: Path) -> None:
    text = show_matrix(matrix_of(), width=200)
    assert "○ elsewhere → native [1]" in text
    assert "◐ partly" in text
    assert "[1] elsewhere → native: Python tools are DeepAgent-only here" in text
    for width in (60, 80, 100, 160):
        narrow = show_matrix(build_matrix(catalog([str(demo)], REGISTRY)), width=width).splitlines()
        table = narrow[: narrow.index("")]
        assert max(len(line) for line in table) <= max(width, 78)
    plain = show_matrix(matrix_of(), width=200, unicode=False)
    assert plain.isascii()
    assert "o elsewhere -> native [1]" in plain
    assert "\x1b[36m" in show_matrix(matrix_of(), colour=True)


def test_chinese_names_keep_the_columns_straight() -> None:
    from rich.cells import cell_len

    tool = dataclasses.replace(TOOL, name="季度汇报")
    rows = show_matrix(
        build_matrix(
            build_catalog([ExtensionFacts("deck", tools=(tool,)), ExtensionFacts("x", tools=(TOOL,))], REGISTRY)
        ),
        width=200,
    )
    starts = {
        cell_len(line[: line.index("✓")]) for line in rows.splitlines() if "✓" in line and "works   " not in line[:10]
    }
    assert len(starts) == 1


HOSTILE = "</td><script>alert(1)</script>\x1b[2J\n| x"


def test_hostile_names_stay_text() -> None:
    tool = dataclasses.replace(TOOL, name=HOSTILE)
    matrix = build_matrix(build_catalog([ExtensionFacts(HOSTILE, tools=(tool,))], REGISTRY))
    page = render_page(matrix, HOSTILE)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    assert "\x1b" not in show_matrix(matrix)
    assert json.loads(json.dumps(matrix.data()))["capabilities"][0]["extension"] == HOSTILE


def test_the_page_is_self_contained_and_shows_reasons_without_a_mouse() -> None:
    page = render_page(matrix_of())
    assert "default-src 'none'" in page
    assert not [word for word in ("http:", "https:", "src=", "href=", "<script") if word in page]
    assert page.count('tabindex="0"') == page.count('role="tooltip"') == 10
    assert ".cell:focus .why" in page
    assert "<summary>Why not everywhere</summary>" in page
    assert "asks first" in page


def test_the_table_of_text_exists_once() -> None:
    """Nobody writes down what works where: outside the registry no module names a runtime beside a status."""
    for path in (ROOT / "harness/extforge_harness/runtimes").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name not in ("adapters.py", "scanner.py", "proving.py", "matrix.py"):
            assert not [name for name in ("claudecode", "codex") if f'"{name}"' in text], path


# --------------------------------------------------------------------------- the compiler


def compiled(runtime: str = "native", **options: Any) -> Any:
    return compile_context(CompileInput(runtime, build_catalog(SAMPLE, REGISTRY), **options))


def test_equal_input_gives_equal_text_in_every_process() -> None:
    code = (
        "import hashlib; from extforge_harness.runtimes.compiler import *; from extforge_harness.runtimes.trial import SAMPLE;"
        "from extforge_harness.runtimes.catalog import build_catalog;"
        "from extforge_harness.runtimes.descriptors import load_registry;"
        "print(hashlib.sha256(repr(compile_context(CompileInput('codex', build_catalog(SAMPLE, load_registry([]))))).encode()).hexdigest())"
    )
    here = hashlib.sha256(repr(compiled("codex")).encode()).hexdigest()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )
        assert done.stdout.strip() == here


def test_every_capability_is_decided_on_and_the_text_is_in_order() -> None:
    context = compiled("claudecode")
    decisions = {d.capability: (d.included, d.reason) for d in context.decisions}
    assert len(decisions) == 5
    assert decisions["sample_notes/rail:NoteAuditRail"] == (False, "Claude Code offers openJiuwen no hook surface")
    assert decisions["sample_search/tool:search_notes"] == (True, "live through mcp")
    assert [t.name for t in context.tools] == ["search_notes"]
    native = compiled("native")
    assert native.system_text.startswith("A JSON file exists only when")
    assert native.system_text.index("Write a note") < native.system_text.index("How notes are written")
    assert compiled("native", enabled=frozenset()).system_text == ""


def test_notes_are_returned_and_dropped_from_the_last_on() -> None:
    notes = tuple(Note(str(n), "memory", "x" * 400) for n in range(3))
    context = compiled(notes=notes, system_max=260)
    assert [n.id for n in context.note_fragments] == ["note.0", "note.1"]
    assert context.dropped == ("note.2",)
    assert "xxx" not in context.system_text
    assert context.budget["notes"] == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"enabled": frozenset(["a/tool:b"])}, "unknown capability"),
        ({"system_max": 3}, "there is room for 3"),
        ({"contracts": ()}, "no such artifact contract"),
        (
            {
                "contracts": (
                    *BUILT_IN,
                    ArtifactContract(
                        id="note", display_name="Note", source="fence", descriptor="note", example="{",
                        parser="extforge_harness.runtimes.contracts:parse_result", renderer="extforge_harness.runtimes.contracts:show",
                    ),
                )
            },
            "refuses its own example",
        ),
    ],
    ids=["capability", "budget", "artifact", "round trip"],
)  # fmt: skip
def test_what_cannot_be_compiled_is_an_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CompileError, match=words):
        compiled(**options)


def test_an_unknown_runtime_is_an_error() -> None:
    with pytest.raises(CompileError, match="unknown runtime"):
        compiled("hal")


def test_a_fragment_that_repeats_an_example_is_an_error() -> None:
    literal = next(c.literal for c in BUILT_IN if c.id == "tool_result")
    tool = dataclasses.replace(TOOL, description=f"Answers {literal}.")
    with pytest.raises(CompileError, match="repeats the example"):
        compile_context(CompileInput("native", build(ExtensionFacts("deck", tools=(tool,)))))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_a_hint_is_an_identifier_or_nothing(text: str) -> None:
    import re

    good = re.fullmatch(r"[A-Za-z0-9_./:@-]{1,256}", text) is not None
    for value in ([text], {"a": text}, {text: 1}):
        try:
            Hints({"x": value})
            accepted = True
        except CompileError:
            accepted = False
        assert accepted == good
    with pytest.raises(CompileError):
        Hints({"x": object()})


# --------------------------------------------------------------------------- adapters and bundle


@pytest.mark.parametrize("runtime", REGISTRY.ids)
def test_the_rules_of_the_facade_hold_on_every_runtime(runtime: str) -> None:
    assert broken_rules(build_catalog(SAMPLE, REGISTRY), runtime) == []


def test_native_loads_constraints_first_and_never_forgets_the_skill_rail(demo: Path) -> None:
    found = catalog([str(demo)], REGISTRY)
    skill = "quarterly_sales_deck/skill:quarterly_sales_deck"
    given = AdapterInput(found, frozenset((skill,)), workspace="/w", skills_dir="/s", max_steps=7)
    output = adapt("native", given)
    assert [Path(p).name for p in output.plugins] == ["versioned_filename_guard", "quarterly_sales_deck"]
    assert output.suppressed == ("quarterly_sales_deck",)
    agent = output.provider_config["deep_agent"]
    assert agent["rails"] == [
        {"type": "core.skill_use", "params": {"skills_dir": "/s", "skill_mode": "all", "include_tools": False}}
    ]
    assert (agent["workspace"], agent["max_iterations"], output.max_steps) == ({"root_path": "/w"}, 7, 7)


@pytest.mark.parametrize("runtime", OTHERS)
def test_other_products_get_skill_folders_and_mcp_servers(demo: Path, runtime: str) -> None:
    output = adapt(runtime, AdapterInput(catalog([str(demo)], REGISTRY)))
    assert len(output.provider_config["skills"]) == 3
    for folder in output.provider_config["skills"]:
        assert (Path(folder) / "SKILL.md").is_file()
    servers = {s["server_name"]: s["args"][0] for s in output.manifest["mcps"]}
    assert sorted(servers) == ["excel_financial_report", "incident_brief_pdf", "quarterly_sales_deck"]
    assert all(Path(path).is_file() for path in servers.values())
    assert output.tool_names == ("excel_financial_report", "incident_brief_pdf", "quarterly_sales_deck")
    assert "tool session_tool_budget — it reports what the rail" in output.system_prompt


def test_server_names_are_short_enough_for_every_product() -> None:
    import re

    names = [server_name("x" * n) for n in (1, 32, 33, 64)] + [server_name("x" * 63 + "y")]
    assert len(set(names)) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name) for name in names)


def test_only_the_facade_compiles() -> None:
    for path in (ROOT / "harness/extforge_harness").rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        assert "compile_context" not in names or path.name == "adapters.py", path


def entry(**changes: Any) -> Entry:
    return dataclasses.replace(Entry("~/.codex/x", "skill", "x", "~/.codex", executable=True), **changes)


def test_the_bundle_has_three_layers_and_no_tool_that_cannot_be_called() -> None:
    found = build_catalog(SAMPLE, REGISTRY)
    known = entry(executable=False, perception_hint="in ~/.codex; switch to codex to use it")
    bundle = build_bundle(found, "claudecode", user=[entry(id="this project/y", display_name="y")], external=[known])
    assert (len(bundle.built_in), len(bundle.user), len(bundle.external)) == (5, 1, 1)
    assert set(bundle.diagnostics) == {c.id for c in found.capabilities}
    away = {u.capability: u.suggested_runtime for u in bundle.unavailable}
    assert away == {"sample_notes/rail:NoteAuditRail": "native", "sample_notes/tool:write_note": "native"}
    callable_here, _, rest = bundle.text.partition("Known but not callable here")
    assert "tool search_notes" in callable_here
    assert "write_note" not in callable_here
    assert "switch to codex" in rest
    assert build_bundle(found, "codex", enabled=frozenset()).text == ""
    forced = build_bundle(
        found, "native", force_unavailable={"sample_search/tool:search_notes": "this model calls no tools"}
    )
    assert [u.capability for u in forced.unavailable] == ["sample_search/tool:search_notes"]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ([entry(executable=False)], "does not say where"),
        ([entry(), entry()], "2 entries"),
        ([entry(related=("a/tool:b",))], "does not exist"),
    ],
    ids=["no hint", "twice", "relation"],
)
def test_a_bundle_that_would_mislead_is_an_error(extra: list[Entry], words: str) -> None:
    with pytest.raises(BundleError, match=words):
        build_bundle(build_catalog(SAMPLE, REGISTRY), "native", external=extra)


# --------------------------------------------------------------------------- contracts


@pytest.mark.parametrize("contract", BUILT_IN, ids=lambda c: c.id)
def test_every_built_in_contract_round_trips_and_refuses_an_impostor(contract: ArtifactContract) -> None:
    assert list(check_round_trip(contract)) == []


def test_there_is_a_contract_for_every_format_the_verifier_knows() -> None:
    from extforge_verifiers.formats import FORMATS

    assert {c.id for c in BUILT_IN} == {*FORMATS, "tool_result"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"success": True, "path": "a.pptx"}, "format, exists, size_bytes"),
        ({"success": True, "format": "pptx", "exists": True, "size_bytes": 1}, "path"),
        ({"success": False}, "error"),
        ({"success": "yes", "path": "x"}, "success"),
        ("no JSON", "not a tool result"),
        (None, "not a tool result"),
    ],
    ids=["thin", "no path", "no error", "not a bool", "text", "nothing"],
)
def test_a_malformed_result_is_typed_and_shown(value: Any, reason: str) -> None:
    contract = next(c for c in BUILT_IN if c.id == "tool_result")
    found = call(contract, value)
    assert isinstance(found, Malformed)
    assert reason in found.reason
    assert show(found).startswith("malformed tool_result: ")


# --------------------------------------------------------------------------- the command line


def test_list_and_catalog_from_the_command_line(demo: Path) -> None:
    done = run_cli("runtimes", "list", "--json")
    assert [r["id"] for r in json.loads(done.stdout)["runtimes"]] == list(REGISTRY.ids)
    assert "Codex offers openJiuwen no hook surface" in run_cli("runtimes", "list").stdout
    data = json.loads(run_cli("runtimes", "catalog", str(demo), "--json").stdout)
    assert data["schema_version"] == "extforge.catalog.v1"
    assert data["capabilities"][0]["exposure"]["codex"] == {
        "status": "live",
        "via": "mcp",
        "reason": None,
        "inferred": False,
    }
    plan = run_cli("runtimes", "catalog", "--plan", str(ROOT / "examples/demo.plan.yaml"), "--mcp", "--json")
    assert json.loads(plan.stdout) == data


def test_the_matrix_from_the_command_line(demo: Path, tmp_path: Path) -> None:
    page = tmp_path / "matrix.html"
    done = run_cli(
        "runtimes", "matrix", str(demo), "--json", "--html", str(page), "--provider", "anthropic", "--runtime", "codex"
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert {cell["status"] for cell in data["cells"]} == {"unavailable"}
    assert data["extensions"]["incident_brief_pdf"] == {"codex": "unavailable"}
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    text = run_cli("runtimes", "matrix", str(demo), "--by-extension", COLUMNS="120", PYTHONIOENCODING="utf-8")
    assert "session_tool_budget" in text.stdout
    ascii_only = run_cli("runtimes", "matrix", str(demo), PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert ascii_only.stdout.isascii()
    assert "+ (mcp)" in ascii_only.stdout


def test_compile_from_the_command_line(demo: Path) -> None:
    done = run_cli("runtimes", "compile", str(demo), "--runtime", "claudecode", "--json")
    data = json.loads(done.stdout)
    assert data["tool_names"] == ["excel_financial_report", "incident_brief_pdf", "quarterly_sales_deck"]
    assert len(data["decisions"]) == 9
    one = run_cli(
        "runtimes",
        "compile",
        str(demo),
        "--runtime",
        "native",
        "--enable",
        "redis_or_memory_cache/skill:redis_or_memory_cache",
    )
    assert one.stdout.startswith("Decide between Redis")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["matrix"], 2, "--plan"),
        (["matrix", "{demo}", "--plan", "{plan}"], 2, "or a plan"),
        (["matrix", "--plan", "{plan}", "--prove"], 2, "nothing to run"),
        (["matrix", "{demo}", "--runtime", "codx"], 2, "did you mean 'codex'?"),
        (["matrix", "{demo}", "--provider", "antropic"], 2, "unknown provider"),
        (["matrix", "{demo}/acceptance"], 2, "no extension here"),
        (["compile", "{demo}", "--runtime", "native", "--enable", "x"], 2, "unknown capability 'x'"),
        (["compile", "{demo}"], 2, "--runtime"),
        (["matrix", "no-such-folder"], 2, "does not exist"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_mistakes_are_named_without_a_traceback(demo: Path, arguments: list[str], code: int, words: str) -> None:
    plan = str(ROOT / "examples/demo.plan.yaml")
    done = run_cli("runtimes", *(a.format(demo=demo, plan=plan) for a in arguments))
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_plan_with_a_server_and_no_tool_for_it_is_refused(plans: Plans) -> None:
    codes = plans.codes(
        design("style_guide", components=["skill"], mcp=True, description="How to write. Use when writing.")
    )
    assert "plan-mcp-empty" in codes
    budget = design("tool_budget", components=["rail", "tool"], mcp=True)
    assert "plan-mcp-empty" in plans.codes(budget)
    assert "plan-mcp-empty" not in plans.codes(design("sales_deck", mcp=True))


def test_kinds_and_examples_are_those_of_the_spec() -> None:
    assert KINDS == ("rail", "tool", "skill", "mcp")
    assert len(example("demo")) == 6
    assert isinstance(build(ExtensionFacts("x", tools=(TOOL,))).capabilities[0], Capability)


def test_the_matrix_in_the_docs_is_the_real_one() -> None:
    matrix = build_matrix(catalog_from_plan(load_plan(str(ROOT / "examples/demo.plan.yaml")), REGISTRY))
    assert show_matrix(matrix, width=110) in (ROOT / "docs/runtimes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["runtime", "provider"])
def test_descriptions_fit_their_schemas(kind: str) -> None:
    import jsonschema

    from extforge.schemas import schema_of

    values = REGISTRY.runtimes if kind == "runtime" else PROVIDERS.values()
    for value in values:
        data = json.loads(value.model_dump_json(exclude_none=True))
        jsonschema.validate({"sdk": None, **data} if kind == "runtime" else data, schema_of(kind))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"id": "x", "colour": "red"}, schema_of(kind))


def test_no_cell_of_the_page_reaches_into_the_next(tmp_path: Path) -> None:
    from test_reports import Page

    html = render_page(build_matrix(build_catalog(SAMPLE, REGISTRY)))
    measure = """<script>document.title = Array.from(document.querySelectorAll('td.cell .mark')).filter(mark =>
        mark.getBoundingClientRect().right > mark.parentElement.getBoundingClientRect().right).length + ' too wide';
        </script>"""
    bare = re.sub(r"<meta http-equiv[^>]*>", "", html).replace("</body>", f"{measure}</body>")
    page = Page(bare, tmp_path)
    dom = page.run("--window-size=1200,800", "--dump-dom").stdout
    assert "<title>0 too wide</title>" in dom
