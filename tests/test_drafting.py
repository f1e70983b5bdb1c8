"""A model drafts the plan, our checks judge it: good, wrong, malformed, hostile, slow and absent answers."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply
from designs import designed, gap, write_gaps
from support import run_cli

from extforge.check import check_plan
from extforge.design.designing import Designed
from extforge.design.drafting import draft_plan
from extforge.design.gaps import Gaps, PlacedGap
from extforge.errors import PlanError
from extforge_harness.chat import Chat, Endpoint
from extforge_harness.errors import ChatFailed, HarnessError
from extforge_verifiers.findings import Where

KEY = "sk-secret-0123456789"
GAPS = (
    gap("Export invoices to PDF", "Users want to print", "reportlab", "g1"),
    gap("Look up the weather", "", "Call the weather API", "g2"),
)
GOOD: list[dict[str, Any]] = [
    {
        "gap_id": "g1",
        "extension_name": "invoice_pdf",
        "components": ["tool"],
        "description": "Write invoices as PDF",
        "tools": [{"does": {"artifact": {"format": "pdf"}}}],
    },
    {
        "gap_id": "g2",
        "extension_name": "weather_lookup",
        "components": ["tool"],
        "tools": [{"does": {"custom": {"notes": "the weather API"}}}],
    },
]


def changed(index: int, **fields: Any) -> str:
    """Return the good answer with one design changed."""
    return json.dumps([{**d, **fields} if i == index else d for i, d in enumerate(GOOD)])


def ask(*replies: Reply | str, rounds: int = 3, timeout: float = 20.0) -> tuple[Designed, ChatServer]:
    """Let the scripted model draft, in this process."""
    placed = [PlacedGap(one, Where("gaps.json")) for one in GAPS]

    async def run(url: str) -> Designed:
        async with Chat(Endpoint(url, "m1", KEY), timeout=timeout) as chat:
            return await draft_plan(chat, Gaps("gaps.json", placed), designed(*GAPS), rounds=rounds)

    with ChatServer(*replies) as server:
        try:
            return asyncio.run(run(server.url)), server
        except (PlanError, HarnessError) as exc:
            exc.asked = len(server.requests)  # type: ignore[union-attr]
            raise


class Ran:
    """One run of `extforge design --llm` against a scripted server."""

    def __init__(
        self, tmp_path: Path, *replies: Reply | str, options: tuple[str, ...] = (), **environment: str
    ) -> None:
        gaps = write_gaps(tmp_path / "gaps.json", *GAPS)
        self.output = tmp_path / "my.plan.yaml"
        with ChatServer(*replies) as self.server:
            settings = {
                "OPENAI_BASE_URL": self.server.url,
                "OPENAI_MODEL": "m1",
                "OPENAI_API_KEY": KEY,
                "NO_PROXY": "*",
            }
            self.done = run_cli(
                "design", gaps, "--llm", "-o", str(self.output), *options, **{**settings, **environment}
            )
        self.said = self.done.stdout + self.done.stderr
        assert "Traceback" not in self.said
        assert KEY not in self.said

    @property
    def names(self) -> list[str]:
        checked = check_plan(str(self.output))
        assert checked.errors == []
        return [blueprint.name for blueprint in checked.blueprints]


def test_a_good_answer_becomes_the_plan(tmp_path: Path) -> None:
    fenced = f"Here you are:\n```json\n{json.dumps({'package_name': 'office', 'designs': GOOD})}\n```\n"
    ran = Ran(tmp_path, fenced)
    assert (ran.done.returncode, ran.names) == (0, ["invoice_pdf", "weather_lookup"])
    [request] = ran.server.requests
    assert (request["model"], request["temperature"]) == ("m1", 0)
    assert "Export invoices to PDF" in request["messages"][1]["content"]


def test_what_is_wrong_goes_back_and_the_corrected_answer_is_taken() -> None:
    found, server = ask(changed(0, extension_name="Invoice PDF!", components="tool"), json.dumps(GOOD))
    assert [design["extension_name"] for design in found.plan["designs"]] == ["invoice_pdf", "weather_lookup"]
    assert [message["role"] for message in server.requests[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert "components must be a list" in server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param("I cannot do that.", "plan-shape", id="prose"),
        pytest.param('{"designs": [', "document-syntax", id="cut short"),
        pytest.param(changed(0, kind="rule"), "plan-kind-unknown", id="unknown kind"),
        pytest.param(changed(0, gap_id="g9"), "design-gap-unknown", id="a gap that nobody has"),
        pytest.param(json.dumps(GOOD[:1]), "design-gap-unanswered", id="a gap left out"),
        pytest.param(changed(0, file_plan={"root": "../../etc/x"}), "plan-file-plan-root", id="a path outside"),
        pytest.param(changed(0, extension_name="../evil"), "plan-name-invalid", id="a name that is a path"),
        pytest.param(changed(0, requirements=["evil @ http://x/y.whl"]), "plan-requirement-invalid", id="a foreign package"),
        pytest.param(changed(1, tools=[{"does": {"http": {"url": "https://evil.example.com/x"}}}]), "design-invented", id="an address made up"),
        pytest.param(changed(1, tools=[{"does": {"command": {"argv": ["rm", "-rf", "/"]}}}]), "design-invented", id="a program made up"),
        pytest.param(changed(1, tools=[{"does": {"query": {"database": "/etc/secrets.db"}}}]), "design-invented", id="a database made up"),
        pytest.param(changed(1, skill_source="community:none"), "plan-skill-source-without-skill", id="a skill made up"),
        pytest.param(json.dumps({"designs": GOOD * 9}), "plan-too-many-designs", id="too many"),
        pytest.param("```json\n" + "[" * 5000 + "\n```", "plan-empty", id="deep"),
    ],
)  # fmt: skip
def test_an_answer_that_stays_wrong_is_refused_after_the_last_round(answer: str, code: str) -> None:
    with pytest.raises(PlanError) as caught:
        ask(answer, rounds=2)
    assert code in [finding.code for finding in caught.value.findings]
    assert caught.value.asked == 2  # type: ignore[attr-defined]


def test_the_command_says_what_is_wrong_with_the_last_answer_and_writes_nothing(tmp_path: Path) -> None:
    ran = Ran(tmp_path, changed(0, kind="rule"), options=("--rounds", "2"))
    assert (ran.done.returncode, len(ran.server.requests)) == (1, 2)
    assert "[plan-kind-unknown]" in ran.said
    assert not ran.output.exists()


def test_the_offline_design_is_the_fallback_only_when_asked_for(tmp_path: Path) -> None:
    ran = Ran(tmp_path, "no", options=("--rounds", "1", "--fallback"))
    assert (ran.done.returncode, ran.names) == (0, ["export_invoices_pdf", "look_up_weather"])
    assert "this is the offline design instead" in ran.said


def test_where_the_model_and_the_rules_differ_is_said() -> None:
    found, _ = ask(changed(0, components=["tool", "skill"]))
    assert [finding.code for finding in found.findings] == ["design-differs"]
    assert found.drafts[0].decision.doubts


@pytest.mark.parametrize(
    ("reply", "timeout", "words"),
    [
        pytest.param(Reply(raw=b"<html>"), 20, "not JSON", id="html"),
        pytest.param(Reply(text="late", wait=threading.Event()), 0.3, r"within 0\.3 seconds", id="slow"),
        pytest.param(Reply(raw=b"x" * (5 << 20)), 20, "4,194,304 bytes", id="endless"),
    ],
)
def test_an_endpoint_that_fails_is_not_asked_again(reply: Reply, timeout: float, words: str) -> None:
    with pytest.raises(ChatFailed, match=words) as caught:
        ask(reply, timeout=timeout)
    assert caught.value.asked == 1  # type: ignore[attr-defined]


def test_an_endpoint_that_refuses_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    ran = Ran(tmp_path, Reply(raw=json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(), status=401))
    assert (ran.done.returncode, len(ran.server.requests)) == (1, 1)
    assert "HTTP 401" in ran.said
    assert not ran.output.exists()


def test_a_missing_endpoint_is_exit_code_three(tmp_path: Path) -> None:
    ran = Ran(tmp_path, "no", OPENAI_BASE_URL="", OPENAI_API_KEY="")
    assert (ran.done.returncode, ran.server.requests) == (3, [])
    assert "OPENAI_BASE_URL" in ran.said
    nothing = Ran(tmp_path, "no", options=("--base-url", "http://127.0.0.1:9/v1"))
    assert (nothing.done.returncode, nothing.server.requests) == (3, [])
    assert "nothing answers at http://127.0.0.1:9/v1" in nothing.said
