"""The artifact contract, for every format: a real file and a true result, or nothing at all."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import Plans, design, load_work, rendered_files

from extforge_verifiers import Verdict, verify_artifact, verify_result
from extforge_verifiers.documents import parse_yaml

FORMATS = ("pptx", "docx", "xlsx", "pdf", "json", "png", "csv", "md", "html", "svg")
NAMES = {form: f"monthly_{form}_report" for form in FORMATS}

Tool = tuple[Any, dict[str, Any]]  # the work module, and inputs that it must accept


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tool]:
    """One generated tool per format, loaded without openJiuwen."""
    folder = tmp_path_factory.mktemp("tools")
    plan = Plans(folder).check(*(design(name) for name in NAMES.values()))
    assert not plan.errors, plan.errors
    files = rendered_files(plan)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    found = {}
    for form, name in NAMES.items():
        module = load_work(folder / "openjiuwen/extensions/harness" / name, f"tools.{name}")
        acceptance = parse_yaml(files[f"acceptance/{name}.yaml"].decode(), name).value
        found[form] = (module, acceptance["tool_tests"][0]["inputs"])
    return found


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


each_format = pytest.mark.parametrize("form", FORMATS)


@each_format
def test_a_tool_writes_a_real_file_and_tells_the_truth(tools: dict[str, Tool], form: str, scratch: Path) -> None:
    module, inputs = tools[form]
    result = module.run(inputs)
    assert result["success"] is True, result
    path = scratch / inputs["output_path"]
    assert result["path"] == inputs["output_path"]
    assert (result["absolute_path"], result["format"], result["exists"]) == (str(path), form, True)
    assert result["size_bytes"] == path.stat().st_size
    assert "content" not in result  # openJiuwen would show the model nothing else
    assert verify_result(result, root=str(scratch), format=form).verdict is Verdict.PASS
    assert [f for f in verify_artifact(path).findings if f.severity != "info"] == []


@each_format
def test_an_existing_file_is_kept_unless_overwriting_is_asked_for(
    tools: dict[str, Tool], form: str, scratch: Path
) -> None:
    module, inputs = tools[form]
    path = scratch / inputs["output_path"]
    path.write_text("mine")
    refused = module.run(inputs)
    assert (refused["success"], path.read_text()) == (False, "mine")
    assert "overwrite=true" in refused["error"]
    assert module.run({**inputs, "overwrite": True})["success"] is True
    assert verify_artifact(path).verdict is Verdict.PASS
    assert names_in(scratch) == [path.name]


@each_format
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"output_path": "x.txt"}, "must end in", id="another suffix"),
        pytest.param({"output_path": ""}, "give output_path or file_name", id="no target"),
        pytest.param({"file_name": "a.b"}, "only one of them", id="two targets"),
        pytest.param({"output_path": None, "file_name": "../x.pptx"}, "bare name", id="a file name that climbs"),
        pytest.param({"output_path": "a\x00b"}, "U+0000", id="a NUL in the path"),
        pytest.param({"output_path": 3}, "must be string, not integer", id="a number as path"),
        pytest.param({"surprise": 1}, "is not an input", id="an unknown input"),
    ],
)  # fmt: skip
def test_bad_targets_are_refused_by_name(
    tools: dict[str, Tool], form: str, change: dict[str, Any], words: str, scratch: Path
) -> None:
    module, inputs = tools[form]
    changed = {key: value for key, value in {**inputs, **change}.items() if value is not None}
    if form == "json" and change.get("output_path") == "a\x00b":
        words = "NUL"
    result = module.run(changed)
    assert result["success"] is False
    assert words in result["error"], result
    assert names_in(scratch) == []


@each_format
def test_missing_inputs_are_named_with_their_path(tools: dict[str, Tool], form: str) -> None:
    module, _ = tools[form]
    result = module.run({})
    assert result["success"] is False
    assert "inputs" in result["error"]


@each_format
def test_a_failed_write_leaves_nothing_behind(
    tools: dict[str, Tool], form: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, inputs = tools[form]

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write", fail)
    result = module.run({**inputs, "output_path": f"deep/er/{inputs['output_path']}"})
    assert (result["success"], list(scratch.iterdir())) == (False, [])
    assert "No space left" in result["error"]


@each_format
def test_a_file_that_fails_its_own_check_is_never_claimed(
    tools: dict[str, Tool], form: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, inputs = tools[form]
    monkeypatch.setattr(
        module, "_write", lambda *arguments: arguments[-1].write_text("\x00 to be converted downstream")
    )
    result = module.run(inputs)
    assert result["success"] is False
    assert "did not pass its own check" in result["error"]
    assert names_in(scratch) == []


@each_format
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    tools: dict[str, Tool], form: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form in ("json", "csv", "md", "html", "svg"):
        pytest.skip("it needs no package")
    module, inputs = tools[form]
    packages = {"pptx": "pptx", "docx": "docx", "xlsx": "openpyxl", "pdf": "reportlab", "png": "matplotlib"}
    for name in [n for n in __import__("sys").modules if n.partition(".")[0] == packages[form]]:
        monkeypatch.delitem(__import__("sys").modules, name)
    monkeypatch.setitem(__import__("sys").modules, packages[form], None)
    result = module.run(inputs)
    assert result["success"] is False
    assert "pip install" in result["error"], result
    assert names_in(scratch) == []


@each_format
@pytest.mark.parametrize("path", ["~/home file", "深い/フォルダ/報告", "a b/c  d/e", "x" * 120])
def test_paths_with_home_unicode_spaces_and_missing_parents_work(
    tools: dict[str, Tool], form: str, path: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(scratch))
    module, inputs = tools[form]
    result = module.run({**inputs, "output_path": f"{path}.{form}"})
    assert result["success"] is True, result
    assert Path(result["absolute_path"]) == scratch / f"{path.removeprefix('~/')}.{form}"


@each_format
@pytest.mark.parametrize(
    "path",
    ["../outside/x", "a/../../outside/x", "{outside}/x", "link/x", "link/../x", "missing/../../outside/x", "dangling/x", "~/x"],
)  # fmt: skip
def test_a_path_that_leaves_the_working_directory_is_refused(
    tools: dict[str, Tool], form: str, path: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, outside = scratch / "home", scratch / "outside"
    for folder in (home, outside / "deep", scratch / "work" / "a"):
        folder.mkdir(parents=True)
    (scratch / "work" / "link").symlink_to(outside / "deep")
    (scratch / "work" / "dangling").symlink_to(outside / "nothing")
    monkeypatch.chdir(scratch / "work")
    monkeypatch.setenv("HOME", str(home))
    module, inputs = tools[form]
    path = f"{path.format(outside=outside)}.{form}"
    result = module.run({**inputs, "output_path": path})
    assert result["success"] is False
    assert f"{path!r} lies outside {scratch / 'work'}" in result["error"]
    assert names_in(scratch) == []
    assert sorted(p.name for p in scratch.rglob("*")) == ["a", "dangling", "deep", "home", "link", "outside", "work"]


@each_format
def test_a_path_that_comes_back_is_taken_and_named_without_detours(
    tools: dict[str, Tool], form: str, scratch: Path
) -> None:
    (scratch / "real").mkdir()
    (scratch / "link").symlink_to(scratch / "real")
    module, inputs = tools[form]
    for path, real in (("a/../b//./x", "b/x"), ("link/y", "real/y"), (f"{scratch}/real/../z", "z")):
        result = module.run({**inputs, "output_path": f"{path}.{form}"})
        assert result["success"] is True, result
        assert result["absolute_path"] == str(scratch / f"{real}.{form}")
        assert result["path"] == f"{path}.{form}"
        assert verify_result(result, root=str(scratch), format=form).verdict is Verdict.PASS


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(tools: dict[str, Tool], scratch: Path) -> None:
    module, inputs = tools["json"]
    (scratch / "work").mkdir()
    (scratch / "mine.json").write_text("mine")
    os.chdir(scratch / "work")
    Path("x.json").symlink_to(scratch / "mine.json")
    assert module.run({**inputs, "output_path": "x.json"})["success"] is False
    assert module.run({**inputs, "output_path": "x.json", "overwrite": True})["success"] is True
    assert (Path("x.json").is_symlink(), (scratch / "mine.json").read_text()) == (False, "mine")


def test_other_folders_are_allowed_by_the_design_a_guard_the_host_or_the_environment(
    plans: Plans, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("work", "home", "said", "guarded", "given", "env"):
        (scratch / name).mkdir()
    artifact = {"format": "json", "folders": [str(scratch / "said"), "~/reports"]}
    maker = design("log_maker", tools=[{"does": {"artifact": artifact}}])
    rule = {"require": {"folder": [str(scratch / "guarded"), "out"]}}
    guard = design("place_guard", components=["rail"], kind="constraint", rails=[{"does": {"guard": rule}}])
    module = load_work(plans.tree(guard, maker), "tools.log_maker")
    monkeypatch.chdir(scratch / "work")
    monkeypatch.setenv("HOME", str(scratch / "home"))
    monkeypatch.setenv("OPENJIUWEN_EXTENSION_FOLDERS", f"{scratch / 'env'}{os.pathsep}")

    module.produce.__globals__["WORKPLACES"].set((str(scratch / "given"),))  # as the adapter does

    def goes(path: str) -> bool:
        return bool(module.run({"data": {"a": 1}, "output_path": path})["success"])

    assert all(goes(f"{scratch}/{name}/x.json") for name in ("said", "guarded", "given", "env", "work"))
    assert goes("~/reports/x.json")
    assert not goes("~/x.json")
    assert not goes(f"{scratch}/x.json")
    assert not goes(f"{scratch}/said/../x.json")


def test_a_link_cannot_be_raced_into_being_replaced(
    tools: dict[str, Tool], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, inputs = tools["json"]
    real = module._write

    def write_and_race(data: Any, path: Path) -> None:
        real(data, path)
        (scratch / inputs["output_path"]).write_text("somebody else was faster")

    monkeypatch.setattr(module, "_write", write_and_race)
    result = module.run(inputs)
    assert result["success"] is False
    assert (scratch / inputs["output_path"]).read_text() == "somebody else was faster"


def test_parallel_calls_do_not_disturb_each_other(tools: dict[str, Tool], scratch: Path) -> None:
    results: dict[str, Any] = {}

    def call(form: str, number: int) -> None:
        module, inputs = tools[form]
        results[f"{form}{number}"] = module.run({**inputs, "output_path": f"{number}.{form}"})

    threads = [threading.Thread(target=call, args=(form, n)) for form in FORMATS for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: r["success"] for key, r in results.items()} == {f"{f}{n}": True for f in FORMATS for n in range(2)}
    for path in scratch.iterdir():
        assert verify_artifact(path).verdict is Verdict.PASS


# --------------------------------------------------------------------------- content


def test_text_is_stored_unchanged_in_office_formats(tools: dict[str, Tool]) -> None:
    import docx
    import openpyxl
    import pptx

    text = '季度 <b>&amp; "报告" \u202e عربى 😀 =1+1'
    module, _ = tools["pptx"]
    assert module.run(
        {"title": text, "slides": [{"title": text, "bullets": [text], "notes": text}], "output_path": "a.pptx"}
    )["success"]
    deck = pptx.Presentation("a.pptx")
    assert [s.shapes.title.text for s in deck.slides] == [text, text]  # type: ignore[union-attr]
    assert deck.slides[1].notes_slide.notes_text_frame.text == text  # type: ignore[union-attr]
    module, _ = tools["docx"]
    assert module.run({"title": text, "sections": [{"heading": text, "paragraphs": [text]}], "output_path": "a.docx"})[
        "success"
    ]
    assert [p.text for p in docx.Document("a.docx").paragraphs if p.text] == [text] * 3
    module, _ = tools["xlsx"]
    assert module.run(
        {"title": "t", "sheets": [{"name": "S", "headers": ["h"], "rows": [[text], ["=1+1"]]}], "output_path": "a.xlsx"}
    )["success"]
    sheet = openpyxl.load_workbook("a.xlsx")["S"]
    assert (sheet["A2"].value, sheet["A3"].value, sheet["A3"].data_type) == (text, "=1+1", "s")


def test_a_text_is_never_a_formula_and_a_formula_is_one_on_request(tools: dict[str, Tool]) -> None:
    import openpyxl

    module, _ = tools["xlsx"]
    rows = [["=cmd|' /C calc'!A0", 1], ["+1", {"formula": "=B2*2"}]]
    sheet = {"name": "S", "headers": ["a", "b"], "rows": rows, "totals": ["b"]}
    assert module.run({"title": "t", "sheets": [sheet], "output_path": "a.xlsx"})["success"]
    cells = openpyxl.load_workbook("a.xlsx")["S"]
    assert [cells["A2"].data_type, cells["B3"].data_type, cells["B4"].value] == ["s", "f", "=SUM(B2:B3)"]


@pytest.mark.parametrize("form", ["pptx", "docx", "xlsx"])
def test_an_east_asian_font_is_named(tools: dict[str, Tool], form: str) -> None:
    import zipfile

    module, inputs = tools[form]
    assert module.run({**inputs, "style": {"east_asian_font": "SimSun"}})["success"]
    with zipfile.ZipFile(inputs["output_path"]) as archive:
        text = "".join(archive.read(n).decode("utf-8", "replace") for n in archive.namelist() if n.endswith(".xml"))
    assert "SimSun" in text


@pytest.mark.parametrize("form", ["pdf", "png"])
def test_characters_that_no_font_has_are_refused_by_name(tools: dict[str, Tool], form: str, scratch: Path) -> None:
    module, inputs = tools[form]
    result = module.run({**inputs, "title": "ancient \U00012345 sign"})
    assert result["success"] is False
    assert "U+12345" in result["error"]
    assert "font" in result["error"]
    assert names_in(scratch) == []


def test_chinese_text_in_a_pdf_can_be_read_back(tools: dict[str, Tool]) -> None:
    import pypdf

    module, inputs = tools["pdf"]
    assert module.run({**inputs, "title": "季度经营汇报"})["success"]
    text = "".join(page.extract_text() for page in pypdf.PdfReader(inputs["output_path"]).pages)
    assert "季度经营汇报" in text.replace("\n", "")


def test_right_to_left_text_needs_shaping_and_says_so(tools: dict[str, Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    module, inputs = tools["pdf"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    result = module.run({**inputs, "title": "تقرير"})
    assert result["success"] is False
    assert "shaping" in result["error"]


def test_long_tables_and_many_points_go_on_over_several_slides(tools: dict[str, Tool]) -> None:
    import pptx

    module, _ = tools["pptx"]
    table = {"headers": ["n", "text"], "rows": [[n, "x"] for n in range(30)]}
    slides = [{"title": "Long", "bullets": [f"point {n}" for n in range(20)], "table": table}]
    result = module.run({"title": "T", "slides": slides, "output_path": "a.pptx"})
    assert result["slides"] == 1 + 3
    deck = pptx.Presentation("a.pptx")
    rows = [len(s.table.rows) - 1 for slide in deck.slides for s in slide.shapes if s.has_table]  # type: ignore[attr-defined]
    assert sum(rows) == 30


@pytest.mark.parametrize(
    ("form", "inputs", "words"),
    [
        pytest.param("pptx", {"title": "T", "slides": [{"title": "x", "table": {"headers": ["a", "b"], "rows": [[1]]}}]}, "inputs.slides[0].table.rows[0]: has 1 values for 2 headers", id="a row too short"),
        pytest.param("pptx", {"title": "T", "slides": [{"title": "x", "chart": {"categories": ["a"], "series": [{"name": "s", "values": [1, 2]}]}}]}, "has 2 values for 1 categories", id="a series too long"),
        pytest.param("pptx", {"title": "T", "slides": [{"title": "x", "image": "no.png"}]}, "there is no file 'no.png'", id="an image that is not there"),
        pytest.param("pptx", {"title": "T", "slides": [{"title": "x", "bullets": [{"text": "a", "level": 9}]}]}, "level: 9 is more than 4", id="a level too deep"),
        pytest.param("pptx", {"title": "", "slides": []}, "inputs.slides: needs at least 1", id="nothing in it"),
        pytest.param("docx", {"title": "a\x0bb", "sections": [{}]}, "U+000B cannot be stored in docx", id="a control character"),
        pytest.param("xlsx", {"title": "T", "sheets": [{"name": "a/b", "headers": ["h"], "rows": []}]}, "does not match", id="a sheet name Excel refuses"),
        pytest.param("xlsx", {"title": "T", "sheets": [{"name": "A", "headers": ["h"], "rows": []}, {"name": "a", "headers": ["h"], "rows": []}]}, "two sheets are named", id="a sheet name twice"),
        pytest.param("xlsx", {"title": "T", "sheets": [{"name": "A", "headers": ["h"], "rows": [["x" * 40_000]]}]}, "32767", id="a cell too long"),
        pytest.param("xlsx", {"title": "T", "sheets": [{"name": "A", "headers": ["h"], "rows": [[float("nan")]]}]}, "not a number", id="NaN"),
        pytest.param("xlsx", {"title": "T", "sheets": [{"name": "A", "headers": ["h"], "rows": [], "totals": ["z"]}]}, "no column 'z'", id="a total of nothing"),
        pytest.param("csv", {"headers": ["a", "b"], "rows": [[1]]}, "inputs.rows[0]: has 1 values for 2 headers", id="a record too short"),
        pytest.param("csv", {"headers": ["a", "a"], "rows": []}, "two columns are named 'a'", id="a column twice"),
        pytest.param("csv", {"headers": ["a\nb"], "rows": []}, "must be one line", id="a header of two lines"),
        pytest.param("md", {"title": "T", "sections": [{"code": {"text": "x", "language": "a b"}}]}, "does not match", id="a language with a blank"),
        pytest.param("md", {"title": "T", "sections": [{"image": "no.png"}]}, "there is no file 'no.png'", id="a picture that is not there"),
        pytest.param("html", {"title": "T", "sections": [{"diagram": {"boxes": [{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]}}]}, "inputs.sections[0].diagram: two boxes are 'a'", id="a box twice"),
        pytest.param("html", {"title": "T", "sections": [{}], "language": '"><script>'}, "does not match", id="a language that is none"),
        pytest.param("svg", {"title": "T"}, "exactly one of chart, diagram, table", id="no figure"),
        pytest.param("svg", {"table": {"headers": ["a"], "rows": [[1]] * 61}}, "at most 60", id="a table too long"),
        pytest.param("json", {"data": "text"}, "must be object or array", id="a bare text as data"),
        pytest.param("png", {"title": "T"}, "exactly one of chart, diagram, table", id="nothing to draw"),
        pytest.param("png", {"diagram": {"boxes": [{"id": "a", "label": "A"}], "arrows": [{"from": "a", "to": "b"}]}}, "no box 'b'", id="an arrow to nowhere"),
        pytest.param("png", {"chart": {"type": "pie", "categories": ["a"], "series": [{"name": "s", "values": [-1]}]}}, "positive", id="a negative slice"),
    ],
)  # fmt: skip
def test_content_that_does_not_fit_is_reported_by_path(
    tools: dict[str, Tool], form: str, inputs: dict[str, Any], words: str, scratch: Path
) -> None:
    module, _ = tools[form]
    result = module.run({**inputs, "output_path": f"x.{form}"})
    assert result["success"] is False
    assert words in result["error"], result["error"]
    assert names_in(scratch) == []


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param({"diagram": {"boxes": [{"id": c, "label": f"步骤 {c}"} for c in "abc"], "arrows": [{"from": "a", "to": "b", "label": "then"}, {"from": "b", "to": "c"}, {"from": "c", "to": "a"}]}}, id="a diagram with a circle"),
        pytest.param({"table": {"headers": ["a", "b"], "rows": [["$x$", None], [True, 1.5]]}}, id="a table"),
        pytest.param({"chart": {"type": "pie", "categories": ["a", "b"], "series": [{"name": "s", "values": [1, 2]}]}}, id="a pie"),
        pytest.param({"chart": {"type": "line", "categories": ["a", "b"], "series": [{"name": "s", "values": [1, 2]}]}, "width": 400, "height": 300}, id="a small line chart"),
    ],
)  # fmt: skip
def test_every_kind_of_picture_is_drawn(tools: dict[str, Tool], inputs: dict[str, Any], scratch: Path) -> None:
    module, _ = tools["png"]
    result = module.run({**inputs, "output_path": "x.png"})
    assert result["success"] is True, result
    assert (result["width"], result["height"]) == (inputs.get("width", 1200), inputs.get("height", 750))


@pytest.mark.parametrize("form", ["pptx", "docx", "xlsx"])
def test_a_template_file_is_used_and_a_bad_one_refused(tools: dict[str, Tool], form: str, scratch: Path) -> None:
    module, inputs = tools[form]
    assert module.run(inputs)["success"]
    os.rename(inputs["output_path"], f"base.{form}")
    extra = {"sheets": [{"name": "New", "headers": ["h"], "rows": [[1]]}]} if form == "xlsx" else {}
    result = module.run({**inputs, **extra, "template": f"base.{form}"})
    assert result["success"] is True, result
    Path(f"bad.{form}").write_text("text")
    result = module.run({**inputs, "overwrite": True, "template": f"bad.{form}"})
    assert result["success"] is False


def test_required_keys_and_minimums_of_the_plan_are_enforced(plans: Plans, scratch: Path) -> None:
    spec = {"artifact": {"format": "json", "required_keys": ["/meta/id", "total"], "minimum": {"records": 3}}}
    tree = plans.tree(design("order_export", tools=[{"does": spec}]))
    module = load_work(tree, "tools.order_export")
    missing = module.run({"data": {"total": 1}, "output_path": "a.json"})
    assert "'/meta/id' is required" in missing["error"]
    few = module.run({"data": {"total": 1, "meta": {"id": 1}}, "output_path": "a.json"})
    assert "records>=3" in few["error"]
    good = module.run({"data": {"total": 1, "meta": {"id": 1}, "more": 1}, "output_path": "a.json"})
    assert good["success"] is True
    assert json.loads(Path("a.json").read_text())["meta"]["id"] == 1


# --------------------------------------------------------------------------- anything at all


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
INPUTS = st.dictionaries(
    st.sampled_from(
        [
            "title",
            "slides",
            "sections",
            "sheets",
            "data",
            "chart",
            "table",
            "diagram",
            "style",
            "template",
            "overwrite",
            "headers",
            "rows",
        ]
    ),
    JSON,
)


@each_format
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs=INPUTS)
def test_no_inputs_make_a_tool_raise_or_lie(
    tools: dict[str, Tool], form: str, inputs: dict[str, Any], scratch: Path
) -> None:
    module, _ = tools[form]
    result = module.run({**inputs, "overwrite": True, "output_path": f"out.{form}"})
    assert result["success"] in (True, False)
    if result["success"]:
        assert verify_result(result, root=str(scratch), format=form).verdict is Verdict.PASS
    else:
        assert result["error"]
