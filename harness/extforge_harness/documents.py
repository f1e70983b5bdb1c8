"""Read documents, and bind them to pydantic models: unknown keys, wrong types, all at once, with their lines."""

from __future__ import annotations

import difflib
import errno
import sys
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from extforge_verifiers.documents import SIZE_LIMIT
from extforge_verifiers.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from extforge_verifiers.documents import Document, Path

__all__ = ["STDIN", "Model", "bind", "read_source", "suggest"]

STDIN = "<stdin>"  # what standard input is called in messages
_spent: list[Any] = []  # the standard input that has been read


class Model(BaseModel):
    """Base of every document model: frozen, no unknown keys, no conversions between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


M = TypeVar("M", bound=BaseModel)


def read_source(source: str, limit: int = SIZE_LIMIT) -> tuple[str, bytes]:
    """Return what a document is called in messages, and its bytes.

    Args:
        source: a file, or `-` for standard input.
        limit: how many bytes it may have; one more is read, for whoever parses it to say that it is too large.

    Raises:
        OSError: when it cannot be read, and when standard input is asked for twice.
    """
    if source == "-":
        if any(stream is sys.stdin for stream in _spent):
            raise OSError(0, "standard input is read once; name a file for one of the two", STDIN)
        _spent[:] = [sys.stdin]
        return STDIN, sys.stdin.buffer.read(limit + 1)
    if "\0" in source:
        raise OSError(errno.EINVAL, "a NUL in the path", source)
    with open(source, "rb") as stream:
        return source, stream.read(limit + 1)


def suggest(word: str, known: list[str]) -> str | None:
    """Return "did you mean 'kind'?" for "knid", or None when nothing is close."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else None


def bind(document: Document, model: type[M], path: Path = ()) -> tuple[M | None, list[Finding]]:
    """Return the model of the value at `path`, or every reason why there is none."""
    value: Any = document.value
    for step in path:
        value = value[step]
    if value is None and not path:
        return None, [Finding("document-wrong-type", "the document is empty", where=document.where(()))]
    try:
        return model.model_validate(value), []
    except ValidationError as exc:
        errors = [error for error in exc.errors(include_url=False) if not _other_branch(error)]
        return None, [_finding(document, model, path, error) for error in errors]


def _other_branch(error: Mapping[str, Any]) -> bool:
    """Say whether it only tells that a mapping is not the word that could stand there instead."""
    step = error["loc"][-1] if error["loc"] else ""
    return isinstance(step, str) and step.startswith("literal[") and isinstance(error.get("input"), dict)


def _finding(document: Document, model: type[BaseModel], base: Path, error: Mapping[str, Any]) -> Finding:
    loc = _real_path(document, (*base, *error["loc"]))
    kind = str(error["type"])
    if kind == "extra_forbidden":
        name = str(loc[-1])
        known = _keys_at(model, loc[len(base) : -1])
        fix = suggest(name, known) or (f"known keys: {', '.join(known)}" if known else None)
        return Finding("document-unknown-key", f"unknown key {name!r}", where=document.where(loc, key=True), fix=fix)
    if kind == "missing":
        name = str(error["loc"][-1])
        words = f"the key {name!r} is missing"
        return Finding("document-missing-key", words, where=document.where((*loc[:-1], name)))
    code = "document-wrong-type" if kind.endswith("_type") or kind == "model_attributes_type" else "document-bad-value"
    shown = _show(error.get("input"))
    return Finding(code, f"{_words(error)}, not {shown}", where=document.where(loc))


def _words(error: Mapping[str, Any]) -> str:
    message = str(error["msg"])
    for before, after in (
        ("Input should be ", "must be "),
        ("Value error, ", ""),
        ("String should ", "must "),
        ("a valid string", "a text"),
        ("a valid list", "a list"),
        ("a valid dictionary", "a mapping"),
        ("a valid integer", "a whole number"),
        ("a valid boolean", "true or false"),
        ("a valid number", "a number"),
    ):
        message = message.replace(before, after)
    return message.partition(" or instance of ")[0]  # the model's name is ours, not the user's


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _real_path(document: Document, loc: Path) -> Path:
    """Drop the steps that pydantic adds for unions; they are not in the file."""
    real: Path = ()
    for position, step in enumerate(loc):
        if (*real, step) in document.marks or position == len(loc) - 1:
            real = (*real, step)
    return real


def _keys_at(model: type[BaseModel], loc: Path) -> list[str]:
    """Return the keys that are allowed at `loc` inside `model`, as far as the types tell."""
    for step in loc:
        if isinstance(step, int):
            continue
        field = next((f for n, f in model.model_fields.items() if step in (n, f.alias)), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return []
        model = inner
    return sorted(f.alias or n for n, f in model.model_fields.items())


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
