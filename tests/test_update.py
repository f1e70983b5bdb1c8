"""Running it again is updating: edits are merged, deletions stay, nothing that is not ours is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import Plans, run_cli

from extforge.check import load_plan
from extforge.errors import TargetError
from extforge.generate import Generated, Options, existing_extensions, generate
from extforge_verifiers import verify_extension

ROOT = "openjiuwen/extensions/harness"


class Project:
    """A plan, and the folder that it is generated into."""

    def __init__(self, folder: Path) -> None:
        self.package = ""
        self.plan = folder / "my.plan.json"
        self.target = folder / "out"
        self.tree = self.target / ROOT / "sales_deck"

    def run(self, *designs: dict[str, Any], **options: Any) -> Generated:
        self.plan.write_text(json.dumps({"package_name": self.package, "designs": designs or [DECK]}))
        return generate(load_plan(str(self.plan)), str(self.target), Options(**options))

    def actions(self, *designs: dict[str, Any], **options: Any) -> dict[str, str]:
        """Return what is done, without what is not, paths from the tree on."""
        result = self.run(*designs, **options)
        rows = {path.removeprefix(f"{ROOT}/"): str(row.action) for path, row in result.changes.rows.items()}
        return {path: action for path, action in rows.items() if action != "identical"}

    def snapshot(self) -> dict[str, bytes]:
        found = [p for p in self.target.rglob("*") if p.is_file() and p.name != "running"]
        return {str(p.relative_to(self.target)): p.read_bytes() for p in found}


def design(name: str = "sales_deck", **fields: Any) -> dict[str, Any]:
    return {"gap_id": f"gap_{name}", "extension_name": name, "components": ["tool", "skill"], **fields}


DECK = design(description="Makes the deck of a quarter.")
OTHER = design("invoice_pdf", components=["tool"])
CHANGED = design(description="Makes the deck of a month.")
SKILL = "skills/sales_deck/SKILL.md"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_plan_that_changed_updates_what_nobody_touched(project: Project) -> None:
    project.run(DECK)
    found = project.actions(CHANGED)
    assert set(found.values()) == {"update"}
    assert f"sales_deck/{SKILL}" in found
    assert "month" in (project.tree / SKILL).read_text()
    assert project.actions(CHANGED) == {}


def test_edits_survive_a_changed_plan_and_come_out_merged(project: Project) -> None:
    project.run(DECK)
    skill = project.tree / SKILL
    skill.write_text(skill.read_text() + "\n## Ours\n\nAsk finance first.\n")
    edit(project.tree / "tools/sales_deck.py", "def run(", "# ours\ndef run(")
    assert project.actions(DECK) == {f"sales_deck/{SKILL}": "edited", "sales_deck/tools/sales_deck.py": "edited"}
    assert project.actions(CHANGED)[f"sales_deck/{SKILL}"] == "merge"
    text = skill.read_text()
    assert "month" in text
    assert text.endswith("Ask finance first.\n")
    assert "# ours\ndef run(" in (project.tree / "tools/sales_deck.py").read_text()
    assert project.actions(CHANGED) == {f"sales_deck/{SKILL}": "edited", "sales_deck/tools/sales_deck.py": "edited"}


def test_both_changing_one_place_is_a_conflict_and_changes_nothing(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / SKILL, "quarter", "year")
    before = project.snapshot()
    result = project.run(CHANGED)
    assert not result.applied
    assert result.changes.blocked == [f"{ROOT}/sales_deck/{SKILL}"]
    assert "changed on both sides" in result.changes.rows[f"{ROOT}/sales_deck/{SKILL}"].reason
    assert project.snapshot() == before


@pytest.mark.parametrize(
    ("way", "has", "has_not"),
    [("inline", ["<<<<<<< yours", "year", "month"], []), ("mine", ["year"], ["<<<<<<<"]), ("generated", ["month"], ["year"])],
)  # fmt: skip
def test_a_conflict_ends_as_asked_for_and_does_not_come_back(
    project: Project, way: str, has: list[str], has_not: list[str]
) -> None:
    project.run(DECK)
    edit(project.tree / SKILL, "quarter", "year")
    assert project.run(CHANGED, conflicts=way).applied
    text = (project.tree / SKILL).read_text()
    assert [word in text for word in has] == [True] * len(has)
    assert [word in text for word in has_not] == [False] * len(has_not)
    again = project.run(CHANGED)
    assert (again.applied, again.changes.writes) == (True, [])


def test_what_was_deleted_stays_deleted_until_it_is_asked_for(project: Project) -> None:
    project.run(DECK)
    gone = project.tree / "tools/sales_deck.json"
    old = gone.read_bytes()
    gone.unlink()
    path = f"{ROOT}/sales_deck/tools/sales_deck.json"
    assert project.actions(CHANGED)["sales_deck/tools/sales_deck.json"] == "removed"
    assert not gone.exists()
    gone.write_bytes(old)  # out of version control, say: known again, and brought up to date
    assert project.actions(CHANGED)["sales_deck/tools/sales_deck.json"] == "update"
    gone.unlink()
    assert project.run(CHANGED, force=frozenset([path])).applied
    assert gone.exists()


def test_what_is_no_longer_generated_goes_unless_it_was_edited(project: Project) -> None:
    project.run(DECK, OTHER)
    pdf = project.target / ROOT / "invoice_pdf"
    edit(pdf / "tools/invoice_pdf.py", "def run(", "# ours\ndef run(")
    (pdf / "notes.txt").write_text("foreign")
    (pdf / "tools/__pycache__").mkdir()
    found = project.actions(DECK)
    assert found.pop("invoice_pdf/tools/invoice_pdf.py") == "orphaned"
    assert found.pop("invoice_pdf/notes.txt") == "orphaned"  # named, since its extension is gone
    assert set(found.values()) == {"delete"}
    left = sorted(str(p.relative_to(pdf)) for p in pdf.rglob("*") if p.is_file())
    assert left == ["notes.txt", "tools/invoice_pdf.py"]
    assert not (project.target / "acceptance/invoice_pdf.yaml").exists()
    assert project.actions(DECK) == {"invoice_pdf/tools/invoice_pdf.py": "orphaned"}
    (pdf / "tools/invoice_pdf.py").unlink()
    assert project.actions(DECK) == {}


def test_one_component_less_takes_its_files_away_and_folders_that_are_empty(project: Project) -> None:
    project.run(DECK)
    project.run(design(description=DECK["description"], components=["tool"]))
    assert not (project.tree / "skills").exists()
    assert verify_extension(str(project.tree)).verdict.value == "pass"


def test_another_plan_of_the_same_name_deletes_nothing(project: Project) -> None:
    project.run(DECK)
    assert set(project.actions(OTHER).values()) == {"create"}
    assert project.tree.is_dir()


def test_only_one_extension_leaves_the_others_alone(project: Project) -> None:
    project.run(DECK, OTHER)
    found = project.actions(CHANGED, only="sales_deck")
    assert {path.partition("/")[0] for path in found} == {"acceptance", "sales_deck"}
    assert project.actions(CHANGED, OTHER) == {}
    assert (project.target / ROOT / "invoice_pdf").is_dir()


def test_a_renamed_extension_takes_the_edits_along(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / "tools/sales_deck.py", "def run(", "# ours\ndef run(")
    renamed = {**DECK, "extension_name": "turnover_deck"}
    found = project.actions(renamed)
    assert found["turnover_deck/tools/turnover_deck.py"] == "merge"
    assert not project.tree.exists()
    new = project.target / ROOT / "turnover_deck"
    assert "# ours\ndef run(" in (new / "tools/turnover_deck.py").read_text()
    assert verify_extension(str(new)).verdict.value == "pass"
    assert project.actions(renamed) == {"turnover_deck/tools/turnover_deck.py": "edited"}


def test_names_that_are_swapped_or_passed_on_take_their_edits_along(project: Project) -> None:
    one, two = design("sales_guide", components=["skill"]), design("stock_guide", components=["skill"])
    project.run(one, two)
    skill = "skills/{0}/SKILL.md"
    path = project.target / ROOT / "sales_guide" / skill.format("sales_guide")
    path.write_text(path.read_text() + "\nOf sales.\n")
    swapped = {**one, "extension_name": "stock_guide"}, {**two, "extension_name": "sales_guide"}
    assert project.run(*swapped).applied
    assert (project.target / ROOT / "stock_guide" / skill.format("stock_guide")).read_text().endswith("Of sales.\n")
    assert "Of sales" not in path.read_text()
    passed_on = {**one, "extension_name": "sales_guide"}, {**two, "extension_name": "price_guide"}
    assert project.run(*passed_on).applied
    assert path.read_text().endswith("Of sales.\n")
    assert not (project.target / ROOT / "stock_guide").exists()


def test_a_name_that_is_part_of_a_folder_name_is_renamed_alone(project: Project) -> None:
    project.run(design("tool", components=["tool"]))
    edit(project.target / ROOT / "tool/tools/tool.py", "def run(", "# ours\ndef run(")
    assert project.run({**design("tool", components=["tool"]), "extension_name": "lever"}).applied
    assert "# ours" in (project.target / ROOT / "lever/tools/lever.py").read_text()


def test_what_was_deleted_stays_deleted_after_a_rename(project: Project) -> None:
    project.run(DECK)
    (project.tree / SKILL).unlink()
    assert project.run({**DECK, "extension_name": "turnover_deck"}).applied
    assert not (project.target / ROOT / "turnover_deck/skills/turnover_deck/SKILL.md").exists()


@pytest.mark.parametrize("there", [{"merge": True}, {}])
def test_edits_move_between_layouts(project: Project, there: dict[str, Any]) -> None:
    one, two = design("sales_guide", components=["skill"]), design("stock_guide", components=["skill"])
    back = {} if there else {"merge": True}
    homes = [f"{ROOT}/sales_guide", f"{ROOT}/pack/sales_guide"]
    now, then = homes[:: 1 if there else -1]
    project.package = "pack"
    project.run(one, two, **back)
    path = project.target / now / "skills/sales_guide/SKILL.md"
    path.write_text(path.read_text() + "\nOurs.\n")
    assert project.run(one, two, **there).applied
    assert (project.target / then / "skills/sales_guide/SKILL.md").read_text().endswith("Ours.\n")
    assert not (project.target / now).exists() or now in then
    assert project.actions(one, two, **there) == {
        f"{then.removeprefix(f'{ROOT}/')}/skills/sales_guide/SKILL.md": "edited"
    }


def test_two_plans_share_a_constraint_and_neither_takes_it_from_the_other(project: Project) -> None:
    guard = design("name_guard", kind="constraint", components=["rail"])
    other = Project(project.target.parent / "b")
    other.plan.parent.mkdir()
    other.plan, other.target = other.plan.with_name("other.plan.json"), project.target
    project.run(guard, DECK)
    other.run(guard, OTHER)
    assert set(other.actions(OTHER).values()) == set()
    assert set(project.actions(guard, DECK).values()) <= {"update"}  # it knows the formats of a plan's tools
    with pytest.raises(TargetError, match="for the gap 'gap_name_guard'"):
        other.run({**guard, "gap_id": "another"}, OTHER)


def test_a_clone_with_the_line_ends_of_windows_is_not_edited(project: Project) -> None:
    project.run(DECK)
    for path in project.target.rglob("*"):
        if path.is_file() and path.name != "lock.json":
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert project.actions(DECK) == {}
    skill = project.tree / SKILL
    skill.write_bytes(skill.read_bytes() + b"\r\nOurs.\r\n")
    found = project.actions(CHANGED)
    assert (found[f"sales_deck/{SKILL}"], set(found.values())) == ("merge", {"merge", "update"})
    for path in (skill, project.tree / "harness_config.yaml"):
        data = path.read_bytes()
        assert data.count(b"\r\n") == data.count(b"\n") > 5
        assert b"\r\r" not in data


def test_where_both_changed_it_is_decided_place_by_place(project: Project) -> None:
    project.run(DECK)
    skill = project.tree / SKILL
    edit(skill, "quarter", "year")
    skill.write_text(skill.read_text() + "\n## House rules\n")
    assert project.run(CHANGED, conflicts="generated").applied
    text = skill.read_text()
    assert text.endswith("## House rules\n")
    assert "year" not in text
    assert "month" in text


def test_a_foreign_file_is_overwritten_only_when_it_is_named(project: Project) -> None:
    path = f"{ROOT}/sales_deck/tools/sales_deck.py"
    (project.target / path).parent.mkdir(parents=True)
    (project.target / path).write_text("mine")
    assert not project.run(DECK).applied
    with pytest.raises(TargetError, match="not a file that this plan generates"):
        project.run(DECK, force=frozenset(["README.md"]))
    assert project.run(DECK, force=frozenset([path])).applied
    assert (project.target / path).read_text() != "mine"


# --------------------------------------------------------------------------- a repository


def test_a_repository_that_builds_and_verifies_itself(project: Project, tmp_path: Path) -> None:
    project.run(DECK, OTHER, repo=True)
    workflow = yaml.safe_load((project.target / ".github/workflows/verify.yml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["verify"]["steps"] if "run" in step]
    assert runs[1:] == [
        "pip install .",
        "extforge verify . --format github",
        "extforge verify . --host --format github",
    ]
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist")]
    done = subprocess.run([*command, str(project.target)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert f"{ROOT}/sales_deck/harness_config.yaml" in names
    assert f"{ROOT}/invoice_pdf/tools/invoice_pdf_tool.py" in names
    assert "Requires-Dist: python-pptx>=1.0" in metadata
    assert run_cli("verify", str(project.target)).returncode == 0


def test_a_repository_keeps_what_is_there_and_follows_the_plan(project: Project) -> None:
    project.target.mkdir()
    (project.target / "README.md").write_text("mine")
    project.run(DECK, repo=True)
    assert (project.target / "README.md").read_text() == "mine"
    found = project.actions(DECK, OTHER)  # without being asked again
    assert (found["pyproject.toml"], found["README.md"]) == ("update", "edited")
    assert "invoice_pdf" in (project.target / "pyproject.toml").read_text()
    assert (project.target / "README.md").read_text() == "mine"


@pytest.mark.parametrize("repo", [True, False], ids=["both ask for it", "one asks for it"])
def test_the_repository_of_two_plans_lists_both_whichever_is_generated_last(tmp_path: Path, repo: bool) -> None:
    one, two = Project(tmp_path), Project(tmp_path)
    two.plan, one.package, two.package = tmp_path / "your.plan.json", "alpha", "beta"
    guard = design("name_guard", kind="constraint", components=["rail"], requirements=["tomli >= 2"])
    first = lambda: one.run(DECK, repo=True)  # noqa: E731 -- each is run three times
    second = lambda: two.run(OTHER, guard, repo=repo)  # noqa: E731
    first()
    assert second().applied
    texts = {name: (one.target / name).read_text() for name in ("README.md", "pyproject.toml")}
    loads = [line for line in texts["README.md"].splitlines() if "load_plugin" in line]
    assert [line.rpartition("/")[2].rstrip('")') for line in loads] == ["name_guard", "invoice_pdf", "sales_deck"]
    assert "| `openjiuwen/extensions/harness/invoice_pdf` | tool `invoice_pdf` |" in texts["README.md"]
    assert "$ extforge generate PLAN --into . --diff" in texts["README.md"]
    for part in ('name = "alpha"', '"python-pptx>=1.0"', '"reportlab>=4.1"', '"tomli>=2"'):
        assert part in texts["pyproject.toml"]
    edit(one.target / f"{ROOT}/invoice_pdf/harness_config.yaml", "name: invoice_pdf", "name: invoice_pdf  # ours")
    before = one.snapshot()
    for again in (first, second, first):
        assert again().changes.writes == []
        assert one.snapshot() == before
    shutil.rmtree(one.target)
    second(), first()
    assert {name: (one.target / name).read_text() for name in texts} == texts
    two.run(OTHER)  # the guard is gone
    assert "name_guard" not in (one.target / "README.md").read_text()
    assert first().changes.writes == []


def test_the_readme_has_the_command_that_made_the_trees_and_no_tree_that_was_deleted(project: Project) -> None:
    project.package = "demo_pack"
    project.run(DECK, OTHER, repo=True, merge=True, mcp=True)
    readme = (project.target / "README.md").read_text()
    assert "$ extforge generate my.plan.json --into . --merge --mcp --diff" in readme
    assert readme.count("load_plugin") == 1
    assert "tool `sales_deck`, tool `invoice_pdf`, skill `sales_deck`" in readme
    shutil.rmtree(project.target)
    project.run(DECK, OTHER, repo=True)
    shutil.rmtree(project.tree)
    found = project.actions(DECK, OTHER)
    assert found["README.md"] == "update"
    assert "sales_deck" not in (project.target / "README.md").read_text()
    assert set(project.actions(DECK, OTHER).values()) == {"removed"}


# --------------------------------------------------------------------------- what is no edit


def test_the_hosts_skill_id_is_no_edit_and_stays(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / SKILL, "name: ", "skill_id: abc123\nname: ")
    assert project.actions(DECK) == {}
    assert project.run(CHANGED).applied
    text = (project.tree / SKILL).read_text()
    assert "skill_id: abc123\n" in text
    assert "month" in text


def test_a_formatter_and_line_ends_are_no_edit(project: Project) -> None:
    project.run(DECK)
    tool = project.tree / "tools/sales_deck.py"
    tool.write_bytes(tool.read_bytes().replace(b"\n", b"\r\n"))
    adapter = project.tree / "tools/sales_deck_tool.py"
    text = adapter.read_text()
    adapter.write_text(text.replace('"', "'").replace("'''", '"""'))
    assert adapter.read_text() != text
    assert project.actions(DECK) == {}
    adapter.write_text(text.replace("import", "# new\nimport", 1))
    assert project.actions(DECK) == {"sales_deck/tools/sales_deck_tool.py": "edited"}


# --------------------------------------------------------------------------- harness_config.yaml


def test_a_manifest_merges_by_what_it_says_and_keeps_comments(project: Project) -> None:
    project.run(DECK)
    manifest = project.tree / "harness_config.yaml"
    edit(manifest, "resources:\n", "# ours: why\nresources:\n  prompts: {sections: []}  # later\n")
    text = manifest.read_text()
    entry = (
        "    - type: package\n      module: openjiuwen.extensions.harness.sales_deck.tools.extra\n      class: Extra\n"
    )
    at = text.index("  skills:\n")
    manifest.write_text(text[:at] + entry + text[at:])
    (project.tree / "tools/extra.py").write_text("")
    more = {
        **DECK,
        "tools": [{"name": "sales_deck"}, {"name": "sales_sheet", "does": {"artifact": {"format": "xlsx"}}}],
    }
    found = project.actions(more)
    assert found["sales_deck/harness_config.yaml"] == "merge", found
    merged = manifest.read_text()
    value = yaml.safe_load(merged)
    assert value["resources"]["tools"][0]["class"] == "SalesDeckTool"
    assert {"Extra"} < {tool["class"] for tool in value["resources"]["tools"]}
    assert len(value["resources"]["tools"]) == 3
    assert "# ours: why" in merged
    assert "# later" in merged


def test_comments_stay_where_an_entry_of_a_list_changes(project: Project) -> None:
    tools = [{"name": "sales_deck"}, {"name": "sales_export", "does": {"artifact": {"format": "json"}}}]
    project.run({**DECK, "tools": tools})
    manifest = project.tree / "harness_config.yaml"
    edit(manifest, "class: SalesDeckTool", "class: SalesDeckTool  # reviewed by Ann")
    edit(manifest, "    - type: package", "    # the deck\n    - type: package")
    changed = [
        {**tools[0], "class": "DeckTool"},
        tools[1],
        {"name": "sales_csv", "does": {"artifact": {"format": "csv"}}},
    ]
    result = project.run({**DECK, "tools": changed}, conflicts="inline")
    text = manifest.read_text()
    assert result.applied
    assert "# reviewed by Ann" in text
    assert "# the deck" in text


def test_a_manifest_that_is_no_yaml_any_more_is_named(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / "harness_config.yaml", "resources:", "resources: [")
    result = project.run(CHANGED)
    reason = result.changes.rows[f"{ROOT}/sales_deck/harness_config.yaml"].reason
    assert (result.applied, "cannot be read as a manifest" in reason) == (False, True)


def test_a_manifest_value_changed_on_both_sides_is_named(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / "harness_config.yaml", "quarter", "year")
    result = project.run(CHANGED)
    reason = result.changes.rows[f"{ROOT}/sales_deck/harness_config.yaml"].reason
    assert (result.applied, reason) == (False, "$.description changed on both sides")


# --------------------------------------------------------------------------- the lock is data of others


def lock_of(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project.target / ".extforge/lock.json").read_text())
    return data


@pytest.mark.parametrize(
    "path", ["../keep.txt", "/etc/hostname", "a/../../keep.txt", ".extforge/lock.json", "a\\..\\b"]
)
def test_a_lock_cannot_name_what_is_not_ours(project: Project, path: str) -> None:
    project.run(DECK)
    keep = project.target.parent / "keep.txt"
    keep.write_text("keep")
    data = lock_of(project)
    data["files"][path] = {"sha256": "0" * 64, "plans": ["my.plan.json"]}
    (project.target / ".extforge/lock.json").write_text(json.dumps(data))
    with pytest.raises(TargetError, match="damaged"):
        project.run(DECK)
    assert keep.read_text() == "keep"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": "extforge.lock.v9"}', "<<<<<<< HEAD"])
def test_a_damaged_lock_stops_everything_with_a_reason(project: Project, text: str) -> None:
    project.run(DECK)
    (project.target / ".extforge/lock.json").write_text(text)
    before = project.snapshot()
    with pytest.raises(TargetError, match="lock"):
        project.run(CHANGED)
    assert project.snapshot() == before


def test_without_pristine_texts_only_a_merge_is_impossible(project: Project) -> None:
    project.run(DECK)
    shutil.rmtree(project.target / ".extforge/base")
    assert project.actions(DECK) == {}
    assert [*(project.target / ".extforge/base").rglob("*")]  # what can be written again, is
    shutil.rmtree(project.target / ".extforge/base")
    edit(project.tree / SKILL, "quarter", "year")
    result = project.run(CHANGED)
    assert "no longer has what to merge from" in result.changes.rows[f"{ROOT}/sales_deck/{SKILL}"].reason


def test_a_lost_lock_adopts_what_is_the_same(project: Project) -> None:
    project.run(DECK)
    shutil.rmtree(project.target / ".extforge")
    assert project.actions(DECK) == {}
    assert lock_of(project)["files"]


# --------------------------------------------------------------------------- the command line


def test_dry_run_diff_check_and_json(project: Project, tmp_path: Path) -> None:
    project.run(DECK)
    project.plan.write_text(json.dumps({"designs": [CHANGED]}))
    before = project.snapshot()
    command = ("generate", str(project.plan), "--into", str(project.target))
    done = run_cli(*command, "--diff", "--dry-run")
    assert done.returncode == 0
    assert "-description: Makes the deck of a quarter." in done.stdout
    assert "+description: Makes the deck of a month." in done.stdout
    assert "would update" in done.stdout
    assert "\x1b[" not in done.stdout
    assert "\x1b[32m+" in run_cli(*command, "--diff", "--dry-run", FORCE_COLOR="1").stdout
    assert run_cli(*command, "--check").returncode == 1
    data = json.loads(run_cli(*command, "--dry-run", "--json").stdout)
    assert (data["applied"], data["create"]) == (False, [])
    assert f"{ROOT}/sales_deck/{SKILL}" in data["update"]
    assert project.snapshot() == before
    assert run_cli(*command, "--quiet").stdout == ""
    assert run_cli(*command, "--check").returncode == 0


def test_a_conflict_on_the_command_line_exits_with_1_and_says_the_ways_out(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / SKILL, "quarter", "year")
    project.plan.write_text(json.dumps({"designs": [CHANGED]}))
    command = ("generate", str(project.plan), "--into", str(project.target))
    done = run_cli(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was changed: --conflicts inline" in done.stderr
    data = json.loads(run_cli(*command, "--json").stdout)
    assert data["conflict"] == [f"{ROOT}/sales_deck/{SKILL}"]
    assert run_cli(*command, "--conflicts", "mine").returncode == 0


def test_git_is_not_needed_and_merges_the_same(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for number, path in enumerate((os.environ["PATH"], "/nowhere")):
        other = Project(project.plan.parent / str(number))
        other.plan.parent.mkdir()
        other.run(DECK)
        skill = other.tree / SKILL
        skill.write_text(skill.read_text() + "\nOurs.\n")
        monkeypatch.setenv("PATH", path)
        assert other.run(CHANGED).applied
        texts.append(skill.read_text())
    assert texts[0] == texts[1]


# --------------------------------------------------------------------------- guards that are in the target


NAMING = design(
    "naming_rule",
    kind="constraint",
    components=["rail"],
    rails=[{"does": {"guard": {"require": {"stem_suffix": "_v1"}}}}],
)


def written_to(project: Project, *designs: dict[str, Any], plan: str = "my.plan.json") -> str:
    """Generate as the command does, and return where the acceptance file of the deck writes."""
    path = project.plan.with_name(plan)
    path.write_text(json.dumps(list(designs)))
    target = str(project.target)
    generate(load_plan(str(path), existing=existing_extensions(target)), target)
    tests = yaml.safe_load((project.target / "acceptance/sales_deck.yaml").read_text())["tool_tests"]
    return str(tests[0]["inputs"]["output_path"])


def test_a_guard_in_the_target_counts_as_it_is_there(project: Project) -> None:
    other = design("other_deck", components=["tool"])
    generate(load_plan(Plans(project.plan.parent).write(NAMING)), str(project.target))
    assert written_to(project, DECK) == "sales_deck_v1.pptx"
    rules = project.target / ROOT / "naming_rule/rails/naming_rule.json"
    edit(rules, '"_v1"', '"_v2"')
    assert written_to(project, DECK) == "sales_deck_v2.pptx"
    edit(rules, '"tools": []', '"tools": ["other_deck"]')
    assert written_to(project, DECK, other) == "sales_deck.pptx"


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "[]",
        '{"options": 3, "tools": []}',
        '{"options": {"require": {"stem_suffix": 3}}, "tools": []}',
        '{"options": {"require": {"stem_suffix": "_v1"}}, "tools": "deck"}',
        '{"options": {"require": {"stem_suffix": "_v1", "pattern": "(a+)+b"}}, "tools": []}',
        '{"options": {"require": {"stem_suffix": "_v1"}, "forbid": {"argument": {"a": "(a+)+b"}}}, "tools": []}',
    ],
)
def test_rules_that_cannot_be_used_are_passed_over(project: Project, rules: str) -> None:
    generate(load_plan(Plans(project.plan.parent).write(NAMING)), str(project.target))
    (project.target / ROOT / "naming_rule/rails/naming_rule.json").write_text(rules)
    assert written_to(project, DECK) == "sales_deck.pptx"


def test_a_guard_that_the_plan_drops_counts_no_more(project: Project) -> None:
    assert written_to(project, NAMING, DECK) == "sales_deck_v1.pptx"
    assert written_to(project, DECK) == "sales_deck.pptx"
    assert not (project.target / ROOT / "naming_rule").exists()
    before = project.snapshot()
    assert written_to(project, DECK) == "sales_deck.pptx"
    assert project.snapshot() == before
    generate(load_plan(Plans(project.plan.parent).write(NAMING)), str(project.target))
    assert written_to(project, DECK) == "sales_deck_v1.pptx", "another plan's guard stays, and counts"


def test_guards_of_a_merged_extension_count_too(project: Project) -> None:
    path = project.plan.with_name("rules.plan.json")
    path.write_text(json.dumps({"package_name": "all_rules", "designs": [NAMING, OTHER]}))
    generate(load_plan(str(path)), str(project.target), Options(merge=True))
    assert written_to(project, DECK) == "sales_deck_v1.pptx"
