"""What turns an example of docs/codes.md into findings: one frame per chapter.

A frame takes a `Case` and returns findings.  An example is a text, or a Python expression that makes bytes; which of
the two stands in the introduction of its chapter, and here.
"""

from __future__ import annotations

import ast
import json
import re
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import code_frames_plans
import damage
import trees
import yaml
from support import merged

from extforge import templates
from extforge.explaining import Example, Section
from extforge_harness.acceptance import Acceptance
from extforge_harness.documents import bind
from extforge_harness.skills import check_skill_files
from extforge_verifiers import (
    Contract,
    DocumentError,
    Finding,
    Report,
    parse_requirement,
    verify_artifact,
    verify_extension,
    verify_result,
    verify_run,
)
from extforge_verifiers.checking import check_file
from extforge_verifiers.documents import read_document
from extforge_verifiers.formats import FORMATS

# What an example is, where its code is of no single format.
FORMS = {"text": "txt", "image": "png", "drawing": "pptx", "office": "pptx", "ooxml": "pptx", "xml": "pptx"}


@dataclass(frozen=True)
class Case:
    """One example, and an empty folder to try it in."""

    section: Section
    example: Example
    folder: Path

    @property
    def code(self) -> str:
        return self.section.code

    @property
    def form(self) -> str:
        """The format that the code speaks of, or that the file of the example has."""
        name = Path(self.example.file).suffix[1:] or self.code.partition("-")[0]
        return FORMS.get(name, name)

    @property
    def calls(self) -> bool:
        """Whether the example is a Python expression, where others of its chapter are YAML: it calls a function."""
        return self.example.language == "python" or re.match(r"[a-z]+\(", self.example.text) is not None

    @property
    def deep(self) -> bool:
        return "Deep tier" in self.section.meaning

    def python(self, **names: Any) -> Any:
        """Return the value of the example, a Python expression."""
        used = {node.id for node in ast.walk(ast.parse(self.example.text, mode="eval")) if isinstance(node, ast.Name)}
        files = {form: damage.good(form) for form in used & FORMATS.keys()}
        return eval(self.example.text, {**NAMES, **files, "verify": self.verify, **names})

    def data(self) -> bytes:
        """Return the bytes of an example that is a text; a block of Python makes them."""
        if self.example.language == "python":
            made: bytes = self.python()
            return made
        return self.example.text.encode()

    def verify(self, data: bytes | None, *requirements: str, **options: Any) -> Report:
        """Verify bytes under a name that fits: `verify(pptx, "slides>=3")`; with None there is no file."""
        path = self.folder / (self.example.file or f"example.{self.form}")
        if data is not None:
            path.write_bytes(data)
        bounds = [parse_requirement(bound) for bound in requirements]
        return verify_artifact(path, requirements=bounds, deep=self.deep, **options)


Frame = Callable[[Case], Iterable[Finding]]


# --------------------------------------------------------------------------- files


def png_of(pixels: bytes) -> bytes:
    """Return a PNG of 64 x 48 RGB pixels, with these bytes for its image data."""
    png = damage.good("png")
    return png[:33] + damage.png_chunk(b"IDAT", zlib.compress(pixels)) + png[-12:]


def tiff_of(width: int, height: int, following: int = 0) -> bytes:
    """Return a TIFF with one directory, at 8, of two entries; `following` is where the next one should be."""
    entries = struct.pack("<HHLLHHLL", 256, 4, 1, width, 257, 4, 1, height)
    return b"II*\0" + struct.pack("<LH", 8, 2) + entries + struct.pack("<L", following)


def relate(file: bytes, part: str, identity: str, kind: str, target: str) -> bytes:
    """Let a part of an Office file point at another."""
    folder, _, name = part.rpartition("/")
    words = f'<Relationship Id="{identity}" Type="http://x/{kind}" Target="{target}"/></Relationships>'
    return damage.replaced(f"{folder}/_rels/{name}.rels", "</Relationships>", words)(file)


# What Python expressions may use, beside the names of the formats: small sound files.
NAMES: dict[str, Any] = {
    "re": re,
    # pictures and PDF
    "chunk": damage.png_chunk,
    "flate_damaged": damage.flate_damaged,
    "pdf_of": damage.pdf_of,
    "png_of": png_of,
    "tiff_of": tiff_of,
    # archives
    "entry": lambda archive, at, value: damage.header_field(at, value, central=True)(archive),
    "pack": damage.pack,
    "parts": damage.parts,
    "poke": lambda data, at, value: data[:at] + value + data[at + len(value) :],
    # Office
    "document": "word/document.xml",
    "draw": lambda xml: damage.shape(xml)(damage.good("pptx")),
    "drop": lambda file, part: damage.without(part)(file),
    "edit": lambda file, part, pattern, text: damage.replaced(part, pattern, text)(file),
    "illustrate": lambda picture: damage.with_picture(damage.good("pptx"), picture),
    "ole": damage.ole,
    "put": lambda file, part, body: damage.added(part, body)(file),
    "relate": relate,
    "rename": lambda file, part, to: damage.pack({to if k == part else k: v for k, v in damage.parts(file).items()}),
    "sheet1": "xl/worksheets/sheet1.xml",
    "sheet2": "xl/worksheets/sheet2.xml",
    "slide1": "ppt/slides/slide1.xml",
    "with_columns": damage.with_columns,
    "with_table": damage.with_table,
}


def file_of_text(case: Case) -> Iterable[Finding]:
    """The example is a file; a block of Python makes its bytes, or verifies them itself."""
    return _file(case, case.python() if case.example.language == "python" else case.example.text.encode())


def file_of_python(case: Case) -> Iterable[Finding]:
    """The example makes the bytes of a file, or verifies them itself; a drawing is a text."""
    return file_of_text(case) if case.form == "svg" else _file(case, case.python())


def crashed_check(case: Case) -> Iterable[Finding]:
    """A check of ours has a bug."""
    path = case.folder / "deck.pptx"
    path.write_bytes(damage.good("pptx"))
    return check_file(path, "pptx", {"check_nothing": lambda _: iter([1 // 0])}).findings  # type: ignore[list-item]


def _file(case: Case, value: Any) -> Iterable[Finding]:
    report = value if isinstance(value, Report) else case.verify(value)
    return report.findings


# --------------------------------------------------------------------------- texts


def acceptance_file(case: Case) -> Iterable[Finding]:
    """The example is an acceptance file."""
    name = "acceptance.json" if case.example.language == "json" else "acceptance.yaml"
    try:
        return bind(read_document(case.data(), name), Acceptance)[1]
    except DocumentError as exc:
        return exc.findings


def tool_result(case: Case) -> Iterable[Finding]:
    """The example is merged into a true result about note.json; `claim` makes that file older than the call."""
    for name in ("note.json", "note.txt"):
        (case.folder / name).write_text('{"a": 1}')

    def claim(patch: Any, age: float = 0) -> Iterable[Finding]:
        true = {"success": True, "path": "note.json", "format": "json", "exists": True, "size_bytes": 8, "note": "done"}
        since = (case.folder / "note.json").stat().st_mtime + age
        return verify_result(merged(true, patch), root=str(case.folder), format="json", since=since).findings

    if case.example.language == "python":
        found: Iterable[Finding] = case.python(claim=claim)
        return found
    return claim(json.loads(case.example.text))


def run_record(case: Case) -> Iterable[Finding]:
    """The example is the record of a run in a folder with note.json."""
    (case.folder / "note.json").write_text('{"a": 1}')
    record = case.folder / f"run.{case.example.language or 'json'}"
    record.write_text(case.example.text)
    promised = [Contract("write_note", "json")] if case.code.startswith("contract-") else []
    walk = case.code == "run-unclaimed"
    return verify_run(str(record), said=True, contracts=promised, walk=walk).findings


# --------------------------------------------------------------------------- trees


class Link(str):
    """The target of a symbolic link, in place of the text of a file."""

    __slots__ = ()


Files = dict[str, str | bytes | None]  # None: there is no such file


def lay_out(folder: Path, files: Files) -> Path:
    """Write files below a folder, and return it."""
    for name, content in files.items():
        path = folder / name
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        match content:
            case None:
                pass
            case Link():
                path.symlink_to(content)
            case bytes():
                path.write_bytes(content)
            case _:
                path.write_text(content, encoding="utf-8")
    return folder


def front(lines: str) -> str:
    """Return the SKILL.md of the sound tree with other lines of front matter."""
    text = trees.SKILL
    for line in lines.splitlines():
        key = line.partition(":")[0]
        text = re.sub(rf"^{key}:.*", lambda _, line=line: line, text, flags=re.MULTILINE)  # type: ignore[misc]
    return text


def edited_file(name: str, pattern: str, text: str) -> Files:
    """Return a file of the sound tree with every match replaced."""
    changed = re.sub(pattern, text, trees.FILES[name], flags=re.DOTALL | re.MULTILINE)
    assert changed != trees.FILES[name], f"{pattern} is not in {name}"
    return {name: changed}


def plugin(**keys: Any) -> Files:
    """Return a manifest.json in place of harness_config.yaml."""
    manifest = {"package_type": "plugin", "id": "audit_note", **keys}
    return {"harness_config.yaml": None, "manifest.json": json.dumps(manifest)}


TREE_NAMES = {
    "drop": lambda name: {name: None},
    "edit": edited_file,
    "front": front,
    "link": Link,
    "plugin": plugin,
    "put": lambda name, content: {name: content},
    "skill": trees.SKILL,
}


def tree_of_python(case: Case) -> Iterable[Finding]:
    """The example makes the files in which a tree differs from the sound one."""
    return _tree(case, case.python(**TREE_NAMES))


def skill_of_tree(case: Case) -> Iterable[Finding]:
    """The example is a line of front matter, or a SKILL.md; a block of Python makes files, as for trees."""
    text = case.example.text
    if case.example.language == "python":
        files = case.python(**TREE_NAMES)
    else:
        files = {"skills/notes/SKILL.md": text if case.example.language else front(text)}
    profile = "agentskills" if case.code == "skill-agentskills" else "openjiuwen"
    manifest = f"{trees.MANIFEST}metadata: {{extension: {{skill_profile: {profile}}}}}\n"
    return _tree(case, {"harness_config.yaml": manifest, **files})


def _tree(case: Case, files: Files) -> Iterable[Finding]:
    tree = lay_out(case.folder / trees.NAME, {**trees.FILES, **files})
    return [*verify_extension(str(tree)).findings, *check_skill_files(str(tree / "skills/notes"))]


TEMPLATE: Files = {
    "copier.yml": "_subdirectory: template\n_envops: {undefined: jinja2.StrictUndefined}\n",
    "template/harness_config.yaml.jinja": "schema_version: harness_config.v0.1\nname: {{ name }}\n",
    "examples/smallest.plan.yaml": "- {gap_id: g1, extension_name: note_guide, components: [skill]}\n",
}
RENDERED = ("template-does-not-render", "template-lint", "template-not-deterministic")


def template(case: Case) -> Iterable[Finding]:
    """The example is a file of a sound template; in copier.yml it is merged, and Python makes several files."""
    name, text = case.example.file, case.example.text
    if case.example.language == "python":
        files = case.python()
    elif name == "copier.yml":
        files = {name: yaml.safe_dump(merged(yaml.safe_load(str(TEMPLATE[name])), yaml.safe_load(text)))}
    else:
        files = {name: f"{text}\n"}
    folder = lay_out(case.folder / "notes", {**TEMPLATE, **files})
    if case.code == "template-not-shipped":
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    found = templates.find_template(str(folder))
    if case.code not in RENDERED:  # rendering takes a second
        return templates._check_files(found)
    with ExitStack() as stack:
        if case.code != "template-not-deterministic":  # and once more in another process takes another
            stack.enter_context(mock.patch.object(templates, "_check_same", return_value=()))
        return templates._check_example(found, found.examples[0], host=False).findings


FRAMES: dict[str, Frame] = {
    **dict.fromkeys(
        ("Files: all formats", "ZIP archives", "Office documents", "PowerPoint", "Word", "Excel", "PDF"), file_of_python
    ),
    "Texts": file_of_text,
    "Documents": acceptance_file,
    "JSON": file_of_text,
    "Tool results": tool_result,
    "Runs": run_record,
    "Extension trees": tree_of_python,
    "Skills": skill_of_tree,
    "Templates": template,
    "Images": file_of_python,
    **code_frames_plans.FRAMES,
}

# Where no few lines can show it, the section says in words how it comes about, and one of these brings it about:
# "code: bad" or "code: good".
MAKERS: dict[str, Frame] = {"check-crashed: bad": crashed_check, **code_frames_plans.MAKERS}


def findings_of(chapter: str, case: Case) -> list[Finding]:
    """Return what an example yields."""
    example = case.example
    return list((FRAMES[chapter] if example.text else MAKERS[f"{case.code}: {example.kind}"])(case))
