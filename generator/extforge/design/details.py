"""Values that a gap states: a suffix, a folder, a threshold, every how many, required keys, smallest counts.

Each function returns what the text says and nothing else; what it does not say stays out of the plan.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

from extforge.design.cues import NUMBER, matches, sentences_of
from extforge.external import SHELLS
from extforge.patterns import slow_reason, unsafe_reason
from extforge_verifiers.formats import FORMATS

__all__ = [
    "budget",
    "call",
    "guard",
    "longest_result",
    "mentioned_words",
    "minimum",
    "output_patterns",
    "period",
    "program",
    "required_keys",
]

_NUMBERS = dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)) | {
    **dict(zip("一二三四五六七八九十", range(1, 11), strict=True)),
    **dict(zip("other second third fourth fifth tenth twenty 两 十五 二十 三十 五十".split(), (2, 2, 3, 4, 5, 10, 20, 2, 15, 20, 30, 50), strict=True)),
}  # fmt: skip
_QUOTES = "\"'`“”‘’「」『』«»"
_FLAGS = re.IGNORECASE | re.ASCII
_AND = r"\s*(?:,|、|，|和|与|或者?|及|\band\b|\bor\b)\s*(?:(?:and|or) )?"


def number(text: str) -> int | None:
    """Return the number of `20`, `1,000`, `five` or `五`."""
    digits = text.replace(",", "")
    return int(digits) if digits.isascii() and digits.isdigit() else _NUMBERS.get(text.lower())


def _first(patterns: tuple[str, ...], text: str) -> re.Match[str] | None:
    return next((found for p in patterns if (found := re.search(p, text, _FLAGS))), None)


# --------------------------------------------------------------------------- rails that count

_UNITS_OF = {
    "calls": "calls?|times|requests|invocations|次",
    "characters": "characters|chars|字符|字",
    "seconds": "seconds|minutes|hours|秒|分钟|小时",
}
_FACTORS = (("minutes|分钟", 60), ("hours|小时", 3600))


def period(text: str) -> dict[str, Any]:
    """Return `every` and `of` of a reminder, as far as they are said."""
    for said in matches("period", text):
        counts = [count for word in re.findall(NUMBER, said[0], _FLAGS) if (count := number(word))]
        if counts:
            calls = re.search(r"tool|工具", said[0], _FLAGS) or (
                re.search(r"calls?\b|次", said[0], _FLAGS) and re.search(r"tool|工具", text, _FLAGS)
            )
            return {"every": min(counts[0], 10_000), "of": "tool_calls" if calls else "model_calls"}
    return {}


def budget(text: str) -> dict[str, Any]:
    """Return the limits of a budget that are said, and what happens beyond them."""
    said: dict[str, Any] = {}
    for part in sentences_of(text):
        for key, units in _UNITS_OF.items() if matches("limit", part) else ():
            for found in re.finditer(
                rf"(\d[\d,]{{0,12}})\s*(?:个)?(?:[a-z]+ )?({units})(?![a-z]| (?:iteration|round|cycle))", part, _FLAGS
            ):
                if not re.search(r"(every|each|per|每(隔|调用)?)\s*$", part[: found.start()], _FLAGS):
                    factor = next((times for words, times in _FACTORS if re.fullmatch(words, found[2], _FLAGS)), 1)
                    said.setdefault(key, max(1, min((number(found[1]) or 1) * factor, 10**9)))
    if not said:
        return {}
    share = re.search(r"(\d{1,3})\s*(?:%|percent)", text)
    said["warn_at"] = int(share[1]) / 100 if share and 0 < int(share[1]) <= 100 else 1.0
    if re.search(r"(end|terminate|stop|abort) the (session|task|run)|结束(会话|任务)|终止(会话|任务)", text, _FLAGS):
        said["on_exceed"] = "finish"
    elif matches("prohibit", text) or re.search(r"\bstop(s|ped)?\b|停止", text, _FLAGS):
        said["on_exceed"] = "block"
    return said


def mentioned_words(text: str) -> list[str]:
    """Return the words of `when the user mentions X or Y`."""
    found = _first(
        (
            r"(?:when(?:ever)?|if) (?:the |an? )?(?:user|customer|message|question|conversation|someone|anyone|somebody)s? (?:mentions?|asks? about|talks? about|says?|contains?) (?:the |an? )?([\w ,'-]{2,80}?)(?=[,.;:]|$|\bthe\b|\bthen\b|\n)",
            r"(?:用户|消息|问题|客户)?(?:提到|提及|问到|涉及|出现)(?:了)?\s*([^，,。；;：:的时]{1,40})",
        ),
        text,
    )
    words = [part.strip(f" {_QUOTES}") for part in re.split(_AND, found[1])] if found else []
    return [word for word in words if 0 < len(word) <= 40][:10]


# --------------------------------------------------------------------------- guards

_HOLES = (
    (r"[<{\[(（]?(?:yyyy|YYYY)-(?:mm|MM)-(?:dd|DD)[>}\])）]?", "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    (r"[<{\[(（]?(?:yyyymmdd|YYYYMMDD|日期|date)[>}\])）]?", "[0-9]{8}"),
    (r"[<{\[(（](?:数字|编号|版本号|序号|number|version|digits?|n|N|num)[>}\])）]|(?<=_v)N\b|(?<=_v)X\b", "[0-9]+"),
)
_PART = (
    rf"[{_QUOTES}]?([A-Za-z0-9_.\-]*(?:[<{{\[（(][^<>{{}}\[\]()（）]{{1,12}}[>}}\])）])?[A-Za-z0-9_.\-]*)[{_QUOTES}]?"
)
_SUFFIX = (
    rf"以\s*{_PART}\s*(?:作为|为|作)?\s*(?:结尾|结束|后缀)",
    rf"\b(?:end|finish)(?:s|es|ing)? (?:with|in) (?:the |a )?(?:suffix |date )?{_PART}",
    rf"(?:后缀|结尾)(?:必须|统一|应|要)?(?:为|是|用|带)\s*{_PART}",
    rf"\bsuffix (?:of |is |must be )?{_PART}",
    rf"{_PART} (?:(?:version )?suffix|at the end)",
    rf"(?:带|带有|加上|加|包含)\s*{_PART}\s*(?:版本|的)?(?:后缀|结尾)",
)
_TELLING = re.compile(r"[_.\-0-9]|[A-Z]{2}")  # `end with numbers` is prose, `end with _v1` is not
_TOKEN = rf"[{_QUOTES}]?[A-Za-z0-9_.\-]{{1,64}}[{_QUOTES}]?"
_PREFIX = (
    rf"以\s*{_PART}\s*(?:作为|为|作)?\s*(?:开头|打头|前缀)",
    rf"\b(?:start|begin)(?:s|ning|ing)? with (?:the |a )?(?:prefix )?{_PART}",
    rf"(?:前缀)(?:必须|统一)?(?:为|是|用)\s*{_PART}",
    rf"\bprefix (?:of |is |must be )?{_PART}",
)
_STYLES = (
    (r"\b(?:all )?lower[ -]?case\b|小写", "[a-z0-9._-]+"),
    (r"\bkebab[ -]case\b", r"[a-z0-9-]+\.[a-z0-9]+"),
    (r"\bsnake[_ -]case\b|蛇形", r"[a-z0-9_]+\.[a-z0-9]+"),
    (r"\bno spaces\b|without spaces|\bspaces? in (?:the |any )?(?:file ?)?names?|(?:不能|不得|禁止)(?:有|含|包含|出现)?空格", r"\S+"),
    (r"\bascii(?:[ -]only)?\b|只能(?:用|使用)英文|不得(?:含|包含|使用)中文", "[ -~]+"),
)  # fmt: skip
_PATH = r"(?:(?:[A-Za-z]:|~|\.{1,2})?/)?[A-Za-z0-9_.\-]{1,60}(?:/[A-Za-z0-9_.\-]{1,60}){0,9}"
_PATHS = rf"[{_QUOTES}]?({_PATH}(?:{_AND}{_PATH}){{0,5}})/?[{_QUOTES}]?"
_AT = r"(?<![\w-])(?:in|into|inside|within|under|below|beneath|outside|of|to|from|the|an?|our|its) "
_NESTED = r"[A-Za-z0-9_.\-]+(?:/[A-Za-z0-9_.\-]+)+"
_PLACES = (
    rf"{_AT}{_PATHS} (?:folders|directories|dirs)\b",
    rf"{_AT}[{_QUOTES}]?({_PATH})/?[{_QUOTES}]? (?:folder|directory|dir|tree|share)\b",
    rf"{_PATHS}\s*(?:等)?\s*(?:目录|文件夹|路径|之外|以外|[里下]面?|中)",
    rf"(?<![\w-])(?:in|into|inside|within|under|below|beneath|outside|to) (?:of )?[{_QUOTES}]?({_NESTED}(?:{_AND}{_NESTED}){{0,5}})",
    r"(?<![\w/:.~])((?:\.{1,2}|~)?/[A-Za-z0-9_.][A-Za-z0-9_./\-]*)",  # a path as such: /etc, ./out
    r"(?<![\w/:.~])([A-Za-z0-9_.\-]+(?:/[A-Za-z0-9_.\-]+)*)/(?=[\s,.;。，；]|$)",  # reports/
)
_NO_PLACE = re.compile(
    r"the|an?|any|this|that|these|workspace|working|project|current|its|own|folder|directory|agent|same|single|right|wrong|other"
    r"|given|specific|one|each|every|home|root|users?|new|system|correct|target|source|allowed|scratch|temporary|files?"
    r"|.*\.(py|md|yaml)|.{201,}",
    re.IGNORECASE,
)
_TYPES = frozenset("txt jpg jpeg gif xml yaml zip exe sh bat doc xls ppt".split()) | set(FORMATS)
# Programs that people do not want to be run; what stands with them is part of the rule: `git push --force`.
_PROGRAMS = "curl|wget|rm|sudo|ssh|scp|nc|dd|chmod|chown|mkfs|shutdown|reboot|kill|git|docker|kubectl|pip|npm"
_PROGRAM_CALL = re.compile(rf"(?<![\w.-])((?:{_PROGRAMS})(?: [a-z]+(?= -))?(?: --?[A-Za-z-]+)*)(?![\w-])", re.ASCII)


def guard(text: str) -> dict[str, Any]:
    """Return the `require` and `forbid` of a guard, as far as the text states them."""
    rules: dict[str, dict[str, Any]] = {"require": {}, "forbid": {}}
    require, forbid = rules["require"], rules["forbid"]
    if extensions := _extensions(text):
        rules[_verb(text)]["extension"] = extensions
    suffix, prefix = _affix(_SUFFIX, text), _affix(_PREFIX, text)
    if suffix and all(re.fullmatch(r"\.[a-z0-9]{1,8}", one) for one in suffix):
        require["extension"], suffix = suffix, []
    if len(suffix) == 1 and not prefix and _with_holes(suffix) == re.escape(suffix[0]):
        require["stem_suffix"] = suffix[0]
    elif suffix or prefix:
        require["pattern"] = f"{_with_holes(prefix)}.*{_with_holes(suffix)}" + r"(\.[A-Za-z0-9]+)?"
    if not require and not forbid and (style := next((s for p, s in _STYLES if re.search(p, text, _FLAGS)), "")):
        require["pattern"] = style
    said = [(part, folders) for part in sentences_of(text) if (folders := _folders(part))]
    said.sort(key=lambda pair: not any("/" in path for path in pair[1]))  # a path says more than a name
    for part, folders in said[:1]:
        outside = re.search(r"\boutside\b|\bout of (?!the\b)|之外|以外", part, _FLAGS)
        rules["require" if outside else _verb(part, text)]["folder"] = folders
    if not said and re.search(r"workspace|工作区|工作空间|working (directory|folder)|工作目录", text, _FLAGS):
        require["folder"] = ["."]
    if matches("prohibit", text):
        if re.search(r"\boverwrit|覆盖", text, _FLAGS):
            forbid["argument"] = {"overwrite": "true"}
        if programs := list(dict.fromkeys(found[1] for found in _PROGRAM_CALL.finditer(text)))[:10]:
            calls = "|".join(r"\s{1,9}".join(map(re.escape, call.split())) for call in programs)
            forbid["argument"] = {"command": rf"(.*[\s;|&(/])?({calls})([\s;|&)].*)?"}
    patterns = [rule["pattern"] for rule in rules.values() if "pattern" in rule]
    return {} if any(map(unsafe_reason, patterns)) else {name: rule for name, rule in rules.items() if rule}


def _verb(*texts: str) -> str:
    """Say whether what a rule names is what it wants or what it refuses, by the first text that tells."""
    for text in texts:
        if matches("only", text) or matches("must", text):
            return "require"
        if matches("prohibit", text):
            return "forbid"
    return "require"


def _affix(patterns: tuple[str, ...], text: str) -> list[str]:
    """Return how a name is to end or start, as the text writes it; several where it lists several."""
    for pattern in patterns:
        for found in re.finditer(pattern, text, _FLAGS):
            part = found[1].rstrip(".,")
            quoted = any(f"{quote}{part}" in found[0] for quote in _QUOTES)
            if part and len(part) <= 64 and (_TELLING.search(part) or quoted):
                listed = rf"(?:{_TOKEN}{_AND})*{re.escape(part)}(?:{_AND}{_TOKEN})*"
                whole = re.search(listed, text)
                parts = [one.strip(_QUOTES) for one in re.split(_AND, whole[0])] if whole else [part]
                return [one for one in parts if _TELLING.search(one) or one == part][:10]
    return []


def _with_holes(parts: list[str]) -> str:
    """Return the pattern of an affix: `_v<number>` becomes `_v[0-9]+`."""
    patterns = [re.escape(part) for part in parts]
    for index, part in enumerate(parts):
        for hole, pattern in _HOLES:
            if found := re.search(hole, part):
                patterns[index] = f"{re.escape(part[: found.start()])}{pattern}{re.escape(part[found.end() :])}"
                break
    return patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})" if patterns else ""


def _extensions(text: str) -> list[str]:
    """Return the file types that a rule names: endings with a dot, and bare ones where a rule is about file types."""
    found: list[str] = []
    for part in sentences_of(text):
        if matches("only", part) or matches("prohibit", part) or matches("file-name", part):
            found += [dot[0].lower() for dot in re.finditer(r"(?<![\w/])\.[a-z][a-z0-9]{0,7}\b(?![/(])", part, _FLAGS)]
            if matches("file-type", text) and (
                matches("only", part) or matches("prohibit", part) or matches("file-type", part)
            ):
                words = re.findall(r"(?<![\w/.-])[A-Za-z]{2,5}(?![\w/-])", part)
                found += [f".{word.lower()}" for word in words if word.lower() in _TYPES]
    return list(dict.fromkeys(found))[:10]


def _folders(text: str) -> list[str]:
    found = {
        path.strip(_QUOTES).removeprefix("./").rstrip("/.") or path: match.start()
        for pattern in _PLACES
        for match in re.finditer(pattern, text, _FLAGS)
        for path in re.split(_AND, match[1])
    }
    kept = [path for path in sorted(found, key=lambda path: found[path]) if not _NO_PLACE.fullmatch(path)]
    return kept[:10]


# --------------------------------------------------------------------------- tools

_KEY = r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}"
_ANY_KEY = r"[A-Za-z_\u3400-\u9fff][A-Za-z0-9_.\-\u3400-\u9fff]{0,63}?"
_AND_KEY = r"\s*(?:,|、|，|和|与|及|&|\band\b)\s*(?:and )?"


def required_keys(text: str) -> list[str]:
    """Return the keys that a JSON (or the columns that a CSV) must have."""
    keys, named = (rf"({key}(?:{_AND_KEY}{key})*)" for key in (_KEY, _ANY_KEY))
    found = _first(
        (
            rf"\b(?:keys?|fields?|columns?|properties)(?: named| called|:| are)? {keys}",
            rf"\b(?:must|has to|have to|should|shall) (?:contain|include|have)(?: the)?(?: keys?| fields?| columns?)? {keys}(?=[\s.,;]|$)",
            rf"(?:包含|包括|含有|含|具有|必?须?有)\s*{keys}(?=\s*(?:等|两个|三个|[一二三四五六]个)*\s*(?:字段|键|列|属性|[，。；,;\n]|$))",
            rf"(?:字段|键|列(?:名)?)(?:依次)?(?:为|是|有|包括|包含|：|:)\s*{named}(?=[。；;\n]|$)",
        ),
        text,
    )
    words = [word.strip(".-") for word in re.split(_AND_KEY, found[1]) if word] if found else []
    listed = list(dict.fromkeys(takewhile(lambda word: word not in ("otherwise", "else", "or", "so"), words)))
    prose = {"the", "a", "an", "at", "all", "of", "least", "only", "with", "for", "that"} & set(listed)
    return [] if prose or len(listed) > 50 else listed


_UNITS = {
    "slides": ("slide", "slides", "张幻灯片", "页幻灯片", "张", "页"),
    "pages": ("page", "pages", "页"),
    "sheets": ("sheet", "sheets", "worksheet", "worksheets", "个工作表", "张工作表", "张表", "个sheet"),
    "rows": ("row", "rows", "行"),
    "tables": ("table", "tables", "个表格", "张表格"),
    "paragraphs": ("paragraph", "paragraphs", "段", "个段落"),
    "records": ("record", "records", "entries", "items", "条", "条记录"),
    "columns": ("column", "columns", "列"),
    "headings": ("heading", "headings", "section", "sections", "个章节", "节"),
}


def minimum(text: str, form: str) -> dict[str, int]:
    """Return the smallest counts that are said of a file of this format."""
    least = rf"(?:at least|a minimum of|minimum|no fewer than|not less than|>=|≥|至少|不少于|最少|不低于)\s*(?:有|包含|含|要有)?\s*({NUMBER})\s*"
    found: dict[str, int] = {}
    for fact in FORMATS[form].counts:
        for unit in _UNITS.get(fact, ()):
            ending = rf"{re.escape(unit)}\b" if unit.isascii() else re.escape(unit)
            if (match := re.search(least + ending, text, _FLAGS)) and (count := number(match[1])):
                found.setdefault(fact, min(count, 1000))
    return found


_METHODS = "GET|POST|PUT|PATCH|DELETE"
_CALL = re.compile(
    rf"(?:\b({_METHODS})\s+)?(https?://(?![^\s/]*@)[A-Za-z0-9.\-]+(?::\d+)?(?:/[A-Za-z0-9_./{{}}\-]*)?)(?:\?([^\s，。；,;\"'<>）)]*))?"
)
_CHANGES = re.compile(
    r"\b(?:creat|submit|post|send|delet|remov|updat|cancel|replac|add|book|order|pay|publish|upload)(?:e|es|s|ing|ting)?\b"
    r"|创建|新建|提交|发送|删除|更新|修改|取消|下单|支付|发布|上传|预订",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"key|token|secret|pass|auth|sig", re.IGNORECASE)


def call(text: str) -> tuple[str, str, dict[str, str]]:
    """Return method, address and query of the API call that the text gives, without what may be a secret.

    The method is empty where the text gives none, and speaks of changing something: it is not for us to guess then.
    """
    found = _CALL.search(text)
    if found is None:
        return "", "", {}
    said = found[1] or next(iter(re.findall(rf"\b({_METHODS})\b", text)), "")
    method = said or ("" if _CHANGES.search(text.replace(found[0], " ")) else "GET")
    pairs = [pair.partition("=") for pair in (found[3] or "").split("&")]
    query = {name: value for name, _, value in pairs if name and value and not _SECRET_NAME.search(name)}
    return method, found[2].rstrip("./"), query


_PROGRAM = r"([a-z][a-z0-9_.-]*)((?: [a-z][a-z0-9-]*)??)"
_RUN = r"(?<![\w-])(?:wrap(?:s|ping)?|run(?:s|ning)?|execute|invoke|call|shell out to)"
_VAGUE = SHELLS | frozenset(
    "a an the it this that them its our my your their any all api rest http sql code such each every shell terminal command commands"
    " script scripts tests test".split()
)


def program(text: str, context: str = "") -> list[str]:
    """Return the program of `wrap git blame as an action`, and its subcommand; `run x` counts in a CLI's context only."""
    ends = r"(?= (?:as|in|on|with|for|and|from|through|via|using)\b|[.,;]|$)"
    patterns = (
        r"`([a-z][a-z0-9_.-]*)((?: [a-z][a-z0-9-]*)?)[^`\n]*`",
        rf"{_RUN} (?:the )?{_PROGRAM}(?= (?:cli|command|binary|executable|program)\b)",
        rf"\b(?:wrap(?:s|ping)?|shell out to) {_PROGRAM}(?: --?[\w-]+)*{ends}",
        r"(?:封装|执行|运行|调用)\s*([a-z][a-z0-9_.-]*)((?: [a-z][a-z0-9-]*)?)\s*(?:命令行|命令|可执行|cli|工具)",
        *([rf"{_RUN} {_PROGRAM}{ends}"] if matches("cli", context) else []),
    )
    found = _first(patterns, text)
    words = [word for word in (found[1], found[2].strip()) if word] if found else []
    return [] if _VAGUE & {word.lower() for word in words} else words


_SECRETS = (
    (r"phone|mobile number|手机号|电话号码|手机号码", r"(?<!\d)1[3-9]\d{9}(?!\d)"),
    (r"\bid (card|number)s?\b|identity (card|number)|身份证", r"(?<!\d)\d{17}[\dXx](?!\d)"),
    (r"bank card|credit card|card numbers?|银行卡|信用卡|卡号", r"(?<!\d)\d{13,19}(?!\d)"),
    (r"e-?mail|邮箱|电子邮件", r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,63}"),
    (r"api[ -]?keys?|access keys?|secrets?\b|(?:api|access|auth|bearer) tokens?|credentials?|密钥|凭证|令牌", r"\b(?:sk|pk|ghp|gho|xox[bp]|AKIA)[-_A-Za-z0-9]{16,128}"),
    (r"\bip addresses\b|\bips?\b|ip\s*地址", r"(?<!\d)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\d)"),
    (r"\bibans?\b", r"\b[A-Z]{2}\d{2}[A-Z0-9 ]{10,30}[A-Z0-9]\b"),
    (r"\b(?:links?|urls?)\b|链接|网址", r"https?://[^\s<>\"']{1,512}"),
    (r"passwords?|密码|口令", r"(?i:password|passwd|密码|口令)\s{0,3}[:=：]\s{0,3}\S{1,128}"),
)  # fmt: skip


_QUOTED = re.compile(r"[\"“「『‘]([^\"“”「」『』‘’\n]{1,60})[\"”」』’]")


def output_patterns(text: str) -> list[tuple[str, str]]:
    """Return (what it is, pattern) for each text that must not get out: kinds of a known form, and quoted words."""
    known = [(found[0], pattern) for words, pattern in _SECRETS if (found := re.search(words, text, _FLAGS))]
    quoted = [(found[1], re.escape(found[1])) for found in _QUOTED.finditer(text) if found[1].strip()]
    return [(what, pattern) for what, pattern in [*known, *quoted] if slow_reason(pattern) is None][:20]


def longest_result(text: str) -> int | None:
    """Return how many characters of a tool's result are to be read."""
    least = r"(?:\bto|only|at most|cap of|limit of|first|up to|within|keep|default|threshold|=|最多|不超过|截断(?:到|为|至)|保留前?)"
    unit = r"(?:characters|chars)\b|个?字符?" + (
        r"|(?=[,.;)\n]|$)" if re.search("character|chars", text, _FLAGS) else ""
    )
    found = _first((rf"{least}\s*(\d[\d,]*)\s*(?:{unit})",), text)
    return min(max(number(found[1]) or 0, 100), 1_000_000) if found and len(found[1]) < 10 else None
