"""File names that guards let through: what to call a file when some rules want a suffix, a folder, a pattern."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from extforge.patterns import example

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["fitting_path"]


def fitting_path(stem: str, extension: str, rules: Sequence[dict[str, Any]]) -> str:
    """Return a path that all guards allow, as far as one is found; else one that the first of them allows.

    Args:
        stem: the name to start from.
        extension: with its dot.
        rules: options of the guards, with `require` and `forbid`.
    """
    wanted = [rule.get("require") or {} for rule in rules]
    folder = next((r["folder"][0] for r in wanted if r.get("folder")), "")
    suffix = "".join(dict.fromkeys(r["stem_suffix"] for r in wanted if r.get("stem_suffix")))
    patterns = [r["pattern"] for r in wanted if r.get("pattern")]
    names = list(_names(stem, suffix, extension, patterns))
    name = next((n for n in names if all(re.fullmatch(p, n) for p in patterns)), names[0])
    return name if os.path.normpath(folder or ".") == "." else f"{folder.rstrip('/')}/{name}"


def _names(stem: str, suffix: str, extension: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield names to try: the plain one, then with the beginnings and endings that the patterns' examples have."""
    yield f"{stem}{suffix}{extension}"
    for pattern in patterns:
        text = os.path.splitext(example(pattern) or "")[0]
        for size in range(1, len(text) + 1):
            yield f"{stem}{text[-size:]}{suffix}{extension}"
            yield f"{text[:size]}{stem}{suffix}{extension}"
        yield f"{text}{suffix}{extension}"
        yield f"{stem.replace('_', '-')}{suffix}{extension}"
