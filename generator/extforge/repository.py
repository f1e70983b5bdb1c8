"""A repository round the trees, as a person would publish it: packaging, a README, and CI that verifies them.

These files are generated once and then updated like any other; where the target has its own, that one stays.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from extforge import __version__
from extforge.render import requirements_of

if TYPE_CHECKING:
    from extforge.derive import Blueprint

__all__ = ["REPOSITORY_FILES", "repository_files"]

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


def repository_files(blueprints: list[Blueprint], trees: list[str], package_name: str, plan: str) -> dict[str, bytes]:
    """Return the files: path relative to the target -> bytes.

    Args:
        blueprints: the designs.
        trees: the roots of the extensions: one for each design, or one for all when they were merged.
        package_name: the plan's, which names the repository too.
        plan: where the plan is.
    """
    name = re.sub(r"[^a-z0-9]+", "-", package_name.lower()).strip("-") or "openjiuwen-extensions"
    roots = sorted({tree.partition("/")[0] for tree in trees})
    wanted = sorted({line for b in blueprints for line in requirements_of(b)}, key=str.lower)
    texts = {
        "pyproject.toml": _PYPROJECT.format(
            name=json.dumps(name),
            description=json.dumps(f"openJiuwen extensions: {', '.join(b.name for b in blueprints)}"),
            dependencies="".join(f"  {json.dumps(line)},\n" for line in ["openjiuwen>=0.1.14", *wanted]),
            include=", ".join(json.dumps(root) for root in roots),
        ),
        "README.md": _readme(blueprints, trees, name, plan),
        ".gitignore": _IGNORE,
        WORKFLOW: _WORKFLOW.replace("@VERSION@", __version__),
    }
    return {path: text.encode("utf-8") for path, text in texts.items()}


def _readme(blueprints: list[Blueprint], trees: list[str], name: str, plan: str) -> str:
    rows = []
    places = trees if len(trees) == len(blueprints) else trees * len(blueprints)
    for place, blueprint in zip(places, blueprints, strict=True):
        parts = [f"tool `{tool.name}`" for tool in blueprint.tools]
        parts += [f"rail `{rail.class_name}` ({rail.does})" for rail in blueprint.rails]
        parts += [f"skill `{skill.name}`" for skill in blueprint.skills]
        rows.append(f"| `{place}` | {', '.join(parts)} |")
    plan = os.path.basename(plan) if plan else "PLAN"
    return "\n".join(
        [
            f"# {name}",
            "",
            "Extensions for [openJiuwen](https://pypi.org/project/openjiuwen/).",
            "",
            "| extension | what it brings |",
            "| --- | --- |",
            *rows,
            "",
            "## Load",
            "",
            "```python",
            "from openjiuwen.harness.rails import SkillUseRail",
            "",
            "# Extensions with skills need this rail on the agent before they are loaded.",
            'agent.add_rail(SkillUseRail(skills_dir=["an/existing/folder"], skill_mode="all", include_tools=False))',
            *(f'await agent.load_plugin("{tree}")' for tree in trees),
            "```",
            "",
            "## Change",
            "",
            "The trees were made from a plan. Edit them, or change the plan and run this again; both survive:",
            "",
            "```console",
            f"$ extforge generate {plan} --into . --diff",
            "$ extforge verify . --host",
            "```",
            "",
        ]
    )
