"""Office Open XML packages: what every .pptx, .docx and .xlsx has in common.

Sources:

- ECMA-376-2:2021 (OPC) §7.2.3 content types, §6.5 relationships, §6.2.2.3 part names compare without case.
- ECMA-376-1 Annex A / ISO 29500 Strict: Strict documents use the `http://purl.oclc.org/ooxml/` namespaces;
  both are accepted.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from extforge_verifiers.archive import Archive, MemberDamaged, is_small, open_archive
from extforge_verifiers.artifact import BudgetExceeded
from extforge_verifiers.findings import Finding, Severity, invalid
from extforge_verifiers.markup import (
    SEPARATOR,
    DoctypeRefused,
    MarkupError,
    local_name,
    scan,
)
from extforge_verifiers.texts import check_placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from zipfile import ZipInfo

    from extforge_verifiers.artifact import Artifact

__all__ = [
    "PREFIX",
    "REST",
    "Family",
    "Package",
    "Relation",
    "Survey",
    "check_placeholder",
    "checks_for",
    "find_main",
    "root_of",
]

_XML_SUFFIXES = (".xml", ".rels")  # not .vml: Office itself writes HTML-like VML
_CONTENT_TYPES = "[Content_Types].xml"
_MOST_TEXT = 1 << 20  # characters that are kept of a part too large to be searched
# What the bytes that `Package.content` returns are searched for.
_ELEMENT = rb"<([^<>/\s?]+)"
PREFIX = rb"<(?:[^<>/:\s]+:)?"
REST = rb"""((?:[^<>"']|"[^"]*"|'[^']*')*)"""  # of a start tag
_ATTRIBUTE = rb"""(?:([^\s:=/]+):)?([^\s:=/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"""
_TEXT = PREFIX + rb"t(?=[\s>])" + REST + rb">([^<]+)"
_NOT_UTF_8 = rb"""(?i)<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])"""


class _Known:
    """Parts that were unpacked, parsed and found sound, so that none is twice.

    The layouts, the master and the theme of a deck come with the program that wrote it: they are the same bytes
    in every deck of one origin, and most of its XML.  Bytes are compared with bytes, as they stand in the archive;
    a sum could be forged.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._parts: dict[tuple[int, int, int], bytes] = {}

    def has(self, info: ZipInfo, packed: bytes) -> bool:
        """Say whether a part with these bytes, and with what the directory says of them, was sound."""
        return self._parts.get((info.CRC, info.file_size, info.compress_type)) == packed

    def add(self, info: ZipInfo, packed: bytes) -> None:
        """Remember a part; past the limit, forget the others."""
        if self._size + len(packed) > self._limit:
            self.clear()
        self._parts[info.CRC, info.file_size, info.compress_type] = packed
        self._size += len(packed)

    def clear(self) -> None:
        """Forget all parts."""
        self._parts.clear()
        self._size = 0


KNOWN = _Known(2 << 20)  # bytes


@dataclass(frozen=True, slots=True)
class Family:
    """What tells one Office application's files from another's."""

    format: str
    root: str  # local name of the main part's root element
    main_types: dict[str, str]  # suffix -> content type of the main part
    language: str  # of its parts: the word in their namespaces
    also: dict[str, str] = field(
        default_factory=dict
    )  # suffix -> whose type is as good

    def knows(self, namespace: str) -> bool:
        """Say whether elements in a namespace are this application's, Transitional or Strict."""
        return namespace in (
            f"http://schemas.openxmlformats.org/{self.language}/2006/main",
            f"http://purl.oclc.org/ooxml/{self.language}/main",
        )

    def misnomer(self, root: str, namespace: str, *wanted: str) -> str:
        """Return what to call a root that is none of these elements of this application; empty when it is one."""
        if root not in wanted:
            return root
        return "" if self.knows(namespace) else f"{root} xmlns={namespace!r}"


class Relation(NamedTuple):
    """One relationship: where a part points."""

    id: str
    kind: str  # the last segment of its type, e.g. "slide"; the same in Strict and Transitional
    target: str  # a part name without the leading "/", or the raw target when external
    external: bool


@dataclass
class Survey:
    """What an XML part holds, seen from far."""

    root: str  # local name
    namespace: str  # of the root
    text: str  # of its `t` elements: there all three applications keep what is read
    _content: bytes = b""

    @cached_property
    def counts(self) -> Counter[str]:
        """How many elements of each local name there are; counted when somebody asks."""
        counts: Counter[str] = Counter()
        tags: Counter[bytes] = Counter(re.findall(_ELEMENT, self._content))
        for tag, count in tags.items():
            counts[tag.rpartition(b":")[2].decode()] += count
        return counts


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
    _main_content: bytes | None = None  # looked at more than once
    _main_survey: Survey | None = None
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

        Plain: small, UTF-8, without comments, CDATA and the like, so that what looks like a tag is one.
        """
        if name == self.main and self._main_content is not None:
            return self._main_content
        info = self.archive.names.get(name.lower())
        if info is None or not is_small(info):
            return None
        data = self._parse(name)
        if not isinstance(data, bytes):
            return None
        data = data.removeprefix(b"\xef\xbb\xbf")  # BOM
        if not _is_plain(data):
            return None
        if name == self.main:
            self._main_content = data
        return data

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

    def sweep(self) -> None:
        """Look at every part that nothing has parsed yet: whole, and well-formed when it is XML."""
        for name, info in self.archive.names.items():
            if name in self.sound or name in self.problems or name.endswith("/"):
                continue
            try:
                if name.endswith(_XML_SUFFIXES) or (
                    self.content_type(name) or ""
                ).endswith("+xml"):
                    self._look_into(info)
                else:
                    for _ in self.archive.stream(info):
                        pass
            except (MemberDamaged, MarkupError, BudgetExceeded) as exc:
                self.problems[name] = _damage(self.archive.member_name(name), exc)

    def _look_into(self, info: ZipInfo) -> None:
        """Parse a part that nobody asks anything of, unless its like is known."""
        if not is_small(info):
            scan(self.archive.stream(info))
            return
        packed = self.archive.packed(info)
        if not KNOWN.has(info, packed):
            scan(self.archive.unpack(info, packed))
            KNOWN.add(info, packed)

    def root(self, name: str) -> tuple[str, str] | None:
        """Return local name and namespace of an XML part's root element; None when it is absent or damaged."""
        data = self.content(name)
        if data is not None:
            return root_of(data)
        survey = self.survey(name)
        return (survey.root, survey.namespace) if survey is not None else None

    def survey(self, name: str) -> Survey | None:
        """Return what an XML part holds; None when the part is absent or damaged.

        Most parts are searched, which is some times faster than a call for every element.
        """
        if name != self.main:
            return self._survey(name)
        if self._main_survey is None:
            self._main_survey = self._survey(name)
        return self._main_survey

    def _survey(self, name: str) -> Survey | None:
        if data := self.content(name):
            return Survey(*root_of(data), text_of(data), data)
        roots: list[str] = []
        counts: Counter[str] = Counter()
        texts: list[str] = []
        current, kept = "", 0

        def on_start(tag: str, _: dict[str, str]) -> None:
            nonlocal current
            current = local_name(tag)
            counts[current] += 1
            if not roots:
                roots.append(tag)

        def on_text(text: str) -> None:
            nonlocal kept
            if current == "t" and kept < _MOST_TEXT:
                texts.append(text)
                kept += len(text)

        if not self.read(name, on_start, on_text):
            return None
        namespace = roots[0].rpartition(SEPARATOR)[0]
        survey = Survey(local_name(roots[0]), namespace, " ".join(texts).strip())
        survey.counts = counts
        return survey

    def attributes(self, name: str, element: str) -> list[dict[str, str]]:
        """Return the attributes of every such element in the namespace of the part's root.

        `:id` is an `id` in a namespace.  Other elements of that name are others' business: the sections of a deck
        list its slides once more, as `p14:sldId`.
        """
        data = self.content(name)
        if data is not None and b"&" not in data and (same := _same(data, element)):
            tag = re.escape(same) + rb"(?=[\s/>])" + REST
            return [_attributes(rest) for rest in re.findall(tag, data)]
        found: list[dict[str, str]] = []
        wanted = ""

        def on_start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal wanted
            wanted = wanted or tag.removesuffix(local_name(tag)) + element
            if tag == wanted:
                found.append(
                    {":" * (" " in k) + local_name(k): v for k, v in attributes.items()}
                )

        self.read(name, on_start)
        return found

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
                if tag.endswith("Relationship"):
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


def _is_plain_target(target: str) -> bool:
    """Say whether there is nothing to resolve in a target such as `slides/slide1.xml`; nearly all are so."""
    return (
        target.count(".") == 1
        and target[0] not in "./"
        and "//" not in target
        and target.replace("/", "").replace(".", "").isalnum()
    )


def _is_plain(data: bytes) -> bool:
    if data[:1] != b"<" or data[1] == 0 or b"<!" in data or b"<?" in data[2:]:
        return False
    return data.isascii() or re.match(_NOT_UTF_8, data) is None


def root_of(data: bytes) -> tuple[str, str]:
    """Return local name and namespace of the root of what `Package.content` returned."""
    match = re.search(rb"<(?:([^<>/:\s?]+):)?([^<>/:\s?]+)" + REST, data)
    if match is None:
        return "", ""
    prefix, name, rest = match.groups()
    mine = b"xmlns:" + prefix if prefix else b"xmlns"
    spaces = {
        (one + b":" if one else b"") + two: three or four
        for one, two, three, four in re.findall(_ATTRIBUTE, rest)
    }
    return name.decode(), spaces.get(mine, b"").decode()


def text_of(data: bytes) -> str:
    """Return the text of the `t` elements of what `Package.content` returned."""
    return b" ".join(text for _, text in re.findall(_TEXT, data)).decode().strip()


def _same(data: bytes, element: str) -> bytes | None:
    """Return how an element in the root's namespace starts; None when bytes alone do not tell."""
    first = re.search(_ELEMENT, data)
    prefix = first[1].rpartition(b":")[0] if first else b""
    declared = b"xmlns:%b=" % prefix if prefix else b"xmlns="
    local = element.encode()
    wanted = b"%b:%b" % (prefix, local) if prefix else local
    alone = data.count(local + b" ") == data.count(b"<" + wanted + b" ")
    return b"<" + wanted if alone and data.count(declared) == 1 else None


def _attributes(tag: bytes) -> dict[str, str]:
    return {
        (":" if prefix else "") + name.decode(): (one or other).decode()
        for prefix, name, one, other in re.findall(_ATTRIBUTE, tag)
        if prefix != b"xmlns"
    }


def _unquoted(name: str) -> str:
    if "%" not in name:
        return name
    from urllib.parse import unquote  # noqa: PLC0415 -- slow to import, seldom needed

    return unquote(name)


def _relation(folder: str, attributes: dict[str, str]) -> Relation:
    target = attributes.get("Target", "")
    external = attributes.get("TargetMode") == "External"
    if not external and _is_plain_target(target):
        target = f"{folder}/{target}" if folder else target
    elif not external:
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
        package.sweep()
        reported = {problem.where.member} if problem is not None else set()
        yield from (
            f for f in package.problems.values() if f.where.member not in reported
        )

    return check_package


def check_placeholder(part: str, text: str) -> Iterator[Finding]:
    """Hollow: text that somebody meant to replace; it may be spread over several runs."""
    yield from check_placeholders(" ".join(text.split()), part=part)


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

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        element, kind = local_name(tag), attributes.get("ContentType", "")
        if element == "Override":
            name = _unquoted(attributes.get("PartName", "")).lstrip("/").lower()
            package.overrides.setdefault(name, kind)
        elif element == "Default":
            package.defaults.setdefault(attributes.get("Extension", "").lower(), kind)

    if not package.read(_CONTENT_TYPES, on_start):
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
    if kind not in (
        expected,
        family.main_types.get(family.also.get(artifact.suffix, "")),
    ):
        yield invalid(
            "ooxml-main-type",
            _main_type_words(artifact, family, kind, expected),
            member=package.main,
        )
        return
    found = package.root(package.main)
    if found is None:
        yield package.problems[package.main.lower()]
    elif named := family.misnomer(*found, family.root):
        yield invalid(
            "ooxml-main-root",
            f"{package.main} is a <{named}>, not a <{family.root}> of {family.language}",
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
