"""From what the probe wrote down to findings: did each part do what it is there for?"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.acceptance import EXTERNAL
from extforge_harness.expecting import judge_result, short
from extforge_verifiers.extensions import open_tree
from extforge_verifiers.findings import Finding, Report, Where
from extforge_verifiers.hostnames import HOOKS
from extforge_verifiers.results import read_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_harness.acceptance import Acceptance, RailTest, ToolTest

__all__ = ["Trial", "judge", "plan_turns"]

STAND_IN = "extforge_probe"  # a harmless tool that gives the hooks something to see
LIAR = "extforge_liar"  # a tool that claims a file
ECHO = "extforge_echo"  # a tool that returns what an acceptance file says
_TRUE = '{"real": true}\n'  # the file of a true claim
_REFUSED = "callback execution aborted"
# Hooks that only an error, a resumed session or a steering message would fire.
_TRIALS = {"artifact_gate": "lie: true", "result_filter": "returns and hides", "output_guard": "says and hides"}
_RARE = frozenset(("on_model_exception", "on_tool_exception", "before_steering_drain"))
_LOOP_HOOKS = frozenset(("before_task_iteration", "after_task_iteration"))


@dataclass(slots=True)
class Trial:
    """One tree in a host run."""

    name: str
    tree: str  # where it came from; used in reports
    copy: Path  # what is run
    acceptance: Acceptance
    problems: list[Finding]  # with its acceptance file
    tools: list[str] = field(default_factory=list)
    does: dict[str, str] = field(default_factory=dict)  # tool -> what it does, as its manifest says
    environments: dict[int, dict[str, str]] = field(default_factory=dict)  # of tool tests that have a setup

    @property
    def session(self) -> str:
        """The session that all turns of this extension share; with the characters that real ids have."""
        return f"extforge:{self.name}/1"


# --------------------------------------------------------------------------- what to play


def plan_turns(trials: list[Trial]) -> dict[str, Any]:
    """Return the turns, the stand-in tools and whether the task loop is needed."""
    turns: list[dict[str, Any]] = []
    stand_ins = {STAND_IN}
    task_loop = False
    for trial in trials:
        tree = open_tree(str(trial.copy))
        metadata = tree.metadata.get("tools")
        for item in metadata if isinstance(metadata, list) else []:
            if isinstance(item, dict):
                trial.does[str(item.get("name"))] = str(item.get("does"))
        methods = {
            node.name
            for source in tree.sources.values()
            for cls in source.classes.values()
            for node in cls.body
            if hasattr(node, "name")
        }
        task_loop = task_loop or bool(methods & _LOOP_HOOKS)
        for index, test in enumerate(trial.acceptance.rail_tests):
            turns += _rail_turns(trial, index, test, stand_ins)
        # One harmless call comes first: hooks see it, and a report has something to report.
        turns.append(_turn(trial, "hooks", "Please use a tool.", [(STAND_IN, {})]))
        for index, tool in enumerate(trial.acceptance.tool_tests):
            # What reaches outside is only called with something harmless around it.
            ready = index in trial.environments or trial.does.get(tool.tool_name) not in EXTERNAL
            if tool.inputs is not None and ready:
                turn = _turn(trial, f"tool-{index}", tool.query, [(tool.tool_name, tool.inputs)])
                turns.append({**turn, "environment": trial.environments.get(index, {})})
    return {"turns": turns, "stand_ins": sorted(stand_ins), "task_loop": task_loop}


def _rail_turns(trial: Trial, index: int, test: RailTest, stand_ins: set[str]) -> Iterator[dict[str, Any]]:
    for what, arguments in (("blocks", test.blocks), ("passes", test.passes), ("rewrites", test.rewrites)):
        if arguments is not None:
            tool = test.tool_name or STAND_IN
            stand_ins.add(tool)
            yield _turn(trial, f"{what}-{index}", test.query, [(tool, arguments)], f"{trial.session}-{what}")
    if test.lie:
        tool = test.tool_name or LIAR
        stand_ins.add(tool)
        for what, path in (("lie", "not-there.json"), ("truth", "there.json")):
            claim = {"success": True, "path": path, "format": "json", "exists": True, "size_bytes": len(_TRUE)}
            files = {path: _TRUE} if what == "truth" else {}
            told = {"answers": {tool: claim}, "files": files}
            yield {
                **_turn(trial, f"{what}-{index}", test.query, [(tool, test.inputs)], f"{trial.session}-{what}"),
                **told,
            }
    if test.says is not None:
        says = {"says": test.says, "streams": True}
        yield {**_turn(trial, f"says-{index}", test.query, [], f"{trial.session}-says"), **says}
    if test.returns is not None:
        tool = test.tool_name or ECHO
        stand_ins.add(tool)
        calls = [(tool, test.inputs)]
        answers = {"answers": {tool: test.returns}}
        yield {**_turn(trial, f"returns-{index}", test.query, calls, f"{trial.session}-returns"), **answers}
    limits = [n + 1 for n in (test.refuses_after, test.finishes_after) if n is not None]
    number = max([test.calls, *limits])
    # A session of its own: a budget of another extension would count these calls too.
    session = f"{trial.session}-rail-{index}"
    yield _turn(trial, f"rail-{index}", test.query, [(STAND_IN, {})] * max(number, 1), session)


def _turn(
    trial: Trial, suffix: str, query: str, calls: list[tuple[str, dict[str, Any]]], session: str | None = None
) -> dict[str, Any]:
    return {
        "id": f"{trial.name}:{suffix}",
        "extension": trial.name,
        "session": session or trial.session,
        "query": query,
        "calls": [{"tool_name": name, "arguments": arguments} for name, arguments in calls],
    }


# --------------------------------------------------------------------------- what to make of it


def judge(trials: list[Trial], facts: dict[str, Any], work: str) -> list[Report]:
    """Return a report for each tree."""
    alone = {item["name"]: item for item in facts["alone"]}
    together = facts.get("together") or {}
    return [_Judge(trial, alone[trial.name], together, facts, work).report() for trial in trials]


class _Judge:
    """Looks at the facts from one tree's side."""

    def __init__(
        self, trial: Trial, alone: dict[str, Any], together: dict[str, Any], facts: dict[str, Any], work: str
    ) -> None:
        self.trial, self.alone, self.together, self.facts, self.work = (trial, alone, together, facts, work)
        self.turns = {turn["id"]: turn for turn in together.get("turns", [])}
        self.findings: list[Finding] = list(trial.problems)
        self.checked: list[str] = ["load"]
        self.skipped: dict[str, str] = {}
        self.open_question = ""
        self.version = _version(facts["openjiuwen"])

    def report(self) -> Report:
        """Judge everything; what depends on something that failed is skipped."""
        self._load()
        if not self.alone["loaded"]:
            self.skipped["run"] = "the extension does not load"
        elif not self.together.get("loaded"):
            self._together()
        else:
            self.checked.append("together")
            self._tools()
            self._rails()
            self._skills()
            self._unloading()
        facts = {
            "openjiuwen": self.facts["openjiuwen"],
            "python": self.facts["python"],
            "refs": self.alone.get("refs", []),
        }
        checked, findings = tuple(self.checked), tuple(self.findings)
        return Report(self.trial.tree, "extension", checked, self.skipped, facts, findings, self.open_question)

    def find(self, code: str, message: str, failure_id: str, fix: str | None = None) -> None:
        """Note an error of the tree."""
        where = Where(self.trial.tree)
        self.findings.append(Finding(code, message, where=where, fix=fix, failure_id=failure_id))

    # ----- loading

    def _load(self) -> None:
        if not self.alone["loaded"]:
            error = self.alone["error"]
            words = f"openJiuwen {self.facts['openjiuwen']} does not load it: {short(error['message'])}"
            for failure_id in _load_failures(error):
                self.find(f"host-{failure_id.replace('_', '-')}", words, failure_id)
            return
        tree = open_tree(str(self.trial.copy))
        added = self.alone["added"]
        self.trial.tools = added["abilities"]
        declared = _declared(tree.manifest, "rails")
        if len(added["rails"]) < len(declared):
            words = f"the manifest declares {len(declared)} rails, the host registered {len(added['rails'])}"
            names = ", ".join(added["rails"]) or "none"
            self.find("host-rail-not-registered", f"{words}: {names}", "rail_not_registered")
        for card in self.alone.get("cards", []):
            schema = card["input_params"]
            if not isinstance(schema, dict) or schema.get("type") != "object":
                words = f"the tool {card['name']!r} has no object schema for its inputs; model APIs refuse it"
                self.find("host-tool-schema", words, "manifest_invalid")
        if "unload_error" in self.alone:
            words = f"it cannot be unloaded: {short(self.alone['unload_error']['message'])}"
            self.find("host-unload", words, "harness_load_failed")
        elif left := self.alone.get("left_behind"):
            # 0.1.14 and 0.1.15 leave skill folders behind whatever the extension does.
            own = [item for item in left if not (item.startswith("skills:") and self.version < (0, 1, 16))]
            if own:
                self.find("host-unload", f"unloading leaves something behind: {'; '.join(own)}", "harness_load_failed")

    def _together(self) -> None:
        error = self.together.get("error") or {}
        if error.get("extension") == self.trial.name:
            words = f"it does not load together with the others: {short(error['message'])}"
            self.find("host-together", words, "harness_load_failed")
        else:
            self.skipped["run"] = "the extensions do not load together"

    # ----- tools

    def _tools(self) -> None:
        tried: set[str] = set()
        for index, test in enumerate(self.trial.acceptance.tool_tests):
            turn = self.turns.get(f"{self.trial.name}:tool-{index}")
            if turn is not None or self.trial.does.get(test.tool_name) not in EXTERNAL:
                self.checked.append(f"tool {test.tool_name}")
            if turn is not None:
                tried.add(test.tool_name)
                self._tool(test, turn)
        for name in self.trial.tools:
            if self.trial.does.get(name) == "custom":
                words = f"the tool {name!r} is not implemented"
                self.find("tool-not-implemented", words, "tool_result_failed", fix="write its run() function")
            elif name not in tried and self.trial.does.get(name) in EXTERNAL:
                fix = f"give it a setup in acceptance/{self.trial.name}.yaml"
                self.open_question = f"the tool {name!r} reaches outside and was not called: {fix}"
                self.skipped[f"tool {name}"] = f"it has no setup to be tried with; {fix}"
            elif name not in tried:
                words = f"the tool {name!r} was never called: the acceptance file gives it no inputs"
                fix = f"add inputs for it to acceptance/{self.trial.name}.yaml"
                self.find("host-tool-not-called", words, "tool_not_called", fix=fix)

    def _tool(self, test: ToolTest, turn: dict[str, Any]) -> None:
        if self.trial.does.get(test.tool_name) == "custom":
            return
        name = test.tool_name
        results = [r for r in turn["results"] if r["tool"] == name]
        if turn.get("error"):
            self.find(
                "host-turn-failed", f"the turn that calls {name!r} failed: {short(turn['error'])}", "tool_result_failed"
            )
        if name not in turn["offered"]:
            self.find("host-tool-not-offered", f"the model is not offered the tool {name!r}", "tool_not_registered")
        if name not in turn["executed"]:
            message = next((str(r["message"]) for r in results if r["message"]), "no reason given")
            words, fix = f"the call of {name!r} did not run: {short(message)}", None
            if guard := self._refused_by(turn):
                words = f"{guard} refused the call of {name!r}: {short(str(turn['tool_messages'][-1]))}"
                fix = f"give it inputs that the guard lets through in acceptance/{self.trial.name}.yaml"
                fix += ", or generate it again with the guard in the target"
            self.find("host-tool-not-called", words, "tool_not_called", fix=fix)
            return
        if not results or results[-1]["exception"]:
            reason = results[-1]["exception"] if results else "the host recorded no result"
            self.find("host-tool-raised", f"{name!r} raised: {short(reason)}", "tool_result_failed")
            return
        self._result(test, results[-1])

    def _result(self, test: ToolTest, seen: dict[str, Any]) -> None:
        root = os.path.join(self.work, self.trial.name)
        self.findings += judge_result(test, seen["result"], root=root).findings
        result = read_result(seen["result"]) or {}
        if test.expect.success and result.get("recorded") is False:
            words = (
                f"{test.tool_name!r} reports that nothing was recorded, after the rail saw calls in the same session"
            )
            self.find("host-state-not-shared", words, "rail_tool_state_not_shared")

    # ----- rails

    def _rails(self) -> None:
        hooks = self.together.get("hooks", {})
        tested = {test.rail: (i, test) for i, test in enumerate(self.trial.acceptance.rail_tests)}
        for rail in self.alone["added"]["rails"]:
            self.checked.append(f"rail {rail}")
            self._hooks(rail, hooks.get(rail, {}))
            if rail in tested:
                self._rail(*tested[rail])

    def _hooks(self, rail: str, seen: dict[str, Any]) -> None:
        if not seen:
            words = f"the host never asked {rail} for a hook: it overrides none that exists"
            self.find("host-hook-not-observed", words, "rail_hook_not_observed")
        for name, facts in sorted(seen.items()):
            if facts["errors"]:
                words = f"{rail}.{name} raises, and the host swallows it: {short(facts['errors'][0])}"
                self.find("host-hook-raised", words, "rail_hook_not_observed")
            elif not facts["calls"] and name in HOOKS and name not in _RARE:
                words = f"{rail}.{name} never fired"
                self.find("host-hook-not-observed", words, "rail_hook_not_observed")

    def _rail(self, index: int, test: RailTest) -> None:
        prefix = self.trial.name
        for what in ("blocks", "passes", "rewrites"):
            turn = self.turns.get(f"{prefix}:{what}-{index}")
            if turn is not None:
                self._guard(test, turn, what)
        if test.does == "guard" and ((test.blocks is None and test.rewrites is None) or test.passes is None):
            words = f"{test.rail} was not tried: the acceptance file gives no call to refuse, or none to let through"
            fix = f"add blocks and passes to acceptance/{prefix}.yaml"
            self.find("host-guard-not-tried", words, "rail_hook_not_observed", fix=fix)
        if test.does == "custom" and not (test.blocks or test.passes or test.shows):
            fix = f"add blocks, passes or shows to acceptance/{prefix}.yaml once it is written"
            self.open_question = f"nobody has said what {test.rail} should do: {fix}"
        tried = {"artifact_gate": test.lie, "result_filter": test.returns, "output_guard": test.says}
        if not tried.get(test.does, True):
            words = f"{test.rail} was not tried: the acceptance file gives it nothing to find"
            fix = f"add {_TRIALS[test.does]} to acceptance/{prefix}.yaml"
            self.find("host-rail-not-tried", words, "rail_hook_not_observed", fix=fix)
        self._gate(index, test)
        self._screen(index, test)
        turn = self.turns.get(f"{prefix}:rail-{index}")
        if turn is None:
            return
        if test.shows and not any(test.shows in text for text in turn["system"]):
            words = f"{test.rail} should show {test.shows!r:.60} in the system prompt, and never did"
            self.find("host-prompt-not-shown", words, "rail_hook_not_observed")
        if test.refuses_after is not None:
            self._limit(test, turn)
        if test.finishes_after is not None:
            ran = turn["executed"].count(STAND_IN)
            if ran > test.finishes_after or "used up" not in str((turn.get("answer") or {}).get("output")):
                words = f"{test.rail} should end the turn after {test.finishes_after} calls; {ran} ran"
                self.find("host-budget-open", words, "rail_hook_not_observed")
        if test.assertions.observable_state_file:
            self._state(test)

    def _gate(self, index: int, test: RailTest) -> None:
        """A false claim must come out as a failure, and a true one as it is."""
        for what in ("lie", "truth"):
            turn = self.turns.get(f"{self.trial.name}:{what}-{index}")
            if turn is None or not self._ran(test, turn, test.tool_name or LIAR):
                continue
            message = " ".join(str(m) for m in turn["tool_messages"])
            caught = "not true" in message or "no file" in message
            if what == "lie" and not caught:
                words = f"{test.rail} let a false claim through: the model read {short(message)}"
                self.find("host-gate-open", words, "rail_hook_not_observed")
            elif what == "truth" and (caught or "there.json" not in message):
                words = f"{test.rail} did not let a true claim through: the model read {short(message)}"
                self.find("host-gate-closed", words, "rail_hook_not_observed")

    def _ran(self, test: RailTest, turn: dict[str, Any], tool: str) -> bool:
        """Say whether the call that a rail is tried on came through to its tool; report when it did not."""
        if tool in turn["executed"]:
            return True
        message = " ".join(str(m) for m in turn["tool_messages"]) or str(turn.get("error", "no reason given"))
        guard = self._refused_by(turn) or "the host"
        words = f"{test.rail} was not tried: {guard} did not let the call of {tool} run: {short(message)}"
        fix = f"give it inputs that run in acceptance/{self.trial.name}.yaml"
        self.find("host-rail-not-tried", words, "rail_hook_not_observed", fix=fix)
        return False

    def _screen(self, index: int, test: RailTest) -> None:
        """What a screen hides must reach neither the user nor the model."""
        says = self.turns.get(f"{self.trial.name}:says-{index}")
        returns = self.turns.get(f"{self.trial.name}:returns-{index}")
        for turn, seen, reader in (
            (says, [says["answer"], says["streamed"]] if says and "answer" in says else None, "user"),
            (returns, returns["tool_messages"] if returns else None, "model"),
        ):
            if turn is None or (test.hides is None and test.keeps is None):
                continue
            if returns is not None and turn is returns and not self._ran(test, returns, test.tool_name or ECHO):
                continue
            text = json.dumps(seen, ensure_ascii=False)
            hidden, kept = (json.dumps(part or "", ensure_ascii=False)[1:-1] for part in (test.hides, test.keeps))
            if not seen or (hidden and hidden in text):
                words = f"{test.rail} should keep {test.hides!r:.60} from the {reader}, who read {short(text)}"
                self.find("host-screen-open", words, "rail_hook_not_observed")
            elif turn is returns and kept not in text:
                words = f"{test.rail} should let {test.keeps!r:.60} through to the {reader}, who read {short(text)}"
                self.find("host-screen-closed", words, "rail_hook_not_observed")

    def _guard(self, test: RailTest, turn: dict[str, Any], what: str) -> None:
        tool = test.tool_name or STAND_IN
        ran = tool in turn["executed"]
        message = short(" ".join(str(m) for m in turn["tool_messages"]))
        if what == "blocks" and ran:
            words = f"{test.rail} let a call of {tool} through that it must refuse: {json.dumps(test.blocks, ensure_ascii=False)}"
            self.find("host-guard-open", words, "rail_hook_not_observed")
        elif what == "passes" and not ran:
            words = f"{self._refused_by(turn) or test.rail} refused a good call of {tool}: {message}"
            self.find("host-guard-closed", words, "rail_hook_not_observed")
        elif what == "rewrites":
            seen = [i for name, i in zip(turn["executed"], turn["inputs"], strict=True) if name == tool]
            if not seen or any(seen[-1].get(key) != value for key, value in (test.into or {}).items()):
                words = f"{test.rail} should turn {test.rewrites} into {test.into}; the tool got {seen or 'no call'}"
                self.find("host-guard-open", words, "rail_hook_not_observed")

    def _refused_by(self, turn: dict[str, Any]) -> str:
        """Return the rail that refused a call of this turn, with its extension; empty when none did."""
        text = " ".join(str(message) for message in turn["tool_messages"])
        for item in self.facts["alone"]:
            for rail in item.get("added", {}).get("rails", []):
                hooks = self.together.get("hooks", {}).get(rail, {})
                aborts = [abort.partition(": ")[2] for facts in hooks.values() for abort in facts["aborts"]]
                if any(abort and abort in text for abort in aborts):
                    return f"{rail} of {item['name']}"
        return ""

    def _limit(self, test: RailTest, turn: dict[str, Any]) -> None:
        assert test.refuses_after is not None
        ran = turn["executed"].count(STAND_IN)
        refused = [m for m in turn["tool_messages"] if _REFUSED in str(m)]
        if ran > test.refuses_after or not refused:
            words = f"{test.rail} should refuse after {test.refuses_after} calls; {ran} ran"
            self.find("host-budget-open", words, "rail_hook_not_observed")

    def _state(self, test: RailTest) -> None:
        pattern = str(test.assertions.observable_state_file)
        folder = Path(self.work).parent / "state" / os.path.dirname(pattern)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", self.trial.session)
        files = [p for p in sorted(folder.glob(f"{stem}*")) if p.suffix in (".json", ".jsonl")]
        if not files:
            words = f"{test.rail} kept no state for the session in {pattern}"
            self.find("host-state-missing", words, "rail_hook_not_observed")
            return
        text = " ".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
        for wanted in test.assertions.json_contains:
            if wanted not in text:
                words = f"the state of {test.rail} has no {wanted!r}"
                self.find("host-state-missing", words, "rail_hook_not_observed")

    def _unloading(self) -> None:
        if "unload_error" in self.together:
            words = f"it cannot be unloaded after use: {short(self.together['unload_error']['message'])}"
            self.find("host-unload", words, "harness_load_failed")
        for item in self.together.get("left_behind", []):
            mine = item.startswith(f"sections: ['extforge_{self.trial.name}_")
            mine = mine or any(f"'{name}'" in item for name in (*self.alone["added"]["rails"], *self.trial.tools))
            if mine:
                self.find("host-unload", f"unloading after use leaves something behind: {item}", "harness_load_failed")

    # ----- skills

    def _skills(self) -> None:
        prompts = "\n".join(text for turn in self.turns.values() for text in turn["system"])
        for folder in self.alone["added"]["skills"]:
            for manifest in sorted(Path(folder).rglob("SKILL.md")):
                skill = manifest.parent.name
                self.checked.append(f"skill {skill}")
                if f"`{skill}`" not in prompts and skill not in prompts:
                    words = f"the model is not offered the skill {skill!r}"
                    self.find("host-skill-not-offered", words, "skill_not_loaded")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _declared(manifest: dict[str, Any], kind: str) -> list[Any]:
    resources = manifest.get("resources", manifest)
    found = resources.get(kind) if isinstance(resources, dict) else None
    if isinstance(found, dict):
        found = found.get("dirs", [found])
    return found if isinstance(found, list) else []


def _load_failures(error: dict[str, Any]) -> list[str]:
    """Return openJiuwen's attribution ids for a failure to load."""
    text = f"{error['type']} {error['message']} {error['trace']}"
    if re.search(
        r"No module named|cannot import name|SyntaxError|IndentationError|has no attribute|not found in module|partially initialized",
        text,
    ):
        return ["module_import_failed", "harness_load_failed"]
    if re.search(r"abstract class|missing \d+ required|__init__\(\)|unexpected keyword", text):
        return ["class_init_failed", "harness_load_failed"]
    if "entry_point" in text.partition("Registered types")[0]:  # which lists it beside an unknown type
        return ["entry_point_not_allowed", "harness_load_failed"]
    return ["harness_load_failed"]
