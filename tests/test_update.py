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
from support import run_cli

from extforge.check import load_plan
from extforge.errors import TargetError
from extforge.generate import Generated, Options, generate
from extforge_verifiers import verify_extension

ROOT = "openjiuwen/extensions/harness"


class Project:
    """A plan, and the folder that it is generated into."""

    def __init__(self, folder: Path) -> None:
        self.plan = folder / "my.plan.json"
        self.target = folder / "out"
        self.tree = self.target / ROOT / "sales_deck"

    def run(self, *designs: dict[str, Any], **options: Any) -> Generated:
        self.plan.write_text(json.dumps({"designs": designs or [DECK]}))
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
    [("inline", ["<<<<<<< yours", "year", "month"], []), ("mine", ["year"], ["month"]), ("generated", ["month"], ["year"])],
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
    assert found["invoice_pdf/tools/invoice_pdf.py"] == "orphaned"
    assert {action for path, action in found.items() if path != "invoice_pdf/tools/invoice_pdf.py"} == {"delete"}
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


def test_a_manifest_that_is_no_yaml_any_more_is_named(project: Project) -> None:
    project.run(DECK)
    edit(project.tree / "harness_config.yaml", "resources:", "resources: [")
    result = project.run(CHANGED)
    reason = result.changes.rows[f"{ROOT}/sales_deck/harness_config.yaml"].reason
    assert (result.applied, reason[:22]) == (False, "your edit is no YAML: ")


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
    data["files"][path] = {"sha256": "0" * 64, "plan": "my.plan.json"}
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
