"""Trees judged by reading them: what loads passes, and everything that was seen to break is found."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import Plans, design
from trees import BROKEN, FILES, Broken, edited, write_tree

from extforge_verifiers import Verdict, verify_extension
from extforge_verifiers.subjects import find_subjects, is_extension


def codes(root: Path) -> list[str]:
    return [finding.code for finding in verify_extension(str(root)).findings]


def test_a_tree_that_loads_passes_without_a_word(tmp_path: Path) -> None:
    report = verify_extension(str(write_tree(tmp_path)))
    assert report.findings == ()
    assert report.verdict is Verdict.PASS
    assert (report.facts["tools"], report.facts["rails"], report.facts["skills"]) == (1, 1, 1)


@pytest.mark.parametrize("broken", [pytest.param(b, id=b.id) for b in BROKEN if b.code])
def test_a_broken_tree_is_found_with_code_and_failure_id(tmp_path: Path, broken: Broken) -> None:
    report = verify_extension(str(write_tree(tmp_path, broken.files, broken.name)))
    found = {(f.code, f.failure_id) for f in report.findings}
    assert (broken.code, broken.failure_id) in found, report.findings
    assert report.verdict is Verdict.FAIL


def test_every_sample_that_loads_in_the_host_passes(shared: Path) -> None:
    samples = [
        *(shared / "host/sample/openjiuwen/extensions/harness").iterdir(),
        shared / "host/sample_agent",
        shared / "host/sample_plugin",
    ]
    assert len(samples) == 4
    for sample in samples:
        assert verify_extension(str(sample)).verdict is Verdict.PASS, sample


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(edited("tools/note_tool.py", "import json\n", "import json\nimport pptx\n"), ["extension-requirement-missing"], id="an undeclared package"),
        pytest.param({**edited("tools/note_tool.py", "import json\n", "import json\nimport pptx\n"), "requirements.txt": "python-pptx>=1\n"}, [], id="a declared package"),
        pytest.param({**FILES, "skills/notes/README.md": "x"}, ["skill-needless-file"], id="a README in a skill"),
        pytest.param({**FILES, "identity.md": "x"}, ["extension-sidecar"], id="a sidecar"),
        pytest.param({**FILES, "tools/__init__.py": '"""Tools."""\n# nothing else\n'}, [], id="a docstring in __init__"),
        pytest.param(edited("tools/note_tool.py", "        path = target", "        import csv\n        path = target"), [], id="a lazy import of the standard library"),
        pytest.param(edited("rails/count_rail.py", "self.calls += 1", "try:\n            raise ValueError\n        except Exception:\n            self.calls += 1"), [], id="an exception that is caught"),
    ],
)  # fmt: skip
def test_what_is_only_doubtful_is_a_warning_or_nothing(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    report = verify_extension(str(write_tree(tmp_path, files)))
    assert [f.code for f in report.findings] == expected
    assert report.verdict is Verdict.PASS


def test_a_missing_constraint_is_found(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    guard = design("suffix_guard", kind="constraint", components=["rail"])
    result = plans.generate(guard, design("sales_deck", depends_on=["suffix_guard"]))
    deck = result.target / "openjiuwen/extensions/harness/sales_deck"
    assert verify_extension(str(deck)).verdict is Verdict.PASS
    os.rename(result.target / "openjiuwen/extensions/harness/suffix_guard", tmp_path / "away")
    assert codes(deck) == ["extension-constraint-missing"]


def test_reading_a_tree_neither_runs_nor_changes_it(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    files = {**FILES, "tools/paths.py": f"open({str(marker)!r}, 'w')\n" + FILES["tools/paths.py"]}
    root = write_tree(tmp_path, files)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in root.rglob("*") if p.is_file()}
    verify_extension(str(root))
    assert not marker.exists()
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in root.rglob("*") if p.is_file()} == before


def test_a_link_that_leads_out_is_found_and_not_followed(tmp_path: Path) -> None:
    root = write_tree(tmp_path)
    (tmp_path / "outside.py").write_text("x = (")
    (root / "tools/link.py").symlink_to(tmp_path / "outside.py")
    assert codes(root) == ["extension-path-escapes"]
    (root / "skills/notes/data").symlink_to(tmp_path)
    (root / "skills/notes/same").symlink_to(root / "tools")
    assert codes(root) == ["extension-path-escapes"] * 2


def test_hostile_source_is_a_finding_and_not_a_crash(tmp_path: Path) -> None:
    for text in ("(" * 100_000, "x = " + "-" * 50_000 + "1", "\x00", "# -*- coding: nope -*-\n", "a" * 3_000_000):
        root = write_tree(tmp_path / str(len(text)), {**FILES, "tools/paths.py": text})
        assert "extension-syntax" in codes(root)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param({"package_type": "plugin", "id": "x"}, [], id="a minimal plugin"),
        pytest.param({"package_type": "agent_template", "name": "mini", "description": "d"}, [], id="a minimal agent"),
        pytest.param({"package_type": "plugin"}, ["extension-manifest-shape"], id="no id"),
        pytest.param({"package_type": "agent_template", "name": " ", "description": "d"}, ["extension-manifest-shape"], id="a blank name"),
        pytest.param({"package_type": "bundle", "id": "x"}, ["extension-package-type"], id="an unknown type"),
        pytest.param({"package_type": "plugin", "id": "x", "persona": {"dir": "p"}}, ["extension-manifest-shape"], id="a plugin with a persona"),
        pytest.param({"package_type": "plugin", "id": "x", "tools": [{"file": "../t.py", "class": "T"}]}, ["extension-path-escapes"], id="a tool outside"),
        pytest.param({"package_type": "plugin", "id": "x", "tools": [{"file": "t.py", "class": "T"}]}, ["extension-module-missing"], id="a tool that is missing"),
        pytest.param({"package_type": "plugin", "id": "x", "tools": ["t.py"]}, ["extension-manifest-shape"], id="a tool as text"),
        pytest.param({"package_type": "agent_template", "name": "a", "description": "d", "persona": {"dir": "nope"}}, ["extension-file-missing"], id="no persona folder"),
        pytest.param({"package_type": "plugin", "id": "x", "prompt_sections": [{"file": "prompt_sections/x.md"}]}, ["extension-file-missing"], id="no prompt section"),
    ],
)  # fmt: skip
def test_a_manifest_json_is_judged_by_its_own_rules(
    tmp_path: Path, manifest: dict[str, object], expected: list[str]
) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert is_extension(str(tmp_path))
    assert codes(tmp_path) == expected


@pytest.mark.parametrize(
    ("line", "codes_found"),
    [
        ("from .helper import x", ["extension-import-missing"]),
        ("from ..rails.nowhere import x", ["extension-import-missing"]),
        ("from . import helper", ["extension-import-missing"]),
        ("from ..rails import count_rail", []),
        ("from ..rails.count_rail import CountRail", []),
    ],
)
def test_what_a_module_imports_of_its_extension_must_be_there(
    tmp_path: Path, line: str, codes_found: list[str]
) -> None:
    files = dict(FILES)
    files["tools/note_tool.py"] = f"{line}\n{files['tools/note_tool.py']}".replace(
        "from __future__ import annotations\n", ""
    )
    found = verify_extension(str(write_tree(tmp_path, files))).findings
    assert [finding.code for finding in found] == codes_found
    assert [(finding.where.line, finding.failure_id) for finding in found] == [(1, "module_import_failed")] * len(found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tools/pipe.py", ["extension-unreadable"]),
        ("skills/notes/SKILL.md", ["extension-unreadable"]),
        ("manifest.json", ["extension-manifest-shadowed", "extension-manifest-missing"]),
        ("requirements.txt", []),
        ("notes.md", []),
    ],
)
def test_a_pipe_in_a_tree_is_not_waited_for(tmp_path: Path, name: str, expected: list[str]) -> None:
    root = write_tree(tmp_path)
    (root / name).unlink(missing_ok=True)
    os.mkfifo(root / name)
    assert codes(root) == expected
    os.mkfifo(tmp_path / "result.json")
    assert "artifact" in {subject.kind for subject in find_subjects(str(tmp_path)).subjects}


@pytest.mark.parametrize(("limit", "expected"), [(len(FILES), []), (len(FILES) - 1, ["extension-too-large"])])
def test_no_extension_has_that_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, expected: list[str]
) -> None:
    monkeypatch.setattr("extforge_verifiers.extensions.FILE_LIMIT", limit)
    assert [code for code in codes(write_tree(tmp_path)) if code == "extension-too-large"] == expected
