r"""Excel workbooks (.xlsx, .xlsm, .xltx, .xltm).

Sources:

- ECMA-376-1 §12.3.23 workbook part, §18.2.19 sheet: name at most 31 characters, unique without case.
- Excel refuses the characters `: \ / ? * [ ]` in a sheet name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.markup import SEPARATOR, local_name
from extforge_verifiers.packages import (
    PREFIX,
    REST,
    Family,
    check_placeholder,
    checks_for,
    root_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding
    from extforge_verifiers.packages import Package

__all__ = ["check"]

_OPEN = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_MACRO = "application/vnd.ms-excel"

FAMILY = Family(
    "xlsx",
    "workbook",
    {
        ".xlsx": f"{_OPEN}.sheet.main+xml",
        ".xlsm": f"{_MACRO}.sheet.macroEnabled.main+xml",
        ".xltx": f"{_OPEN}.template.main+xml",
        ".xltm": f"{_MACRO}.template.macroEnabled.main+xml",
    },
    "spreadsheetml",
)
# Formulas count as values: what they come to is written by whoever opens the file.
_VALUES = ("v", "t", "f")
_VALUE = PREFIX + rb"[vtf](?=[\s>])" + REST + rb">\s*[^<\s]"
_ROW = PREFIX + rb"row(?=[\s/>])"
_DRAWING = PREFIX + rb"drawing[\s/>]"
_MOST_TEXTS = 100  # pieces that are looked at of a sheet too large to be searched
_NAME_LIMIT = 31
_FORBIDDEN = frozenset(":\\/?*[]")
_SHEET_ROOTS = frozenset(("worksheet", "chartsheet", "dialogsheet", "macrosheet"))


def _check_sheets(package: Package, artifact: Artifact) -> Iterator[Finding]:
    """Fake: a workbook in name, whose sheets are not there, or hold nothing."""
    listed = package.attributes(package.main, "sheet")
    relations = package.relations(package.main)
    seen: set[str] = set()
    found = 0
    rows = 0
    for sheet in listed:
        name = sheet.get("name", "")
        yield from _check_name(package, name, seen)
        relation = relations.get(sheet.get(":id", ""))
        if (
            relation is None
            or relation.external
            or relation.target not in package.archive
        ):
            yield invalid(
                "xlsx-sheet-missing",
                f"sheet {name!r} is listed but not there",
                member=package.main,
            )
            continue
        found += 1
        if relation.kind in ("worksheet", "chartsheet"):
            rows += yield from _check_sheet(package, name, relation.target)
    artifact.facts["sheets"] = found
    artifact.facts["rows"] = rows
    if not listed:
        yield invalid(
            "xlsx-no-sheets", "the workbook lists no sheet", member=package.main
        )
    yield from _check_strings(package)


def _check_name(package: Package, name: str, seen: set[str]) -> Iterator[Finding]:
    problem = None
    if not name or len(name) > _NAME_LIMIT:
        problem = f"sheet name {name!r} has {len(name)} characters; Excel takes 1 to {_NAME_LIMIT}"
    elif bad := sorted(_FORBIDDEN.intersection(name)):
        problem = (
            f"sheet name {name!r} has characters that Excel refuses: {' '.join(bad)}"
        )
    elif name.casefold() in seen:
        problem = f"two sheets are named {name!r}"
    seen.add(name.casefold())
    if problem:
        yield invalid("xlsx-sheet-name", problem, member=package.main)


def _check_sheet(
    package: Package, name: str, part: str
) -> Generator[Finding, None, int]:
    sheet = _look_at(package, part)
    if sheet is None:
        return 0
    if named := FAMILY.misnomer(*sheet.root, *_SHEET_ROOTS):
        words = f"{part} is a <{named}>, not a sheet"
        yield invalid("xlsx-sheet-root", words, member=part)
    elif sheet.root[0] == "worksheet" and not sheet.rows and not sheet.drawn:
        yield warning("xlsx-sheet-blank", f"sheet {name!r} holds no value", member=part)
    yield from check_placeholder(part, sheet.text)
    return sheet.rows


class _Sheet(NamedTuple):
    root: tuple[str, str]  # and its namespace
    rows: int  # that hold something
    drawn: bool  # whether there is a picture or a chart
    text: str  # what stands in the sheet itself, and not in the shared strings


def _look_at(package: Package, part: str) -> _Sheet | None:
    """Return what is in a sheet; None when it is damaged."""
    data = package.content(part)
    if data is not None:
        rows = re.split(_ROW, data)[1:]
        filled = sum(re.search(_VALUE, row) is not None for row in rows)
        drawn = re.search(_DRAWING, data) is not None
        return _Sheet(root_of(data), filled, drawn, text_of(data))
    roots: list[str] = []
    texts: list[str] = []
    filled, current, counted, drawn = 0, "", False, False

    def on_start(tag: str, _: dict[str, str]) -> None:
        nonlocal current, counted, drawn
        current = local_name(tag)
        counted = counted and current != "row"
        drawn = drawn or current == "drawing"
        if not roots:
            roots.append(tag)

    def on_text(text: str) -> None:
        nonlocal filled, counted
        if not counted and current in _VALUES and not text.isspace():
            counted, filled = True, filled + 1
        if current == "t" and len(texts) < _MOST_TEXTS:
            texts.append(text)

    if not package.read(part, on_start, on_text):
        return None
    root = local_name(roots[0]), roots[0].rpartition(SEPARATOR)[0]
    return _Sheet(root, filled, drawn, " ".join(texts))


def _check_strings(package: Package) -> Iterator[Finding]:
    """The texts of a workbook stand together in a part of their own."""
    for relation in package.related(package.main, "sharedStrings"):
        survey = package.survey(relation.target)
        if survey is not None:
            yield from check_placeholder(relation.target, survey.text)


check = checks_for(FAMILY, _check_sheets)
