"""Agent definitions: who an agent is, what it needs and how it prefers to run; checked, with every problem at once.

A definition says nothing about tools, routing or credentials.  Whatever is not in it by name is refused, because a
declarative file must fail on a typo, not pass over it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.documents import STDIN, read_source, suggest
from extforge_harness.errors import AgentDefinitionError
from extforge_harness.gates import APPROVALS
from extforge_verifiers.documents import Document, json_path, parse_json, parse_yaml, read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import find_secret
from extforge_verifiers.findings import Finding, Where
from extforge_verifiers.paths import lies_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from extforge_verifiers.documents import Path as Steps

__all__ = [
    "APPROVALS", "DEFAULTS", "EFFORTS", "EXECUTORS", "AgentDefinition", "agent_schema", "check_agent", "check_settings",
    "load_agent", "parse_agent", "read_agent",
]  # fmt: skip

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
EXECUTORS = ("local", "docker", "cloud")
SIZE_LIMIT = 256 << 10  # bytes of a file
VERSION_LIMIT, DESCRIPTION_LIMIT, INSTRUCTIONS_LIMIT = 64, 1000, 8000  # code points
SKILLS_LIMIT = 20  # entries, before equal ones are put together

FIELDS = ("name", "version", "description", "instructions", "skills", "defaults")
DEFAULTS = ("model", "effort", "approval", "executor", "plan")
_CHOICES = {"effort": EFFORTS, "approval": APPROVALS, "executor": EXECUTORS}
_ROUTING = ("routing", "routing_policy")
# What people look for in a definition, and where it is instead.
_ELSEWHERE = {
    "tools come from extensions that are loaded beside the agent": ("tools", "rails", "mcp", "mcps", "mcp_servers"),
    "credentials and endpoints come from the environment when the agent runs": (
        "api_key", "apikey", "key", "token", "secret", "password", "credentials", "base_url", "api_base", "endpoint", "url",
    ),
    "a definition stands alone: write it out": ("extends", "inherits", "include", "includes", "import", "variables", "vars"),
    "sub-agents are not part of a definition": ("subagents", "sub_agents", "agents"),
    "it belongs into defaults": DEFAULTS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """A checked definition, in its normal form: texts trimmed, equal skills put together."""

    name: str
    version: str | None = None
    description: str | None = None
    instructions: str | None = None
    skills: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # only what is set

    def summary(self) -> dict[str, Any]:
        """Return the identity that goes into run records and packages."""
        return {"name": self.name, "version": self.version, "skills": list(self.skills)}

    def data(self) -> dict[str, Any]:
        """Return the document that gives this definition when it is parsed."""
        values = {key: getattr(self, key) for key in FIELDS}
        values |= {"skills": list(self.skills), "defaults": dict(self.defaults)}
        return {key: value for key, value in values.items() if value not in (None, [], {})}


# --------------------------------------------------------------------------- checking


def check_agent(data: object, known_skills: Collection[str] | None = None) -> list[Finding]:
    """Return every problem of a definition, in document order.

    Args:
        data: the parsed document, or a `Document`, whose findings then have lines.
        known_skills: the skills there are; None: whether they exist is not checked; empty: there are none.
    """
    checker = _Checker(data)
    checker.definition(known_skills)
    return checker.findings


def parse_agent(data: object, known_skills: Collection[str] | None = None) -> AgentDefinition:
    """Return the definition in a document; see `check_agent`.

    Raises:
        AgentDefinitionError: with every problem.
    """
    checker = _Checker(data)
    values = checker.definition(known_skills)
    if checker.findings:
        raise AgentDefinitionError(checker.source, checker.findings)
    return AgentDefinition(**values)


def check_settings(values: Mapping[str, Any], label: str) -> list[Finding]:
    """Return what is wrong with model, effort, approval, executor and plan, by the rules of `defaults`."""
    checker = _Checker(None, label)
    checker.settings(values, ())
    return checker.findings


class _Checker:
    """Collects the findings while it brings the values into their normal form."""

    def __init__(self, data: object, label: str = "agent") -> None:
        self.document = data if isinstance(data, Document) else None
        self.data = data.value if isinstance(data, Document) else data
        self.source = self.document.source if self.document is not None else label
        self.label = label
        self.findings: list[Finding] = []

    def words(self, path: Steps) -> str:
        """Return what to call a place: `agent.skills[2]`."""
        return self.label + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)

    def note(self, code: str, path: Steps, message: str, fix: str | None = None, *, key: bool = False) -> None:
        where = Where(json_path=json_path(path)) if self.document is None else self.document.where(path, key=key)
        self.findings.append(Finding(code, message, where=where, fix=fix))

    def definition(self, known: Collection[str] | None) -> dict[str, Any]:
        """Check the whole document; return the fields as `AgentDefinition` takes them."""
        if not isinstance(self.data, dict):
            empty = self.document is not None and self.data is None
            words = "the document is empty" if empty else f"{self.label} must be an object"
            self.note("agent-not-object", (), words, "a definition is a mapping with at least a name")
            return {}
        values: dict[str, Any] = {}
        if "name" not in self.data:
            self.name(None)
        unknown = [key for key in self.data if key not in (*FIELDS, *_ROUTING)]
        for key, value in self.data.items():
            match key:
                case "name":
                    values["name"] = self.name(value)
                case "version":
                    values["version"] = self.text((key,), value, VERSION_LIMIT, empty="refused")
                case "description":
                    values["description"] = self.text((key,), value, DESCRIPTION_LIMIT, empty="kept")
                case "instructions":
                    values["instructions"] = self.text((key,), value, INSTRUCTIONS_LIMIT, empty="absent")
                case "skills":
                    values["skills"] = self.skills(value, known)
                case "defaults":
                    values["defaults"] = self.defaults(value)
                case "routing" | "routing_policy":
                    words = f"{key} is a runtime-wide policy in v1; it cannot be set per agent"
                    self.note("agent-routing-not-supported", (key,), words, f"remove {key}", key=True)
                case _ if key is unknown[0]:
                    self.unknown(unknown, FIELDS, ())
        return values

    def unknown(self, names: list[Any], known: tuple[str, ...], path: Steps) -> None:
        """Name all keys of a mapping that are not ours in one finding, which stands at the first of them."""
        fixes = []
        for name in names:
            advice = suggest(name, list(known)) if isinstance(name, str) else "a key must be a text"
            for reason, elsewhere in _ELSEWHERE.items():
                if isinstance(name, str) and name.lower() in elsewhere and name not in known:
                    advice = reason
            line = self.document.where((*path, name), key=True).line if self.document and len(names) > 1 else None
            fixes.append(f"{_shown(name)}{f' (line {line})' if line else ''}: {advice or 'remove it'}")
        shown = ", ".join(sorted(map(_shown, names)))
        first = (*path, names[0]) if isinstance(names[0], str) else path
        message = f"{self.words(path)} has unknown field(s): {shown}"
        self.note("agent-unknown-field", first, message, "; ".join(fixes), key=True)

    def name(self, value: object) -> str:
        if isinstance(value, str) and NAME.fullmatch(value):
            return value
        fix = "add a name" if value is None else "use small letters, digits, '_' and '-'; begin with a letter or digit"
        self.note("agent-bad-name", ("name",), f"{self.label}.name must match {NAME.pattern}", fix)
        return ""

    def text(self, path: Steps, value: object, limit: int, *, empty: str) -> str | None:
        """Return a text in its normal form.

        What `empty` says is done with one that is blank: `refused`, `absent`, or `kept`, and then nothing is trimmed.
        """
        if value is None:
            return None
        place = self.words(path)
        if not isinstance(value, str):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            self.note("agent-bad-type", path, f"{place} must be a string", f'quote it: "{value}"' if number else None)
            return None
        found = value if empty == "kept" else value.strip()
        if not found and empty == "refused":
            self.note("agent-empty", path, f"{place} must be a non-empty string", "write one, or leave the key out")
        if not found and empty != "kept":
            return None
        if len(found) > limit:
            self.note("agent-too-long", path, f"{place} has {len(found)} characters; the limit is {limit}")
        if _SURROGATE.search(found):
            self.note("agent-bad-type", path, f"{place} has half of a surrogate pair, which is not text")
        if secret := find_secret(found):
            words = f"{place} holds what looks like a secret ({secret[:4]}...)"
            self.note("agent-secret", path, words, "take it out: definitions are shared, and models read them")
        return found

    def skills(self, value: object, known: Collection[str] | None) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            self.note("agent-bad-type", ("skills",), f"{self.label}.skills must be a list")
            return ()
        if len(value) > SKILLS_LIMIT:
            words = f"{self.label}.skills has {len(value)} entries; the limit is {SKILLS_LIMIT}"
            self.note("agent-too-many", ("skills",), words)
        names: dict[str, int] = {}
        for index, entry in enumerate(value):
            if entry is None:
                self.note("agent-bad-type", ("skills", index), f"{self.label}.skills[{index}] must be a string")
            name = self.text(("skills", index), entry, sys.maxsize, empty="refused")
            if name is not None:
                names.setdefault(name, index)
        missing = [] if known is None else [name for name in names if name not in known]
        if missing:
            close = [f"{_shown(name)}: {advice}" for name in missing if (advice := suggest(name, sorted(known or ())))]
            words = f"{self.label}.skills unknown skill(s): {', '.join(map(_shown, missing))}"
            fix = "; ".join(close) or f"known skills: {', '.join(sorted(known or ())) or 'none'}"
            self.note("agent-unknown-skill", ("skills", names[missing[0]]), words, fix)
        return tuple(names)

    def defaults(self, value: object) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.note("agent-bad-type", ("defaults",), f"{self.label}.defaults must be an object")
            return {}
        return self.settings(value, ("defaults",))

    def settings(self, values: Mapping[Any, Any], path: Steps) -> dict[str, Any]:
        """Return what is set; a setting that is wrong is never one that is not there."""
        found: dict[str, Any] = {}
        unknown = [key for key in values if key not in DEFAULTS]
        for key, value in values.items():
            if unknown and key is unknown[0]:
                self.unknown(unknown, DEFAULTS, path)
            if value is None or key not in DEFAULTS:
                continue
            place = (*path, key)
            if key == "model":
                found[key] = self.text(place, value, sys.maxsize, empty="refused")
            elif key == "plan":
                if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
                    found[key] = bool(value)
                else:
                    self.note("agent-bad-plan", place, f"{self.words(place)} must be true or false")
            elif isinstance(value, str) and value in _CHOICES[key]:
                found[key] = value
            else:
                *most, last = _CHOICES[key]
                advice = suggest(value, list(_CHOICES[key])) if isinstance(value, str) else None
                self.note("agent-bad-choice", place, f"{self.words(place)} must be {', '.join(most)} or {last}", advice)
        if found.get("plan") and found.get("approval") == "full":
            last = [key for key in values if key in ("plan", "approval")][-1]
            words = 'plan mode is read-only and approval "full" is unrestricted; choose one'
            self.note("agent-plan-conflict", (*path, last), words)
        return found


_SURROGATE = re.compile("[\ud800-\udfff]")


def _shown(name: object) -> str:
    """Return a key or a skill's name for a message: on one line, and not without end."""
    text = name if isinstance(name, str) and name.isprintable() else ascii(name)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --------------------------------------------------------------------------- files


def load_agent(
    path: str | os.PathLike[str],
    agents_dir: str | os.PathLike[str] | None = None,
    known_skills: Collection[str] | None = None,
) -> AgentDefinition:
    """Return the definition in a file.

    For operators and the command line.  What another party sends must come inline: a path of theirs would let them
    read files.

    Args:
        path: the file; below `agents_dir` when it is relative and one is given; `-`, without one: standard input.
        agents_dir: the folder that the file must lie in, links followed.
        known_skills: see `check_agent`.

    Raises:
        AgentDefinitionError: with every problem.
    """
    return parse_agent(read_agent(path, agents_dir), known_skills)


def read_agent(path: str | os.PathLike[str], agents_dir: str | os.PathLike[str] | None = None) -> Document:
    """Return the document in a file, not yet checked; see `load_agent`.

    Raises:
        AgentDefinitionError: when it cannot be read, or is no document.
    """
    shown = os.fspath(path)
    piped = shown == "-" and agents_dir is None
    try:
        data = read_source("-", SIZE_LIMIT)[1] if piped else _read(Path(path), agents_dir)
    except AgentDefinitionError:
        raise
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        finding = Finding("agent-unreadable", f"cannot be read: {reason}", where=Where(shown))
        raise AgentDefinitionError(shown, [finding]) from None
    source = STDIN if piped else shown
    if len(data) > SIZE_LIMIT:
        words = f"larger than {SIZE_LIMIT >> 10} KiB, which is the most that a definition may have"
        raise AgentDefinitionError(source, [Finding("document-too-large", words, where=Where(source))])
    try:
        text = read_text(data, source)
        # Standard input has no name to choose by, and a definition always begins with a brace when it is JSON.
        is_json = source.lower().endswith(".json") or (piped and text.lstrip().startswith("{"))
        return parse_json(text, source) if is_json else parse_yaml(text, source)
    except DocumentError as exc:
        raise AgentDefinitionError(source, exc.findings) from None


def _read(path: Path, agents_dir: str | os.PathLike[str] | None) -> bytes:
    """Read a file once it is known to lie where it may."""
    resolved = (Path(agents_dir or ".") / path).resolve()
    if agents_dir is not None and not lies_in(resolved, agents_dir):
        words = f"leads out of {agents_dir}"
        raise AgentDefinitionError(str(path), [Finding("agent-path-escape", words, where=Where(str(path)))])
    mode = resolved.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(0, "it is a folder" if stat.S_ISDIR(mode) else "not a regular file")  # a pipe would never end
    with resolved.open("rb") as stream:
        return stream.read(SIZE_LIMIT + 1)


# --------------------------------------------------------------------------- schema


def agent_schema() -> dict[str, Any]:
    """Return the JSON Schema of a definition, as far as a schema can tell: texts are measured before trimming."""

    def text(description: str, **more: Any) -> dict[str, Any]:
        return {"type": ["string", "null"], "description": description, **more}

    def choice(description: str, values: Iterable[str]) -> dict[str, Any]:
        return {"enum": [*values, None], "description": description}

    solid = r"\S"
    defaults = {
        "model": text("name of the model; endpoint and key come from the environment", pattern=solid),
        "effort": choice("how hard the model thinks", EFFORTS),
        "approval": choice("what happens to calls of tools that change something", APPROVALS),
        "executor": choice("where it runs; only local does here", EXECUTORS),
        "plan": {"enum": [True, False, 0, 1, None], "description": "plan mode: only tools that are safe reads"},
    }
    full = {"approval": {"const": "full"}, "plan": {"enum": [True, 1]}}
    return {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "pattern": f"^{NAME.pattern}$", "description": "name of the agent"},
            "version": text("its version; quote it", pattern=solid),
            "description": text("what it does", maxLength=DESCRIPTION_LIMIT),
            "instructions": text("its persona: how it works"),
            "skills": {
                "type": ["array", "null"],
                "maxItems": SKILLS_LIMIT,
                "items": {"type": "string", "pattern": solid},
                "description": "names of the skills it needs",
            },
            "defaults": {
                "type": ["object", "null"],
                "additionalProperties": False,
                "properties": defaults,
                "not": {"type": "object", "required": ["approval", "plan"], "properties": full},
                "description": "how it prefers to run; a request comes first",
            },
        },
    }
