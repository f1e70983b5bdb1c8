"""The front matter of SKILL.md: YAML between two lines of `---`, where people trip over YAML.

openJiuwen reads the description from it and takes the skill's name from the folder; it splits the file at the first
two `---` anywhere, even inside a value, and reads YAML 1.1, where `yes` is no text.

The agentskills specification (agentskills.io) is narrower; its reference validator, `skills-ref`, also reads strict
YAML.  Both load in openJiuwen.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge_verifiers.documents import Document, parse_yaml
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SKILL_PROFILES", "Skill", "check_skill", "read_skill"]

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*)")
# "To do" only where it opens the text: there are skills about such comments.
_BRACES = re.compile(r"\{\{.*?\}\}|<[A-Za-z][\w -]*>|^\W{0,3}TODO\b")
NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
)  # what the host's skill installer takes
LONGEST_DESCRIPTION = (
    1024  # characters; agentskills and Claude cut or refuse longer ones
)
SKILL_PROFILES = ("openjiuwen", "agentskills")  # whom a SKILL.md is written for
_AGENTSKILLS_KEYS = (
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
)
_AGENTSKILLS_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_COMPATIBILITY = 500
_INVALID = "skill_manifest_invalid"
_NAMES = "use letters, digits, '.', '_' and '-', and begin with a letter or digit"


@dataclass(frozen=True, slots=True)
class Skill:
    """A SKILL.md: its front matter and its body."""

    document: Document
    body: str
    body_line: int


def _finding(code: str, message: str, where: Where, fix: str | None = None) -> Finding:
    return Finding(code, message, where=where, fix=fix, failure_id=_INVALID)


def read_skill(text: str, path: str) -> Skill:
    """Split a SKILL.md and parse its front matter.

    Raises:
        DocumentError: when there is none, or it is not YAML; with line and fix.
    """
    if not text.startswith("---"):
        start = text.lstrip("\ufeff \t\r\n")
        fix = "start the file with the lines '---', 'name: ...', 'description: ...' and '---'"
        words = (
            "there is no front matter"
            if not start.startswith("---")
            else "something stands before the front matter"
        )
        raise DocumentError(
            path,
            [_finding("skill-front-matter-missing", words, Where(path, line=1), fix)],
        )
    fences = list(_FENCE.finditer(text.replace("\r\n", "\n")))
    text = text.replace("\r\n", "\n")
    if len(fences) < 2:
        words = "the front matter is not closed by a line of three dashes"
        raise DocumentError(
            path, [_finding("skill-front-matter-missing", words, Where(path, line=1))]
        )
    block = text[fences[0].end() + 1 : fences[1].start()]
    body_line = text.count("\n", 0, fences[1].end()) + 2
    try:
        document = parse_yaml(block, path, line_offset=1)
    except DocumentError as exc:
        raise DocumentError(
            path, [_explain(block, path, finding) for finding in exc.findings]
        ) from None
    return Skill(document, text[fences[1].end() :].lstrip("\n"), body_line)


def _explain(block: str, path: str, finding: Finding) -> Finding:
    """Say what people usually did when YAML stopped here."""
    fix, where = finding.fix, finding.where
    lines = block.splitlines()
    for number, line in enumerate(lines, 2):
        if line.startswith("\t"):
            fix = "indent with spaces; YAML does not allow tabs"
            where = Where(path, line=number, column=1)
            break
    else:
        for number in _suspects(lines, (finding.where.line or 2) - 2):
            key, value = _ENTRY.fullmatch(lines[number]).groups()  # type: ignore[union-attr]
            quoted = f"{key}: {_quote(value)}"
            if _loads("\n".join([*lines[:number], quoted, *lines[number + 1 :]])):
                fix = f"quote the value: {quoted}"
                colon = value.find(": ")
                column = len(lines[number]) - len(value) + max(colon, 0) + 1
                where = Where(path, line=number + 2, column=column)
                break
    return Finding(
        "skill-front-matter-yaml",
        f"the front matter is not YAML: {finding.message}",
        where=where,
        fix=fix,
        failure_id=_INVALID,
    )


def _suspects(lines: list[str], stopped: int) -> list[int]:
    """Return the entries that are no YAML even alone, the ones nearest to where the parser stopped first."""
    found = [
        number
        for number, line in enumerate(lines)
        if _ENTRY.fullmatch(line) and not _loads(line)
    ]
    return sorted(found, key=lambda number: abs(number - stopped))[:10]


def _quote(value: str) -> str:
    """Return a value as YAML in double quotes; quotes around it that did not hold are taken off first."""
    bare = value.strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        bare = bare[1:-1]
    return json.dumps(bare.replace('\\"', '"'), ensure_ascii=False)


def _loads(block: str) -> bool:
    try:
        parse_yaml(block, "")
    except DocumentError:
        return False
    return True


def check_skill(
    text: str, path: str, folder: str, profile: str = SKILL_PROFILES[0]
) -> Iterator[Finding]:
    """Yield what is wrong with a SKILL.md in a folder of this name.

    What only agentskills refuses is a warning when `profile` says that the file is written for it, a mere fact when
    nobody has said for whom it is (an empty text), and nothing for `openjiuwen`.
    """
    if text.startswith("\ufeff"):
        words = "the file starts with a byte order mark, which hides the front matter from the host"
        yield _finding(
            "skill-byte-order-mark",
            words,
            Where(path, line=1),
            "save it as UTF-8 without BOM",
        )
        text = text[1:]
    try:
        skill = read_skill(text, path)
    except DocumentError as exc:
        yield from exc.findings
        return
    value = skill.document.value
    if not isinstance(value, dict):
        words = "the front matter must be a mapping with name and description"
        yield _finding("skill-front-matter-yaml", words, Where(path, line=2))
        return
    yield from _check_name(skill, value, folder)
    text = text.replace("\r\n", "\n")
    yield from _check_description(skill, value, text)
    yield from _check_host_reading(skill, value, text)
    severity = Severity.WARNING if profile == "agentskills" else Severity.INFO
    problems = _agentskills_problems(skill, value, text)
    for where, words, fix in problems if profile != SKILL_PROFILES[0] else ():
        message = f"agentskills does not take it: {words}"
        yield Finding("skill-agentskills", message, severity, where, fix)
    if not skill.body.strip():
        words = "there is nothing below the front matter"
        yield Finding(
            "skill-body-empty",
            words,
            Severity.WARNING,
            Where(path, line=skill.body_line),
        )


def _check_name(skill: Skill, value: dict[str, Any], folder: str) -> Iterator[Finding]:
    name = value.get("name")
    where = skill.document.where(("name",))
    if name is None:
        words = "the front matter has no name"
        yield _finding("skill-name-missing", words, where, f"add: name: {folder}")
    elif not isinstance(name, str):
        words = f"the name is {name!r}, not a text"
        yield _finding("skill-name-type", words, where, f'quote it: name: "{name}"')
    elif not NAME.fullmatch(name):
        words = f"{name!r} cannot name a skill"
        yield _finding("skill-name-invalid", words, where, _NAMES)
    elif name != folder:
        words = f"the name is {name!r}, but the folder is {folder!r}, and the host goes by the folder"
        yield Finding(
            "skill-name-folder", words, Severity.WARNING, where, "make them equal"
        )


def _check_description(
    skill: Skill, value: dict[str, Any], text: str
) -> Iterator[Finding]:
    description = value.get("description")
    where = skill.document.where(("description",))
    if description is None or (
        isinstance(description, str) and not description.strip()
    ):
        words = "the front matter has no description; the model would only see where the skill lies"
        yield _finding(
            "skill-description-missing",
            words,
            where,
            "say what it knows and when to use it",
        )
        return
    if not isinstance(description, str):
        words = f"the description is {type(description).__name__}, not a text"
        yield _finding("skill-description-type", words, where, "put it in quotes")
        return
    if match := _BRACES.search(description):
        words = f"{match[0]!r} in the description reads as a placeholder or a tag"
        fix = "say what is meant; skill formats allow no tags in descriptions"
        yield Finding("skill-placeholder", words, Severity.WARNING, where, fix)
    if len(description) > LONGEST_DESCRIPTION:
        words = f"the description has {len(description)} characters; {LONGEST_DESCRIPTION} is the common limit"
        yield Finding("skill-description-long", words, Severity.WARNING, where)
    line = text.split("\n")[where.line - 1] if where.line else ""
    entry = _ENTRY.fullmatch(line)
    if entry and entry[2][0] not in "\"'|>" and " #" in entry[2]:
        words = "what follows ' #' in the description is a comment, and lost"
        fix = f"quote the value: description: {_quote(entry[2])}"
        yield Finding("skill-description-comment", words, Severity.WARNING, where, fix)


def _agentskills_problems(
    skill: Skill, value: dict[str, Any], text: str
) -> Iterator[tuple[Where, str, str | None]]:
    """Yield (place, what agentskills does not allow, what to do), beyond what is wrong for everybody."""
    where = skill.document.where
    for key in value:
        if key not in _AGENTSKILLS_KEYS:
            words = f"{key!r} is none of its keys"
            yield where((key,), key=True), words, "move it below metadata"
    name = value.get("name")
    if isinstance(name, str) and not _AGENTSKILLS_NAME.fullmatch(name):
        words = f"the name {name!r} is not small letters, digits and single hyphens, 64 at most"
        yield where(("name",)), words, "rename it, and its folder"
    size = value.get("compatibility", "-")
    if not isinstance(size, str) or not 0 < len(size) <= _LONGEST_COMPATIBILITY:
        words = (
            f"compatibility is not a text of 1 to {_LONGEST_COMPATIBILITY} characters"
        )
        yield where(("compatibility",)), words, None
    more = value.get("metadata", {})
    if not isinstance(more, dict) or any(
        isinstance(item, (dict, list)) for item in more.values()
    ):
        words = "metadata is not a mapping of texts"
        yield where(("metadata",)), words, None
    yield from _not_strict(text, skill)


def _not_strict(text: str, skill: Skill) -> Iterator[tuple[Where, str, str | None]]:
    """Yield the first thing that its reference validator, which reads StrictYAML, has no notion of."""
    import yaml  # noqa: PLC0415 -- slow to import

    odd = (
        yaml.FlowMappingStartToken,
        yaml.FlowSequenceStartToken,
        yaml.AnchorToken,
        yaml.AliasToken,
        yaml.TagToken,
    )
    block = "\n".join(text.split("\n")[1 : skill.body_line - 2])
    try:
        token = next((t for t in yaml.scan(block) if isinstance(t, odd)), None)
    except (yaml.YAMLError, ValueError):
        return  # PyYAML is stricter than YAML 1.2 here; the host's reading is reported
    if token is not None:
        mark = token.start_mark
        place = Where(skill.document.source, line=mark.line + 2, column=mark.column + 1)
        words = "its validator reads no [lists] or {mappings} on one line, no anchors and no tags"
        yield place, words, "write one item per line, or put the text in quotes"


def _check_host_reading(
    skill: Skill, value: dict[str, Any], text: str
) -> Iterator[Finding]:
    """OpenJiuwen cuts at the second `---`, wherever it stands, and reads the rest as YAML 1.1 of 2005."""
    import yaml  # noqa: PLC0415 -- slow to import

    parts = text.split("---", 2)
    cut = text.count("\n", 0, len(text) - len(parts[2])) + 1
    where = Where(skill.document.source, line=cut)
    early = cut < skill.body_line - 1
    try:
        seen = yaml.safe_load(parts[1]) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        seen = None
    if early:
        words = "'---' inside the front matter, where openJiuwen cuts the file"
        fix = r'write it as "\x2d--" inside double quotes, or leave it out of comments'
        lost = not isinstance(seen, dict) or not {"name", "description"} <= seen.keys()
        severity = Severity.ERROR if lost else Severity.WARNING
        failure = _INVALID if lost else None
        yield Finding("skill-dashes", words, severity, where, fix, failure)
    if not isinstance(seen, dict):
        return
    for key in ("name", "description"):
        if isinstance(value.get(key), str) and not isinstance(seen.get(key, ""), str):
            words = f"openJiuwen reads the {key} {value[key]!r} as {seen[key]!r}, which is not a text"
            fix = f"quote it: {key}: {_quote(value[key])}"
            where = skill.document.where((key,))
            yield _finding(f"skill-{key}-type", words, where, fix)
