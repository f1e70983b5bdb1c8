"""Parts of Office files: the fast way to look at them agrees with the parser, and no part is trusted for its sum."""

from __future__ import annotations

import copy
import io
import struct
import tracemalloc
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from damage import Damage, good, header_field, pack, parts, replaced
from hypothesis import given
from hypothesis import strategies as st

from extforge_verifiers import Verdict, verify_artifact
from extforge_verifiers.archive import Archive
from extforge_verifiers.artifact import Artifact
from extforge_verifiers.packages import KNOWN, Package

PREFIXES = st.sampled_from(["", "a:", "p-1:", "é:"])
NAMES = st.sampled_from(["t", "row", "sldId", "sheet", "T", "tt", "ü"])
WORDS = st.text(st.sampled_from("ab >/='\"&<é中\U0001f600"), max_size=8)
ATTRIBUTES = st.dictionaries(st.sampled_from(["id", "name", "a:id", "p-1:id", "x.y"]), WORDS, max_size=3)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(PREFIXES) + draw(NAMES)
    start = "".join(f" {key}={quoteattr(value).replace('&gt;', '>')}" for key, value in draw(ATTRIBUTES).items())
    inner = draw(st.lists(elements(depth=depth - 1), max_size=3)) if depth else []
    text = escape(draw(WORDS)).replace(">", "&gt;")
    return f"<{name}{start}>{text}{''.join(inner)}</{name}>" if draw(st.booleans()) else f"<{name}{start}/>"


def package(part: bytes) -> Package:
    return Package(Archive(Artifact("x.pptx", data=pack({"part.xml": part}))), main="part.xml")


@given(
    st.lists(elements(), max_size=4),
    st.sampled_from(["", "<?xml version='1.0'?>", "<?xml version='1.0' encoding='UTF-8'?>"]),
)
def test_searching_a_part_finds_what_parsing_it_finds(inner: list[str], start: str) -> None:
    space = "".join(f" xmlns:{prefix}='urn:{prefix}'" for prefix in ("a", "p-1", "é"))
    document = f"{start}<root{space}>{''.join(inner)}</root>"
    searched = package(document.encode())
    parsed = package(document.replace("</root>", "<!-- parse me --></root>").encode())
    assert searched.content("part.xml") is not None
    assert parsed.content("part.xml") is None
    for element in ("sldId", "sheet", "root"):
        assert searched.attributes("part.xml", element) == parsed.attributes("part.xml", element)
    fast, slow = searched.survey("part.xml"), parsed.survey("part.xml")
    assert fast is not None
    assert slow is not None
    assert (fast.root, fast.counts) == (slow.root, slow.counts)
    assert bool(fast.text) == bool(slow.text)


@pytest.mark.parametrize(
    ("encoding", "plain"),
    [("utf-8", True), ("utf-8-sig", True), ("iso-8859-1", False), ("utf-16", False), ("utf-16-le", False)],
)
def test_text_is_read_in_the_encoding_that_a_part_declares(encoding: str, plain: bool) -> None:
    name = encoding.removesuffix("-sig").removesuffix("-le")
    found = package(f'<?xml version="1.0" encoding="{name}"?><r><t>Prüfung</t></r>'.encode(encoding))
    assert (found.content("part.xml") is not None) is plain
    survey = found.survey("part.xml")
    assert survey is not None
    assert (survey.root, survey.text) == ("r", "Prüfung")


def test_a_part_of_any_size_is_surveyed_in_bounded_memory() -> None:
    rows = b"<c><is><t>%s</t></is></c>" % (b"x" * 60_000)
    sheet = package(b"<worksheet>%s</worksheet>" % (rows * 500))
    tracemalloc.start()
    try:
        found = sheet.survey("part.xml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert (found.root, found.counts["c"]) == ("worksheet", 500)
    assert peak < 8 << 20  # of a part of 30 MB


def test_a_member_without_a_name_is_only_a_member() -> None:
    # Its one character becomes an extra field.
    unnamed = header_field(26, b"\0\0\1\0")(header_field(28, b"\0\0\1\0", central=True)(pack({"q": b"x"})))
    found = Package(Archive(Artifact("x.pptx", data=unnamed)))
    found.sweep()
    assert list(found.archive.names) == [""]
    assert found.problems == {}


def test_a_broken_part_is_found_after_its_sound_twin(tmp_path: Path) -> None:
    layout = "ppt/slideLayouts/slideLayout1.xml"
    sound, broken = tmp_path / "sound.pptx", tmp_path / "broken.pptx"
    sound.write_bytes(good("pptx"))
    broken.write_bytes(replaced(layout, "</p:cSld>", "</p:cSlD>")(good("pptx")))
    for _ in range(2):
        assert verify_artifact(sound).verdict is Verdict.PASS
        found = verify_artifact(broken).findings
        assert [(f.code, f.where.member) for f in found] == [("xml-not-well-formed", layout)]


def member(data: bytes, name: str = "a.xml") -> tuple[Archive, zipfile.ZipInfo]:
    archive = Archive(Artifact("x.pptx", data=pack({name: data})))
    return archive, archive.names[name]


def test_a_part_is_known_by_its_bytes_not_by_its_sum_and_memory_is_bounded() -> None:
    KNOWN.clear()
    archive, info = member(b"<a/>")
    packed = archive.packed(info)
    KNOWN.add(info, packed)
    assert KNOWN.has(info, packed)
    assert not KNOWN.has(info, packed[::-1])
    for field in ("CRC", "file_size", "compress_type"):
        other = copy.copy(info)
        setattr(other, field, getattr(info, field) + 1)
        assert not KNOWN.has(other, packed)
    for crc in range(100):
        info.CRC = crc
        KNOWN.add(info, bytes(1 << 17))
    found = []
    for crc in range(100):
        info.CRC = crc
        found.append(KNOWN.has(info, bytes(1 << 17)))
    assert 1 <= sum(found) <= 16
    KNOWN.clear()
    assert not KNOWN.has(info, bytes(1 << 17))


def test_the_parts_of_a_real_deck_are_parsed_once(tmp_path: Path) -> None:
    KNOWN.clear()
    path = tmp_path / "deck.pptx"
    path.write_bytes(good("pptx"))
    assert verify_artifact(path).verdict is Verdict.PASS
    archive = Archive(Artifact(path))
    theme = archive.names["ppt/theme/theme1.xml"]
    assert KNOWN.has(theme, archive.packed(theme))
    assert verify_artifact(path).verdict is Verdict.PASS


def test_what_the_directory_says_of_a_known_part_is_not_believed(tmp_path: Path) -> None:
    sound, lying = tmp_path / "sound.pptx", tmp_path / "lying.pptx"
    sound.write_bytes(good("pptx"))
    assert verify_artifact(sound).verdict is Verdict.PASS
    at = good("pptx").index(b"PK\x01\x02")
    size = struct.unpack_from("<L", good("pptx"), at + 24)[0]
    lying.write_bytes(good("pptx")[: at + 24] + struct.pack("<L", size + 1) + good("pptx")[at + 28 :])
    assert "zip-member-size" in {f.code for f in verify_artifact(lying).findings}


SECTIONS = (
    '<p:extLst><p:ext uri="{521415D9-36F7-43E2-AB2F-B90AF26B5E84}"><p14:sectionLst '
    'xmlns:p14="http://schemas.microsoft.com/office/powerpoint/2010/main"><p14:section name="S" '
    'id="{00000000-0000-0000-0000-000000000001}"><p14:sldIdLst><p14:sldId id="256"/><p14:sldId id="257"/>'
    "</p14:sldIdLst></p14:section></p14:sectionLst></p:ext></p:extLst></p:presentation>"
)
PRESENTATION, SLIDE = "ppt/presentation.xml", "ppt/slides/slide1.xml"
SHEET = "xl/worksheets/sheet1.xml"
DATA = "(?s)<sheetData>.*</sheetData>"


def rows(*rows: str) -> Damage:
    return replaced(SHEET, DATA, f"<sheetData>{''.join(rows)}</sheetData>")


def shared(text: str) -> Damage:
    """Put a text into the strings that all sheets share."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = f'<Relationship Id="strings" Type="{kind}" Target="sharedStrings.xml"/></Relationships>'
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = f'<sst xmlns="{space}"><si><t>{text}</t></si></sst>'.encode()
    related = replaced("xl/_rels/workbook.xml.rels", "</Relationships>", relation)
    return lambda data: related(pack({**parts(data), "xl/sharedStrings.xml": strings}))


@pytest.mark.parametrize("deep", [False, True])
def test_a_deck_with_sections_has_each_slide_once(tmp_path: Path, deep: bool) -> None:
    path = tmp_path / "deck.pptx"
    path.write_bytes(replaced(PRESENTATION, "</p:presentation>", SECTIONS)(good("pptx")))
    report = verify_artifact(path, deep=deep)
    assert (report.findings, report.facts["slides"]) == ((), 2)


@pytest.mark.parametrize(
    ("form", "change", "codes"),
    [
        pytest.param("pptx", replaced(PRESENTATION, 'id="257" r:id="rId8"', 'id="257" r:id="rId7"'), ["pptx-slide-id"], id="a slide twice"),
        pytest.param("pptx", replaced(PRESENTATION, "presentationml/2006/main", "x"), ["ooxml-main-root"], id="another language"),
        pytest.param("pptx", replaced(SLIDE, "presentationml/2006/main", "x"), ["pptx-slide-root"], id="a slide in another language"),
        pytest.param("pptx", replaced(SLIDE, "<a:t>One</a:t>", "<a:t>Lorem</a:t></a:r><a:r><a:t> ipsum</a:t>"), ["placeholder-text"], id="runs"),
        pytest.param("pptx", replaced(SLIDE, "<a:t>One</a:t>", ""), ["pptx-slide-blank"], id="blank"),
        pytest.param("pptx", replaced(SLIDE, "<a:t>One</a:t>", '<a:blip r:embed="rId9"/>'), [], id="a picture as background"),
        pytest.param("docx", replaced("word/document.xml", "Title", "Dear {{ name }}"), ["placeholder-text"], id="a field"),
        pytest.param("docx", replaced("word/document.xml", "wordprocessingml/2006/main", "x"), ["ooxml-main-root"], id="a document in another language"),
        pytest.param("xlsx", shared("待补充"), ["placeholder-text"], id="to do"),
        pytest.param("xlsx", replaced(SHEET, "<t>a</t>", "<t>{{value}}</t>"), ["placeholder-text"], id="a field in a cell"),
        pytest.param("xlsx", replaced(SHEET, "spreadsheetml/2006/main", "x"), ["xlsx-sheet-root"], id="a sheet in another language"),
        pytest.param("xlsx", rows('<row r="1"><c r="A1"><f>1+1</f></c></row>'), [], id="a formula that nobody has computed"),
        pytest.param("xlsx", rows('<row r="1"><c r="A1"><v></v></c><c r="B1" t="inlineStr"><is><t> </t></is></c></row>'), ["xlsx-sheet-blank"], id="cells of nothing"),
        pytest.param("xlsx", rows('<!-- --><row r="1"><c r="A1"><v></v></c></row>'), ["xlsx-sheet-blank"], id="cells of nothing, walked"),
    ],
)  # fmt: skip
def test_what_a_reader_would_see_is_what_counts(tmp_path: Path, form: str, change: Damage, codes: list[str]) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(change(good(form)))
    assert [f.code for f in verify_artifact(path).findings] == codes


@pytest.mark.parametrize("comment", ["", "<!-- walked -->"])
def test_rows_count_when_they_hold_something(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "x.xlsx"
    full = '<row r="{}"><c r="A1"/><c r="B1"><v>1</v></c><c r="C1"><v>2</v></c></row>'
    path.write_bytes(
        rows(comment, full.format(1), '<row r="2"/><row r="3"><c r="A3"/></row>', full.format(4))(good("xlsx"))
    )
    report = verify_artifact(path)
    assert (report.findings, report.facts["rows"]) == ((), 3)  # and the one of the second sheet


@pytest.mark.parametrize(("suffix", "codes"), [("ppsx", []), ("potx", ["ooxml-main-type"])])
def test_a_show_may_be_typed_as_a_presentation(tmp_path: Path, suffix: str, codes: list[str]) -> None:
    path = tmp_path / f"show.{suffix}"
    path.write_bytes(good("pptx"))
    assert [f.code for f in verify_artifact(path).findings] == codes


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_plain_archives_may_be_packed_in_other_ways(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    sound = pack({"a.txt": b"hello " * 100}, method)
    path.write_bytes(sound)
    assert verify_artifact(path).findings == ()
    path.write_bytes(sound[:60] + bytes([sound[60] ^ 255]) + sound[61:])
    assert [f.code for f in verify_artifact(path).findings] == ["zip-member-damaged"]


def test_a_method_that_nobody_here_reads_leaves_the_question_open(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(
        header_field(10, b"\x62\x00", central=True)(header_field(8, b"\x62\x00")(pack({"a.txt": b"hello"})))
    )
    report = verify_artifact(path)
    assert (report.verdict, report.findings) == (Verdict.UNDETERMINED, ())
    assert "method 98" in report.open_question


def test_a_member_below_a_link_and_junk_that_starts_like_an_archive_are_found(tmp_path: Path) -> None:
    path, link = tmp_path / "x.zip", zipfile.ZipInfo("out")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc")
        archive.writestr("other/passwd", "x")
    assert verify_artifact(path).findings == ()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("out/passwd", "x")
    assert [f.code for f in verify_artifact(path).findings] == ["zip-member-path"]
    path.write_bytes(b"PK, more or less" + pack({"a.txt": b"x"}))
    assert [f.code for f in verify_artifact(path).findings] == ["zip-prefix"]


READ = ("filename", "flag_bits", "compress_type", "CRC", "compress_size", "file_size", "header_offset", "external_attr")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(good("pptx"), id="ordinary"),
        pytest.param(b"junk" + good("pptx"), id="junk before"),
        pytest.param(good("pptx") + b"junk", id="junk behind"),
        pytest.param(pack({"é.xml": b"<a/>", "b\\c.xml": b"<b/>"}), id="names"),
        pytest.param(pack({}), id="nothing"),
    ],
)
def test_the_directory_is_what_zipfile_reads(data: bytes) -> None:
    ours = Archive(Artifact("x.zip", data=data)).infos
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        theirs = archive.infolist()
    assert [[getattr(i, f) for f in READ] for i in ours] == [[getattr(i, f) for f in READ] for i in theirs]
