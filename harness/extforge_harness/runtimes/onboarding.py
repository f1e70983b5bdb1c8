"""The gate of a new runtime: seven steps, in order, and none can be skipped.

What was seen of the protocol comes first, then what follows from it, then code, then tests, and only then what was
tried by hand.  A failed step ends the run: what comes after it would rest on nothing.  `gate.json` records a run and
is never read.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from html import escape
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from extforge_harness.documents import Model, bind
from extforge_harness.gates import MutationLevel
from extforge_harness.runtimes.contract_run import RECORD
from extforge_harness.runtimes.contracts import BUILT_IN, check_round_trip, load_contracts
from extforge_harness.runtimes.descriptors import ENTRY_POINTS, KINDS, NOT_EXAMINED, Runtime, built_in, read_runtime
from extforge_harness.runtimes.matrix import CellStatus, build_matrix
from extforge_harness.runtimes.page import render_page
from extforge_harness.runtimes.showing import show_matrix
from extforge_harness.runtimes.trial import sample_catalog
from extforge_verifiers.documents import parse_json, read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Where
from extforge_verifiers.formats import format_for
from extforge_verifiers.paths import lies_in
from extforge_verifiers.reports.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FIXTURES", "SCENARIOS", "STEPS", "Gate", "Step", "run_gate"]

FIXTURES = (
    "requests/minimal.json", "requests/with_tools.json", "requests/resume.json",
    "events/text.jsonl", "events/tool_call.jsonl", "events/tool_result.jsonl", "events/error.jsonl",
    "tools.json", "permission.json", "media.json",
)  # fmt: skip
MAY_NOT_APPLY = ("requests/resume.json", "permission.json", "media.json")
TESTS = (
    "test_capabilities.py", "test_compiler.py", "test_compiler_equivalence.py", "test_adapter.py", "test_contracts.py",
)  # fmt: skip
# Scenario -> (what it shows, what must not be live for it to be deferred; nothing: it cannot be).
SCENARIOS: dict[str, tuple[str, tuple[str, ...]]] = {
    "S1": ("one plain turn: text, and events in order", ()),
    "S2": ("two turns, the second resumes the first", ("checkpoint",)),
    "S3": ("a file is written: started, completed, file event", ("tool", "mcp")),
    "S4": ("a permission request reaches the user and the answer comes back; a repeated id asks once", ("approval",)),
    "S5": ("an image or other media result is rendered", ("tool", "mcp")),
    "S6": ("the artifact of an extension passes the verifier", ("tool", "mcp")),
    "S7": ("a context note is used in the first turn", ("persona",)),
    "S8": ("a background or notification capability really fires", ("rail",)),
    "S9": ("the runtime's own tools stay visible", ("tool", "mcp")),
    "S10": ("an extension of another framework is known, and not called", ("skill",)),
    "S11": ("a provider that cannot host tools is downgraded honestly", ("tool", "mcp")),
    "S12": ("media side channel: the model sees text, the user sees the file", ("tool", "mcp")),
    "S13": ("a tool that changes something outside, or is unclassified, does not run silently", ("tool", "mcp")),
}
LONGEST_TEXT = 200  # characters of a string in a runtime's code; longer ones are prompts
_CODE_LANGUAGES = frozenset(
    "bash c cpp css diff go html java javascript js json jsx markdown md python py rust sh shell sql text toml ts tsx txt typescript xml yaml".split()
)
_SOURCE = re.compile(r"https?://\S+|[\w@.-]+(/[\w@.-]+)+")
_FILE = re.compile(r"[^\n]{0,200}?[\w-]\.([A-Za-z][A-Za-z0-9]{1,4})")
_FENCE = re.compile(r"^```([\w+-]+)", re.MULTILINE)


@dataclass(slots=True)
class Step:
    """One step of the gate."""

    number: int
    name: str
    outcome: Literal["passed", "failed", "not reached"] = "not reached"
    findings: list[Finding] = field(default_factory=list)
    at: str = ""  # when it ran
    inputs: str = ""  # SHA-256 over what it looked at


@dataclass(slots=True)
class Gate:
    """One run of the gate."""

    folder: Path
    steps: list[Step]

    @property
    def passed(self) -> bool:
        """Whether every step passed."""
        return all(step.outcome == "passed" for step in self.steps)

    @property
    def stopped_at(self) -> Step | None:
        """The step that failed."""
        return next((step for step in self.steps if step.outcome == "failed"), None)

    def data(self) -> dict[str, Any]:
        """Return the run as gate.json has it."""
        from extforge_verifiers.reports.json import finding_data  # noqa: PLC0415

        return {
            "folder": self.folder.name,
            "passed": self.passed,
            "steps": [
                {
                    "number": step.number,
                    "name": step.name,
                    "outcome": step.outcome,
                    "at": step.at or None,
                    "inputs_sha256": step.inputs or None,
                    "findings": [finding_data(finding) for finding in step.findings],
                }
                for step in self.steps
            ],
        }


def run_gate(folder: str, tell: Callable[[Step], None] | None = None) -> Gate:
    """Run the gate on a runtime package, from step 1, and stop at the first failure.

    The package's own code and tests are run, in processes of their own, without network and credentials.

    Args:
        folder: the package.
        tell: gets each step when it is done.

    Raises:
        DocumentError: when there is no runtime package in the folder.
    """
    root = Path(folder).resolve()
    if not (root / "runtime.yaml").is_file():
        finding = Finding(
            "runtime-no-package", "there is no runtime.yaml here", where=Where(folder), fix="extforge runtimes new NAME"
        )
        raise DocumentError(folder, [finding])
    gate = Gate(root, [Step(number, name) for number, (name, _, _) in enumerate(STEPS, 1)])
    for step, (_, check, inputs) in zip(gate.steps, STEPS, strict=True):
        step.at = datetime.now(UTC).isoformat(timespec="seconds")
        step.inputs = _digest(root, inputs)
        try:
            step.findings = list(check(root))
        except DocumentError as exc:
            step.findings = list(exc.findings)
        step.outcome = "failed" if step.findings else "passed"
        if tell is not None:
            tell(step)
        if step.findings:
            break
    (root / "gate.json").write_text(json.dumps(gate.data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if gate.passed and not (root / "handover.md").exists():
        (root / "handover.md").write_text(_handover(root, gate), encoding="utf-8")
    return gate


def _digest(root: Path, patterns: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for path in sorted({p for pattern in patterns for p in root.glob(pattern) if p.is_file()}):
        if "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _finding(code: str, words: str, path: Path, **more: Any) -> Finding:
    return Finding(code, words, where=Where(str(path)), **more)


# --------------------------------------------------------------------------- 1 fixtures


def _load(path: Path) -> list[Any]:
    """Return the values of a JSON file (one) or a JSON Lines file (one per line).

    Raises:
        DocumentError: when it cannot be read.
        OSError: when it is not there.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".jsonl":
        return [parse_json(text, str(path)).value]
    lines = [(n, line) for n, line in enumerate(text.splitlines()) if line.strip()]
    return [parse_json(line, str(path), line_offset=n).value for n, line in lines]


def _applies(root: Path, name: str) -> bool:
    value = _load(root / "fixtures" / name)
    return not (value and isinstance(value[0], dict) and "not_applicable" in value[0])


def check_fixtures(root: Path) -> Iterator[Finding]:
    """Yield what is missing of the protocol as it was seen."""
    found = [finding for name in FIXTURES for finding in _check_fixture(root / "fixtures" / name, name)]
    found += _check_sources(root / "fixtures" / "SOURCES.md")
    plan = root / "plan.md"
    text = plan.read_text(encoding="utf-8") if plan.is_file() else ""
    if found and re.search(r"^## Mapping\b", text, re.MULTILINE | re.IGNORECASE):
        words = "plan.md maps a protocol that has not been seen yet"
        found.append(_finding("runtime-plan-mapping", words, plan, fix="take the section out until the fixtures stand"))
    yield from found


def _check_fixture(path: Path, name: str) -> Iterator[Finding]:
    code = "runtime-fixture"
    try:
        values = _load(path)
    except (OSError, UnicodeDecodeError):
        yield _finding(code, f"the fixture {name} is missing or no text", path)
        return
    except DocumentError as exc:
        yield from exc.findings
        return
    if not values or any(not isinstance(value, (dict, list)) or not value for value in values):
        yield _finding(code, f"the fixture {name} is empty", path, fix="record what the product really sends")
    elif isinstance(values[0], dict) and "not_applicable" in values[0]:
        reason = values[0]["not_applicable"]
        if name not in MAY_NOT_APPLY:
            yield _finding(code, f"{name} applies to every runtime", path)
        elif not isinstance(reason, str) or not reason.strip():
            yield _finding(code, f"{name} does not say why it does not apply", path)


def _check_sources(path: Path) -> Iterator[Finding]:
    """Each fixture has a row: where it is from, when it was taken, and whether it was seen or inferred."""
    code = "runtime-fixture-source"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 4:
            rows[cells[0]] = cells
    for name in FIXTURES:
        if name not in rows:
            yield _finding(code, f"SOURCES.md has no row for {name}", path)
            continue
        _, source, day, fact = rows[name][:4]
        wrong = [] if _SOURCE.search(source) else [f"the source {source!r} is no address and no path in an SDK"]
        wrong += [] if _is_date(day) else [f"{day!r} is not a date like 2026-01-31"]
        wrong += [] if fact in ("external", "inferred") else [f"the fact {fact!r} is not external or inferred"]
        if wrong:
            yield _finding(code, f"{name}: {'; '.join(wrong)}", path)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------- 2 catalog


class _Tool(Model):
    """A tool of the runtime, as its fixtures show it."""

    model_config = {**Model.model_config, "extra": "allow"}

    name: Annotated[str, Field(min_length=1)]
    mutation: str | None = Field(None, description="its mutation level")


class _Tools(Model):
    """fixtures/tools.json."""

    model_config = {**Model.model_config, "extra": "allow"}

    tools: list[_Tool]
    name_keys: Annotated[list[str], Field(min_length=1)] = Field(
        description="the keys whose values are tool names in this protocol"
    )


def check_catalog(root: Path) -> Iterator[Finding]:
    """Yield what the descriptor says without having seen it."""
    path = root / "runtime.yaml"
    runtime = read_runtime(path)
    if runtime.id in {r.id for r in built_in()}:
        yield _finding("runtime-id-taken", f"{runtime.id!r} is a built-in runtime", path)
    for kind in KINDS:
        mount = runtime.mount(kind)
        if NOT_EXAMINED in (mount.reason or "").lower():
            yield _finding("runtime-unexamined", f"{kind} is {NOT_EXAMINED}", path, fix="say what the fixtures show")
        if mount.status == "live":
            yield from _check_shown(root, kind, mount.fixture)
    yield from _check_tools(root)


def _check_shown(root: Path, kind: str, fixture: str | None) -> Iterator[Finding]:
    path = root / "runtime.yaml"
    if fixture is None:
        words = f"{kind} is live, and no fixture shows it"
        yield _finding("runtime-mount-unshown", words, path, fix="add fixture: requests/with_tools.json, or the like")
    elif fixture not in FIXTURES or not _applies(root, fixture):
        words = f"{kind} is live, and {fixture!r} shows nothing"
        yield _finding("runtime-mount-unshown", words, path, fix=f"use one of {', '.join(FIXTURES)}")


def _check_tools(root: Path) -> Iterator[Finding]:
    path = root / "fixtures" / "tools.json"
    document = read_document(path.read_bytes(), str(path))
    tools, findings = bind(document, _Tools)
    if tools is None:
        yield from findings
        return
    names = {tool.name for tool in tools.tools}
    for tool in tools.tools:
        if tool.mutation not in set(MutationLevel) - {MutationLevel.UNCLASSIFIED}:
            words = f"the tool {tool.name!r} is not classified"
            yield _finding("runtime-tool-unclassified", words, path, fix="add mutation: safe_read, mutating_local, ...")
    for fixture in ("requests/with_tools.json", "events/tool_call.jsonl"):
        found = _items(_load(root / "fixtures" / fixture))
        met = {item for key, item in found if key in tools.name_keys and isinstance(item, str)}
        if not met:
            words = f"{fixture} has no tool name under {' or '.join(tools.name_keys)}"
            yield _finding("runtime-tools-inconsistent", words, path)
        for name in sorted(met - names):
            words = f"{fixture} has the tool {name!r}, which tools.json does not list"
            yield _finding("runtime-tools-inconsistent", words, path)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of everything in a JSON value; the key of a list's items is empty."""
    pairs = value.items() if isinstance(value, dict) else (("", item) for item in value)
    for key, item in pairs:
        yield key, item
        if isinstance(item, (dict, list)):
            yield from _items(item)


# --------------------------------------------------------------------------- 3 adapter


def check_adapter(root: Path) -> Iterator[Finding]:
    """Yield what the adapter does wrong: read first, then run in a process of its own."""
    adapter = root / "adapter.py"
    for path in sorted(root.rglob("*.py")):
        steps = path.relative_to(root).parts
        if steps[0] not in ("tests", "fixtures") and "__pycache__" not in steps:
            yield from _check_code(path)
    if not adapter.is_file():
        yield _finding("runtime-adapter", "adapter.py is missing", adapter)
        return
    yield from _try(root, "adapter", adapter)


def _try(root: Path, what: str, path: Path) -> Iterator[Finding]:
    """Yield what does not hold about the package's code, which runs in a process of its own."""
    done = _run([sys.executable, "-B", "-m", "extforge_harness.runtimes.trial", what, str(root)], root, {})
    try:
        problems = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        problems = [("runtime-adapter", f"gave no answer: {last[0]}")]
    yield from (_finding(code, words, path) for code, words in problems)


def _check_code(path: Path) -> Iterator[Finding]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as exc:
        yield _finding("runtime-adapter", f"{path.name} does not compile: {exc}", path)
        return
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        words = {*names, getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "module", "") or ""}
        if any(str(word).rpartition(".")[2] in ("compile_context", "compiler") for word in words):
            text = "compiles a context itself"
            where = Where(str(path), line=getattr(node, "lineno", None))
            yield Finding("runtime-facade-bypassed", text, where=where, fix="go through adapters.assemble")
        if id(node) not in docs and _text_length(node) > LONGEST_TEXT:
            text = f"has a text of {_text_length(node)} characters; what models read stands in fragments only"
            yield Finding("runtime-prompt-constant", text, where=Where(str(path), line=getattr(node, "lineno", None)))
            docs |= {id(child) for child in ast.walk(node)}


def _text_length(node: ast.AST) -> int:
    """Return the characters of a text, however it is put together."""
    if isinstance(node, ast.Constant):
        return len(node.value) if isinstance(node.value, str) else 0
    joined = isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod))
    )
    return sum(_text_length(child) for child in ast.iter_child_nodes(node)) if joined else 0


def _run(command: list[str], root: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a process of the package: a home of its own, and none of the user's environment."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TZ") if key in os.environ}
    paths = [str(root.parent), *(p for p in sys.path if p)]
    with tempfile.TemporaryDirectory(prefix="extforge-gate-") as home:
        kept |= {"HOME": home, "TMPDIR": home, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
        try:
            return subprocess.run(  # noqa: S603 -- the package's author asked for it
                command, cwd=home, env={**kept, **environment}, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, encoding="utf-8", errors="replace", timeout=600, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 1, "", "took longer than 600 seconds")


# --------------------------------------------------------------------------- 4 artifacts


def check_artifacts(root: Path) -> Iterator[Finding]:
    """Yield artifacts that the fixtures show and nobody registered, and contracts that do not hold."""
    own = load_contracts(str(root / "contracts.yaml"))
    known = {(contract.source, contract.descriptor.lower()) for contract in (*BUILT_IN, *own)}
    for name in FIXTURES:
        path = root / "fixtures" / name
        shown = set(_artifacts(_load(path), files=name in ("media.json", "events/tool_result.jsonl")))
        for kind, descriptor in sorted(shown):
            registered = (kind, descriptor) in known or (kind == "file" and format_for(f"x{descriptor}") is not None)
            if not registered:
                words = f"{name} shows the {kind} {descriptor!r}, and no artifact contract is registered for it"
                yield _finding("runtime-artifact-unregistered", words, path, fix="add it to contracts.yaml first")
    if own:
        yield from _try(root, "contracts", root / "contracts.yaml")
    for contract in BUILT_IN:
        yield from check_round_trip(contract)


def _artifacts(values: list[Any], *, files: bool) -> Iterator[tuple[str, str]]:
    """Yield (source, descriptor) of the artifacts in a fixture: fences, files, and the events that media.json lists."""
    for key, value in _items(values):
        if isinstance(value, str):
            yield from (("fence", m.lower()) for m in _FENCE.findall(value) if m.lower() not in _CODE_LANGUAGES)
            if files and (match := _FILE.fullmatch(value)):
                yield "file", f".{match[1].lower()}"
        elif key == "artifact_events" and isinstance(value, list):
            yield from (("event", str(event).lower()) for event in value)


# --------------------------------------------------------------------------- 5 contract tests


def check_tests(root: Path) -> Iterator[Finding]:
    """Yield tests that are missing, skipped or failing."""
    tests = root / "tests"
    missing = [name for name in TESTS if not (tests / name).is_file()]
    yield from (_finding("runtime-test-missing", f"tests/{name} is missing", tests) for name in missing)
    if missing:
        return
    with tempfile.TemporaryDirectory(prefix="extforge-record-") as folder:
        record = os.path.join(folder, "record.json")
        command = [
            sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "extforge_harness.runtimes.contract_run",
            "-c", os.devnull, "--rootdir", str(root), "--import-mode=importlib", *(str(tests / name) for name in TESTS),
        ]  # fmt: skip
        done = _run(command, root, {RECORD: record, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        try:
            outcomes = json.loads(Path(record).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no output"]
            yield _finding("runtime-test-failed", f"pytest gave no answer: {last[0]}", tests)
            return
    for outcome in outcomes:
        if outcome["outcome"] != "passed":
            yield _finding("runtime-test-failed", f"{outcome['test']} {outcome['outcome']}", tests)
    for name in TESTS:
        if not any(os.path.basename(outcome["file"]) == name for outcome in outcomes):
            yield _finding("runtime-test-missing", f"tests/{name} has no test", tests)


# --------------------------------------------------------------------------- 6 smoke matrix


class _Smoke(Model):
    """One entry of smoke.yaml."""

    id: str
    shows: str = ""
    status: Literal["pending", "pass", "fail", "deferred"]
    evidence: str | None = Field(None, description="file below the package, for pass")
    reason: str | None = Field(None, description="why, for deferred")


class _SmokeMatrix(Model):
    """smoke.yaml."""

    scenarios: list[_Smoke]


def check_smoke(root: Path) -> Iterator[Finding]:
    """Yield scenarios that were not tried, that failed, or that are put off while their mount is live."""
    path = root / "smoke.yaml"
    runtime = read_runtime(root / "runtime.yaml")
    try:
        document = read_document(path.read_bytes(), str(path))
    except OSError as exc:
        yield _finding("runtime-smoke", f"smoke.yaml cannot be read: {exc.strerror}", path)
        return
    matrix, findings = bind(document, _SmokeMatrix)
    if matrix is None:
        yield from findings
        return
    ids = [entry.id for entry in matrix.scenarios]
    yield from (_finding("runtime-smoke", f"{i} is missing", path) for i in SCENARIOS if i not in ids)
    changed = max((root / name).stat().st_mtime for name in ("adapter.py", "contracts.yaml"))
    for index, entry in enumerate(matrix.scenarios):
        where = document.where(("scenarios", index, "id"))
        if entry.id not in SCENARIOS or entry.id in ids[:index]:
            words = f"{entry.id!r} is no scenario, or there twice; they are S1 to S{len(SCENARIOS)}"
            yield Finding("runtime-smoke", words, where=where)
        elif problem := _smoke_problem(root, runtime, entry, changed):
            yield Finding("runtime-smoke", f"{entry.id}: {problem}", where=where)


def _smoke_problem(root: Path, runtime: Runtime, entry: _Smoke, changed: float) -> str:
    """Return why a scenario does not count; empty when it does."""
    if entry.status == "pass":
        evidence = root / (entry.evidence or "")
        if not evidence.is_file() or not lies_in(evidence, root):
            return f"there is no evidence at {entry.evidence!r}"
        if evidence.stat().st_size == 0:
            return "the evidence is empty"
        return "the evidence is older than the adapter" if evidence.stat().st_mtime < changed else ""
    if entry.status == "deferred":
        parts = SCENARIOS[entry.id][1]
        live = [part for part in parts if _is_live(runtime, part)]
        if not (entry.reason or "").strip():
            return "is deferred without a reason"
        if not parts:
            return "cannot be deferred"
        return f"is deferred, and {', '.join(live)} is live: defer the mount too, or show it" if live else ""
    return f"is {entry.status}"


def _is_live(runtime: Runtime, part: str) -> bool:
    if part in ("checkpoint", "approval"):
        return bool(getattr(runtime, part))
    mount = getattr(runtime.mounts, part)
    return mount is not None and mount.status == "live"


# --------------------------------------------------------------------------- 7 visibility


def check_visibility(root: Path) -> Iterator[Finding]:
    """Yield where people would see something else than the descriptor says, or would not see the runtime at all."""
    path = root / "runtime.yaml"
    catalog = sample_catalog(root)
    runtime = read_runtime(path)
    matrix = build_matrix(catalog)
    shown, page = show_matrix(matrix, width=200), render_page(matrix)
    for capability in catalog.capabilities:
        mount = runtime.mount(capability.kind)
        cell = matrix.cell(capability.id, runtime.id)
        works = cell.status is CellStatus.EXECUTABLE
        if works and mount.status != "live" and cell.via != "mcp":
            yield _finding(
                "runtime-cell", f"{capability.id} works in the matrix, and {capability.kind} is not live", path
            )
        if not works and (printable(cell.line) not in shown or cell.tool_names):
            yield _finding("runtime-cell", f"{capability.id} does not show why it does not work", path)
    if f">{escape(printable(runtime.name))}<" not in page:
        yield _finding("runtime-cell", "the page does not show the runtime", path)
    registered = [e for e in entry_points(group=ENTRY_POINTS) if e.name == runtime.id]
    if not registered:
        words = f"no installed package brings the runtime {runtime.id!r}"
        yield _finding("runtime-unregistered", words, path, fix=f"pip install -e {root.name}")
    elif registered[0].value.partition(":")[0] != root.name:
        words = f"the installed entry point {runtime.id!r} leads to {registered[0].value}, not to {root.name}"
        yield _finding("runtime-unregistered", words, path)


def _handover(root: Path, gate: Gate) -> str:
    runtime = read_runtime(root / "runtime.yaml")
    rows = "\n".join(
        f"| {kind} | {m.status} | {m.reason or m.via} | {m.fact} |" for kind in KINDS for m in [runtime.mount(kind)]
    )
    steps = "\n".join(f"* {step.number} {step.name}: {step.outcome}, {step.at}" for step in gate.steps)
    head = f"# Handover: {runtime.name}\n\nThe gate was green.\n\n{steps}\n"
    table = f"| kind | status | how, or why not | fact |\n|---|---|---|---|\n{rows}\n"
    tail = "Watch: a new version of the product changes fixtures first; take them again, then run the gate."
    return f"{head}\n## What works\n\n{table}\n## Next\n\n{tail}\n"


STEPS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("fixtures", check_fixtures, ("fixtures/**/*", "plan.md")),
    ("catalog", check_catalog, ("runtime.yaml", "fixtures/**/*")),
    ("adapter", check_adapter, ("**/*.py", "runtime.yaml")),
    ("artifacts", check_artifacts, ("contracts.yaml", "fixtures/**/*")),
    ("contract tests", check_tests, ("tests/**/*.py", "adapter.py", "runtime.yaml", "contracts.yaml")),
    ("smoke matrix", check_smoke, ("smoke.yaml", "adapter.py", "evidence/**/*")),
    ("visibility", check_visibility, ("runtime.yaml", "pyproject.toml")),
)
