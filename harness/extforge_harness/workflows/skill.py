"""`skill.yaml`: the steps of a skill, the tools it may touch, and the guardrails that decide whether its result counts.

The models hold shapes; `find_problems` adds the rules that look at more than one field, and reports everything at once
with json path, line and column.  Keys are hyphenated, as in the front matter of agent skills; `null` means absent.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from extforge_harness.documents import Model, bind, suggest
from extforge_verifiers.findings import Finding
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.paths import lies_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from extforge_verifiers.documents import Document

__all__ = [
    "FINAL",
    "IMAGES",
    "ArtifactCheck",
    "Check",
    "Guardrail",
    "JsonCheck",
    "Ref",
    "Skill",
    "Step",
    "TextCheck",
    "Workflow",
    "find_problems",
    "levels",
]

FINAL = "$final"  # the subject of what is checked after all steps; no step can have this name
IMAGES = ("png", "jpg", "gif", "webp", "bmp", "tiff")  # what `format: image` stands for
Effort = Literal["low", "medium", "high", "xhigh", "max"]


def _constrained(**rules: Any) -> Any:
    return StringConstraints(strip_whitespace=True, min_length=1, **rules)


Text = Annotated[str, _constrained()]
Name = Annotated[str, _constrained(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
StepName = Annotated[str, _constrained(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")]
ToolName = Annotated[str, _constrained(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")]
AgentName = Annotated[str, _constrained(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Count = Annotated[int, Field(ge=0)]
_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Patterns = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema(_ONE_OR_MORE),
]


class Part(Model):
    """A mapping with hyphenated keys, in which a key that says null counts as absent."""

    model_config = ConfigDict(populate_by_name=False, alias_generator=lambda name: name.replace("_", "-"))

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: item for key, item in value.items() if item is not None or key not in known}


class Step(Part):
    """One step: an instruction, and the steps whose outputs it sees."""

    name: StepName
    prompt: Text
    depends: list[Text] = []


class Ref(Part):
    """Material that a step may read: a file of the skill, or an address that is passed on and never fetched."""

    path: Text | None = Field(None, description="relative to the skill's folder")
    url: Annotated[str, _constrained(pattern=r"^https?://\S+$")] | None = None
    title: Text | None = None


class ArtifactCheck(Part):
    """The claimed files are real files of a format."""

    format: Text = Field(description="pptx, docx, xlsx, pdf, json, png, ... or image")
    path: Text | None = Field(None, description="glob below the working directory, instead of what the step claims")
    min_bytes: Count | None = None
    require_keys: list[Text] = Field(default=[], description="keys, or JSON Pointers, that a JSON file must have")
    min_count: dict[str, Count] = Field(default={}, description="smallest acceptable counts, such as slides: 3")


class TextCheck(Part):
    """The output as text; patterns are regular expressions, found anywhere in it."""

    must_match: Patterns = []
    must_not_match: Patterns = []
    min_chars: Count | None = None
    max_chars: Count | None = None


class JsonCheck(Part):
    """The output, or its first fenced JSON block, parses and has these keys."""

    require_keys: list[Text] = Field(default=[], description="keys, or JSON Pointers")


class Check(Part):
    """How a rule is decided: exactly one of these."""

    artifact: ArtifactCheck | None = None
    text: TextCheck | None = None
    json_: JsonCheck | None = Field(None, alias="json")


class Guardrail(Part):
    """A rule in words, and how to tell whether it is broken."""

    id: Name
    message: Text = Field(description="the rule in words; shown when it is broken")
    enforced: bool = Field(default=True, description="true: a violation ends the run; false: it is a warning")
    at: list[Text] | None = Field(None, description="step names and $final")
    check: Check | None = Field(None, description="without one the rule needs a checker from outside")

    def subjects(self, steps: Sequence[Step]) -> list[str]:
        """Return what the rule is checked at: an artifact at the end, anything else at every step and the end."""
        if self.at is not None:
            return self.at
        if self.check is not None and self.check.artifact is not None:
            return [FINAL]
        return [*(step.name for step in steps), FINAL]


class Workflow(Part):
    """A `skill.yaml`."""

    name: Name | None = Field(None, description="the folder's name, and that of SKILL.md")
    description: Annotated[str, _constrained(max_length=1024)] | None = Field(
        None, description="what the skill is for; default: that of SKILL.md"
    )
    version: Annotated[str, _constrained(max_length=64)] = "0"
    when_to_use: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)] = ""
    invocation: Literal["auto", "user", "model"] = "auto"
    triggers: Annotated[list[Text], Field(max_length=50)] = []
    paths: Annotated[list[Text], Field(max_length=50)] = []
    allowed_tools: list[ToolName] | None = Field(None, description="absent: no restriction; []: no tools at all")
    disallowed_tools: list[ToolName] = []
    context: Literal["inline", "fork"] = "inline"
    agent: AgentName | None = None
    model: Text | None = None
    effort: Effort | None = None
    metadata: dict[str, Any] = {}
    prompt: Annotated[str, Field(max_length=20_000)] = ""
    steps: Annotated[list[Step], Field(max_length=50)] = []
    refs: Annotated[list[Ref], Field(max_length=50)] = []
    guardrails: Annotated[list[Guardrail], Field(max_length=50)] = []


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill of a pack.  One without steps is knowledge: it can be listed and not run."""

    id: str
    workflow: Workflow
    description: str = ""
    folder: str | None = None  # that refs are relative to
    source: str = "<memory>"  # the file it was read from

    @property
    def steps(self) -> list[Step]:
        """The steps, in the order they are declared."""
        return self.workflow.steps


def levels(steps: Sequence[Step]) -> list[list[str]]:
    """Return which steps could run at the same time: level by level, each in declared order.

    Raises:
        graphlib.CycleError: when steps wait for each other.
    """
    sorter = TopologicalSorter({step.name: step.depends for step in steps})
    sorter.prepare()
    order = {step.name: index for index, step in enumerate(steps)}
    found = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=lambda name: order.get(name, -1))
        sorter.done(*ready)
        found.append(ready)
    return found


# --------------------------------------------------------------------------- rules


def find_problems(
    document: Document,
    id_: str,
    *,
    folder: str | None,
    front: Mapping[str, Any] | None = None,
    files: Collection[str] = (),
) -> tuple[Workflow | None, list[Finding]]:
    """Return the workflow in a document, or everything that is wrong with it.

    Args:
        document: the `skill.yaml`.
        id_: the name of the skill's folder, or of its file without suffix.
        folder: what refs are relative to.
        front: the front matter of the SKILL.md beside it.
        files: what will be in the folder, where there is none yet.
    """
    workflow, findings = bind(document, Workflow)
    findings = [_clearer(finding) for finding in findings]
    if isinstance(document.value, dict):
        rules = _Rules(document)
        findings += rules.check_names(id_, front or {})
        findings += rules.check_tools()
        findings += rules.check_lists()
        findings += rules.check_steps()
        findings += rules.check_refs(folder, files)
        findings += rules.check_guardrails()
    findings.sort(key=lambda f: (f.where.line or 0, f.where.column or 0))
    return (None if findings else workflow), findings


def _clearer(finding: Finding) -> Finding:
    if finding.where.json_path == "$.version" and finding.code == "document-wrong-type":
        return Finding(finding.code, finding.message, where=finding.where, fix='quote it: version: "1.0"')
    return finding


class _Rules:
    """What the types cannot say.  Reads the raw document, so a wrong type elsewhere hides none of it."""

    def __init__(self, document: Document) -> None:
        self.document, self.value = document, document.value
        self.steps = [(path, item, _text(item, "name")) for path, item in self._mappings("steps")]
        self.names = [name for _, _, name in self.steps if name]

    def _finding(self, code: str, message: str, path: tuple[str | int, ...], fix: str | None = None) -> Finding:
        return Finding(code, message, where=self.document.where(path), fix=fix)

    def _bad(self, message: str, *path: str | int, fix: str | None = None) -> Finding:
        return self._finding("document-bad-value", message, path, fix)

    def _mappings(self, key: str) -> list[tuple[tuple[str | int, ...], dict[str, Any]]]:
        items = self.value.get(key)
        items = items if isinstance(items, list) else []
        return [((key, index), item) for index, item in enumerate(items) if isinstance(item, dict)]

    def _unique(self, items: Any, *path: str | int, fold: bool = False) -> Iterator[Finding]:
        seen: set[str] = set()
        for index, text in _texts(items):
            key = text.casefold() if fold else text
            if key in seen:
                yield self._bad(f"{text!r} stands twice", *path, index)
            seen.add(key)

    def check_names(self, id_: str, front: Mapping[str, Any]) -> Iterator[Finding]:
        name = _text(self.value, "name")
        if name and name != id_:
            words = f"the name is {name!r}, but the skill is {id_!r}"
            yield self._finding("workflow-name-mismatch", words, ("name",), "make them equal, or leave the name out")
        elif not name and not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", id_):
            words = f"{id_!r} cannot name a skill that runs"
            yield self._bad(words, "name", fix="a small letter, then small letters, digits, '_' and '-', at most 64")
        other = front.get("name")
        if isinstance(other, str) and other.strip() != (name or id_):
            words = f"the name is {name or id_!r}, but SKILL.md says {other!r}"
            yield self._finding("workflow-name-mismatch", words, ("name",), "make them equal")
        if self.value.get("description") is None and not _text(front, "description"):
            words = "there is no description, here or in a SKILL.md beside it"
            yield self._finding(
                "document-missing-key", words, ("description",), "say what it is for and when to use it"
            )

    def check_tools(self) -> Iterator[Finding]:
        allowed, refused = self.value.get("allowed-tools"), self.value.get("disallowed-tools")
        yield from self._unique(allowed, "allowed-tools")
        yield from self._unique(refused, "disallowed-tools")
        names = {text for _, text in _texts(allowed)}
        for index, text in _texts(refused):
            if text in names:
                words = f"the tool {text!r} is both allowed and disallowed"
                yield self._finding("workflow-tool-conflict", words, ("disallowed-tools", index))
        if self.value.get("agent") is not None and self.value.get("context") != "fork":
            yield self._bad("an agent is only allowed with context: fork", "agent", fix="add: context: fork")

    def check_lists(self) -> Iterator[Finding]:
        yield from self._unique(self.value.get("triggers"), "triggers", fold=True)
        for index, text in _texts(self.value.get("paths")):
            if reason := _not_below(text):
                yield self._bad(f"{text!r} {reason}", "paths", index)

    def check_steps(self) -> Iterator[Finding]:
        seen: set[str] = set()
        graph: dict[str, list[str]] = {}
        for path, step, name in self.steps:
            if name in seen:
                yield self._finding("workflow-duplicate-step", f"two steps are named {name!r}", (*path, "name"))
            seen.add(name)
            depends = _texts(step.get("depends"))
            yield from self._unique(step.get("depends"), *path, "depends")
            for index, text in depends:
                if text not in self.names:
                    words = f"{name!r} depends on {text!r}, which is no step"
                    here = (*path, "depends", index)
                    yield self._finding("workflow-unknown-dependency", words, here, suggest(text, self.names))
            if name:
                graph.setdefault(name, [text for _, text in depends])
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as exc:
            cycle: list[str] = exc.args[1]
            words = f"steps wait for each other: {' → '.join(cycle)}"
            at = next(path for path, _, name in self.steps if name == cycle[0])
            yield self._finding(
                "workflow-dependency-cycle", words, (*at, "depends"), "remove one of these dependencies"
            )

    def check_refs(self, folder: str | None, files: Collection[str]) -> Iterator[Finding]:
        for path, ref in self._mappings("refs"):
            if (ref.get("path") is None) == (ref.get("url") is None):
                yield self._bad("a ref takes exactly one of path and url", *path)
            elif text := _text(ref, "path"):
                yield from self._check_ref(text, (*path, "path"), folder, files)

    def _check_ref(
        self, text: str, path: tuple[str | int, ...], folder: str | None, files: Collection[str]
    ) -> Iterator[Finding]:
        root = folder or "."
        place = os.path.join(root, text)
        away = "\0" not in text and not lies_in(place, root)
        if reason := _not_below(text) or ("leads outside the skill's folder" if away else ""):
            yield self._finding("workflow-ref-escape", f"{text!r} {reason}", path)
        elif not (os.path.exists(place) if folder is not None else text in files):
            yield self._finding("workflow-ref-missing", f"there is no {text!r} in the skill's folder", path)

    def check_guardrails(self) -> Iterator[Finding]:
        ids: set[str] = set()
        for path, rule in self._mappings("guardrails"):
            id_ = _text(rule, "id")
            if id_ and id_ in ids:
                yield self._bad(f"two guardrails have the id {id_!r}", *path, "id")
            ids.add(id_)
            if rule.get("at") == []:
                yield self._bad("checked nowhere, so it can never be broken", *path, "at", fix="leave `at` out")
            for index, subject in _texts(rule.get("at")):
                if subject != FINAL and subject not in self.names:
                    words = f"{subject!r} is neither a step nor {FINAL}"
                    fix = suggest(subject, [*self.names, FINAL])
                    yield self._finding("workflow-unknown-subject", words, (*path, "at", index), fix)
            yield from self._unique(rule.get("at"), *path, "at")
            if isinstance(check := rule.get("check"), dict):
                yield from self._check_check(check, (*path, "check"))

    def _check_check(self, check: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
        given = [key for key in ("artifact", "text", "json") if check.get(key) is not None]
        if len(given) != 1:
            says = f"says {' and '.join(given)}" if given else "says nothing"
            yield self._bad(f"the check {says}; it takes exactly one of artifact, text, json", *path)
        if isinstance(artifact := check.get("artifact"), dict):
            yield from self._check_artifact(artifact, (*path, "artifact"))
        if isinstance(text := check.get("text"), dict):
            yield from self._check_text(text, (*path, "text"))

    def _check_artifact(self, artifact: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
        form = _text(artifact, "format")
        if form and form not in FORMATS and form != "image":
            known = [*sorted(FORMATS), "image"]
            fix = suggest(form, known) or f"known: {', '.join(known)}"
            yield self._bad(f"{form!r} is not a format that can be verified", *path, "format", fix=fix)
        elif form:
            counts = ("width", "height") if form == "image" else FORMATS[form].counts
            minimum = artifact.get("min-count")
            for fact in minimum if isinstance(minimum, dict) else ():
                if fact not in counts:
                    known_counts = f"known: {', '.join(counts)}" if counts else None
                    words = f"nothing counts {fact!r} in a {form} file"
                    yield self._bad(words, *path, "min-count", fact, fix=known_counts)
            if artifact.get("require-keys") and form != "json":
                yield self._bad("require-keys only makes sense for json", *path, "require-keys")
        glob = _text(artifact, "path")
        if glob and (reason := _not_below(glob)):
            yield self._bad(f"{glob!r} {reason}", *path, "path")

    def _check_text(self, text: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
        if not any(value not in (None, []) for value in text.values()):
            yield self._bad("checks nothing, so it can never be broken", *path)
        least, most = text.get("min-chars"), text.get("max-chars")
        if isinstance(least, int) and isinstance(most, int) and least > most:
            yield self._bad(f"min-chars {least} is more than max-chars {most}", *path, "min-chars")
        for key in ("must-match", "must-not-match"):
            value = text.get(key)
            patterns = [((), value)] if isinstance(value, str) else [((i,), item) for i, item in _texts(value)]
            for step, pattern in patterns:
                try:
                    re.compile(pattern)
                except (re.error, OverflowError, RecursionError) as exc:
                    words = f"{pattern!r:.80} is not a regular expression: {exc}"
                    yield self._finding("workflow-bad-pattern", words, (*path, key, *step))


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value.strip() if isinstance(value, str) else ""


def _texts(items: Any) -> list[tuple[int, str]]:
    items = items if isinstance(items, list) else []
    return [(index, item.strip()) for index, item in enumerate(items) if isinstance(item, str)]


def _not_below(path: str) -> str:
    """Return why a path is not a relative POSIX path that stays below its folder."""
    if "\\" in path:
        return "has a backslash; write / between folders"
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return "is not relative"
    return "leads outside" if ".." in path.split("/") else ""
