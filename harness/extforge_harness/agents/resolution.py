"""What an agent runs with: explicit request, then definition, then the runtime's own default; and how that is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from extforge_harness.agents.definition import DEFAULTS, check_settings
from extforge_harness.errors import AgentDefinitionError
from extforge_verifiers.findings import Finding, Where

if TYPE_CHECKING:
    from extforge_harness.agents.definition import AgentDefinition

__all__ = ["KINDS", "PreparedTask", "Resolved", "check_resolved", "origins", "prepare", "resolve", "with_header"]

KINDS = ("turn", "goal", "coordinator")
REQUEST, DEFINITION, RUNTIME = "request", "definition", "runtime default"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an agent runs with; None: the runtime's own default chain decides."""

    model: Any = None
    effort: Any = None
    approval: Any = None
    executor: Any = None
    plan: Any = False


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A task that can be handed to a runtime."""

    prompt: str
    resolved: Resolved
    agent: dict[str, Any] | None = field(default=None)  # the identity of the definition


def resolve(definition: AgentDefinition | None, request: object = None) -> Resolved:
    """Return what the agent runs with; nothing is checked, see `check_resolved`.

    Args:
        definition: the agent's definition, if there is one.
        request: a mapping of what was asked for; anything else counts as empty.  A value of None is none, except for
            `plan`: when its key is there it decides, so that a caller can always switch plan mode off.
    """
    asked, chosen = _asked(request), definition.defaults if definition is not None else {}
    values: dict[str, Any] = {}
    for name, origin in origins(definition, request).items():
        values[name] = asked[name] if origin == REQUEST else chosen[name] if origin == DEFINITION else None
    values["plan"] = _is_on(values["plan"])
    return Resolved(**values)


def origins(definition: AgentDefinition | None, request: object = None) -> dict[str, str]:
    """Return where each field comes from: `request`, `definition` or `runtime default`."""
    asked, chosen = _asked(request), definition.defaults if definition is not None else {}
    return {
        name: REQUEST
        if (name in asked if name == "plan" else asked.get(name) is not None)
        else DEFINITION
        if chosen.get(name) is not None
        else RUNTIME
        for name in DEFAULTS
    }


def _asked(request: object) -> Mapping[Any, Any]:
    return request if isinstance(request, Mapping) else {}


def _is_on(plan: object) -> bool:
    """Only true and 1 switch plan mode on; 1.0 equals 1 and is neither."""
    return plan is True or (isinstance(plan, int) and plan == 1)


def check_resolved(resolved: Resolved) -> list[Finding]:
    """Return what is wrong with it, by the rules for definitions.

    Mixing a request with a definition can make a conflict that neither has.
    """
    return check_settings(asdict(resolved), "resolved")


def with_header(definition: AgentDefinition | None, prompt: str) -> str:
    """Return the prompt below a header with the instructions, for runtimes that take no persona.

    The header is text that everybody sees, and no privileged channel.  Without instructions the prompt comes back as
    it is.
    """
    if definition is None or not definition.instructions:
        return prompt
    name = f"{definition.name} {definition.version}" if definition.version else definition.name
    return f"[Agent: {name}]\n{definition.instructions}\n\n{prompt}"


def prepare(definition: AgentDefinition | None, request: Mapping[str, Any], *, persona: bool = False) -> PreparedTask:
    """Return a task that can be handed to a runtime.

    Args:
        definition: the agent's definition, if there is one.
        request: `prompt`, `kind` (`turn`, `goal` or `coordinator`; default: turn) and what `resolve` takes.
        persona: the runtime has the instructions already, as the persona of a package; the prompt gets no header.

    Raises:
        AgentDefinitionError: with everything that is wrong with the request, or with both together.
    """
    findings: list[Finding] = []
    prompt, kind = request.get("prompt"), request.get("kind")
    kind = "turn" if kind is None else kind
    if not isinstance(prompt, str):
        findings.append(Finding("agent-bad-type", "request.prompt must be a string", where=Where(json_path="$.prompt")))
        prompt = ""
    if kind not in KINDS:
        words = "request.kind must be turn, goal or coordinator"
        findings.append(Finding("agent-bad-choice", words, where=Where(json_path="$.kind")))
    elif kind != "turn" and definition is not None and definition.instructions:
        why = "a goal is kept as it is written" if kind == "goal" else "a coordinator's prompt is no turn of a model"
        words = f"the agent {definition.name!r} has instructions, which do not apply to a {kind}: {why}"
        fix = "use a definition without instructions"
        findings.append(Finding("agent-instructions-not-applicable", words, where=Where(json_path="$.kind"), fix=fix))
    resolved = resolve(definition, request)
    findings += check_resolved(resolved)
    if findings:
        raise AgentDefinitionError("request", findings)
    shown = prompt if persona or kind != "turn" else with_header(definition, prompt)
    return PreparedTask(shown, resolved, definition.summary() if definition is not None else None)
