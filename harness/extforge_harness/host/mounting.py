"""What the installed openJiuwen does with each kind of component on each of its runtimes.

`try_mounts` starts this file as its own process: there every provider is handed a template with one kind of
component, and is asked to copy skills where its product looks for them.  No vendor's SDK is needed, and no model.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from extforge_harness.host.inside import Facts, Talk, do_job
from extforge_harness.host.process import converse, require_host

__all__ = ["KINDS", "try_mounts"]

KINDS = ("persona", "skill", "mcp", "tool", "rail", "subagent")
_TOOL = """\
from openjiuwen.core.foundation.tool import Tool, ToolCard


class NoteTool(Tool):
    def __init__(self):
        params = {"type": "object", "properties": {}}
        super().__init__(ToolCard(id="note", name="note", description="Note.", input_params=params))

    async def invoke(self, inputs, **kwargs):
        return {}

    async def stream(self, inputs, **kwargs):
        yield {}
"""
_RAIL = """\
from openjiuwen.harness.rails.base import DeepAgentRail


class NoteRail(DeepAgentRail):
    async def before_tool_call(self, ctx):
        return None
"""
_SKILL = "---\nname: notes\ndescription: How notes are written. Use before writing one.\n---\n\n# Notes\n\nBe brief.\n"


def try_mounts(skills: list[str], *, python: str | None = None, timeout: float = 120.0) -> dict[str, Any]:
    """Return what the host's providers accept and where they put skills.

    Args:
        skills: folders of skills, each with a SKILL.md.
        python: a Python that has openJiuwen; default: this one.
        timeout: seconds for everything.

    Returns:
        `providers` (their names), `accepts` (provider -> kind -> why not, or None) and `skills` (provider -> folder ->
        why it was not copied, or None).

    Raises:
        HostMissing: when openJiuwen is not installed there.
        HostFailed: when the host process gives no answer.
    """
    require_host(python)
    with tempfile.TemporaryDirectory(prefix="extforge-mounts-") as folder:
        return converse(Path(__file__), {"skills": skills}, Path(folder).resolve(), python=python, timeout=timeout)


# --------------------------------------------------------------------------- in the host's process


def template(folder: Path, kind: str) -> Path:
    """Write an agent template with one component of a kind, and return its folder."""
    manifest: dict[str, Any] = {"package_type": "agent_template", "name": f"only_{kind}", "description": "A trial."}
    parts: dict[str, tuple[Any, dict[str, str]]] = {
        "persona": ({"dir": "persona"}, {"persona/identity.md": "You are brief.\n"}),
        "skill": (["skills/notes"], {"skills/notes/SKILL.md": _SKILL}),
        "mcp": ([{"server_name": "notes", "type": "stdio", "command": "notes-server"}], {}),
        "tool": ([{"file": "note.py", "class": "NoteTool"}], {"note.py": _TOOL}),
        "rail": ([{"file": "note.py", "class": "NoteRail"}], {"note.py": _RAIL}),
        "subagent": (
            [{"dir": "reviewer"}],
            {"reviewer/.subagent.json": '{"agent_name": "reviewer", "display_description": {"en": "Reviews."}}'},
        ),
    }
    value, files = parts[kind]
    manifest[kind if kind == "persona" else f"{kind}s"] = value
    for name, text in {**files, "manifest.json": json.dumps(manifest)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _accepts(provider: Any, kind: str, folder: Path) -> str | None:
    """Return why a provider does not take a kind of component; None when it does."""
    from openjiuwen.harness_providers.factory import build_harness_context, create_harness

    manifest = template(folder, kind)
    try:
        create_harness(manifest, provider=provider)
        context = build_harness_context(manifest, provider=provider, host_session_id="trial", language="en")
    except ValueError as exc:
        return str(exc)
    if kind == "mcp" and not provider.startswith("native") and not context.mcp_servers:
        return "the MCP server does not reach the context"
    return None


def _copied(provider: str, skill: str, project: Path) -> str | None:
    """Return why the provider's own installer did not copy a skill; None when it is there, byte for byte."""
    from openjiuwen.harness_providers.skills import install_skills, normalize_skills

    project.mkdir(parents=True)
    try:
        install_skills(normalize_skills([skill], "skip"), provider=provider, cwd=str(project))
    except (OSError, TypeError, ValueError) as exc:
        return str(exc)
    original = (Path(skill) / "SKILL.md").read_bytes()
    found = [path for path in project.rglob("SKILL.md") if path.read_bytes() == original]
    return None if found else "its SKILL.md is not in the project"


def run(job: Facts, _: Talk) -> Facts:
    """Try every kind of component, and every skill, on every provider."""
    work = Path.cwd()
    from openjiuwen.harness_providers import factory
    from openjiuwen.harness_providers.skills import _SCAN_DIRS

    providers = list(factory.PROVIDER_NAMES)
    return {
        "providers": providers,
        "accepts": {p: {k: _accepts(p, k, work / "templates" / p / k) for k in KINDS} for p in providers},
        "skills": {
            p: {s: _copied(p, s, work / "projects" / p / str(n)) for n, s in enumerate(job["skills"])}
            for p in _SCAN_DIRS
        },
    }


if __name__ == "__main__":
    do_job(run)
