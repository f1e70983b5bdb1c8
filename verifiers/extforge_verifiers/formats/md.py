"""Markdown (.md, .markdown): any text is Markdown, so only an answer wrapped whole in a fence is doubted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from extforge_verifiers.findings import warning
from extforge_verifiers.texts import check_text, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_structure", "check_text"]

_FENCE = re.compile(r"`{3,}|~{3,}")


def check_structure(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a model's whole answer, fence included, saved as the document."""
    headings = 0
    fence = ""  # what closes the block of code that a line stands in
    first = last = ""
    for line in lines(artifact):
        stripped = line.strip()
        if stripped:
            first = first or stripped
            last = stripped
        if fence:
            fence = (
                ""
                if stripped.startswith(fence) and not stripped.strip(fence[0])
                else fence
            )
        elif opened := _FENCE.match(stripped):
            fence = opened[0]
        else:
            headings += stripped.startswith("#")
    artifact.facts["headings"] = headings
    if first in ("```markdown", "```md") and last == "```":
        yield warning("md-fenced", "the whole document stands inside a fence", line=1)
