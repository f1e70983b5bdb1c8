"""All designs as one extension: what openJiuwen's own merger loses is kept, and the real host runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import design, example, run_cli

from extforge.check import load_plan
from extforge.errors import TargetError
from extforge.generate import Options, generate
from extforge_verifiers import verify_extension

ROOT = "openjiuwen/extensions/harness"


def merge(folder: Path, *designs: dict[str, Any], package: str = "office_pack") -> Path:
    plan = folder / "pack.plan.json"
    plan.write_text(json.dumps({"package_name": package, "designs": designs}))
    result = generate(load_plan(str(plan)), str(folder / "out"), Options(merge=True))
    assert result.applied
    assert result.roots == [f"{ROOT}/{package}"]
    return folder / "out"


def test_every_tree_stays_whole_and_there_is_one_manifest(tmp_path: Path) -> None:
    deck = design("sales_deck", components=["tool", "skill"], requirements=["lxml>=5.1", "pyyaml"])
    sheet = design("sales_sheet", components=["tool", "skill"], requirements=["PyYAML>=6"])
    guard = design("name_guard", kind="constraint", components=["rail"], applies_to=["sales_deck"])
    out = merge(tmp_path, guard, {**deck, "depends_on": ["name_guard"]}, sheet)
    tree = out / ROOT / "office_pack"
    assert [p.relative_to(out).as_posix() for p in out.rglob("harness_config.yaml")] == [
        f"{ROOT}/office_pack/harness_config.yaml"
    ]
    manifest = yaml.safe_load((tree / "harness_config.yaml").read_text())
    assert manifest["resources"]["skills"]["dirs"] == ["sales_deck/skills/", "sales_sheet/skills/"]
    assert [t["class"] for t in manifest["resources"]["tools"]] == ["SalesDeckTool", "SalesSheetTool"]
    about = manifest["metadata"]["extension"]
    assert (about["kind"], about["depends_on"], about["applies_to"]) == ("capability", [], [])
    assert [part["name"] for part in about["merged"]] == ["name_guard", "sales_deck", "sales_sheet"]
    wanted = (tree / "requirements.txt").read_text().splitlines()
    assert wanted == ["lxml>=5.1", "python-pptx>=1.0", "PyYAML>=6"]
    assert (tree / "sales_deck/skills/sales_deck/SKILL.md").is_file()
    assert verify_extension(str(tree)).verdict.value == "pass"
    spec = yaml.safe_load((out / "acceptance/office_pack.yaml").read_text())
    assert [test["tool_name"] for test in spec["tool_tests"]] == ["sales_deck", "sales_sheet"]


@pytest.mark.parametrize(
    ("package", "more", "words"),
    [
        ("", {}, "the plan has no package_name"),
        ("office-pack", {}, "snake_case"),
        ("class", {}, "snake_case"),
        ("office_pack", {"harness_config_patch": {"prompts": {"mode": "b"}}}, "want mode to be 'a' and 'b'"),
    ],
)
def test_what_cannot_be_one_is_refused(tmp_path: Path, package: str, more: dict[str, Any], words: str) -> None:
    one = design("sales_deck", harness_config_patch={"prompts": {"mode": "a"}})
    with pytest.raises(TargetError, match=words):
        merge(tmp_path, one, design("sales_sheet", **more), package=package)
    assert not (tmp_path / "out").exists()


def test_a_session_has_its_trees_where_its_harness_looks(tmp_path: Path) -> None:
    plan = tmp_path / "p.plan.json"
    plan.write_text(json.dumps([design("sales_guide", components=["skill"])]))
    done = run_cli("generate", str(plan), "--into", str(tmp_path / "out"), "--session", "abc-1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/runtime_extensions/abc-1/sales_guide/harness_config.yaml").is_file()
    wrong = run_cli("generate", str(plan), "--into", str(tmp_path / "out"), "--session", "../x")
    assert (wrong.returncode, "--session '../x'" in wrong.stderr) == (2, True)


@pytest.mark.host
def test_the_real_host_runs_the_whole_demo_as_one_extension(tmp_path: Path) -> None:
    out = merge(tmp_path, *example("demo"))
    done = run_cli("verify", str(out), "--host", "--json")
    assert done.returncode == 0, done.stdout
    (report,) = json.loads(done.stdout)["reports"]
    assert (report["facts"]["tools"], report["facts"]["rails"], report["facts"]["skills"]) == (4, 2, 3)
