"""Markdown (.md, .markdown): any text is Markdown, so only an answer wrapped whole in a fence is doubted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.findings import warning
from extforge_verifiers.texts import check_text, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_structure", "check_text"]


def check_structure(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a model's whole answer, fence included, saved as the document."""
    headings = 0
    first = last = ""
    for line in lines(artifact):
        stripped = line.strip()
        if stripped:
            first = first or stripped
            last = stripped
        headings += stripped.startswith("#")
    artifact.facts["headings"] = headings
    if first in ("```markdown", "```md") and last == "```":
        yield warning("md-fenced", "the whole document stands inside a fence", line=1)
