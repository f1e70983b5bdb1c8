"""The matrix as one self-contained web page: no script, no request, everything in it escaped.

Reasons show on hover and on keyboard focus, and stand below each table for touch, print and screen readers.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from extforge_harness.runtimes.descriptors import KINDS
from extforge_harness.runtimes.matrix import CellStatus
from extforge_harness.runtimes.proving import NOT_PROVED, PROOFS
from extforge_harness.runtimes.showing import MARKS, TRUST, key_of, words_of
from extforge_verifiers.reports.webpage import shown, web_page

if TYPE_CHECKING:
    from extforge_harness.runtimes.catalog import Capability
    from extforge_harness.runtimes.matrix import Cell, Matrix

__all__ = ["render_page"]

_LOOK = """
:root{--works:#116c3a;--partly:#8a5a00;--elsewhere:#0b57d0;--no:#b3261e;--unknown:#6b3fa0}
@media(prefers-color-scheme:dark){:root{--works:#6fd699;--partly:#f2c46d;--elsewhere:#8ab4f8;--no:#ff9a90;
--unknown:#cfaef5}}
header,main{max-width:80rem;margin:0 auto;padding:1rem}
p{margin:.25rem 0}.soft{color:var(--soft)}
.legend,fieldset{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:.75rem 0;padding:0;border:0;list-style:none}
legend{float:left;padding-right:1rem}label{cursor:pointer}
section>details{background:var(--paper);border:1px solid var(--line);border-radius:.5rem;margin:0 0 1rem}
summary{cursor:pointer;padding:.75rem 1rem;font-weight:600;overflow-wrap:anywhere}
summary .soft{font-weight:400}
.scroll{padding:0 1rem}
table{border-collapse:collapse;table-layout:fixed;width:100%;min-width:56rem;font-size:.95rem}
th,td{text-align:left;vertical-align:top;padding:.5rem .6rem;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:600}
thead th:first-child{width:16rem}thead th:last-child{width:8rem}
tbody th{font-weight:400;overflow-wrap:anywhere}
.kind{color:var(--soft);font-size:.85rem;display:block}
.works{--tone:var(--works)}.partly{--tone:var(--partly)}.elsewhere{--tone:var(--elsewhere)}.no{--tone:var(--no)}
.unknown{--tone:var(--unknown)}
.mark{color:var(--tone);font-weight:600}
.how{display:block;color:var(--soft);font-size:.85rem}
.badge{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .55rem;font-size:.8rem;white-space:nowrap}
td.cell{position:relative}
.why{display:none;position:absolute;left:0;top:100%;z-index:2;width:18rem;max-width:70vw;padding:.5rem .7rem;
background:var(--ink);color:var(--paper);border-radius:.4rem;font-size:.85rem;box-shadow:0 2px 10px #0006}
td.cell:hover .why,td.cell:focus .why,td.cell:focus-within .why{display:block}
td.cell:nth-last-child(-n+3) .why{left:auto;right:0}
.reasons{padding:.25rem 1rem .75rem;font-size:.9rem}.reasons summary{padding:.25rem 0;font-weight:400;color:var(--soft)}
.reasons ul{margin:.25rem 0;padding-left:1.2rem}.reasons li{overflow-wrap:anywhere}
tbody:last-child tr:last-child .why{top:auto;bottom:100%}
@media(max-width:60rem){.scroll{overflow-x:auto}}
@media(max-width:40rem){header,main{padding:.75rem}}
@media print{fieldset{display:none}body{background:#fff}details{break-inside:avoid}}
""".strip()
_STYLE = _LOOK + "".join(
    f"\nbody:has(#only-{kind}:checked) tr[data-kind]:not([data-kind={kind}]){{display:none}}" for kind in KINDS
)


def render_page(matrix: Matrix, title: str = "Where it works") -> str:
    """Return the page."""
    sections = "\n".join(_section(matrix, name) for name in dict.fromkeys(c.extension for c in matrix.capabilities))
    body = f"""<header>
<h1>{shown(title)}</h1>
<p class="soft">{shown(_counts(matrix))}</p>
<ul class="legend" aria-label="Legend">{_legend(matrix)}</ul>
<fieldset><legend>Show</legend>{_filters(matrix)}</fieldset>
</header>
<main>
<section aria-label="Extensions">
{sections}
</section>
</main>"""
    return web_page(title, body, style=_STYLE)


def _counts(matrix: Matrix) -> str:
    provider = matrix.provider
    words = f"{len(matrix.capabilities)} capabilities on {len(matrix.runtimes)} runtimes"
    if provider is not None:
        words += f", with the provider {provider.id} ({provider.wire}{'' if provider.tools else ', no tool calling'})"
    return words


def _legend(matrix: Matrix) -> str:
    items = [f'<li class="{key}"><span class="mark">{mark[0]} {mark[2]}</span></li>' for key, mark in MARKS.items()]
    if any(cell.inferred for cell in matrix.cells):
        items.append("<li>† read in the runtime's source, not seen running</li>")
    items += [
        f'<li class="soft">proved: {proof} = {words}</li>'
        for proof, words in PROOFS.items()
        if any(cell.proved == proof for cell in matrix.cells)
    ]
    return "".join(items)


def _filters(matrix: Matrix) -> str:
    kinds = [kind for kind in KINDS if any(c.kind == kind for c in matrix.capabilities)]
    choices = [("all", "everything", " checked"), *((kind, f"{kind} only", "") for kind in kinds)]
    return "".join(
        f'<label><input type="radio" name="only" id="only-{kind}"{checked}> {words}</label>'
        for kind, words, checked in choices
    )


def _section(matrix: Matrix, extension: str) -> str:
    rows = [c for c in matrix.capabilities if c.extension == extension]
    heads = "".join(f'<th scope="col">{shown(r.name)}</th>' for r in matrix.runtimes)
    body = "\n".join(_row(matrix, capability) for capability in rows)
    worst = matrix.extension_row(extension)
    works = [r.name for r, status in zip(matrix.runtimes, worst, strict=True) if status is CellStatus.EXECUTABLE]
    summary = f"whole on {', '.join(works)}" if works else "whole on none of these"
    return f"""<details open><summary>{shown(extension)} <span class="soft">{shown(summary)}</span></summary>
<div class="scroll"><table>
<thead><tr><th scope="col">Capability</th>{heads}<th scope="col">Trust</th></tr></thead>
<tbody>
{body}
</tbody>
</table></div>
{_reasons(matrix, rows)}</details>"""


def _row(matrix: Matrix, capability: Capability) -> str:
    cells = matrix.row(capability.id)
    trust = next((cell.trust for cell in cells if cell.trust), None)
    badge = f'<span class="badge" title="{escape(trust)}">{TRUST[trust]}</span>' if trust else ""
    return (
        f'<tr data-kind="{capability.kind}"><th scope="row"><span class="kind">{capability.kind}</span>'
        f"{shown(capability.display_name)}</th>{''.join(_cell(cell) for cell in cells)}<td>{badge}</td></tr>"
    )


def _cell(cell: Cell) -> str:
    key = key_of(cell)
    proof = cell.proved if cell.proved in (None, NOT_PROVED) else f"proved: {cell.proved}"
    how = " · ".join(part for part in (cell.via.replace("_", " "), proof) if part)
    text = f"{MARKS[key][0]} {words_of(cell)}{'†' if cell.inferred else ''}"
    note = f'<span class="how">{shown(how)}</span>' if how else ""
    return (
        f'<td class="cell {key}" tabindex="0"><span class="mark">{shown(text)}</span>{note}'
        f'<span class="why" role="tooltip">{shown(cell.line)}</span></td>'
    )


def _reasons(matrix: Matrix, rows: list[Capability]) -> str:
    lines: dict[str, list[str]] = {}
    for capability in rows:
        for cell in matrix.row(capability.id):
            if cell.partial or cell.status is not CellStatus.EXECUTABLE:
                where = lines.setdefault(f"{capability.kind} {capability.display_name}: {cell.line}", [])
                where.append(cell.runtime)
    if not lines:
        return ""
    items = "".join(f"<li>{shown(line)} ({shown(', '.join(where))})</li>" for line, where in lines.items())
    return f'<details class="reasons"><summary>Why not everywhere</summary><ul>{items}</ul></details>\n'
