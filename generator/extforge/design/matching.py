"""Find community skills whose description fits a gap: shared words, weighed by how rare they are in the collection.

Chinese terms count as their English; the words of one file format count as one word.  A skill is used once in a
plan, by the gap that it fits best, because the host goes by a skill's name.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from extforge.community import check_skill_source
from extforge.derive import FORMAT_WORDS, words_of
from extforge.design.artifacts import is_name, mentions
from extforge.design.lexicon import english
from extforge_verifiers.documents import read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.frontmatter import NAME, read_skill

if TYPE_CHECKING:
    from extforge.community import Collection
    from extforge.design.gaps import Gap

__all__ = ["Match", "described", "match_skills"]

THRESHOLD = 0.3
_NOT_FOR = re.compile(
    r"[^.。]*\b(do not|don't|not) (use|for|trigger)\b[^.。]*|[^。]*(不要用于|不适用于|请勿)[^。]*", re.IGNORECASE
)
_IDLE = frozenset(
    "python openpyxl reportlab matplotlib real a an the of to for in on as at by with and or into from is are be it its this that these when whenever use used using user users"
    " claude agent task tasks skill skills you your any all other etc e g i file files create creating make new work working such not"
    " do does if how what which will can should also more via per their them they we our has have needs need want wants".split()
)


@dataclass(frozen=True, slots=True)
class Match:
    """A community skill that fits a gap."""

    skill: str
    score: float  # 0 to 1: the share of the gap's words, weighed, that the skill's description has
    reason: str


def match_skills(gaps: list[Gap], collection: Collection | None) -> list[Match | None]:
    """Return the skill that fits each gap, or None below the threshold."""
    texts = described(collection) if collection else {}
    if not texts:
        return [None] * len(gaps)
    vocabularies = {name: _words(f"{name} {_NOT_FOR.sub(' ', text)}") for name, text in texts.items()}
    seen = Counter(word for words in vocabularies.values() for word in words)
    # A file format says more than other words what a skill is about.
    weight = {word: (3 if word in FORMAT_WORDS else 1) for word in seen}
    rarity = {word: weight[word] * math.log(1 + len(vocabularies) / count) for word, count in seen.items()}
    unknown = math.log(1 + len(vocabularies))
    found = []
    for index, gap in enumerate(gaps):
        wanted = _words(f"{gap.feature} {gap.suggested_approach}") | _words(gap.feature)
        total = sum(rarity.get(word, unknown) for word in wanted)
        for name, words in vocabularies.items():
            shared = sorted(wanted & words, key=lambda word: (-rarity[word], word))
            score = sum(rarity[word] for word in shared) / total if total else 0.0
            if score >= THRESHOLD and (len(shared) >= 2 or shared[0] in FORMAT_WORDS):
                found.append((score, index, Match(name, score, f"shares {', '.join(shared[:6])}")))
    matches: list[Match | None] = [None] * len(gaps)
    used: set[str] = set()
    for _, index, match in sorted(found, key=lambda item: (-item[0], item[1], item[2].skill)):
        if matches[index] is None and match.skill not in used:
            matches[index] = match
            used.add(match.skill)
    return matches


def described(collection: Collection) -> dict[str, str]:
    """Return skill -> description, of the skills that a plan could use."""
    found = {}
    for name, folder in sorted(collection.skills.items()):
        if not NAME.fullmatch(name) or any(True for _ in check_skill_source(collection, name)):
            continue
        try:
            with open(os.path.join(folder, "SKILL.md"), "rb") as stream:
                text = read_text(stream.read(), name)
        except (OSError, DocumentError):
            continue
        found[name] = str(read_skill(text, name).document.value.get("description", ""))[:2000]
    return found


def _words(text: str) -> frozenset[str]:
    words: set[str] = set()
    for word in words_of(text):
        known = [word] if word.isascii() else english(word)[0]
        words.update(_stem(part) for part in known if part not in _IDLE and len(part) > 1)
    named = [(form, match[0]) for form, match in mentions(text) if is_name(match[0])]
    drop = {_stem(word) for _, name in named for word in words_of(name)}
    return frozenset((words - drop) | {form for form, _ in named})


@cache
def _stem(word: str) -> str:
    """Return a word without its plural or participle; enough to let `reports` meet `report`."""
    for ending, least in (("ing", 6), ("ies", 5), ("es", 5), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word
