"""The tools, rails and skills of a design, with every value that its gap states, as a plan spells them out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from extforge.design import details
from extforge.design.cues import LONGEST_TEXT
from extforge.naming import pascal_case

if TYPE_CHECKING:
    from extforge.design.deciding import Decision
    from extforge.design.gaps import Gap

__all__ = ["is_chinese", "plain", "rail_spec", "skill_spec", "title", "tool_specs", "trials"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]+")
_OTHER_DATABASES = re.compile(
    r"postgres\w*|mysql|mariadb|oracle|sql ?server|clickhouse|hive|mongo\w*|snowflake", re.IGNORECASE
)
_HAN = re.compile(r"[\u3400-\u9fff]")
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
        body = _BODIES[does](decision, gap, text, form, rail)
        spec: Spec = {
            "name": own,
            "class": f"{pascal_case(own)}Tool",
            "description": _about_tool(gap, does, form, skill),
        }
        if does in body and does == "command":
            spec["input_params"] = _arguments_schema(body["command"]["argv"])
            body["command"]["argv"] = [*body["command"]["argv"], "{arguments}"]
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


def _artifact(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del gap, rail
    spec: Spec = {"format": form}
    if form == "json" and (keys := details.required_keys(text)):
        spec["required_keys"] = keys
        decision.because("required_keys", ", ".join(keys), "the gap lists them")
    elif form == "csv" and (columns := details.required_keys(text)):
        spec["required_columns"] = columns
        decision.because("required_columns", ", ".join(columns), "the gap lists them")
    if least := details.minimum(text, form):
        spec["minimum"] = least
        decision.because("minimum", ", ".join(f"{k} {v}" for k, v in least.items()), "the gap states it")
    return {"artifact": spec}


def _report(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del decision, gap, text, form
    return {"report": {"state": rail}}


def _custom(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del decision, text, form, rail
    return _notes(gap)


def _notes(gap: Gap, more: str = "") -> Spec:
    return {"custom": {"notes": _sentence(plain(gap.suggested_approach, 500) or title(gap, 500), more)}}


def _http(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del form, rail
    if address := details.url(text):
        decision.because("url", address, "the gap states it")
        return {"http": {"url": address}}
    decision.doubts.append("the gap gives no address of the API, so its tool is left to be filled in")
    return _notes(gap, "A web API: replace custom by http with its url, then extforge writes the call")


def _command(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del form, rail
    for part in (gap.suggested_approach, gap.feature, gap.gap_description, text):
        if words := details.program(part):
            decision.because("argv", " ".join(words), "the gap names the program")
            return {"command": {"argv": words}}
    decision.doubts.append("the gap names no program, so its tool is left to be filled in")
    return _notes(gap, "A command line program: replace custom by command with its argv, then extforge writes the call")


def _query(decision: Decision, gap: Gap, text: str, form: str, rail: str) -> Spec:
    del form, rail
    if other := _OTHER_DATABASES.search(text):
        decision.doubts.append(
            f"{other[0]} is no SQLite database, which query tools read; its tool is left to be written"
        )
        return _notes(gap, "Only SQLite is read by query tools")
    decision.because("database", "from the environment", "the gap does not say where it is")
    return {"query": {}}


_BODIES = {
    "artifact": _artifact,
    "report": _report,
    "custom": _custom,
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
    text = _text(gap)
    body = _RAILS[decision.rail](decision, gap, text, skill)
    return {"class": f"{pascal_case(name)}Rail", "does": body}


def _guard(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del skill
    rule = details.guard(text)
    for verb, parts in rule.items():
        for key, value in parts.items():
            decision.because(f"{verb}.{key}", str(value), "the gap states it")
    if not rule:
        decision.doubts.append(
            "no suffix, folder, type or command could be read: it asks for a portable name in the workspace"
        )
    return {"guard": {**rule, "message": title(gap, 200)}}


def _reminder(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del skill
    said = details.period(text)
    if said:
        decision.because("every", f"{said['every']} {said['of']}", "the gap states it")
    else:
        decision.because("every", "5 model_calls", "no number is said; extforge's default")
    return {
        "reminder": {
            **said,
            "text": _sentence(title(gap, 200), plain(gap.gap_description, 400) if gap.feature.strip() else ""),
        }
    }


def _budget(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del skill, gap
    said = details.budget(text)
    if said:
        decision.because("limit", ", ".join(f"{k} {v}" for k, v in said.items()), "the gap states it")
        return {"budget": said}
    decision.because("limit", "1000000 calls", "no limit is said; it counts, and its limit is out of reach")
    return {"budget": {"calls": 1_000_000}}


def _prompt(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    words = details.mentioned_words(text)
    if words:
        decision.because("when_mentions", ", ".join(words), "the gap states it")
    said: Spec = (
        {"skill": skill}
        if skill
        else {"text": _sentence(title(gap, 200), plain(gap.gap_description, 600) if gap.feature.strip() else "")}
    )
    if not skill:
        decision.doubts.append("the text to inject is the gap's own; put in the one that is meant")
    return {"prompt": {**said, **({"when_mentions": words} if words else {})}}


def _output_guard(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del skill
    found = details.output_patterns(text)
    if not found:
        decision.doubts.append(
            "no form of what must not be said could be read; replace custom by output_guard with patterns"
        )
        return _notes(gap, "Replace custom by output_guard with its patterns, then extforge writes the rail")
    decision.because("patterns", ", ".join(what for what, _ in found), "the gap names them")
    hide = re.search(r"redact|mask|censor|anonym|脱敏|打码|屏蔽|遮|掩码", text, re.IGNORECASE)
    refuse = re.search(r"\bblock|\brefus|\bwithh|拦截|阻止|拒绝", text, re.IGNORECASE)
    spec: Spec = {"patterns": [pattern for _, pattern in found]}
    return {"output_guard": {**spec, **({"on_match": "replace"} if refuse and not hide else {})}}


def _result_filter(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del skill
    found = details.output_patterns(text)
    longest = details.longest_result(text)
    if found:
        decision.because("patterns", ", ".join(what for what, _ in found), "the gap names them")
        return {"result_filter": {"patterns": [pattern for _, pattern in found]}}
    if longest or re.search(
        r"trim|shorten|truncat|compress|huge|flood|long|截断|压缩|精简|过长|太长|缩短|裁剪", text, re.IGNORECASE
    ):
        rule = "the gap states it" if longest else "no number is said; a length to start from"
        decision.because("max_characters", str(longest or 20_000), rule)
        return {"result_filter": {"max_characters": longest or 20_000}}
    decision.doubts.append(
        "no form of what is to be filtered could be read; replace custom by result_filter with patterns"
    )
    return _notes(gap, "Replace custom by result_filter with its patterns, then extforge writes the rail")


def _left_open(decision: Decision, gap: Gap, text: str, skill: str) -> Spec:
    del decision, text, skill
    return _notes(gap)


_RAILS = {
    "guard": _guard,
    "audit": lambda *_: {"audit": {"arguments": bool(re.search("argument|参数", _text(_[1]), re.IGNORECASE))}},
    "reminder": _reminder,
    "budget": _budget,
    "prompt": _prompt,
    "artifact_gate": lambda *_: {"artifact_gate": {}},
    "output_guard": _output_guard,
    "result_filter": _result_filter,
    "custom": _left_open,
}


# --------------------------------------------------------------------------- skills

_MATERIAL = (
    (r"clause librar|条款库|条款", "references/clauses.md"),
    (r"brand|品牌|版式|layout spec", "references/brand_guide.md"),
    (
        r"guideline|\bguide\b|规范|指南|手册|handbook|playbook|policy|policies|口径|convention|约定|准则",
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
    return "\n".join(text[:LONGEST_TEXT] for text in (gap.feature, gap.gap_description, gap.suggested_approach) if text)
