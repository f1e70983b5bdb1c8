"""Read gap analyses: openJiuwen's GapAnalysisArtifact as JSON or YAML, or its eight-column Markdown table.

The host's own parser passes over a row with a cell too few, or a word where a number should be, with no more than
a line in a log.  Here a row is either a gap or a finding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from extforge.reading import blocks_in, has_fence
from extforge_harness.documents import Model, bind, read_source
from extforge_verifiers.documents import Document, Path, parse_text, read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Gap", "GapAnalysis", "Gaps", "PlacedGap", "read_gaps"]

Score = Annotated[float, Field(ge=0, le=1_000_000)]
MOST_GAPS = 1_000
# Column titles as openJiuwen's assess skill and code write them; what stands in brackets, as in 影响(0-1), is a note.
COLUMNS = {
    "competitor": ("competitor", "竞品", "来源", "source", "参考对象"),
    "feature": ("feature", "功能", "能力"),
    "current_state": ("current_state", "current state", "当前状态", "现状"),
    "gap_description": ("gap_description", "gap description", "gap", "差距描述", "差距", "缺口描述"),
    "impact": ("impact", "影响"),
    "feasibility": ("feasibility", "可行性"),
    "suggested_approach": ("suggested_approach", "suggested approach", "approach", "suggestion", "建议方案", "建议"),
    "target_files": ("target_files", "target files", "目标文件"),
}
# Beside them, people number their gaps.
_TITLES = {**COLUMNS, "id": ("id", "编号")}
_RULE = re.compile(r"\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*")
# A document in YAML that no suffix says to be one, as on standard input.
_YAML_KEY = re.compile(r"""^[ \t-]*(?:\{.*?)?["']?(?:gaps|feature|gap_description)["']?[ \t]*:""", re.MULTILINE)
_CELL_EDGE = re.compile(r"(?<!\\)\|")


class Gap(Model):
    """One missing ability, with openJiuwen's own fields."""

    id: str = ""
    competitor: str = Field("", description="where it comes from: a product, or users themselves")
    feature: str = ""
    current_state: str = ""
    gap_description: str = ""
    impact: Score = 0.0
    feasibility: Score = 0.0
    suggested_approach: str = ""
    target_files: list[str] = []

    @property
    def priority(self) -> float:
        """Impact times feasibility, as the host ranks."""
        return self.impact * self.feasibility


class GapAnalysis(Model):
    """A gap analysis in its full form."""

    gaps: list[Gap]
    competitor_summary: str = ""
    raw_analysis: str = ""


@dataclass(frozen=True, slots=True)
class PlacedGap:
    """A gap, and where it stands."""

    gap: Gap
    where: Where


@dataclass(slots=True)
class Gaps:
    """What was found: the gaps that can be designed for, and every reason why others cannot."""

    label: str
    found: list[PlacedGap] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read_gaps(source: str) -> Gaps:
    """Return the gaps in a file, or of standard input for `-`.

    A gap that cannot be used is a finding; the others are there all the same.

    Raises:
        DocumentError: when nothing can be read, or there is no gap analysis in it.
    """
    try:
        label, data = read_source(source)
    except OSError as exc:
        words, fix = f"cannot be read: {exc.strerror}", "name the file with the gaps"
        raise DocumentError(source, [Finding("gap-unreadable", words, where=Where(source), fix=fix)]) from None
    gaps = Gaps(label)
    rows = _rows(read_text(data, label), label)
    seen: set[tuple[str, ...]] = set()
    for number, (where, gap, problems) in enumerate(rows[:MOST_GAPS], 1):
        gaps.findings += problems
        if gap is not None:
            _take(gaps, number, where, gap, seen)
    if len(rows) > MOST_GAPS:
        words = f"{len(rows):,} gaps; the first {MOST_GAPS:,} were read"
        gaps.findings.append(Finding("gap-too-many", words, where=Where(label), fix="split the file"))
    if all(gap is None and problems[0].code == "gap-unknown-key" for _, gap, problems in rows):
        words = "there is no gap in it"
        columns = " | ".join(COLUMNS)
        fix = (
            f"expected {{gaps: [...]}}, a list of gaps, or a Markdown table with gap_description and more of {columns}"
        )
        raise DocumentError(label, [*gaps.findings, Finding("gap-none", words, where=Where(label), fix=fix)])
    return gaps


Row = tuple[Where, Gap | None, list[Finding]]


def _take(gaps: Gaps, number: int, where: Where, gap: Gap, seen: set[tuple[str, ...]]) -> None:
    """Add a gap, or say why not."""
    if not (gap.feature.strip() or gap.gap_description.strip()):
        words = "a gap with neither feature nor gap_description says nothing to design for"
        gaps.findings.append(Finding("gap-empty", words, where=where))
        return
    name = gap.id.strip() or f"gap_{number}"
    if any(placed.gap.id == name for placed in gaps.found):
        words = f"the id {name!r:.80} is used twice; this gap is called {name[:60]}_{number}"
        gaps.findings.append(Finding("gap-id-twice", words, Severity.WARNING, where))
        name = f"{name}_{number}"
    texts = tuple(" ".join(t.lower().split()) for t in (gap.feature, gap.gap_description, gap.suggested_approach))
    if texts in seen:
        words = f"{name!r:.80} says word for word what an earlier gap says; it is designed for once"
        gaps.findings.append(Finding("gap-repeated", words, Severity.WARNING, where))
        return
    seen.add(texts)
    gaps.found.append(PlacedGap(gap.model_copy(update={"id": name}), where))


# --------------------------------------------------------------------------- shapes


def _rows(text: str, label: str) -> list[Row]:
    """Return the gaps in whatever shape they have."""
    as_document = label.lower().endswith((".json", ".yaml", ".yml")) and not has_fence(text)
    if not as_document and (tables := list(_table_rows(text, label))):
        return tables
    if as_document or text.lstrip()[:1] in ("{", "["):
        try:
            return _document_rows(parse_text(text, label))
        except DocumentError as exc:
            if as_document or "more text after" not in exc.findings[0].message:
                raise
    blocks = list(blocks_in(text, label, _looks_like_gaps))
    if blocks:
        return [row for document, _, _ in blocks for row in _document_rows(document)]
    if _YAML_KEY.search(text):
        return _document_rows(parse_text(text, label))
    return []


def _looks_like_gaps(value: object) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("gaps"), list) or "feature" in value or "gap_description" in value
    return isinstance(value, list) and any(isinstance(v, dict) and _looks_like_gaps(v) for v in value)


def _document_rows(document: Document) -> list[Row]:
    value = document.value
    if isinstance(value, dict) and "gaps" in value:
        if not isinstance(value["gaps"], list):
            finding = Finding("gap-shape", "`gaps` must be a list", where=document.where(("gaps",)))
            raise DocumentError(document.source, [finding])
        known = (*GapAnalysis.model_fields, "$schema")
        unknown = [key for key in value if key not in known]
        rows: list[Row] = [_bound(document, ("gaps", index)) for index in range(len(value["gaps"]))]
        if not rows and isinstance(raw := value.get("raw_analysis"), str):
            rows = list(_table_rows(raw, document.source))
        for key in unknown:
            where = document.where((key,), key=True)
            words = f"unknown key {key!r:.80} beside `gaps`; it is not used"
            rows.append((where, None, [Finding("gap-unknown-key", words, Severity.WARNING, where)]))
        return rows
    if isinstance(value, list):
        return [_bound(document, (index,)) for index in range(len(value))]
    if isinstance(value, dict) and _looks_like_gaps(value):
        return [_bound(document, ())]
    if value is None:
        raise DocumentError(document.source, [Finding("gap-none", "the document is empty", where=document.where(()))])
    words = "not a gap analysis: expected {gaps: [...]}, a list of gaps, or one gap with a feature"
    raise DocumentError(document.source, [Finding("gap-shape", words, where=document.where(()))])


def _bound(document: Document, path: Path) -> Row:
    gap, problems = bind(document, Gap, path)
    return document.where(path), gap, problems


# --------------------------------------------------------------------------- Markdown tables


def _table_rows(text: str, label: str) -> Iterator[Row]:
    """Yield the rows of every table whose columns are those of a gap analysis."""
    order: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if "|" not in line:
            order = None
            continue
        if _RULE.fullmatch(line):
            continue
        cells = _cells(line)
        if (named := _named_columns(cells)) is not None:
            order = named
        elif order is None and line.lstrip().startswith("|") and len(cells) == len(COLUMNS) and _is_number(cells[4]):
            order = list(COLUMNS)  # a table without its header, as the host also takes it
            yield _table_row(order, cells, Where(label, line=number))
        elif order is not None:
            yield _table_row(order, cells, Where(label, line=number))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    cells = [cell.strip().replace("\\|", "|") for cell in _CELL_EDGE.split(inner)]
    return [re.sub(r"<br\s*/?>", " ", cell) for cell in cells]


def _named_columns(cells: list[str]) -> list[str] | None:
    """Return the fields that a header names, or None when this is no header of ours."""
    names = []
    for cell in cells:
        title = re.sub(r"[(（].*?[)）]|[*_`]{1,2}(?=\S)|(?<=\S)[*`]{1,2}", "", cell).strip().lower()
        title = cell.strip("*` ").lower() if "_" in cell and "(" not in cell else title
        names.append(next((name for name, known in _TITLES.items() if title in known), ""))
    found = [name for name in names if name]
    fewest = 2 if "gap_description" in found else 3
    return names if len(set(found)) == len(found) >= fewest and {"feature", "gap_description"} & set(found) else None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) is not None


def _table_row(order: list[str], cells: list[str], where: Where) -> Row:
    if len(cells) != len(order):
        words = f"the row has {len(cells)} cells, the table has {len(order)} columns"
        fix = "write a | inside a cell as \\|"
        return where, None, [Finding("gap-row-cells", words, where=where, fix=fix)]
    fields: dict[str, Any] = {name: cell for name, cell in zip(order, cells, strict=True) if name}
    problems = []
    for name in ("impact", "feasibility"):
        if name not in fields:
            continue
        if _is_number(fields[name]):
            fields[name] = float(fields[name])
        else:
            words = f"{name} must be a number, not {fields[name]!r:.60}"
            problems.append(Finding("gap-row-number", words, where=where, fix="write it as 0.8 or 8"))
    files = re.split(r"[,，;；]", fields.get("target_files", ""))
    fields["target_files"] = [name.strip(" `") for name in files if name.strip(" `-—")]
    if problems:
        return where, None, problems
    gap, more = bind(Document(fields, where.path or ""), Gap)
    return where, gap, [finding.at(line=where.line) for finding in more]
