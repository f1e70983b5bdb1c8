"""The shape of the project: who imports whom, what is public, and that the docs say what the code does."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from support import ROOT

from extforge.explaining import read_sections

PACKAGES = {
    "extforge": ROOT / "generator/extforge",
    "extforge_harness": ROOT / "harness/extforge_harness",
    "extforge_verifiers": ROOT / "verifiers/extforge_verifiers",
}
MAY_IMPORT = {
    "extforge": {"extforge", "extforge_harness", "extforge_verifiers", "extforge_templates"},
    "extforge_harness": {"extforge_harness", "extforge_verifiers"},
    "extforge_verifiers": {"extforge_verifiers"},
}
MODULES = [(package, path) for package, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))]
# Contract tier: copied into generated code, so standard library only.
CONTRACT = ("artifact", "archive", "checking", "disguises", "findings", "markup", "packages", "texts", "formats")


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return (module, whether it is imported when the file is)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {
        id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)
    }
    found = []
    for node in ast.walk(tree):
        names = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        found += [(name, id(node) not in late) for name in names]
    return found


def typing_only(path: Path) -> set[str]:
    """Return the modules that a file imports for its annotations alone."""
    blocks = [n for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.If)]
    return {n.module or "" for block in blocks for n in block.body if isinstance(n, ast.ImportFrom)}


@pytest.mark.parametrize(("package", "path"), [pytest.param(p, m, id=str(m.relative_to(ROOT))) for p, m in MODULES])
def test_imports_point_one_way(package: str, path: Path) -> None:
    for name, _ in imports(path):
        root = name.partition(".")[0]
        if root.startswith("extforge"):
            assert root in MAY_IMPORT[package], name
        if root == "openjiuwen":
            assert path.parent.name == "host", name


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(m, id=m.name)
        for p, m in MODULES
        if p == "extforge_verifiers" and (m.stem in CONTRACT or m.parent.name == "formats")
    ],
)
def test_the_contract_tier_needs_the_standard_library_only(path: Path) -> None:
    import sys

    for name, _ in imports(path):
        assert name.partition(".")[0] in {*sys.stdlib_module_names, "extforge_verifiers"}, name


def test_the_command_line_imports_nothing_heavy_at_its_top() -> None:
    folder = PACKAGES["extforge"]
    for path in (folder / "cli.py", *(folder / "commands").glob("*.py")):
        for name, early in imports(path):
            if early and name not in typing_only(path):
                light = {
                    "__future__",
                    "contextlib",
                    "importlib",
                    "os",
                    "sys",
                    "typing",
                    "click",
                    "extforge",
                    "extforge.commands",
                }
                assert name in light or name.startswith("extforge.commands."), (path.name, name)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_public_modules_say_what_is_public(package: str) -> None:
    for path in PACKAGES[package].rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        if (
            path.name in ("__init__.py", "__main__.py", "worker.py", "agent_process.py")
            or path.parent.name == "formats"
        ):
            continue
        assert any(isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__" for n in tree.body), path


def test_what_is_exported_can_be_imported() -> None:
    import extforge_verifiers

    for name in extforge_verifiers.__all__:
        assert not isinstance(getattr(extforge_verifiers, name), ModuleType)
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[-1] == "__main__":
                continue
            module = importlib.import_module(".".join([package, *(p for p in parts if p != "__init__")]))
            for name in getattr(module, "__all__", ()):
                assert hasattr(module, name), (path, name)


def test_no_module_is_named_for_nothing() -> None:
    assert not [path for _, path in MODULES if path.stem in ("utils", "helpers", "common", "core", "misc")]


def test_agents_workflows_and_runtimes_meet_in_shared_modules_only() -> None:
    parts = ("agents", "workflows", "runtimes")
    for part in parts:
        for path in (PACKAGES["extforge_harness"] / part).rglob("*.py"):
            for name, _ in imports(path):
                assert not any(name.startswith(f"extforge_harness.{other}") for other in parts if other != part), path


# --------------------------------------------------------------------------- codes

CODE = re.compile(
    r"(agent|artifact|bmp|budget|check|claim|contract|csv|document|design|docx|drawing|extension|gap|gif|host|html|image|jpg|json|md|office|ooxml|pdf|placeholder|plan|png|pptx|record|requirement|result|run|runtime|skill|svg|template|text|tiff|tool|webp|workflow|xlsx|xml|zip)(-[a-z0-9]+)+"
)
# Built from parts in the source.
COMPOSED = {
    *(f"plan-{what}-duplicate" for what in ("tool", "rail-class", "skill")),
    *(f"plan-{field}-{what}" for field in ("depends-on", "applies-to") for what in ("self", "duplicate", "unknown")),
    "plan-depends-on-capability",
    *(f"host-{what}" for what in ("module-import-failed", "class-init-failed", "entry-point-not-allowed", "harness-load-failed")),
    *(f"extension-not-a-{what}" for what in ("tool", "rail")),
}  # fmt: skip


def codes_in_source() -> set[str]:
    found = set(COMPOSED)
    for _, path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return found - {"check-ignore"}  # a command of git


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    assert set(read_sections()) == codes_in_source()


def test_every_section_says_how_bad_it_is_and_what_it_means() -> None:
    for code, text in read_sections().items():
        assert re.match(r"(error|warning|info): \S.{10,}", text), code
