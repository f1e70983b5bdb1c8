"""From blueprints to files: Copier renders the templates, with data that is already safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extforge import __version__
from extforge.acceptance import acceptance_text
from extforge.bundle import BUNDLED_FORMATS, bundle
from extforge.derive import SHARED_PARTS
from extforge.errors import TemplateError
from extforge.rules import MODULE_PREFIX
from extforge.serialise import json_text, manifest_text
from extforge.skills import skill_files
from extforge_harness import errors
from extforge_harness.acceptance import EXTERNAL
from extforge_harness.templating import Copier, template_folder
from extforge_verifiers.frontmatter import SKILL_PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from extforge.derive import Blueprint, Rail, Tool
    from extforge.staging import Staged

__all__ = ["render_plan", "requirements_of", "template_folder"]

_REQUIREMENTS = {
    "pptx": ("lxml>=4.9", "python-pptx>=1.0"),
    "docx": ("python-docx>=1.1",),
    "xlsx": ("openpyxl>=3.1",),
    "pdf": ("fonttools>=4.40", "reportlab>=4.1"),
    "png": ("fonttools>=4.40", "matplotlib>=3.8"),
}


def render_plan(blueprints: list[Blueprint], staged: Staged, template: Path | None = None) -> None:
    """Render every file of the plan into `staged`, by its path relative to the target.

    Args:
        blueprints: the designs, in generation order.
        staged: an empty tree.
        template: a template folder; default: the packaged `extension`.

    Raises:
        TemplateError: when a template does not render.
    """
    formats = {t.name: t.format for b in blueprints for t in b.tools if t.format}
    copier = Copier(template or template_folder())
    for blueprint in blueprints:
        try:
            copier.copy(staged.folder / blueprint.root, build_context(blueprint, formats))
        except errors.TemplateError as exc:
            raise TemplateError(str(exc)) from exc
        staged.add_tree(blueprint.root)
        staged.write(f"acceptance/{blueprint.name}.yaml", acceptance_text(blueprint, formats).encode("utf-8"))


# --------------------------------------------------------------------------- the context


def build_context(blueprint: Blueprint, formats: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template sees.  Names are identifiers by now; texts are serialised here."""
    layout = _Layout(blueprint)
    rails = [_rail_context(layout, blueprint, rail, formats) for rail in blueprint.rails]
    return {
        "name": blueprint.name,
        "version": __version__,
        "manifest": manifest_text(build_manifest(blueprint)),
        "requirements": "".join(f"{line}\n" for line in requirements_of(blueprint)),
        "packages": layout.packages,
        "tools": [_tool_context(layout, tool) for tool in blueprint.tools],
        "rails": rails,
        "guards": [rail for rail in rails if rail["does"] == "guard"],
        "shared_parts": layout.shared,
        "verifier_files": layout.verifier_files,
        "served": _served_text(blueprint),
        "skills": [skill_files(blueprint, skill) for skill in blueprint.skills if not skill.source],
    }


def _shared_parts(blueprint: Blueprint) -> list[str]:
    """Return which of SHARED_PARTS the tools and rails of an extension need."""
    writes = {tool.format for tool in blueprint.tools if tool.format}
    does = {tool.does for tool in blueprint.tools} | {rail.does for rail in blueprint.rails}
    needs = {
        "inputs": blueprint.tools,
        "artifact": writes,
        "fonts": writes & {"pdf", "png"},
        "figures": writes & {"png", "svg", "html"},
        "drawing": writes & {"svg", "html"},
        "places": does & set(EXTERNAL),
        "network": does & {"http"},
        "calls": blueprint.rails,
        "screen": does & {"output_guard", "result_filter"},
        "state": does & {"audit", "budget", "reminder"},
    }
    return [part for part, reasons in needs.items() if reasons]


class _Layout:
    """Which modules the extension has besides its tools and rails, and where."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.name = blueprint.name
        self.parts = {part: f"{home}.{self.name}_{part}" for part, home in SHARED_PARTS.items()}
        self.verify = f"{'tools' if blueprint.tools else 'rails'}.{self.name}_verify"
        shared = {part: self.parts[part] for part in _shared_parts(blueprint)}
        self.shared = [
            {"skeleton": part, "path": _path(module), "modules": self.modules(module, module)}
            for part, module in shared.items()
        ]
        formats = {tool.format for tool in blueprint.tools if tool.format}
        if any(rail.does == "artifact_gate" for rail in blueprint.rails):
            formats = set(BUNDLED_FORMATS)
        verifier = bundle(tuple(sorted(formats))) if formats else {}
        self.verifier_files = [
            {"path": f"{_path(self.verify)}/{name}", "text": text} for name, text in verifier.items()
        ]
        modules = [tool.module for tool in blueprint.tools] + [rail.module for rail in blueprint.rails]
        modules += shared.values()
        self.packages = sorted({package for module in modules for package in _parents(module)})

    def modules(self, module: str, work: str) -> list[tuple[str, str]]:
        """Return (key, how `module` imports it) for every part of the extension, in ruff's order."""
        targets = {**self.parts, "work": work}
        targets |= {f"verify_{name}": f"{self.verify}.{name}" for name in ("checking", "findings", "table")}
        found = [(key, relative_import(module, t)) for key, t in targets.items()]
        # isort: the furthest parent first, then by name.
        return sorted(found, key=lambda pair: (-_dots(pair[1]), pair[1]))


def _dots(name: str) -> int:
    return len(name) - len(name.lstrip("."))


def relative_import(module: str, target: str) -> str:
    """Return `..rails.x_state` for a module `tools.x` that needs `rails.x_state`.

    Relative, because the tree is loaded under openJiuwen's package by the host and under any other name by us.
    """
    here, there = module.split(".")[:-1], target.split(".")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return "." * (len(here) - common + 1) + ".".join(there[common:])


def _path(module: str) -> str:
    return module.replace(".", "/")


def _parents(module: str) -> list[str]:
    parts = module.split(".")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def _served_text(blueprint: Blueprint) -> str:
    """Return what its MCP server serves, as JSON: tools, and (extension, module) of the guards they are under."""
    if not blueprint.served:
        return ""
    guards = [
        ("" if g.extension == blueprint.name else g.extension, work) for g in blueprint.applying for work in g.works
    ]
    data = {
        "name": blueprint.name,
        "version": __version__,
        "tools": sorted(tool.work for tool in blueprint.served),
        "guards": sorted(guards),
    }
    return json_text(data)


def _class_line(name: str, base: str) -> str:
    """Return the class statement as ruff formats it."""
    line = f"class {name}({base}):"
    return line if len(line) <= 88 else f"class {name}(\n    {base}\n):"


def _tool_context(layout: _Layout, tool: Tool) -> dict[str, Any]:
    skeleton = f"artifact_{tool.format}" if tool.does == "artifact" else tool.does
    data: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "mutation": tool.mutation,
        "input_params": tool.input_params,
        "options": tool.options,
    }
    return {
        "name": tool.name,
        "does": tool.does,
        "skeleton": skeleton,
        "class_name": tool.class_name,
        "class_line": _class_line(tool.class_name, "Tool"),
        "extension": layout.name,
        "work": tool.work,
        "work_path": _path(tool.work),
        "adapter_path": _path(tool.module),
        "modules": layout.modules(tool.module, tool.work),
        "data": json_text(data),
    }


def _rail_context(layout: _Layout, blueprint: Blueprint, rail: Rail, formats: Mapping[str, str]) -> dict[str, Any]:
    options = dict(rail.options)
    data: dict[str, Any] = {"class": rail.class_name, "options": options}
    if rail.does == "guard":
        data["tools"] = options.pop("tools", [])
        data["formats"] = {name: f".{form}" for name, form in sorted(formats.items())}
    return {
        "does": rail.does,
        "class_name": rail.class_name,
        "class_line": _class_line(rail.class_name, "DeepAgentRail"),
        "work": rail.work,
        "work_path": _path(rail.work),
        "adapter_path": _path(rail.module),
        "modules": layout.modules(rail.module, rail.work),
        "data": json_text(data),
        "rewrites": options.get("on_violation") == "rewrite",
        "reporters": [tool.name for tool in blueprint.tools if tool.does == "report"],
        "section": f"extforge_{layout.name}_{blueprint.rails.index(rail) + 1}",
        "depth": rail.module.count("."),
    }


# --------------------------------------------------------------------------- manifest and requirements


def build_manifest(blueprint: Blueprint) -> dict[str, Any]:
    """Return the content of harness_config.yaml; the plan's patch is merged in, under what we must have."""
    design = blueprint.design
    prefix = f"{MODULE_PREFIX}.{blueprint.name}"
    resources: dict[str, Any] = {}
    if blueprint.rails:
        resources["rails"] = [_resource(prefix, rail) for rail in blueprint.rails]
    if blueprint.tools:
        resources["tools"] = [_resource(prefix, tool) for tool in blueprint.tools]
    if blueprint.skills:
        resources["skills"] = {"dirs": ["skills/"]}
    patch = {key: value for key, value in design.harness_config_patch.items() if key != "resources"}
    own: dict[str, Any] = {
        "schema_version": "harness_config.v0.1",
        "id": blueprint.name,
        "name": blueprint.name,
        "description": blueprint.description,
    }
    metadata = patch.pop("metadata", {})
    extension: dict[str, Any] = {
        "gap_id": design.gap_id,
        "kind": design.kind,
        "depends_on": list(design.depends_on),
        "applies_to": list(design.applies_to),
        "tools": [
            {
                "name": t.name,
                "class": t.class_name,
                "does": t.does,
                "mutation": t.mutation,
                **({"format": t.format} if t.format else {}),
                **({"state": t.options["state"]} if t.does == "report" else {}),
            }
            for t in blueprint.tools
        ],
        "rails": [
            {"class": r.class_name, "does": r.does, **({"work": r.work} if r.does == "guard" else {})}
            for r in blueprint.rails
        ],
        "skills": [skill.name for skill in blueprint.skills],
        **({"skill_profile": blueprint.skill_profile} if _names_profile(blueprint) else {}),
        "generator": f"extforge {__version__}",
    }
    if blueprint.served:
        guards = sorted(guard.extension for guard in blueprint.applying)
        extension["mcp"] = {"tools": [tool.name for tool in blueprint.served], "guards": guards}
    return {**own, **patch, "resources": resources, "metadata": {**metadata, "extension": extension}}


def _names_profile(blueprint: Blueprint) -> bool:
    return bool(blueprint.skills) and blueprint.skill_profile != SKILL_PROFILES[0]


def _resource(prefix: str, part: Tool | Rail) -> dict[str, str]:
    return {"type": "package", "module": f"{prefix}.{part.module}", "class": part.class_name}


def requirements_of(blueprint: Blueprint) -> list[str]:
    """Return the third-party packages that an extension needs, as lines of requirements.txt."""
    wanted = {line for tool in blueprint.tools for line in _REQUIREMENTS.get(tool.format, ())}
    if blueprint.served:
        wanted |= {"anyio>=4.5", "mcp>=1.10,<2"}
    wanted |= {line.replace(" ", "") for line in blueprint.design.requirements}
    return sorted(wanted, key=str.lower)
