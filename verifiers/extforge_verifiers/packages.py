"""Office Open XML packages: what every .pptx, .docx and .xlsx has in common.

Sources:

- ECMA-376-2:2021 (OPC) §7.2.3 content types, §6.5 relationships, §6.2.2.3 part names compare without case.
- ECMA-376-1 Annex A / ISO 29500 Strict: Strict documents use the `http://purl.oclc.org/ooxml/` namespaces;
  both are accepted.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from extforge_verifiers.archive import Archive, MemberDamaged, open_archive
from extforge_verifiers.artifact import BudgetExceeded
from extforge_verifiers.findings import Finding, Severity, invalid
from extforge_verifiers.markup import DoctypeRefused, MarkupError, local_name, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["Family", "Package", "Relation", "checks_for", "find_main", "root_name"]

_XML_SUFFIXES = (".xml", ".rels")  # not .vml: Office itself writes HTML-like VML
_CONTENT_TYPES = "[Content_Types].xml"


@dataclass(frozen=True, slots=True)
class Family:
    """What tells one Office application's files from another's."""

    format: str
    root: str  # local name of the main part's root element
    main_types: dict[str, str]  # suffix -> content type of the main part


@dataclass(frozen=True, slots=True)
class Relation:
    """One relationship: where a part points."""

    id: str
    kind: str  # the last segment of its type, e.g. "slide"; the same in Strict and Transitional
    target: str  # a part name without the leading "/", or the raw target when external
    external: bool


@dataclass(slots=True)
class Package:
    """An archive seen as parts, types and relations.  Parts are parsed once and remembered."""

    archive: Archive
    defaults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    main: str = ""
    problems: dict[str, Finding] = field(
        default_factory=dict
    )  # part -> what is wrong with its bytes
    sound: set[str] = field(default_factory=set)
    _relations: dict[str, dict[str, Relation]] = field(default_factory=dict)

    def read(
        self,
        name: str,
        on_start: Callable[[str, dict[str, str]], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        on_end: Callable[[str], None] | None = None,
    ) -> bool:
        """Parse the XML part `name` with these handlers; False when it is absent or damaged."""
        return self._parse(name, on_start, on_text, on_end) is not None

    def content(self, name: str) -> bytes | None:
        """Return the bytes of a sound XML part that are plain enough to be searched; None when they are not.

        Plain: small, UTF-8, without comments and CDATA, so that what looks like a tag is one.
        """
        data = self._parse(name)
        if not isinstance(data, bytes):
            return None
        data = data.removeprefix(b"\xef\xbb\xbf")
        return data if data[:1] == b"<" and data[1:2] and b"<!" not in data else None

    def _parse(self, name: str, *handlers: Any) -> bytes | Iterator[bytes] | None:
        folded = name.lower()
        info = self.archive.names.get(folded)
        if info is None or folded in self.problems:
            return None
        try:
            data = self.archive.load(info)
            scan(data, *handlers)
        except (MemberDamaged, MarkupError, BudgetExceeded) as exc:
            self.problems[folded] = _damage(self.archive.member_name(name), exc)
            return None
        self.sound.add(folded)
        return data

    def root(self, name: str) -> str | None:
        """Return the local name of an XML part's root element; None when the part is absent or damaged."""
        if data := self.content(name):
            return root_name(data)
        roots: list[str] = []

        def on_start(tag: str, _: dict[str, str]) -> None:
            if not roots:
                roots.append(local_name(tag))

        return roots[0] if self.read(name, on_start) else None

    def content_type(self, part: str) -> str | None:
        """Return a part's content type, or None when the package does not say."""
        override = self.overrides.get(part.lower())
        return override or self.defaults.get(part.rpartition(".")[2].lower())

    def relations(self, part: str) -> dict[str, Relation]:
        """Return the relations of `part` ("" is the package itself) by id."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            found: dict[str, Relation] = {}

            def on_start(tag: str, attributes: dict[str, str]) -> None:
                if local_name(tag) == "Relationship":
                    relation = _relation(folder, attributes)
                    found.setdefault(relation.id, relation)

            self.read(posixpath.join(folder, "_rels", f"{name}.rels"), on_start)
            self._relations[part] = found
        return self._relations[part]

    def related(self, part: str, kind: str) -> list[Relation]:
        """Return the internal relations of one kind."""
        return [
            r
            for r in self.relations(part).values()
            if r.kind == kind and not r.external
        ]


def root_name(data: bytes) -> str:
    """Return the local name of the root element of what `Package.content` returned."""
    match = re.search(rb"<(?:[\w.-]+:)?([\w.-]+)", data)
    return match[1].decode("utf-8", "replace") if match else ""


def _unquoted(name: str) -> str:
    if "%" not in name:
        return name
    from urllib.parse import unquote  # noqa: PLC0415 -- slow to import, seldom needed

    return unquote(name)


def _relation(folder: str, attributes: dict[str, str]) -> Relation:
    target = attributes.get("Target", "")
    external = attributes.get("TargetMode") == "External"
    if not external:
        # An absolute target starts at the package; "%20" and "\\" are met in the wild.
        path = _unquoted(target.partition("#")[0].replace("\\", "/"))
        external = not path  # a bookmark inside the part itself
        target = posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")
    kind = attributes.get("Type", "").rstrip("/").rpartition("/")[2]
    return Relation(attributes.get("Id", ""), kind, target, external)


def _damage(part: str, exc: Exception) -> Finding:
    match exc:
        case DoctypeRefused():
            code, text, place = "xml-doctype", "has a DOCTYPE", (exc.line, exc.column)
        case MarkupError():
            code, text = "xml-not-well-formed", f"is not well-formed XML: {exc.message}"
            place = (exc.line, exc.column)
        case MemberDamaged():
            return invalid(exc.code, f"{part}: {exc.message}", member=part)
        case _:
            return invalid("budget-exceeded", f"{part}: {exc}", member=part)
    return invalid(code, f"{part} {text}", member=part, line=place[0], column=place[1])


def checks_for(
    family: Family, check_main: Callable[[Package, Artifact], Iterator[Finding]]
) -> Callable[[Artifact], Iterator[Finding]]:
    """Return the one check of an Office format: container, main part, `check_main`, then every other part."""

    def check_package(artifact: Artifact) -> Iterator[Finding]:
        archive = yield from open_archive(artifact)
        if archive is None:
            return
        hygiene = list(archive.check_hygiene())
        yield from hygiene
        if any(f.severity is Severity.ERROR for f in hygiene):
            return
        package = Package(archive)
        problem = next(find_main(package, artifact, family), None)
        if problem is not None:
            yield problem
        else:
            yield from check_main(package, artifact)
        _sweep(package)
        reported = {problem.where.member} if problem is not None else set()
        yield from (
            f for f in package.problems.values() if f.where.member not in reported
        )

    return check_package


def find_main(
    package: Package, artifact: Artifact, family: Family
) -> Iterator[Finding]:
    """Follow content types and the root relation to the main part; yields the first thing that is wrong."""
    if _CONTENT_TYPES not in package.archive:
        what = "an ordinary ZIP archive, not an Office document"
        yield invalid(
            "ooxml-content-types-missing", f"{_CONTENT_TYPES} is missing: {what}"
        )
        return
    if not package.read(
        _CONTENT_TYPES, lambda tag, attributes: _add_type(package, tag, attributes)
    ):
        yield package.problems[_CONTENT_TYPES.lower()]
        return
    relations = package.related("", "officeDocument")
    if not relations:
        damage = package.problems.get("_rels/.rels")
        yield damage or invalid(
            "ooxml-main-missing",
            "_rels/.rels has no officeDocument relation",
            member="_rels/.rels",
        )
        return
    package.main = relations[0].target
    if package.main not in package.archive:
        yield invalid(
            "ooxml-main-missing",
            f"the main part {package.main} is missing",
            member=package.main,
        )
        return
    kind = package.content_type(package.main)
    expected = family.main_types.get(artifact.suffix) or next(
        iter(family.main_types.values())
    )
    if kind != expected:
        yield invalid(
            "ooxml-main-type",
            _main_type_words(artifact, family, kind, expected),
            member=package.main,
        )
        return
    found = package.root(package.main)
    if found is None:
        yield package.problems[package.main.lower()]
    elif found != family.root:
        yield invalid(
            "ooxml-main-root",
            f"{package.main} is a <{found}>, not a <{family.root}>",
            member=package.main,
        )


def _main_type_words(
    artifact: Artifact, family: Family, kind: str | None, expected: str
) -> str:
    if kind is None:
        return f"the main part has no content type; a {family.format} needs {expected}"
    if match := re.search(r"(presentation|word|spreadsheet|excel|powerpoint)", kind):
        return f"named {artifact.suffix or family.format}, but its main part is {kind} ({match[1]})"
    return f"the main part has content type {kind}, not {expected}"


def _add_type(package: Package, tag: str, attributes: dict[str, str]) -> None:
    kind = attributes.get("ContentType", "")
    element = local_name(tag)
    if element == "Default":
        package.defaults.setdefault(attributes.get("Extension", "").lower(), kind)
    elif element == "Override":
        name = _unquoted(attributes.get("PartName", "")).lstrip("/").lower()
        package.overrides.setdefault(name, kind)


def _sweep(package: Package) -> None:
    """Look at every part that nothing has parsed yet: whole, and well-formed when it is XML."""
    for name, info in package.archive.names.items():
        if name in package.sound or name in package.problems or name.endswith("/"):
            continue
        if name.endswith(_XML_SUFFIXES) or (package.content_type(name) or "").endswith(
            "+xml"
        ):
            package.read(name)
            continue
        try:
            for _ in package.archive.stream(info):
                pass
        except (MemberDamaged, BudgetExceeded) as exc:
            package.problems[name] = _damage(package.archive.member_name(name), exc)
