"""Names for designs: made of the goal's own words, ASCII, unique in the plan, never `runtime_extension`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from extforge.derive import FORMAT_WORDS, words_of
from extforge.design.lexicon import GENERIC_TERMS, english
from extforge.naming import GENERIC_NAMES, is_snake_case, pascal_case, reserved_reason
from extforge_verifiers.hostnames import HIDDEN_SKILL_FOLDERS, HOST_RAILS, HOST_TOOLS

__all__ = ["Name", "name_design"]

LONGEST = 48  # leaves room for `_xlsx` and class suffixes below the plan's own limits
MOST_WORDS = 5
_IDLE = frozenset(
    "a an the of to for in on as at by with without and or into onto from is are be been it its our their your my this that these those"
    " must never always only all every each any some no not may can cannot should shall will would has have had do does don automatically"
    " generate generates generating generation create creates creating creation produce produces make makes making write writes writing build"
    " add adds adding ability feature per implement provide provides allow allows enable enables need needs"
    " want wants automatic automated real actual new better using use uses used via when whether how what which who where than then so"
    " agent user users real-world".split()
)
# What a name ends in when its words alone would say too little.
ROLES = {
    **dict.fromkeys(("guard", "output_guard", "result_filter"), "guard"),
    "http": "api",
    "artifact_gate": "gate",
    "skill": "guide",
    **{does: does for does in ("command", "query", "audit", "budget", "reminder", "prompt")},
}
_ENDINGS = frozenset("tool tools helper extension skill plugin".split())  # what every extension is


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and what a reader should know about it."""

    value: str
    hashed: bool = False  # no word of the goal could be used
    partial: bool = False  # some could, less than half of it


def name_design(feature: str, description: str, does: str, formats: list[str], taken: set[str]) -> Name:
    """Return a new name, and note it in `taken`.

    Args:
        feature: the goal's title, from which the words come.
        description: more words, when the title has none.
        does: what the extension does: `artifact`, `guard`, `http` ...
        formats: formats that it writes; the name keeps the first.
        taken: names that are used already.
    """
    words, share = _words(feature)
    if not _telling(words):
        more, share = _words(description)
        words = [*words, *[w for w in more if w not in words and w not in GENERIC_TERMS][: MOST_WORDS - 1]]
    hashed = not _telling(words)
    if hashed:
        digest = hashlib.sha256(f"{feature}\n{description}".encode("utf-8", "replace")).hexdigest()[:8]
        words = [formats[0] if formats else ROLES.get(does, "extension"), f"h{digest}"]
    elif formats and not any(word in FORMAT_WORDS[form] for form in formats for word in words):
        words = [*words[: MOST_WORDS - 1], formats[0]]
    elif does in ("guard", "output_guard", "result_filter") and "guard" not in words:
        words = [*words[: MOST_WORDS - 1], ROLES[does]]
    elif len(words) == 1:
        role = ROLES.get(does, "writer" if formats else "action")
        words.append(role if role not in words else "extension")
    return Name(_unique(_joined(words), taken), hashed, partial=not hashed and share < 0.5)


def _words(text: str) -> tuple[list[str], float]:
    """Return the words of a text that say something, and the share of its Chinese that is known."""
    found: list[str] = []
    shares: list[tuple[float, int]] = []
    for word in words_of(text[:300]):
        if word.isascii():
            found += [word] if len(word) > 1 or word.isdigit() else []
        else:
            known, share = english(word)
            found += known
            shares.append((share, len(word)))
    kept = [word for word in dict.fromkeys(found) if word not in _IDLE]
    while len(kept) > 1 and kept[-1] in _ENDINGS:
        kept.pop()
    total = sum(size for _, size in shares)
    share = sum(part * size for part, size in shares) / total if total else 1.0
    return kept[:MOST_WORDS], share


def _telling(words: list[str]) -> bool:
    return any(word not in GENERIC_TERMS and not word.isdigit() for word in words)


def _joined(words: list[str]) -> str:
    """Return the words as an identifier: digits do not come first, and it is not too long."""
    first = next((i for i, word in enumerate(words) if word[0].isalpha()), None)
    words = ["extension", *words] if first is None else [words[first], *words[:first], *words[first + 1 :]]
    while len("_".join(words)) > LONGEST and len(words) > 1:
        words = [*words[:-2], words[-1]] if len(words) > 2 else words[:1]
    return "_".join(words)[:LONGEST].rstrip("_")


def _unique(name: str, taken: set[str]) -> str:
    candidates = [name, f"{name}_extension", *(f"{name}_{number}" for number in range(2, 10_000))]
    for candidate in candidates:
        generic = GENERIC_NAMES.fullmatch(candidate) or candidate in HOST_TOOLS or candidate in HIDDEN_SKILL_FOLDERS
        unusable = (
            not is_snake_case(candidate) or reserved_reason(candidate) or f"{pascal_case(candidate)}Rail" in HOST_RAILS
        )
        if candidate not in taken and not generic and not unusable:
            taken.add(candidate)
            return candidate
    raise AssertionError(name)  # ten thousand gaps of one name; read_gaps takes fewer
