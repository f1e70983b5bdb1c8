"""Good files pass, every kind of damage is found and named, and no bytes make a check raise."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from pathlib import Path

import pytest
from damage import CASES, DEEP_CASES, Damage, good, jpeg, pack, parts, replaced, utf8_damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.checking import Requirement, parse_requirement
from extforge_verifiers.formats import FORMATS, foreign_formats
from extforge_verifiers.reports.text import finding_lines


def write(tmp_path: Path, form: str, data: bytes) -> Path:
    path = tmp_path / f"file.{form}"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_real_file_passes_without_a_word(tmp_path: Path, form: str) -> None:
    report = verify_artifact(write(tmp_path, form, good(form)))
    assert report.verdict is Verdict.PASS
    assert report.findings == ()
    assert report.facts["size_bytes"] == len(good(form))


@pytest.mark.parametrize(("form", "damage", "codes"), [pytest.param(f, d, c, id=f"{f}: {i}") for f, i, d, c in CASES])
def test_damage_is_found_and_named(tmp_path: Path, form: str, damage: Damage, codes: set[str]) -> None:
    report = verify_artifact(write(tmp_path, form, damage(good(form))), form)
    assert {finding.code for finding in report.findings} == codes
    warned = {f.code for f in report.findings if f.severity == "warning"}
    assert (report.verdict is Verdict.PASS) == (warned == codes)
    for finding in report.findings:
        assert finding.message
        assert (finding.failure_id is None) == (finding.severity == "warning")


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_real_file_passes_the_deep_tier_without_a_word(tmp_path: Path, form: str) -> None:
    report = verify_artifact(write(tmp_path, form, good(form)), deep=True)
    assert report.verdict is Verdict.PASS
    assert report.findings == ()
    assert report.skipped == {}


@pytest.mark.parametrize(
    ("form", "damage", "codes"), [pytest.param(f, d, c, id=f"{f}: {i}") for f, i, d, c in DEEP_CASES]
)
def test_what_only_the_deep_tier_sees(tmp_path: Path, form: str, damage: Damage, codes: set[str]) -> None:
    path = write(tmp_path, form, damage(good(form)))
    assert verify_artifact(path).verdict is Verdict.PASS
    report = verify_artifact(path, deep=True)
    assert {finding.code for finding in report.findings} == codes
    warned = {f.code for f in report.findings if f.severity == "warning"}
    assert (report.verdict is Verdict.PASS) == (warned == codes)


def test_a_library_that_is_missing_is_named_and_fails_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    report = verify_artifact(write(tmp_path, "pptx", good("pptx")), deep=True)
    assert report.skipped == {"deep:check_pptx": "needs lxml, which is not installed"}
    assert report.verdict is Verdict.PASS


def test_a_document_that_needs_a_password_is_undetermined_when_looked_into(tmp_path: Path) -> None:
    import pikepdf

    path = tmp_path / "locked.pdf"
    with pikepdf.open(io.BytesIO(good("pdf"))) as document:
        document.save(path, encryption=pikepdf.Encryption(owner="o", user="u"))
    assert (verify_artifact(path).verdict, verify_artifact(path).facts["encrypted"]) == (Verdict.PASS, True)
    deep = verify_artifact(path, deep=True)
    assert deep.verdict is Verdict.UNDETERMINED
    assert deep.open_question == "the document needs a password"


@pytest.mark.parametrize(
    ("form", "facts"),
    [
        ("pptx", {"slides": 2}),
        ("docx", {"tables": 1}),
        ("xlsx", {"sheets": 2, "rows": 2}),
        ("pdf", {"pages": 2, "encrypted": False}),
        ("json", {"records": 2, "type": "object"}),
        ("png", {"width": 64, "height": 48, "frames": 1}),
        ("jpg", {"width": 64, "height": 48, "frames": 1}),
        ("gif", {"width": 64, "height": 48, "frames": 1}),
        ("webp", {"width": 64, "height": 48, "frames": 1}),
        ("bmp", {"width": 64, "height": 48, "frames": 1}),
        ("tiff", {"width": 64, "height": 48, "frames": 1}),
        ("csv", {"records": 2, "columns": 3}),
        ("md", {"headings": 2}),
        ("html", {"elements": 6}),
        ("svg", {"shapes": 1}),
        ("jsonl", {"records": 2}),
        ("zip", {"members": 2}),
    ],
)
def test_facts_are_counted(tmp_path: Path, form: str, facts: dict[str, object]) -> None:
    report = verify_artifact(write(tmp_path, form, good(form)))
    assert {key: report.facts[key] for key in facts} == facts


def test_pages_in_object_streams_are_counted(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter()
    for _ in range(3):
        writer.add_blank_page(100, 100)
    path = tmp_path / "x.pdf"
    writer.write(path)
    assert verify_artifact(path).facts["pages"] == 3


def five_pages(tmp_path: Path, *attached: bytes) -> Path:
    import pikepdf
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream)
    for number in range(5):
        canvas.drawString(72, 700, f"page {number}")
        canvas.showPage()
    canvas.save()
    path = tmp_path / "five.pdf"
    with pikepdf.open(stream) as document:
        for number, data in enumerate(attached):
            document.attachments[f"a{number}"] = data
        document.save(path, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return path


@pytest.mark.parametrize("incremental", [False, True])
def test_pages_that_were_deleted_are_not_counted(tmp_path: Path, incremental: bool) -> None:
    import pypdf

    source, path = five_pages(tmp_path), tmp_path / "four.pdf"
    writer = pypdf.PdfWriter(source, incremental=True) if incremental else pypdf.PdfWriter(clone_from=source)
    del writer.pages[0]
    writer.write(path)
    for deep in (False, True):
        bounds = [parse_requirement("pages==4")]
        report = verify_artifact(path, requirements=bounds, deep=deep)
        assert (report.facts["pages"], report.verdict) == (4, Verdict.PASS)
        assert verify_artifact(path, requirements=[parse_requirement("pages>=5")], deep=deep).verdict is Verdict.FAIL


def test_pages_of_attachments_are_not_counted(tmp_path: Path) -> None:
    path = five_pages(tmp_path, good("pdf"), b"1 0 obj << /Type /Page >>\n" * 9)
    assert b"/Type /Page >>\n" in path.read_bytes()
    assert verify_artifact(path).facts["pages"] == verify_artifact(path, deep=True).facts["pages"] == 5


def test_a_page_that_is_twice_in_the_tree_is_two_pages(tmp_path: Path) -> None:
    import pikepdf

    path = tmp_path / "twice.pdf"
    with pikepdf.open(five_pages(tmp_path)) as document:
        kids = document.Root.Pages.Kids
        kids.append(kids[0])
        document.Root.Pages.Count = 6
        document.save(path)
    assert verify_artifact(path).facts["pages"] == verify_artifact(path, deep=True).facts["pages"] == 6


@pytest.mark.parametrize(
    ("find", "by"),
    [
        pytest.param(rb"/Count 5", b"/Count 9", id="a count that is not so"),
        pytest.param(rb"startxref\s+\d+", b"startxref\n7", id="startxref leads nowhere"),
        pytest.param(rb"(?m)^0000000015", b"0000000016", id="a wrong place of an object"),
        pytest.param(rb"/Kids \[ (\d+ 0 R)", rb"/Kids [ 99 0 R", id="a page that is not there"),
        pytest.param(rb"/Kids \[ (\d+ 0 R)", b"/Kids [ TOP 0 R", id="a tree in a circle"),
    ],
)
def test_pages_are_not_counted_where_the_tree_cannot_be_followed(tmp_path: Path, find: bytes, by: bytes) -> None:
    data = five_pages(tmp_path).read_bytes()
    (top,) = set(re.findall(rb"/Pages (\d+) 0 R", data))
    damaged = re.sub(find, by.replace(b"TOP", top), data)
    assert damaged != data
    report = verify_artifact(write(tmp_path, "pdf", damaged), requirements=[parse_requirement("pages>=1")])
    assert "pages" not in report.facts
    assert "requirement-unproven" in {f.code for f in report.findings}


@pytest.mark.parametrize("form", ["webp", "png", "gif", "tiff"])
def test_tiers_agree_on_frames_and_on_the_size_of_the_first(tmp_path: Path, form: str) -> None:
    sizes = [(64, 48), (32, 24)] if form == "tiff" else [(64, 48), (64, 48)]
    frames = [Image.linear_gradient("L").rotate(turn).resize(size) for turn, size in zip((0, 90), sizes, strict=True)]
    path = tmp_path / f"file.{form}"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    bounds = [parse_requirement("width>=50"), parse_requirement("frames==2")]
    for deep in (False, True):
        report = verify_artifact(path, requirements=bounds, deep=deep)
        assert (report.verdict, report.findings) == (Verdict.PASS, ())
        assert report.facts["height"] == 48


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"restart_marker_rows": 1}, {"subsampling": 0, "quality": 100}]
)
def test_whole_photos_pass_the_deep_tier_without_a_word(tmp_path: Path, options: dict[str, object]) -> None:
    report = verify_artifact(write(tmp_path, "jpg", jpeg(**options)), deep=True)
    assert (report.verdict, report.findings) == (Verdict.PASS, ())


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_bitmaps_without_a_file_header_pass(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "clip.dib"
    Image.linear_gradient("L").resize((64, 48)).convert(mode).save(path)
    assert not path.read_bytes().startswith(b"BM")
    for deep in (False, True):
        report = verify_artifact(path, deep=deep)
        assert (report.verdict, report.findings, report.facts["width"]) == (Verdict.PASS, (), 64)
    path.write_bytes(path.read_bytes()[:-9])
    assert {f.code for f in verify_artifact(path).findings} == {"bmp-truncated"}


def test_large_nonsense_is_looked_through_quickly(tmp_path: Path) -> None:
    for form, data in (
        ("pdf", b"%PDF-1.4\n" + b"1 0 obj /Type /Page " * 500_000 + b"/Root /Catalog\nstartxref\n9\n%%EOF"),
        ("pdf", b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer" + b" " * 9_000_000 + b"\nstartxref\n9\n%%EOF"),
        ("pdf", b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer" + b"(" * 9_000_000 + b"\nstartxref\n9\n%%EOF"),
        ("jpg", b"\xff\xd8" + b"\xff" * 10_000_000),
        ("jpg", b"\xff\xd8" + b"\xff\xd0" * 5_000_000),
        ("jpg", b"\xff\xd8\xff\xda\0\2" + b"\xff\0" * 5_000_000),
    ):
        begin = time.process_time()
        verify_artifact(write(tmp_path, form, data))
        assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("bound", "codes"),
    [
        pytest.param("slides>=2", set(), id="holds"),
        pytest.param("slides>=3", {"requirement-unmet"}, id="does not hold"),
        pytest.param("slides==2", set(), id="exactly"),
        pytest.param("slides<2", {"requirement-unmet"}, id="less"),
        pytest.param("pages>=1", {"requirement-unproven"}, id="nothing counts it"),
    ],
)
def test_requirements_are_held_against_facts(tmp_path: Path, bound: str, codes: set[str]) -> None:
    report = verify_artifact(write(tmp_path, "pptx", good("pptx")), requirements=[parse_requirement(bound)])
    assert {f.code for f in report.findings} == codes


@pytest.mark.parametrize("text", ["slides", "slides=>3", "3>slides", "slides>=x", ""])
def test_a_requirement_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="slides>=3"):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("key", "missing"),
    [("a", False), ("/a/1", False), ("/a/5", True), ("/名", False), ("b", True), ("/a/x", True), ("/a/-1", True)],
)
def test_required_keys_are_looked_up_in_json(tmp_path: Path, key: str, missing: bool) -> None:
    report = verify_artifact(write(tmp_path, "json", good("json")), keys=[key])
    assert [f.code for f in report.findings] == (["json-key-missing"] if missing else [])


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        pytest.param(b'{"a": 1}\n{"a": 2}\n', "json-syntax", "name it .jsonl", id="JSON Lines"),
        pytest.param('{"a": 1}'.encode("utf-16"), "json-not-utf8", "it is UTF-16 text", id="UTF-16"),
        pytest.param('{"a": 1}'.encode("utf-32"), "json-not-utf8", "it is UTF-32 text", id="UTF-32"),
        pytest.param('{"a": "ü"}'.encode("latin-1"), "json-not-utf8", "byte 0xfc at offset 7", id="Latin-1"),
    ],
)
def test_what_is_nearly_json_is_named(tmp_path: Path, data: bytes, code: str, words: str) -> None:
    (finding,) = verify_artifact(write(tmp_path, "json", data)).findings
    assert finding.code == code
    assert words in finding.message


def test_a_repeated_name_among_many_costs_no_more_than_reading(tmp_path: Path) -> None:
    names = ", ".join(f'"{number}": 1' for number in (*range(100_000), 7))
    path = write(tmp_path, "json", f"{{{names}}}".encode())
    started = time.monotonic()
    report = verify_artifact(path)
    assert time.monotonic() - started < 5  # a count per name took minutes
    assert [f.message for f in report.findings] == ["the name '7' stands twice in one object"]


def test_names_that_differ_in_capitals_are_two_in_an_archive_and_one_in_a_document(tmp_path: Path) -> None:
    both = {"README": b"1", "readme": b"2"}
    report = verify_artifact(write(tmp_path, "zip", pack(both)))
    assert [(f.code, f.severity) for f in report.findings] == [("zip-member-duplicate", "warning")]
    report = verify_artifact(write(tmp_path, "docx", pack({**parts(good("docx")), **both})))
    assert [(f.code, f.severity) for f in report.findings] == [("zip-member-duplicate", "error")]


def test_required_keys_of_another_format_are_unproven(tmp_path: Path) -> None:
    report = verify_artifact(write(tmp_path, "pdf", good("pdf")), keys=["a"])
    assert [f.code for f in report.findings] == ["requirement-unproven"]


SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param('{"a": [1, 2]}', [], id="fits"),
        pytest.param('{"b": 1}', ["$"], id="a key is missing"),
        pytest.param('{"a": [1, "2", null]}', ["$.a[1]", "$.a[2]"], id="two wrong items"),
    ],
)
def test_json_is_held_against_a_schema(tmp_path: Path, text: str, places: list[str]) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    report = verify_artifact(path, schema=SCHEMA)
    assert [(f.code, f.where.json_path) for f in report.findings] == [("json-schema", place) for place in places]
    assert "schema" in report.checked


def test_a_schema_fetches_nothing_and_cannot_run_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("{}")
    for reference in ("http://127.0.0.1:9/schema.json", "file:///etc/hosts"):
        with pytest.raises(ValueError, match="refers to what it does not hold"):
            verify_artifact(path, schema={"$ref": reference})
    with pytest.raises(ValueError, match="without end"):
        verify_artifact(path, schema={"$ref": "#"})


def test_another_package_adds_a_format_and_replaces_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger.py").write_text(
        "from extforge_verifiers.findings import invalid\n"
        "from extforge_verifiers.formats import Format\n"
        "ROW = Format('tune', ('.tune',), ('check_head',), module='stranger')\n"
        "PNG = Format('png', ('.tune2',), ('check_head',), module='stranger')\n"
        "def check_head(artifact):\n"
        "    if artifact.head(4) != b'TUNE':\n"
        "        yield invalid('tune-head', 'does not start with TUNE')\n"
    )
    info = tmp_path / "stranger-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    points = "tune = stranger:ROW\npng = stranger:PNG\nlost = nowhere:ROW\n"
    (info / "entry_points.txt").write_text(f"[extforge.formats]\n{points}")
    good, bad, other = (tmp_path / name for name in ("good.tune", "bad.tune", "x.tune2"))
    good.write_bytes(b"TUNE la la")
    bad.write_bytes(b"noise")
    other.write_bytes(b"?")
    monkeypatch.syspath_prepend(str(tmp_path))
    foreign_formats.cache_clear()
    try:
        assert verify_artifact(good).verdict is Verdict.PASS
        assert [f.code for f in verify_artifact(bad).findings] == ["tune-head"]
        assert [f.code for f in verify_artifact(bad, "tune").findings] == ["tune-head"]
        unknown = verify_artifact(other)
    finally:
        foreign_formats.cache_clear()
    assert unknown.verdict is Verdict.UNDETERMINED
    assert "png is taken" in unknown.skipped["format"]
    assert "nowhere:ROW: ModuleNotFoundError" in unknown.skipped["format"]


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    for path in (tmp_path / "no.pdf", tmp_path):
        report = verify_artifact(path, "pdf")
        assert [(f.code, f.failure_id) for f in report.findings] == [("artifact-missing", "artifact_not_created")]
    os.mkfifo(tmp_path / "pipe.pdf")
    assert verify_artifact(tmp_path / "pipe.pdf").verdict is Verdict.FAIL


def test_an_unknown_suffix_is_undetermined_and_no_suffix_goes_by_content(tmp_path: Path) -> None:
    (tmp_path / "x.xyz").write_bytes(good("pdf"))
    (tmp_path / "nosuffix").write_bytes(good("pdf"))
    assert verify_artifact(tmp_path / "x.xyz").verdict is Verdict.UNDETERMINED
    assert verify_artifact(tmp_path / "nosuffix").kind == "pdf"


def test_an_error_skips_the_checks_that_build_on_it(tmp_path: Path) -> None:
    report = verify_artifact(write(tmp_path, "pdf", b"text"), requirements=[Requirement("pages", ">=", 1)])
    assert report.checked == ("check_header",)
    assert set(report.skipped) == {"check_end", "check_objects", "pages>=1"}


def test_messages_name_what_a_disguised_file_really_is(tmp_path: Path) -> None:
    report = verify_artifact(write(tmp_path, "pptx", b"<!DOCTYPE html><html>"))
    assert report.findings[0].message == "named .pptx, but it is an HTML page"
    assert report.findings[0].failure_id == "artifact_placeholder_output"


def test_the_damage_of_a_text_conversion_is_counted_to_the_end(tmp_path: Path) -> None:
    damaged = utf8_damaged(good("png") + os.urandom(300_000))
    report = verify_artifact(write(tmp_path, "png", damaged))
    count = damaged.decode().count("\ufffd")
    assert count > 100_000
    assert f"({count:,} replacement characters)" in report.findings[0].message


@pytest.mark.parametrize("form", sorted(FORMATS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_bytes_make_a_check_crash(tmp_path: Path, form: str, data: st.DataObject) -> None:
    original = good(form)
    kind = data.draw(st.sampled_from(["random", "flip", "cut", "insert", "zero"]))
    at = data.draw(st.integers(0, len(original) - 1))
    if kind == "random":
        body = data.draw(st.binary(max_size=300))
    elif kind == "flip":
        body = original[:at] + bytes([original[at] ^ data.draw(st.integers(1, 255))]) + original[at + 1 :]
    elif kind == "cut":
        body = original[:at]
    elif kind == "insert":
        body = original[:at] + data.draw(st.binary(min_size=1, max_size=40)) + original[at:]
    else:
        body = original[:at] + bytes(min(50, len(original) - at)) + original[at + 50 :]
    report = verify_artifact(write(tmp_path, form, body))
    assert "check-crashed" not in {finding.code for finding in report.findings}, report.findings


def test_a_file_that_is_what_its_name_says_is_told_what_was_promised(tmp_path: Path) -> None:
    path = tmp_path / "deck.json"
    path.write_text('{"a": 1}')
    [finding] = verify_artifact(path, "pptx").findings
    assert (finding.code, finding.message) == (
        "artifact-placeholder",
        "it is JSON text, and something else was promised",
    )
    assert finding.fix == "write real Office bytes, or name the file for what it is"


def test_a_part_is_named_once(tmp_path: Path) -> None:
    path = write(tmp_path, "pptx", replaced("ppt/slides/slide1.xml", "<a:t>One</a:t>", "")(good("pptx")))
    [finding] = verify_artifact(path).findings
    [line] = finding_lines(finding, str(path))
    assert line.count("slide1.xml") == 1
