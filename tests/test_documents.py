"""The strict reader: what comes out is what a person meant, with its place, or a finding."""

from __future__ import annotations

import itertools
import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extforge_verifiers.documents import parse_json, parse_text, parse_yaml, read_document
from extforge_verifiers.errors import DocumentError

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children, max_size=4)
    ),
    max_leaves=20,
)


def findings_of(text: str, source: str = "plan.yaml") -> list[tuple[str, int | None, int | None]]:
    with pytest.raises(DocumentError) as caught:
        parse_text(text, source)
    return [(f.code, f.where.line, f.where.column) for f in caught.value.findings]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: on", {"a": "on"}, id="on is a text"),
        pytest.param("a: yes", {"a": "yes"}, id="yes is a text"),
        pytest.param("a: 2026-01-01", {"a": "2026-01-01"}, id="a date is a text"),
        pytest.param("a: 12:30:45", {"a": "12:30:45"}, id="sexagesimal is a text"),
        pytest.param("a: 017", {"a": "017"}, id="octal is a text"),
        pytest.param("a: 0x1f", {"a": "0x1f"}, id="hexadecimal is a text"),
        pytest.param("a: 1_000", {"a": "1_000"}, id="underscores are a text"),
        pytest.param("a: 15", {"a": 15}, id="an integer"),
        pytest.param("a: -1.5e3", {"a": -1500.0}, id="a float"),
        pytest.param("a: true", {"a": True}, id="true"),
        pytest.param("a: ~", {"a": None}, id="null"),
        pytest.param('a: "1"', {"a": "1"}, id="quoted is a text"),
        pytest.param("a: !!str 3", {"a": "3"}, id="an explicit str tag"),
        pytest.param("a: .inf", {"a": ".inf"}, id="infinity is a text"),
        pytest.param("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}, id="flow style that is not JSON"),
        pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "😀"}, id="surrogate pairs in JSON"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_scalars_are_read_as_json_types_and_nothing_else(text: str, value: object) -> None:
    assert parse_text(text, "plan.yaml").value == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: 1\nb: {x: 1, x: 2}\na: 2",
            [("document-duplicate-key", 2, 11), ("document-duplicate-key", 3, 1)],
            id="every duplicate key",
        ),
        pytest.param('{"a": 1,\n "a": 2}', [("document-duplicate-key", 2, 2)], id="duplicate key in JSON"),
        pytest.param("a: !!python/name:os.system", [("document-tag", 1, 4)], id="a python tag"),
        pytest.param("a: !env HOME", [("document-tag", 1, 4)], id="a custom tag"),
        pytest.param("<<: {a: 1}", [("document-tag", 1, 1)], id="a merge key"),
        pytest.param("a: &x [*x]", [("document-alias-loop", 1, 4)], id="an alias loop"),
        pytest.param("{a: 1, a: 2}", [("document-duplicate-key", 1, 8)], id="duplicate key in flow style"),
        pytest.param("a: b: c", [("document-syntax", 1, 5)], id="an unquoted colon"),
        pytest.param("[1, 2", [("document-syntax", 1, 6)], id="cut short"),
        pytest.param("? [a]\n: b", [("document-key", 1, 3)], id="a list as key"),
        pytest.param("a: 1e999", [("document-number", 1, 4)], id="too large a number"),
    ],
)
def test_what_is_wrong_is_reported_with_line_and_column(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert findings_of(text) == expected


def test_a_control_character_is_named_with_its_line() -> None:
    assert findings_of("a: x\nb: \x07")[0][:2] == ("document-character", 2)


def test_half_a_surrogate_pair_is_refused_in_json_and_yaml() -> None:
    assert findings_of('{"a": "\\ud800"}', "plan.json")[0][0] == "document-character"
    with pytest.raises(DocumentError):
        parse_yaml('a: "\\ud800"', "plan.yaml")


def test_json_files_are_json_only() -> None:
    assert findings_of("{a: 1}", "plan.json")[0][0] == "document-syntax"
    assert findings_of('{"a": NaN}', "plan.json")[0][0] == "document-syntax"


def test_an_alias_bomb_is_stopped_quickly() -> None:
    names = "abcdefghij"
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    bomb += "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in itertools.pairwise(names))
    started = time.monotonic()
    assert findings_of(bomb)[0][0] == "document-too-large"
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a: " + "{a: " * 100_000, "- " * 100_000], ids=["lists", "mappings", "blocks"]
)
def test_deep_nesting_is_an_error_and_not_a_crash(text: str) -> None:
    assert findings_of(text)[0][0] in ("document-too-deep", "document-syntax")


def test_bytes_must_be_utf8_and_a_bom_is_tolerated() -> None:
    assert read_document(b"\xef\xbb\xbfa: 1", "p.yaml").value == {"a": 1}
    with pytest.raises(DocumentError) as caught:
        read_document("a: é".encode("latin-1"), "p.yaml")
    assert caught.value.findings[0].code == "document-encoding"


@given(JSON_VALUES)
def test_any_json_value_comes_back_with_a_mark_for_each_part(value: object) -> None:
    document = parse_json(json.dumps(value), "x.json")
    assert document.value == value
    assert () in document.marks


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_raise_anything_else(text: str) -> None:
    try:
        document = parse_text(text, "x.yaml")
    except DocumentError as exc:
        assert exc.findings
    else:
        json.dumps(document.value)


@given(JSON_VALUES)
def test_what_pyyaml_writes_is_read_back(value: object) -> None:
    text = yaml.safe_dump({"v": value}, allow_unicode=True)
    try:
        read = parse_yaml(text, "x.yaml").value["v"]
    except DocumentError as exc:  # characters that YAML cannot hold, even escaped by PyYAML
        assert exc.findings[0].code in ("document-character", "document-number", "document-syntax")
    else:
        # PyYAML folds these line breaks when it writes them, and reads a space back itself.
        if not any(c in text for c in "\x85\u2028\u2029"):
            assert read == value
