"""The matrix for a terminal: marks, footnotes with the reasons, and what the marks mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_harness.runtimes.matrix import Cell, CellStatus, Matrix
from extforge_harness.runtimes.proving import NOT_PROVED, PROOFS
from extforge_verifiers.reports.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = list[tuple[str, str]]  # text and style of each column

__all__ = ["MARKS", "TRUST", "key_of", "show_matrix", "words_of"]

SHORTEST_LABEL = 16
TRUST = {
    "auto_safe": "reads only",
    "side_effect": "visible to others",
    "requires_approval": "asks first",
    "mixed": "mixed",
}

# Status -> mark, its ASCII form, word, ANSI colour.
MARKS = {
    "works": ("✓", "+", "works", "32"),
    "partly": ("◐", "~", "partly", "33"),
    "elsewhere": ("○", "o", "elsewhere", "36"),
    "no": ("✗", "x", "no", "31"),
    "unknown": ("?", "?", "unknown", "35"),
}
_KEYS = {
    CellStatus.EXECUTABLE: "works",
    CellStatus.PERCEPTION_ONLY: "elsewhere",
    CellStatus.UNAVAILABLE: "no",
    CellStatus.UNDETERMINED: "unknown",
}


def key_of(cell: Cell) -> str:
    """Return which of MARKS a cell gets."""
    return "partly" if cell.partial else _KEYS[cell.status]


def words_of(cell: Cell) -> str:
    """Return a cell's status in words: "elsewhere → native"."""
    word = MARKS[key_of(cell)][2]
    return f"{word} → {cell.suggested_runtime}" if cell.suggested_runtime else word


def show_matrix(
    matrix: Matrix, *, width: int = 100, colour: bool = False, unicode: bool = True, by_extension: bool = False
) -> str:
    """Return the matrix as a table with footnotes.

    Args:
        matrix: what to show.
        width: columns of the terminal; Chinese characters take two.  Where words do not fit, marks alone are shown.
        colour: with ANSI colours.
        unicode: the terminal can show more than ASCII.
        by_extension: one line per extension, with the worst of its components.
    """
    notes: dict[str, int] = {}
    heads = ["", *(runtime.id for runtime in matrix.runtimes), *([] if by_extension else ["trust"])]
    for words in (True, False):
        rows = _extension_rows(matrix) if by_extension else list(_rows(matrix, notes, words=words))
        rows = [[(printable(text), style) for text, style in row] for row in rows]
        table, fits = _layout(heads, rows, width, colour=colour, unicode=unicode)
        if fits:
            break
    text = "\n".join(line.rstrip() for line in [*table, "", *_below(matrix, notes)])
    return text if unicode else _plain(text)


def _plain(text: str) -> str:
    for mark, plain, _, _ in MARKS.values():
        text = text.replace(mark, plain)
    text = text.replace("→", "->").replace("†", "*").replace("·", "/")
    return text.encode("ascii", "backslashreplace").decode()


def _rows(matrix: Matrix, notes: dict[str, int], *, words: bool) -> Iterator[Row]:
    proofs = any(cell.proved not in (None, NOT_PROVED) for cell in matrix.cells)
    last = ""
    for capability in matrix.capabilities:
        if capability.extension != last:
            yield [(capability.extension, "")]
        last = capability.extension
        cells = matrix.row(capability.id)
        own = "" if capability.display_name == capability.extension else f" {capability.display_name}"
        trust = next((TRUST[cell.trust] for cell in cells if cell.trust), "")
        marks = [(_cell_text(cell, notes, words=words, proofs=proofs), MARKS[key_of(cell)][3]) for cell in cells]
        yield [(f"  {capability.kind}{own}", ""), *marks, (trust, "")]


def _cell_text(cell: Cell, notes: dict[str, int], *, words: bool, proofs: bool) -> str:
    parts = [MARKS[key_of(cell)][0] + ("†" if cell.inferred else "")]
    if words:
        parts.append(words_of(cell))
    if cell.partial or cell.status is not CellStatus.EXECUTABLE:
        away = f"elsewhere → {cell.suggested_runtime}: " if cell.suggested_runtime else ""
        parts.append(f"[{notes.setdefault(away + cell.line, len(notes) + 1)}]")
    elif cell.via == "mcp" and not proofs:
        parts.append("(mcp)")
    if proofs and cell.proved is not None:
        parts.append("(unproved)" if cell.proved == NOT_PROVED else f"({cell.proved})")
    return " ".join(parts)


def _extension_rows(matrix: Matrix) -> list[Row]:
    names = dict.fromkeys(c.extension for c in matrix.capabilities)
    marks = {name: [MARKS[_KEYS[status]] for status in matrix.extension_row(name)] for name in names}
    return [[(name, ""), *((f"{m[0]} {m[2]}", m[3]) for m in marks[name])] for name in names]


def _layout(heads: list[str], rows: list[Row], width: int, *, colour: bool, unicode: bool) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether the widest fits; labels that are too long are folded."""
    from rich.cells import cell_len, chop_cells, set_cell_size  # noqa: PLC0415 -- only when a table is shown

    columns = range(1, len(heads))
    widths = [max(cell_len(row[n][0]) for row in [[(h, "") for h in heads], *rows] if n < len(row)) for n in columns]
    longest = max((cell_len(row[0][0]) for row in rows if len(row) > 1), default=0)
    room = max(width - sum(widths) - 2 * len(widths), SHORTEST_LABEL)
    label = min(longest, room)

    def line(texts: list[str], styles: list[str]) -> str:
        cells = [set_cell_size(text, size) for text, size in zip(texts, [label, *widths], strict=True)]
        return "  ".join(f"\x1b[{s}m{c}\x1b[0m" if colour and s else c for c, s in zip(cells, styles, strict=True))

    plain = [""] * len(heads)
    lines = [line(heads, plain), ("─" if unicode else "-") * (label + sum(widths) + 2 * len(widths))]
    for row in rows:
        if len(row) == 1:
            lines.append(f"\x1b[1m{row[0][0]}\x1b[0m" if colour else row[0][0])
            continue
        texts = [text for text, _ in row] + [""] * (len(heads) - len(row))
        styles = [style for _, style in row] + [""] * (len(heads) - len(row))
        first = chop_cells(texts[0], label)[0]
        more = chop_cells(texts[0][len(first) :], label - 4)
        lines.append(line([first, *texts[1:]], styles))
        lines += [line([f"    {part}", *plain[1:]], plain) for part in more]
    return lines, longest <= room


def _below(matrix: Matrix, notes: dict[str, int]) -> Iterator[str]:
    if matrix.provider is not None:
        tools = "" if matrix.provider.tools else ", without tool calling"
        yield f"provider: {matrix.provider.id} ({matrix.provider.wire}{tools})"
    yield from (printable(f"[{number}] {line}") for line, number in notes.items())
    if any(cell.inferred for cell in matrix.cells):
        yield "† read in the runtime's source, not seen running"
    yield from (f"{p}: {words}" for p, words in PROOFS.items() if any(cell.proved == p for cell in matrix.cells))
    yield "   ".join(f"{mark} {word}" for mark, _, word, _ in MARKS.values())
