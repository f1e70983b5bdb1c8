"""The MCP server of a generated extension, met by a real MCP client: its tools, its files, and its guards."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, Plans, design, run_cli

from extforge.check import load_plan
from extforge.generate import Options, generate
from extforge_harness.acceptance import load_acceptance
from extforge_harness.errors import HostFailed
from extforge_harness.runtimes.catalog import ExtensionFacts
from extforge_harness.runtimes.descriptors import Registry, load_registry
from extforge_harness.runtimes.matrix import CellStatus, build_matrix
from extforge_harness.runtimes.proving import Proofs, find_drift, prove
from extforge_harness.runtimes.serving import try_server
from extforge_harness.runtimes.trees import catalog
from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.extensions import verify_extension

pytest.importorskip("mcp", reason='the package mcp is not installed: pip install "extforge[mcp]"')

REGISTRY = Registry(load_registry([]).runtimes, {})
HOME = Path("openjiuwen/extensions/harness")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans with MCP servers: the demo, and everything that guards can do."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("demo", "everything"):
        generate(load_plan(str(ROOT / f"examples/{name}.plan.yaml")), str(folder / name), Options(mcp=True))
    return folder


def facts_of(folder: Path, name: str) -> ExtensionFacts:
    found = catalog([str(folder)], REGISTRY).extension(name)
    assert found is not None
    return found


def talk(tree: Path, cwd: Path, speak: Callable[[Any], Awaitable[Any]]) -> Any:
    """Hold one session with the server of a tree."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def session() -> Any:
        server = StdioServerParameters(command=sys.executable, args=["-B", str(tree / "mcp_server.py")], cwd=str(cwd))
        with anyio.fail_after(60), (cwd / "server.log").open("w") as log:
            async with stdio_client(server, errlog=log) as pipes, ClientSession(*pipes) as client:
                await client.initialize()
                return await speak(client)

    return anyio.run(session)


@pytest.mark.parametrize(
    ("plan", "name", "guards"),
    [
        ("demo", "excel_financial_report", []),
        ("demo", "incident_brief_pdf", []),
        ("demo", "quarterly_sales_deck", ["versioned_filename_guard"]),
        ("everything", "deck_maker", ["mode_guard", "name_fixer"]),
        ("everything", "order_export", ["mode_guard", "pattern_guard"]),
    ],
)
def test_a_client_lists_and_calls_every_tool_and_is_stopped_by_every_guard(
    generated: Path, tmp_path: Path, plan: str, name: str, guards: list[str]
) -> None:
    facts = facts_of(generated / plan, name)
    trial = try_server(facts, str(tmp_path))
    assert trial.findings == []
    assert list(trial.tools) == [tool.name for tool in facts.tools] == list(trial.proved)
    # What the client is offered is what the host's ToolCard is made of.
    root = Path(facts.root)
    for tool in facts.tools:
        card = json.loads((root.parent / tool.source).read_text(encoding="utf-8"))
        assert trial.tools[tool.name] == {"description": card["description"], "schema": card["input_params"]}
        made = verify_artifact(trial.results[tool.name]["absolute_path"])
        assert made.verdict is Verdict.PASS
        assert made.kind == tool.artifacts[0]
    assert sorted(trial.refusals) == guards == list(facts.guards)


def test_a_refused_call_leaves_nothing_behind_and_says_why(generated: Path, tmp_path: Path) -> None:
    tree = generated / "demo" / HOME / "quarterly_sales_deck"
    acceptance = load_acceptance(str(generated / "demo/acceptance/quarterly_sales_deck.yaml"))
    inputs = {**(acceptance.tool_tests[0].inputs or {}), "output_path": "report.pptx"}

    async def speak(client: Any) -> Any:
        return await client.call_tool("quarterly_sales_deck", inputs)

    result = talk(tree, tmp_path, speak)
    assert result.isError
    assert result.structuredContent["refused"] is True
    assert "must end in '_v1'" in result.structuredContent["error"]
    assert "请在文件名末尾加上 _v1" in result.content[0].text
    assert [p.name for p in tmp_path.iterdir()] == ["server.log"]


def test_bad_inputs_unknown_tools_and_hints(generated: Path, tmp_path: Path) -> None:
    tree = generated / "demo" / HOME / "incident_brief_pdf"

    async def speak(client: Any) -> Any:
        listed = await client.list_tools()
        bad = await client.call_tool("incident_brief_pdf", {"title": 7})
        unknown = await client.call_tool("fly", {})
        return listed, bad, unknown

    listed, bad, unknown = talk(tree, tmp_path, speak)
    assert listed.tools[0].annotations.readOnlyHint is False
    assert bad.isError
    assert "inputs.title: must be string, not integer" in bad.structuredContent["error"]
    assert unknown.isError
    assert "no tool 'fly'" in unknown.content[0].text


def test_what_a_library_prints_does_not_get_between_the_messages(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "demo", tmp_path / "demo")
    work = tmp_path / "demo" / HOME / "incident_brief_pdf/tools/incident_brief_pdf.py"
    work.write_text(work.read_text().replace("\ndef run(", "\nprint('hello from a library')\n\n\ndef run("))
    trial = try_server(facts_of(tmp_path / "demo", "incident_brief_pdf"), str(tmp_path))
    assert trial.findings == []
    assert "hello from a library" in (tmp_path / "incident_brief_pdf.server.log").read_text()


@pytest.mark.parametrize("gone", ["the constraint", "its rule"])
def test_a_server_whose_guard_is_not_there_does_not_start(generated: Path, tmp_path: Path, gone: str) -> None:
    home = tmp_path / HOME
    shutil.copytree(generated / "demo" / HOME / "quarterly_sales_deck", home / "quarterly_sales_deck")
    if gone == "its rule":
        guard = shutil.copytree(
            generated / "demo" / HOME / "versioned_filename_guard", home / "versioned_filename_guard"
        )
        (guard / "rails/versioned_filename_guard.json").unlink()
    done = subprocess.run(
        [sys.executable, "-B", str(home / "quarterly_sales_deck/mcp_server.py")],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert "versioned_filename_guard" in done.stderr


def test_a_guard_that_fails_refuses(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "demo", tmp_path / "demo")
    rule = tmp_path / "demo" / HOME / "versioned_filename_guard/rails/versioned_filename_guard.py"
    rule.write_text(
        rule.read_text().replace(
            "    if TOOLS and tool not in TOOLS:\n        return None\n    if tool in", "    1 / 0\n    if tool in", 1
        )
    )
    tree = tmp_path / "demo" / HOME / "quarterly_sales_deck"
    inputs = load_acceptance(str(tmp_path / "demo/acceptance/quarterly_sales_deck.yaml")).tool_tests[0].inputs

    async def speak(client: Any) -> Any:
        return await client.call_tool("quarterly_sales_deck", inputs)

    result = talk(tree, tmp_path, speak)
    assert result.structuredContent["refused"] is True
    assert "the guard failed, so it refuses: division by zero" in result.structuredContent["error"]


def test_a_server_that_asks_no_guard_is_found(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "demo", tmp_path / "demo")
    served = tmp_path / "demo" / HOME / "quarterly_sales_deck/mcp_server.json"
    served.write_text(json.dumps({**json.loads(served.read_text()), "guards": []}))
    trial = try_server(facts_of(tmp_path / "demo", "quarterly_sales_deck"), str(tmp_path))
    assert [f.code for f in trial.findings] == ["runtime-guard-open"]
    assert trial.proved == ()


def test_a_server_that_says_something_else_than_the_card_is_found(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "demo", tmp_path / "demo")
    server = tmp_path / "demo" / HOME / "incident_brief_pdf/mcp_server.py"
    server.write_text(server.read_text().replace("description=work.DESCRIPTION", 'description="Anything."'))
    trial = try_server(facts_of(tmp_path / "demo", "incident_brief_pdf"), str(tmp_path))
    assert [f.code for f in trial.findings] == ["runtime-server-tools"]


def test_a_server_that_does_not_start_is_named_with_its_last_words(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "demo", tmp_path / "demo")
    (tmp_path / "demo" / HOME / "incident_brief_pdf/mcp_server.py").write_text("raise SystemExit('out of order')\n")
    with pytest.raises(HostFailed, match="out of order"):
        try_server(facts_of(tmp_path / "demo", "incident_brief_pdf"), str(tmp_path), timeout=30)


def test_the_server_needs_nothing_of_openjiuwen_and_passes_every_check(generated: Path) -> None:
    for plan in ("demo", "everything"):
        for tree in sorted((generated / plan / HOME).iterdir()):
            assert verify_extension(str(tree)).findings == (), tree
            server = tree / "mcp_server.py"
            if server.exists():
                assert "import openjiuwen" not in server.read_text()
                assert "from openjiuwen" not in server.read_text()
                assert "mcp>=1.10,<2" in (tree / "requirements.txt").read_text()
    trees = str(generated / "demo" / HOME)
    for arguments in (["check", "--isolated", trees], ["format", "--isolated", "--check", trees]):
        done = subprocess.run([sys.executable, "-m", "ruff", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_plan_asks_for_servers_one_by_one(plans: Plans) -> None:
    result = plans.generate(design("sales_deck", mcp=True), design("other_deck"))
    assert (result.target / HOME / "sales_deck/mcp_server.py").is_file()
    assert not (result.target / HOME / "other_deck/mcp_server.py").exists()


def test_guards_that_are_in_the_target_already_come_along(plans: Plans, tmp_path: Path) -> None:
    suffix: dict[str, Any] = {"does": {"guard": {"require": {"stem_suffix": "_v2"}}}}
    guard = design("suffix_rule", kind="constraint", components=["rail"], rails=[suffix])
    plans.generate(guard, into=tmp_path / "out")
    from extforge.generate import existing_extensions

    deck = plans.write(design("sales_deck", mcp=True, depends_on=["suffix_rule"]))
    existing = existing_extensions(str(tmp_path / "out"))
    generate(load_plan(deck, existing=existing), str(tmp_path / "out"))
    assert facts_of(tmp_path / "out", "sales_deck").guards == ("suffix_rule",)

    async def speak(client: Any) -> Any:
        slides = [{"title": "Summary", "bullets": ["Revenue grew"]}]
        calls = [{"title": "Sales", "slides": slides, "output_path": name} for name in ("a.pptx", "a_v2.pptx")]
        return [await client.call_tool("sales_deck", call) for call in calls]

    refused, made = talk(tmp_path / "out" / HOME / "sales_deck", tmp_path, speak)
    assert "must end in '_v2'" in refused.structuredContent["error"]
    assert made.structuredContent["success"] is True
    assert verify_artifact(tmp_path / "a_v2.pptx").verdict is Verdict.PASS
    assert not (tmp_path / "a.pptx").exists()


def test_generate_prints_what_a_client_needs(tmp_path: Path) -> None:
    plan = str(ROOT / "examples/demo.plan.yaml")
    done = run_cli("generate", plan, "--into", str(tmp_path), "--mcp")
    text = done.stdout.partition(".mcp.json:")[2]
    servers = json.loads(text)["mcpServers"]
    assert sorted(servers) == ["excel_financial_report", "incident_brief_pdf", "quarterly_sales_deck"]
    assert all(Path(server["args"][0]).is_file() for server in servers.values())


@pytest.fixture(scope="module")
def proofs(generated: Path) -> Proofs:
    """Everything that can be shown of the demo plan here: openJiuwen's own two runtimes, installers, MCP clients."""
    return prove(catalog([str(generated / "demo")], REGISTRY))


@pytest.mark.host
def test_every_live_cell_of_the_demo_plan_is_proved(generated: Path, proofs: Proofs) -> None:
    """By running in that product, by an MCP client, or by the host's own installer: the matrix says which."""
    assert (proofs.findings, proofs.skipped) == ([], {})
    matrix = build_matrix(catalog([str(generated / "demo")], REGISTRY), proofs=proofs.shown)
    for cell in matrix.cells:
        if cell.status is CellStatus.EXECUTABLE:
            tool = bool(cell.tool_names)
            native = cell.runtime in ("native", "native_v2")
            assert cell.proved == ("runtime" if native else "mcp-client" if tool else "host"), cell
        else:
            assert (cell.capability, cell.runtime) not in proofs.shown
    # The host's cards were compared with the source; the client was offered the same as the source says.
    offered = {name: tool for trial in proofs.trials for name, tool in trial.tools.items()}
    assert sorted(offered) == ["excel_financial_report", "incident_brief_pdf", "quarterly_sales_deck"]


@pytest.mark.host
def test_the_installed_openjiuwen_does_what_the_registry_says(proofs: Proofs) -> None:
    mounts = proofs.mounts
    assert find_drift(REGISTRY, mounts) == []
    for runtime in ("claudecode", "codex", "dsh"):
        refused = {kind for kind, why in mounts["accepts"][runtime].items() if why is not None}
        assert refused == {"tool", "rail", "subagent"}
    # When the host changes, this says where.
    changed = {**mounts, "accepts": {**mounts["accepts"], "codex": {**mounts["accepts"]["codex"], "tool": None}}}
    assert [f.message for f in find_drift(REGISTRY, changed)] == [
        "tool on codex is deferred in the registry, and openJiuwen takes it"
    ]
    fewer = Registry(REGISTRY.runtimes[:-1], {})
    assert "dsh" in find_drift(fewer, mounts)[0].message
