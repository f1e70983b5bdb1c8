"""What to try on a generated extension: derived from the plan, written beside the tree, edited by people.

The keys are those of openJiuwen's own test spec (its verify_ext skill), plus what is needed to really run a tool:
`inputs` and `expect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge.samples import sample_inputs
from extforge.serialise import manifest_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge.derive import Blueprint, Rail, Tool

__all__ = ["acceptance_text", "build_acceptance"]

_HEAD = """\
# What `extforge verify --host` tries on this extension. Edit it freely: it is yours.
# `inputs` go to the tool as they are; relative paths land in a scratch folder.
"""


def acceptance_text(blueprint: Blueprint, formats: Mapping[str, str]) -> str:
    """Return the acceptance file of an extension."""
    return _HEAD + manifest_text(build_acceptance(blueprint, formats))


def build_acceptance(
    blueprint: Blueprint, formats: Mapping[str, str]
) -> dict[str, Any]:
    """Return the content of the acceptance file."""
    spec: dict[str, Any] = {
        "name": blueprint.name,
        "components": list(blueprint.design.components),
        "prewarm_queries": [],
    }
    if blueprint.tools:
        spec["tool_tests"] = [_tool_test(blueprint, tool) for tool in blueprint.tools]
    if blueprint.rails:
        spec["rail_tests"] = [
            _rail_test(blueprint, rail, formats) for rail in blueprint.rails
        ]
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
    inputs = (
        given.inputs
        if given is not None and given.inputs is not None
        else _inputs(blueprint, tool)
    )
    expect: dict[str, Any] = {"success": tool.does != "custom"}
    fields = ["success"]
    if tool.does == "artifact":
        expect["format"] = tool.format
        if tool.options.get("minimum"):
            expect["minimum"] = tool.options["minimum"]
        fields += ["path", "format", "exists", "size_bytes"]
    if given is not None:
        expect.update(given.expect)
    test: dict[str, Any] = {
        "tool_name": tool.name,
        "query": given.query
        if given is not None and given.query
        else f"Please use {tool.name}.",
    }
    if inputs is not None:
        test["inputs"] = inputs
    test["expect"] = expect
    test["assertions"] = {
        "must_call_tool": True,
        "tool_result_success": expect["success"],
        "required_fields": fields,
    }
    return test


def _inputs(blueprint: Blueprint, tool: Tool) -> dict[str, Any] | None:
    if tool.does == "artifact":
        name = f"{tool.name}{blueprint.suffix}.{tool.format}"
        return sample_inputs(tool, name, blueprint.description)
    return {} if tool.does == "report" else None


def _rail_test(
    blueprint: Blueprint,
    rail: Rail,
    formats: Mapping[str, str],
) -> dict[str, Any]:
    test: dict[str, Any] = {"rail": rail.class_name, "does": rail.does}
    if rail.does == "guard":
        test.update(_guard_calls(rail, formats))
        test["query"] = "Please write a file."
        test["assertions"] = {"must_observe_side_effect": True}
        return test
    test["query"] = "Please do something with a tool."
    stateful = rail.does in ("audit", "budget", "reminder")
    test["assertions"] = {"must_observe_side_effect": rail.does != "custom"}
    if stateful:
        test["assertions"]["observable_state_file"] = (
            f"openjiuwen-extensions/{blueprint.name}/<session_id>.json"
        )
    return test


def _guard_calls(rail: Rail, formats: Mapping[str, str]) -> dict[str, Any]:
    """Return one call that the guard must refuse and one that it must let through."""
    watched = rail.options.get("tools") or []
    tool = next(iter(watched), "") or next(iter(formats), "") or "write_file"
    argument = "output_path" if tool in formats else "path" if watched else "file_path"
    require, forbid = (
        rail.options.get("require") or {},
        rail.options.get("forbid") or {},
    )
    extension = f".{formats[tool]}" if tool in formats else ".txt"
    extension = (require.get("extension") or [extension])[0]
    suffix = require.get("stem_suffix") or ""
    folder = f"{require['folder'][0]}/" if require.get("folder") else ""
    calls: dict[str, Any] = {"tool_name": tool}
    if (
        require.get("pattern")
        or require.get("argument")
        or forbid.get("pattern")
        or forbid.get("argument")
    ):
        calls["note"] = (
            "give one call the guard must refuse (blocks) and one it must let through (passes)"
        )
        return calls
    good = f"{folder}report{suffix}{extension}"
    if suffix:
        bad = f"{folder}report{extension}"
    elif require.get("extension"):
        bad = f"{folder}report.exe"
    elif folder:
        bad = f"elsewhere_report{extension}"
    elif forbid.get("extension"):
        bad = f"report{forbid['extension'][0]}"
    elif forbid.get("stem_suffix"):
        bad = f"report{forbid['stem_suffix']}{extension}"
    elif forbid.get("folder"):
        bad = f"{forbid['folder'][0]}/report{extension}"
    else:
        bad = f"../../outside/report{extension}"
    calls["blocks"] = {argument: bad}
    calls["passes"] = {argument: good}
    return calls
