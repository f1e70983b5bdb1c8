"""JSON too large to hold in memory, read as a stream of events.

The contract tier builds the whole value, which takes ten times the file's size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.findings import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_json"]

_TYPES = {"start_map": "object", "start_array": "array"}
_OFTEN = 16_384  # events between two looks at the clock


def check_json(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a large text that stops, or goes wrong, somewhere inside."""
    import ijson  # noqa: PLC0415 -- needed for large files only

    artifact.stream.seek(3 if artifact.head(3) == b"\xef\xbb\xbf" else 0)
    depth = records = 0
    kind = ""
    try:
        events = ijson.basic_parse(artifact.stream, buf_size=1 << 20, use_float=True)
        for number, (event, _) in enumerate(events):
            if not number % _OFTEN:
                artifact.spend(0)
            kind = kind or _TYPES.get(event, event)
            if event in ("end_map", "end_array"):
                depth -= 1
                continue
            in_list = kind == "array" and event != "map_key"
            records += depth == 1 and (in_list or event == "map_key")
            depth += event in _TYPES
    except ijson.IncompleteJSONError as exc:
        code = "json-truncated" if "premature EOF" in str(exc) else "json-syntax"
        yield invalid(code, f"not JSON: {_first_line(exc)}")
        return
    except (ijson.JSONError, UnicodeDecodeError, OverflowError) as exc:
        yield invalid("json-syntax", f"not JSON: {_first_line(exc)}")
        return
    artifact.facts["type"] = kind
    if kind in ("object", "array"):
        artifact.facts["records"] = records


def _first_line(exc: Exception) -> str:
    return str(exc).strip().partition("\n")[0]
