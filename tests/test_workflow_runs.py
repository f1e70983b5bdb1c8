"""Running a skill: order, limits, isolation, failure, cancellation, guardrails, and an honest account of all of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import execute, make_run, rule, skill

from extforge_harness.workflows import (
    ALLOW_ALL,
    GuardrailCheckFailed,
    GuardrailViolated,
    Persona,
    ReadOnlyGate,
    RunOptions,
    RunRefused,
    ScriptedExecutor,
    Skill,
    SkillInvalid,
    StepFailed,
    StepRequest,
    StepResult,
    ToolCall,
    Verdict,
    Workflow,
    WorkflowRun,
    approval_gate,
    resolve_surface,
)

CHAIN = [{"name": "a"}, {"name": "b", "depends": ["a"]}, {"name": "c", "depends": ["b"]}]
FREE = [{"name": name} for name in "abcdef"]


class Recorder:
    """Answers every step with its name, and keeps the requests."""

    def __init__(self, output: Callable[[StepRequest], Any] = lambda request: f"out {request.step}") -> None:
        self.requests: dict[str, StepRequest] = {}
        self.output = output

    async def execute(self, request: StepRequest) -> StepResult:
        self.requests[request.step] = request
        answer = self.output(request)
        return answer if isinstance(answer, StepResult) else StepResult(answer)


class Checker:
    """Says what a function of (rule id, subject, output) says, and keeps what it was asked."""

    def __init__(self, decide: Callable[[str, str, str], Any] = lambda *_: Verdict(violated=False)) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.contexts: list[Any] = []
        self.decide = decide

    async def check(self, guardrail: Any, subject: str, output: str, context: Any) -> Any:
        self.asked.append((guardrail.id, subject, output))
        self.contexts.append(context)
        return self.decide(guardrail.id, subject, output)


def broken_at(*subjects: str) -> Checker:
    return Checker(lambda _, subject, __: Verdict(violated=subject in subjects, detail=f"seen at {subject}"))


# --------------------------------------------------------------------------- order and limits


def test_a_run_of_three_steps(tmp_path: Path) -> None:
    executor = Recorder()
    run = make_run(skill(CHAIN), executor, workdir=tmp_path, input="Q3", tools=["t"])
    result = execute(run)
    assert (result.status, result.tools, result.error) == ("done", ("t",), None)
    assert [(s.name, s.output) for s in result.steps] == [("a", "out a"), ("b", "out b"), ("c", "out c")]
    assert json.loads(json.dumps(result.to_dict()))["steps"][0]["name"] == "a"
    assert result == run.result
    assert {r.input for r in executor.requests.values()} == {"Q3"}


@pytest.mark.parametrize(("wanted", "limit"), [(0, 2), (-1, 2), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_never_more_steps_at_once_than_the_limit_and_never_fewer(wanted: int, limit: int) -> None:
    running, peak, started = 0, 0, []

    async def step(request: StepRequest) -> str:
        nonlocal running, peak
        running, peak = running + 1, max(peak, running + 1)
        started.append(request.step)
        await barrier.wait()  # nobody passes before `limit` steps really run at once
        running -= 1
        return ""

    async def main() -> None:
        nonlocal barrier
        barrier = asyncio.Barrier(limit)
        async with asyncio.timeout(20):
            await make_run(skill(FREE), step, max_parallel=wanted).execute()

    barrier: Any = None
    asyncio.run(main())
    assert (peak, started) == (limit, list("abcdef"))


def test_a_step_starts_when_its_own_dependencies_are_done_not_when_a_level_is() -> None:
    steps = [{"name": "slow"}, {"name": "quick"}, {"name": "after-quick", "depends": ["quick"]}]

    async def step(request: StepRequest) -> str:
        if request.step == "slow":
            await reached.wait()  # released by a step of a later level
        elif request.step == "after-quick":
            reached.set()
        return ""

    async def main() -> Any:
        nonlocal reached
        reached = asyncio.Event()
        async with asyncio.timeout(20):
            return await make_run(skill(steps), step).execute()

    reached: Any = None
    assert asyncio.run(main()).status == "done"


# --------------------------------------------------------------------------- what a step gets


def test_a_step_sees_the_outputs_it_depends_on_and_no_others() -> None:
    executor = Recorder()
    steps = [{"name": "a"}, {"name": "b"}, {"name": "c", "depends": ["b"]}]
    execute(make_run(skill(steps, prompt="Base."), executor))
    assert dict(executor.requests["c"].depends) == {"b": "out b"}
    assert dict(executor.requests["b"].depends) == {}
    assert executor.requests["c"].prompt == "Base.\n\ndo c"
    with pytest.raises(TypeError):
        executor.requests["c"].depends["a"] = "x"  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        executor.requests["c"].tools = ("more",)  # type: ignore[misc]


def test_a_long_output_is_cut_for_dependents_and_kept_in_the_result() -> None:
    executor = Recorder(lambda _: "x" * 23_145)
    result = execute(make_run(skill(CHAIN[:2]), executor))
    seen = executor.requests["b"].depends["a"]
    assert seen == "x" * 8_000 + "\n…[truncated: 8000 of 23145 characters]"
    assert len(result.steps[0].output) == 23_145
    executor = Recorder(lambda _: "x" * 8_000)
    execute(make_run(skill(CHAIN[:2]), executor))
    assert executor.requests["b"].depends["a"] == "x" * 8_000


def test_inline_steps_get_a_snapshot_of_the_conversation_and_forks_get_the_persona() -> None:
    talk = [{"role": "user", "content": ["hello"]}]
    persona = {"writer": Persona("You write.", model="m-agent", effort="low")}

    def scribble(request: StepRequest) -> str:
        for message in request.conversation:
            message["content"].append("scribbled")
        return ""

    inline = Recorder(scribble)
    execute(make_run(skill(CHAIN[:2]), inline, conversation=talk, agents=persona))
    assert talk == [{"role": "user", "content": ["hello"]}]
    assert inline.requests["b"].conversation[0]["content"] == ["hello", "scribbled"]  # its own copy
    assert inline.requests["b"].system == ""
    fork = Recorder()
    result = execute(make_run(skill(context="fork", agent="writer"), fork, conversation=talk, agents=persona))
    assert (fork.requests["a"].conversation, fork.requests["a"].system) == ((), "You write.")
    assert result.agent == {"name": "writer", "model": "m-agent", "effort": "low"}


def test_overrides_win_over_the_skill_and_the_skill_over_the_agent() -> None:
    def chosen(overrides: dict[str, str], **fields: Any) -> tuple[str | None, str | None]:
        executor = Recorder()
        agents = {"w": Persona(model="agent", effort="low")}
        of = skill(context="fork", agent="w", **fields)
        execute(make_run(of, executor, overrides=overrides, agents=agents))
        return executor.requests["a"].model, executor.requests["a"].effort

    assert chosen({}) == ("agent", "low")
    assert chosen({}, model="skill", effort="high") == ("skill", "high")
    assert chosen({"model": "over", "effort": "max"}, model="skill") == ("over", "max")
    executor = Recorder()
    execute(make_run(skill(), executor))
    assert executor.requests["a"].model is None


# --------------------------------------------------------------------------- failure


def test_a_failure_cancels_its_siblings_waits_for_them_and_starts_nothing_more() -> None:
    started, cleaned = [], []

    async def step(request: StepRequest) -> str:
        started.append(request.step)
        if request.step == "b":
            raise OSError("disk\nfull")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # cleaning up takes a turn of the loop
            cleaned.append(request.step)
            raise RuntimeError("cleaning up failed too")
        return ""

    async def main() -> WorkflowRun:
        run = make_run(skill(FREE), step)
        async with asyncio.timeout(20):
            with pytest.raises(StepFailed) as caught:
                await run.execute()
        assert (caught.value.step, caught.value.reason) == ("b", "OSError: disk full")
        assert isinstance(caught.value.__cause__, OSError)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return run

    run = asyncio.run(main())
    assert (started, cleaned) == (["a", "b"], ["a"])
    result = run.result
    assert (result.status, result.steps, result.also_failed) == ("failed", (), ())
    assert "step 'b' failed" in (result.error or "")


def test_of_two_failures_in_one_tick_the_one_declared_first_is_raised() -> None:
    async def step(request: StepRequest) -> str:
        if request.step == "a":
            await last.wait()
        last.set()  # wakes the other before anybody hears of this failure
        raise ValueError(request.step)

    async def main() -> WorkflowRun:
        nonlocal last
        last = asyncio.Event()
        run = make_run(skill(FREE), step)
        async with asyncio.timeout(20):
            with pytest.raises(StepFailed, match="step 'a'"):
                await run.execute()
        return run

    last: Any = None
    result = asyncio.run(main()).result
    assert len(result.also_failed) == 1
    assert "step 'b' failed: ValueError: b" in result.also_failed[0]


async def _cancels_itself(_: StepRequest) -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(lambda _: 3, "answered int, not a StepResult", id="no result"),
        pytest.param(lambda _: StepResult(b"x"), "output is bytes", id="no text"),  # type: ignore[arg-type]
        pytest.param(lambda _: StepResult("x", (1,)), "not all paths", id="no paths"),  # type: ignore[arg-type]
        pytest.param(lambda _: StepResult("x", (), ("t",)), "not ToolCalls", id="no calls"),  # type: ignore[arg-type]
        pytest.param(
            lambda _: StepResult("x", (), (ToolCall("rm"), ToolCall("t"))),
            "it used tools outside its surface: rm",
            id="breach of the surface",
        ),
        pytest.param(_cancels_itself, "its executor cancelled it", id="cancels itself"),
        pytest.param({"b": "x"}, "the script has no step 'a'", id="not in the script"),
    ],
)
def test_an_answer_that_does_not_count_fails_the_step(answer: Any, reason: str) -> None:
    run = make_run(skill(CHAIN), answer, tools=["t"])
    with pytest.raises(StepFailed) as caught:
        execute(run)
    assert reason in caught.value.reason
    assert run.result.steps == ()
    assert run.result.status == "failed"


@pytest.mark.parametrize("swallow", [False, True])
def test_a_step_that_takes_too_long_fails_also_when_it_hides_it(*, swallow: bool) -> None:
    async def step(_: StepRequest) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not swallow:
                raise
        return "late"

    with pytest.raises(StepFailed, match=r"longer than 0\.01 seconds"):
        execute(make_run(skill(), step, step_timeout=0.01))


def test_a_time_out_of_the_executors_own_is_an_error_like_any_other() -> None:
    async def step(_: StepRequest) -> str:
        raise TimeoutError("the model")

    with pytest.raises(StepFailed, match="TimeoutError: the model"):
        execute(make_run(skill(), step))


def test_system_exit_is_nobodys_failure() -> None:
    async def step(_: StepRequest) -> str:
        raise SystemExit(5)

    with pytest.raises(SystemExit):
        execute(make_run(skill(), step))


def test_whoever_listens_hears_everything_and_an_error_of_theirs_fails_the_run() -> None:
    heard: list[tuple[str, str]] = []
    rules = [rule(enforced=False, at=["a"])]
    run = make_run(
        skill(CHAIN[:2], guardrails=rules), Recorder(), checker=broken_at("a"),
        events=lambda kind, step, _: heard.append((kind, step)),
    )  # fmt: skip
    execute(run)
    assert heard == [("started", "a"), ("finished", "a"), ("violation", "a"), ("started", "b"), ("finished", "b")]

    def complain(kind: str, step: str, data: dict[str, Any]) -> None:
        if kind == "finished":
            raise ValueError("full")

    run = make_run(skill(CHAIN), Recorder(), events=complain)
    with pytest.raises(StepFailed, match="whoever listens to the run failed: ValueError: full"):
        execute(run)
    assert [s.name for s in run.result.steps] == ["a"]


# --------------------------------------------------------------------------- cancellation


def test_cancelling_leaves_a_partial_result_and_is_raised_unchanged() -> None:
    cleaned = []

    async def step(request: StepRequest) -> str:
        if request.step == "a":
            return "done"
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(request.step)
        return ""

    async def main() -> WorkflowRun:
        nonlocal reached
        reached = asyncio.Event()
        run = make_run(skill(CHAIN), step)
        task = asyncio.create_task(run.execute())
        await reached.wait()
        assert run.result.status == "running"
        assert [s.name for s in run.result.steps] == ["a"]
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return run

    reached: Any = None
    result = asyncio.run(main()).result
    assert (result.status, [s.name for s in result.steps], cleaned) == ("cancelled", ["a"], ["b"])
    assert result.error is None


def test_a_failure_in_the_moment_of_cancelling_is_not_lost() -> None:
    async def step(_: StepRequest) -> str:
        run_task.cancel()
        raise ValueError("at the same time")

    async def main() -> WorkflowRun:
        nonlocal run_task
        run = make_run(skill(), step)
        run_task = asyncio.create_task(run.execute())
        with pytest.raises(asyncio.CancelledError):
            await run_task
        return run

    run_task: Any = None
    result = asyncio.run(main()).result
    assert (result.status, result.error) == ("cancelled", None)
    assert "at the same time" in result.also_failed[0]


def test_cancelling_while_a_guardrail_is_checked() -> None:
    class Waiting:
        async def check(self, *_: Any) -> Verdict:
            reached.set()
            await asyncio.Event().wait()
            return Verdict(violated=False)

    async def main() -> WorkflowRun:
        nonlocal reached
        reached = asyncio.Event()
        run = make_run(skill(guardrails=[rule()]), Recorder(), checker=Waiting())
        task = asyncio.create_task(run.execute())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run

    reached: Any = None
    assert asyncio.run(main()).result.status == "cancelled"


# --------------------------------------------------------------------------- guardrails


def test_a_rule_is_checked_at_every_step_and_once_at_the_end() -> None:
    checker = Checker()
    execute(make_run(skill(CHAIN, guardrails=[rule("x"), rule("y", at=["$final", "b"])]), Recorder(), checker=checker))
    assert checker.asked == [
        ("x", "a", "out a"),
        ("x", "b", "out b"),
        ("y", "b", "out b"),
        ("x", "c", "out c"),
        ("x", "$final", "out a\n\nout b\n\nout c"),
        ("y", "$final", "out a\n\nout b\n\nout c"),
    ]


def test_at_the_end_everything_is_there_in_declared_order_and_whole() -> None:
    checker = Checker()

    def output(request: StepRequest) -> StepResult:
        return StepResult(request.step * 9_000, (f"{request.step}.txt",))

    steps = [{"name": "z"}, {"name": "a"}]
    execute(make_run(skill(steps, guardrails=[rule(at=["$final"])]), Recorder(output), checker=checker, max_parallel=1))
    assert checker.asked[0][2] == "z" * 9_000 + "\n\n" + "a" * 9_000
    assert checker.contexts[0].artifacts == ("z.txt", "a.txt")


def test_an_artifact_rule_looks_at_the_end_unless_it_says_otherwise() -> None:
    check = {"artifact": {"format": "pptx"}}
    checker = Checker()
    rules = [rule("end", check=check), rule("step", check=check, at=["b"])]
    execute(make_run(skill(CHAIN, guardrails=rules), Recorder(), checker=checker))
    assert [(id_, subject) for id_, subject, _ in checker.asked] == [("step", "b"), ("end", "$final")]


def test_an_enforced_violation_ends_the_run_and_the_step_did_complete() -> None:
    executor = Recorder()
    run = make_run(skill(CHAIN, guardrails=[rule("no-lies")]), executor, checker=broken_at("b"))
    with pytest.raises(GuardrailViolated) as caught:
        execute(run)
    for words in ("no-lies", "'b'", "seen at b", "the rule no-lies"):
        assert words in str(caught.value)
    result = run.result
    assert (result.status, [s.name for s in result.steps]) == ("violated", ["a", "b"])
    assert [(v.guardrail, v.subject, v.detail, v.enforced) for v in result.violations] == [
        ("no-lies", "b", "seen at b", True)
    ]
    assert "c" not in executor.requests


def test_a_rule_that_is_not_enforced_warns_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    run = make_run(
        skill(CHAIN, guardrails=[rule("style", enforced=False)]), Recorder(), checker=broken_at("a", "$final")
    )
    with caplog.at_level(logging.WARNING):
        result = execute(run)
    assert result.status == "done"
    assert [(v.subject, v.enforced) for v in result.violations] == [("a", False), ("$final", False)]
    assert "guardrail style at a" in caplog.text


def _raise(*_: Any) -> Any:
    raise OSError("no disk")


@pytest.mark.parametrize(
    "decide",
    [
        pytest.param(_raise, id="raises"),
        pytest.param(lambda *_: None, id="says nothing"),
        pytest.param(lambda *_: True, id="says true"),
        pytest.param(lambda *_: Verdict("no"), id="says a text"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("enforced", [True, False])
def test_cannot_tell_is_not_passed(decide: Any, *, enforced: bool) -> None:
    run = make_run(skill(CHAIN, guardrails=[rule(enforced=enforced)]), Recorder(), checker=Checker(decide))
    with pytest.raises(GuardrailCheckFailed) as caught:
        execute(run)
    assert (caught.value.guardrail, caught.value.subject) == ("rule", "a")
    assert (run.result.status, run.result.violations) == ("failed", ())


def test_a_plain_checker_runs_beside_the_loop() -> None:
    import threading

    class Plain:
        def check(self, *_: Any) -> Verdict:
            assert threading.current_thread() is not threading.main_thread()
            return Verdict(violated=False)

    assert execute(make_run(skill(guardrails=[rule()]), Recorder(), checker=Plain())).status == "done"


def test_without_a_checker_rules_are_listed_as_unchecked(caplog: pytest.LogCaptureFixture) -> None:
    of = skill(guardrails=[rule("x"), rule("y", enforced=False)])
    with caplog.at_level(logging.WARNING):
        result = execute(make_run(of, Recorder()))
    assert (result.status, result.unchecked) == ("done", ("x", "y"))
    assert caplog.text.count("guardrails that nobody checks: x, y") == 1
    run = make_run(of, Recorder(), allow_unchecked=False)
    with pytest.raises(RunRefused, match="nothing can check the guardrails x") as caught:
        execute(run)
    assert caught.value.code == "workflow-no-checker"


# --------------------------------------------------------------------------- refusals


class _Raises:
    def permits(self, _: str) -> bool:
        raise OSError("no answer")

    def reason(self, _: str) -> str:
        return ""


@pytest.mark.parametrize(
    ("of", "options", "code"),
    [
        pytest.param(Skill("", Workflow()), {"executor": None}, "workflow-not-found", id="no name"),
        pytest.param(skill(), {"executor": None, "gate": None}, "workflow-no-executor", id="no executor"),
        pytest.param(Skill("x", Workflow()), {"gate": None}, "workflow-no-gate", id="no gate"),
        pytest.param(Skill("x", Workflow(), "d"), {}, "workflow-not-runnable", id="no steps"),
        pytest.param(skill(context="fork", agent="who"), {"gate": _Raises()}, "workflow-unknown-agent", id="no agent"),
        pytest.param(skill(), {"gate": _Raises(), "tools": ["t"]}, "workflow-gate-failed", id="gate raises"),
        pytest.param(skill(), {"workdir": Path("/dev/null/x")}, "workflow-no-workdir", id="no folder"),
    ],
)
def test_a_run_that_lacks_something_is_refused_before_anything_starts(
    of: Skill, options: dict[str, Any], code: str
) -> None:
    executor = Recorder()
    run = WorkflowRun(of, RunOptions(**{"executor": executor, "gate": ALLOW_ALL, **options}))
    with pytest.raises(RunRefused) as caught:
        execute(run)
    assert caught.value.code == code
    assert executor.requests == {}
    assert run.result.status == "failed"


def test_a_skill_built_in_memory_is_not_trusted() -> None:
    steps = [{"name": "a", "prompt": "p", "depends": ["b"]}, {"name": "b", "prompt": "p", "depends": ["a"]}]
    of = Skill("deck", Workflow.model_validate({"steps": steps}), "d")
    with pytest.raises(SkillInvalid, match="a → b → a"):
        execute(make_run(of, Recorder()))
    of = Skill("deck", Workflow.model_construct(steps=[3], metadata={"x": {1, 2}}), "d")
    with pytest.raises(SkillInvalid):
        execute(make_run(of, Recorder()))


def test_a_run_is_executed_once() -> None:
    run = make_run(skill(), Recorder())
    execute(run)
    with pytest.raises(RunRefused):
        execute(run)
    assert run.result.status == "done"


def test_the_default_folder_is_new_and_named_in_the_result() -> None:
    first, second = (execute(make_run(skill(), Recorder(), workdir=None)).workdir for _ in range(2))
    assert first != second
    assert Path(first).is_dir()
    Path(first).rmdir()
    Path(second).rmdir()


# --------------------------------------------------------------------------- the tool surface

NAMES = st.lists(st.sampled_from("abcdefg"), max_size=8)


class _Gate:
    def __init__(self, allowed: set[str]) -> None:
        self.allowed, self.asked = allowed, []  # type: ignore[var-annotated]

    def permits(self, tool: str) -> bool:
        self.asked.append(tool)
        return tool in self.allowed

    def reason(self, tool: str) -> str:
        return f"{tool} is not for you"


@given(registered=NAMES, allowed=st.none() | NAMES, disallowed=NAMES, open_=st.sets(st.sampled_from("abcdefg")))
def test_a_surface_is_only_ever_smaller(
    registered: list[str], allowed: list[str] | None, disallowed: list[str], open_: set[str]
) -> None:
    gate = _Gate(open_)
    found = resolve_surface(registered, allowed, disallowed, gate)
    expected = set(registered) & open_ - set(disallowed)
    if allowed is not None:
        expected &= set(allowed)
    assert list(found.tools) == [t for t in dict.fromkeys(registered) if t in expected]
    assert set(found.removed) == set(registered) - expected
    assert set(found.missing) == set(allowed or ()) - set(registered)
    assert len(gate.asked) == len(set(gate.asked))


def test_why_a_tool_is_missing_is_said() -> None:
    found = resolve_surface(["a", "b", "c", "c"], ["b", "c", "d"], ["c"], _Gate({"a", "c"}))
    assert found.removed == {
        "a": "not allowed by the skill",
        "b": "denied by the gate: b is not for you",
        "c": "disallowed by the skill",
    }
    assert (found.tools, found.missing) == ((), ("d",))


def test_absent_is_no_restriction_and_empty_is_no_tool() -> None:
    for allowed, expected in ((None, ("t", "u")), ([], ()), (["u"], ("u",))):
        executor = Recorder()
        result = execute(make_run(skill(allowed_tools=allowed), executor, tools=["t", "u"]))
        assert result.tools == executor.requests["a"].tools == expected


def test_where_tools_come_from_when_nobody_lists_them() -> None:
    class Async(Recorder):
        async def tool_names(self) -> list[str]:
            return ["t"]

    assert execute(make_run(skill(), ScriptedExecutor({"a": ""}, ("u",)))).tools == ("u",)
    assert execute(make_run(skill(), Async())).tools == ("t",)
    assert execute(make_run(skill(allowed_tools=["t"]), Recorder())).tools == ()  # never "all"


def test_the_gates_of_agents_are_the_gates_of_workflows() -> None:
    levels = {"read": "safe_read", "write": "mutating_local", "send": "mutating_external"}
    tools = [*levels, "unknown"]

    def open_to(gate: Any) -> tuple[str, ...]:
        return execute(make_run(skill(), Recorder(), tools=tools, gate=gate)).tools  # type: ignore[no-any-return]

    assert open_to(ReadOnlyGate(levels)) == ("read",)
    assert open_to(approval_gate("ask", plan=False, levels=levels)) == ("read",)
    assert open_to(approval_gate("auto", plan=False, levels=levels)) == ("read", "write")
    assert open_to(approval_gate("full", plan=False, levels=levels)) == ("read", "write", "send")
    assert open_to(approval_gate("full", plan=True, levels=levels)) == ("read",)
    asked: list[str] = []
    gate = approval_gate(
        "ask", plan=False, levels=levels, confirm=lambda tool, _: asked.append(tool) is None and tool == "write"
    )
    assert open_to(gate) == ("read", "write")
    assert asked == ["write", "send", "unknown"]
