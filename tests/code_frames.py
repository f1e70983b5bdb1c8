"""What turns an example of docs/codes.md into findings: one frame per chapter.

A frame takes a `Case` and returns findings.  An example is a text, or a Python expression that makes bytes; which of
the two stands in the introduction of its chapter, and here.
"""

from __future__ import annotations

import ast
import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import code_frames_plans
import damage

from extforge.explaining import Example, Section
from extforge_harness.acceptance import Acceptance
from extforge_harness.documents import bind
from extforge_verifiers import DocumentError, Finding, Report, parse_requirement, verify_artifact
from extforge_verifiers.checking import check_file
from extforge_verifiers.documents import read_document, read_text
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.frontmatter import check_skill

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
    def deep(self) -> bool:
        return "Deep tier" in self.section.meaning

    def python(self) -> Any:
        """Return the value of the example, a Python expression."""
        used = {node.id for node in ast.walk(ast.parse(self.example.text, mode="eval")) if isinstance(node, ast.Name)}
        files = {form: damage.good(form) for form in used & FORMATS.keys()}
        return eval(self.example.text, {**NAMES, **files, "verify": self.verify})

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


def pdf_of(instructions: bytes) -> bytes:
    """Return a PDF with one page that these instructions draw."""
    import pikepdf

    stream = io.BytesIO()
    with pikepdf.new() as document:
        document.add_blank_page().obj.Contents = document.make_stream(instructions)
        document.save(stream)
    return stream.getvalue()


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
    "pdf_of": pdf_of,
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


def skill_file(case: Case) -> Iterable[Finding]:
    """The example is a SKILL.md in a folder named `notes`."""
    data = case.data()
    text = read_text(data, "SKILL.md")
    return check_skill(f"\ufeff{text}" if data.startswith(b"\xef\xbb\xbf") else text, "SKILL.md", "notes")


FRAMES: dict[str, Frame] = {
    **dict.fromkeys(
        ("Files: all formats", "ZIP archives", "Office documents", "PowerPoint", "Word", "Excel", "PDF"), file_of_python
    ),
    "Texts": file_of_text,
    "Documents": acceptance_file,
    "JSON": file_of_text,
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
