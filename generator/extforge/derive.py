"""From a design to a blueprint: every choice that the plan leaves open, made here and explained.

A plan with only the host's fields says which components to make and what the extension is called.  The rest
follows from whole words of the name and description, by the tables below; `Blueprint.choices` says which word led
to which choice, and `extforge check --explain` prints them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Any

from extforge.contents import SCHEMAS, report_schema
from extforge.external import derived_params, external_options
from extforge.naming import pascal_case
from extforge.plan import (
    ArtifactSpec,
    AuditSpec,
    BudgetSpec,
    CustomSpec,
    DoesRail,
    DoesTool,
    GateSpec,
    GuardSpec,
    PromptSpec,
    RailSpec,
    ReminderSpec,
    ReportSpec,
    SkillSpec,
    ToolSpec,
)
from extforge.rules import MODULE_PREFIX
from extforge_harness.acceptance import EXTERNAL
from extforge_verifiers.frontmatter import SKILL_PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import BaseModel

    from extforge.plan import ExtensionDesign
    from extforge.reading import Entry

__all__ = [
    "FORMAT_WORDS",
    "SHARED_PARTS",
    "Blueprint",
    "Choice",
    "Guards",
    "Installed",
    "Rail",
    "Skill",
    "Tool",
    "derive",
    "find_word",
    "relate",
    "words_of",
]

# Whole words that name a format, most telling first.  Chinese has no spaces: there a word counts wherever it stands.
FORMAT_WORDS: dict[str, tuple[str, ...]] = {
    "pptx": ("pptx", "ppt", "powerpoint", "deck", "decks", "slides", "slide", "presentation", "演示", "幻灯片"),
    "docx": ("docx", "word", "contract", "contracts", "letter", "memo", "合同", "文档", "公文"),
    "xlsx": ("xlsx", "xls", "excel", "spreadsheet", "workbook", "表格", "台账"),
    "pdf": ("pdf",),
    "json": ("json",),
    "csv": ("csv",),
    "md": ("md", "markdown"),
    "html": ("html", "webpage", "网页"),
    "svg": ("svg", "diagram", "diagrams", "flowchart", "示意图", "流程图"),
    "png": ("png", "chart", "charts", "plot", "图表"),
}
_RAIL_WORDS: dict[str, tuple[str, ...]] = {
    "budget": ("budget", "cost", "costs", "usage", "quota", "预算", "用量", "费用", "成本"),
    "audit": ("audit", "log", "logs", "trace", "审计", "日志", "留痕"),
    "reminder": ("remind", "reminder", "every", "check", "periodic", "interval", "提醒", "每", "定期"),
}
_GUARD_WORDS = ("guard", "forbid", "block", "deny")
# Modules that several tools or rails of an extension share, and the folder that each stands in.
SHARED_PARTS = {
    **dict.fromkeys(("inputs", "artifact", "fonts", "figures", "drawing", "places", "network"), "tools"),
    **dict.fromkeys(("calls", "screen", "state"), "rails"),
}
_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Installed:
    """An extension that is already in the target."""

    kind: str
    tools: list[str]
    applies_to: list[str] = field(default_factory=list)
    guards: tuple[str, ...] = ()  # work modules, when all its rails are guards
    depends_on: list[str] = field(default_factory=list)
    rules: list[tuple[list[str], dict[str, Any]]] = field(default_factory=list)  # of its guards: tools, options


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that was derived, and the reason."""

    subject: str  # json path below the design, such as "tools[0].does"
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, with nothing left open."""

    name: str
    class_name: str
    module: str  # of the adapter, below the extension: "tools.deck_tool"
    work: str  # of the work: "tools.deck"
    does: str  # artifact, http, command, query, report or custom
    description: str
    mutation: str
    input_params: dict[str, Any]
    format: str = ""  # of an artifact
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rail:
    """One rail, with nothing left open."""

    class_name: str
    module: str
    work: str
    does: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, with nothing left open.  `source` names a community skill to copy instead."""

    name: str  # and its folder's
    description: str
    trigger: str
    spec: SkillSpec
    source: str = ""
    in_plan: str = ""  # what the plan calls it


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of one extension, by their work modules."""

    extension: str
    works: tuple[str, ...]


@dataclass(slots=True)
class Blueprint:
    """An extension, ready to be rendered."""

    entry: Entry
    design: ExtensionDesign
    name: str
    root: str  # of the tree, relative to the target
    description: str
    skill_profile: str = SKILL_PROFILES[0]
    tools: list[Tool] = field(default_factory=list)
    rails: list[Rail] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)  # files that a person must add
    suffix: str = ""  # how the guards that watch its tools want file names to end
    guards: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict
    )  # tool of the plan, or '' for any other -> rules that watch it
    mcp: bool = False  # carry an MCP server
    applying: list[Guards] = field(default_factory=list)  # the guards that its tools are under
    choices: list[Choice] = field(default_factory=list)

    @property
    def served(self) -> list[Tool]:
        """The tools of its MCP server: all but those that report what a rail records, which runs in the host only."""
        return [tool for tool in self.tools if tool.does != "report"] if self.mcp else []

    def choose(self, subject: str, value: str, reason: str) -> None:
        """Note a derived choice."""
        self.choices.append(Choice(subject, value, reason))


def derive(entry: Entry, design: ExtensionDesign, skill_profile: str = SKILL_PROFILES[0]) -> Blueprint:
    """Return the blueprint of a design that passed `rules.check_design`."""
    name = design.extension_name
    root = (design.file_plan.root or f"openjiuwen/extensions/harness/{name}").rstrip("/")
    blueprint = Blueprint(entry, design, name, root, design.description.strip() or _sentence(name), skill_profile)
    blueprint.mcp = design.mcp
    if "skill" in design.components:
        blueprint.skills = _derive_skills(blueprint)
    if "rail" in design.components:
        blueprint.rails = _derive_rails(blueprint)
    if "tool" in design.components:
        blueprint.tools = _derive_tools(blueprint)
    for value in (design.file_plan.model_extra or {}).values():
        blueprint.planned += [p.removeprefix(root + "/") for p in ([value] if isinstance(value, str) else value)]
    for skill in blueprint.skills:
        blueprint.planned += [f"skills/{skill.name}/{path}" for path in skill.spec.assets]
        old, new = f"skills/{skill.in_plan}/", f"skills/{skill.name}/"
        blueprint.planned = [new + p.removeprefix(old) if p.startswith(old) else p for p in blueprint.planned]
    return blueprint


def relate(blueprints: list[Blueprint], installed: Mapping[str, Installed]) -> None:
    """Let designs see each other: guards learn which tools they watch, tools which file names and guards they are under.

    Args:
        blueprints: the designs of the plan.
        installed: the extensions that are already in the target, by name.
    """
    tools = {name: found.tools for name, found in installed.items()}
    known = {**tools, **{b.name: [tool.name for tool in b.tools] for b in blueprints}}
    guards: dict[str, list[dict[str, Any]]] = {"": [], **{name: [] for names in known.values() for name in names}}
    mine = {blueprint.name for blueprint in blueprints}
    constraints = {name: found for name, found in installed.items() if name not in mine}
    constraints |= {blueprint.name: _as_installed(blueprint) for blueprint in blueprints}
    for blueprint in blueprints:
        names = [name for name, found in constraints.items() if _applies(name, found, blueprint)]
        for name in names:  # grows while it is walked: a constraint may depend on another
            names += [other for other in constraints[name].depends_on if other in constraints and other not in names]
        blueprint.applying = [Guards(name, constraints[name].guards) for name in names if constraints[name].guards]
    rules = [rule for name, found in installed.items() if name not in mine for rule in found.rules]
    for blueprint in blueprints:
        blueprint.guards = guards
        watched = [tool for name in blueprint.design.applies_to for tool in known.get(name, [])]
        for rail in blueprint.rails:
            if rail.does in ("artifact_gate", "result_filter"):
                rail.options["tools"] = rail.options.get("tools") or watched
            if rail.does == "guard":
                rail.options["tools"] = watched
                rules.append((watched, rail.options))
    for watched, options in rules:
        for name in set(watched or guards) & set(guards):
            guards[name].append(options)
        suffix = (options.get("require") or {}).get("stem_suffix") or ""
        for other in blueprints:
            if suffix and (not watched or any(tool.name in watched for tool in other.tools)):
                other.suffix = suffix
    for blueprint in blueprints:
        for tool in blueprint.tools:
            if tool.does == "artifact":
                # A guard that wants files in a folder elsewhere is a design that allows it.
                wanted = [f for rule in guards[tool.name] for f in (rule.get("require") or {}).get("folder") or []]
                outside = [f for f in wanted if f.startswith(("/", "~")) or PureWindowsPath(f).is_absolute()]
                tool.options["folders"] = list(dict.fromkeys([*tool.options["folders"], *outside]))


def _as_installed(blueprint: Blueprint) -> Installed:
    """Return what other designs see of a design; of a constraint with other rails than guards, no guards."""
    design = blueprint.design
    works = tuple(rail.work for rail in blueprint.rails if rail.does == "guard")
    only = len(works) == len(blueprint.rails) or design.kind != "constraint"
    names = [tool.name for tool in blueprint.tools]
    return Installed(design.kind, names, design.applies_to, works if only else (), design.depends_on)


def _applies(name: str, found: Installed, blueprint: Blueprint) -> bool:
    """Say whether the guards of an extension apply to the tools of a design: its own, and those of constraints."""
    if name == blueprint.name:
        return True
    if found.kind != "constraint" or blueprint.design.kind == "constraint":
        return False
    return name in blueprint.design.depends_on or not found.applies_to or blueprint.name in found.applies_to


def words_of(*texts: str) -> list[str]:
    """Return the words of names and descriptions: ASCII words in lower case, runs of Chinese as they are."""
    return [word for text in texts for word in _WORD.findall(text.lower().replace("_", " "))]


def find_word(words: Iterable[str], table: dict[str, tuple[str, ...]]) -> tuple[str, str] | None:
    """Return (entry of the table, the word that led to it), or None.  The first telling word decides."""
    for word in words:
        for value, known in table.items():
            for candidate in known:
                if word == candidate or (not candidate.isascii() and candidate in word):
                    return value, candidate
    return None


def _sentence(name: str) -> str:
    return name.replace("_", " ").capitalize()


# --------------------------------------------------------------------------- modules and classes


def _resources(blueprint: Blueprint, kind: str) -> list[dict[str, str]]:
    resources = blueprint.design.harness_config_patch.get("resources", {})
    return list(resources.get(f"{kind}s") or []) if isinstance(resources, dict) else []


def _places(blueprint: Blueprint, kind: str, specs: list[Any]) -> list[tuple[str, str, Any]]:
    """Return (module below the extension, class, spec) for each tool or rail.

    The patch decides modules and classes; a spec is matched to it by its class, else by its position.
    """
    resources = _resources(blueprint, kind)
    prefix = f"{MODULE_PREFIX}.{blueprint.name}."
    empty = ToolSpec() if kind == "tool" else RailSpec()
    places: list[tuple[str, str, Any]] = []
    if resources:
        waiting = list(specs)
        for item in resources:
            named = next((s for s in waiting if s.class_ == item["class"]), None)
            spec = named or next((s for s in waiting if s.class_ is None), None)
            if spec is not None:
                waiting.remove(spec)
            places.append((item["module"].removeprefix(prefix), item["class"], spec or empty))
        specs = waiting
    elif not specs:
        specs = [empty]
    folder, suffix = f"{kind}s", kind.capitalize()
    for index, spec in enumerate(specs):
        stem = blueprint.name if not places and index == 0 else _stem(blueprint, spec, index)
        cls = spec.class_ or pascal_case(stem) + suffix
        module = f"{folder}.{stem}_{kind}"
        if not spec.class_:
            blueprint.choose(f"{folder}[{len(places)}].class", cls, "from the name")
        places.append((module, cls, spec))
    return places


def _stem(blueprint: Blueprint, spec: Any, index: int) -> str:
    if getattr(spec, "name", None):
        return str(spec.name)
    if spec.class_:
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", spec.class_).lower()
        return f"{blueprint.name}_{snake.removesuffix('_tool').removesuffix('_rail')}"
    return f"{blueprint.name}_{index + 1}"


def _work_module(module: str, kind: str) -> str:
    """Return the module of the work: the adapter's without its suffix, or with `_work`."""
    stem = module.removesuffix(f"_{kind}")
    return stem if stem != module and not stem.endswith(".") else f"{module}_work"


# --------------------------------------------------------------------------- tools


def _derive_tools(blueprint: Blueprint) -> list[Tool]:
    tools = []
    for index, (module, cls, spec) in enumerate(_places(blueprint, "tool", blueprint.design.tools)):
        work = _work_module(module, "tool")
        name = spec.name or work.rpartition(".")[2].removesuffix("_work")
        if spec.name is None:
            blueprint.choose(f"tools[{index}].name", name, "from the module's name")
        does, options = _tool_does(blueprint, index, name, spec)
        tools.append(_finish_tool(blueprint, index, Tool(name, cls, module, work, does, "", "", {}), spec, options))
    return tools


def _one_of(model: DoesTool | DoesRail) -> tuple[str, BaseModel]:
    given = {key: value for key in type(model).model_fields if (value := getattr(model, key)) is not None}
    return next(iter(given.items()))


def _tool_does(blueprint: Blueprint, index: int, name: str, spec: ToolSpec) -> tuple[str, BaseModel]:
    if isinstance(spec.does, DoesTool):
        return _one_of(spec.does)
    subject = f"tools[{index}].does"
    if spec.does == "custom":
        return "custom", CustomSpec()
    stateful = [rail for rail in blueprint.rails if rail.does in ("budget", "audit", "reminder")]
    if stateful:
        blueprint.choose(subject, "report", f"it reads what the {stateful[0].does} rail keeps")
        return "report", ReportSpec()
    words = words_of(name, blueprint.name, spec.description or "", blueprint.design.description)
    if found := find_word(words, FORMAT_WORDS):
        blueprint.choose(subject, f"artifact: {found[0]}", f"the word {found[1]!r}")
        return "artifact", ArtifactSpec(format=found[0])
    blueprint.choose(subject, "custom (not implemented until you write it)", "no word names a format")
    return "custom", CustomSpec()


_MUTATIONS = {"artifact": "mutating_local", "command": "side_effect", "query": "safe_read", "report": "safe_read"}


def _finish_tool(blueprint: Blueprint, index: int, tool: Tool, spec: ToolSpec, options: BaseModel) -> Tool:
    plain = options.model_dump(mode="json", exclude_none=True)
    form = plain.get("format", "") if tool.does == "artifact" else ""
    mutation: str = spec.mutation or ""
    if not mutation:
        # Nobody knows what a body that a person will write may change: it stays unclassified, and is asked about.
        mutation = _MUTATIONS.get(tool.does, "")
        if tool.does == "http":
            mutation = "safe_read" if plain["method"] == "GET" else "mutating_external"
        reason = f"what a tool that does {tool.does} may change"
        blueprint.choose(f"tools[{index}].mutation", mutation or "unclassified: asked about at every call", reason)
    if spec.input_params is not None:
        params = spec.input_params
    elif tool.does == "artifact":
        params = SCHEMAS[form]
    elif tool.does in EXTERNAL:
        params = derived_params(tool.does, options)
    else:
        params = report_schema() if tool.does == "report" else {"type": "object", "properties": {}}
    description = spec.description or _tool_description(blueprint, tool, form)
    if spec.description is None:
        blueprint.choose(f"tools[{index}].description", description, "from what the tool does")
    if tool.does == "report":
        plain["state"] = plain.get("state") or blueprint.rails[0].class_name
    if tool.does in EXTERNAL:
        plain = external_options(tool.does, tool.name, plain)
    return replace(tool, description=description, mutation=mutation, input_params=params, format=form, options=plain)


_OUTSIDE = {
    "http": ("调用接口：", "Call an API: "),
    "command": ("运行程序：", "Run a program: "),
    "query": ("查询数据库：", "Query a database: "),
}


def _tool_description(blueprint: Blueprint, tool: Tool, form: str) -> str:
    """Return when to use a tool, in the language of the design."""
    goal = blueprint.design.description.strip().rstrip(".。")
    subject = goal or _sentence(blueprint.name).lower()
    chinese = _is_chinese(goal)
    if tool.does == "artifact":
        head = "写出真实的" if chinese else "Write a real"
        text = f"{head} {form.upper()} {'文件：' if chinese else 'file: '}{subject}"
    elif tool.does == "report":
        rail = blueprint.rails[0].does
        chosen = f"报告本会话中 {rail} 的记录：", f"Report what the {rail} rail has recorded in this session: "
        text = chosen[0 if chinese else 1] + subject
    elif tool.does in EXTERNAL:
        text = _OUTSIDE[tool.does][0 if chinese else 1] + subject
    else:
        text = f"{_sentence(tool.name)}: {subject}" if goal else _sentence(tool.name)
    text += "。" if chinese else "."
    if blueprint.skills:
        name = blueprint.skills[0].name
        text += f"先读技能 {name}。" if chinese else f" Read the skill {name} first."
    return text


def _is_chinese(text: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" for character in text)


# --------------------------------------------------------------------------- rails


def _derive_rails(blueprint: Blueprint) -> list[Rail]:
    rails = []
    for index, (module, cls, spec) in enumerate(_places(blueprint, "rail", blueprint.design.rails)):
        does, options = _rail_does(blueprint, index, spec)
        plain = options.model_dump(mode="json", exclude_none=True)
        if does == "prompt" and "skill" in plain:
            names = {skill.in_plan: skill.name for skill in blueprint.skills}
            plain["skill"] = names.get(plain["skill"], plain["skill"])
        rails.append(Rail(cls, module, _work_module(module, "rail"), does, plain))
    return rails


_EMPTY_RAILS: dict[str, type[BaseModel]] = {
    "guard": GuardSpec,
    "audit": AuditSpec,
    "reminder": ReminderSpec,
    "budget": BudgetSpec,
    "prompt": PromptSpec,
    "artifact_gate": GateSpec,
    "custom": CustomSpec,
}


def _rail_does(blueprint: Blueprint, index: int, spec: RailSpec) -> tuple[str, BaseModel]:
    if isinstance(spec.does, DoesRail):
        return _one_of(spec.does)
    does: str = spec.does or ""
    if not does:
        does, reason = _rail_choice(blueprint)
        blueprint.choose(f"rails[{index}].does", does, reason)
    if does == "budget":
        blueprint.choose(f"rails[{index}].does.budget.calls", "50", "a limit to start from; set your own")
        return does, BudgetSpec(calls=50)
    if does == "reminder":
        text = blueprint.design.description.strip() or _sentence(blueprint.name)
        return does, ReminderSpec(text=text)
    if does == "prompt":
        skill = blueprint.skills[0].in_plan if blueprint.skills else None
        return does, PromptSpec(skill=skill, text=None if skill else blueprint.description)
    return does, _EMPTY_RAILS[does]()


def _rail_choice(blueprint: Blueprint) -> tuple[str, str]:
    """The table of what a rail does when the plan does not say."""
    design = blueprint.design
    words = words_of(blueprint.name, design.description)
    if design.kind == "constraint":
        return "guard", "the rail of a constraint"
    found = find_word(words, _RAIL_WORDS)
    if "tool" in design.components:
        if found:
            return found[0], f"the word {found[1]!r}, and a tool to report it"
        if form := find_word(words, FORMAT_WORDS):
            return "artifact_gate", f"the word {form[1]!r}: the tool's files are checked"
        return "audit", "a rail with a tool to report what it saw"
    if "skill" in design.components:
        return "prompt", "a rail beside a skill puts that skill into the prompt"
    if found:
        return found[0], f"the word {found[1]!r}"
    if any(word in _GUARD_WORDS for word in words):
        return "guard", "the name says that it guards"
    return "prompt", "nothing in the name says when"


# --------------------------------------------------------------------------- skills


def _derive_skills(blueprint: Blueprint) -> list[Skill]:
    design = blueprint.design
    source = (design.skill_source or "").removeprefix("community:")
    if source:
        return [Skill(source, "", "", SkillSpec(), source, source)]
    skills = []
    for index, spec in enumerate(design.skills or [SkillSpec()]):
        in_plan = spec.name or (blueprint.name if index == 0 else f"{blueprint.name}_{index + 1}")
        # agentskills knows no underscores (specification, `name` field).
        name = in_plan.replace("_", "-") if blueprint.skill_profile == "agentskills" else in_plan
        if spec.name is None:
            blueprint.choose(f"skills[{index}].name", name, "the extension's name")
        goal = design.description.strip() or _sentence(blueprint.name).lower()
        description = spec.description or ""
        if not description.strip():
            description = _skill_description(goal, in_plan)
            blueprint.choose(f"skills[{index}].description", description, "from the extension's goal")
        trigger = spec.trigger or f"The user asks for {_sentence(blueprint.name).lower()}."
        skills.append(Skill(name, description, trigger, spec, in_plan=in_plan))
    return skills


def _skill_description(goal: str, name: str) -> str:
    subject = goal.rstrip(".。")
    if _is_chinese(subject):
        return f"{subject}：步骤、规则与验收标准。任务涉及这一目标时使用。"
    return f"Guidance for {subject}. Use when a task is about {_sentence(name).lower()}."
