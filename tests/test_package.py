"""What people install: built from the source distribution, run from elsewhere, with everything in it."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from that."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Unpack the wheel outside the checkout, and return an environment that prefers it."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_the_wheel_has_every_template_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    templates = ROOT / "templates"
    ours = {
        p.relative_to(templates).as_posix()
        for p in templates.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert len(ours) > 30
    assert ours <= names
    assert {"extforge/codes.md", "extforge/demo.plan.yaml"} <= names
    assert {n.partition("/")[0] for n in names} == {
        "extforge",
        "extforge_harness",
        "extforge_templates",
        "extforge_verifiers",
        next(n for n in names if n.endswith("/METADATA")).partition("/")[0],
    }


def test_the_installed_package_runs_the_whole_chain_from_anywhere(installed: dict[str, str], tmp_path: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import extforge; print(extforge.__file__)"],
        env=installed,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(installed["PYTHONPATH"])
    for arguments in (["demo"], ["explain", "pptx-no-slides"], ["schema", "plan"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-m", "extforge", *arguments],
            env=installed,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_bytecode_of_an_installed_template_is_not_rendered(installed: dict[str, str], tmp_path: Path) -> None:
    home = Path(installed["PYTHONPATH"].split(os.pathsep)[0])
    assert compileall.compile_dir(home / "extforge_templates", quiet=1)  # as pip does
    assert [*(home / "extforge_templates/extension/template").rglob("*.pyc")]
    plan = str(ROOT / "examples/seed_only.plan.yaml")
    command = [sys.executable, "-m", "extforge", "generate", plan, "--into", str(tmp_path / "out")]
    subprocess.run(command, env=installed, check=True, capture_output=True)
    lock = json.loads((tmp_path / "out/.extforge/lock.json").read_text())
    assert [path for path in lock["files"] if "pyc" in path] == []
    assert [*(tmp_path / "out").rglob("__pycache__")] == []


def test_nothing_in_the_project_names_this_machine_or_a_registry() -> None:
    import re

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    bad = re.compile(r"(?<![\w.])/(root|home|work)/\w|https?://[^\s\"']*/simple\b|files\.pythonhosted|npmjs")
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix in (".png", ".pptx") or name == "tests/test_package.py":
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not (match := bad.search(text)), (name, match)
