"""Markdown (.md, .markdown): any text is Markdown, so only an answer wrapped whole in a fence is doubted.

Sources:

- CommonMark 0.31 §4.5: a fence is closed by its own characters, as many or more, and nothing behind them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from extforge_verifiers.findings import warning
from extforge_verifiers.texts import check_encoding, check_placeholders, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_structure", "check_text"]

_FENCE = re.compile(r"`{3,}|~{3,}")
_WRAPPER = re.compile(r"(`{3,}|~{3,})\s*(?:markdown|md)", re.IGNORECASE)
_KEPT = 1 << 16  # characters of prose
# Code and formulas between the words: braces in them are no placeholders.
_QUOTED = re.compile(
    r"(?<!`)(`{1,8})(?!`)[^`\n]+\1|\$\$[^$]+\$\$|(?<![\w$])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\d)"
)


def check_text(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a binary file, or nothing at all, under the name of a document."""
    yield from check_encoding(artifact)


def check_structure(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a model's whole answer, fence included, saved as the document; one that nobody filled in."""
    headings = number = closed = 0  # lines with something on them
    fence = ""  # what closes the block of code that a line stands in
    first = last = ""
    prose: list[str] = []
    kept = 0
    for line in lines(artifact, returns=True):
        stripped = line.strip()
        if stripped:
            first = first or stripped
            last = stripped
            number += 1
        if fence:
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                fence = ""
                closed = closed or number
            continue
        if opened := _FENCE.match(stripped):
            fence = opened[0]
            continue
        headings += stripped.startswith("#")
        if kept < _KEPT:
            prose.append(line[:_KEPT])
            kept += len(line) + 1
    artifact.facts["headings"] = headings
    # A block inside a wrapper closes it; then the wrapper's own end opens a block that nothing closes.
    wrapper = _WRAPPER.fullmatch(first)
    if wrapper and last == wrapper[1] and (closed == number or fence):
        yield warning("md-fenced", "the whole document stands inside a fence", line=1)
    yield from check_placeholders(_QUOTED.sub(" ", "\n".join(prose)))
