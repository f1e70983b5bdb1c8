r"""Excel workbooks (.xlsx, .xlsm, .xltx, .xltm).

Sources:

- ECMA-376-1 §12.3.23 workbook part, §18.2.19 sheet: name at most 31 characters, unique without case.
- Excel refuses the characters `: \ / ? * [ ]` in a sheet name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.packages import Family, checks_for

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
)
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
    survey = package.survey(part)
    if survey is None:
        return 0
    root, counts, _ = survey
    if root not in _SHEET_ROOTS:
        yield invalid(
            "xlsx-sheet-root", f"{part} is a <{root}>, not a sheet", member=part
        )
    elif root == "worksheet" and not any(counts[n] for n in ("v", "t", "drawing")):
        yield warning("xlsx-sheet-blank", f"sheet {name!r} holds no value", member=part)
    return counts["row"]


check = checks_for(FAMILY, _check_sheets)
