"""Parts of Office files: the fast way to look at them agrees with the parser, and no part is trusted for its sum."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from damage import good, header_field, pack, parts, replaced
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


def test_a_part_is_known_by_its_bytes_not_by_its_sum_and_memory_is_bounded() -> None:
    KNOWN.clear()
    KNOWN.add(7, b"<a/>")
    assert (7, b"<a/>") in KNOWN
    assert (7, b"<a>>") not in KNOWN
    for crc in range(100):
        KNOWN.add(crc, bytes(1 << 17))
    assert sum((crc, bytes(1 << 17)) in KNOWN for crc in range(100)) <= 32
    KNOWN.clear()
    assert (99, bytes(1 << 17)) not in KNOWN


def test_the_parts_of_a_real_deck_are_parsed_once(tmp_path: Path) -> None:
    KNOWN.clear()
    (tmp_path / "deck.pptx").write_bytes(good("pptx"))
    assert verify_artifact(tmp_path / "deck.pptx").verdict is Verdict.PASS
    theme = next(body for name, body in parts(good("pptx")).items() if name.startswith("ppt/theme/"))
    assert any((info.CRC, theme) in KNOWN for info in Archive(Artifact(tmp_path / "deck.pptx")).infos)
