"""Helpers that tests import: plans, trees, the command line."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from extforge.check import CheckedPlan, check_plan, load_plan
from extforge.generate import Generated, generate
from extforge.render import render_plan
from extforge.staging import staging
from extforge_verifiers.documents import read_document

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

Design = dict[str, Any]


def rendered_files(plan: CheckedPlan) -> dict[str, bytes]:
    """Return what a plan renders: path relative to the target -> bytes."""
    with staging() as staged:
        render_plan(plan.blueprints, staged)
        return staged.read_all()


def example(name: str) -> list[Design]:
    """Return the designs of a plan in examples/."""
    path = ROOT / "examples" / f"{name}.plan.yaml"
    found: list[Design] = read_document(path.read_bytes(), str(path)).value["designs"]
    return found


def design(name: str = "quarterly_sales_deck", **fields: Any) -> Design:
    """Return a design with only what the host needs, and `fields`."""
    return {"gap_id": f"gap_{name}", "extension_name": name, "components": ["tool"], **fields}


def merged(document: Any, patch: Any) -> Any:
    """Return a document with a JSON Merge Patch (RFC 7396) put into it: null takes a key out, a list replaces a list."""
    if not isinstance(patch, dict):
        return patch
    base = document if isinstance(document, dict) else {}
    changed = {key: merged(base.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in {**base, **changed}.items() if patch.get(key, "") is not None}


def package_facts(package: str, runtimes: Iterable[str]) -> dict[str, Any]:
    """Return what the host says of an agent package (without skills) that it reads rightly."""
    manifest = json.loads((Path(package) / "manifest.json").read_text())
    persona = (Path(package) / "persona/identity.md").read_text()
    spec = {
        "agent_card": {"name": manifest["name"], "description": manifest["description"]},
        "prompt_sections": [{"content": {"en": persona, "cn": persona}}],
        "skills": [],
        "metadata": manifest["metadata"],
    }
    return {"openjiuwen": "0", "spec": spec, "providers": {name: {"card": name} for name in runtimes}}


def components_of(patch: dict[str, Any]) -> list[str]:
    """Return the components that a part of a design spells out; else those of a minimal one."""
    parts = {"tools": "tool", "rails": "rail", "skills": "skill"}
    found = [part for key, part in parts.items() if key in patch]
    return found or (["rail"] if patch.get("kind") == "constraint" else ["tool"])


class Plans:
    """Writes plans to a folder and reads them back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def write(self, *designs: Design) -> str:
        self.count += 1
        path = self.folder / f"plan{self.count}.json"
        path.write_text(json.dumps(list(designs), ensure_ascii=False), encoding="utf-8")
        return str(path)

    def check(self, *designs: Design, **options: Any) -> CheckedPlan:
        return check_plan(self.write(*designs), **options)

    def codes(self, *designs: Design, **options: Any) -> list[str]:
        return [finding.code for finding in self.check(*designs, **options).findings]

    def generate(self, *designs: Design, into: Path | None = None) -> Generated:
        plan = load_plan(self.write(*designs), max_designs=100)
        result = generate(plan, str(into or self.folder / f"out{self.count}"))
        assert result.applied, result.changes
        return result

    def tree(self, *designs: Design) -> Path:
        """Generate, and return the root of the last design's tree."""
        result = self.generate(*designs)
        name = designs[-1]["extension_name"]
        return next(result.target / root for root in result.roots if root.endswith(f"/{name}"))


def run_cli(
    *arguments: str, cwd: Path | None = None, stdin: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run extforge as its users do: a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "extforge", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        check=False,
    )


def load_work(tree: Path, module: str) -> Any:
    """Import a work module of a tree here, under a name of its own."""
    package = f"work_{abs(hash(str(tree)))}"
    if package not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            package, tree / "__init__.py", submodule_search_locations=[str(tree)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return importlib.import_module(f"{package}.{module}")
