"""From blueprints to files: Copier renders the templates, with data that is already safe.

Measured on Copier 9.19: it half-writes into existing folders on an error, reads the user's settings file and
changes the working directory of the process.  So every design is rendered into a fresh folder of its own, with
settings of ours, before anything touches the target.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge import __version__
from extforge.acceptance import acceptance_text
from extforge.bundle import BUNDLED_FORMATS, bundle
from extforge.errors import TemplateError
from extforge.rules import MODULE_PREFIX
from extforge.serialise import json_text, manifest_text
from extforge.skills import skill_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from extforge.derive import Blueprint, Rail, Tool

__all__ = ["render_design", "render_plan", "render_template", "template_folder"]

_REQUIREMENTS = {
    "pptx": ("lxml>=4.9", "python-pptx>=1.0"),
    "docx": ("python-docx>=1.1",),
    "xlsx": ("openpyxl>=3.1",),
    "pdf": ("fonttools>=4.40", "reportlab>=4.1"),
    "png": ("fonttools>=4.40", "matplotlib>=3.8"),
}


def template_folder(name: str = "extension") -> Path:
    """Return the folder of a packaged template."""
    return Path(str(files("extforge_templates").joinpath(name)))


def render_plan(blueprints: list[Blueprint], template: Path | None = None) -> dict[str, bytes]:
    """Return every file of the plan: path relative to the target -> bytes.

    Args:
        blueprints: the designs, in generation order.
        template: a template folder; default: the packaged `extension`.

    Raises:
        TemplateError: when a template does not render.
    """
    formats = {t.name: t.format for b in blueprints for t in b.tools if t.format}
    found: dict[str, bytes] = {}
    for blueprint in blueprints:
        tree = render_design(blueprint, template or template_folder(), formats)
        found.update({f"{blueprint.root}/{path}": data for path, data in tree.items()})
        text = acceptance_text(blueprint, formats)
        found[f"acceptance/{blueprint.name}.yaml"] = text.encode("utf-8")
    return found


def render_design(blueprint: Blueprint, template: Path, formats: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of one extension: path relative to its root -> bytes."""
    return render_template(template, build_context(blueprint, formats))


def render_template(template: Path, context: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a template renders: path -> bytes.

    Raises:
        TemplateError: when it does not render.
    """
    with tempfile.TemporaryDirectory(prefix="extforge-") as folder:
        # Copier and we both follow symlinks of the system's temporary folder; resolve it once.
        target = Path(folder).resolve() / "tree"
        _copy(template, target, dict(context))
        return {
            path.relative_to(target).as_posix(): path.read_bytes()
            for path in sorted(target.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


@contextmanager
def _quiet_copier() -> Iterator[None]:
    """Run Copier without the user's settings, and come back to the same working directory."""
    before = os.environ.get("COPIER_SETTINGS_PATH")
    here = os.getcwd()
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as settings:
        settings.write("{}\n")
        settings.flush()
        os.environ["COPIER_SETTINGS_PATH"] = settings.name
        try:
            yield
        finally:
            os.chdir(here)
            if before is None:
                del os.environ["COPIER_SETTINGS_PATH"]
            else:
                os.environ["COPIER_SETTINGS_PATH"] = before


def _copy(template: Path, target: Path, context: dict[str, Any]) -> None:
    import copier  # noqa: PLC0415 -- half a second that only rendering should pay
    import jinja2  # noqa: PLC0415
    from copier.errors import CopierError  # noqa: PLC0415

    try:
        with _quiet_copier():
            copier.run_copy(
                str(template), target, data=context, defaults=True, overwrite=True, quiet=True, unsafe=False
            )
    except (CopierError, jinja2.TemplateError, OSError, ValueError) as exc:
        raise TemplateError(f"the template {template.name!r} does not render: {exc}") from exc


# --------------------------------------------------------------------------- the context


def build_context(blueprint: Blueprint, formats: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template sees.  Names are identifiers by now; texts are serialised here."""
    layout = _Layout(blueprint)
    rails = [_rail_context(layout, blueprint, rail, formats) for rail in blueprint.rails]
    return {
        "name": blueprint.name,
        "version": __version__,
        "manifest": manifest_text(build_manifest(blueprint)),
        "requirements": _requirements_text(blueprint),
        "packages": layout.packages,
        "tools": [_tool_context(layout, tool) for tool in blueprint.tools],
        "rails": rails,
        "guards": [rail for rail in rails if rail["does"] == "guard"],
        "shared_parts": layout.shared,
        "verifier_files": layout.verifier_files,
        "served": _served_text(blueprint),
        "skills": [skill_files(blueprint, skill) for skill in blueprint.skills if not skill.source],
    }


class _Layout:
    """Which modules the extension has besides its tools and rails, and where."""

    def __init__(self, blueprint: Blueprint) -> None:
        name = self.name = blueprint.name
        formats = {tool.format for tool in blueprint.tools if tool.format}
        if any(rail.does == "artifact_gate" for rail in blueprint.rails):
            formats = set(BUNDLED_FORMATS)
        home = "tools" if blueprint.tools else "rails"
        self.inputs = f"tools.{name}_inputs"
        self.artifact = f"tools.{name}_artifact"
        self.fonts = f"tools.{name}_fonts"
        self.verify = f"{home}.{name}_verify"
        self.state = f"rails.{name}_state"
        self.calls = f"rails.{name}_calls"
        shared = []
        if blueprint.tools:
            shared.append(("inputs", self.inputs))
        if any(tool.format for tool in blueprint.tools):
            shared.append(("artifact", self.artifact))
        if formats & {"pdf", "png"} and any(tool.format in ("pdf", "png") for tool in blueprint.tools):
            shared.append(("fonts", self.fonts))
        if blueprint.rails:
            shared.append(("calls", self.calls))
        if any(rail.does in ("audit", "budget", "reminder") for rail in blueprint.rails):
            shared.append(("state", self.state))
        self.shared = [
            {"skeleton": skeleton, "path": _path(module), "modules": self.modules(module, module)}
            for skeleton, module in shared
        ]
        self.verifier_files = []
        if formats:
            for file_name, text in bundle(tuple(sorted(formats))).items():
                self.verifier_files.append({"path": f"{_path(self.verify)}/{file_name}", "text": text})
        modules = [tool.module for tool in blueprint.tools] + [rail.module for rail in blueprint.rails]
        modules += [module for _, module in shared]
        packages = {package for module in modules for package in _parents(module)}
        self.packages = sorted(packages)

    def modules(self, module: str, work: str) -> list[tuple[str, str]]:
        """Return (key, how `module` imports it) for every part of the extension, in ruff's order."""
        targets = {
            "artifact": self.artifact,
            "calls": self.calls,
            "fonts": self.fonts,
            "inputs": self.inputs,
            "state": self.state,
            "verify_checking": f"{self.verify}.checking",
            "verify_findings": f"{self.verify}.findings",
            "verify_table": f"{self.verify}.table",
            "work": work,
        }
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
        "generator": f"extforge {__version__}",
    }
    if blueprint.served:
        guards = sorted(guard.extension for guard in blueprint.applying)
        extension["mcp"] = {"tools": [tool.name for tool in blueprint.served], "guards": guards}
    return {**own, **patch, "resources": resources, "metadata": {**metadata, "extension": extension}}


def _resource(prefix: str, part: Tool | Rail) -> dict[str, str]:
    return {"type": "package", "module": f"{prefix}.{part.module}", "class": part.class_name}


def _requirements_text(blueprint: Blueprint) -> str:
    wanted = {line for tool in blueprint.tools for line in _REQUIREMENTS.get(tool.format, ())}
    if blueprint.served:
        wanted |= {"anyio>=4.5", "mcp>=1.10,<2"}
    wanted |= {line.replace(" ", "") for line in blueprint.design.requirements}
    return "".join(f"{line}\n" for line in sorted(wanted, key=str.lower))
