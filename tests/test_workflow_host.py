"""Steps on agents in the real openJiuwen, with a scripted model: the bundled example from outline to verified deck."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply
from support import ROOT, run_cli
from test_workflow_chat import calls

from extforge.check import load_plan
from extforge.generate import generate
from extforge_harness.chat import Endpoint
from extforge_harness.errors import HostFailed, HostMissing
from extforge_harness.host.session import HostSession, tools_of
from extforge_harness.workflows import (
    ALLOW_ALL,
    ArtifactChecker,
    GuardrailViolated,
    RunOptions,
    Skill,
    StepFailed,
    WorkflowRun,
    approval_gate,
    load_skill,
)
from extforge_harness.workflows.chat import ChatExecutor
from extforge_harness.workflows.host import HostExecutor
from extforge_harness.workflows.registry import extension_tools
from extforge_verifiers import verify_artifact

pytestmark = pytest.mark.host

KEY = "sk-very-secret-0123456789"
SLIDES = [{"title": f"Slide {n}", "bullets": ["up 4%"]} for n in range(1, 4)]
DECK = {"title": "Board report", "slides": SLIDES, "file_name": "board.pptx"}
HAPPY = (
    "1. Revenue\n2. Risks\n3. The ask",
    calls(("board_report", json.dumps(DECK))),
    "The tool wrote board.pptx",
    "The deck is at board.pptx.",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled example, generated."""
    folder = tmp_path_factory.mktemp("example")
    result = generate(load_plan(str(ROOT / "examples/board_report.plan.yaml")), str(folder))
    return result.target / result.roots[0]


@pytest.fixture
def liar(tree: Path, tmp_path: Path) -> Path:
    """The same tree, whose tool writes text into a .pptx and says that all is well."""
    copy = tmp_path / "lying" / tree.name
    shutil.copytree(tree, copy)
    work = copy / "tools/board_report.py"
    text = work.read_text(encoding="utf-8")
    assert "\ndef run(" in text
    work.write_text(
        text.replace("\ndef run(", "\ndef honest_run(")
        + "\n\ndef run(inputs):\n"
        + "    from pathlib import Path\n\n"
        + "    path = Path(inputs['file_name']).absolute()\n"
        + "    path.write_text('Slide 1: revenue is up 4%')\n"
        + "    return {'success': True, 'path': path.name, 'absolute_path': str(path), 'format': 'pptx', 'exists': True,\n"
        + "            'size_bytes': path.stat().st_size, 'slides': 3}\n",
        encoding="utf-8",
    )
    return copy


class Host:
    """One host process for many runs; each is given its trees."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.session = HostSession([])

    def __call__(self, work: Callable[[HostSession], Coroutine[Any, Any, Any]], *trees: Path) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(120):
                return await work(self.session)

        self.session.trees = [str(tree) for tree in trees]
        return self.runner.run(bounded())

    def play(self, tree: Path, server: ChatServer, workdir: Path, **options: Any) -> Any:
        """Run the example's workflow, and return its result, whatever comes of it."""

        async def work(session: HostSession) -> Any:
            executor = HostExecutor([], Endpoint(server.url, "m", KEY))
            executor.session = session
            given = {
                "executor": executor,
                "gate": ALLOW_ALL,
                "checker": ArtifactChecker(),
                "workdir": workdir,
                **options,
            }
            run = WorkflowRun(load_skill(tree / "skills/board_report"), RunOptions(**given))
            with contextlib.suppress(GuardrailViolated, StepFailed):
                await run.execute()
            return run.result

        return self(work, tree)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    found = Host()
    with found.runner as runner:
        yield found
        process = found.session._process
        runner.run(found.session.__aexit__(None, None, None))
    assert process is not None
    assert process.returncode is not None  # it ends with its session


def offered(server: ChatServer) -> list[list[str]]:
    return [[t["function"]["name"] for t in body.get("tools") or []] for body in server.requests]


def test_the_example_runs_from_outline_to_report_and_its_deck_is_accepted(
    host: Host, tree: Path, tmp_path: Path
) -> None:
    with ChatServer(*HAPPY) as server:
        result = host.play(tree, server, tmp_path, input="Q3")
    assert (result.status, result.error, result.violations) == ("done", None, ())
    assert [s.name for s in result.steps] == ["outline", "produce", "report"]
    produce = result.steps[1]
    assert produce.artifacts == (str(tmp_path / "board.pptx"),)
    assert [c.name for c in produce.tool_calls] == ["board_report"]
    assert [p.name for p in tmp_path.iterdir()] == ["board.pptx"]  # no logs, no workspace
    report = verify_artifact(tmp_path / "board.pptx")
    assert (report.verdict, report.facts["slides"]) == ("pass", 4)  # three, and the title slide
    # The contraction is real: the host's own skill_tool is offered nowhere.
    assert offered(server) == [["board_report"]] * 4
    assert result.removed["skill_tool"] == "not allowed by the skill"
    asked = server.requests[1]["messages"][-1]["content"]
    assert "# Input\n\nQ3" in asked
    assert "# Output of outline\n\n1. Revenue" in asked
    assert "Rules of the board report" in asked
    assert KEY not in json.dumps(result.to_dict()) + json.dumps(server.requests)


def test_a_tool_that_writes_text_into_a_pptx_ends_the_run_with_rule_step_and_evidence(
    host: Host, liar: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    with ChatServer(*HAPPY) as server:
        result = host.play(liar, server, work)
    assert (work / "board.pptx").read_text() == "Slide 1: revenue is up 4%"
    assert (result.status, [s.name for s in result.steps]) == ("violated", ["outline", "produce"])
    (violation,) = result.violations
    assert (violation.guardrail, violation.subject) == ("real-deck", "produce")
    assert "board.pptx" in violation.detail
    assert "artifact-" in violation.detail
    for words in ("real-deck", "'produce'", "board.pptx", "at least three slides"):
        assert words in (result.error or "")
    assert len(server.requests) == 3  # the report was never asked for


def test_a_gate_that_denies_the_tool_takes_it_from_the_agent(host: Host, tree: Path, tmp_path: Path) -> None:
    gate = approval_gate("ask", plan=False, levels=extension_tools(tree))
    with ChatServer("outline", calls(("board_report", json.dumps(DECK))), "I have no tool", "nothing") as server:
        result = host.play(tree, server, tmp_path, gate=gate)
    assert (result.tools, list(tmp_path.iterdir())) == ((), [])
    assert "mutating_local" in result.removed["board_report"]
    assert offered(server) == [[]] * 3
    assert "not found" in server.requests[2]["messages"][-1]["content"]  # what the model is told of its call
    assert result.status == "violated"
    assert "no pptx file was claimed" in result.violations[0].detail


def test_a_model_that_answers_nothing_usable_fails_the_step(host: Host, tree: Path, tmp_path: Path) -> None:
    with ChatServer(Reply(raw=b'{"error": {"message": "no ' + KEY.encode() + b'"}}', status=400)) as server:
        result = host.play(tree, server, tmp_path)
    assert (result.status, result.steps) == ("failed", ())
    assert "400" in (result.error or "")
    assert KEY not in (result.error or "")


def test_an_agent_that_never_comes_to_an_end_fails_the_step(host: Host, tree: Path, tmp_path: Path) -> None:
    with ChatServer(calls(("board_report", "{}"))) as server:
        result = host.play(tree, server, tmp_path)
    assert (result.status, result.steps) == ("failed", ())
    assert "ended with error" in (result.error or "")
    assert len(server.requests) == 20


@pytest.fixture
def pair(tmp_path: Path) -> Skill:
    """A skill whose two steps run at the same time."""
    root = tmp_path / "skills/pair"
    root.mkdir(parents=True)
    steps = [{"name": "a", "prompt": "do a"}, {"name": "b", "prompt": "do b"}]
    (root / "skill.yaml").write_text(json.dumps({"description": "d", "steps": steps}))
    return load_skill(root)


class Meeting(threading.Event):
    """Lets a reply out only when two requests wait at once."""

    def __init__(self, parties: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(parties)

    def wait(self, timeout: float | None = None) -> bool:
        self.barrier.wait(timeout)
        return True


def test_two_agents_at_once_and_cancelling_them(host: Host, pair: Skill, tmp_path: Path) -> None:
    together, never = Meeting(2), Meeting(99)
    replies = [Reply(text="x", wait=gate) for gate in (together, together, never, never)]

    async def work(session: HostSession) -> None:
        executor = HostExecutor([], Endpoint(server.url, "m"))
        executor.session = session
        options = RunOptions(executor=executor, gate=ALLOW_ALL, workdir=tmp_path)
        assert (await WorkflowRun(pair, options).execute()).status == "done"
        run = WorkflowRun(pair, options)
        task = asyncio.create_task(run.execute())
        while len(server.requests) < 4:
            await asyncio.to_thread(server.asked.wait, 20)
            server.asked.clear()
        with pytest.raises(HostFailed, match="one folder at a time"):  # a process has one working directory
            await session.turn("x", endpoint=executor.endpoint, tools=[], workdir=str(tmp_path / "other"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
        assert (run.result.status, run.result.steps) == ("cancelled", ())
        assert (session._waiting, session._workdirs) == ({}, {})

    with ChatServer(*replies) as server:
        try:
            host(work)
        finally:
            never.barrier.abort()


def test_chat_runs_the_tools_of_extensions_in_the_host_with_their_rails(host: Host, tmp_path: Path) -> None:
    """The guard of another tree refuses a name, and the model is told so."""
    result = generate(load_plan(str(ROOT / "examples/demo.plan.yaml")), str(tmp_path / "out"))
    trees = {Path(root).name: str(result.target / root) for root in result.roots}
    names = ["versioned_filename_guard", "quarterly_sales_deck"]
    skill = load_skill(f"{trees['quarterly_sales_deck']}/skills/quarterly_sales_deck")
    work = tmp_path / "work"
    work.mkdir()
    bad, good = ({**DECK, "file_name": name} for name in ("deck.pptx", "deck_v1.pptx"))

    async def run(session: HostSession) -> Any:
        executor = ChatExecutor(Endpoint(server.url, "m", KEY), await tools_of(session, str(work)))
        options = RunOptions(executor=executor, gate=ALLOW_ALL, checker=ArtifactChecker(), workdir=work)
        return await WorkflowRun(skill, options).execute()

    call = "quarterly_sales_deck"
    script = ["outline", calls((call, json.dumps(bad))), calls((call, json.dumps(good))), "made", "told"]
    with ChatServer(*script) as server:
        outcome = host(run, *(Path(trees[name]) for name in names))
    assert outcome.status == "done"
    assert [p.name for p in work.iterdir()] == ["deck_v1.pptx"]
    assert "_v1" in server.requests[2]["messages"][-1]["content"]
    assert outcome.steps[1].artifacts == (str(work / "deck_v1.pptx"),)


@pytest.fixture
def broken(tree: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "broken" / tree.name
    shutil.copytree(tree, copy)
    return copy


def test_a_tree_that_does_not_load_is_said_before_anything_runs(host: Host, broken: Path) -> None:
    (broken / "tools/board_report_tool.py").write_text("import no_such_module\n")
    with pytest.raises(HostFailed, match="no_such_module"):
        host(HostSession.tools, broken)


def test_a_missing_requirement_and_a_python_without_the_host_are_said(host: Host, broken: Path, tmp_path: Path) -> None:
    (broken / "requirements.txt").write_text("no-such-package-anywhere>=1\n")
    with pytest.raises(HostMissing, match="pip install no-such-package-anywhere>=1"):
        host(HostSession.tools, broken)
    bare = tmp_path / "bare-python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(HostMissing):
        HostSession([], python=str(bare))


def test_a_host_that_dies_is_a_failed_step_and_not_a_hang(broken: Path, tmp_path: Path) -> None:
    work = broken / "tools/board_report.py"
    text = work.read_text(encoding="utf-8").replace("\ndef run(", "\ndef honest_run(")
    work.write_text(f"{text}\n\ndef run(inputs):\n    import os\n\n    os._exit(3)\n", encoding="utf-8")
    doomed = Host()
    with ChatServer(*HAPPY) as server, doomed.runner as runner:
        result = doomed.play(broken, server, tmp_path / "work")
        runner.run(doomed.session.__aexit__(None, None, None))
    assert (result.status, [s.name for s in result.steps]) == ("failed", ["outline"])
    assert "the host process ended" in (result.error or "")


def test_the_command_line_runs_the_example_in_the_host(tree: Path, tmp_path: Path) -> None:
    with ChatServer(*HAPPY) as server:
        done = run_cli(
            "workflows", "run", str(tree / "skills/board_report"), "--approval", "auto", "--workdir", "out", "--json",
            cwd=tmp_path, OPENAI_BASE_URL=server.url, OPENAI_MODEL="m", OPENAI_API_KEY=KEY,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "done"
    assert "finished produce" in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["out"]  # no logs of the host
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["board.pptx"]
