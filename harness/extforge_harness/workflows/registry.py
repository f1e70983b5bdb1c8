"""Which tools an extension brings, and what each may change, as its tree says; nothing of it is run."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

from extforge_harness.errors import HarnessError
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.subjects import is_extension

__all__ = ["ExtensionUnreadable", "extension_of", "extension_tools"]


class ExtensionUnreadable(HarnessError):
    """A folder is no extension tree, or its manifest cannot be read."""


def extension_of(skill_folder: str | os.PathLike[str] | None) -> str | None:
    """Return the extension tree that a skill lies in (`<tree>/skills/<skill>`, one level deeper in a merged one)."""
    if skill_folder is None or Path(skill_folder).parent.name != "skills":
        return None
    trees = list(Path(skill_folder).parents)[1:3]
    return next((str(tree) for tree in trees if is_extension(str(tree))), None)


def extension_tools(tree: str | os.PathLike[str]) -> dict[str, str]:
    """Return tool -> mutation level, from `metadata.extension` of the manifest, else from the tools' cards.

    Raises:
        ExtensionUnreadable: when the folder is no extension tree.
    """
    if not is_extension(os.fspath(tree)):
        raise ExtensionUnreadable(f"{tree}: no extension tree (no harness_config.yaml or plugin manifest.json)")
    config = Path(tree, "harness_config.yaml")
    value: Any = None
    if config.is_file():
        try:
            value = read_document(config.read_bytes(), str(config)).value
        except (OSError, DocumentError) as exc:
            raise ExtensionUnreadable(f"{config}: {exc}") from None
    for key in ("metadata", "extension", "tools"):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, list):
        tools = [item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)]
        return {item["name"]: str(item.get("mutation") or "unclassified") for item in tools}
    return dict.fromkeys(_names_in_cards(Path(tree)), "unclassified")


def _names_in_cards(tree: Path) -> list[str]:
    """Find `ToolCard(name="...")` in hand-written tools."""
    names = []
    for path in sorted(tree.rglob("*.py")):
        try:
            nodes = list(ast.walk(ast.parse(path.read_bytes())))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # `extforge verify` says what is wrong with it
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "ToolCard":
                values = [k.value for k in node.keywords if k.arg == "name"]
                names += [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    return names
