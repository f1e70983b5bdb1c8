"""Artifact contracts: what an artifact is, who reads it, who shows it, and one example that proves they agree.

The parser of a file is the artifact verifier: what it accepts is real, and no runtime gets a laxer one.  Whatever is
malformed becomes a `Malformed`, which is shown; nothing is dropped silently.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from extforge_harness.documents import Model, bind
from extforge_harness.runtimes.examples import build_impostor
from extforge_verifiers.documents import read_document
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Verdict, Where
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.results import read_result
from extforge_verifiers.verify import verify_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "BUILT_IN",
    "TOOL_RESULT",
    "ArtifactContract",
    "Malformed",
    "Parsed",
    "call",
    "check_round_trip",
    "load_contracts",
    "parse_file",
    "parse_result",
    "show",
]

_HERE = "extforge_harness.runtimes.contracts"
Dotted = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", description="module:function")]


class ArtifactContract(Model):
    """One kind of artifact."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    display_name: Annotated[str, Field(min_length=1, max_length=80)]
    source: Literal["file", "event", "fence"] = Field(description="a produced file, a JSON event, or a fenced block")
    descriptor: Annotated[str, Field(min_length=1)] = Field(description="its suffix, event name or fence language")
    parser: Dotted
    renderer: Dotted
    example: str | dict[str, Any] | None = Field(None, description="a minimal instance, for events and fences")
    example_builder: Dotted | None = Field(None, description="makes the bytes of a minimal file from the contract's id")
    related: list[str] = Field(default=[], description="capability ids")
    wire_text: str = Field("", description="what the model is told about it")

    @property
    def literal(self) -> str | None:
        """The example as text, where it is one."""
        return json.dumps(self.example, ensure_ascii=False) if isinstance(self.example, dict) else self.example


@dataclass(frozen=True, slots=True)
class Parsed:
    """An artifact that is what it claims."""

    contract: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """Something that claims to be an artifact and is not; it is shown, never dropped."""

    contract: str
    reason: str


def parse_file(value: Any, contract: ArtifactContract) -> Parsed | Malformed:
    """Hold the bytes of a file against the verifier of its format."""
    if not isinstance(value, bytes):
        return Malformed(contract.id, f"must be bytes, not {type(value).__name__}")
    with tempfile.TemporaryDirectory(prefix="extforge-contract-") as folder:
        path = os.path.join(folder, f"example{contract.descriptor}")
        with open(path, "wb") as stream:
            stream.write(value)
        report = verify_artifact(path, contract.id)
    if report.verdict is Verdict.PASS:
        return Parsed(contract.id, report.facts)
    problem = report.findings[0].message if report.findings else report.open_question or "nothing could be checked"
    return Malformed(contract.id, problem)


class _Result(Model):
    """What an artifact tool answers; further facts, such as slides, are welcome."""

    model_config = {**Model.model_config, "extra": "allow"}

    success: bool
    path: str | None = None
    absolute_path: str | None = None
    format: str | None = None
    exists: bool | None = None
    size_bytes: Annotated[int, Field(ge=0)] | None = None
    error: str | None = None


def parse_result(value: Any, contract: ArtifactContract) -> Parsed | Malformed:
    """Read a tool result: `success` with a path and what is there, or an `error`."""
    result = read_result(value)
    if result is None:
        return Malformed(contract.id, "is not a tool result: an object with success")
    try:
        found = _Result.model_validate(result)
    except ValidationError as exc:
        error = exc.errors()[0]
        return Malformed(contract.id, f"{'.'.join(str(step) for step in error['loc'])}: {error['msg']}")
    missing = [] if found.success else [] if found.error else ["error"]
    if found.success:
        missing = [key for key in ("format", "exists", "size_bytes") if getattr(found, key) is None]
        missing += [] if found.path or found.absolute_path else ["path"]
    if missing:
        return Malformed(contract.id, f"lacks {', '.join(missing)}")
    return Parsed(contract.id, result)


def show(value: Parsed | Malformed) -> str:
    """Return one line for people; a malformed artifact says so."""
    if isinstance(value, Malformed):
        return f"malformed {value.contract}: {value.reason}"
    facts = ", ".join(f"{k}: {v}" for k, v in value.facts.items() if isinstance(v, (str, int, float)))
    return f"{value.contract} ({facts})" if facts else value.contract


def _file(form: str) -> ArtifactContract:
    row = FORMATS[form]
    return ArtifactContract(
        id=form,
        display_name=f"{form.upper()} file",
        source="file",
        descriptor=row.suffixes[0],
        parser=f"{_HERE}:parse_file",
        renderer=f"{_HERE}:show",
        example_builder="extforge_harness.runtimes.examples:build_example",
        wire_text=f"A {form.upper()} file exists only when its tool answers success: true with its path and size.",
    )


TOOL_RESULT = ArtifactContract(
    id="tool_result",
    display_name="Tool result",
    source="event",
    descriptor="tool_result",
    parser=f"{_HERE}:parse_result",
    renderer=f"{_HERE}:show",
    example={"success": True, "path": "report.pptx", "format": "pptx", "exists": True, "size_bytes": 28000},
)
BUILT_IN: tuple[ArtifactContract, ...] = (*(_file(form) for form in FORMATS), TOOL_RESULT)


@cache
def _resolve(dotted: str) -> Any:
    module, _, name = dotted.partition(":")
    return getattr(importlib.import_module(module), name)


def call(contract: ArtifactContract, value: Any) -> Parsed | Malformed:
    """Return what a contract's parser makes of a value."""
    found: Parsed | Malformed = _resolve(contract.parser)(value, contract)
    return found


def check_round_trip(contract: ArtifactContract, *, pure: bool = False) -> Iterator[Finding]:
    """Yield what does not hold about a contract: its example is accepted, an impostor is refused, both are shown.

    With `pure` only a literal example is parsed: no file is made.
    """
    try:
        parser, renderer = _resolve(contract.parser), _resolve(contract.renderer)
        builder = _resolve(contract.example_builder) if contract.example_builder else None
    except (ImportError, AttributeError) as exc:
        yield Finding("runtime-contract-import", f"the contract {contract.id} does not import: {exc}")
        return
    if contract.source == "file" and builder is not None and pure:
        return
    example = contract.example if builder is None else builder(contract.id)
    impostor = build_impostor(contract.id) if contract.source == "file" else "{ not an artifact"
    good, bad = parser(example, contract), parser(impostor, contract)
    if not isinstance(good, Parsed):
        words = f"the parser of {contract.id} refuses its own example: {getattr(good, 'reason', good)}"
        yield Finding("runtime-contract-example", words)
    if not isinstance(bad, Malformed):
        words = f"the parser of {contract.id} accepts an impostor"
        yield Finding("runtime-contract-impostor", words, fix="a parser is never loosened to make a runtime pass")
    elif bad.reason not in renderer(bad):
        words = f"the renderer of {contract.id} hides why something is malformed"
        yield Finding("runtime-contract-hidden", words, fix="show the reason; nothing is dropped silently")


def load_contracts(path: str) -> tuple[ArtifactContract, ...]:
    """Return the contracts of a `contracts.yaml`: a list, usually empty.

    Raises:
        DocumentError: with every problem in it.
    """
    try:
        with open(path, "rb") as stream:
            document = read_document(stream.read(), path)
    except OSError as exc:
        words = f"cannot be read: {exc.strerror}"
        raise DocumentError.because("runtime-contract-unreadable", words, Where(path)) from exc
    items = document.value if isinstance(document.value, list) else None
    if items is None:
        words = "must be a list of contracts; [] when there are none"
        raise DocumentError.because("document-wrong-type", words, Where(path))
    found: list[ArtifactContract] = []
    findings: list[Finding] = []
    for index in range(len(items)):
        contract, problems = bind(document, ArtifactContract, (index,))
        findings += problems
        if contract is not None:
            findings += _taken(contract, [*BUILT_IN, *found], document.where((index, "id")))
            found.append(contract)
    if findings:
        raise DocumentError(path, findings)
    return tuple(found)


def _taken(contract: ArtifactContract, others: Iterable[ArtifactContract], where: Where) -> Iterator[Finding]:
    if any(contract.id == other.id for other in others):
        words = f"the contract {contract.id!r} exists already; a second reading of the same artifact would drift"
        yield Finding("runtime-contract-taken", words, where=where)
    if contract.example is None and contract.example_builder is None:
        yield Finding("runtime-contract-example", f"the contract {contract.id} has no example", where=where)
