"""Values that a gap states: a suffix, a folder, a threshold, every how many, required keys, smallest counts.

Each function returns what the text says and nothing else; what it does not say stays out of the plan.
"""

from __future__ import annotations

import re
from typing import Any

from extforge.design.artifacts import mentions
from extforge.design.cues import matches
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

_NUMBERS = {
    **dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)),
    **dict(zip("一二三四五六七八九十", range(1, 11), strict=True)),
    "两": 2,
    "other": 2,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "tenth": 10,
    "twenty": 20,
    "二十": 20,
    "三十": 30,
    "五十": 50,
    "十五": 15,
}
_NUMBER = r"(\d{1,6}|[一二两三四五六七八九十]{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|twenty|other|second|third|fifth|tenth)"
_QUOTES = "\"'`“”‘’「」『』«»"
_FLAGS = re.IGNORECASE | re.ASCII


def number(text: str) -> int | None:
    """Return the number of `20`, `five` or `五`."""
    return int(text) if text.isascii() and text.isdigit() else _NUMBERS.get(text.lower())


def _first(patterns: tuple[str, ...], text: str) -> re.Match[str] | None:
    return next((found for p in patterns if (found := re.search(p, text, _FLAGS))), None)


# --------------------------------------------------------------------------- rails that count


def period(text: str) -> dict[str, Any]:
    """Return `every` and `of` of a reminder, as far as they are said."""
    found = _first(
        (
            rf"(?:every|each|per) {_NUMBER}(?:th|rd|nd)?[ a-z]{{0,12}} (?P<unit>(?:tool |model )?calls?|turns?|rounds?|steps?|iterations?|messages?|replies|exchanges)",
            rf"每(?:隔)?\s*{_NUMBER}\s*个?(?P<unit>次工具|次模型|次|轮|步|回合|条消息|迭代)",
        ),
        text,
    )
    count = number(found[1]) if found else None
    if found is None or not count:
        return {}
    unit = found["unit"].lower()
    calls = (
        "tool" in unit or "工具" in unit or (unit in ("calls", "call", "次") and re.search(r"tool|工具", text, _FLAGS))
    )
    return {"every": min(count, 10_000), "of": "tool_calls" if calls else "model_calls"}


def budget(text: str) -> dict[str, Any]:
    """Return the limits of a budget that are said, and what happens beyond them."""
    said: dict[str, Any] = {}
    over = r"(?:more than|over|exceed(?:s|ing)?|at most|up to|max(?:imum)?(?: of)?|limit(?:ed)? (?:to|of)|above|after|no more than)"
    zh_over = r"(?:超过|超出|最多|至多|不超过|上限(?:为|是)?|达到|满|限(?:制)?(?:在|为)?)"
    counts = {
        "calls": (rf"{over} (\d[\d,]*) (?:[a-z]+ )?(?:calls|times|requests|invocations)", rf"{zh_over}\s*(\d+)\s*次"),
        "characters": (rf"{over} (\d[\d,]*) characters", rf"{zh_over}\s*(\d+)\s*(?:个)?(?:字符|字)"),
        "seconds": (rf"{over} (\d[\d,]*) (?:seconds|minutes|hours)", rf"{zh_over}\s*(\d+)\s*(?:秒|分钟|小时)"),
    }
    for key, patterns in counts.items():
        if found := _first(patterns, text):
            factor = (
                60 if re.search("minutes|分钟", found[0], _FLAGS) else 3600 if re.search("hours|小时", found[0]) else 1
            )
            said[key] = max(1, min(int(found[1].replace(",", "")) * factor, 10**9))
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
            r"(?:when(?:ever)?|if) (?:the |a )?(?:user|customer|message|question|conversation)s? (?:mentions?|asks? about|talks? about|says?|contains?) ([\w ,'-]{2,80}?)(?=[,.;:]|$|\bthe\b|\bthen\b)",
            r"(?:用户|消息|问题|客户)?(?:提到|提及|问到|涉及|出现)(?:了)?\s*([^，,。；;：:的时]{1,40})",
        ),
        text,
    )
    if found is None:
        return []
    parts = re.split(r",|\bor\b|\band\b|、|或者|或|和|及", found[1])
    words = [part.strip(f" {_QUOTES}") for part in parts]
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
    rf"\b(?:end|ends|ending|finish|finishes) (?:with|in) (?:the |a )?(?:suffix |date )?{_PART}",
    rf"(?:后缀|结尾)(?:必须|统一|应|要)?(?:为|是|用|带)\s*{_PART}",
    rf"\bsuffix (?:of |is |must be )?{_PART}",
    rf"{_PART} (?:version )?suffix",
    rf"(?:带|带有|加上|加|包含)\s*{_PART}\s*(?:版本|的)?(?:后缀|结尾)",
)
_PREFIX = (
    rf"以\s*{_PART}\s*(?:作为|为|作)?\s*(?:开头|前缀)",
    rf"\b(?:start|starts|starting|begin|begins) with (?:the |a )?(?:prefix )?{_PART}",
    rf"(?:前缀)(?:必须|统一)?(?:为|是|用)\s*{_PART}",
    rf"\bprefix (?:of |is |must be )?{_PART}",
)
_STYLES = (
    (r"\b(?:all )?lower[ -]?case\b|小写", "[a-z0-9._-]+"),
    (r"\bkebab[ -]case\b", r"[a-z0-9-]+\.[a-z0-9]+"),
    (r"\bsnake[_ -]case\b|蛇形", r"[a-z0-9_]+\.[a-z0-9]+"),
    (
        r"\bno spaces\b|without spaces|\bspaces? in (?:the |any )?(?:file ?)?names?|(?:不能|不得|禁止)(?:有|含|包含|出现)?空格",
        r"\S+",
    ),
    (r"\bascii(?:[ -]only)?\b|只能(?:用|使用)英文|不得(?:含|包含|使用)中文", "[ -~]+"),
)
_PATH = r"((?:[A-Za-z]:|~|\.{1,2})?/?[A-Za-z0-9_.\-]{1,60}(?:/[A-Za-z0-9_.\-]{1,60}){0,9})/?"
_PLACES = (
    rf"\b(?:in|into|inside|within|under|below|beneath|outside|outside of|to|from) (?:of )?(?:the |our |a )?[{_QUOTES}]?{_PATH}[{_QUOTES}]? (?:folder|directory|dir|tree)\b",
    rf"\b(?:in|into|inside|within|under|below|outside|outside of|to) [{_QUOTES}]?((?:\.{{1,2}}|~)?/[A-Za-z0-9_./\-]+)",
    rf"\b(?:in|into|inside|within|under|below|beneath|outside|outside of|to) [{_QUOTES}]?([A-Za-z0-9_.\-]{{1,60}}(?:/[A-Za-z0-9_.\-]{{1,60}}){{0,9}})/(?=[\s,.;{_QUOTES}]|$)",
    rf"[{_QUOTES}]?{_PATH}[{_QUOTES}]?\s*(?:等)?\s*(?:目录|文件夹|路径|之外|以外|下)",
    r"(?:写入|修改|删除|访问|改动|存到|存放在|在|到)\s*((?:\.{1,2}|~)?/[A-Za-z0-9_./\-]+)",
)  # fmt: skip
_PLACE_WORDS = frozenset("the a any this that workspace working project current its own folder directory agent".split())


def guard(text: str) -> dict[str, Any]:
    """Return the `require` and `forbid` of a guard, as far as the text states them."""
    require: dict[str, Any] = {}
    forbid: dict[str, Any] = {}
    extensions = _extensions(text)
    if extensions:
        (forbid if _forbidden_types(text) else require)["extension"] = extensions
    suffix, prefix = _affix(_SUFFIX, text), _affix(_PREFIX, text)
    if suffix.startswith(".") and re.fullmatch(r"\.[a-z0-9]{1,8}", suffix):
        require["extension"], suffix = [suffix], ""
    holes = _with_holes(suffix), _with_holes(prefix)
    if suffix and not prefix and holes[0] == re.escape(suffix):
        require["stem_suffix"] = suffix
    elif suffix or prefix:
        require["pattern"] = f"{holes[1]}.*{holes[0]}" + r"(\.[A-Za-z0-9]+)?"
    if not require and not forbid and (style := next((s for p, s in _STYLES if re.search(p, text, _FLAGS)), "")):
        require["pattern"] = style
    if folders := _folders(text):
        outside = re.search(r"\boutside\b|之外|以外", text, _FLAGS)
        only = re.search(
            r"\b(only|must (be|live|lie|go|stay)|ha(s|ve) to|always)\b|只能|必须|仅限|只允许", text, _FLAGS
        )
        denied = matches("prohibit", text) and not outside and not only
        (forbid if denied else require)["folder"] = folders
    elif re.search(r"workspace|工作区|工作空间|working (directory|folder)|工作目录", text, _FLAGS):
        require["folder"] = ["."]
    if re.search(r"\boverwrit|覆盖", text, _FLAGS) and matches("prohibit", text):
        forbid["argument"] = {"overwrite": "true"}
    if programs := _refused_programs(text):
        forbid["argument"] = {"command": rf"(.*[\s;|&(/])?({'|'.join(programs)})([\s;|&)].*)?"}
    rules = {"require": require, "forbid": forbid}
    found = {name: rule for name, rule in rules.items() if rule}
    patterns = [rule["pattern"] for rule in found.values() if "pattern" in rule]
    return {} if any(unsafe_reason(pattern) for pattern in patterns) else found


def _affix(patterns: tuple[str, ...], text: str) -> str:
    """Return how a name is to end or start, as the text writes it."""
    for pattern in patterns:
        for found in re.finditer(pattern, text, _FLAGS):
            part = found[1].rstrip(".,") if not found[1].startswith(".") else found[1].rstrip(".")
            telling = re.search(r"[_.\-0-9]|[A-Z]{2}", part)  # `end with numbers` is prose, `end with _v1` is not
            if part and (telling or (found[0].count(part) and _is_quoted(found[0], part))) and len(part) <= 64:
                return part
    return ""


def _is_quoted(text: str, part: str) -> bool:
    return any(f"{quote}{part}" in text for quote in _QUOTES)


def _with_holes(part: str) -> str:
    """Return the pattern of an affix: `_v<number>` becomes `_v[0-9]+`."""
    for hole, pattern in _HOLES:
        if found := re.search(hole, part):
            return f"{re.escape(part[: found.start()])}{pattern}{re.escape(part[found.end() :])}"
    return re.escape(part)


def _extensions(text: str) -> list[str]:
    """Return the file types that a rule names: those near a word for a file's type."""
    if not re.search(
        r"\bextensions?\b|\bsuffix|\bfile types?\b|\bends? in \.|扩展名|后缀|文件类型|\bonly\b.{0,40}\bfiles?\b|\.(exe|sh|bat)\b",
        text,
        _FLAGS,
    ):
        return []
    dotted = [found[0].lower() for found in re.finditer(r"(?<![\w/])\.[a-z][a-z0-9]{0,7}\b(?![/(])", text, _FLAGS)]
    near = [
        f".{form}"
        for form, match in mentions(text)
        if re.match(r"\W{0,2}(后缀|扩展名|extension|suffix)", text[match.end() :])
    ]
    return list(dict.fromkeys([*dotted, *near]))[:10]


def _forbidden_types(text: str) -> bool:
    positive = re.search(r"\bonly\b|只允许|只能|统一|必须|仅", text, _FLAGS)
    return bool(matches("prohibit", text)) and not positive


def _folders(text: str) -> list[str]:
    found: list[str] = []
    for pattern in _PLACES:
        for match in re.finditer(pattern, text, _FLAGS):
            path = match[1].rstrip("/.") or match[1]
            path = path.removeprefix("./")
            if (
                path.lower() not in _PLACE_WORDS
                and not path.lower().endswith((".py", ".md", ".yaml"))
                and len(path) <= 200
            ):
                found.append(path)
        if found:
            tail = re.search(
                rf"{re.escape(found[-1])}/?\s*(?:和|与|或|及|、|,| and | or )\s*{_PATH}\s*(?:目录|文件夹|folders?|directories)",
                text,
                _FLAGS,
            )
            head = re.search(
                rf"((?:\.{{1,2}}|~)?/[A-Za-z0-9_./\-]+)\s*(?:和|与|或|及|、|, | and | or )\s*{re.escape(found[0])}",
                text,
                _FLAGS,
            )
            found = [*([head[1]] if head else []), *found, *([tail[1]] if tail else [])]
            return list(dict.fromkeys(found))[:10]
    return []


def _refused_programs(text: str) -> list[str]:
    """Return the programs of `block curl and wget`."""
    found = re.search(
        r"(?:block|forbid|ban|never run|refuse|disallow|do not run|禁止(?:执行|运行|使用|调用)?|拦截|不得(?:执行|运行|使用))\s*(?:the )?(?:commands? |命令\s*)?"
        r"((?:[a-z][a-z0-9-]{1,19})(?:\s*(?:,|、|和|或|and|or)\s*(?:[a-z][a-z0-9-]{1,19}))*)",
        text,
        _FLAGS,
    )
    if found is None:
        return []
    known = {
        "curl",
        "wget",
        "rm",
        "sudo",
        "ssh",
        "scp",
        "nc",
        "dd",
        "chmod",
        "chown",
        "mkfs",
        "shutdown",
        "reboot",
        "kill",
        "git",
        "docker",
        "kubectl",
        "pip",
        "npm",
    }
    words = re.split(r"\s*(?:,|、|和|或|\band\b|\bor\b)\s*", found[1])
    return [word for word in words if word in known]


# --------------------------------------------------------------------------- tools

_KEY = r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}"
_KEYS = rf"{_KEY}(?:\s*(?:,|、|，|和|与|及|and|&)\s*(?:and )?{_KEY})*"


def required_keys(text: str) -> list[str]:
    """Return the keys that a JSON (or the columns that a CSV) must have."""
    found = _first(
        (
            rf"\b(?:keys?|fields?|columns?|properties)(?: named| called|:| are)? ({_KEYS})",
            rf"\b(?:must|has to|have to|should|shall) (?:contain|include|have)(?: the)?(?: keys?| fields?| columns?)? ({_KEYS})(?=[\s.,;]|$)",
            rf"(?:包含|包括|含有|含|具有|要有)\s*({_KEYS})\s*(?:等)?\s*(?:字段|键|列|属性)",
            rf"(?:字段|键|列)(?:为|是|包括|包含|：|:)\s*({_KEYS})",
        ),
        text,
    )
    if found is None:
        return []
    words = re.split(r"\s*(?:,|、|，|和|与|及|\band\b|&)\s*(?:and )?", found[1])
    stop = {"the", "a", "an", "at", "all", "of", "least", "only", "with", "for", "that"}
    keys = [word.strip(".-") for word in words if word]
    return [] if set(keys) & stop or len(keys) > 50 else list(dict.fromkeys(keys))


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
    least = rf"(?:at least|a minimum of|minimum|no fewer than|not less than|>=|≥|至少|不少于|最少|不低于)\s*(?:有|包含|含|要有)?\s*{_NUMBER}\s*"
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
_RUN = r"\b(?:wrap(?:s|ping)?|run(?:s|ning)?|execute|invoke|call)"
_VAGUE = frozenset(
    "a an the it this that them its api rest http sql code such each every shell script scripts tests test".split()
)


def program(text: str) -> list[str]:
    """Return the program, and perhaps its subcommand, of `wrap git blame as an action`."""
    found = _first(
        (
            rf"{_RUN} (?:the )?{_PROGRAM}(?= (?:cli|command|binary|executable|program)\b)",
            rf"{_RUN} {_PROGRAM}(?= (?:as|in|on|with|for|and|from|through|via|using)\b|[.,;]|$)",
            r"(?:封装|执行|运行|调用)\s*([a-z][a-z0-9_.-]*)((?: [a-z][a-z0-9-]*)?)\s*(?:命令行|命令|可执行|cli|工具)",
        ),
        text,
    )
    words = [word for word in (found[1], found[2].strip()) if word] if found else []
    return [] if _VAGUE & {word.lower() for word in words} else words


_SECRETS = (
    (r"phone|mobile number|手机号|电话号码|手机号码", r"(?<!\d)1[3-9]\d{9}(?!\d)"),
    (r"\bid (card|number)s?\b|identity (card|number)|身份证", r"(?<!\d)\d{17}[\dXx](?!\d)"),
    (r"bank card|credit card|card numbers?|银行卡|信用卡|卡号", r"(?<!\d)\d{13,19}(?!\d)"),
    (r"e-?mail|邮箱|电子邮件", r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,63}"),
    (r"api[ -]?keys?|access keys?|secrets?|tokens?\b|credentials?|密钥|凭证|令牌", r"\b(?:sk|pk|ghp|gho|xox[bp]|AKIA)[-_A-Za-z0-9]{16,128}"),
    (r"\bip addresses\b|\bips?\b|ip\s*地址", r"(?<!\d)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\d)"),
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
    least = r"(?:\bto|only|at most|cap of|limit of|first|up to|within|最多|不超过|截断(?:到|为|至)|保留前?)"
    found = _first((rf"{least}\s*(\d[\d,]*)\s*(?:characters|chars)", rf"{least}\s*(\d+)\s*(?:个)?(?:字符|字)"), text)
    return min(max(int(found[1].replace(",", "")), 100), 1_000_000) if found and len(found[1]) < 10 else None
