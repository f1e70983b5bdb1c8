r"""Plan text on its way into a tree: always as data, never as structure.

Everything free goes through one of these: JSON files that the generated code reads, the manifest, front matter.
YAML strings are double-quoted JSON strings, which every YAML 1.1 and 1.2 parser reads alike, with one addition:
`---` is written `\x2d--`, because openJiuwen's static check splits front matter at the first `---` anywhere, even
inside a value.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["front_matter", "json_text", "manifest_text", "yaml_string"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
# Characters that JSON writes as they are and YAML 1.1 does not print: C1 controls, line separators, BOM, non-characters.
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


def json_text(value: Any) -> str:
    """Return readable JSON, with a final newline; the same bytes on every machine."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def yaml_string(text: str) -> str:
    """Return `text` as one YAML scalar on one line."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS and "--" not in text and len(text) <= 100:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    quoted = _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
    return quoted.replace("---", "\\x2d--")


def front_matter(fields: dict[str, Any]) -> str:
    """Return a YAML front matter block for Markdown."""
    return f"---\n{manifest_text(fields)}---\n"


def manifest_text(value: dict[str, Any]) -> str:
    """Return a manifest in block style, keys in the order given."""
    return "".join(_block(value, 0))


def _block(value: dict[str, Any], indent: int) -> list[str]:
    lines = []
    for key, item in value.items():
        lines += _entry(f"{' ' * indent}{yaml_string(key)}:", item, indent)
    return lines


def _entry(head: str, item: Any, indent: int) -> list[str]:
    if isinstance(item, dict) and item:
        return [f"{head}\n", *_block(item, indent + 2)]
    if isinstance(item, list) and item:
        lines = [f"{head}\n"]
        for element in item:
            if isinstance(element, dict) and element:
                inner = _block(element, indent + 4)
                lines.append(f"{' ' * (indent + 2)}- {inner[0].lstrip(' ')}")
                lines += inner[1:]
            else:
                lines.append(f"{' ' * (indent + 2)}- {_scalar(element)}\n")
        return lines
    return [f"{head} {_scalar(item)}\n"]


def _scalar(item: Any) -> str:
    """Return a value on one line: a scalar, something empty, or a list inside a list in flow style."""
    if isinstance(item, str):
        return yaml_string(item)
    if isinstance(item, list):
        return f"[{', '.join(_flow(element) for element in item)}]"
    if isinstance(item, dict):
        return f"{{{', '.join(f'{_quoted(key)}: {_flow(value)}' for key, value in item.items())}}}"
    return json.dumps(item)


def _flow(item: Any) -> str:
    # In flow style commas and brackets have a meaning, so every text is quoted.
    return _quoted(item) if isinstance(item, str) else _scalar(item)
