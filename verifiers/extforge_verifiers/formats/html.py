"""Web pages (.html, .htm).

Sources:

- WHATWG HTML §13.1: a document has elements, and nothing but comments and space stands before them; browsers accept
  almost anything, so only what is no HTML at all fails.
- WHATWG HTML §13.2.5: where a tag, an attribute's value, a comment and the text of a script end; §13.2.3.2: the encoding
  is declared at the start.

Not `html.parser`: on Python 3.11 it takes the square of the time for a page that leaves tags or comments open.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING

from extforge_verifiers.disguises import Disguise, posing, recognise
from extforge_verifiers.findings import Finding, Severity, invalid, warning
from extforge_verifiers.texts import (
    SOURCE,
    check_encoding,
    check_placeholders,
    encoding,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["check_elements", "check_text"]

_KNOWN_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br "
    "button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed "
    "fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img "
    "input ins kbd label legend li link main map mark marquee math menu meta meter nav nobr noframes noscript object ol "
    "optgroup option output p param picture pre progress q rp rt ruby s samp script search section select slot small "
    "source span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr "
    "track tt u ul var video wbr"
)
_ELEMENTS = frozenset(_KNOWN_NAMES.split())
# These show something without any text.
_SEEN_NAMES = (
    "applet audio button canvas embed frame hr iframe img input math meter object picture progress select svg textarea "
    "video"
)
_SEEN = frozenset(_SEEN_NAMES.split())
_DOCUMENT = frozenset(("html", "head", "body", "frameset"))
_CODE = frozenset(("pre", "code", "kbd", "samp", "template"))
_MARK = re.compile(
    r"<(?:(!--)(?!-?>)|(!doctype)\b|(/?)([a-z][^\s/>]{0,63})|[!?/])", re.IGNORECASE
)
_INSIDE = re.compile(r"=\s{0,60}([\"'])|>")
_QUOTE = {'"': re.compile('"'), "'": re.compile("'")}
_COMMENT = re.compile("-->")
_BOGUS = re.compile(">")
_RAW = {  # nothing in these is a tag
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noframes")
}
_LONGEST = 128  # characters of anything searched for
_KEPT = 1 << 16  # characters of a page's text
_HEADING = re.compile(r"(?m)^#{1,6} \S")
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_LITERAL = re.compile(r"[=(+][ \t]*[frb]?(?:\"{1,3}|'{1,3}|`)\s*\Z")
_REFRESH = re.compile(r"<meta[^>]{0,200}http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})",
    re.IGNORECASE,
)
# WHATWG Encoding §4.2, the labels in use.  Latin-1 reads every byte, as browsers do with windows-1252.
_CHARSETS = re.compile(
    r"(?P<latin_1>iso-?8859-?1|latin-?1|l1|us-ascii|ascii|windows-1252|cp-?1252)"
    r"|(?P<gb18030>gbk|gb2312|gb_2312-80|gb18030|x-gbk)|(?P<cp932>shift[_-]jis|sjis|windows-31j|x-sjis)"
    r"|(?P<cp949>euc-kr|ks_c_5601-1987)|(?P<big5hkscs>big5(-hkscs)?)|(?P<cp874>windows-874)"
    r"|(?P<own>euc-jp|iso-2022-jp|koi8-[ru]|iso-8859-1?\d|windows-125\d|ibm866|tis-620|macintosh)"
)


class _Page:
    """What a browser finds in a page that comes in pieces; every character is looked at once, whatever stays open."""

    def __init__(self) -> None:
        self.elements = 0
        self.before = ""  # text in front of the first tag
        self.text = ""  # what is shown, without code
        self.document = False  # it says that it is a page
        self.scripted = self.seen = self.blocks = False
        self._begun = False
        self._custom: set[str] = set()
        self._until, self._rest = _MARK, ""
        self._name, self._closing = "", False
        self._depth = dict.fromkeys(_CODE, 0)

    def feed(self, piece: str, *, final: bool = False) -> None:
        text = self._rest + piece
        safe = len(text) - (0 if final else _LONGEST)  # what begins later may go on
        at = 0
        while True:
            found = self._until.search(text, at)
            if found is not None and found.start() >= safe:
                found = None
            end = max(safe, at) if found is None else found.start()
            if self._until is _MARK:
                self._data(text[at:end])
            if found is None:
                self._rest = text[end:]
                return
            at = found.end()
            self._step(found)

    def _step(self, found: re.Match[str]) -> None:
        if self._until is _MARK:
            if found[4]:
                self._name, self._closing = found[4].lower(), bool(found[3])
            self._until = (
                _COMMENT if found[1] else _INSIDE if found[4] else _BOGUS
            )  # of a doctype too
            if found[2]:
                self._begun = self.document = True
        elif self._until is _INSIDE:
            if found[1]:
                self._until = _QUOTE[found[1]]
            else:
                self._until = _MARK if self._closing else _RAW.get(self._name, _MARK)
                self._tag()
        elif self._until is _COMMENT or self._until is _BOGUS:
            self._until = _MARK
        else:  # of a value, or of the text of a script
            self._closing = self._closing or self._until is _RAW.get(self._name)
            self._until = _INSIDE

    def _tag(self) -> None:
        name = self._name
        if "-" in name:  # <your-name> alone is prose
            if self._closing and name in self._custom:
                self._custom.discard(name)
                self.elements += 1
                self._begun = True
            elif not self._closing and len(self._custom) < 100:
                self._custom.add(name)
            return
        if name not in _ELEMENTS:
            return
        if name in _CODE:
            self._depth[name] = max(self._depth[name] + (-1 if self._closing else 1), 0)
            self.blocks = True
        if self._closing:
            return
        self.elements += 1
        self._begun = True
        self.document |= name in _DOCUMENT
        self.scripted |= name == "script"
        self.seen |= name in _SEEN and not self._depth["template"]

    def _data(self, text: str) -> None:
        if not text:
            return
        if not self._begun and len(self.before) < _KEPT:
            self.before += text[:_KEPT]
        if self._depth["template"]:
            return
        self.seen = self.seen or bool(text.strip())
        if len(self.text) < _KEPT and not any(self._depth.values()):
            self.text += text[:_KEPT]


def check_text(artifact: Artifact) -> Iterator[Finding]:
    """Fake: a binary file, or nothing at all, under the name of a page."""
    yield from check_encoding(artifact, _declared(artifact))


def _declared(artifact: Artifact) -> str:
    """Return Python's name of the encoding that a page declares, or nothing for UTF-8 and those nobody uses."""
    found = _DECLARED.search(artifact.head(4096))
    label = found[1].decode("ascii", "replace").lower() if found else ""
    known = _CHARSETS.fullmatch(label)
    if known is None:
        return ""
    try:
        return codecs.lookup(label if known["own"] else str(known.lastgroup)).name
    except LookupError:  # iso-8859-12 was never one
        return ""


def check_elements(artifact: Artifact) -> Iterator[Finding]:
    """Fake: Markdown, JSON, a program or plain text saved as page.html; a page with nothing to see."""
    name = encoding(artifact)
    if name != "utf-16":
        name = _declared(artifact) or name
    page = _Page()
    for piece in pieces(artifact, name):
        page.feed(piece)
    page.feed("", final=True)
    artifact.facts["elements"] = page.elements
    if not page.elements:
        yield invalid("html-no-element", "there is no HTML element in it")
        return
    head = artifact.head(_KEPT).decode(name, "replace").lstrip("\ufeff \t\r\n")
    strange = _strange(artifact, page, head)
    if strange is not None:
        yield strange
        if strange.severity is Severity.ERROR:
            return
    if not page.seen and _REFRESH.search(head) is None:
        yield warning("html-blank", "the page has nothing to see without a script")
    yield from check_placeholders(page.text, braces=not page.scripted)


def _strange(artifact: Artifact, page: _Page, head: str) -> Finding | None:
    """Return what tells that another kind of text only quotes HTML."""
    before = page.before.strip("\ufeff \t\r\n")
    if head.startswith("<?php"):
        return posing(artifact, Disguise("php", "PHP source"))
    if not before:
        return _markdown(page)
    if head.startswith(("{", "[")) and _is_json(artifact, head):
        return posing(artifact, Disguise("json", "JSON text"))
    opening = before.splitlines()[-1]
    if _FENCE.match(before) or (page.document and _FENCE.match(opening)):
        return invalid("html-fenced", "the page stands inside a Markdown fence")
    if found := SOURCE.search(before):
        words = f"the source of a program: {found[0][:40]!r}"
        return posing(artifact, Disguise("source", words))
    if _HEADING.match(before):
        return posing(artifact, Disguise("md", "Markdown text"))
    found_text = recognise(head[:4096].encode())
    if (
        page.document
        or _LITERAL.search(before)
        or (found_text is not None and found_text.format == "md")
    ):
        return warning(
            "html-stray-text",
            f"other text stands before the page: {before.splitlines()[0][:40]!r}",
        )
    return _markdown(page)


def _markdown(page: _Page) -> Finding | None:
    if page.document or page.blocks or not (found := _HEADING.search(page.text)):
        return None
    line = page.text[found.start() :].splitlines()[0]
    return warning("html-stray-text", f"it has Markdown: {line[:40]!r}")


def _is_json(artifact: Artifact, head: str) -> bool:
    if artifact.data is None:
        found = recognise(head[:4096].encode())
        return found is not None and found.format == "json"
    try:
        json.loads(artifact.data.decode(encoding(artifact)), parse_int=len)
    except (ValueError, RecursionError):
        return False
    return True
