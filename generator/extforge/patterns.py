"""Regular expressions from a plan: accepted only when matching them cannot hang the agent.

Python's `re` backtracks: `(a+)+b` takes exponential time on `aaaa...`.  A guard runs on every tool call, and its
patterns come from a document somebody else wrote, so patterns whose worst case is more than a low polynomial are
refused when the plan is checked, and guards match them against short texts only (a file name, or 1,024 characters).
"""

from __future__ import annotations

import re

# The parser that `re` itself uses; it has been stable under this name since 3.11.
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["example", "unsafe_reason"]

_LONGEST = 500
_UNBOUNDED = 64  # repeats above this count as unbounded
_MAX_REPEATS = 3  # unbounded repeats in one pattern: cubic at worst, on at most 1,024 characters
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)


def unsafe_reason(pattern: str) -> str | None:
    """Return why a pattern is not accepted, or None when it is."""
    if len(pattern) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    try:
        re.compile(pattern)
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        return f"not a regular expression: {exc}"
    total, problem = _walk(tree, inside_repeat=False)
    if problem:
        return problem
    if total > _MAX_REPEATS:
        return f"{total} unbounded repeats; at most {_MAX_REPEATS} keep matching fast"
    return None


def _walk(items: Any, *, inside_repeat: bool) -> tuple[int, str | None]:
    """Return how many unbounded repeats there are, and the first thing that makes matching explode."""
    total = 0
    for operation, argument in items:
        if operation in _REPEATS:
            _, most, body = argument
            unbounded = most is constants.MAXREPEAT or most > _UNBOUNDED
            repeats = most is constants.MAXREPEAT or most > 1
            if inside_repeat and repeats:
                return total, "a repeat inside a repeat can take for ever"
            total += int(unbounded)
            inner, problem = _walk(body, inside_repeat=inside_repeat or repeats)
            total += inner
        elif operation is constants.SUBPATTERN:
            inner, problem = _walk(argument[-1], inside_repeat=inside_repeat)
            total += inner
        elif operation is constants.BRANCH:
            if inside_repeat:
                return total, "alternatives inside a repeat can take for ever"
            problem = None
            for branch in argument[1]:
                inner, found = _walk(branch, inside_repeat=inside_repeat)
                total, problem = total + inner, problem or found
        elif operation in (constants.GROUPREF, constants.GROUPREF_EXISTS):
            return total, "back-references are not accepted"
        elif operation in (constants.ASSERT, constants.ASSERT_NOT):
            inner, problem = _walk(argument[1], inside_repeat=inside_repeat)
            total += inner
        else:
            problem = None
        if problem:
            return total, problem
    return total, None


def example(pattern: str) -> str | None:
    """Return a text that a pattern matches as a whole, or None when none is found easily."""
    try:
        text = _example(parser.parse(pattern))
    except (KeyError, re.error, RecursionError):
        return None
    return text if re.fullmatch(pattern, text) else None


_CATEGORIES = {
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_WORD: "a",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_DIGIT: "a",
    constants.CATEGORY_NOT_SPACE: "a",
    constants.CATEGORY_NOT_WORD: "-",
}


def _example(items: Any) -> str:
    parts = []
    for operation, argument in items:
        if operation is constants.LITERAL:
            parts.append(chr(argument))
        elif operation is constants.NOT_LITERAL:
            parts.append("a" if argument != ord("a") else "b")
        elif operation is constants.ANY:
            parts.append("a")
        elif operation is constants.IN:
            parts.append(_member(argument))
        elif operation in _REPEATS:
            least, most, body = argument
            parts.append(_example(body) * max(least, min(most, 1)))
        elif operation is constants.SUBPATTERN:
            parts.append(_example(argument[-1]))
        elif operation is constants.BRANCH:
            parts.append(_example(argument[1][0]))
        elif operation is not constants.AT:
            raise KeyError(operation)
    return "".join(parts)


def _member(choices: Any) -> str:
    """Return one character of a set."""
    if choices[0][0] is constants.NEGATE:
        refused = "".join(_member([choice]) for choice in choices[1:])
        return next(c for c in "a1-_. " if c not in refused)
    operation, argument = choices[0]
    if operation is constants.RANGE:
        return chr(argument[0])
    return chr(argument) if operation is constants.LITERAL else _CATEGORIES[argument]
