"""What is in the text formats: data as it was given, structure from the inputs alone, nothing that runs."""

from __future__ import annotations

import base64
import csv
import io
import random
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import Plans, design, load_work

from extforge_verifiers import Limits, Report, verify_artifact
from extforge_verifiers.formats.csv import _Broken, _Table
from extforge_verifiers.formats.html import _Page

FORMS = {"csv": "order_csv_export", "md": "release_notes_md", "html": "status_html_page", "svg": "order_flow_svg"}
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><script>", "]]>", "&lt;&amp;", "{{ x }}", "a\nb",
    "# not a heading", "- not a list", "1. not a list", "| a | b |", "```", "> not a quote", "<!-- x -->", "中文 😀",
)  # fmt: skip


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = Plans(tmp_path_factory.mktemp("text")).generate(*(design(name) for name in FORMS.values())).target
    root = made / "openjiuwen/extensions/harness"
    return {form: load_work(root / name, f"tools.{name}") for form, name in FORMS.items()}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(tools: dict[str, Any], form: str, **inputs: Any) -> str:
    result = tools[form].run({**inputs, "output_path": f"x.{form}", "overwrite": True})
    assert result["success"] is True, result
    return Path(f"x.{form}").read_bytes().decode("utf-8")


# --------------------------------------------------------------------------- csv


CELLS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=12
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(CELLS | st.integers() | st.none(), CELLS | st.sampled_from(["a\nb", 'say "hi"', "a,b;c\td|e"])), max_size=5),
    delimiter=st.sampled_from(",;\t|"),
)  # fmt: skip
def test_csv_comes_back_as_it_went_in(tools: dict[str, Any], rows: list[tuple[Any, str]], delimiter: str) -> None:
    text = written(
        tools, "csv", headers=["a", "b"], rows=[list(r) for r in rows], delimiter=delimiter, keep_formulas=True
    )
    back = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert back == [["a", "b"], *(["" if v is None else str(v) for v in row] for row in rows)]
    assert text.endswith("\r\n")


def test_csv_texts_that_spreadsheets_would_run_are_guarded(tools: dict[str, Any]) -> None:
    rows = [["=1+1", -5], ["+49 30 12", "-5.5"], ["@SUM(A1)", True], ["\tx", "a=b"], ["-2+3", "+12%"]]
    text = written(tools, "csv", headers=["=a", "b"], rows=rows)
    back = list(csv.reader(io.StringIO(text, newline="")))
    assert back == [["'=a", "b"], ["'=1+1", "-5"], ["'+49 30 12", "-5.5"], ["'@SUM(A1)", "true"], ["'\tx", "a=b"], ["'-2+3", "+12%"]]  # fmt: skip
    result = tools["csv"].run({"headers": ["a"], "rows": [["=1"], ["x"]], "output_path": "y.csv"})
    assert result["guarded"] == 1
    kept = tools["csv"].run({"headers": ["a"], "rows": [["=1"]], "output_path": "z.csv", "keep_formulas": True})
    assert "guarded" not in kept
    assert Path("z.csv").read_text() == "a\n=1\n"


def test_csv_with_a_byte_order_mark_and_required_columns(tools: dict[str, Any], plans: Plans) -> None:
    text = written(tools, "csv", headers=["城市"], rows=[["北京"]], byte_order_mark=True)
    assert text == "\ufeff城市\r\n北京\r\n"
    spec = {"artifact": {"format": "csv", "required_columns": ["id"], "minimum": {"records": 2}}}
    tree = plans.tree(design("id_export", tools=[{"does": spec}]))
    module = load_work(tree, "tools.id_export")
    assert "the column 'id' is required" in module.run({"headers": ["x"], "rows": [], "output_path": "a.csv"})["error"]
    assert "records>=2" in module.run({"headers": ["id"], "rows": [[1]], "output_path": "a.csv"})["error"]
    assert module.run({"headers": ["id"], "rows": [[1], [2]], "output_path": "a.csv"})["records"] == 2
    assert plans.codes(design("id_export", tools=[{"does": {"artifact": {"format": "md", "required_columns": ["x"]}}}])) == ["plan-required-keys"]  # fmt: skip


def test_csv_delimiters_in_quotes_do_not_mislead_the_check(tools: dict[str, Any]) -> None:
    result = tools["csv"].run(
        {"headers": ["a,b,c", "d"], "rows": [["1", "x,y"]], "delimiter": ";", "output_path": "q.csv"}
    )
    assert (result["columns"], result["records"]) == (2, 1)


def test_a_style_for_a_format_without_one_is_pointed_out(plans: Plans) -> None:
    for form, codes in (("csv", ["plan-style-unused"]), ("md", ["plan-style-unused"]), ("html", []), ("svg", [])):
        does = {"artifact": {"format": form, "style": {"accent": "#112233"}}}
        assert plans.codes(design("id_export", tools=[{"does": does}])) == codes


# --------------------------------------------------------------------------- md


@pytest.mark.parametrize("text", [t for t in HOSTILE if t != "```"])
def test_markdown_structure_comes_from_the_inputs_alone(tools: dict[str, Any], text: str) -> None:
    table = {"headers": [text, "n"], "rows": [[text, 1]]}
    section = {"heading": text, "paragraphs": [text], "bullets": [text], "numbered": [text], "table": table}
    lines = written(tools, "md", title=text, sections=[section]).split("\n")
    assert [line[:3] for line in lines if line.startswith("#")] == ["# " + lines[0][2], "## "]
    assert sum(line.startswith("- ") for line in lines) == 1
    assert sum(line.startswith("1. ") for line in lines) == 1
    assert sum(line.startswith("| ") for line in lines) == 3
    assert not any(line.startswith((">", "```")) for line in lines)
    assert not re.search(r"(?<!\\)<(script|img|/style|!--(?! -->))", "\n".join(lines))
    for line in lines:
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3


def test_markdown_keeps_inline_markup_and_code(tools: dict[str, Any]) -> None:
    code = "def f():\n    return '```' and \"````\"\n"
    text = written(tools, "md", title="T", sections=[{"paragraphs": ["**bold** [a](b) `<tag>`"], "code": {"text": code, "language": "python"}}])  # fmt: skip
    assert "**bold** [a](b) `<tag>`" in text
    assert f"`````python\n{code}`````" in text
    result = tools["md"].run({"title": "T", "sections": [{"code": {"text": "# no heading"}}], "output_path": "h.md"})
    assert result["headings"] == 1


def test_markdown_links_a_picture_from_where_the_document_is(tools: dict[str, Any], scratch: Path) -> None:
    (scratch / "a pic.png").write_bytes(b"\x89PNG\r\n")
    result = tools["md"].run({"title": "T", "sections": [{"image": "a pic.png"}], "output_path": "deep/x.md"})
    assert result["success"] is True
    assert "![a pic](../a%20pic.png)" in Path("deep/x.md").read_text()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("ab #-+*>|`=~1.)[]:<!/\\_\n"), min_size=1, max_size=24))
def test_no_paragraph_begins_another_block(tools: dict[str, Any], text: str) -> None:
    body = written(tools, "md", title="T", sections=[{"heading": "H", "paragraphs": [text]}]).split("## H\n", 1)[1]
    for line in body.split("\n"):
        assert not re.match(
            r" {0,3}(#{1,6}(\s|$)|>|```|~~~|[-+*](\s|$)|\d{1,9}[.)](\s|$)|\||=+\s*$|-{2,}\s*$)", line
        ), line


# --------------------------------------------------------------------------- html


class Page(HTMLParser):
    """What a page has: tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_html_shows_every_text_and_runs_none(tools: dict[str, Any], text: str) -> None:
    section = {
        "heading": text, "paragraphs": [text], "bullets": [text], "numbered": [text], "code": {"text": text},
        "table": {"headers": [text], "rows": [[text]]},
        "diagram": {"boxes": [{"id": "a", "label": text}, {"id": "b", "label": "B"}], "arrows": [{"from": "a", "to": "b", "label": text}]},
        "chart": {"title": text, "categories": [text], "series": [{"name": text, "values": [1]}]},
    }  # fmt: skip
    style = {"font": f"x'; {text} }} * {{", "accent": "#FFEE00"}
    page = Page(written(tools, "html", title=text, subtitle=text, author=text, sections=[section], style=style))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "iframe", "object", "link", "form"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    shown = " ".join(page.text.split())
    for line in text.split("\n"):
        assert shown.count(" ".join(line.split())) >= 7
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert "default-src 'none'" in policy


def test_html_carries_its_pictures_and_its_language(tools: dict[str, Any], scratch: Path) -> None:
    (scratch / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    page = Page(written(tools, "html", title="季度", sections=[{"image": "p.png"}]))
    (image,) = [attributes for tag, attributes in page.tags if tag == "img"]
    assert str(image["src"]).startswith("data:image/png;base64,")
    assert dict(page.tags)["html"]["lang"] == "zh"
    (scratch / "p.png").write_text("no picture")
    result = tools["html"].run({"title": "T", "sections": [{"image": "p.png"}], "output_path": "y.html"})
    assert "not a PNG, JPEG, GIF or WebP picture" in result["error"]


# --------------------------------------------------------------------------- svg


LABELS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=30,
)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e9, 1e9) | st.sampled_from([0, 1e-9, 1e300])


def drawing(text: str) -> ET.Element:
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "title", "g", "rect", "text", "line", "path", "polyline", "polygon", "circle"}  # fmt: skip
    for element in root.iter():
        for name, value in element.attrib.items():
            assert "nan" not in value or name == "font-family", (element.tag, name, value)
            assert "inf" not in value or name == "font-family", (element.tag, name, value)
    return root


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_chart_is_drawn_inside_its_picture(tools: dict[str, Any], data: st.DataObject) -> None:
    names = data.draw(st.lists(LABELS, min_size=1, max_size=6))
    kind = data.draw(st.sampled_from(["bar", "line"]))
    values = st.lists(NUMBERS, min_size=len(names), max_size=len(names))
    series = data.draw(
        st.lists(st.builds(lambda n, v: {"name": n, "values": v}, LABELS, values), min_size=1, max_size=3)
    )
    root = drawing(written(tools, "svg", chart={"type": kind, "categories": names, "series": series}))
    _, _, wide, high = (float(n) for n in root.attrib["viewBox"].split())
    marks = [e for e in root.iter(f"{SVG}rect") if e.get("fill") != "white" and not e.get("rx")]
    for mark in marks:
        x, y, w, h = (float(mark.attrib[k]) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + w <= wide
        assert y >= -1
        assert y + h <= high
    for point in root.iter(f"{SVG}circle"):
        assert 0 <= float(point.attrib["cy"]) <= high


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_diagram_has_every_box_and_arrow_and_no_boxes_overlap(tools: dict[str, Any], data: st.DataObject) -> None:
    labels = data.draw(st.lists(LABELS, min_size=1, max_size=8))
    ends = st.sampled_from([str(n) for n in range(len(labels))])
    arrows = data.draw(st.lists(st.fixed_dictionaries({"from": ends, "to": ends, "label": LABELS}), max_size=10))
    boxes = [{"id": str(n), "label": label} for n, label in enumerate(labels)]
    root = drawing(written(tools, "svg", title="T", diagram={"boxes": boxes, "arrows": arrows}))
    assert len(list(root.iter(f"{SVG}polygon"))) == len(arrows)
    found = [
        tuple(float(e.attrib[k]) for k in ("x", "y", "width", "height")) for e in root.iter(f"{SVG}rect") if e.get("rx")
    ]
    assert len(found) == len(boxes)
    for number, (x, y, w, h) in enumerate(found):
        for x2, y2, w2, h2 in found[number + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_sizes_are_kept_and_texts_are_texts(tools: dict[str, Any]) -> None:
    table = {"headers": ["<b>", "n"], "rows": [["&amp; " * 20, 1.5], [None, True]]}
    root = drawing(written(tools, "svg", title="季度 <i>", table=table, width=800, height=600))
    assert (root.get("width"), root.get("height")) == ("800", "600")
    texts = "".join(e.text or "" for e in root.iter(f"{SVG}text"))
    assert "<b>" in texts
    assert "季度 <i>" in texts


@pytest.mark.skipif(not shutil.which("chromium"), reason="Chromium is not installed")
def test_a_browser_draws_the_picture_and_the_page(tools: dict[str, Any], scratch: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    chart = {
        "categories": ["华东", "华北"],
        "series": [{"name": "Q2", "values": [3, 5]}, {"name": "Q3", "values": [4, -2]}],
    }
    diagram = {"boxes": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}], "arrows": [{"from": "a", "to": "b"}]}
    written(tools, "svg", title="Revenue 收入", chart=chart)
    written(tools, "html", title="Status", sections=[{"paragraphs": ["Text"], "chart": chart, "diagram": diagram}])
    for form in ("svg", "html"):
        shot = scratch / f"{form}.png"
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile"]
        command += [f"--screenshot={shot}", "--window-size=1000,1200", (scratch / f"x.{form}").as_uri()]
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        with image.open(shot) as picture:
            colours = {c for n, c in picture.convert("RGB").getcolors(1 << 20) if n > 300}
        assert {(0x1F, 0x4E, 0x79), (0xE0, 0x7B, 0x39), (255, 255, 255)} <= colours  # both series and the ground


# --------------------------------------------------------------------------- what the checks take and what they find


def checked(form: str, data: str | bytes) -> Report:
    path = Path(f"checked.{form}")
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return verify_artifact(path)


def codes_of(form: str, data: str | bytes) -> set[str]:
    return {finding.code for finding in checked(form, data).findings}


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html><meta charset=utf-8><title>D</title><canvas id=c></canvas><script>draw()</script>",
        "<form><label>Name<input></label><button>Go</button></form>",
        "<strong>x</strong>",
        "<blockquote>x</blockquote>",
        "<nav>x</nav>",
        "<dl><dt>a<dd>b</dl>",
        "<details><summary>a</summary>b</details>",
        "Hello<br>World",
        "<my-app>x</my-app>",
        "<frameset><frame src=a.html></frameset>",
        '<div data-x="a<b">hi</div>',
        f'<body style="background: url(data:image/png;base64,{"A" * 600_000})">hi</body>',
        "<!-- made by hand --><p>x</p>",
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>x</body></html>',
        *(
            f"<html><body>{element}</body></html>"
            for element in (
                "<audio controls></audio>", "<object data=a></object>", "<embed src=a>", "<canvas></canvas>",
                "<picture><source srcset=a></picture>", "<textarea></textarea>", "<select></select>", "<math></math>",
            )
        ),
        "<!doctype html><meta http-equiv=refresh content='0;url=a.html'>",
        '<meta charset="iso-8859-1"><p>Größe</p>'.encode("latin-1"),
        "<meta http-equiv=Content-Type content='text/html; charset=GBK'><p>中文</p>".encode("gbk"),
        "<p>中文</p>".encode("utf-16"),
        "<div id=app>{{ message }}</div><script src=vue.js></script>",
        "<p>In a template:</p><pre>{{ message }}</pre>",
        "<p>x</p><pre>\n# a comment\n# in a script\n</pre>",
    ],
)  # fmt: skip
def test_pages_of_every_kind_pass_without_a_word(page: str | bytes) -> None:
    assert checked("html", page).findings == ()


@pytest.mark.parametrize(
    ("page", "code", "words"),
    [
        ("```html\n<!doctype html><p>Hi</p>\n```\n", "html-fenced", "fence"),
        ("Here it is:\n\n```html\n<!doctype html><p>Hi</p>\n```\n", "html-fenced", "fence"),
        ('{"html": "<p>Hi</p>"}', "artifact-placeholder", "JSON text"),
        ('import sys\n\nprint("<p>Hi</p>")\n', "artifact-placeholder", "program: 'import sys'"),
        ("<?php $a = 1 ?><p>Hi</p>", "artifact-placeholder", "PHP"),
        ('page = """<!doctype html><p>Hi</p>"""', "html-stray-text", "page ="),
        ("# Title\n\n- a\n\n<img src=a.png>\n", "artifact-placeholder", "Markdown"),
        ("<img src=a.png>\n\n# Title\n", "html-stray-text", "# Title"),
        ("Here it is:\n<!doctype html><p>Hi</p>", "html-stray-text", "Here it is:"),
        ("<html><body><template><p>x</p></template></body></html>", "html-blank", "nothing to see"),
        ("3 < 4 and <your-name>, <T>", "html-no-element", "no HTML element"),
        ("<p class='never closed", "html-no-element", "no HTML element"),
        ("<p>Hello {{ name }}</p>", "placeholder-text", "{{ name }}"),
        ("<meta charset=euc-jp><p>中文</p>".encode("gb18030") + b"\xff", "text-encoding", "not EUC_JP"),
        ("<meta charset=hex><p>中文</p>".encode("gbk"), "text-encoding", "not UTF-8"),
        ("<meta charset=iso-8859-12><p>中文</p>".encode("gbk"), "text-encoding", "not UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_page_is_named(page: str | bytes, code: str, words: str) -> None:
    (finding,) = checked("html", page).findings
    assert finding.code == code
    assert words in finding.message


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("<>/!-=\"' ab#\n")) | st.sampled_from(["<p a='>' b=\">\">x</p><!-- <b> --><script>'<i>'</script>y"]), cut=st.integers(0, 60))  # fmt: skip
def test_a_page_is_the_same_in_pieces(text: str, cut: int) -> None:
    whole, pieces = _Page(), _Page()
    whole.feed(text, final=True)
    for start in range(0, len(text), cut + 1):
        pieces.feed(text[start : start + cut + 1])
    pieces.feed("", final=True)
    for page in (whole, pieces):
        assert (page.elements, page.text, page.before, page.seen) == (whole.elements, whole.text, whole.before, whole.seen)  # fmt: skip


@pytest.mark.parametrize(
    "unit", ["<a ", "<!--", "<p a='", "<script>", "=", "<", "</", '"', "<a-b>", "```\n", "import x\n", "<x>a"]
)
def test_a_page_of_nothing_but_openings_takes_its_length_in_time(unit: str) -> None:
    report = verify_artifact(large(unit), limits=Limits(seconds=20))
    assert "budget-exceeded" not in {finding.code for finding in report.findings}


def large(unit: str) -> Path:
    path = Path("large.html")
    path.write_text(unit * ((3 << 20) // len(unit)), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["txt", "md", "html"])
def test_zero_bytes_far_behind_are_found(form: str) -> None:
    assert codes_of(form, b"<p>hello</p>" * 600 + bytes(100_000)) == {"text-binary"}
    assert codes_of(form, ("<p>hello</p>" * 600 + "\0" * 100_000).encode("utf-16")) == {"text-binary"}


NOISE = random.Random(1).randbytes(300)


@pytest.mark.parametrize(
    "table",
    [
        "[id],[name]\n1,2\n",
        "{guid},name\n1,2\n",
        "{0f3a-1},name\n1,2\n",
        "<id>,<name>\n1,2\n",
        "comment\nI like it.\nMe too.\n",
        "digest\n" + "\n".join(f"{n:064x}" for n in range(9)) + "\n",
        "a,b\r1,2\r3,4\r",
        "a,b\n1," + "y" * 300_000 + "\n",
        "a,b\n1," + "y" * 3_000_000 + "\n",
        'a,b\n1,"' + 'y, ""z""\n' * 30_000 + '"\n',
        'path,b\n"C:\\",2\n',
        "a,b\n,\n,1\n",
    ],
    ids=lambda table: f"{table[:16]} {len(table)}",
)
def test_tables_of_every_kind_pass_without_a_word(table: str) -> None:
    report = checked("csv", table)
    assert (report.verdict, report.findings) == ("pass", ())
    assert report.facts["columns"] == len(re.split(r"[\r\n]", table)[0].split(","))


@pytest.mark.parametrize(
    ("data", "code", "severity", "words"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "csv-no-records", "error", "a Markdown table"),
        ("Sales\n\na | b\n--- | ---\n1 | 2\n", "csv-no-records", "error", "a Markdown table"),
        (base64.encodebytes(b"%PDF-1.4 " + NOISE), "csv-no-records", "error", "base64 text of a PDF document"),
        (base64.encodebytes(NOISE), "csv-not-table", "warning", "base64 text"),
        ("import os\n\ndef f(a, b):\n    return a\n", "csv-no-records", "error", "the source of a program"),
        ("x = 1\nprint(x)\n", "csv-not-table", "warning", "the source of a program"),
        ("id\nimport os\n", "csv-not-table", "warning", "the source of a program"),
        ("<?xml version='1.0'?>\n<a><b>1,2</b></a>\n", "csv-no-records", "error", "XML"),
        ("<table>\n<tr><td>1,2</td></tr>\n</table>\n", "csv-no-records", "error", "an HTML page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "csv-no-records", "error", "Git LFS"),
        ('[\n "a"\n]\n', "csv-no-records", "error", "JSON text"),
        ('["a", "b"]\n["c", "d"]\n', "csv-no-records", "error", "JSON text"),
        ("Sales went up in the north.\nThey fell in the south.\n", "csv-not-table", "warning", "prose"),
        ("# Sales\n\nThey went up.\n", "csv-not-table", "warning", "Markdown"),
        ("a,b\n,\n , \n", "csv-no-records", "warning", "all empty"),
        ("'a','b'\n'1,2','it is'\n", "csv-dialect", "warning", "apostrophes"),
        ('a,b\n"say \\\\"hi\\\\", x",2\n'.replace("\\\\", "\\"), "csv-dialect", "warning", "backslash"),
        ('a,b\n"1"x,2\n', "csv-syntax", "error", "',' expected after '\"'"),
        ('a,b\n"1,2\n3,4\n', "csv-syntax", "error", "a quote never ends"),
    ],
)
def test_what_is_no_table_is_named(data: str | bytes, code: str, severity: str, words: str) -> None:
    (finding,) = checked("csv", data).findings
    assert (finding.code, finding.severity) == (code, severity)
    assert words in finding.message


@settings(max_examples=500, deadline=None)
@given(text=st.text(st.sampled_from("a\",\n '"), max_size=20))
def test_records_are_those_of_the_csv_module(text: str) -> None:
    rows = text.split("\n")
    reader = csv.reader((f"{row}\n" for row in rows), strict=True)
    try:
        expected = [len(record) for record in reader if record]
    except csv.Error:
        expected = None
    try:
        table = _Table(rows, ",", '"')
    except _Broken as exc:
        assert expected is None
        assert exc.line == reader.line_num
    else:
        assert sorted(table.widths.elements()) == sorted(expected or [])
        assert table.width == (expected or [0])[0]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("md", "Write this:\n\n```html\n<p>{{ message }}</p>\n```\n"),
        ("md", "Write `{{ message }}` or ``{{ a }}``.\n"),
        ("md", "Set `x` to ${{ secrets.TOKEN }}.\n"),
        ("md", "# Plan\n\n## Todo:\n\n- nothing\n"),
        ("md", "$\\frac{{a}}{b}$, $ x^{{n}} $ and ${{a}}$, $({{b}})$\n\n$$ {{c}} $$\n"),
        ("txt", "run: echo ${{ secrets.TOKEN }}\n"),
        ("txt", "\\textbf{{x}} and \\frac{{a}}{b}\n"),
        ("txt", "Todo:\n- nothing\n"),
        ("html", "<div id=app>{{ message }}</div><script src=vue.js></script>"),
    ],
)
def test_braces_of_code_are_no_placeholders(form: str, text: str) -> None:
    assert checked(form, text).findings == ()


@pytest.mark.parametrize("text", ["Hello {{ name }}", "Dear {{客户名称}},", "{{#if paid}}Thanks{{/if}}", "It costs $5, {{ name }}, not $6", "{{- name -}}", "**TODO:** write this", "lorem ipsum"])  # fmt: skip
def test_placeholders_in_prose_are_found(text: str) -> None:
    for form in ("txt", "md", "html"):
        assert codes_of(form, f"<p>{text}</p>" if form == "html" else text) == {"placeholder-text"}


@pytest.mark.parametrize(
    ("text", "fenced"),
    [
        ("```markdown\n# T\n```\n", True),
        ("~~~md\n# T\n~~~\n", True),
        ("```markdown\n# T\n\n```python\nx\n```\n\nmore\n```\n", True),
        ("```markdown\n# T\n\n```python\nx\n```\n\n```sh\ny\n```\n```\n", True),
        ("```markdown\n# T\n```\n\nmakes a title; run\n\n```sh\nmake\n```\n", False),
        ("```python\nx\n```\n", False),
    ],
)
def test_a_document_wrapped_whole_is_told_from_one_that_begins_and_ends_with_code(text: str, fenced: bool) -> None:
    assert codes_of("md", text) == ({"md-fenced"} if fenced else set())
    assert codes_of("md", text.replace("\n", "\r")) == ({"md-fenced"} if fenced else set())


def test_text_in_a_foreign_object_is_something_to_see() -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><foreignObject><p xmlns="http://www.w3.org/1999/xhtml">{}</p></foreignObject> x</svg>'
    assert codes_of("svg", drawing.format("Hello")) == set()
    assert codes_of("svg", drawing.format(" ")) == {"svg-blank"}


@pytest.mark.parametrize("unit", ["x`", "$", "$$", "$a", "{{", "todo: ", "`" * 9])
def test_a_document_of_nothing_but_marks_takes_its_length_in_time(unit: str) -> None:
    report = checked("md", "x" + unit * (200_000 // len(unit)))
    assert report.verdict == "pass"


@pytest.mark.parametrize("unit", ['"', ',"', '"",', ',"x""', "|-", "| ", "<a ", "[", "a b ", "class a:", '\\"'])
def test_a_table_of_nothing_but_marks_takes_its_length_in_time(unit: str) -> None:
    start = time.monotonic()
    checked("csv", "a|b\n" + unit * (1_000_000 // len(unit)))
    checked("csv", unit * (1_000_000 // len(unit)))
    assert time.monotonic() - start < 20
