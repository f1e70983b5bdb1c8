"""An extension tree, judged without running it (L1): would the host load it, and would it then work?

Two kinds of tree: `harness_config.yaml` (openJiuwen 0.1.14 and newer) and `manifest.json` (plugin or agent_template,
0.1.16 and newer).  The host's own static check misses most of what is found here, and rewrites the files it checks.

Sources: openJiuwen 0.1.19 extension_loader.py, and 26 broken trees run against the real host.
"""

from __future__ import annotations

import ast
import errno
import os
import posixpath
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from extforge_verifiers.documents import Document, read_document, read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Report, Severity, Where
from extforge_verifiers.frontmatter import SKILL_PROFILES, check_skill
from extforge_verifiers.hostnames import FAILURES, HIDDEN_SKILL_FOLDERS, SIDECAR_FILES
from extforge_verifiers.paths import lies_in
from extforge_verifiers.sources import (
    Source,
    SourceError,
    check_init,
    check_rail,
    check_source,
    check_tool,
    parse_source,
)
from extforge_verifiers.subjects import JSON_MANIFEST, YAML_MANIFEST, is_extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Tree", "find_secret", "open_tree", "verify_extension"]

MODULE_PREFIX = "openjiuwen.extensions.harness"
SCHEMA_VERSION = "harness_config.v0.1"
FILE_LIMIT = 5_000
_SKIPPED_FOLDERS = frozenset(
    ("__pycache__", ".git", "node_modules", ".venv", ".ruff_cache", ".mypy_cache")
)
_NEEDLESS = re.compile(
    r"(readme|install(ation)?|changelog|changes|contributing)(\.\w+)?", re.IGNORECASE
)
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bsk-[A-Za-z0-9_-]{20,}\b|\bgh[pousr]_[A-Za-z0-9]{36,}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}\b"
)
_SECRET_SUFFIXES = tuple(".py .yaml .yml .json .md .txt .toml .env .cfg .ini".split())
# Distribution names whose import name differs.
_IMPORT_NAMES = {
    "python-pptx": "pptx",
    "python-docx": "docx",
    "pyyaml": "yaml",
    "pillow": "PIL",
    "beautifulsoup4": "bs4",
    "fonttools": "fontTools",
    "scikit-learn": "sklearn",
    "opencv-python": "cv2",
    "pymupdf": "fitz",
    "python-dateutil": "dateutil",
    "arabic-reshaper": "arabic_reshaper",
    "python-bidi": "bidi",
}
# Optional by design: code that looks for them and does without.
_OPTIONAL_IMPORTS = frozenset(("arabic_reshaper", "bidi", "typing_extensions"))


@dataclass(slots=True)
class Tree:
    """A tree on disk, read once: its manifest and its Python modules."""

    root: str
    name: str
    real_root: str  # without symbolic links
    document: Document | None = None
    sources: dict[str, Source] = field(
        default_factory=dict
    )  # path below the root -> module
    files: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as a mapping; empty when it is none."""
        value = self.document.value if self.document is not None else None
        return value if isinstance(value, dict) else {}

    @property
    def metadata(self) -> dict[str, Any]:
        """What extforge wrote about the extension; empty for trees that it did not make."""
        metadata = self.manifest.get("metadata")
        extension = metadata.get("extension") if isinstance(metadata, dict) else None
        return extension if isinstance(extension, dict) else {}

    def full(self, path: str) -> str:
        """Return a path of the tree as it is on disk."""
        return os.path.join(self.root, *path.split("/"))

    def open(self, path: str) -> BinaryIO:
        """Open a file of the tree; raise OSError also for a pipe or a device, which might never answer."""
        full = self.full(path)
        if os.path.exists(full) and not os.path.isfile(full):
            raise OSError(errno.EINVAL, "not a regular file", full)
        return open(full, "rb")

    def misshapen(self, message: str, *at: str | int, key: bool = False) -> None:
        """Note that a part of the manifest is not what it must be."""
        assert self.document is not None
        where = self.document.where(at, key=key)
        self.report("extension-manifest-shape", message, where=where)

    def report(
        self,
        code: str,
        message: str,
        path: str = "",
        failure_id: str | None = None,
        **more: Any,
    ) -> None:
        """Note an error about the tree."""
        failure_id = failure_id or FAILURES.get(code, "manifest_invalid")
        fix = more.pop("fix", None)
        severity = more.pop("severity", Severity.ERROR)
        where = more.pop("where", None) or Where(
            self.full(path) if path else self.root, **more
        )
        failure = failure_id if severity is Severity.ERROR else None
        self.findings.append(Finding(code, message, severity, where, fix, failure))


def open_tree(path: str) -> Tree:
    """Read a tree: its file list, its manifest and the syntax of its modules."""
    root = os.path.abspath(path)
    tree = Tree(root, os.path.basename(root), os.path.realpath(root))
    linked_folders: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED_FOLDERS)
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if below == "." else f"{below}/"
        linked_folders += [
            prefix + f for f in folders if os.path.islink(os.path.join(folder, f))
        ]
        tree.files += [prefix + name for name in sorted(names)]
        if len(tree.files) > FILE_LIMIT:
            tree.report("extension-too-large", f"more than {FILE_LIMIT:,} files")
            break
    for name in (*linked_folders, *tree.files):
        if _escapes(tree, name):
            words = f"{name} is a link that leads out of the tree"
            tree.report("extension-path-escapes", words, name)
    for name in tree.files:
        if name.endswith(".py") and not _escapes(tree, name):
            _read_module(tree, name)
    _read_manifest(tree)
    return tree


def _escapes(tree: Tree, name: str) -> bool:
    full = tree.full(name)
    # The walk follows no links, so the folders of a path are none.
    return os.path.islink(full) and not lies_in(full, tree.root)


def _read_module(tree: Tree, name: str) -> None:
    module = (
        name.removesuffix(".py").replace("/", ".").removesuffix("__init__").rstrip(".")
    )
    try:
        with tree.open(name) as stream:
            tree.sources[name] = parse_source(stream.read(), tree.full(name), module)
    except SourceError as exc:
        tree.report("extension-syntax", f"{name} {exc.message}", name, line=exc.line)
    except OSError as exc:
        tree.report(
            "extension-unreadable",
            f"{name}: {exc.strerror}",
            name,
            "module_import_failed",
        )


def _read_manifest(tree: Tree) -> None:
    both = YAML_MANIFEST in tree.files and JSON_MANIFEST in tree.files
    name = JSON_MANIFEST if JSON_MANIFEST in tree.files else YAML_MANIFEST
    if both:
        words = "manifest.json and harness_config.yaml stand side by side; the host takes manifest.json only"
        tree.report(
            "extension-manifest-shadowed", words, JSON_MANIFEST, fix="keep one of them"
        )
    try:
        with tree.open(name) as stream:
            tree.document = read_document(stream.read(), tree.full(name))
    except DocumentError as exc:
        tree.findings += [
            replace(f, failure_id="manifest_invalid") for f in exc.findings
        ]
        return
    except OSError as exc:
        tree.report("extension-manifest-missing", f"{name}: {exc.strerror}", name)
        return
    if not isinstance(tree.document.value, dict):
        tree.report("extension-manifest-shape", "the manifest must be a mapping", name)


def verify_extension(path: str) -> Report:
    """Return what is wrong with the tree at `path`, as far as reading it can tell."""
    tree = open_tree(path)
    checked = ["manifest", "modules", "skills", "files"]
    facts: dict[str, Any] = {"name": tree.name, "files": len(tree.files)}
    if tree.manifest:
        if JSON_MANIFEST in tree.files:
            facts.update(_check_package(tree))
        else:
            facts.update(_check_harness_config(tree))
    _check_modules(tree)
    _check_files(tree)
    kind = "extension"
    return Report(path, kind, tuple(checked), {}, facts, tuple(tree.findings))


# --------------------------------------------------------------------------- harness_config.yaml


def _check_harness_config(tree: Tree) -> dict[str, Any]:
    document, manifest = tree.document, tree.manifest
    assert document is not None
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        words = f"schema_version is {version!r}, not {SCHEMA_VERSION!r} (the host does not look, but tools do)"
        tree.report(
            "extension-schema-version", words, where=document.where(("schema_version",))
        )
    for key in ("name", "description"):
        if key in manifest and not isinstance(manifest[key], str):
            words = f"{key} must be a text"
            tree.misshapen(words, key)
    if manifest.get("name") not in (None, tree.name) and not tree.metadata:
        words = f"the manifest says name {manifest['name']!r}, but the folder is {tree.name!r}"
        tree.report(
            "extension-name-folder",
            words,
            severity=Severity.WARNING,
            where=document.where(("name",)),
        )
    resources = manifest.get("resources")
    if resources is None:
        resources = {}
    if not isinstance(resources, dict):
        tree.misshapen("resources must be a mapping", "resources")
        resources = {}
    rails = _check_resources(tree, resources, "rails", check_rail)
    tools = _check_resources(tree, resources, "tools", check_tool)
    skills = _check_skill_dirs(tree, resources.get("skills"))
    _check_metadata(tree, rails, tools, skills)
    return {"tools": len(tools), "rails": len(rails), "skills": len(skills)}


def _check_resources(
    tree: Tree,
    resources: dict[str, Any],
    kind: str,
    check: Callable[[Source, Any], Iterator[Finding]],
) -> list[str]:
    """Check the rails or tools that the manifest lists; return their class names."""
    assert tree.document is not None
    items = resources.get(kind) or []
    at = ("resources", kind)
    if not isinstance(items, list):
        tree.misshapen(f"{kind} must be a list", *at)
        return []
    classes: list[str] = []
    for index, item in enumerate(items):
        where = tree.document.where((*at, index))
        if not isinstance(item, dict):
            tree.misshapen(f"each of {kind} must be a mapping", *at, index)
            continue
        path = _resource_path(tree, item, where, kind)
        name = item.get("class") or item.get("class_name")
        if path is None:
            continue
        if not isinstance(name, str) or not name.isidentifier():
            words = f"class {name!r} is not a class name"
            tree.report("extension-class-missing", words, where=where)
            continue
        classes.append(name)
        _check_class(tree, path, name, where, check)
    return classes


def _resource_path(
    tree: Tree, item: dict[str, Any], where: Where, kind: str
) -> str | None:
    """Return the file that a resource lives in, or None after reporting why there is none."""
    form = item.get("type", "package" if "module" in item else "file")
    if "file" in item and "module" not in item:
        return _existing_file(tree, item["file"], where)
    if form == "entry_point":
        words = "type: entry_point never loads from an extension"
        tree.report(
            "extension-entry-point", words, where=where, fix="use type: package"
        )
        return None
    if form != "package":
        more = (
            "; a rail whose name is wrong is skipped, and its guard with it"
            if kind == "rails"
            else ""
        )
        words = f"type: {form} is not part of the extension{more}"
        tree.report("extension-entry-type", words, where=where, fix="use type: package")
        return None
    module = item.get("module")
    prefix = f"{MODULE_PREFIX}.{tree.name}."
    if not isinstance(module, str) or not module.startswith(prefix):
        words = f"module {module!r} does not start with {prefix}; the host imports it from elsewhere, or not at all"
        fix = f"the folder is named {tree.name!r}: module and folder must agree"
        tree.report("extension-module-prefix", words, where=where, fix=fix)
        return None
    path = module.removeprefix(prefix).replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if candidate in tree.files:
            return candidate
    words = f"there is no module {module}: {path}.py is missing"
    tree.report("extension-module-missing", words, where=where)
    return None


def _existing_file(tree: Tree, name: object, where: Where) -> str | None:
    if not isinstance(name, str) or not name:
        tree.report("extension-manifest-shape", "file must be a path", where=where)
        return None
    path = posixpath.normpath(name)
    if _leads_out(path):
        tree.report(
            "extension-path-escapes",
            f"{name!r} leads out of the extension",
            where=where,
        )
        return None
    if path not in tree.files:
        tree.report("extension-module-missing", f"there is no file {name}", where=where)
        return None
    return path


def _leads_out(path: str) -> bool:
    return path.startswith(("/", "..")) or re.match(r"[A-Za-z]:", path) is not None


def _check_class(
    tree: Tree,
    path: str,
    name: str,
    where: Where,
    check: Callable[[Source, Any], Iterator[Finding]],
) -> None:
    source = tree.sources.get(path)
    if source is None:
        return  # its syntax error is reported already
    if name in source.classes:
        tree.findings += check(source, source.classes[name])
    elif name not in source.imports and name not in source.constants:
        words = f"{path} has no class {name}"
        tree.report("extension-class-missing", words, where=where)


def _check_skill_dirs(tree: Tree, skills: object) -> list[str]:
    """Check the skill folders that the manifest names; return the skills in them."""
    assert tree.document is not None
    if skills is None:
        return []
    at = ("resources", "skills")
    dirs = skills.get("dirs") if isinstance(skills, dict) else skills
    if not isinstance(dirs, list) or not all(isinstance(item, str) for item in dirs):
        words = "skills must be {dirs: [a folder, ...]}"
        tree.misshapen(words, *at)
        return []
    found: list[str] = []
    for index, folder in enumerate(dirs):
        where = tree.document.where((*at, "dirs", index))
        found += _check_skill_folder(tree, folder, where)
    return found


def _check_skill_folder(tree: Tree, folder: str, where: Where) -> list[str]:
    path = posixpath.normpath(folder)
    if _leads_out(path):
        words = f"the skill folder {folder!r} leads out of the extension (the host does not look)"
        tree.report("extension-path-escapes", words, where=where)
        return []
    if not os.path.isdir(tree.full(path)):
        words = f"the skill folder {folder!r} is missing"
        tree.report(
            "extension-skills-missing",
            words,
            where=where,
            failure_id="harness_load_failed",
        )
        return []
    prefix = "" if path == "." else f"{path}/"
    manifests = [
        name
        for name in tree.files
        if name.startswith(prefix) and posixpath.basename(name) == "SKILL.md"
    ]
    visible: list[str] = []
    for name in manifests:
        steps = name.removeprefix(prefix).split("/")[:-1]
        hidden = next(
            (
                step
                for step in steps
                if step in HIDDEN_SKILL_FOLDERS or step.startswith(".")
            ),
            None,
        )
        if hidden is not None:
            words = (
                f"{name} is never seen: the host passes over folders named {hidden!r}"
            )
            tree.report("extension-skill-hidden", words, name)
        elif not any(
            name.startswith(f"{posixpath.dirname(other)}/")
            for other in visible
            if posixpath.dirname(other) != path
        ):
            visible.append(name)
    if not visible:
        words = f"there is no SKILL.md below {folder!r}"
        tree.report(
            "extension-skills-missing",
            words,
            where=where,
            failure_id="skill_not_loaded",
        )
    for name in visible:
        _check_skill_file(tree, name)
    return [
        posixpath.basename(posixpath.dirname(tree.full(name).replace(os.sep, "/")))
        for name in visible
    ]


def _check_skill_file(tree: Tree, name: str) -> None:
    full = tree.full(name)
    folder = posixpath.basename(posixpath.dirname(name)) or tree.name
    try:
        with tree.open(name) as stream:
            data = stream.read()
        bom = data.startswith(b"\xef\xbb\xbf")
        text = read_text(data, full)
        usual = SKILL_PROFILES[0] if tree.metadata else ""
        profile = str(tree.metadata.get("skill_profile", usual))
        tree.findings += check_skill(
            f"\ufeff{text}" if bom else text, full, folder, profile
        )
    except DocumentError as exc:
        tree.findings += [
            replace(f, failure_id="skill_manifest_invalid") for f in exc.findings
        ]
    except OSError as exc:
        tree.report(
            "extension-unreadable",
            f"{name}: {exc.strerror}",
            name,
            "skill_manifest_invalid",
        )
    skill = posixpath.dirname(name)
    for other in tree.files:
        if other.startswith(f"{skill}/") and _NEEDLESS.fullmatch(
            posixpath.basename(other)
        ):
            words = f"{other} is for people, not for the skill"
            tree.report("skill-needless-file", words, other, severity=Severity.WARNING)


def _check_metadata(
    tree: Tree, rails: list[str], tools: list[str], skills: list[str]
) -> None:
    """Hold what the generator wrote about the extension against what is there."""
    metadata = tree.metadata
    if not metadata:
        return
    assert tree.document is not None
    base = ("metadata", "extension")
    for key, found in (("rails", rails), ("tools", tools), ("skills", skills)):
        listed = metadata.get(key)
        if isinstance(listed, list) and len(listed) != len(found):
            words = f"metadata lists {len(listed)} {key}, the manifest has {len(found)}"
            where = tree.document.where((*base, key))
            tree.report(
                "extension-metadata", words, severity=Severity.WARNING, where=where
            )
    beside = os.path.dirname(tree.root)
    needs = metadata.get("depends_on")
    for index, name in enumerate(needs if isinstance(needs, list) else []):
        if isinstance(name, str) and not is_extension(os.path.join(beside, name)):
            words = f"it depends on the constraint {name!r}, which is not beside it"
            where = tree.document.where((*base, "depends_on", index))
            tree.report("extension-constraint-missing", words, where=where)


# --------------------------------------------------------------------------- manifest.json


def _check_package(tree: Tree) -> dict[str, Any]:
    """Check a plugin or an agent_template (openJiuwen 0.1.16 and newer)."""
    document, manifest = tree.document, tree.manifest
    assert document is not None
    kind = manifest.get("package_type")
    if kind not in ("plugin", "agent_template"):
        words = f"package_type is {kind!r}, not 'plugin' or 'agent_template'"
        tree.report(
            "extension-package-type", words, where=document.where(("package_type",))
        )
        return {}
    required = ("id",) if kind == "plugin" else ("name", "description")
    for key in required:
        value = manifest.get(key)
        if not value or (isinstance(value, str) and not value.strip()):
            words = f"a {kind} needs a non-empty {key!r}"
            tree.misshapen(words, key)
    if kind == "plugin":
        for key in (
            "persona",
            "model",
            "subagents",
            "memories",
            "rubrics",
            "agent_card",
        ):
            if key in manifest:
                words = f"a plugin must not have {key!r}"
                tree.misshapen(words, key, key=True)
    counts = {}
    for key, check in (("tools", check_tool), ("rails", check_rail)):
        items = manifest.get(key) or []
        items = items if isinstance(items, list) else [items]
        counts[key] = len(items)
        for index, item in enumerate(items):
            where = document.where((key, index))
            if not isinstance(item, dict) or "file" not in item:
                words = f"each of {key} must be a mapping with file and class"
                tree.misshapen(words, key, index)
                continue
            path = _existing_file(tree, item["file"], where)
            name = item.get("class") or item.get("class_name")
            if not isinstance(name, str):
                tree.report(
                    "extension-class-missing", "the class is missing", where=where
                )
            elif path is not None:
                _check_class(tree, path, name, where, check)
    skills = manifest.get("skills") or []
    counts["skills"] = 0
    for index, item in enumerate(skills if isinstance(skills, list) else [skills]):
        folder = item.get("dir") if isinstance(item, dict) else item
        where = document.where(("skills", index))
        if not isinstance(folder, str):
            words = "a skill must be a folder, or {dir: a folder}"
            tree.misshapen(words, "skills", index)
            continue
        counts["skills"] += len(_check_skill_folder(tree, folder, where))
    _check_package_paths(tree, kind)
    return {"package_type": kind, **counts}


def _check_package_paths(tree: Tree, kind: str) -> None:
    """Check the files and folders that the other keys of a package name."""
    document, manifest = tree.document, tree.manifest
    assert document is not None
    named: list[tuple[tuple[str | int, ...], object, str]] = []
    if kind == "agent_template":
        persona = manifest.get("persona")
        if persona is not None:
            folder = persona.get("dir") if isinstance(persona, dict) else None
            named.append((("persona",), folder, "folder"))
        model = manifest.get("model")
        if isinstance(model, dict) and "file" in model:
            named.append((("model",), model["file"], "file"))
        for index, item in enumerate(manifest.get("subagents") or []):
            named.append(
                (
                    ("subagents", index),
                    item.get("dir") if isinstance(item, dict) else None,
                    "folder",
                )
            )
    sections = manifest.get("prompt_sections") or []
    for index, item in enumerate(
        sections if isinstance(sections, list) else [sections]
    ):
        if isinstance(item, dict) and "file" in item:
            named.append((("prompt_sections", index), item["file"], "file"))
    for at, name, what in named:
        where = document.where(at)
        if not isinstance(name, str):
            tree.misshapen(f"must name a {what}", *at)
            continue
        path = posixpath.normpath(name)
        exists = (
            os.path.isdir(tree.full(path)) if what == "folder" else path in tree.files
        )
        if _leads_out(path):
            tree.report(
                "extension-path-escapes",
                f"{name!r} leads out of the package",
                where=where,
            )
        elif not exists:
            tree.report(
                "extension-file-missing", f"there is no {what} {name}", where=where
            )


# --------------------------------------------------------------------------- everything in the tree


def _check_modules(tree: Tree) -> None:
    declared = _declared(tree)
    prefix = f"{MODULE_PREFIX}.{tree.name}"
    modules = _module_paths(tree)
    for name, source in tree.sources.items():
        if posixpath.basename(name) == "__init__.py":
            tree.findings += check_init(source)
        tree.findings += check_source(source, prefix, declared)
        _check_own_imports(tree, name, source, modules)


def _module_paths(tree: Tree) -> set[str]:
    """Return the path, without its suffix, of everything in the tree that can be imported: modules and folders."""
    paths = {name.removesuffix(".py") for name in tree.files if name.endswith(".py")}
    for name in tree.files:
        while name := posixpath.dirname(name):
            paths.add(name)
    return paths


def _check_own_imports(
    tree: Tree, name: str, source: Source, modules: set[str]
) -> None:
    """What a module imports of its own extension must be there."""
    package = name.split("/")[:-1]
    for node, _ in source.statements:
        if (
            not isinstance(node, ast.ImportFrom)
            or not 0 < node.level <= len(package) + 1
        ):
            continue  # not its own, or above the extension
        base = package[: len(package) + 1 - node.level]
        wanted = [node.module] if node.module else [alias.name for alias in node.names]
        for module in wanted:
            path = "/".join([*base, *module.split(".")])
            if path not in modules:
                tree.report(
                    "extension-import-missing",
                    f"{name} imports {'.' * node.level}{module}, and there is no {path}.py",
                    name,
                    line=node.lineno,
                )


def _declared(tree: Tree) -> set[str]:
    """Return the import names that requirements.txt accounts for, and those that a tree may import freely."""
    names = set(_OPTIONAL_IMPORTS)
    names |= {name.split("/")[0].removesuffix(".py") for name in tree.files}
    if "requirements.txt" in tree.files:
        try:
            with tree.open("requirements.txt") as stream:
                lines = stream.read(1 << 20).decode("utf-8", "replace").splitlines()
        except OSError:
            return names
        for line in lines:
            match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line)
            if match:
                distribution = match[1].lower().replace("_", "-")
                names.add(
                    _IMPORT_NAMES.get(
                        distribution, distribution.replace("-", "_").replace(".", "_")
                    )
                )
    return names


def _check_files(tree: Tree) -> None:
    for name in tree.files:
        if name in SIDECAR_FILES and JSON_MANIFEST not in tree.files:
            words = f"the host merges {name} into the manifest"
            tree.report("extension-sidecar", words, name, severity=Severity.WARNING)
        if name.endswith(_SECRET_SUFFIXES) or posixpath.basename(name).startswith(
            ".env"
        ):
            _check_secrets(tree, name)


@lru_cache(maxsize=64)  # the extensions of a plan share most of their modules
def find_secret(text: str) -> str | None:
    """Return the first part of a text that looks like a key or token of a well-known kind."""
    match = _SECRETS.search(text)
    return match[0] if match else None


def _check_secrets(tree: Tree, name: str) -> None:
    if not lies_in(tree.full(name), tree.root):
        return
    try:
        with tree.open(name) as stream:
            text = stream.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return
    if secret := find_secret(text):
        line = text.count("\n", 0, text.index(secret)) + 1
        words = f"{name} holds what looks like a secret ({secret[:4]}...)"
        tree.report(
            "extension-secret",
            words,
            name,
            line=line,
            fix="read it from an environment variable",
        )
