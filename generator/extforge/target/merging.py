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
from extforge_verifiers.frontmatter import read_skill

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Merged", "is_noise", "merge", "merge_lines", "merge_manifest", "with_line_ends"]

MANIFEST = "harness_config.yaml"
_LABELS = ("yours", "generated before", "generated now")
_NAME = re.compile(rb"^name:[^\n]*\n", re.MULTILINE)
_TRIGGER = re.compile(rb"\ntrigger: [^\n]*(?=\n[^ \t]|\Z)")  # on one line, as it is generated
_NESTED = re.compile(rb"\nmetadata:(?:\n [^\n]*)*?(\n +trigger: [^\n]*)(?=\n|\Z)")
_SKILL_ID = re.compile(rb"^skill_id:[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged bytes, and why they are no good: markers of conflicts stand in them then."""

    data: bytes
    conflict: str = ""


def merge(path: str, base: bytes, mine: bytes, new: bytes, favour: str = "") -> Merged:
    """Return `new` with the changes from `base` to `mine`.

    Args:
        path: the file; its name decides how it is merged.
        base: what was generated before.
        mine: what is there.
        new: what is generated now.
        favour: whose version counts where both changed the same place: `mine`, `generated`, or nobody's.
    """
    if any(b"\0" in data for data in (base, mine, new)):
        data = {"mine": mine, "generated": new}.get(favour)
        return Merged(data) if data is not None else Merged(mine, "it is not text, and both sides changed it")
    unix = mine.replace(b"\r\n", b"\n") if _is_windows(base, mine) else mine
    if os.path.basename(path) in ("SKILL.md", "skill.yaml"):
        return _merge_skill(path, base, mine, unix, new, favour)
    merged = _merge_text(base, unix, new, favour)
    if os.path.basename(path) == MANIFEST:
        merged = merge_manifest(base, unix, new, merged, favour)
    return Merged(with_line_ends(base, mine, merged.data), merged.conflict)


def _is_windows(base: bytes, mine: bytes) -> bool:
    """Say whether a person's file has the line ends of Windows, and ours had not."""
    return b"\r\n" not in base and mine.count(b"\r\n") * 2 > mine.count(b"\n")


def with_line_ends(base: bytes, mine: bytes, data: bytes) -> bytes:
    """Return `data` with the line ends that the person's file has."""
    return data.replace(b"\n", b"\r\n") if _is_windows(base, mine) else data


def _merge_text(base: bytes, mine: bytes, new: bytes, favour: str) -> Merged:
    git = shutil.which("git")
    merged = _merge_with_git(git, base, mine, new, favour) if git else None
    return merged or merge_lines(base, mine, new, favour)


def _merge_with_git(git: str, base: bytes, mine: bytes, new: bytes, favour: str = "") -> Merged | None:
    """Return None when git cannot do it."""
    with tempfile.TemporaryDirectory(prefix="extforge-merge-") as folder:
        paths = []
        for name, data in zip(("mine", "base", "new"), (mine, base, new), strict=True):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "wb") as stream:
                stream.write(data)
        labels = [part for label in _LABELS for part in ("-L", label)]
        labels += {"mine": ["--ours"], "generated": ["--theirs"]}.get(favour, [])
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


def merge_lines(base: bytes, mine: bytes, new: bytes, favour: str = "") -> Merged:
    """Merge line by line; neighbouring changes of both sides are a conflict."""
    old, left, right = (data.splitlines(keepends=True) for data in (base, mine, new))
    out: list[bytes] = []
    conflicts = 0
    for here, ours, theirs in _regions(old, left, right):
        if theirs in (ours, here):
            out += ours
        elif ours == here or favour == "generated":
            out += theirs
        elif favour:
            out += ours
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


# --------------------------------------------------------------------------- skills


def _merge_skill(path: str, base: bytes, mine: bytes, unix: bytes, new: bytes, favour: str) -> Merged:
    """Merge a skill that may since be written for other readers: what only that changes, a person did not."""
    told_base, told_mine = _told_as(base, base, new), _told_as(unix, base, new)
    merged = _merge_text(told_base, told_mine, new, favour)
    if merged.conflict:
        # The host may have added its skill_id beside a line that changed.
        bare = _merge_text(told_base, _SKILL_ID.sub(b"", told_mine, count=1), new, favour)
        found = _SKILL_ID.search(told_mine)
        if not bare.conflict and found is not None:
            merged = Merged(bare.data.replace(b"---\n", b"---\n" + found[0], 1))
    if not merged.conflict and os.path.basename(path) == "SKILL.md" and _is_skill(unix) and not _is_skill(merged.data):
        merged = Merged(merged.data, "both changed the front matter, and together it cannot be read")
    return Merged(with_line_ends(base, mine, merged.data), merged.conflict)


def _is_skill(data: bytes) -> bool:
    try:
        read_skill(data.decode("utf-8"), "SKILL.md")
    except (DocumentError, UnicodeDecodeError):
        return False
    return True


def _told_as(data: bytes, base: bytes, new: bytes) -> bytes:
    """Return a skill with name and trigger where and as `new` has them, as far as that is not a person's doing."""
    before, now = _NAME.search(base), _NAME.search(new)
    if before and now:
        data = data.replace(b"\n" + before[0], b"\n" + now[0], 1)
    head, fence, body = data.partition(b"\n---\n")
    if _NESTED.search(new.partition(b"\n---\n")[0]):
        found = _TRIGGER.search(head)
        if found and b"\nmetadata:\n" in head:
            rest = head.replace(found[0], b"", 1)
            head = rest.replace(b"\nmetadata:\n", b"\nmetadata:\n  " + found[0][1:] + b"\n", 1)
        elif found:
            head = head.replace(found[0], b"\nmetadata:\n  " + found[0][1:], 1)
    elif found := _NESTED.search(head):
        rest = head.replace(found[1], b"", 1)
        alone = not re.search(rb"^metadata:\n +\S", rest + b"\n", re.MULTILINE)
        rest = rest.replace(b"\nmetadata:", b"\n" + found[1].strip() + (b"" if alone else b"\nmetadata:"), 1)
        head = rest
    return head + fence + body


# --------------------------------------------------------------------------- harness_config.yaml


def merge_manifest(base: bytes, mine: bytes, new: bytes, text: Merged, favour: str = "") -> Merged:
    """Merge by what the documents say; `text` is used when it says that too, because it has the comments.

    Otherwise the person's document gets the generator's changes written into it, comments kept.
    """
    try:
        values = [parse_yaml(data.decode("utf-8"), MANIFEST).value for data in (base, mine, new)]
    except (DocumentError, UnicodeDecodeError) as exc:
        words = f"your edit cannot be read as a manifest: {exc}".splitlines()[0]
        return text if favour and not text.conflict else Merged(text.data, words)
    conflicts: list[str] = []
    value = _merge_value(values[0], values[1], values[2], "$", _Side(conflicts, favour))
    if conflicts and not favour:
        return Merged(text.data, f"{', '.join(conflicts)} changed on both sides")
    if not text.conflict and _value(text.data) == value:
        return text
    written = _rewrite(mine, value)
    if _value(written) == value:
        return Merged(written)
    if b"#" in mine or favour:  # written anew it would lose what a person wrote there
        return Merged(text.data, "$ changed on both sides, and cannot be written with your comments in place")
    return Merged(manifest_text(value).encode("utf-8"))


@dataclass(frozen=True, slots=True)
class _Side:
    """Notes the places that both sides changed, and says whose version counts there."""

    conflicts: list[str]
    favour: str

    def choose(self, place: str, mine: Any, new: Any) -> Any:
        self.conflicts.append(place)
        return new if self.favour == "generated" else mine


def _value(data: bytes) -> Any:
    try:
        return parse_yaml(data.decode("utf-8"), MANIFEST).value
    except (DocumentError, UnicodeDecodeError):
        return None


_ABSENT = object()


def _merge_value(base: Any, mine: Any, new: Any, place: str, side: _Side) -> Any:
    if new in (mine, base):
        return mine
    if mine == base:
        return new
    if all(isinstance(value, dict) for value in (mine, new)):
        return _merge_mapping(base if isinstance(base, dict) else {}, mine, new, place, side)
    if all(isinstance(value, list) for value in (base, mine, new)):
        return _merge_list(base, mine, new, place, side)
    return side.choose(place, mine, new)


def _merge_mapping(base: Any, mine: Any, new: Any, place: str, side: _Side) -> dict[str, Any]:
    merged = {}
    first = new if list(mine) == list(base) else mine  # a person's order counts where they changed it
    for key in dict.fromkeys([*first, *mine, *new]):
        there = base.get(key, _ABSENT), mine.get(key, _ABSENT), new.get(key, _ABSENT)
        value = _merge_value(there[0], there[1], there[2], f"{place}.{key}", side)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _merge_list(base: list[Any], mine: list[Any], new: list[Any], place: str, side: _Side) -> list[Any]:
    """A list of resources is a set in order: what either side took away goes, what either side added comes."""
    before, ours, theirs = (_by_name(items) for items in (base, mine, new))
    if before is not None and ours is not None and theirs is not None:
        return list(_merge_mapping(before, ours, theirs, place, side).values())
    kept = [item for item in mine if item in new or item not in base]
    added = [item for item in new if item not in base and item not in mine]
    return kept + added


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Return mappings by what names them; None when something does not name them, or names two alike."""
    found = {name: item for item in items if (name := _name_of(item)) is not None}
    return found if len(found) == len(items) else None


def _name_of(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    names = [item[key] for key in ("module", "class", "name", "id") if isinstance(item.get(key), str)]
    return ":".join(names) or None


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
    """Make the list `items`, item by item: those that stay keep their comments."""
    for index, item in enumerate(items):
        rest = range(index, len(document))
        later = [n for n in rest if _is_same(document[n], item)] or [
            n for n in rest if _is_same_module(document[n], item)
        ]
        if not later:
            document.insert(index, item)
            continue
        for gone in reversed(range(index, later[0])):
            del document[gone]
        if isinstance(item, dict) and isinstance(document[index], dict):
            _set(document[index], item)
    del document[len(items) :]


def _is_same_module(one: Any, other: Any) -> bool:
    """Say whether an entry is the other under a new class name: its comments are still about it."""
    both = isinstance(one, dict) and isinstance(other, dict)
    return both and one.get("module") is not None and one.get("module") == other.get("module")


def _is_same(one: Any, other: Any) -> bool:
    name = _name_of(one)
    return name == _name_of(other) if name is not None else bool(one == other)


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
