"""A scaffolded runtime goes from red to green, one step at a time, and no step can be talked round."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import threading
import zipfile
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from onboarded import describe, smoke, write_contract, write_fixtures
from support import run_cli

from extforge.errors import TargetError
from extforge.onboarding import provider_text, scaffold_runtime
from extforge_harness.runtimes.descriptors import load_registry, read_provider
from extforge_harness.runtimes.onboarding import (
    FIXTURES,
    SCENARIOS,
    STEPS,
    TESTS,
    check_smoke,
    check_tests,
    check_visibility,
    run_gate,
)
from extforge_verifiers.errors import DocumentError


@pytest.fixture(scope="module")
def scaffold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, _ = scaffold_runtime("hermes", str(tmp_path_factory.mktemp("scaffold")))
    return Path(folder)


@pytest.fixture
def package(scaffold: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(scaffold, tmp_path / "hermes_runtime"))


def install(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package's own wheel on the path, as an installation does."""
    pytest.importorskip("hatchling")
    build = importlib.import_module("hatchling.build")
    site = package.parent / "site"
    site.mkdir()
    monkeypatch.chdir(package)
    name = build.build_wheel(str(site))
    monkeypatch.chdir(package.parent)
    with zipfile.ZipFile(site / name) as archive:
        assert {"hermes_runtime/adapter.py", "hermes_runtime/runtime.yaml"} <= set(archive.namelist())
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))


def stopped(package: Path) -> tuple[str, list[str]]:
    """Run the gate; return the step that failed, and the codes of what it found."""
    gate = run_gate(str(package))
    outcomes = [step.outcome for step in gate.steps]
    step = gate.stopped_at
    assert step is not None, gate
    before, after = outcomes[: step.number - 1], outcomes[step.number :]
    assert set(before) <= {"passed"}
    assert set(after) <= {"not reached"}
    return step.name, [finding.code for finding in step.findings]


def test_a_new_runtime_goes_from_red_to_green_step_by_step(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, codes = stopped(package)
    assert step == "fixtures"
    assert codes.count("runtime-fixture") == codes.count("runtime-fixture-source") == len(FIXTURES)

    write_fixtures(package)
    assert stopped(package) == ("catalog", ["runtime-unexamined"] * 4)

    describe(package)
    good = (package / "adapter.py").read_text()
    (package / "adapter.py").write_text(good.replace("return replace(", "return print("))
    assert stopped(package) == ("adapter", ["runtime-adapter"])
    (package / "adapter.py").write_text(good)

    event = json.dumps({"type": "text", "text": "```show-widget\n{}\n```"})
    (package / "fixtures/events/text.jsonl").write_text(event)
    assert stopped(package) == ("artifacts", ["runtime-artifact-unregistered"])
    write_fixtures(package)

    test = package / "tests/test_adapter.py"
    kept = test.read_text()
    test.write_text(kept + "\n\ndef test_that_fails():\n    assert False\n")
    assert stopped(package) == ("contract tests", ["runtime-test-failed"])
    test.write_text(kept)

    assert stopped(package) == ("smoke matrix", ["runtime-smoke"] * len(SCENARIOS))
    smoke(package)
    assert stopped(package) == ("visibility", ["runtime-unregistered"])
    assert not (package / "handover.md").exists()

    install(package, monkeypatch)
    gate = run_gate(str(package))
    assert gate.passed, [step.findings for step in gate.steps]
    assert "Hermes has no hooks" in (package / "handover.md").read_text()
    record = json.loads((package / "gate.json").read_text())
    assert [step["outcome"] for step in record["steps"]] == ["passed"] * 7
    assert all(len(step["inputs_sha256"]) == 64 for step in record["steps"])

    # From now on it is a runtime like the others.
    registry = load_registry()
    assert registry.ids[-1] == "hermes"
    from extforge_harness.runtimes.adapters import AdapterInput, adapt
    from extforge_harness.runtimes.catalog import build_catalog
    from extforge_harness.runtimes.trial import SAMPLE

    output = adapt("hermes", AdapterInput(build_catalog(SAMPLE, registry)))
    assert output.tool_names == ("search_notes",)
    sys.modules.pop("hermes_runtime.adapter", None)
    sys.modules.pop("hermes_runtime", None)


def test_the_record_is_never_an_input(package: Path) -> None:
    steps = [{"number": n, "name": name, "outcome": "passed"} for n, (name, _, _) in enumerate(STEPS, 1)]
    (package / "gate.json").write_text(json.dumps({"passed": True, "steps": steps}))
    assert stopped(package)[0] == "fixtures"


def test_the_gate_has_no_way_to_skip(package: Path) -> None:
    done = run_cli("runtimes", "gate", "--help")
    options = [line.split()[0] for line in done.stdout.splitlines() if line.strip().startswith("-")]
    assert options == ["--format", "--json", "-h,"]


def test_a_plan_that_maps_before_the_fixtures_stand_is_refused(package: Path) -> None:
    (package / "plan.md").write_text("# Plan\n\n## Mapping\n\nTools become events.\n")
    assert "runtime-plan-mapping" in stopped(package)[1]
    write_fixtures(package)
    assert stopped(package)[0] == "catalog"


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        pytest.param("requests/minimal.json", "{", "document-syntax", id="broken JSON"),
        pytest.param("events/text.jsonl", "", "runtime-fixture", id="an empty stream"),
        pytest.param("events/error.jsonl", '{"a": 1}\n{}\n', "runtime-fixture", id="a placeholder among events"),
        pytest.param("tools.json", '{"not_applicable": "none"}', "runtime-fixture", id="tools always apply"),
        pytest.param("permission.json", '{"not_applicable": " "}', "runtime-fixture", id="no reason"),
        pytest.param("media.json", None, "runtime-fixture", id="missing"),
    ],
)
def test_a_fixture_that_shows_nothing_fails(package: Path, name: str, text: str | None, code: str) -> None:
    write_fixtures(package)
    path = package / "fixtures" / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    step, codes = stopped(package)
    assert (step, len(codes)) == ("fixtures", 1)
    assert codes[0] == code or codes[0].startswith("document-")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param("TODO | 2026-11-01 | external", "no address", id="no source"),
        pytest.param("https://hermes.example/x | soon | external", "date", id="no date"),
        pytest.param("hermes/protocol.py | 2026-11-01 | sure", "inferred", id="no fact"),
    ],
)
def test_a_fixture_without_a_source_fails(package: Path, row: str, words: str) -> None:
    write_fixtures(package)
    path = package / "fixtures/SOURCES.md"
    lines = [f"| tools.json | {row} |" if "| tools.json" in li else li for li in path.read_text().splitlines()]
    path.write_text("\n".join(lines))
    step = run_gate(str(package)).stopped_at
    assert step is not None
    assert [f.code for f in step.findings] == ["runtime-fixture-source"]
    assert words in step.findings[0].message


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        pytest.param("{status: live, via: api, fact: verified}", "runtime-mount-unshown", id="no fixture"),
        pytest.param("{status: live, via: api, fact: verified, fixture: media.json}", "runtime-mount-unshown", id="not applicable"),
        pytest.param("{status: live, via: api, reason: but slowly, fact: verified}", "document-bad-value", id="live, but"),
        pytest.param("{status: partial, reason: half, fact: verified}", "document-bad-value", id="unknown status"),
        pytest.param("{status: deferred, fact: verified}", "document-bad-value", id="no reason"),
    ],
)  # fmt: skip
def test_a_mount_that_says_more_than_was_seen_fails(package: Path, tool: str, code: str) -> None:
    write_fixtures(package)
    describe(package, tool)
    assert stopped(package) == ("catalog", [code])


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        pytest.param([{"name": "shell"}], "runtime-tool-unclassified", id="unclassified"),
        pytest.param([{"name": "shell", "mutation": "unclassified"}], "runtime-tool-unclassified", id="said so"),
        pytest.param([{"name": "bash", "mutation": "safe_read"}], "runtime-tools-inconsistent", id="other names"),
    ],
)
def test_tools_must_be_classified_and_agree_with_what_was_seen(
    package: Path, tools: list[dict[str, str]], code: str
) -> None:
    write_fixtures(package)
    describe(package)
    (package / "fixtures/tools.json").write_text(json.dumps({"name_keys": ["toolName"], "tools": tools}))
    step, codes = stopped(package)
    assert (step, set(codes)) == ("catalog", {code})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(("assemble\n", "assemble\nfrom extforge_harness.runtimes.compiler import compile_context\n"), "runtime-facade-bypassed", id="compiles itself"),
        pytest.param(('RUNTIME = "hermes"', f'RUNTIME = "hermes"\nPROMPT = "{"You are a widget. " * 20}"'), "runtime-prompt-constant", id="a prompt"),
        pytest.param(('RUNTIME = "hermes"', 'RUNTIME = "hermes"\nPROMPT = (\n' + '    "You are a widget. "\n' * 20 + ")"), "runtime-prompt-constant", id="a prompt in pieces"),
        pytest.param(('RUNTIME = "hermes"', 'RUNTIME = "hermes"\nPROMPT = "' + '" + "'.join(["You are a widget. "] * 20) + '"'), "runtime-prompt-constant", id="a prompt, added up"),
        pytest.param(("context={", 'tool_names=("fly",), context={'), "runtime-adapter", id="tools that are not there"),
        pytest.param(("context={", 'system_prompt="Hello.", context={'), "runtime-adapter", id="words of its own"),
        pytest.param(("output = assemble(RUNTIME, given)", "output = assemble(RUNTIME, replace(given, external=()))"), "runtime-adapter", id="a layer left out"),
        pytest.param(("return replace(", "return None and replace("), "runtime-adapter", id="nothing"),
        pytest.param(("def adapt", "def adopt"), "runtime-adapter", id="no adapt"),
        pytest.param(("def adapt", "def adapt("), "runtime-adapter", id="no Python"),
    ],
)  # fmt: skip
def test_an_adapter_that_goes_its_own_way_fails(package: Path, change: tuple[str, str], code: str) -> None:
    write_fixtures(package)
    describe(package)
    path = package / "adapter.py"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    step, codes = stopped(package)
    assert step == "adapter"
    assert code in codes


@pytest.mark.parametrize(
    ("contract", "code"),
    [
        pytest.param({"parser": "hermes_runtime.parsing:accept"}, "runtime-contract-impostor", id="a loose parser"),
        pytest.param({"parser": "hermes_runtime.parsing:refuse"}, "runtime-contract-example", id="refuses its example"),
        pytest.param({"parser": "hermes_runtime.missing:parse"}, "runtime-contract-import", id="no parser"),
        pytest.param({"renderer": "hermes_runtime.parsing:hide"}, "runtime-contract-hidden", id="hides what is malformed"),
        pytest.param({"id": "pptx"}, "runtime-contract-taken", id="a second PPTX"),
        pytest.param({"example": None}, "runtime-contract-example", id="no example"),
    ],
)  # fmt: skip
def test_a_contract_that_does_not_hold_fails(
    package: Path, contract: dict[str, str | None], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fixtures(package)
    describe(package)
    write_contract(package, **contract)
    step, codes = stopped(package)
    assert not [name for name in sys.modules if name.startswith("hermes_runtime")]
    assert step == "artifacts"
    assert code in codes


def test_contract_tests_that_do_not_test_fail(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TOKEN", "secret")
    server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)  # would answer, if it were asked
    threading.Thread(target=server.serve_forever, daemon=True).start()
    live = ("127.0.0.1", server.server_port)
    texts = {
        "capabilities": "import pytest\n\n\n@pytest.mark.skip\ndef test_later():\n    pass\n",
        "compiler": "import pytest\n\n\n@pytest.mark.xfail\ndef test_wrong():\n    assert False\n",
        "compiler_equivalence": "import pytest\n\npytest.skip('later', allow_module_level=True)\n",
        "adapter": "import os\nimport socket\n\n\n"
        f"def test_live():\n    socket.socket().connect({live!r})\n\n\n"
        "def test_keys():\n    assert os.environ['HERMES_TOKEN']\n",
        "contracts": "X = 1\n",
    }
    for name, text in texts.items():
        (package / f"tests/test_{name}.py").write_text(text)
    try:
        found = sorted(finding.message.replace(".py", "") for finding in check_tests(package))
    finally:
        server.shutdown()
        server.server_close()
    assert [line.rpartition("tests/test_")[2] for line in found] == [
        "adapter::test_keys failed",
        "adapter::test_live failed",
        "capabilities::test_later skipped",
        "compiler::test_wrong xfailed",
        "compiler_equivalence skipped",
        "contracts has no test",
    ]
    (package / "tests/test_contracts.py").write_text("import no_such_module_anywhere\n")
    found = [finding.message for finding in check_tests(package)]
    assert any(line.endswith("tests/test_contracts.py failed") for line in found), found


@pytest.mark.parametrize("name", TESTS)
def test_each_test_file_must_be_there(package: Path, name: str) -> None:
    (package / "tests" / name).unlink()
    assert [finding.message for finding in check_tests(package)] == [f"tests/{name} is missing"]


def test_smoke_scenarios_count_only_with_evidence_or_an_honest_reason(package: Path) -> None:
    describe(package)

    def problems(**changes: dict[str, str]) -> list[str]:
        smoke(package, **changes)
        return [finding.message for finding in check_smoke(package)]

    assert problems() == []
    assert "there is no evidence" in problems(S1={"id": "S1", "status": "pass", "evidence": "evidence/none.log"})[0]
    assert "there is no evidence" in problems(S1={"id": "S1", "status": "pass", "evidence": "../outside.log"})[0]
    assert "is pending" in problems(S3={"id": "S3", "status": "pending"})[0]
    assert "is fail" in problems(S6={"id": "S6", "status": "fail"})[0]
    assert "cannot be deferred" in problems(S1={"id": "S1", "status": "deferred", "reason": "later"})[0]
    assert "mcp is live" in problems(S6={"id": "S6", "status": "deferred", "reason": "later"})[0]
    assert "without a reason" in problems(S2={"id": "S2", "status": "deferred"})[0]
    twice = problems(S5={"id": "S4", "status": "deferred", "reason": "x"})
    assert any("S5 is missing" in line for line in twice)
    assert any("no scenario" in line for line in problems(S5={"id": "S99", "status": "pending"}))
    smoke(package)
    (package / "evidence/S1.log").write_text("")
    assert [f.message for f in check_smoke(package)] == ["S1: the evidence is empty"]
    smoke(package)
    later = (package / "evidence/S1.log").stat().st_mtime + 60
    os.utime(package / "adapter.py", (later, later))
    assert all("older than the adapter" in f.message for f in check_smoke(package))


def test_what_is_escaped_on_the_page_and_in_the_table_is_still_shown(package: Path) -> None:
    describe(package, tool='{status: deferred, reason: "not <yet>\\tseen", fact: verified}')
    path = package / "runtime.yaml"
    path.write_text(path.read_text().replace("name: hermes", "name: Hermes & Co", 1))
    assert "Hermes & Co" in path.read_text()
    assert {finding.code for finding in check_visibility(package)} == {"runtime-unregistered"}


def test_a_scaffold_is_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "hermes_runtime").mkdir()
    (tmp_path / "hermes_runtime/plan.md").write_text("mine")
    with pytest.raises(TargetError, match=r"plan\.md"):
        scaffold_runtime("hermes", str(tmp_path))
    assert [p.name for p in (tmp_path / "hermes_runtime").iterdir()] == ["plan.md"]


@pytest.mark.parametrize("name", ["../up", "Codex", "codex", "class", "a b", "x" * 33, ""])
def test_names_that_cannot_be_runtimes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TargetError):
        scaffold_runtime(name, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_provider_gets_a_description_instead_of_a_package(tmp_path: Path) -> None:
    for answer in ("endpoint", "unsure"):
        done = run_cli("runtimes", "new", "my_llm", "--differs", answer, "--out", str(tmp_path))
        assert done.returncode == 1
        (tmp_path / "provider.yaml").write_text(done.stdout)
        assert read_provider(str(tmp_path / "provider.yaml")).id == "my-llm"
        (tmp_path / "provider.yaml").unlink()
        assert list(tmp_path.iterdir()) == []
    assert run_cli("runtimes", "new", "my_llm", stdin="").returncode == 2
    assert "id: x-y" in provider_text("X y!")


def test_the_gate_from_the_command_line(package: Path) -> None:
    done = run_cli("runtimes", "gate", str(package), "--json")
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert data["schema_version"] == "extforge.gate.v1"
    assert [step["outcome"] for step in data["steps"]] == ["failed", *["not reached"] * 6]
    nothing = run_cli("runtimes", "gate", str(package.parent))
    assert nothing.returncode == 2
    assert "runtimes new" in nothing.stderr


def test_an_installed_runtime_may_not_take_a_name(package: Path) -> None:
    text = (package / "runtime.yaml").read_text().replace("id: hermes", "id: codex")
    (package / "runtime.yaml").write_text(text)
    with pytest.raises(DocumentError, match="taken"):
        load_registry([("codex", str(package))])
