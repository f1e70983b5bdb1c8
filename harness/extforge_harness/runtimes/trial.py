"""Try the code of a runtime that is being onboarded: `python -m extforge_harness.runtimes.trial adapter|contracts FOLDER`.

Its own process, because it imports that package.  Writes what does not hold as JSON: a list of [finding code, words].
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from extforge_harness.runtimes.adapters import AdapterInput, AdapterOutput, adapt
from extforge_harness.runtimes.bundle import Entry
from extforge_harness.runtimes.catalog import (
    Catalog,
    ExtensionFacts,
    RailFacts,
    ServerFacts,
    SkillFacts,
    ToolFacts,
    build_catalog,
)
from extforge_harness.runtimes.contracts import check_round_trip, load_contracts
from extforge_harness.runtimes.descriptors import Registry, built_in, read_runtime

__all__ = ["SAMPLE", "broken_rules", "find_problems", "sample_catalog"]

# One of each kind, with and without an MCP server of its own.
SAMPLE = (
    ExtensionFacts(
        "sample_notes",
        tools=(ToolFacts("write_note", "WriteNoteTool", "Write a note to a JSON file.", "mutating_local", ("json",)),),
        rails=(RailFacts("NoteAuditRail", "audit"),),
        skills=(SkillFacts("note_style", "How notes are written. Use before writing one."),),
        servers=(ServerFacts("note_server"),),
        root="sample_notes",
    ),
    ExtensionFacts(
        "sample_search",
        tools=(ToolFacts("search_notes", "SearchNotesTool", "Search the notes that exist.", "safe_read"),),
        served=("search_notes",),
        root="sample_search",
    ),
)


def sample_catalog(folder: str | Path) -> Catalog:
    """Return the sample capabilities on the built-in runtimes and the one in `folder`.

    Raises:
        DocumentError: when its runtime.yaml is bad.
    """
    runtime = read_runtime(Path(folder) / "runtime.yaml")
    registry = Registry(built_in(), {}).with_runtime(runtime, Path(folder).resolve().name)
    return build_catalog(SAMPLE, registry)


def broken_rules(catalog: Catalog, runtime_id: str) -> list[str]:
    """Return which rules of the facade an adapter breaks, one line each.

    1. nothing enabled: no prompt, no hints, no tools;
    2. one capability enabled: its text is in the prompt, and exactly its tools can be called;
    3. its text is, byte for byte, the text that every other runtime uses;
    4. every layer of the bundle arrives, and what cannot be called here is told about, with where it can.
    """
    found: list[str] = []
    empty: Any = adapt(runtime_id, AdapterInput(catalog, enabled=frozenset()))
    if not isinstance(empty, AdapterOutput):
        return [f"adapt returns {type(empty).__name__}, not AdapterOutput"]
    if empty.runtime_id != runtime_id:
        found.append(f"the output is for {empty.runtime_id!r}")
    if empty.system_prompt != "" or empty.hints.values or empty.tool_names:
        found.append("with nothing enabled there is still a prompt, a hint or a tool")
    for capability in catalog.capabilities:
        output = adapt(runtime_id, AdapterInput(catalog, enabled=frozenset((capability.id,))))
        works = capability.exposure[runtime_id].usable
        expected = capability.tool_names if works else ()
        if output.tool_names != expected:
            found.append(f"{capability.id}: the tools are {output.tool_names}, not {expected}")
        if not works or not capability.fragment:
            continue
        if capability.fragment not in output.system_prompt:
            found.append(f"{capability.id}: its text is not in the prompt")
        texts = {f.text for f in output.compiled.capability_fragments}
        for other in catalog.registry.ids:
            if capability.exposure[other].usable and other not in catalog.registry.packages:
                same = adapt(other, AdapterInput(catalog, enabled=frozenset((capability.id,))))
                if {f.text for f in same.compiled.capability_fragments} != texts:
                    found.append(f"{capability.id}: its text differs from that on {other}")
    known = Entry("~/.other/x", "skill", "x", "~/.other", executable=False, perception_hint="in ~/.other")
    layered = adapt(
        runtime_id, AdapterInput(catalog, frozenset(), user=(replace(known, id="here/x"),), external=(known,))
    )
    if len(layered.bundle.entries) != 2 or layered.bundle.text not in layered.system_prompt:
        found.append("a layer of the bundle does not arrive in the prompt")
    return found


def find_problems(what: str, folder: str | Path) -> list[tuple[str, str]]:
    """Return what does not hold about the adapter, or the artifact contracts, in `folder`: (finding code, words)."""
    path = Path(folder)
    try:
        if what == "contracts":
            contracts = load_contracts(str(path / "contracts.yaml"))
            return [(f.code, f.message) for contract in contracts for f in check_round_trip(contract)]
        runtime = read_runtime(path / "runtime.yaml").id
        return [("runtime-adapter", words) for words in broken_rules(sample_catalog(path), runtime)]
    except Exception as exc:  # noqa: BLE001 -- whatever the package does wrong is an answer
        code = "runtime-contract-import" if what == "contracts" else "runtime-adapter"
        return [(code, f"{type(exc).__name__}: {exc}")]


def main(what: str, folder: str) -> None:
    """Write the problems as JSON; whatever the package itself prints goes to stderr."""
    path = Path(folder).resolve()
    sys.path.insert(0, str(path.parent))
    out = os.dup(1)
    os.dup2(2, 1)
    problems = find_problems(what, path)
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        json.dump(problems, stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
