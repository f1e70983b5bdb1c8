"""The acceptance file of an extension: what to try on it, and what must come of it.

Its keys are those of openJiuwen's own test spec (its verify_ext skill), plus what is needed to really run a tool:
inputs, expect, and for rails the calls they must refuse or let through.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import Field

from extforge_harness.documents import Model, bind
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError

__all__ = [
    "EXTERNAL",
    "Acceptance",
    "Expectation",
    "RailTest",
    "RecordedAnswer",
    "Setup",
    "SkillTest",
    "ToolTest",
    "find_acceptance",
    "load_acceptance",
]

EXTERNAL = ("http", "command", "query")  # what a tool does that reaches outside, and is tried with a setup only
Calls = Annotated[int, Field(ge=0, le=30)]


class Expectation(Model):
    """What a tool's result must be."""

    success: bool = True
    format: str | None = None
    minimum: dict[str, int] = {}
    required_keys: list[str] = []
    contains: dict[str, Any] = Field(default={}, description="fields and the values they must have")
    error_contains: str | None = None


class RecordedAnswer(Model):
    """What an API answers to one request."""

    method: str = "GET"
    path: str = Field(description="path of the request, with its query where that matters: /orders/7?lang=en")
    status: Annotated[int, Field(ge=200, le=599)] = 200
    headers: dict[str, str] = {}
    json_: Any = Field(None, alias="json", description="the answer, as JSON")
    text: str | None = Field(None, description="the answer as it is, instead of json")
    sent: Any = Field(None, description="the JSON that the request must carry")


class Setup(Model):
    """What a tool needs around it to be tried without the world outside."""

    http: list[RecordedAnswer] = Field(default=[], description="answers of the API, served on 127.0.0.1")
    sqlite: str | None = Field(None, description="SQL script that makes the database")
    argv: list[str] = Field(
        default=[], description="a harmless command to run in place of the program; it gets the tool's arguments"
    )
    environment: dict[str, str] = Field(default={}, description="environment variables that the tool sees")


class Assertions(Model):
    """The host's own assertions; unknown ones are kept for it."""

    model_config = {**Model.model_config, "extra": "allow"}

    must_call_tool: bool = True
    tool_result_success: bool | None = None
    required_fields: list[str] = []
    observable_state_file: str | None = None
    json_contains: list[str] = []
    must_observe_side_effect: bool = True
    answer_contains_any: list[str] = []


class ToolTest(Model):
    """One call of a tool."""

    tool_name: str
    query: str = "Please use the tool."
    inputs: dict[str, Any] | None = None
    setup: Setup | None = Field(None, description="for a tool that calls an API, a program or a database")
    expect: Expectation = Expectation()
    assertions: Assertions = Assertions()


class RailTest(Model):
    """What a rail must do."""

    rail: str
    does: str = ""
    query: str = "Please use a tool."
    tool_name: str | None = Field(None, description="the tool whose calls or results the rail looks at; default: any")
    blocks: dict[str, Any] | None = Field(None, description="arguments of a call that must be refused")
    passes: dict[str, Any] | None = Field(None, description="arguments of a call that must run")
    rewrites: dict[str, Any] | None = Field(None, description="arguments of a call that must be corrected")
    into: dict[str, Any] | None = Field(None, description="what must become of them")
    calls: Calls = Field(1, description="how many calls of a harmless tool to make")
    shows: str | None = Field(None, description="a text that must appear in the system prompt")
    refuses_after: Calls | None = Field(None, description="how many calls may run before one is refused")
    finishes_after: Calls | None = Field(None, description="how many calls may run before the turn is ended")
    says: str | None = Field(None, description="what the model answers")
    returns: Any = Field(None, description="what the tool returns, without being run")
    hides: str | None = Field(None, description="a text of `says` or `returns` that must not get through")
    keeps: str | None = Field(None, description="a text of `returns` that must get through")
    lie: bool = Field(default=False, description="let the tool claim a file that is not there, and one that is")
    inputs: dict[str, Any] = Field(default={}, description="arguments of the call that `returns` or `lie` is about")
    note: str = ""
    assertions: Assertions = Assertions()


class SkillTest(Model):
    """A skill that the model must be offered."""

    skill: str = ""
    query: str = ""
    assertions: Assertions = Assertions()


class Acceptance(Model):
    """Everything to try on one extension."""

    name: str
    components: list[str] = []
    prewarm_queries: list[str] = []
    tool_tests: list[ToolTest] = []
    rail_tests: list[RailTest] = []
    skill_tests: list[SkillTest] = []


def find_acceptance(tree: str) -> str | None:
    """Return the acceptance file of the tree: `acceptance/<name>.yaml` in it or in a folder above it."""
    name = os.path.basename(os.path.abspath(tree))
    folder = os.path.abspath(tree)
    for _ in range(6):
        path = os.path.join(folder, "acceptance", f"{name}.yaml")
        if os.path.isfile(path):
            return path
        folder = os.path.dirname(folder)
    return None


def load_acceptance(path: str) -> Acceptance:
    """Return the acceptance file at `path`.

    Raises:
        DocumentError: with every problem in it.
    """
    with open(path, "rb") as stream:
        document = read_document(stream.read(), path)
    acceptance, findings = bind(document, Acceptance)
    if acceptance is None:
        raise DocumentError(path, findings)
    return acceptance
