"""Three-way merges: what the generator changed and what a person changed, both kept.

Text is merged by `git merge-file` where there is git, which needs no repository, and else by the same idea on lines
(diff3).  harness_config.yaml is merged by what it says, so that two tools added at one place are two tools.
"""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import shutil
import subprocess
import tempfile
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge.serialise import manifest_text
from extforge_verifiers.documents import parse_yaml
from extforge_verifiers.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Merged", "is_noise", "merge", "merge_lines", "merge_manifest"]

MANIFEST = "harness_config.yaml"
_LABELS = ("yours", "generated before", "generated now")
_SKILL_ID = re.compile(rb"^skill_id:[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged bytes, and why they are no good: markers of conflicts stand in them then."""

    data: bytes
    conflict: str = ""


def merge(path: str, base: bytes, mine: bytes, new: bytes) -> Merged:
    """Return `new` with the changes from `base` to `mine`."""
    if any(b"\0" in data for data in (base, mine, new)):
        return Merged(mine, "it is not text, and both sides changed it")
    unix = mine.replace(b"\r\n", b"\n")
    merged = _merge_text(base, unix, new)
    if os.path.basename(path) == MANIFEST:
        merged = merge_manifest(base, unix, new, merged)
    elif os.path.basename(path) == "SKILL.md" and merged.conflict:
        # The host may have added its skill_id beside a line that changed.
        bare = _merge_text(base, _SKILL_ID.sub(b"", unix, count=1), new)
        found = _SKILL_ID.search(unix)
        if not bare.conflict and found is not None:
            merged = Merged(bare.data.replace(b"---\n", b"---\n" + found[0], 1))
    if mine.count(b"\r\n") > unix.count(b"\n") // 2:
        return Merged(merged.data.replace(b"\n", b"\r\n"), merged.conflict)
    return merged


def _merge_text(base: bytes, mine: bytes, new: bytes) -> Merged:
    git = shutil.which("git")
    merged = _merge_with_git(git, base, mine, new) if git else None
    return merged or merge_lines(base, mine, new)


def _merge_with_git(git: str, base: bytes, mine: bytes, new: bytes) -> Merged | None:
    """Return None when git cannot do it."""
    with tempfile.TemporaryDirectory(prefix="extforge-merge-") as folder:
        paths = []
        for name, data in zip(("mine", "base", "new"), (mine, base, new), strict=True):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "wb") as stream:
                stream.write(data)
        labels = [part for label in _LABELS for part in ("-L", label)]
        # Nobody's settings: the same plan and the same edits give the same bytes everywhere.
        env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_DIR": folder}
        try:
            done = subprocess.run(  # noqa: S603 -- fixed arguments, files of ours
                [git, "merge-file", "-p", *labels, *paths], capture_output=True, check=False, env=env, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    if 0 <= done.returncode < 128:  # the number of conflicts
        return Merged(done.stdout, _count(done.returncode))
    return None


def _count(conflicts: int) -> str:
    return f"{conflicts} place{'s' if conflicts > 1 else ''} changed on both sides" if conflicts else ""


def merge_lines(base: bytes, mine: bytes, new: bytes) -> Merged:
    """Merge line by line; neighbouring changes of both sides are a conflict."""
    old, left, right = (data.splitlines(keepends=True) for data in (base, mine, new))
    out: list[bytes] = []
    conflicts = 0
    for here, ours, theirs in _regions(old, left, right):
        if theirs in (ours, here):
            out += ours
        elif ours == here:
            out += theirs
        else:
            conflicts += 1
            out += [b"<<<<<<< yours\n", *_closed(ours), b"=======\n", *_closed(theirs), b">>>>>>> generated now\n"]
    return Merged(b"".join(out), _count(conflicts))


def _closed(lines: list[bytes]) -> list[bytes]:
    """A marker must begin a line, even after a last line without an end."""
    return [*lines[:-1], lines[-1].rstrip(b"\n") + b"\n"] if lines else []


def _regions(old: list[bytes], left: list[bytes], right: list[bytes]) -> Iterator[tuple[list[bytes], ...]]:
    """Yield (base, mine, new) pieces, cut where all three agree."""
    kept = [_matches(old, side) for side in (left, right)]
    at = [0, 0, 0]
    for number in range(len(old) + 1):
        ends = [number, *(pairs.get(number, -1) for pairs in kept)]
        if number < len(old) and -1 in ends:
            continue  # one side changed this line
        if number == len(old):
            ends = [len(old), len(left), len(right)]
        if at != ends:
            pieces = (old[at[0] : ends[0]], left[at[1] : ends[1]], right[at[2] : ends[2]])
            yield pieces
        if number < len(old):
            yield old[number : number + 1], left[ends[1] : ends[1] + 1], right[ends[2] : ends[2] + 1]
            at = [end + 1 for end in ends]


def _matches(old: list[bytes], side: list[bytes]) -> dict[int, int]:
    """Return which line of `old` is which line of `side`."""
    found = {}
    for block in difflib.SequenceMatcher(None, old, side, autojunk=False).get_matching_blocks():
        found.update({block.a + offset: block.b + offset for offset in range(block.size)})
    return found


# --------------------------------------------------------------------------- harness_config.yaml


def merge_manifest(base: bytes, mine: bytes, new: bytes, text: Merged) -> Merged:
    """Merge by what the documents say; `text` is used when it says that too, because it has the comments.

    Otherwise the person's document gets the generator's changes written into it, comments kept.
    """
    try:
        values = [parse_yaml(data.decode("utf-8"), MANIFEST).value for data in (base, mine, new)]
    except (DocumentError, UnicodeDecodeError) as exc:
        return Merged(text.data, f"your edit is no YAML: {exc}".splitlines()[0])
    conflicts: list[str] = []
    value = _merge_value(values[0], values[1], values[2], "$", conflicts)
    if conflicts:
        return Merged(text.data, f"{', '.join(conflicts)} changed on both sides")
    if not text.conflict and _value(text.data) == value:
        return text
    written = _rewrite(mine, value)
    return Merged(written if _value(written) == value else manifest_text(value).encode("utf-8"))


def _value(data: bytes) -> Any:
    try:
        return parse_yaml(data.decode("utf-8"), MANIFEST).value
    except (DocumentError, UnicodeDecodeError):
        return None


_ABSENT = object()


def _merge_value(base: Any, mine: Any, new: Any, place: str, conflicts: list[str]) -> Any:
    if new in (mine, base):
        return mine
    if mine == base:
        return new
    if all(isinstance(side, dict) for side in (mine, new)):
        return _merge_mapping(base if isinstance(base, dict) else {}, mine, new, place, conflicts)
    if all(isinstance(side, list) for side in (base, mine, new)):
        return _merge_list(base, mine, new, place, conflicts)
    conflicts.append(place)
    return mine


def _merge_mapping(base: Any, mine: Any, new: Any, place: str, conflicts: list[str]) -> dict[str, Any]:
    merged = {}
    for key in dict.fromkeys([*mine, *new]):
        there = base.get(key, _ABSENT), mine.get(key, _ABSENT), new.get(key, _ABSENT)
        value = _merge_value(there[0], there[1], there[2], f"{place}.{key}", conflicts)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _merge_list(base: list[Any], mine: list[Any], new: list[Any], place: str, conflicts: list[str]) -> list[Any]:
    """A list of resources is a set in order: what either side took away goes, what either side added comes."""
    before, ours, theirs = (_by_module(side) for side in (base, mine, new))
    if before is not None and ours is not None and theirs is not None:
        return list(_merge_mapping(before, ours, theirs, place, conflicts).values())
    kept = [item for item in mine if item in new or item not in base]
    added = [item for item in new if item not in base and item not in mine]
    return kept + added


def _by_module(items: list[Any]) -> dict[str, Any] | None:
    found = {item["module"]: item for item in items if isinstance(item, dict) and isinstance(item.get("module"), str)}
    return found if len(found) == len(items) else None


def _rewrite(mine: bytes, value: Any) -> bytes:
    """Return the person's document with `value` in it, its comments kept where their keys are."""
    from ruamel.yaml import YAML  # noqa: PLC0415 -- needed for this one case
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    try:
        document = yaml.load(mine)
        _set(document, value)
        out = io.BytesIO()
        yaml.dump(document, out)
    except (YAMLError, ValueError, TypeError, AttributeError):
        return b""
    return out.getvalue()


def _set(document: Any, value: dict[str, Any]) -> None:
    for key in [key for key in document if key not in value]:
        del document[key]
    for key, item in value.items():
        if isinstance(item, dict) and isinstance(document.get(key), dict):
            _set(document[key], item)
        elif isinstance(item, list) and isinstance(document.get(key), list):
            _set_list(document[key], item)
        elif key not in document or document[key] != item:
            document[key] = item


def _set_list(document: list[Any], items: list[Any]) -> None:
    for index in reversed([i for i, item in enumerate(document) if item not in items]):
        del document[index]
    document.extend(item for item in items if item not in document)


# --------------------------------------------------------------------------- what is no hand edit


def is_noise(path: str, base: bytes, mine: bytes) -> bool:
    """Say whether `mine` differs from `base` only by what tools do: line ends, the host's skill_id, a formatter.

    openJiuwen adds `skill_id` to the front matter of skills, and its static check runs ruff in place.
    """
    unix = mine.replace(b"\r\n", b"\n")
    if unix == base:
        return True
    if os.path.basename(path) == "SKILL.md":
        return _SKILL_ID.sub(b"", unix, count=1) == base
    return path.endswith(".py") and _code(unix) == _code(base) is not None


def _code(data: bytes) -> tuple[str, list[str]] | None:
    """Return what a formatter leaves alone: the syntax tree, and the comments."""
    try:
        tree = ast.dump(ast.parse(data))
        tokens = tokenize.tokenize(io.BytesIO(data).readline)
        comments = [token.string.strip() for token in tokens if token.type == tokenize.COMMENT]
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        return None
    return tree, comments
