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

__all__ = ["example", "slow_reason", "unsafe_reason"]

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


_MOST_STEPS = 2_000  # per character of a text, at worst


def slow_reason(pattern: str) -> str | None:
    """Return why a pattern is not accepted for searching long texts, or None when it is.

    From every position of a text, a search may try each length of each repeat.  So repeats must be bounded, and few
    of them may be undecided at once: a repeat that cannot match what follows it has only one way to end.
    """
    if reason := unsafe_reason(pattern):
        return reason
    if re.search(pattern, "") is not None:
        return "it matches an empty text, so it would match everywhere"
    steps, _ = _steps(list(parser.parse(pattern)), 1)
    if steps is None:
        return "an unbounded repeat is slow on long texts; write {0,64} instead of *, {1,64} instead of +"
    if steps > _MOST_STEPS:
        return "its repeats can be cut in too many ways; make them shorter, or put something fixed between them"
    return None


def _steps(items: list[Any], ways: int) -> tuple[int | None, int]:
    """Return how many steps a match takes from one position, and how many ways are open after it."""
    total = 0
    for index, (operation, argument) in enumerate(items):
        steps: int | None = 1
        after = 1
        if operation in _REPEATS:
            least, most, body = argument
            if most is constants.MAXREPEAT:
                return None, ways
            inner, forks = _steps(list(body), 1)
            following = items[index + 1] if index + 1 < len(items) else None
            decided = following is not None and _excludes(body, following)
            after = forks * (1 if decided else most - least + 1)
            steps = None if inner is None else max(most, 1) * inner
        elif operation is constants.SUBPATTERN:
            steps, after = _steps(list(argument[-1]), 1)
        elif operation is constants.BRANCH:
            found = [_steps(list(branch), 1) for branch in argument[1]]
            steps = None if any(s is None for s, _ in found) else sum(s or 0 for s, _ in found)
            after = sum(forks for _, forks in found)
        elif operation in (constants.ASSERT, constants.ASSERT_NOT):
            steps, _ = _steps(list(argument[1]), 1)
        if steps is None:
            return None, ways
        total += ways * steps
        ways *= after
    return total, ways


def _excludes(body: Any, following: Any) -> bool:
    """Say whether a repeat of one character cannot match the fixed character after it, in either case."""
    operation, argument = following
    if operation is not constants.LITERAL or len(body) != 1:
        return False
    inner, choices = body[0]
    letters = {chr(argument), *chr(argument).swapcase()}
    if inner is constants.LITERAL:
        return chr(choices) not in letters
    if inner is not constants.IN or choices[0][0] is constants.NEGATE:
        return False
    return not any(_accepts(choice, letter) for choice in choices for letter in letters)


def _accepts(choice: Any, letter: str) -> bool:
    kind, value = choice
    if kind is constants.LITERAL:
        return bool(value == ord(letter))
    if kind is constants.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    return re.match(_CLASSES.get(value, "(?s:.)"), letter) is not None


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


_CLASSES = {
    constants.CATEGORY_DIGIT: r"\d",
    constants.CATEGORY_WORD: r"\w",
    constants.CATEGORY_SPACE: r"\s",
    constants.CATEGORY_NOT_DIGIT: r"\D",
    constants.CATEGORY_NOT_WORD: r"\W",
    constants.CATEGORY_NOT_SPACE: r"\S",
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
