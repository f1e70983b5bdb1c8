"""The frame of the chapter about the host: all its examples are run in two host processes; see `code_frames`.

The bad ones are in the one and the good ones in the other, because guards and gates reach beyond their extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trees
import yaml
from support import components_of, design, merged

from extforge.check import check_source
from extforge.explaining import Example, read_chapters
from extforge.generate import generate
from extforge.reading import read_answer
from extforge_harness.acceptance import Acceptance, ToolTest
from extforge_harness.host.judge import Trial, judge
from extforge_harness.host.run import _prepare, verify_in_host
from extforge_verifiers import Finding
from extforge_verifiers.documents import read_document

if TYPE_CHECKING:
    from code_frames import Case, Frame

CHAPTER = "In the host"
KINDS = ("bad", "good")
ACCEPTANCE = trees.ACCEPTANCE.partition("rail_tests:")[0]
INVOKE = trees.TOOL.partition("**kwargs: Any) -> dict[str, Any]:\n")[2].partition("\n    async def stream")[0]
SECTION = """\
    def init(self, agent) -> None:
        from openjiuwen.core.single_agent.prompts.builder import PromptSection

        self.builder = agent.system_prompt_builder
        self.builder.add_section(PromptSection("extforge_audit_note_x", {"en": "Be brief."}))

"""
UNINIT = """\
    def uninit(self, agent) -> None:
        self.builder.remove_section("extforge_audit_note_x")

"""

Files = dict[str, str]


def hosted(case: Case) -> Iterable[Finding]:
    """The example is a design, or changes the hand-written tree; what is tried on it stands beside."""
    return _run(case.folder.parent, case.example.kind)[_text(case.code, case.example)]


@cache
def _run(folder: Path, kind: str) -> dict[str, list[Finding]]:
    """Run all examples of a kind in one process of the host; return what it finds about each, by their texts."""
    sections = next(c for c in read_chapters() if c.title == CHAPTER).sections.values()
    texts = {_text(section.code, e) for section in sections for e in section.examples if e.kind == kind}
    trees_of = _write(folder / f"host-{kind}", sorted(texts))
    reports = {report.path: report.findings for report in verify_in_host(list(trees_of.values())).reports}
    return {text: list(reports[path]) for text, path in trees_of.items()}


def _text(code: str, example: Example) -> str:
    return example.text or f"{code}: {example.kind}"


def _write(folder: Path, texts: list[str]) -> dict[str, str]:
    """Write the tree of each example, with names of its own; one that another maker makes is left out."""
    by_hand = [text for text in texts if text in WORDS or re.match(r"(edit|put|drop|body)\(", text)]
    found = {text: _hand_written(folder / "by-hand", number, text) for number, text in enumerate(by_hand)}
    others = [text for text in texts if text not in found and text not in MAKERS]
    rules = [text for text in others if "kind: constraint" in text]  # they would reach the designs of their plan
    for number, group in enumerate([[text for text in others if text not in rules], *([text] for text in rules)]):
        found |= _designed(folder / f"plan{number}", group, f"sales_deck_{number}")
    return found


# --------------------------------------------------------------------------- hand-written trees


def _edit(name: str, pattern: str, text: str) -> Files:
    changed = re.sub(pattern, lambda _: text, trees.FILES[name], flags=re.DOTALL)
    assert changed != trees.FILES[name], f"{pattern} is not in {name}"
    return {name: changed}


def _body(text: str, **expect: Any) -> Files:
    """Return the tool with another body, and what its acceptance file expects."""
    test = {"tool_name": "write_note", "inputs": {"text": "hello", "output_path": "note.json"}, "expect": expect}
    acceptance = yaml.safe_dump({"name": trees.NAME, "tool_tests": [test]})
    tool = trees.TOOL.replace(INVOKE, f"        {text}\n")
    return {"tools/note_tool.py": tool, "acceptance": acceptance}


NAMES = {
    "edit": _edit,
    "body": _body,
    "put": lambda n, text: {n: text},
    "drop": lambda n: {n: ""},
    "skill": trees.SKILL,
}
WORDS: dict[str, Files] = {  # about rails
    "host-unload: bad": _edit("rails/count_rail.py", "    async def", f"{SECTION}    async def"),
    "host-unload: good": _edit("rails/count_rail.py", "    async def", f"{SECTION}{UNINIT}    async def"),
}


def _hand_written(folder: Path, number: int, text: str) -> str:
    files = {"acceptance": ACCEPTANCE, **trees.FILES, **(WORDS[text] if text in WORDS else eval(text, dict(NAMES)))}
    for part, pattern in (("rail", r"  rails:\n    - .*?\n"), ("skill", r"  skills:\n.*?\n")):
        if part not in text and text not in WORDS:  # what does not matter is left out: every turn asks every rail
            files = {name: content for name, content in files.items() if not name.startswith(part)}
            files["harness_config.yaml"] = re.sub(pattern, "", files["harness_config.yaml"])
    numbered = trees.numbered({name: content for name, content in files.items() if content}, number)
    numbered |= {name: "" for name in files if name.endswith("__init__.py")}
    acceptance = numbered.pop("acceptance").replace(f"name: audit_note_{number}", f"name: {trees.NAME}")
    return str(trees.write_tree(folder, numbered, f"audit_note_{number}", acceptance))


# --------------------------------------------------------------------------- designs


def _designed(folder: Path, texts: list[str], prefix: str) -> dict[str, str]:
    """Generate the designs of examples, and put what is tried beside each into its acceptance file."""
    names = {f"{prefix}_{number}": text for number, text in enumerate(texts)}
    values = {n: read_document(text.replace("sales_deck", n).encode(), "x.yaml").value for n, text in names.items()}
    tests = {n: {f"{key}s": v.pop(key) for key in ("tool_test", "rail_test") if key in v} for n, v in values.items()}
    designs = [merged(design(name, components=components_of(value)), value) for name, value in values.items()]
    plan = check_source(read_answer(yaml.safe_dump(designs), "plan.yaml"), max_designs=100)
    generated = generate(plan, str(folder))
    for name, patches in tests.items():
        path = folder / "acceptance" / f"{name}.yaml"
        acceptance = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key, patch in patches.items():
            acceptance[key][0] = merged(acceptance[key][0], patch)
        path.write_text(yaml.safe_dump(acceptance), encoding="utf-8")
    return {names[Path(root).name]: str(generated.target / root) for root in generated.roots}


# --------------------------------------------------------------------------- records


def recorded(case: Case, change: Any) -> Iterable[Finding]:
    """Judge the record of a run in which all went well, but for what `change` does to it in the bad example."""
    tree = trees.write_tree(
        case.folder, {k: v for k, v in trees.FILES.items() if not k.startswith(("rails", "skills"))}
    )
    test = ToolTest(tool_name="write_note", inputs={})
    trial = Trial(trees.NAME, str(tree), tree, Acceptance(name=trees.NAME, tool_tests=[test]), [])
    result = {"tool": "write_note", "exception": None, "result": {"success": True}, "message": ""}
    turn = {"id": f"{trees.NAME}:tool-0", "offered": ["write_note"], "executed": ["write_note"], "results": [result]}
    card = {"name": "write_note", "description": "Write a note.", "input_params": {"type": "object"}}
    added = {"abilities": ["write_note"], "rails": ["CountRail"], "skills": []}
    hooks = {"CountRail": {"after_tool_call": {"calls": 1, "errors": []}}}
    alone = {"name": trees.NAME, "loaded": True, "refs": ["skill:notes"], "added": added, "cards": [card]}
    together = {"loaded": True, "turns": [{**turn, "system": []}], "hooks": hooks}
    if case.example.kind == "bad":
        change(together)
    facts = {"openjiuwen": "0.1.19", "python": "3", "alone": [alone], "together": together}
    return judge([trial], facts, str(case.folder))[0].findings


def same_names(case: Case) -> Iterable[Finding]:
    """Two trees have one name."""
    error = {"extension": trees.NAME, "message": "write_note is already bound"}
    return recorded(case, lambda together: together.update(loaded=False, error=error))


def two_trees(case: Case) -> Iterable[Finding]:
    """Two trees in two folders, of one name or of two."""
    names = [trees.NAME, trees.NAME if case.example.kind == "bad" else "more_notes"]
    paths = [trees.write_tree(case.folder / str(number), name=name) for number, name in enumerate(names)]
    return [finding for report in _prepare([str(p) for p in paths], case.folder)[1] for finding in report.findings]


def broken_turn(case: Case) -> Iterable[Finding]:
    """The turn of a tool is broken off after its call."""
    return recorded(case, lambda together: together["turns"][0].update(error="TimeoutError: no answer"))


FRAMES: dict[str, Frame] = {CHAPTER: hosted}
MAKERS: dict[str, Frame] = {
    **{f"host-name-twice: {kind}": two_trees for kind in KINDS},
    **{f"host-together: {kind}": same_names for kind in KINDS},
    **{f"host-turn-failed: {kind}": broken_turn for kind in KINDS},
}
