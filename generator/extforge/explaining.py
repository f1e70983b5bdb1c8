"""What a finding code means: its section in docs/codes.md, with an example that yields it and one that does not."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass
from functools import cache

from extforge.resources import CODES, shipped

__all__ = [
    "Chapter",
    "Example",
    "Section",
    "describe",
    "explain_code",
    "find_section",
    "read_chapters",
    "read_sections",
]

_ITEM = re.compile(r"^- (bad|good)(?: `([^`\n]+)`)?:(.*(?:\n(?:  .*)?)*)", re.MULTILINE)
_FENCE = re.compile(r"\s*(`{3,})(\w+)\n(.*?)\n?\1", re.DOTALL)
_INLINE = re.compile(r"\s*(`+)( ?)(.+?)\2\1(?!`)")


@dataclass(frozen=True)
class Example:
    """One example of a section: `bad` yields the code; `good` is close to it, and does not."""

    kind: str
    file: str  # where it stands, when the section says so
    language: str  # of a block; empty for code within a line
    text: str  # the code; empty where words say how it comes about
    note: str  # words beside the code


@dataclass(frozen=True)
class Section:
    """What docs/codes.md says about one code."""

    code: str
    text: str  # all of it, without the heading

    @property
    def severity(self) -> str:
        """How much a finding with this code weighs."""
        return self.text.partition(":")[0]

    @property
    def meaning(self) -> str:
        """The section without its severity and its examples."""
        return _ITEM.sub("", self.text).partition(": ")[2].strip()

    @property
    def examples(self) -> list[Example]:
        """Its examples, in their order."""
        return [_read_example(*match.groups("")) for match in _ITEM.finditer(self.text)]


@dataclass(frozen=True)
class Chapter:
    """Sections that belong together."""

    title: str
    introduction: str
    sections: dict[str, Section]

    @property
    def reading(self) -> str:
        """How to read its examples: what its introduction says from the word "Examples" on."""
        match = re.search(r"^Examples .*", self.introduction, re.MULTILINE | re.DOTALL)
        return match[0] if match else ""


def _read_example(kind: str, file: str, body: str) -> Example:
    first, _, rest = body.partition("\n")
    body = f"{first}\n{textwrap.dedent(rest)}"
    block, inline = _FENCE.match(body), _INLINE.match(body)
    found = block or inline
    note = " ".join(body[found.end() if found else 0 :].lstrip(", ").split())
    if block:
        return Example(kind, file, block[2], block[3] + "\n", note)
    return Example(kind, file, "", inline[3] if inline else "", note)


def read_chapters() -> list[Chapter]:
    """Return docs/codes.md."""
    text = shipped(CODES).read_text(encoding="utf-8")
    titles = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    chapters = []
    for title, body in zip(titles[1::2], titles[2::2], strict=True):
        introduction, *parts = re.split(r"^### `([a-z0-9-]+)`\n", body, flags=re.MULTILINE)
        sections = {c: Section(c, t.strip()) for c, t in zip(parts[::2], parts[1::2], strict=True)}
        chapters.append(Chapter(title, introduction.strip(), sections))
    return chapters


def read_sections() -> dict[str, str]:
    """Return code -> its section, without the heading."""
    return {code: section.text for chapter in read_chapters() for code, section in chapter.sections.items()}


def describe(code: str) -> str:
    """Return in one paragraph what a code means, without its severity."""
    first = _sections().get(code, code).partition("\n\n")[0]
    return " ".join(first.partition(": ")[2].replace("`", "").split())


@cache
def _sections() -> dict[str, str]:
    return read_sections()


def find_section(code: str) -> tuple[Chapter, Section]:
    """Return the section of a code, and the chapter that it stands in.

    Raises:
        LookupError: when there is no such code, with the closest ones.
    """
    chapters = read_chapters()
    for chapter in chapters:
        if code in chapter.sections:
            return chapter, chapter.sections[code]
    known = [known for chapter in chapters for known in chapter.sections]
    close = difflib.get_close_matches(code, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; docs/codes.md lists them all"
    raise LookupError(f"there is no finding code {code!r}{hint}")


def explain_code(code: str) -> str:
    """Return the section of a code, and how to read its examples.

    Raises:
        LookupError: when there is no such code, with the closest ones.
    """
    chapter, section = find_section(code)
    parts = [code, section.text, chapter.reading if section.examples else ""]
    return "\n\n".join(part for part in parts if part)
