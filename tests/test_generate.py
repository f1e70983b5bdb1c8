"""Trees: complete, clean, the same everywhere; and a target that is changed as a whole or not at all."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ROOT, Plans, design, example, rendered_files

from extforge.check import check_plan, load_plan
from extforge.errors import TargetError, TemplateError
from extforge.generate import Options, existing_extensions, generate
from extforge.target.changes import Action
from extforge_verifiers import Verdict, verify_extension
from extforge_verifiers.frontmatter import read_skill

TEN, RICH, MORE = example("seed_only"), example("everything"), example("archetypes")
LONG = "q" * 30 + "_" + "z" * 33  # as long as a name may be


def rendered(folder: Path, *designs: dict[str, Any]) -> dict[str, bytes]:
    plan = load_plan(Plans(folder).write(*designs), max_designs=100)
    return rendered_files(plan)


def below(files: dict[str, bytes], name: str) -> list[str]:
    root = f"openjiuwen/extensions/harness/{name}/"
    return [path.removeprefix(root) for path in sorted(files) if path.startswith(root)]


def test_the_tree_of_a_tool_and_a_skill(tmp_path: Path) -> None:
    files = rendered(tmp_path, design("order_export_json", components=["tool", "skill"]))
    found = below(files, "order_export_json")
    assert [path for path in found if "_verify/" not in path] == [
        "__init__.py",
        "harness_config.yaml",
        "skills/order_export_json/SKILL.md",
        "skills/order_export_json/skill.yaml",
        "tools/__init__.py",
        "tools/order_export_json.json",
        "tools/order_export_json.py",
        "tools/order_export_json_artifact.py",
        "tools/order_export_json_inputs.py",
        "tools/order_export_json_tool.py",
    ]
    assert "acceptance/order_export_json.yaml" in files


def test_only_declared_components_are_made(tmp_path: Path) -> None:
    files = rendered(tmp_path, design("brand_voice", components=["skill"]))
    skill = ["skills/brand_voice/SKILL.md", "skills/brand_voice/skill.yaml"]
    assert below(files, "brand_voice") == ["__init__.py", "harness_config.yaml", *skill]
    manifest = yaml.safe_load(files["openjiuwen/extensions/harness/brand_voice/harness_config.yaml"])
    assert manifest["resources"] == {"skills": {"dirs": ["skills/"]}}
    assert manifest["metadata"]["extension"]["kind"] == "capability"


def test_every_init_is_empty_and_every_module_has_a_package(tmp_path: Path) -> None:
    for path, data in rendered(tmp_path, *TEN).items():
        if path.endswith("__init__.py"):
            assert data == b""
    files = rendered(tmp_path, *TEN)
    for path in files:
        folder = path.rpartition("/")[0]
        if path.endswith(".py"):
            assert f"{folder}/__init__.py" in files, path


def test_file_names_carry_the_extensions_name_so_that_a_merger_renames_nothing(tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    for path in rendered(tmp_path, *TEN):
        match = re.match(r"openjiuwen/extensions/harness/(\w+)/(.*)", path)
        if match and not match[2].endswith(("__init__.py", "harness_config.yaml", "requirements.txt")):
            assert seen.setdefault(match[2], match[1]) == match[1], match[2]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every skeleton, with names at their longest and shortest."""
    folder = tmp_path_factory.mktemp("wide")
    longest = [
        design(f"{LONG[:-5]}_pptx", components=["tool", "skill"]),
        design(f"{LONG[:-4]}_pdf", components=["rail", "tool"]),
        design(f"{LONG[:-7]}_budget", components=["rail"]),
        design("a_x", components=["rail"], kind="constraint"),
        design("b_x", components=["tool"]),
        design("c_x", components=["rail"], rails=[{"does": "custom"}]),
        design(f"{LONG[:-5]}_html"),
        design(f"{LONG[:-4]}_svg"),
        design(f"{LONG[:-3]}_md"),
        design(f"{LONG[:-4]}_csv"),
        design("d_x", tools=[{"does": {"http": {"url": "/{a}"}}}]),
        design(f"{LONG[:-2]}_h", tools=[{"does": {"http": {"url": "/{a}"}}}]),
        design(f"{LONG[:-2]}_c", tools=[{"does": {"command": {"argv": ["ls"]}}}]),
        design(f"{LONG[:-2]}_q", tools=[{"does": {"query": {}}}]),
        design(f"{LONG[:-2]}_o", components=["rail"], rails=[{"does": {"output_guard": {"patterns": ["x"]}}}]),
        design(f"{LONG[:-2]}_f", components=["rail"], rails=[{"does": {"result_filter": {"patterns": ["x"]}}}]),
        design(f"{LONG[:-2]}_g", components=["rail"], rails=[{"does": "artifact_gate"}]),
    ]
    result = Plans(folder).generate(*TEN, *RICH, *MORE, *longest)
    return result.target


def test_generated_code_passes_ruff_with_its_own_defaults(wide: Path) -> None:
    for arguments in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--isolated", "--no-cache", str(wide)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]


def test_generated_code_type_checks(wide: Path, tmp_path: Path) -> None:
    config = tmp_path / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = true\nexplicit_package_bases = true\nnamespace_packages = true\ndisallow_subclassing_any = false\n"
        "disable_error_code = import-untyped, no-untyped-call\n"
        "[mypy-openjiuwen.core.*,openjiuwen.harness.*]\nfollow_imports = skip\nignore_missing_imports = true\n"
        "[mypy-pptx.*,docx.*,lxml.*,openpyxl.*,reportlab.*,matplotlib.*,fontTools.*,arabic_reshaper.*,bidi.*]\nfollow_imports = skip\nignore_missing_imports = true\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(config),
            "--cache-dir",
            str(tmp_path / "cache"),
            "openjiuwen",
        ],
        cwd=wide,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(wide)},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_every_tree_passes_as_it_stands(wide: Path) -> None:
    trees = sorted((wide / "openjiuwen/extensions/harness").iterdir())
    assert len(trees) == 47
    for tree in trees:
        report = verify_extension(str(tree))
        assert report.findings == (), report.findings


def test_the_bundled_verifier_is_our_own_source_but_for_its_imports(wide: Path) -> None:
    bundle = wide / "openjiuwen/extensions/harness/truth_gate/rails/truth_gate_verify"
    copies = [path for path in bundle.glob("*.py") if path.name not in ("__init__.py", "table.py")]
    assert len(copies) >= 12
    for copy in copies:
        folder = ROOT / "verifiers/extforge_verifiers"
        source = next(p for p in (folder / copy.name, folder / "formats" / copy.name) if p.is_file())
        ours, theirs = (ast.parse(path.read_text(encoding="utf-8")) for path in (source, copy))
        for tree in (ours, theirs):
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (
                    (node.module or "").startswith("extforge_verifiers") or node.level
                ):
                    node.module, node.level = (node.module or "").rpartition(".")[2], 0
        assert ast.dump(ours) == ast.dump(theirs), copy.name


def test_work_modules_import_nothing_of_openjiuwen(wide: Path) -> None:
    for path in (wide / "openjiuwen/extensions/harness").rglob("*.py"):
        if path.stem.endswith(("_tool", "_rail")):
            continue
        names = [
            n.module or ""
            for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(n, ast.ImportFrom)
        ]
        assert not [name for name in names if name.startswith("openjiuwen")], path


def test_generated_code_imports_none_of_our_packages(wide: Path) -> None:
    for path in wide.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            assert not [name for name in names if name.startswith("extforge")], path


def test_a_patch_is_merged_into_the_manifest(tmp_path: Path) -> None:
    patch = {"metadata": {"owner": "Ann"}, "prompts": {"sections": []}, "resources": {}}
    files = rendered(tmp_path, design("order_export_json", harness_config_patch=patch))
    manifest = yaml.safe_load(files["openjiuwen/extensions/harness/order_export_json/harness_config.yaml"])
    assert manifest["metadata"]["owner"] == "Ann"
    assert manifest["prompts"] == {"sections": []}
    assert len(manifest["resources"]["tools"]) == 1


def test_requirements_name_what_the_tools_import(tmp_path: Path) -> None:
    files = rendered(tmp_path, design("sales_deck", requirements=["attrs>=23"]), design("order_export_json"))
    root = "openjiuwen/extensions/harness"
    assert files[f"{root}/sales_deck/requirements.txt"] == b"attrs>=23\nlxml>=4.9\npython-pptx>=1.0\n"
    assert f"{root}/order_export_json/requirements.txt" not in files


# --------------------------------------------------------------------------- the same everywhere


def test_the_same_plan_gives_the_same_bytes_in_any_folder_locale_timezone_umask_and_hash_seed(tmp_path: Path) -> None:
    plan = Plans(tmp_path).write(*TEN)
    found = []
    for number, environment in enumerate(
        (
            {"PYTHONHASHSEED": "1", "TZ": "Asia/Shanghai", "LC_ALL": "C"},
            {"PYTHONHASHSEED": "2", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        )
    ):
        target = tmp_path / ("x" * number) / f"out {number}"
        command = [sys.executable, "-m", "extforge", "generate", plan, "--into", str(target), "--quiet"]
        done = subprocess.run(
            ["sh", "-c", f'umask {["022", "077"][number]}; exec "$@"', "sh", *command],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append({p.relative_to(target).as_posix(): p.read_bytes() for p in target.rglob("*") if p.is_file()})
    assert found[0] == found[1]


def test_generating_twice_changes_nothing(plans: Plans) -> None:
    result = plans.generate(*TEN)
    times = {p: p.stat().st_mtime_ns for p in result.target.rglob("*")}
    again = generate(load_plan(plans.write(*TEN)), str(result.target))
    assert (again.changes.writes, again.changes.of(Action.IDENTICAL)) == ([], result.changes.of(Action.CREATE))
    assert {p: p.stat().st_mtime_ns for p in result.target.rglob("*") if ".extforge" not in p.parts} == {
        p: time for p, time in times.items() if ".extforge" not in p.parts
    }


# --------------------------------------------------------------------------- the target


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_a_foreign_file_is_refused_and_nothing_is_changed(plans: Plans) -> None:
    target = plans.folder / "out"
    mine = target / "openjiuwen/extensions/harness/sales_deck/tools/sales_deck.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    before = snapshot(target)
    result = generate(load_plan(plans.write(design("sales_deck"))), str(target))
    assert not result.applied
    assert result.changes.blocked == ["openjiuwen/extensions/harness/sales_deck/tools/sales_deck.py"]
    assert snapshot(target) == before


def test_a_dry_run_changes_nothing(plans: Plans) -> None:
    target = plans.folder / "out"
    result = generate(load_plan(plans.write(design("sales_deck"))), str(target), Options(dry_run=True))
    assert result.changes.writes
    assert not target.exists()


@pytest.mark.parametrize("kind", ["file", "link", "folder link", "folder in the way"])
def test_a_target_that_cannot_take_the_files_is_refused(plans: Plans, kind: str) -> None:
    target = plans.folder / "out"
    outside = plans.folder / "outside"
    outside.mkdir()
    if kind == "file":
        target.write_text("x")
    elif kind == "link":
        (target / "acceptance").mkdir(parents=True)
        (target / "acceptance/sales_deck.yaml").symlink_to(outside / "x")
    elif kind == "folder link":
        target.mkdir()
        (target / "openjiuwen").symlink_to(outside)
    else:
        (target / "acceptance/sales_deck.yaml").mkdir(parents=True)
    with pytest.raises(TargetError):
        generate(load_plan(plans.write(design("sales_deck"))), str(target))
    assert list(outside.iterdir()) == []


def test_a_disk_that_is_full_leaves_the_target_as_it_was(plans: Plans) -> None:
    plan = plans.write(design("sales_deck"), design("invoice_pdf"))
    target = plans.folder / "out"
    target.mkdir()
    (target / "keep.txt").write_text("keep")
    before = snapshot(target)
    code = f"import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nfrom extforge.cli import run\nfrom extforge.target import journal\nreal = journal.apply_changes\ndef limited(*a):\n    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n    return real(*a)\nimport extforge.generate as g\ng.apply_changes = limited\nsys.argv = ['extforge', 'generate', {plan!r}, '--into', {str(target)!r}]\nrun()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "nothing was changed" in done.stderr
    assert snapshot(target) == before


def test_one_extension_brings_the_constraints_it_depends_on(plans: Plans) -> None:
    plan = load_plan(plans.write(*TEN))
    result = generate(plan, str(plans.folder / "out"), Options(only="quarterly_sales_deck"))
    assert sorted(b.name for b in result.blueprints) == ["filename_policy", "quarterly_sales_deck"]
    with pytest.raises(TargetError, match="no extension 'nobody'"):
        generate(plan, str(plans.folder / "out2"), Options(only="nobody"))


def test_a_plan_may_build_on_what_is_in_the_target(plans: Plans) -> None:
    guard = design("suffix_guard", kind="constraint", components=["rail"])
    result = plans.generate(guard)
    existing = existing_extensions(str(result.target))
    assert existing["suffix_guard"].kind == "constraint"
    later = plans.write(design("sales_deck", depends_on=["suffix_guard"]))
    assert [f.code for f in check_plan(later).errors] == ["plan-depends-on-unknown"]
    assert generate(load_plan(later, existing=existing), str(result.target)).applied


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Copier leaves a folder open
def test_a_broken_template_is_our_error_and_nothing_is_written(plans: Plans, tmp_path: Path) -> None:
    template = tmp_path / "template"
    (template / "template").mkdir(parents=True)
    (template / "copier.yml").write_text("_subdirectory: template\n_envops: {undefined: jinja2.StrictUndefined}\n")
    (template / "template/harness_config.yaml.jinja").write_text("{{ nobody }}")
    with pytest.raises(TemplateError, match="nobody"):
        generate(load_plan(plans.write(design("sales_deck"))), str(tmp_path / "out"), Options(template=template))
    (template / "template/harness_config.yaml.jinja").write_text("a: [1")
    with pytest.raises(TemplateError, match="would not load"):
        generate(load_plan(plans.write(design("sales_deck"))), str(tmp_path / "out"), Options(template=template))
    assert not (tmp_path / "out").exists()


# --------------------------------------------------------------------------- hostile text

HOSTILE = [
    "'\"\"\"'''\\",
    "{{ 7 * 7 }} {% raw %} {# x #}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "a: b\n- c\n  d: [e",
    "---\nname: evil\n---",
    "line\r\nline\rline\u2028line\u0085line",
    "# heading\n```python\nimport os\n```",
    "!!python/object/apply:os.system ['true']",
    "*anchor &anchor <<: %TAG",
    "\u202e\u200b\ufeff emoji 😀 ancient \U00012345",
    "$(touch /tmp/x) `id` ; rm -rf / | & > <",
    "x" * 10_000,
    "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "a\x00b",
    "a\x1b[2Jb",
    " leading and trailing ",
    "",
    "null",
    "yes",
    "0x1F",
    "../../etc/passwd",
]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=60)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_hostile_text_is_a_plan_error_or_data_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    say = {
        key: data.draw(TEXTS, label=key)
        for key in ("gap", "goal", "tool", "skill", "trigger", "step", "rule", "reference", "remind", "note")
    }
    tool = {
        "description": say["tool"],
        "does": {"artifact": {"format": "json", "required_keys": [say["note"]] if say["note"] else []}},
    }
    skill = {
        "name": "notes",
        "description": say["skill"],
        "trigger": say["trigger"],
        "steps": [say["step"]],
        "rules": [say["rule"]],
        "references": {"more.md": say["reference"]},
    }
    rail = {"does": {"reminder": {"every": 2, "text": say["remind"] or "x"}}}
    one = design(
        "order_export",
        gap_id=say["gap"],
        description=say["goal"],
        components=["tool", "skill", "rail"],
        tools=[tool],
        skills=[skill],
        rails=[rail],
    )
    path = folder / "p.json"
    path.write_text(json.dumps([one]), encoding="utf-8")
    plan = check_plan(str(path))
    if plan.errors:
        assert all(f.message and f.where.line for f in plan.errors)
        return
    result = generate(plan, str(folder / "out"))
    assert result.applied
    assert {p.name for p in folder.iterdir()} == {"p.json", "out"}
    root = folder / "out/openjiuwen/extensions/harness/order_export"
    assert verify_extension(str(root)).verdict is Verdict.PASS
    card = json.loads((root / "tools/order_export.json").read_text(encoding="utf-8"))
    if say["tool"]:
        assert card["description"] == say["tool"]
    manifest = yaml.safe_load((root / "harness_config.yaml").read_text(encoding="utf-8"))
    assert manifest["metadata"]["extension"]["gap_id"] == say["gap"]
    assert set(manifest) == {"schema_version", "id", "name", "description", "resources", "metadata"}
    skill_file = read_skill((root / "skills/notes/SKILL.md").read_bytes().decode(), "SKILL.md")
    if say["skill"].strip():
        assert skill_file.document.value["description"] == say["skill"]
    if say["trigger"]:
        assert skill_file.document.value["trigger"] == say["trigger"]
    assert json.loads((root / "rails/order_export.json").read_text(encoding="utf-8"))["options"]["text"] == (
        say["remind"] or "x"
    )
    for module in root.rglob("*.py"):
        ast.parse(module.read_bytes())
