"""Word documents (.docx, .docm, .dotx, .dotm).

Sources:

- ECMA-376-1 §11.3.10 main document part, §17.2.2 body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.packages import Family, check_placeholder, checks_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding
    from extforge_verifiers.packages import Package

__all__ = ["check"]

_OPEN = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_MACRO = "application/vnd.ms-word"

FAMILY = Family(
    "docx",
    "document",
    {
        ".docx": f"{_OPEN}.document.main+xml",
        ".docm": f"{_MACRO}.document.macroEnabled.main+xml",
        ".dotx": f"{_OPEN}.template.main+xml",
        ".dotm": f"{_MACRO}.template.macroEnabledTemplate.main+xml",
    },
    "wordprocessingml",
)
# What a reader sees, beside text.
_SEEN = ("drawing", "pict", "object", "altChunk", "instrText", "fldSimple", "sym")


def _check_document(package: Package, artifact: Artifact) -> Iterator[Finding]:
    """Fake: a package that is a document in name, without a body or with nothing in it."""
    survey = package.survey(package.main)
    if survey is None:
        return
    counts, text = survey.counts, survey.text
    if not counts["body"]:
        yield invalid(
            "docx-no-body", f"{package.main} has no body", member=package.main
        )
        return
    artifact.facts["paragraphs"] = counts["p"]
    artifact.facts["tables"] = counts["tbl"]
    if not text and not any(counts[name] for name in _SEEN):
        yield warning(
            "docx-blank",
            "the document has neither text nor a picture",
            member=package.main,
        )
    yield from check_placeholder(package.main, text)


check = checks_for(FAMILY, _check_document)
