"""What a finding code means: its section in docs/codes.md."""

from __future__ import annotations

import difflib
import re
from functools import cache

from extforge.resources import CODES, shipped

__all__ = ["describe", "explain_code", "read_sections"]


def read_sections() -> dict[str, str]:
    """Return code -> its section, without the heading."""
    text = shipped(CODES).read_text(encoding="utf-8")
    parts = re.split(r"^### `([a-z0-9-]+)`\n", text, flags=re.MULTILINE)
    bodies = (re.split(r"^## ", body, maxsplit=1, flags=re.MULTILINE)[0].strip() for body in parts[2::2])
    return dict(zip(parts[1::2], bodies, strict=True))


def describe(code: str) -> str:
    """Return in one paragraph what a code means, without its severity."""
    first = _sections().get(code, code).partition("\n\n")[0]
    return " ".join(first.partition(": ")[2].replace("`", "").split())


@cache
def _sections() -> dict[str, str]:
    return read_sections()


def explain_code(code: str) -> str:
    """Return the section of a code.

    Raises:
        LookupError: when there is no such code, with the closest ones.
    """
    sections = read_sections()
    if code not in sections:
        close = difflib.get_close_matches(code, sections, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else "; docs/codes.md lists them all"
        raise LookupError(f"there is no finding code {code!r}{hint}")
    return f"{code}\n\n{sections[code]}"
