"""Which files a gap asks for: formats that stand where a product stands, not a source, a rule or a complaint.

`Convert CSV exports into a PDF` asks for a PDF; `only answers in Markdown` asks for anything else; `only .csv files`
is a rule about names; `choosing between PDF and DOCX` is a topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from extforge.derive import FORMAT_WORDS
from extforge.design.cues import Evidence, Texts, clauses_of, matches

__all__ = ["Artifact", "artifacts_of", "is_name", "mentions", "subjects"]

_LIBRARIES = {"openpyxl": "xlsx", "xlsxwriter": "xlsx", "reportlab": "pdf", "weasyprint": "pdf", "matplotlib": "png"}
# Beside the words of plans: in a gap a verb stands by to say that they are a product.
_MORE_WORDS = {
    "pptx": ("slide deck", "slide decks", "路演稿", "演示文稿"),
    "docx": ("word document", "word documents", "word file", "word files", "word doc", "word docs"),
    "xlsx": ("spreadsheets", "workbooks", "电子表格"),
    "csv": ("comma-separated", "comma separated", "逗号分隔"),
    "html": ("web page", "html page", "网页"),
    "svg": ("vector drawing", "vector graphic", "vector graphics", "scalable vector", "矢量图"),
    "png": (
        "image picture pictures images pngs graph 图片 图像 折线图 柱状图 饼图 趋势图 甘特图 曲线图 雷达图 热力图 散点图"
    ).split(),
}
# Words that name a format and nothing else.
_NAMES = frozenset(
    "pptx ppt powerpoint docx xlsx xls excel spreadsheet spreadsheets workbook workbooks pdf json csv md markdown html svg png"
    " 幻灯片 演示文稿 矢量图 电子表格".split()
) | {*_LIBRARIES, "comma-separated", "comma separated", *_MORE_WORDS["docx"]}
_JOINED = re.compile(
    r"\s*(?:\(\S{1,8}\)\s*)?(?:,|/|&|、|或者?|和|及|与|\bor\b|\band\b|\bas well as\b|\+)\s*(?:an?|the|as|in|to|and|or)?\s*\.?",
    re.IGNORECASE,
)
_CONVERTED = re.compile(r"转(成|换|为)|变成|做成|导出为|\b(in)?to\b", re.IGNORECASE)
_WORD = re.compile(r"\bms |\bmicrosoft ", re.IGNORECASE)
_ANSWERED = re.compile(r"\breturn(s|ed|ing)?\b|\brespon(d|ds|se|ses)\b|返回|响应", re.IGNORECASE)
_FILE_RULE_AFTER = re.compile(r"\s*\S{0,6}\s*(suffix|extension|后缀|扩展名|结尾|格式的文件名)", re.IGNORECASE)
_FILE_RULE_BEFORE = re.compile(
    r"(suffix|extensions?|ends? (in|with)|后缀|扩展名)(为|是|必须是|只能是)?\s*\W{0,2}$", re.IGNORECASE
)
_TOWARDS = re.compile(
    r"((?<!such )(?<!well )\b((in|to)( an?| the| real| editable)*|(as|into|onto)( (?!well)[a-z]+){0,3})|成|为|至|到)\s*[.\"'“]?$",
    re.IGNORECASE | re.ASCII,
)
_FILE_WORDS = re.compile(
    r"\b(file|files|keys?|fields?|manifest|document|artifact)\b|文件|字段|配置|清单", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A format that a gap asks for."""

    format: str
    evidence: Evidence
    strength: int  # 3: the product of a verb; 2: named in title or suggestion; 1: named in the description
    named: bool  # by its own name, not by a word that suggests it
    apart: bool = True  # from any rule about the names and places of files


@cache
def _words() -> list[tuple[str, str]]:
    """Return (word, format), longest word first."""
    pairs = [(word, form) for form, words in FORMAT_WORDS.items() for word in (*words, *_MORE_WORDS.get(form, ()))]
    return sorted([*pairs, *_LIBRARIES.items()], key=lambda pair: -len(pair[0]))


@cache
def _mention_pattern() -> re.Pattern[str]:
    latin = [re.escape(word) for word, _ in _words() if word.isascii()]
    chinese = [word for word, _ in _words() if not word.isascii()]
    return re.compile(rf"\b(?:{'|'.join(latin)})\b|{'|'.join(chinese)}", re.IGNORECASE | re.ASCII)


def mentions(text: str) -> list[tuple[str, re.Match[str]]]:
    """Return (format, where it stands) for each format word of a text.

    The English noun `word` names a format only as `Word`, after `MS`, before `format`, in Chinese, or beside another format.
    """
    forms = dict(_words())
    found = [(forms[match[0].lower()], match) for match in _mention_pattern().finditer(text)]
    kept = []
    for index, (form, match) in enumerate(found):
        if match[0] == "word":
            beside = [other for _, other in found[max(0, index - 1) : index + 2] if other is not match]
            joined = any(_joined(text, *sorted((match, other), key=lambda m: m.start())) for other in beside)
            before, after = text[max(0, match.start() - 12) : match.start()], text[match.end() :]
            chinese = not f"{before[-1:]}{after[:1]}".isascii()
            if not (joined or chinese or _WORD.search(before) or re.match(r" (format|export|template)", after)):
                continue
        kept.append((form, match))
    return kept


def _joined(text: str, first: re.Match[str], second: re.Match[str]) -> bool:
    """Say whether two mentions stand in one list: `Word, PDF or Excel`."""
    return _JOINED.fullmatch(text, first.end(), second.start()) is not None


def is_name(word: str) -> bool:
    """Say whether a format word names its format, and does not only suggest it, as `contract` or `chart` does."""
    return word.lower() in _NAMES or word.lower() == "word"


def subjects(text: str) -> set[str]:
    """Return the formats that a rule is about: `PPT file names must ...`, and not `only .csv files`."""
    return {form for form, match in mentions(text) if _role("feature", text, form, match) > 0}


def artifacts_of(texts: Texts) -> list[Artifact]:
    """Return the formats to write; one that is read counts only where it is written too."""
    found: list[Artifact] = []
    read: list[str] = []
    for name, sentence in texts.sentences():
        if name == "gap_description" and matches("today", sentence) and not matches("prohibit", sentence):
            continue  # what there is already
        before, since = 0, ""  # the role of the mention before, and the text since then
        for clause in clauses_of(sentence):
            end = 0
            for form, match in mentions(clause):
                ruled = _is_ruled(sentence if clause[: match.start()].endswith(".") else clause)
                role = _role(name, clause, form, match)
                if _JOINED.fullmatch(since + clause[end : match.start()]):
                    role = before
                elif role == 3 and name not in texts.stated:
                    role = 2  # what happens today, or why; the wish stands elsewhere
                before, since, end = role, "", match.end()
                named = is_name(match[0])
                if role == 0:
                    read += [form]
                elif role > 0 and (named or role == 3):
                    found.append(Artifact(form, Evidence("format", match[0], name), role, named, not ruled))
            since += clause[end:] + ","
    if any(artifact.named and artifact.strength > 1 for artifact in found):
        found = [artifact for artifact in found if artifact.named]
    strongest = max((artifact.strength for artifact in found), default=0)
    best: dict[str, Artifact] = {}
    for artifact in found:
        keep = artifact.strength == strongest and (artifact.strength == 3 or artifact.format not in read)
        if keep and (artifact.format not in best or (artifact.apart and not best[artifact.format].apart)):
            best[artifact.format] = artifact
    return list(best.values())


def _is_ruled(clause: str) -> bool:
    """Say whether a clause states a rule about the names, types and places of files, or about writing them."""
    said = {cue for cue in ("only", "prohibit", "must", "file-name", "file-place", "file-act") if matches(cue, clause)}
    acts = "file-act" in said and said & {"only", "prohibit"}
    return bool(acts or (said & {"file-name", "file-place"} and said & {"only", "prohibit", "must"}))


def _role(name: str, clause: str, form: str, match: re.Match[str]) -> int:
    """Return how sure it is that this is a product: 3, 2 or 1; 0 for something that is read; -1 for neither."""
    before, after = clause[: match.start()], clause[match.end() :]
    only = re.search(r"\bonly (write |save |accept |allow )?\.?$", before, re.IGNORECASE)
    if (only and re.match(r" files?\b", after)) or _FILE_RULE_AFTER.match(after) or _FILE_RULE_BEFORE.search(before):
        return -1
    if any(lack.end() <= match.start() + 1 for lack in matches("lack", clause)):
        return -1
    if form == "json" and not _FILE_WORDS.search(clause) and (_ANSWERED.search(clause) or matches("web", clause)):
        return -1  # what an API or a tool answers with
    verbs = [verb.end() for verb in matches("produce", before)]
    intake = [verb.end() for verb in matches("intake", before)]
    if re.search(r"\w\.$", before):  # the ending of a file's name: README.md
        return 0 if intake else 3 if verbs else -1
    if _TOWARDS.search(before):
        return 3
    if intake and (intake[-1] >= max(verbs, default=-1) or _CONVERTED.search(after)):
        return 0
    if matches("produce", clause):
        return 3
    return 1 if name == "gap_description" else 2
