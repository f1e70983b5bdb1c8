"""What the parts of an Office document say of each other, and whether the values in them are possible.

Sources:

- ECMA-376-2 §6.5 relationships; ECMA-376-1 §20.1 DrawingML (integer EMU, preset shapes §20.1.10.56, `srgbClr` of six
  hexadecimal digits §20.1.2.3.32), §19.3 slides, §17 WordprocessingML, §18 SpreadsheetML.
- Which of these PowerPoint, Word and Excel repair or refuse: measured rules with no hit on 2,411 good files are errors,
  the others warnings.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extforge_verifiers.archive import Archive, MemberDamaged
from extforge_verifiers.artifact import Artifact, BudgetExceeded
from extforge_verifiers.disguises import recognise
from extforge_verifiers.findings import Severity, invalid, warning
from extforge_verifiers.formats import FORMATS, format_for
from extforge_verifiers.markup import local_name, scan
from extforge_verifiers.packages import Family, Package, find_main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from extforge_verifiers.findings import Finding

    Rule = Callable[[Any], Iterator[Finding]]

__all__ = ["check_docx", "check_pptx", "check_xlsx"]

_RELATIONS = re.compile(
    r"\{http://(schemas\.openxmlformats\.org/officeDocument/2006|purl\.oclc\.org/ooxml/officeDocument)/relationships\}"
)
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_HEX6 = re.compile(r"[0-9A-Fa-f]{6}")
_XML = (".xml", ".rels")
_MOST = 20  # findings of one rule; a broken generator breaks every slide alike
_SHAPES = """
    line lineInv triangle rtTriangle rect diamond parallelogram trapezoid
    nonIsoscelesTrapezoid pentagon hexagon heptagon octagon decagon dodecagon
    roundRect round1Rect round2SameRect round2DiagRect snipRoundRect snip1Rect
    snip2SameRect snip2DiagRect plaque ellipse teardrop homePlate chevron pieWedge
    pie blockArc donut noSmoking stripedRightArrow notchedRightArrow bentUpArrow
    leftUpArrow leftRightUpArrow bentArrow uturnArrow circularArrow
    leftCircularArrow leftRightCircularArrow curvedRightArrow curvedLeftArrow
    curvedUpArrow curvedDownArrow swooshArrow cube can lightningBolt heart sun moon
    smileyFace irregularSeal1 irregularSeal2 foldedCorner bevel frame halfFrame
    corner diagStripe chord arc leftBracket rightBracket leftBrace rightBrace
    bracketPair bracePair straightConnector1 wedgeRectCallout wedgeRoundRectCallout
    wedgeEllipseCallout cloudCallout cloud ribbon ribbon2 ellipseRibbon
    ellipseRibbon2 leftRightRibbon verticalScroll horizontalScroll wave doubleWave
    plus gear6 gear9 funnel mathPlus mathMinus mathMultiply mathDivide mathEqual
    mathNotEqual cornerTabs squareTabs plaqueTabs chartX chartStar chartPlus
"""
_BUTTONS = """
    Blank Home Help Information ForwardNext BackPrevious End Beginning Return
    Document Sound Movie
"""
_FLOW = """
    Process Decision InputOutput PredefinedProcess InternalStorage Document
    Multidocument Terminator Preparation ManualInput ManualOperation Connector
    PunchedCard PunchedTape SummingJunction Or Collate Sort Extract Merge
    OfflineStorage OnlineStorage MagneticTape MagneticDisk MagneticDrum Display
    Delay AlternateProcess OffpageConnector
"""
_ORDER = """
    sldMasterIdLst notesMasterIdLst handoutMasterIdLst sldIdLst sldSz notesSz
    smartTags embeddedFontLst custShowLst photoAlbum custDataLst kinsoku
    defaultTextStyle modifyVerifier extLst
"""
_ARROWS = "right left up down leftRight upDown quad"
_PRESETS = frozenset(
    _SHAPES.split()
    + [f"star{n}" for n in (4, 5, 6, 7, 8, 10, 12, 16, 24, 32)]
    + [f"{kind}Connector{n}" for kind in ("bent", "curved") for n in (2, 3, 4, 5)]
    + [
        f"{kind}{n}"
        for kind in ("callout", "accentCallout", "borderCallout", "accentBorderCallout")
        for n in (1, 2, 3)
    ]
    + [
        f"{direction}Arrow{end}"
        for direction in _ARROWS.split()
        for end in ("", "Callout")
    ]
    + [f"actionButton{name}" for name in _BUTTONS.split()]
    + [f"flowChart{name}" for name in _FLOW.split()]
)
_PRESENTATION_ORDER = _ORDER.split()


def check_pptx(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a deck that opens and then repairs: lost pictures, slides without layout, impossible shapes."""
    from extforge_verifiers.formats.pptx import FAMILY  # noqa: PLC0415

    package = _open(artifact, FAMILY)
    yield from _check_package(
        package, (_check_drawing, _check_shapes, _check_text_bodies)
    )
    yield from _check_masters(package)
    yield from _check_order(package)


def check_docx(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a document that opens and then repairs: text outside runs, cells without paragraphs, lost comments."""
    from extforge_verifiers.formats.docx import FAMILY  # noqa: PLC0415

    package = _open(artifact, FAMILY)
    yield from _check_package(
        package, (_check_drawing, _check_cells, _check_runs, _check_fields)
    )
    yield from _check_comments(package)


def check_xlsx(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a workbook that opens and then repairs: styles and texts that are not there, tables that do not fit."""
    from extforge_verifiers.formats.xlsx import FAMILY  # noqa: PLC0415

    package = _open(artifact, FAMILY)
    yield from _check_package(package, (_check_drawing, _check_tables))
    yield from _check_indexes(package)


def _open(artifact: Artifact, family: Family) -> Package:
    package = Package(Archive(artifact))
    list(
        find_main(package, artifact, family)
    )  # the contract tier has reported what is wrong here
    return package


def _parse(package: Package, part: str) -> Any:
    """Return a part as a tree; None when it is damaged, which the contract tier has reported."""
    from lxml import etree  # noqa: PLC0415 -- the deep tier's own library

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    info = package.archive.names.get(part.lower())
    if info is None:
        return None
    try:
        return etree.fromstring(b"".join(package.archive.stream(info)), parser)
    except (etree.XMLSyntaxError, MemberDamaged, BudgetExceeded):
        return None


def _tag(element: Any) -> str:
    """Return an element's name without its namespace; empty for comments and instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _each(root: Any, *names: str) -> Iterator[Any]:
    for element in root.iter():
        if _tag(element) in names:
            yield element


# --------------------------------------------------------------------------- any package


def _check_package(package: Package, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    yield from _check_relations(package)
    yield from _check_types(package)
    for part in [
        package.archive.member_name(name)
        for name in package.archive.names
        if not name.endswith("/")
    ]:
        if part.lower().endswith(".rels") or part == "[Content_Types].xml":
            continue
        if part.lower().endswith(_XML) or (package.content_type(part) or "").endswith(
            "+xml"
        ):
            root = _parse(package, part)
            if root is not None:
                yield from _check_references(root, part, package)
                for rule in rules:
                    for finding in itertools.islice(rule(root), _MOST):
                        words = f"{part}: {finding.message}"
                        yield replace(finding.at(member=part), message=words)
        elif "/media/" in f"/{part}":
            yield from _check_media(package, part)


def _check_relations(package: Package) -> Iterator[Finding]:
    """Relations: ids are unique, targets exist, and somebody points at every part."""
    pointed = {"[content_types].xml"}
    for name in list(package.archive.names):
        folder, file_name = posixpath.split(name)
        if not name.endswith(".rels") or posixpath.basename(folder) != "_rels":
            continue
        pointed.add(name)
        source = posixpath.join(
            posixpath.dirname(folder), file_name.removesuffix(".rels")
        )
        if source and source not in package.archive:
            words = f"{name} belongs to {source}, which is not there"
            yield warning("ooxml-relations-stray", words, member=name)
            continue
        yield from _check_ids(package, name)
        member = package.archive.member_name(source) if source else ""
        for relation in package.relations(member).values():
            if relation.external:
                continue
            pointed.add(relation.target.lower())
            if (
                relation.target not in package.archive
                and posixpath.basename(relation.target).upper() != "NULL"
            ):
                words = f"{member or 'the package'} points at {relation.target}, which is not there"
                yield invalid("ooxml-target-missing", words, member=member or name)
    for name in sorted(set(package.archive.names) - pointed):
        if not name.endswith("/"):
            words = f"nothing points at {name}"
            yield warning(
                "ooxml-part-orphan", words, member=package.archive.member_name(name)
            )


def _check_ids(package: Package, name: str) -> Iterator[Finding]:
    ids: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if local_name(tag) == "Relationship":
            ids.append(attributes.get("Id", ""))

    scan(package.archive.stream(package.archive.names[name]), on_start)
    for identity in sorted({i for i in ids if not i or ids.count(i) > 1}):
        words = f"{name}: the relation id {identity!r} {'stands twice' if identity else 'is empty'}"
        yield invalid("ooxml-relation-id", words, member=name)


def _check_types(package: Package) -> Iterator[Finding]:
    for name in sorted(package.overrides):
        if name not in package.archive:
            yield warning(
                "ooxml-type-phantom",
                f"a content type is given for {name}, which is not there",
                member=name,
            )
    for name in sorted(package.archive.names):
        if (
            not name.endswith("/")
            and name != "[content_types].xml"
            and package.content_type(name) is None
        ):
            yield warning(
                "ooxml-type-missing", f"{name} has no content type", member=name
            )


def _check_references(root: Any, part: str, package: Package) -> Iterator[Finding]:
    """`r:id`, `r:embed` and their like lead to a relation of the same part: else the picture is gone."""
    relations = package.relations(part)
    missing = {
        value
        for element in root.iter()
        if isinstance(element.tag, str)
        for key, value in element.attrib.items()
        if value and _RELATIONS.match(str(key)) and value not in relations
    }
    for value in sorted(missing)[:_MOST]:
        words = f"{part} uses the relation {value!r}, which it does not have"
        yield invalid("ooxml-relation-unresolved", words, member=part)


def _check_media(package: Package, part: str) -> Iterator[Finding]:
    """Pictures inside are whole, and are what their suffix says."""
    info = package.archive.names[part.lower()]
    if info.file_size > (64 << 20):
        return
    try:
        data = b"".join(package.archive.stream(info))
    except (MemberDamaged, BudgetExceeded):
        return
    found = recognise(data[:4096])
    row = format_for(part)
    if not data or (
        found is not None
        and found.is_text
        and not part.lower().endswith((".svg", ".xml", ".txt", ".json"))
    ):
        words = f"{part} is {found.words if found else 'empty'}, not media"
        yield invalid("ooxml-media-fake", words, member=part)
        return
    if row is None or row.name not in ("png", "jpg", "gif", "webp", "bmp", "tiff"):
        return
    if found is not None and found.format != row.name:
        yield invalid("ooxml-media-fake", f"{part} is {found.words}", member=part)
        return
    with Artifact(part, package.archive.artifact.limits, data) as artifact:
        for check in FORMATS[row.name].load().values():
            for finding in check(artifact):
                if finding.severity is Severity.ERROR:
                    yield invalid(
                        "ooxml-media-damaged", f"{part}: {finding.message}", member=part
                    )
                    return


# --------------------------------------------------------------------------- drawings


def _check_drawing(root: Any) -> Iterator[Finding]:
    """DrawingML values that are impossible, as libraries write them from NaN, floats and colour names."""
    for element in _each(
        root, "off", "ext", "chOff", "chExt", "srgbClr", "prstGeom", "bodyPr"
    ):
        tag = _tag(element)
        if tag == "srgbClr" and not _HEX6.fullmatch(element.get("val", "")):
            yield invalid(
                "drawing-colour", f"colour {element.get('val')!r} is not six hex digits"
            )
        elif tag == "prstGeom" and element.get("prst") not in _PRESETS:
            yield invalid(
                "drawing-preset", f"there is no preset shape {element.get('prst')!r}"
            )
        elif tag == "bodyPr" and element.get("anchor", "t") not in (
            "t",
            "ctr",
            "b",
            "just",
            "dist",
        ):
            yield invalid(
                "drawing-anchor",
                f"text anchor {element.get('anchor')!r} does not exist",
            )
        elif tag in ("off", "ext", "chOff", "chExt"):
            yield from _check_measures(element, tag)


def _check_measures(element: Any, tag: str) -> Iterator[Finding]:
    for key in ("x", "y", "cx", "cy"):
        value = element.get(key)
        if value is None:
            continue
        # Transitional measures are integers; Strict ones may carry a unit (§22.9.2.15).
        if not _INTEGER.fullmatch(value) and not re.fullmatch(
            r"-?[0-9]+(\.[0-9]+)?(mm|cm|in|pt|pc|pi)", value
        ):
            yield invalid(
                "drawing-measure", f"{tag} {key}={value!r} is not a whole number of EMU"
            )
        elif key in ("cx", "cy") and value.startswith("-"):
            yield invalid(
                "drawing-negative", f"{tag} {key}={value!r} is a negative size"
            )


def _check_shapes(root: Any) -> Iterator[Finding]:
    """A shape has its properties in order; ids on a slide are unique (a warning: every tenth good deck breaks that)."""
    if _tag(root) not in ("sld", "sldLayout", "sldMaster"):
        return
    for shape in _each(root, "sp"):
        names = [name for child in shape if (name := _tag(child))]
        if names[:2] != ["nvSpPr", "spPr"]:
            yield invalid(
                "pptx-shape-parts",
                "a shape lacks nvSpPr or spPr, or has them out of order",
            )
    ids = [element.get("id") for element in _each(root, "cNvPr")]
    if len(set(ids)) < len(ids):
        yield warning("pptx-shape-id", "two shapes share an id")


def _check_text_bodies(root: Any) -> Iterator[Finding]:
    """A text body has a paragraph; a table row has a cell for every column."""
    for body in _each(root, "txBody"):
        if not any(_tag(child) == "p" for child in body):
            yield invalid("pptx-text-body", "a text body has no paragraph")
    for table in _each(root, "tbl"):
        columns = sum(
            _tag(child) == "gridCol"
            for grid in table
            if _tag(grid) == "tblGrid"
            for child in grid
        )
        for row in table:
            if _tag(row) == "tr" and sum(_tag(cell) == "tc" for cell in row) != columns:
                words = f"a table row does not have a cell for each of its {columns} columns"
                yield invalid("pptx-table-row", words)


def _check_masters(package: Package) -> Iterator[Finding]:
    """Slide to layout to master to theme: a link that is missing makes PowerPoint repair the deck."""
    slides = [
        r.target
        for r in package.related(package.main, "slide")
        if r.target in package.archive
    ]
    masters = package.related(package.main, "slideMaster")
    if not masters:
        yield invalid(
            "pptx-master-missing",
            "the presentation has no slide master",
            member=package.main,
        )
    for slide in slides:
        kind = package.content_type(slide)
        if not (kind or "").endswith("presentationml.slide+xml"):
            yield invalid(
                "pptx-slide-type",
                f"{slide} has content type {kind}, not that of a slide",
                member=slide,
            )
        if not package.related(slide, "slideLayout"):
            yield invalid("pptx-layout-missing", f"{slide} has no layout", member=slide)
    for relation in masters:
        if relation.target in package.archive and not package.related(
            relation.target, "theme"
        ):
            yield invalid(
                "pptx-theme-missing",
                f"{relation.target} has no theme",
                member=relation.target,
            )


def _check_order(package: Package) -> Iterator[Finding]:
    """PptxGenJS writes the children of the presentation in the wrong order; the deck opens, with a risk of repair."""
    root = _parse(package, package.main)
    if root is None:
        return
    places = [
        _PRESENTATION_ORDER.index(name)
        for child in root
        if (name := _tag(child)) in _PRESENTATION_ORDER
    ]
    if places != sorted(places):
        words = f"the children of {package.main} are out of order; PowerPoint may repair the file"
        yield warning("pptx-child-order", words, member=package.main)


# --------------------------------------------------------------------------- documents


def _check_cells(root: Any) -> Iterator[Finding]:
    """ECMA-376-1 §17.4.65: a table cell ends in a paragraph."""
    for cell in _each(root, "tc"):
        if "wordprocessingml" not in cell.tag:
            continue
        blocks = [
            name
            for child in cell
            if (name := _tag(child)) not in ("tcPr", "bookmarkStart", "bookmarkEnd", "")
        ]
        if not blocks or blocks[-1] not in ("p", "sdt", "customXml", "altChunk"):
            yield invalid("docx-cell-end", "a table cell does not end in a paragraph")


def _check_runs(root: Any) -> Iterator[Finding]:
    """Text stands in runs; straight in the body or a paragraph it is lost."""
    for element in _each(root, "body", "p", "tbl", "tr", "tc"):
        if "wordprocessingml" not in element.tag:
            continue
        texts = [element.text, *(child.tail for child in element)]
        stray = next((text.strip() for text in texts if text and text.strip()), None)
        if stray or any(_tag(child) == "t" for child in element):
            words = f"text outside a run: {stray or 'a <w:t>'!r:.60}"
            yield invalid("docx-text-outside", words)


def _check_fields(root: Any) -> Iterator[Finding]:
    """Complex fields (§17.16.18) begin and end in pairs."""
    open_fields = 0
    for mark in _each(root, "fldChar"):
        kind = next(
            (v for k, v in mark.attrib.items() if str(k).endswith("fldCharType")), ""
        )
        open_fields += {"begin": 1, "end": -1}.get(kind, 0)
        if open_fields < 0:
            break
    if open_fields:
        yield invalid(
            "docx-field-balance", "a field that is begun is not ended, or the reverse"
        )


def _check_comments(package: Package) -> Iterator[Finding]:
    known: set[str] = set()
    for relation in package.related(package.main, "comments"):
        comments = _parse(package, relation.target)
        if comments is not None:
            known |= {_identity(comment) for comment in _each(comments, "comment")}
    root = _parse(package, package.main)
    if root is None:
        return
    for reference in _each(root, "commentReference", "commentRangeStart"):
        if _identity(reference) not in known:
            words = f"{package.main} refers to the comment {_identity(reference)!r}, which is not there"
            yield invalid("docx-comment-missing", words, member=package.main)
            return


def _identity(element: Any) -> str:
    return next(
        (
            str(v)
            for k, v in element.attrib.items()
            if str(k).rpartition("}")[2] == "id"
        ),
        "",
    )


# --------------------------------------------------------------------------- workbooks


def _check_tables(root: Any) -> Iterator[Finding]:
    """A table's columns are unique, and as many as its range is wide."""
    if _tag(root) != "table" or "spreadsheetml" not in root.tag:
        return
    names = [column.get("name", "").casefold() for column in _each(root, "tableColumn")]
    if len(set(names)) < len(names):
        yield invalid("xlsx-table-column", "two columns of a table have the same name")
    match = re.fullmatch(
        r"\$?([A-Z]{1,3})\$?\d+(?::\$?([A-Z]{1,3})\$?\d+)?", root.get("ref", "")
    )
    if match and names:
        width = _column(match[2] or match[1]) - _column(match[1]) + 1
        if width != len(names):
            words = f"the table is {width} columns wide and names {len(names)}"
            yield invalid("xlsx-table-width", words)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _check_indexes(package: Package) -> Iterator[Finding]:
    """Cells use styles and shared texts by number; a number past the end is lost (text) or repaired (style)."""
    styles = _count(package, "styles", "cellXfs", "xf")
    texts = _count(package, "sharedStrings", "sst", "si")
    for relation in package.related(package.main, "worksheet"):
        if relation.target not in package.archive:
            continue
        found = _highest(package, relation.target)
        if styles is not None and found["s"] >= max(styles, 1):
            words = f"{relation.target} uses style {found['s']}; there are {styles}"
            yield invalid("xlsx-style-range", words, member=relation.target)
        if found["t"] >= (texts or 0) and found["t"] >= 0:
            words = f"{relation.target} uses shared text {found['t']}; there are {texts or 0}"
            yield warning("xlsx-text-range", words, member=relation.target)


def _count(package: Package, kind: str, parent: str, child: str) -> int | None:
    for relation in package.related(package.main, kind):
        root = _parse(package, relation.target)
        if root is None:
            continue
        holders = [root] if _tag(root) == parent else list(_each(root, parent))
        return sum(_tag(element) == child for holder in holders for element in holder)
    return None


def _highest(package: Package, part: str) -> dict[str, int]:
    """Return the highest style and shared text that a sheet uses; streamed, because sheets get large."""
    found = {"s": -1, "t": -1}
    shared = inside = False
    text: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal shared, inside
        name = local_name(tag)
        if name == "c":
            style = attributes.get("s", "")
            if style.isdecimal():
                found["s"] = max(found["s"], int(style[:9]))
            shared = attributes.get("t") == "s"
        elif name == "v":
            inside = shared
            text.clear()

    def on_text(piece: str) -> None:
        if inside:
            text.append(piece)

    def on_end(tag: str) -> None:
        nonlocal inside
        if inside and local_name(tag) == "v":
            number = "".join(text).strip()
            if number.isdecimal():
                found["t"] = max(found["t"], int(number[:9]))
            inside = False

    package.read(part, on_start, on_text, on_end)
    return found
