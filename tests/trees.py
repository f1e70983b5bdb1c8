"""A small hand-written extension that loads, and ways to break it: each names what must be found.

The ways are those that were tried on the real host (HOST.md, sections 1 and 2), and a few more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NAME = "audit_note"
MODULE = f"openjiuwen.extensions.harness.{NAME}"

MANIFEST = f"""\
schema_version: harness_config.v0.1
id: {NAME}
name: {NAME}
description: Write a note, and keep count.
resources:
  rails:
    - {{type: package, module: {MODULE}.rails.count_rail, class: CountRail}}
  tools:
    - {{type: package, module: {MODULE}.tools.note_tool, class: NoteTool}}
  skills:
    dirs: [skills/]
"""
TOOL = """\
import json
from pathlib import Path
from typing import Any

from openjiuwen.core.foundation.tool import Tool, ToolCard

from .paths import target

PARAMS = {"type": "object", "properties": {"text": {"type": "string"}, "output_path": {"type": "string"}}}


class NoteTool(Tool):
    def __init__(self) -> None:
        super().__init__(ToolCard(id="write_note", name="write_note", description="Write a note.", input_params=PARAMS))

    async def invoke(self, inputs: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        path = target(inputs["output_path"])
        path.write_text(json.dumps({"note": inputs["text"]}))
        return {"success": True, "path": inputs["output_path"], "format": "json", "exists": True, "size_bytes": path.stat().st_size}

    async def stream(self, inputs: dict[str, Any], **kwargs: Any) -> Any:
        yield await self.invoke(inputs, **kwargs)
"""
PATHS = """\
from pathlib import Path


def target(name: str) -> Path:
    return Path(name).absolute()
"""
RAIL = """\
from openjiuwen.harness.rails.base import DeepAgentRail


class CountRail(DeepAgentRail):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def after_tool_call(self, ctx) -> None:
        self.calls += 1
"""
SKILL = "---\nname: notes\ndescription: How notes are written. Use before writing one.\n---\n\n# Notes\n\nBe brief.\n"
ACCEPTANCE = f"""\
name: {NAME}
tool_tests:
  - tool_name: write_note
    inputs: {{text: hello, output_path: note.json}}
    expect: {{success: true, format: json}}
    assertions: {{required_fields: [success, path, format, exists, size_bytes]}}
rail_tests:
  - {{rail: CountRail}}
"""

FILES = {
    "__init__.py": "",
    "harness_config.yaml": MANIFEST,
    "tools/__init__.py": "",
    "tools/note_tool.py": TOOL,
    "tools/paths.py": PATHS,
    "rails/__init__.py": "",
    "rails/count_rail.py": RAIL,
    "skills/notes/SKILL.md": SKILL,
}


def write_tree(
    folder: Path, files: dict[str, str] | None = None, name: str = NAME, acceptance_text: str = ACCEPTANCE
) -> Path:
    """Write a tree and its acceptance file below `folder`, and return its root."""
    root = folder / "openjiuwen" / "extensions" / "harness" / name
    for path, text in (files if files is not None else FILES).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    acceptance = folder / "acceptance" / f"{name}.yaml"
    acceptance.parent.mkdir(exist_ok=True)
    acceptance.write_text(acceptance_text.replace(f"name: {NAME}", f"name: {name}"), encoding="utf-8")
    return root


def numbered(files: dict[str, str], number: int) -> dict[str, str]:
    """Give a tree names of its own, so that many can be loaded together."""
    names = {
        "audit_note": f"audit_note_{number}",
        "write_note": f"write_note_{number}",
        "NoteTool": f"NoteTool{number}",
    }
    names |= {
        "CountRail": f"CountRail{number}",
        "skills/notes/": f"skills/notes_{number}/",
        "name: notes": f"name: notes_{number}",
    }
    changed = {}
    for path, text in files.items():
        for before, after in names.items():
            path, text = path.replace(before, after), text.replace(before, after)  # noqa: PLW2901
        changed[path] = text
    return changed


def edited(path: str, before: str, after: str) -> dict[str, str]:
    assert before in FILES[path], f"{before} is not in {path}"
    return {**FILES, path: FILES[path].replace(before, after)}


def without(*paths: str) -> dict[str, str]:
    return {path: text for path, text in FILES.items() if path not in paths}


@dataclass(frozen=True)
class Broken:
    """A broken tree: its files, what reading must find, and what running in the host must find."""

    id: str
    files: dict[str, str]
    code: str  # of L1; empty when only the host can show it
    failure_id: str
    host: str = ""  # failure id in the host; empty when the host loads and runs it without complaint
    name: str = NAME


INVOKE = '        path = target(inputs["output_path"])\n        path.write_text(json.dumps({"note": inputs["text"]}))\n'
_LIE = 'return {"success": True, "path": inputs["output_path"], "format": "json", "exists": True, "size_bytes": 10}'
_RETURN = next(line for line in TOOL.splitlines() if "return {" in line).strip()


def invoke_with(body: str) -> dict[str, str]:
    """Replace what invoke does."""
    return edited("tools/note_tool.py", INVOKE + f"        {_RETURN}\n", f"        {body}\n")


def manifest(pattern: str, by: str) -> dict[str, str]:
    text = re.sub(pattern, by, MANIFEST, flags=re.DOTALL)
    assert text != MANIFEST
    return {**FILES, "harness_config.yaml": text}


LOAD = "harness_load_failed"
BROKEN = [
    Broken("a module that is missing", without("tools/note_tool.py"), "extension-module-missing", "module_import_failed", LOAD),
    Broken("a class that is missing", edited("tools/note_tool.py", "class NoteTool", "class OtherTool"), "extension-class-missing", "module_import_failed", LOAD),
    Broken("a syntax error", edited("tools/note_tool.py", "class NoteTool(Tool):", "class NoteTool(Tool:"), "extension-syntax", "module_import_failed", LOAD),
    Broken("a re-export in __init__", {**FILES, "tools/__init__.py": "from .note_tool import NoteTool\n"}, "extension-init-code", "module_import_failed", "module_import_failed"),
    Broken("constructor arguments", edited("tools/note_tool.py", "def __init__(self) -> None:", "def __init__(self, where) -> None:"), "extension-constructor", "class_init_failed", "class_init_failed"),
    Broken("no stream", edited("tools/note_tool.py", "async def stream", "async def stream_later"), "extension-tool-method", "class_init_failed", "class_init_failed"),
    Broken("a sync invoke", edited("tools/note_tool.py", "async def invoke", "def invoke"), "extension-tool-method", "tool_result_failed", "tool_result_failed"),
    Broken("not a tool", edited("tools/note_tool.py", "class NoteTool(Tool):", "class NoteTool(dict):"), "extension-not-a-tool", LOAD, LOAD),
    Broken("not a rail", edited("rails/count_rail.py", "class CountRail(DeepAgentRail):", "class CountRail(dict):"), "extension-not-a-rail", LOAD, LOAD),
    Broken("an entry point", manifest(r"type: package, module: [\w.]*note_tool, class: NoteTool", "type: entry_point, name: x"), "extension-entry-point", "entry_point_not_allowed", LOAD),
    Broken("a builtin that is none", manifest(r"type: package, module: [\w.]*count_rail, class: CountRail", "type: builtin, name: no_such_rail"), "extension-entry-type", "manifest_invalid", "rail_not_registered"),
    Broken("a foreign module", manifest(rf"{MODULE}\.tools\.note_tool, class: NoteTool", "json.encoder, class: JSONEncoder"), "extension-module-prefix", "module_import_failed", LOAD),
    Broken("another schema version", manifest("harness_config.v0.1", "harness_config.v9"), "extension-schema-version", "manifest_invalid", ""),
    Broken("no input schema", edited("tools/note_tool.py", "input_params=PARAMS", "input_params={}"), "extension-tool-schema", "manifest_invalid", "manifest_invalid"),
    Broken("no input schema by name", edited("tools/note_tool.py", re.search(r"PARAMS = .*", TOOL)[0], "PARAMS = {}"), "extension-tool-schema", "manifest_invalid", "manifest_invalid"),  # type: ignore[index]
    Broken("no id", edited("tools/note_tool.py", 'id="write_note", ', ""), "extension-tool-card", "manifest_invalid", ""),
    Broken("a hook that does not exist", edited("rails/count_rail.py", "after_tool_call", "on_after_call"), "extension-hook-unknown", "rail_hook_not_observed", "rail_hook_not_observed"),
    Broken("a sync hook", edited("rails/count_rail.py", "async def after_tool_call", "def after_tool_call"), "extension-hook-sync", "rail_hook_not_observed", "rail_hook_not_observed"),
    Broken("a hook that raises", edited("rails/count_rail.py", "self.calls += 1", "raise ValueError('no')"), "", "", "rail_hook_not_observed"),
    Broken("a guard that raises", edited("rails/count_rail.py", "async def after_tool_call(self, ctx) -> None:\n        self.calls += 1", "async def before_tool_call(self, ctx) -> None:\n        raise ValueError('no')"), "extension-guard-open", "rail_hook_not_observed", "rail_hook_not_observed"),
    Broken("a rail without hooks", edited("rails/count_rail.py", "async def after_tool_call", "async def helper"), "extension-rail-idle", "rail_hook_not_observed", "rail_hook_not_observed"),
    Broken("a lazy import of its own", edited("tools/note_tool.py", INVOKE, "        from .paths import target\n" + INVOKE), "extension-lazy-import", "tool_result_failed", "tool_result_failed"),
    Broken("resources by package name", edited("tools/note_tool.py", INVOKE, "        import importlib.resources\n        importlib.resources.files(__package__)\n" + INVOKE), "extension-lazy-import", "tool_result_failed", "tool_result_failed"),
    Broken("no skill folder", without("skills/notes/SKILL.md"), "extension-skills-missing", LOAD, LOAD),
    Broken("a skill folder outside", manifest(r"\[skills/\]", "[../../skills]"), "extension-path-escapes", "manifest_invalid", LOAD),
    Broken("a skill the host passes over", {**without("skills/notes/SKILL.md"), "skills/assets/SKILL.md": SKILL}, "extension-skill-hidden", "skill_not_loaded", "skill_not_loaded"),
    Broken("bad front matter", edited("skills/notes/SKILL.md", "Use before", "Use: before"), "skill-front-matter-yaml", "skill_manifest_invalid", ""),
    Broken("no front matter", {**FILES, "skills/notes/SKILL.md": "# Notes\n"}, "skill-front-matter-missing", "skill_manifest_invalid", ""),
    Broken("a manifest.json beside", {**FILES, "manifest.json": '{"package_type": "plugin", "id": "x"}'}, "extension-manifest-shadowed", "manifest_invalid", "tool_not_called"),
    Broken("a manifest that is no YAML", {**FILES, "harness_config.yaml": "a: [1"}, "document-syntax", "manifest_invalid", LOAD),
    Broken("a manifest with a key twice", manifest(r"description:", "name: again\ndescription:"), "document-duplicate-key", "manifest_invalid", ""),
    Broken("a secret", {**FILES, "tools/settings.py": 'KEY = "AKIA' + "ABCDEFGHIJKLMNOP" + '"\n'}, "extension-secret", "manifest_invalid", ""),
    Broken("another folder name", FILES, "extension-module-prefix", "module_import_failed", LOAD, name="renamed_note"),
    Broken("a tool that lies about a file", invoke_with(_LIE), "", "", "artifact_not_created"),
    Broken("a tool that writes a placeholder", invoke_with('Path(inputs["output_path"]).write_text("```json\\n{}\\n```"); return {"success": True, "path": inputs["output_path"], "format": "json", "exists": True, "size_bytes": 14}'), "", "", "artifact_placeholder_output"),
    Broken("a tool that lies about the size", invoke_with('Path(inputs["output_path"]).write_text("{\\"a\\": 1}"); return {"success": True, "path": inputs["output_path"], "format": "json", "exists": True, "size_bytes": 9999}'), "", "", "artifact_format_invalid"),
    Broken("a tool that writes outside", invoke_with('return {"success": True, "path": "/etc/hostname", "format": "json", "exists": True, "size_bytes": 1}'), "", "", "artifact_not_created"),
    Broken("a tool that raises", invoke_with('raise RuntimeError("boom")'), "", "", "tool_result_failed"),
    Broken("a tool that returns text", invoke_with('return "done"'), "", "", "tool_result_schema_missing"),
    Broken("a tool that returns nothing", invoke_with("return None"), "", "", "tool_result_schema_missing"),
    Broken("a tool that fails", invoke_with('return {"success": False, "error": "no disk"}'), "", "", "tool_result_failed"),
]  # fmt: skip

Check = Callable[[Path], None]
