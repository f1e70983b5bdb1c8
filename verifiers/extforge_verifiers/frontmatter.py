"""The front matter of SKILL.md: YAML between two lines of `---`, where people trip over YAML.

openJiuwen reads the description from it and takes the skill's name from the folder; its static check splits the
file at the first `---` anywhere, even inside a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extforge_verifiers.documents import Document, parse_yaml
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Skill", "check_skill", "read_skill"]

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_UNQUOTED_COLON = re.compile(r"^([A-Za-z_][\w-]*): (?![\"'|>\[{&*!])(.*: .*)$")
_BRACES = re.compile(r"\{\{.*?\}\}|<[A-Za-z][\w -]*>|\bTODO\b")
NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
)  # what the host's skill installer takes
LONGEST_DESCRIPTION = (
    1024  # characters; agentskills and Claude cut or refuse longer ones
)
_INVALID = "skill_manifest_invalid"


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
        fix = "start the file with a line of three dashes"
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
    code, fix = "skill-front-matter-yaml", finding.fix
    where = finding.where
    for number, line in enumerate(block.splitlines(), 2):
        if match := _UNQUOTED_COLON.match(line):
            fix = f'quote the value: {match[1]}: "{match[2]}"'
            where = Where(
                path, line=number, column=line.index(": ", len(match[1]) + 1) + 1
            )
            break
        if line.startswith("\t"):
            fix = "indent with spaces; YAML does not allow tabs"
            where = Where(path, line=number, column=1)
            break
    return Finding(
        code,
        f"the front matter is not YAML: {finding.message}",
        where=where,
        fix=fix,
        failure_id=_INVALID,
    )


def check_skill(text: str, path: str, folder: str) -> Iterator[Finding]:
    """Yield what is wrong with a SKILL.md in a folder of this name."""
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
    yield from _check_description(skill, value)
    yield from _check_dashes(skill, text)
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
        yield _finding(
            "skill-name-invalid", words, where, "use letters, digits, '.', '_' and '-'"
        )
    elif name != folder:
        words = f"the name is {name!r}, but the folder is {folder!r}, and the host goes by the folder"
        yield Finding(
            "skill-name-folder", words, Severity.WARNING, where, "make them equal"
        )


def _check_description(skill: Skill, value: dict[str, Any]) -> Iterator[Finding]:
    description = value.get("description")
    where = skill.document.where(("description",))
    if description is None or description == "":
        words = "the front matter has no description; the model would only see where the skill lies"
        yield _finding(
            "skill-description-missing",
            words,
            where,
            "say what it knows and when to use it",
        )
    elif not isinstance(description, str):
        words = f"the description is {type(description).__name__}, not a text"
        yield _finding("skill-description-type", words, where, "put it in quotes")
    elif match := _BRACES.search(description):
        words = f"the description still has a placeholder: {match[0]!r}"
        yield Finding("skill-placeholder", words, Severity.WARNING, where)
    elif len(description) > LONGEST_DESCRIPTION:
        words = f"the description has {len(description)} characters; {LONGEST_DESCRIPTION} is the common limit"
        yield Finding("skill-description-long", words, Severity.WARNING, where)


def _check_dashes(skill: Skill, text: str) -> Iterator[Finding]:
    """The host's static check cuts the front matter at the second `---`, wherever it stands."""
    raw = text.replace("\r\n", "\n").splitlines()[1 : skill.body_line - 2]
    for number, line in enumerate(raw, 2):
        if "---" in line and line.strip() != "---":
            words = "'---' inside the front matter, where openJiuwen's own check cuts the file"
            fix = r'write it as "\x2d--" inside double quotes'
            yield Finding(
                "skill-dashes",
                words,
                Severity.WARNING,
                Where(skill.document.source, line=number),
                fix,
            )
