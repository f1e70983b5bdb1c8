"""Web pages (.html, .htm).

Sources:

- WHATWG HTML §13.1: a document has elements; browsers accept almost anything, so only what is no HTML at all fails.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.texts import check_text, encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_elements", "check_text"]

_WINDOW = 4 << 20  # bytes looked at
_ELEMENT = re.compile(
    r"<(html|head|body|div|p|h[1-6]|table|ul|ol|span|a|img|section|main|article|svg|pre)\b[^<>]{0,2000}>",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<(script|style|head|title|template)\b", re.IGNORECASE)
_PICTURE = re.compile(r"<(img|svg|canvas|video|iframe|input|button)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{0,2000}>")


def check_elements(artifact: Artifact) -> Iterator[Finding]:
    """Fake: Markdown or plain text saved as page.html; a page with nothing to see."""
    text = artifact.head(_WINDOW).decode(encoding(artifact), "replace")
    elements = sum(1 for _ in _ELEMENT.finditer(text))
    artifact.facts["elements"] = elements
    if not elements:
        yield invalid("html-no-element", "there is no HTML element in it")
        return
    shown = _shown(text)
    if not _TAG.sub("", shown).strip() and _PICTURE.search(shown) is None:
        yield warning("html-blank", "the page has nothing to see without a script")


def _shown(text: str) -> str:
    """Return the page without what is never displayed; in one pass, whatever the page does not close."""
    lowered = text.lower()
    kept = []
    position = 0
    while (hidden := _HIDDEN.search(text, position)) is not None:
        kept.append(text[position : hidden.start()])
        position = lowered.find(f"</{hidden[1].lower()}", hidden.end())
        if position < 0:
            return "".join(kept)
    kept.append(text[position:])
    return "".join(kept)
