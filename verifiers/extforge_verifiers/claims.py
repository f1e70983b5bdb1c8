"""Which files does a text say were written?  "I saved the deck to out/report.pptx" is a claim like any other.

A text is judged clause by clause.  A path counts when its clause says that something was made, or continues one that
does, and when it is not what something was made from.  English and Chinese; a clause that is unclear claims nothing.
"""

from __future__ import annotations

import re

from extforge_verifiers.formats import FORMATS

__all__ = ["claimed_in", "paths_in"]

_LONGEST = 200_000  # characters of a text
_NEAR = 200  # characters around a path that are looked at for it
_SUFFIXES = "|".join(
    sorted(
        (suffix[1:] for row in FORMATS.values() for suffix in row.suffixes),
        key=len,
        reverse=True,
    )
)
_END = rf"\.(?:{_SUFFIXES})(?![A-Za-z0-9_])"
# Between quotes or as the target of a link a path may hold spaces; bare it ends at the first.
_PATH = re.compile(
    rf"\[[^\[\]\n]{{0,200}}\]\(<?(?P<link>[^()<>\n]{{1,300}}?{_END})>?\)"
    rf"|[`\"'“”‘’「『<](?P<quoted>[^`\"'“”‘’「」『』()<>\n]{{1,300}}?{_END})[`\"'“”‘’」』>]"
    # It begins where no path can be under way: trying every place of a long word would take quadratic time.
    rf"|(?<![\w\-./\\%+@~])(?P<bare>(?:[A-Za-z]:[\\/])?[\w\-./\\%+@~]{{1,300}}?{_END})",
    re.IGNORECASE,
)
_URL = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]{0,30}://|www\.)[^\s`\"'<>()]+", re.IGNORECASE
)
_MARK = re.compile("\x01([0-9]+)\x02")  # stands for a path while a clause is read
_WRITING = re.compile(
    r"\b(saved|saving|wrote|written|writing|created|creating|generated|generating|exported|exporting|produced|producing|"
    r"built|stored|made|rendered|outputted|output to|(ready|available) (at|in|as|under)|(is|are|now) ready|"
    r"can (now )?(be found|be downloaded|(find|download|access) (it|them)))\b|"
    r"(?P<chinese>保存|写入|写到|生成|导出|创建|制作|输出到|已存)",
    re.IGNORECASE,
)
# Chinese has no spaces: the verb may stand right before the path.
_CHINESE_VERB = re.compile(
    r"[^/\\.]{0,40}(?:保存[到为至]|写[入到]|导出[到为]|输出到|生成了|创建了|另存为)(?=.)"
)
_TURNED = re.compile(
    r"\b(converted|renamed|moved|copied|turned|transformed)\b.*\b(to|into|as)\W*(the\s+|file\s+)*$",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(not|cannot|unable|fail(s|ed)?|without|never|no|none|nothing|neither|nor|will|would|should|could|can|shall|may|"
    r"might|must|to be|being|please|let me|going to|plan to|planned|next|skipped)\b|n['’]t\b|"
    r"未|没|无法|不能|失败|将要|将会|请|如果|可以",
    re.IGNORECASE,
)
# What is said of a path after it was made, or of another one: its clause claims nothing.
_OTHER = re.compile(
    r"^\W*(and |by |then |also )*[a-z]+ing\b|"
    r"\b(is|are|was|were|has|have|had|see|run|read|reads|open|opens|use|uses|describes?|shows?|contains?|converted|renamed|"
    r"moved|copied|turned|deleted|removed|replaced|updated|edited|checked|verified|reviewed|loaded|parsed|analy[sz]ed|"
    r"used|it|you|they|we|I|writes?|creates?|generates?|exports?|saves?|produces?)\b|根据|基于|读取|使用",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"(\b((from|using|based on|of|for) ((the|your|a|an|its) )?\w+ (in|at)|for|from|using|based on|reading|read|given|of|in the input|input|source|see|section|link(s|ed|ing)? to|refer(s|ring)? to|"
    r"references?|points? to|pointing to|according to|per|(described|shown|specified|defined|listed|explained) (in|at|by)|"
    r"instead of|rather than|replac(es|ing)|over|like|than|next to|beside|alongside|about|via|with)|"
    r"根据|基于|从|读取|使用)\W*((the|file|files|your|data|input|existing|old|original)\s+)*$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[\s,/&+*`\"']*(?:and|or|和|及|与)?[\s`\"']*", re.IGNORECASE)
_SUBJECT = re.compile(r"\b(I|we|you|it|he|she|they|that|which|script)\b", re.IGNORECASE)
_PERSON = re.compile(r"\b(I|we|I['’]ve|we['’]ve)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？]")
# Where one clause ends; the words say what the next one can be.
_DONE = r"(?:saved|written|created|generated|exported|produced|ready)\b"
_BREAK = re.compile(
    rf"(\s[-–—]\s(?!{_DONE})|:(?!\s*{_DONE})|[,;()，；：（）、]|"
    r"\b(?:but|so that|so|yet|however|although|though|because|since|while|whereas|if|when|whenever|unless|once|until|"
    r"after|before|that|which|who|where|without|instead of|rather than|as (?=described|shown|specified|requested))\b|"
    r"\band (?=(?:then |also )?(?:I|we|it|you|he|they|[a-z]+ed|wrote|read|ran|made|built|put|sent|could|can|will|is|was|did|"
    r"have|has|had|not|never|cannot|open)\b)|"
    r"\band (?=\x01[0-9]+\x02 (?:could|cannot|can['’]t|will|was|is|has|did|does|fail|still)\b)|"
    r"(?<=\x02) (?=[a-z]+ing\b)|"
    r"\bto (?=(?:summari[sz]e|describe|replace|explain|compare|match|include|load|read|open|use|update|extend|complement|"
    r"support|analy[sz]e|process|parse|convert|visuali[sz]e|plot|create|write|save|generate|export|produce|make)\b)|"
    r"但是|但|因为|如果|并且|并)",
    re.IGNORECASE,
)
_CONDITIONS = frozenset("if when whenever unless once until before to 如果".split())
_RELATIVES = frozenset("that which who where".split())
_ASIDES = frozenset(
    ("after", "as", "without", "instead of", "rather than", "so that", "because")
)


def claimed_in(text: str) -> list[str]:
    """Return the paths that a text says were written, in order, each once."""
    text = _URL.sub(" ", text[:_LONGEST].replace("\x01", " ").replace("\x02", " "))
    paths: list[str] = []

    def mark(match: re.Match[str]) -> str:
        path = _path(match)
        verb = _CHINESE_VERB.match(path) if match["bare"] else None
        start = verb[0] if verb else ""
        paths.append(path.removeprefix(start))
        return f"{start}\x01{len(paths) - 1}\x02"

    claimed: dict[str, None] = {}
    heading = False  # does the line above a list say that what it lists was made?
    for raw in _PATH.sub(mark, text).splitlines():
        line = raw.strip()
        if not line:
            continue
        item = re.match(r"(?:[-*•]|[0-9]{1,3}[.)])\s+", line)
        made = heading if item else False
        line = line[item.end() :] if item else line
        for sentence in _SENTENCE.split(line):
            made, found = _judge(sentence, made=made)
            claimed.update(dict.fromkeys(paths[number] for number in found))
            ends = made
            made = False
        if not item:
            heading = ends
    return list(claimed)


def paths_in(text: str) -> list[str]:
    """Return every file name of a known format in a text, in order, each once; addresses of the web are none."""
    matches = _PATH.finditer(_URL.sub(" ", text[:_LONGEST]))
    return list(dict.fromkeys(map(_path, matches)))


def _path(match: re.Match[str]) -> str:
    return str(match["link"] or match["quoted"] or match["bare"]).strip()


def _judge(sentence: str, *, made: bool) -> tuple[bool, list[int]]:
    """Return whether the end of a sentence says that something was made, and the numbers of the paths that were."""
    found: list[int] = []
    outer: list[bool] = []  # what held where the parentheses opened
    conditional = False
    before = ""
    clauses = _BREAK.split(sentence)
    for clause, end in zip(clauses[::2], [*clauses[1::2], ""], strict=True):
        words = _MARK.sub(" ", clause)
        writing = _WRITING.search(clause)
        denied = _DENIAL.search(_WRITING.sub(" ", words)) is not None
        if before in _CONDITIONS:
            made = False
            conditional = conditional or not found
        elif denied or (conditional and _PERSON.search(words) is None):
            made = False
        elif writing is not None:
            made = True
        elif before not in _RELATIVES and (turned := _turned(clause)):
            found += turned
            made = False
        elif before in _ASIDES:
            made = made and "\x01" not in clause  # "as you asked, in a.pdf"
        elif before in _RELATIVES or _OTHER.search(words):
            made = False
        if made:
            claimed, made = _claimed(clause, writing)
            found += claimed
        if end in ("(", "（"):
            outer.append(made)
        elif end in (")", "）") and outer:
            made = outer.pop()
        before = end.strip().lower()
    return made, found


def _turned(clause: str) -> list[int]:
    """Return the paths that others were turned into: "renamed a to b"."""
    return [
        int(match[1])
        for match in _MARK.finditer(clause)
        if _TURNED.search(clause[max(match.start() - _NEAR, 0) : match.start()])
    ]


def _claimed(clause: str, writing: re.Match[str] | None) -> tuple[list[int], bool]:
    """Return the paths that a clause of making claims, and whether a list that goes on after it still claims."""
    found: list[int] = []
    source = False
    last = None
    for match in _MARK.finditer(clause):
        start = clause[max(match.start() - _NEAR, 0) : match.start()]
        if last is None or _JOINED.fullmatch(clause[last : match.start()]) is None:
            source = _SOURCE.search(start) is not None
        last = match.end()
        between = clause[last : min(writing.start(), last + _NEAR)] if writing else ""
        acted = _SUBJECT.search(_MARK.sub(" ", between)) is not None
        if not source and not acted:
            found.append(int(match[1]))
    return found, not source
