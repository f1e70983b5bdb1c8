"""The tools, rails and skills of a design, with every value that its gap states, as a plan spells them out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge.design import details
from extforge.design.cues import LONGEST_TEXT, matches
from extforge.naming import pascal_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from extforge.design.deciding import Decision
    from extforge.design.gaps import Gap

__all__ = ["is_chinese", "plain", "rail_spec", "skill_spec", "title", "tool_specs", "trials"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]+")
_OTHER_DATABASES = re.compile(
    r"\b(postgres\w*|mysql|mariadb|oracle|sql ?server|clickhouse|hive|mongo\w*|snowflake)(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_LONG = re.compile(r"trim|shorten|truncat|compress|huge|flood|long|截断|压缩|精简|过长|太长|缩短|裁剪", re.IGNORECASE)
Spec = dict[str, Any]


def plain(text: str, limit: int) -> str:
    """Return a text on one line, without characters that a plan cannot hold."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def title(gap: Gap, limit: int) -> str:
    """Return what a gap is about, on one line; never empty."""
    texts = (gap.feature, gap.gap_description, gap.suggested_approach, gap.id)
    return next((line for text in texts if (line := plain(text, limit))), "an unnamed gap")


def is_chinese(gap: Gap) -> bool:
    """Say in which language to write about a gap: the one that its title has most of."""
    text = gap.feature or gap.gap_description
    return len(_HAN.findall(text)) > len(re.findall(r"[A-Za-z]+", text))


def _sentence(*texts: str) -> str:
    """Return the texts as sentences; after a Chinese full stop comes no space."""
    ended = [text.rstrip(".。;；,， ") + ("。" if _HAN.search(text) else ".") for text in texts if text.strip()]
    return " ".join(ended).replace("。 ", "。")


@dataclass(frozen=True, slots=True)
class Part:
    """A tool or rail in the making: what was decided, and the words that give its values."""

    decision: Decision
    gap: Gap
    text: str
    form: str = ""  # of an artifact
    rail: str = ""  # class whose state a report reads
    skill: str = ""  # that a prompt injects

    def state(self, subject: str, value: object, rule: str = "the gap states it") -> None:
        """Note a value, and where it comes from."""
        self.decision.because(subject, str(value), rule)

    def leave_open(self, doubt: str, todo: str = "") -> Spec:
        """Return a body for a person to write, and say why it is left to them."""
        self.decision.doubt(doubt)
        return self.notes(todo)

    def notes(self, todo: str = "") -> Spec:
        """Return a body for a person to write, with what the gap suggests."""
        return {"custom": {"notes": _sentence(plain(self.gap.suggested_approach, 500) or title(self.gap, 500), todo)}}

    def words(self, limit: int) -> str:
        """Return title and description as sentences."""
        return _sentence(
            title(self.gap, 200), plain(self.gap.gap_description, limit) if self.gap.feature.strip() else ""
        )


# --------------------------------------------------------------------------- tools


def tool_specs(decision: Decision, gap: Gap, name: str, skill: str, rail: str) -> list[Spec]:
    """Return the `tools` of a design.

    Args:
        decision: what the tools do.
        gap: whose words give the values.
        name: of the extension, and of its first tool.
        skill: the skill that says how to use them, if there is one.
        rail: class of the rail whose state a report reads, if there is one.
    """
    specs: list[Spec] = []
    text = _text(gap)
    for what in decision.tools:
        does, _, form = what.partition(":")
        own = name if not specs else f"{name}_{form or does}"
        body = _TOOLS[does](Part(decision, gap, text, form=form, rail=rail))
        spec: Spec = {
            "name": own,
            "class": f"{pascal_case(own)}Tool",
            "description": _about_tool(gap, does, form, skill),
        }
        if "command" in body:
            spec["input_params"] = _arguments_schema(body["command"]["argv"][:-1])
        specs.append({**spec, "does": body})
    return specs


def _about_tool(gap: Gap, does: str, form: str, skill: str) -> str:
    """Say what a tool does and when to use it, in the gap's words."""
    chinese = is_chinese(gap)
    goal = title(gap, 160)
    heads = {
        "artifact": ("写出真实的 {form} 文件：{goal}", "Write a real {form} file: {goal}"),
        "report": ("报告本会话中已记录的内容：{goal}", "Report what has been recorded in this session: {goal}"),
    }
    head = heads.get(does, ("{goal}", "{goal}"))[0 if chinese else 1].format(form=form.upper(), goal=goal)
    need = plain(gap.gap_description, 240) if gap.feature else ""
    parts = [head, f"背景：{need}" if chinese and need else f"Use when this is needed: {need}" if need else ""]
    if skill:
        parts.append(f"先读技能 {skill}" if chinese else f"Read the skill {skill} first")
    return _sentence(*parts)


def _artifact(part: Part) -> Spec:
    spec: Spec = {"format": part.form}
    listed = {"json": "required_keys", "csv": "required_columns"}.get(part.form)
    if listed and (keys := details.required_keys(part.text)):
        spec[listed] = keys
        part.state(listed, ", ".join(keys))
    if least := details.minimum(part.text, part.form):
        spec["minimum"] = least
        part.state("minimum", ", ".join(f"{fact} {count}" for fact, count in least.items()))
    return {"artifact": spec}


def _http(part: Part) -> Spec:
    method, address, query = details.call(part.text)
    if method in ("GET", "DELETE"):
        part.state("method", method)
        part.state("url", address)
        if query:
            part.state("query", ", ".join(query))
        stated = {"method": method} if method != "GET" else {}
        return {"http": {**stated, "url": address, **({"query": query} if query else {})}}
    if address:
        what = f"what a {method} to it sends" if method else "with which method it is called"
        doubt = f"the gap gives the address {address}, but not {what}, so its tool is left to be filled in"
        return part.leave_open(doubt, f"A web API at {address}: replace custom by http with method, url and body")
    doubt = "the gap gives no address of the API, so its tool is left to be filled in"
    return part.leave_open(doubt, "A web API: replace custom by http with its url, then extforge writes the call")


def _command(part: Part) -> Spec:
    gap = part.gap
    texts = (gap.suggested_approach, gap.feature, gap.gap_description)
    if words := next((found for text in texts if (found := details.program(text, part.text))), None):
        part.state("argv", " ".join(words))
        return {"command": {"argv": [*words, "{arguments}"]}}
    doubt = "the gap names no program, so its tool is left to be filled in"
    return part.leave_open(doubt, "A program: replace custom by command with its argv, then extforge writes the call")


def _query(part: Part) -> Spec:
    if other := _OTHER_DATABASES.search(part.text):
        doubt = f"{other[0]} is no SQLite database, which query tools read; its tool is left to be written"
        return part.leave_open(doubt, "Only SQLite is read by query tools")
    part.state("database", "from the environment", "the gap does not say where it is")
    return {"query": {}}


_TOOLS: dict[str, Callable[[Part], Spec]] = {
    "artifact": _artifact,
    "report": lambda part: {"report": {"state": part.rail}},
    "custom": Part.notes,
    "http": _http,
    "command": _command,
    "query": _query,
}


def trials(tools: list[Spec]) -> Spec:
    """Return the `acceptance` of tools that reach outside: stand-ins, so that they can be tried without it."""
    found: Spec = {}
    for tool in tools:
        if "command" in tool["does"]:
            found[tool["name"]] = {"inputs": {"arguments": ["example"]}, "setup": {"argv": ["echo"]}}
        elif "query" in tool["does"]:
            script = "CREATE TABLE sample (name TEXT, amount REAL); INSERT INTO sample VALUES ('a', 1.5), ('b', 2.5);"
            sql = "SELECT name, amount FROM sample ORDER BY name"
            found[tool["name"]] = {"inputs": {"sql": sql}, "setup": {"sqlite": script}}
    return found


def _arguments_schema(argv: list[str]) -> Spec:
    about = f"arguments after `{' '.join(argv)}`, each on its own"
    items = {"type": "array", "items": {"type": "string"}, "description": about, "maxItems": 50}
    return {"type": "object", "properties": {"arguments": items}, "required": ["arguments"]}


# --------------------------------------------------------------------------- rails


def rail_spec(decision: Decision, gap: Gap, name: str, skill: str) -> Spec:
    """Return the one rail of a design."""
    body = _RAILS[decision.rail](Part(decision, gap, _text(gap), skill=skill))
    return {"class": f"{pascal_case(name)}Rail", "does": body}


def _guard(part: Part) -> Spec:
    rule = details.guard(part.text)
    for verb, parts in rule.items():
        for key, value in parts.items():
            part.state(f"{verb}.{key}", value)
    if not rule:
        part.decision.doubt("no suffix, folder, type or command is read: it asks for a portable name in the workspace")
    return {"guard": {**rule, "message": title(part.gap, 200)}}


def _audit(part: Part) -> Spec:
    return {"audit": {"arguments": bool(re.search("argument|参数", part.text, re.IGNORECASE))}}


def _reminder(part: Part) -> Spec:
    said = details.period(part.text)
    if said:
        part.state("every", f"{said['every']} {said['of']}")
    else:
        part.state("every", "5 model_calls", "no number is said; extforge's default")
        part.decision.doubt("no period is said; 5 model calls are assumed")
    return {"reminder": {**said, "text": part.words(400)}}


def _budget(part: Part) -> Spec:
    said = details.budget(part.text)
    if said:
        part.state("limit", ", ".join(f"{key} {value}" for key, value in said.items()))
        return {"budget": said}
    part.state("limit", "1000000 calls", "no limit is said; it counts, and its limit is out of reach")
    if matches("limit", part.text):
        part.decision.doubt("a limit is spoken of, but no number of calls, characters or seconds; put yours in")
    return {"budget": {"calls": 1_000_000}}


def _prompt(part: Part) -> Spec:
    words = details.mentioned_words(part.text)
    when = {"when_mentions": words} if words else {}
    if words:
        part.state("when_mentions", ", ".join(words))
    if part.skill:
        return {"prompt": {"skill": part.skill, **when}}
    part.decision.doubt("the text to inject is the gap's own; put in the one that is meant")
    return {"prompt": {"text": part.words(600), **when}}


def _output_guard(part: Part) -> Spec:
    found = details.output_patterns(part.text)
    if not found:
        doubt = "no form of what must not be said could be read; replace custom by output_guard with patterns"
        return part.leave_open(doubt, "Replace custom by output_guard with its patterns, then extforge writes the rail")
    part.state("patterns", ", ".join(what for what, _ in found), "the gap names them")
    hide = re.search(r"redact|mask|censor|anonym|脱敏|打码|屏蔽|遮|掩码", part.text, re.IGNORECASE)
    refuse = re.search(r"\bblock|\brefus|\bwithh|拦截|阻止|拒绝", part.text, re.IGNORECASE)
    on_match = {"on_match": "replace"} if refuse and not hide else {}
    return {"output_guard": {"patterns": [pattern for _, pattern in found], **on_match}}


def _result_filter(part: Part) -> Spec:
    if matches("protect", part.text) and (found := details.output_patterns(part.text)):
        part.state("patterns", ", ".join(what for what, _ in found), "the gap names them")
        return {"result_filter": {"patterns": [pattern for _, pattern in found]}}
    longest = details.longest_result(part.text)
    if longest or _LONG.search(part.text):
        rule = "the gap states it" if longest else "no number is said; a length to start from"
        part.state("max_characters", longest or 20_000, rule)
        if not longest:
            part.decision.doubt("no length is said; 20,000 characters are assumed")
        return {"result_filter": {"max_characters": longest or 20_000}}
    doubt = "no form of what is to be filtered could be read; replace custom by result_filter with patterns"
    return part.leave_open(doubt, "Replace custom by result_filter with its patterns, then extforge writes the rail")


_RAILS: dict[str, Callable[[Part], Spec]] = {
    "guard": _guard,
    "audit": _audit,
    "reminder": _reminder,
    "budget": _budget,
    "prompt": _prompt,
    "artifact_gate": lambda _: {"artifact_gate": {}},
    "output_guard": _output_guard,
    "result_filter": _result_filter,
    "custom": Part.notes,
}


# --------------------------------------------------------------------------- skills

_MATERIAL = (
    (r"clause librar|条款库|条款", "references/clauses.md"),
    (r"brand|品牌|版式|layout spec", "references/brand_guide.md"),
    (
        r"guideline|\bguide\b|规范|指南|手册|handbook|playbook|polic(y|ies)|口径|convention|约定|准则",
        "references/guide.md",
    ),
    (r"example|sample|示例|样例|范例|案例", "references/examples.md"),
    (r"glossary|terminolog|术语", "references/glossary.md"),
)


def skill_spec(gap: Gap, name: str, formats: list[str]) -> Spec:
    """Return the one skill of a design: when it applies, and which material a person must bring.

    What the rules of a field are, no gap says; so the skill asks for the files that hold them.
    """
    text = _text(gap)
    goal, need = title(gap, 160), plain(gap.gap_description, 300) if gap.feature else ""
    if is_chinese(gap):
        description = _sentence(goal + (f"：{need}" if need else ""), f"任务涉及「{goal}」时使用")
        trigger = f"用户的任务涉及「{goal}」。"
    else:
        description = _sentence(goal + (f": {need}" if need else ""), f"Use when a task is about {_lowered(goal)}")
        trigger = _sentence(f"A task is about {_lowered(goal)}")
    material = [path for pattern, path in _MATERIAL if re.search(pattern, text, re.IGNORECASE)]
    form = next((f for f in formats if f in ("pptx", "docx", "xlsx")), "")
    if form and re.search(r"templates?\b|模板|letterhead|抬头|brand|品牌", text, re.IGNORECASE):
        material.append(f"assets/template.{form}")
    if re.search(r"\blogo|letterhead|徽标|抬头", text, re.IGNORECASE):
        material.append("assets/logo.png")
    return {"name": name, "description": description, "trigger": trigger, "assets": material or ["references/guide.md"]}


def _lowered(goal: str) -> str:
    """Return a title as part of a sentence; acronyms and names keep their capitals."""
    return goal[:1].lower() + goal[1:] if re.match(r"[A-Z][a-z]", goal) else goal


def _text(gap: Gap) -> str:
    return "\n".join(text[:LONGEST_TEXT] for text in (gap.feature, gap.suggested_approach, gap.gap_description) if text)
