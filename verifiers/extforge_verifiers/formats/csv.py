"""Comma-separated values (.csv, .tsv).

Sources:

- RFC 4180 §2: records of one length; the delimiter is found among comma, semicolon, tab and bar.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import TYPE_CHECKING

from extforge_verifiers.findings import Undetermined, invalid, warning
from extforge_verifiers.texts import check_text, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_records", "check_text"]

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')  # what stands in quotes separates nothing


def check_records(artifact: Artifact) -> Iterator[Finding]:
    """Fake: JSON or prose saved as data.csv; a header without records; records of different lengths."""
    first = next((line for line in lines(artifact) if line.strip()), "")
    if first.lstrip()[:1] in ("{", "[") or first.lstrip().lower().startswith(
        ("<!doctype", "<html", "```")
    ):
        words = f"the first line is no record: {first[:40]!r}"
        yield invalid("csv-no-records", words, line=1)
        return
    bare = _QUOTED.sub("", first)
    counts = Counter({d: bare.count(d) for d in _DELIMITERS})
    delimiter = counts.most_common(1)[0][0]
    widths: Counter[int] = Counter()
    first_odd = 0
    reader = csv.reader(
        (f"{line}\n" for line in lines(artifact)), delimiter=delimiter, strict=True
    )
    try:
        for record in reader:
            if record:
                widths[len(record)] += 1
                if not first_odd and len(record) != next(iter(widths)):
                    first_odd = reader.line_num
    except csv.Error as exc:
        if "field limit" in str(exc):  # a limit of Python's reader, not of the format
            words = f"line {reader.line_num} has a field too long to read"
            raise Undetermined(words) from exc
        yield invalid("csv-syntax", f"not CSV: {exc}", line=reader.line_num)
        return
    rows = widths.total()
    artifact.facts["records"], artifact.facts["columns"] = (
        max(rows - 1, 0),
        next(iter(widths), 0),
    )
    if rows == 1:
        yield warning("csv-no-records", "a header without a record", line=1)
    if first_odd:
        words = f"records have {' and '.join(str(n) for n in sorted(widths)[:4])} fields; the first that differs is here"
        yield warning("csv-uneven", words, line=first_odd)
