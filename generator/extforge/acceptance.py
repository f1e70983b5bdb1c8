"""What to try on a generated extension: derived from the plan, written beside the tree, edited by people.

The keys are those of openJiuwen's own test spec (its verify_ext skill), plus what is needed to really run a tool:
`inputs` and `expect`, and for rails the calls they must refuse or let through.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from extforge.filenames import fitting_path
from extforge.patterns import example
from extforge.samples import sample_inputs, sample_values
from extforge.serialise import manifest_text
from extforge.skills import skill_body
from extforge_harness.acceptance import EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge.derive import Blueprint, Rail, Tool

__all__ = ["ACCEPTANCE_HEAD", "acceptance_text", "build_acceptance"]

LONGEST_TURN = 20  # calls that one turn of an acceptance run may make
ACCEPTANCE_HEAD = """\
# What `extforge verify --host` tries on this extension. Edit it freely: it is yours.
# `inputs` go to the tool as they are; relative paths land in a scratch folder.
"""


def acceptance_text(blueprint: Blueprint, formats: Mapping[str, str]) -> str:
    """Return the acceptance file of an extension."""
    return ACCEPTANCE_HEAD + manifest_text(build_acceptance(blueprint, formats))


def build_acceptance(blueprint: Blueprint, formats: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of the acceptance file.

    Args:
        blueprint: the extension.
        formats: tool name -> format, for every artifact tool of the plan.
    """
    spec: dict[str, Any] = {
        "name": blueprint.name,
        "components": list(blueprint.design.components),
        "prewarm_queries": [],
    }
    if blueprint.tools:
        spec["tool_tests"] = [_tool_test(blueprint, tool) for tool in blueprint.tools]
    if blueprint.rails:
        spec["rail_tests"] = [_rail_test(blueprint, rail, formats) for rail in blueprint.rails]
    if blueprint.skills:
        spec["skill_tests"] = [
            {
                "skill": skill.name,
                "query": f"Which skill covers {skill.name}?",
                "assertions": {"answer_contains_any": [skill.name]},
            }
            for skill in blueprint.skills
        ]
    return spec


def _tool_test(blueprint: Blueprint, tool: Tool) -> dict[str, Any]:
    given = blueprint.design.acceptance.get(tool.name)
    inputs = given.inputs if given is not None else None
    if inputs is None:
        inputs = _inputs(blueprint, tool)
    expect: dict[str, Any] = {"success": tool.does != "custom"}
    fields = ["success"]
    if tool.does == "artifact":
        expect["format"] = tool.format
        if tool.options.get("minimum"):
            expect["minimum"] = tool.options["minimum"]
        fields += ["path", "format", "exists", "size_bytes"]
    if given is not None:
        expect.update(given.expect)
    query = given.query if given is not None else None
    test: dict[str, Any] = {"tool_name": tool.name, "query": query or f"Please use {tool.name}."}
    if inputs is not None:
        test["inputs"] = inputs
    if given is not None and given.setup is not None:
        test["setup"] = given.setup.model_dump(mode="json", by_alias=True, exclude_unset=True)
    test["expect"] = expect
    test["assertions"] = {"must_call_tool": True, "tool_result_success": expect["success"], "required_fields": fields}
    return test


def _inputs(blueprint: Blueprint, tool: Tool) -> dict[str, Any] | None:
    if tool.does == "artifact":
        name = fitting_path(tool.name, f".{tool.format}", blueprint.guards.get(tool.name, []))
        return sample_inputs(tool, name, blueprint.description)
    if tool.does in EXTERNAL:
        return sample_values(tool.input_params)
    return {} if tool.does == "report" else None


def _rail_test(blueprint: Blueprint, rail: Rail, formats: Mapping[str, str]) -> dict[str, Any]:
    options = rail.options
    test: dict[str, Any] = {"rail": rail.class_name, "does": rail.does, "query": "Please use a tool."}
    match rail.does:
        case "guard":
            test.update(_guard_calls(rail, formats, blueprint.guards))
        case "artifact_gate":
            test["lie"] = True
            test.update(_named_call(options, blueprint.guards))
        case "prompt":
            words = options.get("when_mentions") or []
            test["query"] += f" {words[0]}" if words else ""
            test["shows"] = _first_line(_prompt_text(blueprint, options))
        case "reminder" if options["every"] <= LONGEST_TURN:
            test["calls"] = options["every"]
            test["shows"] = _first_line(options["text"])
        case "budget" if options.get("calls", LONGEST_TURN + 1) <= LONGEST_TURN:
            match options["on_exceed"]:
                case "block":
                    test["refuses_after"] = options["calls"]
                case "finish":
                    test["finishes_after"] = options["calls"]
                case _:
                    test.update(calls=options["calls"], shows="Budget used up")
        case "output_guard":
            test.update(_said(options["patterns"]))
        case "result_filter":
            test.update(_returned(options))
            test.update(_named_call(options, blueprint.guards))
        case _:
            pass
    test["assertions"] = {"must_observe_side_effect": rail.does != "custom"}
    if rail.does in ("audit", "budget", "reminder"):
        state = f"openjiuwen-extensions/{blueprint.name}/<session_id>.json"
        test["assertions"]["observable_state_file"] = state
    return test


def _said(patterns: list[str]) -> dict[str, Any]:
    """Return an answer of the model that the rail must not let through as it is."""
    hidden = next((text for pattern in patterns if (text := example(pattern))), None)
    return {"says": f"Here it is: {hidden} .", "hides": hidden} if hidden else {}


def _returned(options: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's result that the model must not read as it is, with a part that it must read."""
    keys, patterns, most = options.get("drop_keys", []), options.get("patterns", []), options.get("max_characters")
    good = {} if any(re.search(pattern, "kept: good") for pattern in patterns) or "kept" in keys else {"kept": "good"}
    keeps = {"keeps": "good"} if good else {}
    if keys:
        return {"returns": {**good, keys[0]: "for nobody"}, "hides": "for nobody", **keeps}
    if said := _said(patterns):
        return {"returns": {**good, "note": said["says"]}, "hides": said["hides"], **keeps}
    if most:
        note = "long " * (most // 5 + 1) + "the very end"
        return {"returns": {**good, "note": note}, "hides": "the very end", **keeps}
    return {}


def _named_call(options: dict[str, Any], guards: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the tool whose results a rail looks at, when it is not any, and arguments that guards let through."""
    tool = next(iter(options.get("tools") or []), "")
    rules = [rule.get("require") or {} for rule in guards.get(tool, guards.get("", []))]
    wanted = {name: example(p) for rule in rules for name, p in (rule.get("argument") or {}).items()}
    inputs = {name: text for name, text in wanted.items() if text}
    return {**({"tool_name": tool} if tool else {}), **({"inputs": inputs} if inputs else {})}


def _prompt_text(blueprint: Blueprint, options: dict[str, Any]) -> str:
    if options.get("text"):
        return str(options["text"])
    skill = next((s for s in blueprint.skills if s.name == options.get("skill")), None)
    return skill_body(blueprint, skill) if skill is not None else ""


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:80].rstrip() if lines else ""


def _guard_calls(rail: Rail, formats: Mapping[str, str], guards: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return one call that the guard must refuse and one that it must let through."""
    watched = rail.options.get("tools") or []
    tool = next(iter(watched), "") or next(iter(formats), "") or "write_file"
    argument = "output_path" if tool in formats else "file_path"
    require = rail.options.get("require") or {}
    forbid = rail.options.get("forbid") or {}
    rules = guards.get(tool, guards.get("", [rail.options]))
    allowed = [rule["require"]["extension"][0] for rule in rules if (rule.get("require") or {}).get("extension")]
    extension = next(iter(allowed), f".{formats.get(tool, 'txt')}")
    # What this guard lets through, another one that watches the same tool must not refuse.
    fitting = fitting_path("report", extension, rules)
    blocks, passes = _pattern_calls(require, forbid, argument)
    if passes is not None and argument in passes and len(rules) > 1:
        passes = {argument: fitting}
    if blocks is None and passes is None:
        bad, good = _file_names(require, forbid, extension)
        good = fitting if len(rules) > 1 else good
        if rail.options.get("on_violation") == "rewrite":
            return {
                "tool_name": tool,
                "rewrites": {argument: bad},
                "into": {argument: good},
                "passes": {argument: good},
            }
        blocks, passes = {argument: bad}, {argument: good}
    calls = {"tool_name": tool, "blocks": blocks, "passes": passes}
    return {key: value for key, value in calls.items() if value is not None}


def _file_names(require: dict[str, Any], forbid: dict[str, Any], extension: str) -> tuple[str, str]:
    """Return a file name that breaks the rule, and one that keeps it."""
    suffix = require.get("stem_suffix") or ""
    folder = f"{require['folder'][0]}/" if require.get("folder") not in (None, [], ["."]) else ""
    good = f"{folder}report{suffix}{extension}"
    if suffix:
        return f"{folder}report{extension}", good
    if require.get("extension"):
        return f"{folder}report.exe", good
    if folder:
        return f"elsewhere_report{extension}", good
    if forbid.get("extension"):
        return f"report{forbid['extension'][0]}", good
    if forbid.get("stem_suffix"):
        return f"report{forbid['stem_suffix']}{extension}", good
    if forbid.get("folder"):
        return f"{forbid['folder'][0]}/report{extension}", good
    return f"../../outside/report{extension}", good


_Arguments = dict[str, Any] | None


def _pattern_calls(require: dict[str, Any], forbid: dict[str, Any], argument: str) -> tuple[_Arguments, _Arguments]:
    """Return (refused, let through) for rules that are regular expressions."""
    if pattern := require.get("pattern"):
        return _examples(pattern, argument)
    if pattern := forbid.get("pattern"):
        miss, match = _examples(pattern, argument)
        return match, miss
    if rules := require.get("argument"):
        name, pattern = next(iter(rules.items()))
        return _examples(pattern, name)
    if rules := forbid.get("argument"):
        name, pattern = next(iter(rules.items()))
        miss, match = _examples(pattern, name)
        return match, miss
    return None, None


def _examples(pattern: str, argument: str) -> tuple[_Arguments, _Arguments]:
    """Return arguments that do not match a pattern, and arguments that do."""
    match = example(pattern)
    candidates = ("report.txt", "report", "x", "0", "zz-zz", "Report 1.TXT", "报告 1.txt")
    miss = next((t for t in candidates if not re.fullmatch(pattern, t)), None)
    return {argument: miss} if miss else None, {argument: match} if match else None
