"""A repository round the trees, as a person would publish it: packaging, a README, and CI that verifies them.

These files are generated once and then updated like any other; where the target has its own, that one stays.  They speak
of every extension that was generated into the target, from whichever plan, so it does not matter which plan is
generated last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extforge import __version__
from extforge.target.lock import read_base
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError

if TYPE_CHECKING:
    from pathlib import Path

    from extforge.staging import Staged
    from extforge.target.changes import Scope
    from extforge.target.lock import Lock

__all__ = ["REPOSITORY_FILES", "Tree", "repository_files", "trees_after"]

MANIFEST = "harness_config.yaml"

WORKFLOW = ".github/workflows/verify.yml"
REPOSITORY_FILES = ("pyproject.toml", "README.md", ".gitignore", WORKFLOW)

_IGNORE = """\
__pycache__/
*.py[cod]
.venv/
build/
dist/
"""

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = {name}
version = "0.1.0"
description = {description}
readme = "README.md"
requires-python = ">=3.11,<3.14"
dependencies = [
{dependencies}]

# The trees are installed where openJiuwen looks for its own extensions.
[tool.hatch.build.targets.wheel]
only-include = [{include}]
"""

_WORKFLOW = """\
name: verify
on: [push, pull_request]
permissions:
  contents: read
jobs:
  verify:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "extforge[host]>=@VERSION@"
      - run: pip install .
      - run: extforge verify . --format github
      - run: extforge verify . --host --format github
"""


@dataclass(frozen=True, slots=True)
class Tree:
    """What a repository says of an extension tree, as its manifest was generated: a person's edits are not ours to tell."""

    root: str
    names: tuple[str, ...]  # of the extensions in it: one, or those that were merged
    constraint: bool
    depends_on: tuple[str, ...]
    parts: tuple[str, ...]
    requirements: tuple[str, ...]


def trees_after(target: Path, lock: Lock, scope: Scope, staged: Staged) -> list[Tree]:
    """Return the trees that a target has after a run, in an order in which they can be loaded."""
    homes = {home for home in lock.extensions if not scope.leaves(home, lock)} | set(scope.extensions)
    manifests = (f"{folder}/{MANIFEST}" for home in homes for folder in (home, home.rpartition("/")[0]))
    trees = []
    for path in sorted({path for path in manifests if path in staged.files or path in lock.files}):
        if path in lock.files and not (target / path).exists():
            continue  # a person deleted it, and deleted it stays
        root = path.removesuffix(f"/{MANIFEST}")
        wanted = _generated(f"{root}/requirements.txt", target, lock, staged).decode("utf-8", "replace").splitlines()
        trees.append(_tree(root, _generated(path, target, lock, staged), wanted))
    return _in_order(trees)


def _generated(path: str, target: Path, lock: Lock, staged: Staged) -> bytes:
    """Return a file as it is generated now, or was the last time; nothing when it was not."""
    if path in staged.files:
        return staged.read(path)
    entry, full = lock.files.get(path), target / path
    if entry is None:
        return b""
    # Without .extforge/base, what is there is the next best.
    return read_base(target, entry.sha) or (full.read_bytes() if full.is_file() else b"")


def _tree(root: str, manifest: bytes, requirements: list[str]) -> Tree:
    try:
        value = read_document(manifest, root).value
        about = value["metadata"]["extension"]
        parts = [f"tool `{tool['name']}`" for tool in about["tools"]]
        parts += [f"rail `{rail['class']}` ({rail['does']})" for rail in about["rails"]]
        parts += [f"skill `{skill}`" for skill in about["skills"]]
        names = [str(one["name"]) for one in about.get("merged") or [value]]
        needs = [str(name) for name in about["depends_on"]]
        constraint = about["kind"] == "constraint"
    except (DocumentError, KeyError, TypeError, AttributeError):  # of a template with a manifest of its own
        names, constraint, needs, parts = [root.rpartition("/")[2]], False, [], []
    return Tree(root, tuple(names), constraint, tuple(needs), tuple(parts), tuple(requirements))


def _in_order(trees: list[Tree]) -> list[Tree]:
    """Constraints first, each after what it depends on; otherwise by place."""
    by_name = {name: tree for tree in trees for name in tree.names}
    ordered: dict[str, Tree] = {}

    def visit(tree: Tree, above: tuple[str, ...]) -> None:
        if tree.root in ordered or tree.root in above:
            return
        for name in tree.depends_on:
            if name in by_name:
                visit(by_name[name], (*above, tree.root))
        ordered[tree.root] = tree

    for tree in sorted(trees, key=lambda tree: (not tree.constraint, tree.root)):
        visit(tree, ())
    return list(ordered.values())


def repository_files(trees: list[Tree], package_name: str, command: str) -> dict[str, bytes]:
    """Return the files: path relative to the target -> bytes.

    Args:
        trees: all that the target has.
        package_name: names the repository.
        command: brings the trees up to date.
    """
    name = re.sub(r"[^a-z0-9]+", "-", package_name.lower()).strip("-") or "openjiuwen-extensions"
    roots = sorted({tree.root.partition("/")[0] for tree in trees})
    wanted = sorted({line for tree in trees for line in tree.requirements if line.strip()}, key=str.lower)
    texts = {
        "pyproject.toml": _PYPROJECT.format(
            name=json.dumps(name),
            description=json.dumps(f"openJiuwen extensions: {', '.join(n for tree in trees for n in tree.names)}"),
            dependencies="".join(f"  {json.dumps(line)},\n" for line in ["openjiuwen>=0.1.14", *wanted]),
            include=", ".join(json.dumps(root) for root in roots),
        ),
        "README.md": _readme(trees, name, command),
        ".gitignore": _IGNORE,
        WORKFLOW: _WORKFLOW.replace("@VERSION@", __version__),
    }
    return {path: text.encode("utf-8") for path, text in texts.items()}


def _readme(trees: list[Tree], name: str, command: str) -> str:
    return "\n".join(
        [
            f"# {name}",
            "",
            "Extensions for [openJiuwen](https://pypi.org/project/openjiuwen/).",
            "",
            "| extension | what it brings |",
            "| --- | --- |",
            *(f"| `{tree.root}` | {', '.join(tree.parts)} |" for tree in trees),
            "",
            "## Load",
            "",
            "```python",
            "from openjiuwen.harness.rails import SkillUseRail",
            "",
            "# Extensions with skills need this rail on the agent before they are loaded.",
            'agent.add_rail(SkillUseRail(skills_dir=["an/existing/folder"], skill_mode="all", include_tools=False))',
            *(f'await agent.load_plugin("{tree.root}")' for tree in trees),
            "```",
            "",
            "## Change",
            "",
            "The trees were made from a plan. Edit them, or change the plan and run this again; both survive:",
            "",
            "```console",
            f"$ {command} --diff",
            "$ extforge verify . --host",
            "```",
            "",
        ]
    )
