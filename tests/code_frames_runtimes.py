"""The frames of the chapter about runtimes; see `code_frames`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import anyio
import trees
import yaml
from onboarded import describe, smoke, write_contract, write_fixtures
from support import merged

from extforge.onboarding import scaffold_runtime
from extforge_harness.errors import CatalogError, HostFailed
from extforge_harness.host.run import HostRun
from extforge_harness.runtimes import onboarding, serving
from extforge_harness.runtimes.catalog import ExtensionFacts
from extforge_harness.runtimes.descriptors import ENTRY_POINTS, Registry, built_in, load_registry, read_provider
from extforge_harness.runtimes.proving import prove
from extforge_harness.runtimes.trees import catalog
from extforge_harness.runtimes.trial import find_problems
from extforge_verifiers import DocumentError, Finding
from extforge_verifiers.documents import read_document

if TYPE_CHECKING:
    from code_frames import Case, Frame

REGISTRY = Registry(built_in(), {})
ADAPTER, TESTS = ([name for name, _, _ in onboarding.STEPS].index(name) for name in ("adapter", "contract tests"))
KINDS = ("rail", "tool", "skill", "mcp", "persona", "subagent")


def runtime(case: Case) -> Iterable[Finding]:
    """The example changes the package of a new runtime, lists manifests, or says what a proof sees."""
    try:
        if case.calls:
            return _gate(case)
        value = read_document(case.data(), "example.yaml").value
        if isinstance(value, list) or "name" in value:
            return _catalog(case.folder, value if isinstance(value, list) else [value])
        return _prove(case.folder, value)
    except (DocumentError, CatalogError) as exc:
        return exc.findings


# --------------------------------------------------------------------------- the gate

_DONE: dict[str, list[Finding]] = {}  # many good examples are the same


def _gate(case: Case) -> list[Finding]:
    text = case.example.text
    if text not in _DONE:
        package = _package(case)
        before = _looked_at(package)
        functions = [_put, _edit, _merge, _drop, _contract, _register, _provider]
        names = {function.__name__[1:]: partial(function, package) for function in functions}
        changes: Iterable[str | Finding] = eval(text, names)
        changed = [item for item in changes if isinstance(item, str)]
        looked_at = before | _looked_at(package)
        steps = [number for number, name in sorted(looked_at) if name in changed]
        with _here(package):
            _DONE[text] = list(_steps(package, list(dict.fromkeys(steps))))
    return _DONE[text]


def _package(case: Case) -> Path:
    """Return a package for which the gate is green; it is made once."""
    good = case.folder.parent / "hermes" / "hermes_runtime"
    if not good.is_dir():
        scaffold_runtime("hermes", str(good.parent))
        write_fixtures(good)
        describe(good)
        smoke(good)
        for name in onboarding.TESTS:  # its own take seconds
            (good / "tests" / name).write_text("def test_it():\n    pass\n", encoding="utf-8")
    return Path(shutil.copytree(good, case.folder / good.name))


def _looked_at(package: Path) -> set[tuple[int, str]]:
    """Return (step of the gate, a file that it looks at)."""
    return {
        (number, path.relative_to(package).as_posix())
        for number, (_, _, patterns) in enumerate(onboarding.STEPS)
        for pattern in patterns
        for path in package.glob(pattern)
        if number != ADAPTER or "tests" not in path.parts
    }


def _steps(package: Path, numbers: list[int]) -> Iterator[Finding]:
    """Yield what these steps find; the first that finds something ends it.

    Those that run the adapter and the package's tests are taken only when they are the first.
    """
    if not (package / "runtime.yaml").is_file():
        onboarding.run_gate(str(package))
    slow = (ADAPTER, TESTS)
    for number in numbers[:1] if numbers and numbers[0] in slow else [n for n in numbers if n not in slow]:
        found = list(onboarding.STEPS[number][1](package))
        yield from found
        if found:
            return


@contextlib.contextmanager
def _here(package: Path) -> Iterator[None]:
    """Run the package's code in this process, and let it be installed."""

    def try_here(root: Path, what: str, path: Path) -> Iterator[Finding]:
        yield from (Finding(code, words) for code, words in find_problems(what, root))

    entry = EntryPoint("hermes", f"{package.name}:adapt", ENTRY_POINTS)
    with (
        mock.patch.object(sys, "path", [str(package.parent), *sys.path]),
        mock.patch.object(onboarding, "_try", try_here),
        mock.patch.object(onboarding, "entry_points", return_value=[entry]),
    ):
        try:
            yield
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
                del sys.modules[name]


def _put(package: Path, name: str, text: str) -> list[str]:
    (package / name).write_text(text, encoding="utf-8")
    return [name]


def _edit(package: Path, name: str, before: str, after: str) -> list[str]:
    text = (package / name).read_text(encoding="utf-8")
    assert before in text
    return _put(package, name, text.replace(before, after, 1))


def _merge(package: Path, name: str, patch: Any) -> list[str]:
    value = read_document((package / name).read_bytes(), name).value
    return _put(package, name, json.dumps(merged(value, patch)))


def _drop(package: Path, name: str) -> list[str]:
    (package / name).unlink()
    return [name]


def _contract(package: Path, **fields: Any) -> list[str]:
    write_contract(package, **fields)
    return ["contracts.yaml"]


def _register(package: Path, name: str, folder: str) -> list[str]:
    load_registry([(name, str(package / folder))])
    return []


def _provider(_: Path, name: str) -> list[str]:
    read_provider(name)
    return []


def hidden_reason(case: Case) -> Iterable[Finding]:
    """The table has lost the reasons."""
    package = _package(case)
    with _here(package), mock.patch.object(onboarding, "show_matrix", return_value=""):
        return list(onboarding.check_visibility(package))[:1]


# --------------------------------------------------------------------------- the catalog

LIST = trees.TOOL.replace("NoteTool", "ListTool").replace("write_note", "list_notes")
MANIFEST: dict[str, Any] = {
    "schema_version": "harness_config.v0.1",
    "name": "notes",
    "resources": {"tools": [{"module": "tools.note_tool", "class": "NoteTool"}], "skills": {"dirs": ["skills/"]}},
}


def _catalog(folder: Path, manifests: list[dict[str, Any]]) -> list[Finding]:
    for number, patch in enumerate(manifests):
        _tree(folder / f"tree{number}", patch)
    catalog([str(folder)], REGISTRY)
    return []


def _tree(folder: Path, patch: dict[str, Any]) -> Path:
    manifest = merged(MANIFEST, patch) if patch.get("resources") != {} else {**MANIFEST, **patch}
    root = folder / manifest["name"]
    files = {"tools/note_tool.py": trees.TOOL, "tools/list_tool.py": LIST, "skills/notes/SKILL.md": trees.SKILL}
    for name, text in {"harness_config.yaml": yaml.safe_dump(manifest), "mcp_server.py": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def lost_skill(case: Case) -> Iterable[Finding]:
    """A SKILL.md is a link that leads nowhere."""
    skill = _tree(case.folder, {}) / "skills/notes/SKILL.md"
    skill.unlink()
    skill.symlink_to("gone.md")
    try:
        catalog([str(case.folder)], REGISTRY)
    except CatalogError as exc:
        return exc.findings
    return []


# --------------------------------------------------------------------------- proofs


def _prove(folder: Path, seen: dict[str, Any]) -> list[Finding]:
    """Prove `notes`, with stand-ins for its server and for openJiuwen that say what the example says."""
    guard = seen.get("server", {}).get("guard")
    mcp = {"tools": ["write_note"], "guards": ["notes"] if guard is not None else []}
    root = _tree(folder, {"metadata": {"extension": {"mcp": mcp}}})
    found = catalog([str(root)], REGISTRY)
    with (
        mock.patch("extforge_harness.runtimes.proving.try_server", partial(_serve, folder, seen.get("server", {}))),
        mock.patch("extforge_harness.host.run.verify_in_host", partial(_host, seen.get("host", {}))),
        mock.patch("extforge_harness.host.mounting.try_mounts", partial(_mounts, seen)),
    ):
        return prove(found).findings


def _serve(folder: Path, seen: dict[str, Any], facts: ExtensionFacts, cwd: str, **_: Any) -> serving.ServerTrial:
    """Hold a session with a server that says what it should, but for what the example says."""
    if seen.get("error"):
        raise HostFailed(seen["error"])
    (tool,) = facts.tools
    text = {"text": "hello", "output_path": "note.json"}
    inputs = text if seen.get("inputs", text) is not None else None
    blocks = {"rail_tests": [{"rail": "NotesRail", "does": "guard", **seen["guard"]}]} if "guard" in seen else {}
    tests = {"tool_tests": [{"tool_name": "write_note", "inputs": inputs}]}
    (folder / "acceptance").mkdir()
    (folder / "acceptance/notes.yaml").write_text(json.dumps({"name": "notes", **tests, **blocks}))

    class Session:
        async def list_tools(self) -> Any:
            card = {"description": tool.description, "inputSchema": dict(tool.schema)}
            return SimpleNamespace(tools=[SimpleNamespace(name=n, **card) for n in seen.get("tools", ["write_note"])])

        async def call_tool(self, _: str, arguments: dict[str, Any]) -> Any:
            good = seen.get("answer", {"success": True})
            answer = good if arguments == inputs or not seen["refuses"] else {"success": False, "refused": True}
            return SimpleNamespace(structuredContent=answer)

    async def session() -> serving.ServerTrial:
        trial = serving.ServerTrial(facts.name)
        await serving._list(trial, facts, Session())
        good = await serving._call(trial, facts, Session(), cwd)
        for name in facts.guards:
            await serving._refuse(trial, facts, name, Session(), good)
        return trial

    return anyio.run(session)


def _host(seen: dict[str, Any], roots: list[str], scratch: str, **_: Any) -> HostRun:
    if seen.get("error"):
        raise HostFailed(seen["error"])
    (tool,) = catalog(roots, REGISTRY).extensions[0].tools
    card = {"name": tool.name, "description": seen.get("description", tool.description), "input_params": tool.schema}
    facts = {"alone": [{"name": "notes", "loaded": True, "cards": [card]}]}
    Path(scratch, "result.json").write_text(json.dumps(facts, default=dict))
    return HostRun("0", "3", [], scratch)


def _mounts(seen: dict[str, Any], skills: list[str], **_: Any) -> dict[str, Any]:
    """Return that openJiuwen does what the registry says, but for what the example says."""
    accepts = {}
    for one in REGISTRY.runtimes:
        mounts = {kind: getattr(one.mounts, kind) for kind in KINDS}
        takes, refuses = (seen.get(key, {}).get(one.id, []) for key in ("takes", "refuses"))
        accepts[one.id] = {
            kind: None if kind in takes or (kind not in refuses and mount.status == "live") else "no"
            for kind, mount in mounts.items()
            if mount is not None
        }
    copied = {
        name: {s: "no" if os.path.basename(s) in seen.get("refuses", {}).get(name, []) else None for s in skills}
        for name in accepts
    }
    return {"providers": list(accepts), "accepts": accepts, "skills": copied}


FRAMES: dict[str, Frame] = {"Runtimes": runtime}
MAKERS: dict[str, Frame] = {"runtime-cell: bad": hidden_reason, "runtime-skill-unreadable: bad": lost_skill}
