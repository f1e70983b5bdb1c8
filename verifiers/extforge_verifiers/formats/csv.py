"""Comma-separated values (.csv, .tsv).

Sources:

- RFC 4180 §2: records of one length, quotes doubled; the delimiter is found among comma, semicolon, tab and bar.
- What programs write beside it: apostrophes for quotes, quotes behind a backslash (`escapechar`), lines that end in a
  carriage return.

Not the module `csv`: a field of more than 128 KB stops it, and its limit is one for the whole process.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import recognise
from extforge_verifiers.findings import Undetermined, invalid, warning
from extforge_verifiers.texts import SOURCE, check_text, encoding, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_records", "check_text"]

_DELIMITERS = ",;\t|"
_LONGEST = 16 << 20  # characters of a line
_QUOTED = re.compile(r'"[^"]*"')  # what stands in quotes separates nothing
_APOSTROPHES = re.compile(r"'[^']*'(?:[,;\t|]'[^']*')*\Z")
_KEY = re.compile(r'[{\[]\s*(?:[{\[]\s*)*"[^"]*"\s*:')
_MARKUP = re.compile(
    r"<(?:!--|\?xml\b|(!doctype html|html|head|body|table|div|p|h1)\b|[a-z][\w:.-]*(?:\s[^<>]*)?/?>(?![,;\t|]))",
    re.IGNORECASE,
)
_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?\s*)?\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_SENTENCE = re.compile(r"(?:\S+\s+){7,}\S+|.*[.!。！]\s*\Z")


class _Broken(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def check_records(artifact: Artifact) -> Iterator[Finding]:
    """Fake: JSON, Markdown, markup or prose saved as data.csv; a header without records; records of different lengths."""
    head = artifact.head(1 << 16).decode(encoding(artifact), "replace")
    first = next((line for line in _lines(artifact) if line.strip()), "")
    if words := _other_format(artifact, head, first):
        said = f"not a table but {words}: the first line is {first.strip()[:40]!r}"
        yield invalid("csv-no-records", said, line=1)
        return
    quote = "'" if _APOSTROPHES.match(first.strip()) else '"'
    bare = re.sub(r"'[^']*'", "", first) if quote == "'" else _QUOTED.sub("", first)
    delimiter = max(_DELIMITERS, key=bare.count)
    escape = ""
    try:
        table = _Table(_lines(artifact), delimiter, quote)
    except _Broken as exc:
        try:
            table = _Table(_lines(artifact), delimiter, quote, "\\")
        except _Broken:
            yield invalid("csv-syntax", f"not CSV: {exc}", line=exc.line)
            return
        escape = "\\"
    artifact.facts["records"] = max(table.rows - 1, 0)
    artifact.facts["columns"] = table.width
    if escape or quote != '"':
        how = "quotes stand behind a backslash" if escape else "apostrophes quote"
        words = f"{how}, which readers take only when they are told"
        yield warning("csv-dialect", words, line=1)
    if table.rows == 1:
        yield warning("csv-no-records", "a header without a record", line=1)
    elif not table.filled:
        yield warning("csv-no-records", "its records are all empty", line=2)
    elif set(table.widths) == {1} and (words := _doubt(head)):
        yield warning("csv-not-table", f"it may be no table but {words}", line=1)
    if table.odd:
        words = f"records have {' and '.join(str(n) for n in sorted(table.widths)[:4])} fields; the first that differs is here"
        yield warning("csv-uneven", words, line=table.odd)


class _Table:
    """What the records of a text add up to.

    Raises:
        _Broken: at a quote that never ends, or has something after it.
    """

    def __init__(
        self, source: Iterable[str], delimiter: str, quote: str, escape: str = ""
    ) -> None:
        self.widths: Counter[int] = Counter()
        self.width = self.odd = 0  # of the header; the line of the first that differs
        self.filled = False  # a record after the header holds something
        nothing = f"{delimiter}{quote} \t"
        d, q = re.escape(delimiter), re.escape(quote)
        whole = re.compile(
            f"(?:^|(?<={d})){q}[^{q}]*+(?:{q}{q}[^{q}]*+)*+{q}(?={d}|$)"
        )  # a field in quotes, on one line
        special = re.compile(f"[{q}{re.escape(escape)}]")
        inside = False
        width = number = same = 0
        for number, line in enumerate(source, 1):
            if inside or quote in line:
                bare = line if inside or escape else whole.sub("", line)
                if not inside:
                    width = 1
                if inside or quote in bare:
                    passed, inside = _scan(
                        line, inside, delimiter, quote, special, number
                    )
                    width += passed
                else:
                    width += bare.count(delimiter)
            elif line:
                width = 1 + line.count(delimiter)
            else:
                continue
            if not self.filled and self.width:
                self.filled = bool(line.strip(nothing))
            if inside:
                continue
            if width == self.width:
                same += 1
                continue
            self.widths[width] += 1
            if not self.width:
                self.width = width
            elif not self.odd:
                self.odd = number
        self.widths[self.width] += same
        if inside:
            raise _Broken("a quote never ends", number)
        self.rows = self.widths.total()


def _lines(artifact: Artifact) -> Iterator[str]:
    for number, line in enumerate(lines(artifact, _LONGEST, returns=True), 1):
        if len(line) > _LONGEST:
            raise Undetermined(f"line {number} is too long to read")
        yield line


def _scan(
    line: str,
    inside: bool,  # noqa: FBT001 -- the state between two lines
    delimiter: str,
    quote: str,
    special: re.Pattern[str],
    number: int,
) -> tuple[int, bool]:
    """Return how many delimiters a line has outside quotes, and whether a quote is open at its end."""
    at = passed = 0
    while True:
        if inside:
            found = special.search(line, at)
            if found is None:
                return passed, True
            at = found.end()
            if found[0] != quote or line.startswith(quote, at):
                at += 1  # what follows the backslash, or the second of two quotes
                continue
            inside = False
            if at < len(line) and not line.startswith(delimiter, at):
                raise _Broken(f"{delimiter!r} expected after {quote!r}", number)
        elif line.startswith(quote, at):
            inside = True
            at += 1
            continue
        at = line.find(delimiter, at)
        if at < 0:
            return passed, False
        passed += 1
        at += 1


def _other_format(artifact: Artifact, head: str, first: str) -> str:
    """Return what the file surely is, when it is no table."""
    text = head.lstrip("\ufeff \t\r\n")
    if text.startswith("```"):
        return "a Markdown fence"
    if text.startswith("version https://git-lfs.github.com/spec/"):
        return "a Git LFS pointer"
    if text.startswith(("{", "[")) and _is_json(first, text):
        return "JSON text"
    if (found := _MARKUP.match(text)) and (
        found[1] or artifact.tail(64).rstrip(b"\0 \t\r\n").endswith(b">")
    ):
        return "an HTML page" if found[1] else "XML or HTML"
    rows = [line.strip() for line in text.splitlines()[:200] if line.strip()]
    if any("|" in a and _RULE.match(b) for a, b in pairwise(rows)):
        return "a Markdown table"
    known = recognise(text[:4096].encode())
    if known is not None and known.format == "base64":
        return known.words
    begins = SOURCE.match(text) or text.startswith(('"""', "#", "//", "/*"))
    if text.startswith(("#!/", "<?php")) or (begins and len(SOURCE.findall(text)) > 1):
        return "the source of a program"
    return ""


def _is_json(first: str, text: str) -> bool:
    if first.strip() in ("{", "[", "[{") or _KEY.match(text):
        return True
    try:
        json.loads(first, parse_int=len)
    except (ValueError, RecursionError):
        return False
    return True


def _doubt(head: str) -> str:
    """Return what a text of one column may be instead."""
    rows = [line.strip() for line in head.splitlines()[:-1] if line.strip()]
    if not rows:
        return ""
    body = "".join(rows)
    if (
        len(rows) > 1
        and len({len(row) for row in rows[:-1]}) == 1
        and all(_BASE64.fullmatch(row) for row in rows[:-1])
        and re.search("[a-z]", body)
        and re.search("[A-Z]", body)
    ):
        return "base64 text"
    if SOURCE.search(head):
        return "the source of a program"
    if re.match(r"#{1,6} \S", rows[0]):
        return "Markdown"
    prose = sum(_SENTENCE.match(row) is not None for row in rows)
    return "prose" if _SENTENCE.match(rows[0]) and 2 * prose >= len(rows) else ""
