"""The plan: which extensions to make, as people and openJiuwen's auto-harness write it.

The first nine fields of `ExtensionDesign` are the host's own (openJiuwen `ExtensionDesign`, 0.1.14 to 0.1.19);
everything after them is ours, optional, and ignored by the host.  These models hold shapes and types only; the
rules about their content are in `extforge.rules`, because most of them look at more than one field.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from extforge_harness.acceptance import Setup  # noqa: TC001 -- pydantic reads it when the module is imported
from extforge_harness.documents import Model

__all__ = [
    "ArtifactSpec",
    "AuditSpec",
    "BudgetSpec",
    "CommandSpec",
    "CustomSpec",
    "DoesRail",
    "DoesTool",
    "ExtensionDesign",
    "GateSpec",
    "GuardRule",
    "GuardSpec",
    "HttpSpec",
    "OutputGuardSpec",
    "Plan",
    "PromptSpec",
    "QuerySpec",
    "RailSpec",
    "ReminderSpec",
    "ReportSpec",
    "ResultFilterSpec",
    "SecretSpec",
    "SkillSpec",
    "StyleSpec",
    "ToolSpec",
]

Seconds = Annotated[float, Field(gt=0, le=280)]  # the host gives a tool 300
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class StyleSpec(Model):
    """How documents look."""

    accent: str | None = Field(None, description="accent colour as #RRGGBB")
    font: str | None = Field(None, description="font family of Latin text")
    east_asian_font: str | None = Field(None, description="font family of Chinese, Japanese and Korean text")


class ArtifactSpec(Model):
    """A tool that writes one file of a format."""

    format: str = Field(description="pptx, docx, xlsx, pdf, json, csv, md, html, png or svg")
    required_keys: list[str] = Field(default=[], description="keys that a JSON artifact must have")
    required_columns: list[str] = Field(default=[], description="columns that a CSV artifact must have")
    minimum: dict[str, Count] = Field(default={}, description="smallest acceptable counts, such as slides: 3")
    style: StyleSpec = StyleSpec()
    folders: list[str] = Field(
        default=[],
        description="where its files may go besides the working directory and the agent's workspace: ~/Reports",
    )


class SecretSpec(Model):
    """A secret that stands in a header of every call."""

    env: str = Field(description="environment variable that holds it")
    prefix: str = Field("", description="what stands before it, such as 'Bearer '")


class HttpSpec(Model):
    """A tool that calls a JSON API.  Places such as {order_id} are filled with the tool's inputs."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str = Field(description="https://host/path/{input}, or only /path/{input} with the host from the environment")
    base_url_env: str | None = Field(
        None, description="environment variable with the base URL; default: <TOOL>_BASE_URL"
    )
    query: dict[str, str] = Field(default={}, description="query parameters; one whose input is absent is left out")
    headers: dict[str, str] = Field(default={}, description="further headers, the same in every call")
    secrets: dict[str, SecretSpec] = Field(default={}, description="header: where its secret comes from")
    body: Any = Field(None, description="JSON to send, with places in its texts")
    select: str | None = Field(None, description="JSON Pointer of the part of the answer to return")
    required_keys: list[str] = Field(default=[], description="names or JSON Pointers that an answer must have")
    timeout: Seconds = 15
    max_bytes: Annotated[int, Field(ge=1, le=50_000_000)] = 262_144
    retries: Annotated[int, Field(ge=0, le=5)] = Field(2, description="further tries of a GET")
    allow_private: bool = Field(default=False, description="let the host be in a private network")


class CommandSpec(Model):
    """A tool that runs one program, without a shell."""

    argv: list[str] = Field(description="the program and its arguments; {name} is an input of the tool")
    stdin: str = Field("", description="what the program reads, with places")
    environment: list[str] = Field(default=[], description="environment variables that the program may see")
    exit_codes: list[int] = Field(default=[0], description="exit codes of success")
    timeout: Seconds = 60
    max_output: Annotated[int, Field(ge=1, le=50_000_000)] = 65_536


class QuerySpec(Model):
    """A tool that reads an SQLite database."""

    database: str | None = Field(None, description="path of the database; default: from the environment")
    database_env: str | None = Field(None, description="environment variable with its path; default: <TOOL>_DATABASE")
    sql: str | None = Field(None, description="the query, with :name for inputs; default: the model writes it")
    limit: Annotated[int, Field(ge=1, le=100_000)] = Field(200, description="rows")
    timeout: Seconds = 10
    max_bytes: Annotated[int, Field(ge=1, le=50_000_000)] = 262_144


class ReportSpec(Model):
    """A tool that reads the state which a rail of the same extension keeps."""

    state: str | None = Field(None, description="class of the rail; default: the extension's only rail")


class CustomSpec(Model):
    """A body for a person to write; until then it reports that it is not implemented."""

    notes: str = Field("", description="what the person who writes it should know")


class DoesTool(Model):
    """What a tool does: exactly one of these."""

    artifact: ArtifactSpec | None = None
    http: HttpSpec | None = None
    command: CommandSpec | None = None
    query: QuerySpec | None = None
    report: ReportSpec | None = None
    custom: CustomSpec | None = None


class ToolSpec(Model):
    """One tool of an extension."""

    name: str | None = Field(None, description="name the model calls it by (snake_case)")
    class_: str | None = Field(None, alias="class", description="PascalCase class name")
    description: str | None = Field(None, description="when to use it")
    mutation: Literal["safe_read", "mutating_local", "mutating_external", "side_effect"] | None = None
    input_params: dict[str, Any] | None = Field(None, description="JSON Schema of its inputs")
    does: DoesTool | Literal["custom"] | None = None


class GuardRule(Model):
    """One rule about the files and arguments of a call; every key that is given must hold."""

    stem_suffix: str | None = Field(None, description="how the file name ends before its extension: _v1")
    extension: list[str] | None = Field(None, description="allowed (or forbidden) file extensions: [.pptx, .pdf]")
    pattern: str | None = Field(None, description="regular expression that the whole file name must match")
    folder: list[str] | None = Field(None, description="folders that the file must lie in")
    argument: dict[str, str] | None = Field(None, description="argument name: regular expression of its value")


class GuardSpec(Model):
    """A rail that refuses (or corrects) tool calls before they run."""

    require: GuardRule | None = None
    forbid: GuardRule | None = None
    arguments: list[str] = Field(default=[], description="further arguments that name files")
    on_violation: Literal["reject", "rewrite"] = "reject"
    allow_commands: list[str] = Field(default=[], description="regular expressions of shell commands that may run")
    message: str = Field("", description="added to every refusal: what to do instead")


class AuditSpec(Model):
    """A rail that records every tool call: who called what, when, with which outcome."""

    arguments: bool = Field(default=False, description="record argument values too, not only their names")


class ReminderSpec(Model):
    """A rail that reminds the model of something every so often."""

    every: Annotated[int, Field(ge=1, le=10_000)] = 5
    of: Literal["model_calls", "tool_calls"] = "model_calls"
    text: str = ""


class BudgetSpec(Model):
    """A rail that counts what a session uses, warns, and stops it at the limit."""

    calls: Annotated[int, Field(ge=1)] | None = Field(None, description="tool calls per session")
    characters: Annotated[int, Field(ge=1)] | None = Field(None, description="characters in and out of tools")
    seconds: Annotated[int, Field(ge=1)] | None = Field(None, description="seconds since the session's first call")
    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    on_exceed: Literal["warn", "block", "finish"] = "warn"


class PromptSpec(Model):
    """A rail that puts a section into the system prompt."""

    text: str | None = None
    skill: str | None = Field(None, description="inject the body of this skill")
    when_mentions: list[str] = Field(default=[], description="only when the user's message has one of these words")


class GateSpec(Model):
    """A rail that checks every file a tool claims, and turns a false claim into a failure."""

    tools: list[str] = Field(default=[], description="tools to watch; default: all")


class OutputGuardSpec(Model):
    """A rail that looks at what the model says before anybody else does."""

    patterns: list[str] = Field(description="regular expressions of what must not be said; repeats are bounded: {1,64}")
    on_match: Literal["redact", "replace", "finish"] = Field(
        "redact", description="replace the match, replace the whole answer, or end the turn with the message"
    )
    replacement: str = Field("[removed]", description="what stands in place of a match")
    message: str = Field("This answer was withheld.", description="the answer instead, for replace and finish")


class ResultFilterSpec(Model):
    """A rail that takes out of tool results what the model must not read."""

    tools: list[str] = Field(default=[], description="tools whose results are filtered; default: all")
    patterns: list[str] = Field(default=[], description="regular expressions of what to replace; repeats are bounded")
    replacement: str = Field("[removed]", description="what stands in place of a match")
    drop_keys: list[str] = Field(default=[], description="keys to leave out of structured results, at any depth")
    max_characters: Annotated[int, Field(ge=100, le=1_000_000)] | None = Field(
        None, description="the longest result that the model reads"
    )


class DoesRail(Model):
    """What a rail does: exactly one of these."""

    guard: GuardSpec | None = None
    output_guard: OutputGuardSpec | None = None
    result_filter: ResultFilterSpec | None = None
    audit: AuditSpec | None = None
    reminder: ReminderSpec | None = None
    budget: BudgetSpec | None = None
    prompt: PromptSpec | None = None
    artifact_gate: GateSpec | None = None
    custom: CustomSpec | None = None


class RailSpec(Model):
    """One rail of an extension."""

    class_: str | None = Field(None, alias="class", description="PascalCase class name")
    does: DoesRail | Literal["guard", "audit", "reminder", "prompt", "artifact_gate", "custom"] | None = None


class SkillSpec(Model):
    """One skill: knowledge the model reads when a situation calls for it."""

    name: str | None = Field(None, description="name, and its folder's name")
    description: str | None = Field(None, description="what it knows and when to use it")
    trigger: str | None = Field(None, description="the situation that calls for it")
    when: list[str] = Field(default=[], description="situations that call for it")
    steps: list[str] = []
    rules: list[str] = []
    examples: list[str] = []
    acceptance: list[str] = Field(default=[], description="how to tell that the work is good")
    references: dict[str, str] = Field(default={}, description="file name: text, for longer material")
    assets: list[str] = Field(default=[], description="files a person must add")


class FilePlan(Model):
    """Where the extension goes.  Further keys plan further files below the root."""

    model_config = {**Model.model_config, "extra": "allow"}

    root: str | None = None
    manifest: str | None = None


class AcceptanceSpec(Model):
    """What to try on a tool when the extension is verified."""

    inputs: dict[str, Any] | None = None
    expect: dict[str, Any] = {}
    query: str | None = None
    setup: Setup | None = Field(None, description="what the tool needs around it to be tried offline")


class ExtensionDesign(Model):
    """One extension."""

    gap_id: str = ""
    extension_name: str
    kind: str = "capability"
    depends_on: list[str] = []
    applies_to: list[str] = []
    components: list[str]
    file_plan: FilePlan = FilePlan()
    harness_config_patch: dict[str, Any] = {}
    skill_source: str | None = ""
    # Ours; the host ignores them.
    description: str = ""
    tools: list[ToolSpec] = []
    rails: list[RailSpec] = []
    skills: list[SkillSpec] = []
    workflows: dict[str, dict[str, Any]] = Field(default={}, description="skill name: the content of its skill.yaml")
    requirements: list[str] = Field(default=[], description="further packages the extension imports: name>=1.0")
    mcp: bool = Field(default=False, description="also carry mcp_server.py: its tools for any MCP client")
    acceptance: dict[str, AcceptanceSpec] = Field(default={}, description="tool name: what to try")


class Plan(Model):
    """A plan file in its full form."""

    package_name: str = ""
    designs: list[ExtensionDesign]
