"""Names: which are allowed, how they turn into one another, and which are taken."""

from __future__ import annotations

import keyword
import re

__all__ = ["GENERIC_NAMES", "is_class_name", "is_module_path", "is_snake_case", "pascal_case", "reserved_reason"]

_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_PASCAL = re.compile(r"[A-Z][A-Za-z0-9]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEVICES = re.compile(r"con|prn|aux|nul|conin|conout|com\d|lpt\d")
LONGEST_NAME = 64
LONGEST_CLASS = 80

# Names that say nothing of the goal.  The first two are what openJiuwen's fallback planner makes of any
# Chinese goal; a bare format says what comes out, not what for.
GENERIC_NAMES = re.compile(
    r"user_demand(_\w+)?|runtime_extension(_\w+)?|office(_extension)?|(my|new|test|demo|sample|custom)_(extension|tool|skill|rail)"
    r"|extension|tool|rail|skill|plugin|helper|utils?|agent|generator|file_generator|report_generator"
    r"|document|documents|report|file|files|pptx?|docx?|xlsx?|excel|word|pdf|json|png|csv|chart|image|slides?"
)


def is_snake_case(name: str) -> bool:
    """Say whether `name` is an ASCII snake_case identifier that is not a keyword."""
    return _SNAKE.fullmatch(name) is not None and not keyword.iskeyword(name)


def is_class_name(name: str) -> bool:
    """Say whether `name` is an ASCII PascalCase identifier that is not a keyword."""
    return _PASCAL.fullmatch(name) is not None and len(name) <= LONGEST_CLASS and not keyword.iskeyword(name)


def is_module_path(path: str) -> bool:
    """Say whether `path` is a dotted path of ASCII identifiers."""
    parts = path.split(".")
    return all(_IDENTIFIER.fullmatch(part) and not keyword.iskeyword(part) for part in parts)


def reserved_reason(name: str) -> str | None:
    """Return why a file or folder must not have this name, or None."""
    if _DEVICES.fullmatch(name.split(".", maxsplit=1)[0].lower()):
        return "is the name of a Windows device"
    return None


def pascal_case(name: str) -> str:
    """Return `QuarterlyDeck` for `quarterly_deck`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
