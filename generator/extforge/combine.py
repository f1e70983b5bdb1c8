"""All designs of a plan as one extension, named after its package.

openJiuwen's own merger renames files that collide and rewrites imports, which breaks relative ones, loses what
`__init__.py`, manifests and front matter said, and leaves skills twice.  Here nothing is renamed or rewritten: each
tree stays whole in a folder of its own, where its relative imports go on working, and only the manifest, the
requirements and the acceptance file become one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from extforge import __version__
from extforge.acceptance import ACCEPTANCE_HEAD, build_acceptance
from extforge.errors import TargetError
from extforge.naming import is_snake_case, reserved_reason
from extforge.render import build_manifest, requirements_of
from extforge.rules import MODULE_PREFIX
from extforge.serialise import manifest_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from extforge.derive import Blueprint
    from extforge.staging import Staged

__all__ = ["combine"]

_OWN = ("harness_config.yaml", "requirements.txt")


def combine(blueprints: list[Blueprint], package: str, staged: Staged) -> str:
    """Make one tree of the rendered ones, and return its root relative to the target.

    Raises:
        TargetError: when the package has no usable name, or the designs contradict each other.
    """
    if not is_snake_case(package) or reserved_reason(package):
        words = f"package_name is {package!r}" if package else "the plan has no package_name"
        raise TargetError(f"--merge names the extension after the package, and {words}; give it a snake_case name")
    if not blueprints:
        raise TargetError("--merge: there is nothing to merge")
    homes = {blueprint.root.rpartition("/")[0] for blueprint in blueprints}
    if len(homes) > 1:
        raise TargetError(f"--merge: the designs lie in {len(homes)} places: {', '.join(sorted(homes))}")
    root = f"{homes.pop()}/{package}"
    formats = {t.name: t.format for b in blueprints for t in b.tools if t.format}
    trees = {path: (staged.read(path), file.executable) for path, file in staged.files.items()}
    staged.clear()
    for path, (data, executable) in trees.items():
        for blueprint in blueprints:
            inner = path.removeprefix(f"{blueprint.root}/")
            if inner != path and inner not in _OWN:
                staged.write(f"{root}/{blueprint.name}/{inner}", data, executable=executable)
    staged.write(f"{root}/__init__.py", b"")
    manifest = manifest_text(_manifest(blueprints, package))
    staged.write(f"{root}/harness_config.yaml", manifest.encode("utf-8"))
    if wanted := _requirements(line for blueprint in blueprints for line in requirements_of(blueprint)):
        staged.write(f"{root}/requirements.txt", "".join(f"{line}\n" for line in wanted).encode("utf-8"))
    spec: dict[str, Any] = {}
    for blueprint in blueprints:
        spec = _add(spec, build_acceptance(blueprint, formats), "acceptance", keep=("name",))
    spec["name"] = package
    staged.write(f"acceptance/{package}.yaml", (ACCEPTANCE_HEAD + manifest_text(spec)).encode("utf-8"))
    return root


def _manifest(blueprints: list[Blueprint], package: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    own = ("schema_version", "id", "name", "description", "metadata")
    inside = {blueprint.name for blueprint in blueprints}
    extension: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for blueprint in blueprints:
        manifest = build_manifest(blueprint)
        _move(
            manifest["resources"], f"{MODULE_PREFIX}.{blueprint.name}.", f"{MODULE_PREFIX}.{package}.", blueprint.name
        )
        about = manifest["metadata"].pop("extension")
        metadata = _add(metadata, manifest["metadata"], f"{blueprint.name}: metadata")
        kept = {key: about[key] for key in ("depends_on", "applies_to", "tools", "rails", "skills")}
        kept |= {"skill_profile": about["skill_profile"]} if "skill_profile" in about else {}
        extension = _add(extension, kept, "metadata.extension")
        extension.setdefault("merged", []).append(
            {key: about[key] for key in ("gap_id", "kind")} | {"name": blueprint.name}
        )
        merged = _add(merged, {key: value for key, value in manifest.items() if key not in own}, blueprint.name)
    for key in ("depends_on", "applies_to"):
        extension[key] = [name for name in extension[key] if name not in inside]
    kinds = {blueprint.design.kind for blueprint in blueprints}
    extension = {
        "gap_id": package,
        "kind": "constraint" if kinds == {"constraint"} else "capability",
        **extension,
        "generator": f"extforge {__version__}",
    }
    return {
        "schema_version": "harness_config.v0.1",
        "id": package,
        "name": package,
        "description": " ".join(blueprint.description for blueprint in blueprints),
        **merged,
        "metadata": {**metadata, "extension": extension},
    }


def _move(resources: dict[str, Any], old: str, new: str, folder: str) -> None:
    for kind in ("tools", "rails"):
        for item in resources.get(kind, []):
            item["module"] = f"{new}{folder}.{item['module'].removeprefix(old)}"
    if "skills" in resources:
        resources["skills"] = {"dirs": [f"{folder}/{path}" for path in resources["skills"]["dirs"]]}


def _add(one: dict[str, Any], other: dict[str, Any], where: str, keep: Iterable[str] = ()) -> dict[str, Any]:
    """Return both: mappings key by key, lists one after the other without repeats; two values are a contradiction."""
    result = dict(one)
    for key, value in other.items():
        there = result.get(key)
        if key not in result or key in keep or there == value:
            result[key] = value
        elif isinstance(there, dict) and isinstance(value, dict):
            result[key] = _add(there, value, f"{where}.{key}")
        elif isinstance(there, list) and isinstance(value, list):
            result[key] = there + [item for item in value if item not in there]
        else:
            raise TargetError(f"--merge: two designs want {key} to be {there!r} and {value!r} ({where})")
    return result


def _requirements(lines: Iterable[str]) -> list[str]:
    """Return one line per package, with the highest of the versions that are asked for (plans know only `>=`)."""
    found: dict[str, tuple[Version, str]] = {}
    for line in lines:
        wanted = Requirement(line)
        key = canonicalize_name(wanted.name)
        version = max((Version(part.version) for part in wanted.specifier), default=Version("0"))
        if key not in found or version > found[key][0]:
            found[key] = (version, line)
    return sorted((line for _, line in found.values()), key=str.lower)
