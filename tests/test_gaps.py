"""Gap analyses in every shape they come in: each gap is read or reported, none is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extforge.design.gaps import Gaps, read_gaps
from extforge_verifiers.errors import DocumentError

HEAD = "| 竞品 | 功能 | 当前状态 | 差距描述 | 影响(0-1) | 可行性(0-1) | 建议方案 | 目标文件 |\n|---|---|---|---|---|---|---|---|\n"
ROW = "| 用户需求 | 生成 PPT | 无 | 没有 | 0.8 | 0.7 | 用 python-pptx | tools/a.py, `b.py` |\n"


def read(tmp_path: Path, text: str, name: str = "gaps.md") -> Gaps:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_gaps(str(path))


def codes(gaps: Gaps) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.where.line) for finding in gaps.findings]


def test_the_eight_columns_become_a_gap(tmp_path: Path) -> None:
    [placed] = read(tmp_path, f"# 评估报告\n\n{HEAD}{ROW}").found
    gap = placed.gap
    assert (gap.id, gap.competitor, gap.feature, gap.gap_description) == ("gap_1", "用户需求", "生成 PPT", "没有")
    assert (gap.impact, gap.feasibility, gap.target_files) == (0.8, 0.7, ["tools/a.py", "b.py"])
    assert placed.where.line == 5


def test_columns_go_by_their_titles_in_any_order_and_language(tmp_path: Path) -> None:
    text = "| **Feature** | Impact | Gap Description | Notes | suggested_approach |\n|:--|--:|---|---|---|\n| Export | 8 | a \\| b | n | c |\n"
    [placed] = read(tmp_path, text).found
    gap = placed.gap
    assert (gap.feature, gap.impact, gap.gap_description, gap.suggested_approach) == ("Export", 8.0, "a | b", "c")


def test_two_columns_are_enough_where_one_says_what_is_missing(tmp_path: Path) -> None:
    text = "| id | gap | suggestion |\n|---|---|---|\n| G7 | no deck | a tool |\n\n| feature | owner |\n|---|---|\n| deck | me |\n"
    [placed] = read(tmp_path, text).found
    gap = placed.gap
    assert (gap.id, gap.gap_description, gap.suggested_approach) == ("G7", "no deck", "a tool")


def test_a_table_without_its_header_is_read_as_the_host_reads_it(tmp_path: Path) -> None:
    assert [p.gap.feature for p in read(tmp_path, ROW).found] == ["生成 PPT"]


def test_bad_rows_are_reported_where_they_stand_and_the_others_are_read(tmp_path: Path) -> None:
    bad = "| 用户需求 | 坏行 | 无 | x | 高 | 0.7 | y | - |\n| 用户需求 | 少一格 | 无 | x | 0.7 | y |\n| | | | | 1 | 1 | only this | |\n"
    gaps = read(tmp_path, HEAD + bad + ROW)
    assert codes(gaps) == [("gap-row-number", 3), ("gap-row-cells", 4), ("gap-empty", 5)]
    assert [placed.gap.feature for placed in gaps.found] == ["生成 PPT"]


def test_other_tables_of_a_report_are_no_gaps(tmp_path: Path) -> None:
    other = "| file | lines |\n|---|---|\n| a.py | 200 |\n\ntext with a | in it\n\n"
    gaps = read(tmp_path, other + HEAD + ROW + "\n" + other)
    assert (len(gaps.found), gaps.findings) == (1, [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("g.json", '{"gaps": [{"feature": "f"}], "competitor_summary": "", "raw_analysis": ""}', id="artifact"),
        pytest.param("g.json", '[{"feature": "f"}]', id="list"),
        pytest.param("g.json", '{"feature": "f", "impact": 3}', id="one gap"),
        pytest.param("g.yaml", "gaps:\n  - feature: f\n", id="YAML"),
        pytest.param("g.txt", 'Here it is:\n```json\n{"gaps": [{"feature": "f"}]}\n```\nbye', id="fenced"),
        pytest.param("g.json", '```json\n[{"feature": "f"}]\n```\n', id="fenced in a .json"),
        pytest.param("g.txt", 'So: {"gaps": [{"feature": "f"}]} and {"x": 1}.', id="in prose"),
        pytest.param("g.json", '{"gaps": [], "raw_analysis": "| a | f | c | d | 1 | 1 | e | |"}', id="only the raw table"),
    ],
)  # fmt: skip
def test_every_shape_of_a_document_is_read(tmp_path: Path, name: str, text: str) -> None:
    gaps = read(tmp_path, text, name)
    assert [placed.gap.feature for placed in gaps.found] == ["f"]
    assert gaps.findings == []


def test_problems_of_a_document_name_the_gap_and_spare_the_rest(tmp_path: Path) -> None:
    text = json.dumps(
        {"gaps": [{"feature": "a", "feasability": 1}, {"feature": "b", "impact": "8"}, 7, {"feature": "c"}], "x": 1},
        indent=1,
    )
    gaps = read(tmp_path, text, "g.json")
    assert [placed.gap.feature for placed in gaps.found] == ["c"]
    found = {(f.code, f.severity.value, f.where.json_path) for f in gaps.findings}
    assert found == {
        ("document-unknown-key", "error", "$.gaps[0].feasability"),
        ("document-wrong-type", "error", "$.gaps[1].impact"),
        ("document-wrong-type", "error", "$.gaps[2]"),
        ("gap-unknown-key", "warning", "$.x"),
    }
    assert any(f.fix and "feasibility" in f.fix for f in gaps.findings)


def test_ids_are_made_kept_apart_and_gaps_said_twice_count_once(tmp_path: Path) -> None:
    text = json.dumps([{"id": "x", "feature": "a"}, {"id": "x", "feature": "b"}, {"feature": "c"}, {"feature": " A "}])
    gaps = read(tmp_path, text, "g.json")
    assert [placed.gap.id for placed in gaps.found] == ["x", "x_2", "gap_3"]
    assert [finding.code for finding in gaps.findings] == ["gap-id-twice", "gap-repeated"]


def test_more_than_a_thousand_gaps_are_said_to_be_too_many(tmp_path: Path) -> None:
    gaps = read(tmp_path, json.dumps([{"feature": f"f{i}"} for i in range(1001)]), "g.json")
    assert (len(gaps.found), [finding.code for finding in gaps.findings]) == (1000, ["gap-too-many"])


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        pytest.param("g.md", "no table", "gap-none", id="prose"),
        pytest.param("g.md", "", "gap-none", id="nothing"),
        pytest.param("g.json", "", "document-syntax", id="empty JSON"),
        pytest.param("g.json", '{"gaps": []}', "gap-none", id="no gap"),
        pytest.param("g.json", '{"gaps": {"a": 1}}', "gap-shape", id="gaps are no list"),
        pytest.param("g.yaml", "designs: []", "gap-shape", id="a plan"),
        pytest.param("g.json", '{"gaps": [{"feature": "a"},]}', "document-syntax", id="a comma too many"),
    ],
)
def test_what_is_no_gap_analysis_is_said_to_be_none(tmp_path: Path, name: str, text: str, code: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text, name)
    assert caught.value.findings[0].code == code


def test_a_key_that_is_not_used_does_not_stand_for_a_gap(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, '{"gaps": [], "x": 1}', "g.json")
    assert [finding.code for finding in caught.value.findings] == ["gap-unknown-key", "gap-none"]
    gaps = read(tmp_path, '{"gaps": [], "x": 1, "raw_analysis": "| a | f | c | d | 1 | 1 | e | |"}', "g.json")
    assert [placed.gap.feature for placed in gaps.found] == ["f"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        read_gaps(str(tmp_path / "none.json"))


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30)


@given(st.lists(st.lists(CELL, min_size=8, max_size=8), min_size=1, max_size=5))
def test_whatever_cells_hold_a_row_becomes_a_gap_or_a_finding(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    lines = ["| " + " | ".join(c.replace("\\", "").replace("|", "\\|") for c in row) + " |\n" for row in rows]
    path = tmp_path_factory.mktemp("gaps") / "g.md"
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    try:
        gaps = read_gaps(str(path))
    except DocumentError as exc:
        assert exc.findings[0].code == "gap-none"  # a row of dashes is no row
        return
    accounted = len(gaps.found) + len({f.where.line for f in gaps.findings if f.code != "gap-id-twice"})
    ruled = sum(all(set(c.strip()) <= {"-", ":"} and "-" in c for c in row) for row in rows)
    assert accounted >= len(rows) - ruled
