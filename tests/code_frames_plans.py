"""The frames of the chapters about gaps, plans, runtimes, agents, hosts and workflows; see `code_frames`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

import code_frames_host
import code_frames_runtimes
from click.testing import CliRunner
from packs import execute, write_skill
from support import components_of, merged, package_facts

from extforge.check import check_plan, derive_again
from extforge.commands.workflows import check as check_command
from extforge.community import read_collection
from extforge.design.designing import design_gaps
from extforge.design.drafting import draft_plan
from extforge.design.gaps import read_gaps
from extforge.errors import PlanError
from extforge_harness.agents import parse_agent, prepare
from extforge_harness.agents.definition import read_agent
from extforge_harness.agents.package import build_package, check_own
from extforge_harness.agents.running import Options, run_agent
from extforge_harness.chat import Endpoint
from extforge_harness.errors import AgentError, Missing
from extforge_harness.workflows import (
    ALLOW_ALL,
    ArtifactChecker,
    Persona,
    RunOptions,
    ScriptedExecutor,
    SkillInvalid,
    Verdict,
    WorkflowError,
    WorkflowRun,
    activate,
    load_pack,
    load_skill,
)
from extforge_harness.workflows.scripted import load_script
from extforge_verifiers import DocumentError, Finding, Severity
from extforge_verifiers.documents import read_document

if TYPE_CHECKING:
    from code_frames import Case, Frame

    from extforge_harness.chat import Chat

DESIGN = {"extension_name": "sales_deck"}


def value_of(case: Case) -> Any:
    """Return the value of an example: a Python expression, or YAML."""
    return evaluated(case) if case.calls else read_document(case.data(), "example.yaml").value


def evaluated(case: Case, **names: Any) -> Any:
    """Return the value of an example, a Python expression with these names."""
    return eval(case.example.text, names)


# --------------------------------------------------------------------------- gaps and designs


class Answering:
    """A model that gives one answer."""

    endpoint = Endpoint("https://models.example", "m1", "")

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def complete(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"content": json.dumps(self.answer)}


def gaps_file(case: Case) -> Iterable[Finding]:
    """The example is a file of gaps, with the designs that a model answers beside them."""
    answer = None
    if case.example.language == "markdown":
        text = case.example.text
    else:
        value = value_of(case)
        answer = value.pop("answer", None) if isinstance(value, dict) else None
        text = json.dumps(value)
    path = case.folder / ("gaps.md" if case.example.language == "markdown" else "gaps.json")
    path.write_text(text, encoding="utf-8")
    try:
        gaps = read_gaps(str(path))
        if not case.code.startswith("design-"):
            return gaps.findings
        found = design_gaps(gaps)
        if answer is not None:
            chat = cast("Chat", Answering(answer))
            found = asyncio.run(draft_plan(chat, gaps, found, rounds=1))
    except (DocumentError, PlanError) as exc:
        return exc.findings
    return [*gaps.findings, *found.findings]


# --------------------------------------------------------------------------- plans


def plan_file(case: Case) -> Iterable[Finding]:
    """The example is a plan file, or a text with designs in it."""
    path = case.folder / "answer.txt"
    path.write_text(case.python() if case.example.language == "python" else case.example.text, encoding="utf-8")
    return check_plan(str(path)).findings


def designs(case: Case) -> Iterable[Finding]:
    """The example is put into a minimal good design; a list is several."""
    value = value_of(case)
    patches = value if isinstance(value, list) else [value]
    path = case.folder / "plan.json"
    path.write_text(json.dumps([_design(patch, number) for number, patch in enumerate(patches, 1)]), encoding="utf-8")
    plan = check_plan(str(path), collection=read_collection((brand_skill(case.folder / "skills"),)))
    if case.code == "plan-skill-description-long":
        try:
            derive_again(plan, {blueprint.name: "agentskills" for blueprint in plan.blueprints})
        except PlanError as exc:
            return exc.findings
    return plan.findings


def _design(patch: dict[str, Any], number: int) -> dict[str, Any]:
    whole: dict[str, Any] = merged({**DESIGN, "gap_id": f"g{number}", "components": components_of(patch)}, patch)
    return whole


def missing_plan(case: Case) -> Iterable[Finding]:
    """A plan that is not there."""
    return check_plan(str(case.folder / "missing.plan.yaml")).findings


def missing_gaps(case: Case) -> Iterable[Finding]:
    """Gaps in a file that is not there."""
    try:
        return read_gaps(str(case.folder / "gaps.md")).findings
    except DocumentError as exc:
        return exc.findings


# --------------------------------------------------------------------------- agents


def brand_skill(folder: Path) -> str:
    """Write the skill `brand` into a folder of skills, and return the folder."""
    (folder / "brand").mkdir(parents=True)
    text = "---\nname: brand\ndescription: Use when writing.\n---\nBe kind.\n"
    (folder / "brand" / "SKILL.md").write_text(text, encoding="utf-8")
    return str(folder)


def agent(case: Case) -> Iterable[Finding]:
    """The example is put into `name: helper`, which is checked, asked, built and run; or it loads or builds one."""
    folder = case.folder
    brand_skill(folder / "skills")
    brand_skill(folder / "more")
    (folder / "agents/team").mkdir(parents=True)
    (folder / "agents/team/notes.txt").write_text("mine", encoding="utf-8")
    (folder / "agents/helper.yaml").write_text("name: helper\n", encoding="utf-8")
    try:
        if not case.calls:
            value = value_of(case)
        elif isinstance(value := evaluated(case, build=partial(_build, folder), load=partial(_load, folder)), Path):
            return check_own(str(value))
        _ask(folder, value)
    except AgentError as exc:
        return exc.findings
    return []


def _ask(folder: Path, value: Any) -> None:
    """Do all that can be done with an agent; those of other runtimes are not started, once everything is right."""
    beside = {key: value.pop(key, {}) for key in ("request", "manifest")} if isinstance(value, dict) else {}
    definition = parse_agent(merged({"name": "helper"}, value), known_skills=["brand"])
    prepare(definition, {"prompt": "Hello", **beside["request"]})
    package = _build(folder, value)
    path = package / "manifest.json"
    path.write_text(json.dumps(merged(json.loads(path.read_text()), beside["manifest"])), encoding="utf-8")
    with contextlib.suppress(Missing):
        run_agent(definition, "Hello", Options(runtime="codex", package=str(package), request=beside["request"]))


def _load(folder: Path, name: str, within: str) -> Any:
    return read_agent(name, folder / within).value


def _build(folder: Path, value: Any, sources: Iterable[str] = ("skills",), into: str = "built") -> Path:
    definition = parse_agent(merged({"name": "helper"}, value))
    return build_package(definition, [folder / name for name in sources], folder / into, host=False).path


def read_by_host(case: Case) -> Iterable[Finding]:
    """The host reads a package: rightly, under another name, or not at all."""

    def load_package(package: str, runtimes: Iterable[str], **_: Any) -> dict[str, Any]:
        facts = package_facts(package, runtimes)
        if case.example.kind == "bad" and case.code == "agent-host-differs":
            facts["spec"]["agent_card"]["name"] = "other"
        elif case.example.kind == "bad":
            facts["providers"]["dsh"] = {"error": {"message": "no persona"}}
        return facts

    try:
        with mock.patch("extforge_harness.host.agents.load_package", load_package):
            return build_package(parse_agent({"name": "helper"}), [], case.folder, host=True).report.findings
    except AgentError as exc:
        return exc.findings


# --------------------------------------------------------------------------- workflows

SKILL = {"description": "Makes decks.", "steps": [{"name": "draft", "prompt": "Write it."}]}
TREE = {"name": "sales", "metadata": {"extension": {"tools": [{"name": "write_deck"}]}}}


class Saying:
    """A gate and a checker that ask functions."""

    def __init__(self, **functions: Any) -> None:
        vars(self).update(functions)

    def reason(self, _: str) -> str:
        return "it says so"


def workflow(case: Case) -> Iterable[Finding]:
    """The example is put into a minimal skill, which is checked and run; or it says what else is done."""
    names = {name: partial(act, case.folder / "sales") for name, act in (("run", _run), ("start", _start))}
    try:
        if not case.calls:
            return list(_run(case.folder / "sales", value_of(case)))
        known = {"pack": partial(_pack, case.folder / "pack"), "ALLOW_ALL": ALLOW_ALL, "Verdict": Verdict}
        return list(evaluated(case, **names, **known))
    except SkillInvalid as exc:
        return exc.findings
    except WorkflowError as exc:
        return [Finding(exc.code, exc.message)]


def _skill(tree: Path, value: dict[str, Any]) -> Path:
    folder = write_skill(tree / "skills", merged(SKILL, value))
    (folder / "notes.md").write_text("Be kind.", encoding="utf-8")
    (tree / "harness_config.yaml").write_text(json.dumps(TREE), encoding="utf-8")
    return folder


def _run(tree: Path, value: dict[str, Any] | None = None, **options: Any) -> Iterable[Finding]:
    value = dict(value or {})
    answers = value.pop("answers", {})
    folder = _skill(tree, value)
    checked = json.loads(CliRunner().invoke(check_command, [str(folder), "--json"]).stdout)
    if checked["findings"]:
        return [Finding(f["code"], f["message"], Severity(f["severity"])) for f in checked["findings"]]
    (tree / "script.json").write_text(json.dumps(answers), encoding="utf-8")
    executor = ScriptedExecutor(lambda request: load_script(str(tree / "script.json")).get(request.step, "Done."))
    usual: dict[str, Any] = {"executor": executor, "gate": ALLOW_ALL, "checker": ArtifactChecker()}
    if "permits" in options:
        usual["gate"] = Saying(permits=options.pop("permits"))
    if "check" in options:
        usual["checker"] = Saying(check=options.pop("check"), covers=lambda _: True)
    options["workdir"] = tree / "skills" / options.get("workdir", "work")
    given = {"tools": ["write_deck"], "agents": {"editor": Persona()}, "allow_unchecked": False}
    execute(WorkflowRun(load_skill(folder), RunOptions(**{**usual, **given, **options})))
    return []


def _start(tree: Path, name: str, value: dict[str, Any] | None = None) -> Iterable[Finding]:
    activate([load_skill(_skill(tree, value or {}))], explicit=name)
    return []


def _pack(folder: Path, *names: str) -> Iterable[Finding]:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\nname: {path.parent.name}\ndescription: Use when writing.\n---\nBe kind.\n"
        path.write_text(text if path.name == "SKILL.md" else json.dumps(SKILL), encoding="utf-8")
    return load_pack(folder).problems


FRAMES: dict[str, Frame] = {
    "Gaps and designs": gaps_file,
    "Plans: reading": plan_file,
    "Plans: fields": designs,
    "Plans: content": designs,
    "Agents": agent,
    "Workflows": workflow,
    **code_frames_runtimes.FRAMES,
    **code_frames_host.FRAMES,
}

MAKERS: dict[str, Frame] = {
    "plan-unreadable: bad": missing_plan,
    "gap-unreadable: bad": missing_gaps,
    "agent-host-differs: bad": read_by_host,
    "agent-host-differs: good": read_by_host,
    "agent-host-refused: bad": read_by_host,
    "agent-host-refused: good": read_by_host,
    **code_frames_runtimes.MAKERS,
    **code_frames_host.MAKERS,
    **dict.fromkeys(code_frames_host.WORDS, code_frames_host.hosted),
}
