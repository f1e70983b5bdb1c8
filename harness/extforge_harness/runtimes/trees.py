"""What an extension tree says about itself, read from its files; nothing of it is imported or run."""

from __future__ import annotations

import ast
import os
import posixpath
from typing import TYPE_CHECKING, Any, cast

from extforge_harness.errors import CatalogError
from extforge_harness.gates import MutationLevel
from extforge_harness.runtimes.catalog import (
    Catalog,
    ExtensionFacts,
    RailFacts,
    ServerFacts,
    SkillFacts,
    ToolFacts,
    build_catalog,
)
from extforge_verifiers.documents import parse_text, read_document, read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import MODULE_PREFIX, Tree, open_tree
from extforge_verifiers.findings import Finding, Where
from extforge_verifiers.frontmatter import read_skill
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS
from extforge_verifiers.sources import read_card
from extforge_verifiers.subjects import JSON_MANIFEST, find_subjects, is_extension

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from extforge_harness.runtimes.descriptors import Registry
    from extforge_verifiers.sources import Source

__all__ = ["MCP_SERVER", "catalog", "find_trees", "read_skill_facts", "read_tree"]

MCP_SERVER = "mcp_server.py"
NOT_WRITTEN = "not implemented"  # what a generated body says until somebody writes it


def catalog(paths: Sequence[str], registry: Registry | None = None) -> Catalog:
    """Return the catalog of the extension trees at or below `paths`, and of the constraints beside them they need.

    Raises:
        CatalogError: with every problem: a tree that cannot be read, a module without a file, names used twice.
    """
    trees, findings = find_trees(paths)
    facts = [read_tree(path, findings) for path in trees]
    if findings:
        raise CatalogError(findings)
    return build_catalog(facts, registry)


def find_trees(paths: Sequence[str]) -> tuple[list[str], list[Finding]]:
    """Return the roots of the trees, and a finding for each path without one."""
    trees: list[str] = []
    findings: list[Finding] = []
    for path in paths:
        found = [s.path for s in find_subjects(path).subjects if s.kind == "extension"]
        if not found:
            words = "there is no extension here" if os.path.exists(path) else "does not exist"
            fix = "name a folder with harness_config.yaml or manifest.json, or one above it"
            findings.append(Finding("runtime-no-extension", words, where=Where(path), fix=fix))
        trees += [os.path.abspath(tree) for tree in found]
    trees = list(dict.fromkeys(trees))
    for tree in trees:  # grows while it is walked: a constraint may depend on another
        names = open_tree(tree).metadata.get("depends_on")
        for name in names if isinstance(names, list) else []:
            beside = os.path.join(os.path.dirname(tree), str(name))
            if str(name).isidentifier() and beside not in trees and is_extension(beside):
                trees.append(beside)
    return trees, findings


def read_tree(path: str, findings: list[Finding]) -> ExtensionFacts:
    """Return what the tree at `path` says; what is wrong with it is added to `findings`."""
    tree = open_tree(path)
    if not tree.manifest:
        findings += tree.findings or [Finding("runtime-no-extension", "the manifest is empty", where=Where(path))]
    meta = tree.metadata
    resources = tree.manifest if JSON_MANIFEST in tree.files else tree.manifest.get("resources")
    resources = resources if isinstance(resources, dict) else {}
    served = _texts(_mapping(meta.get("mcp")).get("tools")) if MCP_SERVER in tree.files else ()
    return ExtensionFacts(
        tree.name,
        str(meta.get("kind", "capability")),
        _texts(meta.get("depends_on")),
        _texts(meta.get("applies_to")),
        tuple(_tool(tree, item, source) for item, source in _modules(tree, resources, "tools", findings)),
        tuple(_rail(tree, item, source) for item, source in _modules(tree, resources, "rails", findings)),
        tuple(_skills(tree, resources.get("skills"), findings)),
        tuple(_servers(tree, findings)),
        served,
        _texts(_mapping(meta.get("mcp")).get("guards")) if served else (),
        path,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _entries(value: Any) -> list[dict[str, Any]]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _modules(
    tree: Tree, resources: dict[str, Any], kind: str, findings: list[Finding]
) -> Iterator[tuple[dict[str, Any], Source | None]]:
    """Yield each declared tool or rail with its module."""
    prefix = f"{MODULE_PREFIX}.{tree.name}."
    for item in _entries(resources.get(kind) or []):
        module = item.get("module")
        path = posixpath.normpath(str(item.get("file", "")))
        if isinstance(module, str):
            path = module.removeprefix(prefix).replace(".", "/") + ".py"
            path = path if path in tree.files else path.removesuffix(".py") + "/__init__.py"
        if path not in tree.files:
            given = module or item.get("file") or f"type: {item.get('type')}"
            words = f"{tree.name} declares {given!r} among its {kind}, and has no such file"
            fix = "extforge verify says more about this tree"
            findings.append(Finding("runtime-module-missing", words, where=Where(tree.root), fix=fix))
            continue
        yield item, tree.sources.get(path)


def _class(item: dict[str, Any]) -> str:
    return str(item.get("class") or item.get("class_name") or "")


def _tool(tree: Tree, item: dict[str, Any], source: Source | None) -> ToolFacts:
    name = _class(item)
    card: dict[str, Any] = {}
    if source is not None and name in source.classes:
        card = read_card(source, source.classes[name])
    said = _said(tree, "tools", item, card.get("name"))
    description, place = _resolve(tree, source, card.get("description"))
    mutation = str(said.get("mutation") or "")
    form = said.get("format")
    schema, _ = _resolve(tree, source, card.get("input_params"))
    return ToolFacts(
        str(card.get("name") or said.get("name") or "") if isinstance(card.get("name", ""), str) else "",
        name,
        description if isinstance(description, str) else "",
        mutation if mutation in set(MutationLevel) - {MutationLevel.UNCLASSIFIED} else "",
        (str(form),) if form else (),
        f"{tree.name}/{place}" if place else "",
        str(said.get("state") or ""),
        _unwritten(tree, source),
        _mapping(schema),
    )


def _rail(tree: Tree, item: dict[str, Any], source: Source | None) -> RailFacts:
    del source
    said = _said(tree, "rails", item, None)
    return RailFacts(_class(item), str(said.get("does") or ""), f"{tree.name}/{_file(tree, item)}")


def _file(tree: Tree, item: dict[str, Any]) -> str:
    module = str(item.get("module", "")).removeprefix(f"{MODULE_PREFIX}.{tree.name}.")
    return f"{module.replace('.', '/')}.py" if module else str(item.get("file", ""))


def _said(tree: Tree, kind: str, item: dict[str, Any], name: object) -> dict[str, Any]:
    """Return what the generator wrote about a tool or rail, found by its class or name."""
    entries = _entries(tree.metadata.get(kind) or [])
    by_name = (e for e in entries if name is not None and e.get("name") == name)
    return next(by_name, next((e for e in entries if e.get("class") == _class(item)), {}))


def _resolve(tree: Tree, source: Source | None, value: Any) -> tuple[Any, str]:
    """Return what a card says, and in which file: a literal, or the JSON beside the module it is imported from."""
    here = os.path.relpath(source.path, tree.root).replace(os.sep, "/") if source is not None else ""
    if not isinstance(value, tuple):
        return value, here if value is not None else ""
    module = _imported(here, value[0])
    if f"{module}.json" in tree.files:
        try:
            with open(tree.full(f"{module}.json"), "rb") as stream:
                found = read_document(stream.read(), f"{module}.json").value.get(str(value[1]).lower())
        except (OSError, DocumentError, AttributeError):
            return None, ""
        return found, f"{module}.json"
    return None, ""


def _imported(here: str, origin: str) -> str:
    """Return the path, without suffix, of what a module imports relatively as `.deck` or `..rails.state`."""
    dots = len(origin) - len(origin.lstrip("."))
    folder = posixpath.dirname(here)
    for _ in range(dots - 1):
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, origin[dots:].replace(".", "/")) if dots else ""


def _unwritten(tree: Tree, source: Source | None) -> bool:
    """Say whether the work behind a tool still ends in "not implemented"."""
    if source is None:
        return False
    here = os.path.relpath(source.path, tree.root).replace(os.sep, "/")
    work = tree.sources.get(_imported(here, source.imports.get("run", "").partition(":")[0]) + ".py")
    return work is not None and any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Dict)
        and any(isinstance(v, ast.Constant) and v.value == NOT_WRITTEN for v in node.value.values)
        for node in ast.walk(work.tree)
    )


# --------------------------------------------------------------------------- skills and MCP servers


def _skills(tree: Tree, declared: Any, findings: list[Finding]) -> Iterator[SkillFacts]:
    items = declared.get("dirs") if isinstance(declared, dict) and "dirs" in declared else declared
    items = items if isinstance(items, list) else [items]
    folders = [str(item.get("dir") if isinstance(item, dict) else item) for item in items if item]
    for folder in folders:
        path = posixpath.normpath(folder)
        prefix = "" if path == "." else f"{path}/"
        for name in tree.files:
            steps = name.removeprefix(prefix).split("/")
            hidden = any(step in HIDDEN_SKILL_FOLDERS or step.startswith(".") for step in steps[:-1])
            if name.startswith(prefix) and steps[-1] == "SKILL.md" and not hidden:
                try:
                    yield _skill(tree, name)
                except (OSError, DocumentError) as exc:
                    findings += getattr(exc, "findings", ()) or [
                        Finding("runtime-skill-unreadable", f"{name} cannot be read", where=Where(tree.full(name)))
                    ]


def _skill(tree: Tree, name: str) -> SkillFacts:
    folder = posixpath.dirname(name)
    workflow = f"{folder}/skill.yaml"
    steps = _text(tree, workflow) if workflow in tree.files else ""
    return read_skill_facts(posixpath.basename(folder) or tree.name, _text(tree, name), steps, f"{tree.name}/{name}")


def _text(tree: Tree, name: str) -> str:
    with open(tree.full(name), "rb") as stream:
        return read_text(stream.read(), tree.full(name))


def read_skill_facts(name: str, text: str, workflow: str, source: str) -> SkillFacts:
    """Return what a SKILL.md and the skill.yaml beside it (empty: there is none) say.

    Raises:
        DocumentError: when one of them cannot be read.
    """
    skill = read_skill(text, source)
    head = _mapping(skill.document.value)
    more = _mapping(head.get("metadata"))  # where agentskills wants what is not its own
    steps = _mapping(parse_text(workflow, f"{posixpath.dirname(source)}/skill.yaml").value) if workflow else {}
    return SkillFacts(
        name,
        str(head.get("description") or ""),
        str(steps.get("when-to-use") or head.get("trigger") or more.get("trigger") or ""),
        skill.body,
        _texts(steps.get("allowed-tools")),
        source,
    )


def _servers(tree: Tree, findings: list[Finding]) -> Iterator[ServerFacts]:
    """Yield the MCP servers that a manifest declares; only their names are kept."""
    declared = tree.manifest.get("mcps") or []
    for item in declared if isinstance(declared, list) else [declared]:
        place = str(_mapping(item).get("file") or _mapping(item).get("dir") or "")
        if place:
            names = [place] if "file" in item else [f"{place}/{f}" for f in ("mcp.json", "mcps.json", "mcps.yaml")]
            for name in (posixpath.normpath(n) for n in names):
                if name in tree.files:
                    yield from (ServerFacts(n, f"{tree.name}/{name}") for n in _server_names(tree, name, findings))
        else:
            yield from (ServerFacts(n, f"{tree.name}/manifest.json") for n in _names(item))
    for name in ("mcps/mcps.yaml", "mcps/mcps.json"):
        if name in tree.files and JSON_MANIFEST not in tree.files:
            yield from (ServerFacts(n, f"{tree.name}/{name}") for n in _server_names(tree, name, findings))


def _server_names(tree: Tree, name: str, findings: list[Finding]) -> list[str]:
    try:
        with open(tree.full(name), "rb") as stream:
            return _names(read_document(stream.read(), tree.full(name)).value)
    except OSError:
        return []
    except DocumentError as exc:
        findings += exc.findings
        return []


def _names(value: Any) -> list[str]:
    """Return server names out of `{mcpServers: {name: ...}}`, a list of servers, or one server."""
    if isinstance(value, dict) and isinstance(value.get("mcpServers"), dict):
        return [str(name) for name in value["mcpServers"]]
    if isinstance(value, dict):
        for key in ("servers", "mcps"):
            if key in value:
                return _names(value[key])
        value = [value]
    items = value if isinstance(value, list) else []
    found = [item.get("server_name") or item.get("name") or item.get("server_id") for item in _entries(items)]
    return [str(cast("object", name)) for name in found if name]
