"""The verifier that generated code carries: our own contract tier, copied module by module.

One source of truth: a generated tool judges its files with exactly the checks of `extforge verify`.  The copies
differ from the originals only in their import lines, which become relative.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files

from extforge_verifiers.formats import FORMATS

__all__ = ["BUNDLED_FORMATS", "bundle"]

BUNDLED_FORMATS = ("pptx", "docx", "xlsx", "pdf", "json", "png", "jpg", "gif", "webp", "csv", "md", "html", "svg")
_PACKAGE = "extforge_verifiers"
# Answers to rules that only our own lint asks about; BLE001 is among ruff's defaults and stays.
_NOQA = re.compile(r"  # noqa: (?!BLE001).*$", re.MULTILINE)
_IMPORT = re.compile(r"^(\s*)from extforge_verifiers(?:\.formats)?\.(\w+) import ", re.MULTILINE)


def bundle(formats: tuple[str, ...]) -> dict[str, str]:
    """Return file name -> text of the verifier for these formats, all stdlib, importing only each other."""
    texts: dict[str, str] = {}
    waiting = ["checking", *(f"formats.{name}" for name in formats)]
    while waiting:
        module = waiting.pop()
        name = module.rpartition(".")[2]
        if f"{name}.py" not in texts:
            texts[f"{name}.py"], needs = _copy(module)
            waiting += needs
    texts["__init__.py"] = ""
    texts["table.py"] = _table(formats)
    return dict(sorted(texts.items()))


@cache
def _copy(module: str) -> tuple[str, tuple[str, ...]]:
    path = files(_PACKAGE).joinpath(*module.split(".")[:-1], module.rpartition(".")[2] + ".py")
    source = path.read_text(encoding="utf-8")
    needs = tuple(
        node.module.removeprefix(f"{_PACKAGE}.")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_PACKAGE)
    )
    text = _NOQA.sub("", _IMPORT.sub(r"\1from .\2 import ", source))
    assert _PACKAGE not in re.sub(r'""".*?"""', "", text, flags=re.DOTALL), (
        f"{module} names {_PACKAGE} outside an import"
    )
    return (f"# A copy of {_PACKAGE}.{module}, part of extforge; do not edit it here.\n{text}", needs)


def _table(formats: tuple[str, ...]) -> str:
    lines = [
        "# Made by extforge; do not edit it here.",
        '"""The formats that can be checked here."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING",
        "",
        f"from . import {', '.join(sorted(formats))}",
        "",
        "if TYPE_CHECKING:",
        "    from collections.abc import Mapping",
        "",
        "    from .checking import Check",
        "",
        "CHECKS: Mapping[str, Mapping[str, Check]] = {",
    ]
    for name in sorted(formats):
        lines.append(f'    "{name}": {{')
        lines += [f'        "{check}": {name}.{check},' for check in FORMATS[name].checks]
        lines.append("    },")
    lines += ["}", "SUFFIXES: Mapping[str, str] = {"]
    lines += [f'    "{suffix}": "{name}",' for name in sorted(formats) for suffix in FORMATS[name].suffixes]
    lines += ["}", ""]
    return "\n".join(lines)
