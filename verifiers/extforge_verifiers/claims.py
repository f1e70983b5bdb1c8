"""Which files does a text say were written?  "I saved the deck to out/report.pptx" is a claim like any other.

A path counts when its sentence has a verb of writing and no denial, and when it is not what something was made
from.  English and Chinese; a sentence that is unclear claims nothing.
"""

from __future__ import annotations

import re

from extforge_verifiers.formats import FORMATS

__all__ = ["claimed_in", "paths_in"]

_SUFFIXES = "|".join(
    sorted(
        (suffix[1:] for row in FORMATS.values() for suffix in row.suffixes),
        key=len,
        reverse=True,
    )
)
_END = rf"\.(?:{_SUFFIXES})(?![A-Za-z0-9_])"
# Between quotes or as the target of a link a path may hold spaces; bare it ends at the first.
_QUOTED = re.compile(
    rf"[`\"'“”‘’「『(<]([^`\"'“”‘’「」『』()<>\n]{{1,300}}?{_END})[`\"'“”‘’」』)>]",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?:[A-Za-z]:[\\/]|[~./\\])?[\w\-./\\%+@~]{{1,300}}?{_END}", re.IGNORECASE
)
_WRITING = re.compile(
    r"\b(saved?|sav(ing|es)|wrote|writ(ten|es?)|creat(ed?|es)|generat(ed?|es)|export(ed|s)?|produc(ed?|es)|built|"
    r"stored?|made|rendered|ready at|available at|output(ted)? to|can be found)\b|"
    r"保存|写入|写到|生成|导出|创建|制作|输出到|已存",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(not|n't|cannot|couldn't|could not|unable|failed?|fails|without|never|will|would|should|can|shall|if|"
    r"please|let me|going to|plan to|next)\b|n't\b|未|没|无法|不能|失败|将要|将会|请|如果|可以",
    re.IGNORECASE,
)
_ALLOWED = re.compile(r"\bcan be found\b|\bready\b", re.IGNORECASE)
_SOURCE = re.compile(
    r"(\b(from|using|based on|reading|read|given|of|in the input|input|source|see)|根据|基于|从|读取|使用)\W*(the\s+|file\s+|your\s+)*$",
    re.IGNORECASE,
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s`\"'<>()]+", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？；;]|\n+(?!\s*[-*•])")


def claimed_in(text: str) -> list[str]:
    """Return the paths that a text says were written, in order, each once."""
    found: dict[str, None] = {}
    for sentence in _SENTENCE.split(text[:200_000]):
        verbs = _ALLOWED.sub(" ", sentence)
        if _WRITING.search(sentence) is None or _DENIAL.search(_without_paths(verbs)):
            continue
        for start, path in _paths(sentence):
            if _SOURCE.search(sentence[:start]) is None:
                found[path] = None
    return list(found)


def paths_in(text: str) -> list[str]:
    """Return every file name of a known format in a text, in order, each once; addresses of the web are none."""
    return list(
        dict.fromkeys(path for _, path in _paths(_URL.sub(" ", text[:200_000])))
    )


def _without_paths(sentence: str) -> str:
    return _BARE.sub(" ", _QUOTED.sub(" ", sentence))


def _paths(sentence: str) -> list[tuple[int, str]]:
    found = {
        match.start(): (match.end(), match[1].strip())
        for match in _QUOTED.finditer(sentence)
    }
    spans = [(start, end) for start, (end, _) in found.items()]
    for match in _BARE.finditer(sentence):
        if not any(start <= match.start() < end for start, end in spans):
            found[match.start()] = (match.end(), match[0])
    return [(start, path) for start, (_, path) in sorted(found.items())]
