"""How documents look, as far as a machine can say: rendered by other programs, with ink where ink belongs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import Plans, design, load_work

from extforge.samples import sample_inputs

PNG = pytest.importorskip("PIL.Image")
soffice = pytest.mark.skipif(not shutil.which("soffice"), reason="LibreOffice (soffice) is not installed")
poppler = pytest.mark.skipif(not shutil.which("pdftoppm"), reason="poppler-utils (pdftoppm) is not installed")


def ink(path: Path) -> float:
    """Return the share of a picture that is not white."""
    with PNG.open(path) as image:
        counts = image.convert("L").histogram()
    return sum(counts[:245]) / sum(counts)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One sample document per format, made by a generated tool."""
    folder = tmp_path_factory.mktemp("looks")
    plans = Plans(folder)
    forms = ("pptx", "docx", "xlsx", "pdf")
    checked = plans.check(*(design(f"sample_{form}_report") for form in forms))
    result = plans.generate(*(design(f"sample_{form}_report") for form in forms))
    found = {}
    for blueprint in checked.blueprints:
        (tool,) = blueprint.tools
        work = load_work(result.target / blueprint.root, tool.work)
        inputs: dict[str, Any] = sample_inputs(
            tool, str(folder / f"sample.{tool.format}"), "季度经营汇报 Quarterly review"
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENJIUWEN_EXTENSION_FOLDERS", str(folder))
            answer = work.run(inputs)
        assert answer["success"], answer
        found[tool.format] = Path(answer["absolute_path"])
    return found


@pytest.fixture(scope="module")
def pages(documents: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Every document as pictures of its pages."""
    folder = tmp_path_factory.mktemp("pages")
    profile = f"-env:UserInstallation=file://{folder}/profile"
    found = {}
    for form, path in documents.items():
        pdf = path
        if form != "pdf":
            out = folder / form
            subprocess.run(
                ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", str(out), str(path)],
                capture_output=True,
                timeout=180,
                check=True,
            )
            pdf = out / "sample.pdf"
        assert pdf.is_file()
        subprocess.run(["pdftoppm", "-r", "50", "-png", str(pdf), str(folder / f"{form}-page")], check=True)
        found[form] = sorted(folder.glob(f"{form}-page*.png"))
    return found


@soffice
@poppler
def test_every_page_of_every_document_has_ink_and_room(pages: dict[str, list[Path]]) -> None:
    assert {form: len(found) for form, found in pages.items()} == {"pptx": 4, "docx": 1, "xlsx": 2, "pdf": 1}
    for form, found in pages.items():
        for page in found:
            assert 0.004 < ink(page) < 0.5, (form, page.name, ink(page))


@soffice
@poppler
def test_a_chart_page_has_far_more_ink_than_a_title(pages: dict[str, list[Path]]) -> None:
    assert ink(pages["pptx"][2]) > 2 * ink(pages["pptx"][1])


@poppler
def test_chinese_in_a_pdf_is_drawn_and_not_left_out(documents: dict[str, Path], tmp_path: Path) -> None:
    done = subprocess.run(
        ["pdftoppm", "-r", "50", "-png", str(documents["pdf"]), str(tmp_path / "p")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""  # poppler complains of fonts that it does not have
    fonts = subprocess.run(["pdffonts", str(documents["pdf"])], capture_output=True, text=True, check=True).stdout
    embedded = [line for line in fonts.splitlines()[2:] if "Helvetica" not in line]
    assert embedded
    assert all(line.split()[-5] == "yes" for line in embedded), fonts
