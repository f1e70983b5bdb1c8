"""The pytest plugin and the pre-commit hooks, each used for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from damage import good
from support import ROOT

pytest_plugins = ["pytester"]


def test_a_real_file_is_asserted_and_its_facts_come_back(pytester: pytest.Pytester) -> None:
    (pytester.path / "deck.pptx").write_bytes(good("pptx"))
    pytester.makepyfile(
        """
        def test_it(artifact):
            report = artifact("deck.pptx").is_real("pptx", min_slides=2, max_slides=2, slides=2, deep=True)
            assert report.facts["slides"] == 2
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)


def test_a_false_file_fails_with_words_for_people(pytester: pytest.Pytester) -> None:
    (pytester.path / "fake.pptx").write_text("<html>no deck</html>")
    (pytester.path / "deck.pptx").write_bytes(good("pptx"))
    (pytester.path / "hollow.json").write_text("{}")
    pytester.makepyfile(
        """
        def test_fake(artifact): artifact("fake.pptx").is_real()
        def test_few(artifact): artifact("deck.pptx").is_real("pptx", min_slides=9)
        def test_none(artifact): artifact("none.pdf").is_real()
        def test_hollow(artifact): artifact("hollow.json").is_real(strict=True)
        def test_hollow_but_real(artifact): artifact("hollow.json").is_real()
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines_random(
        [
            "*named .pptx, but it is an HTML page [[]artifact-placeholder]*",
            "*slides>=9 is required, but it has slides=2*",
            "*cannot be read: No such file or directory*",
        ]
    )
    assert "verify_artifact(" not in result.stdout.str()  # no traceback into the plugin


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ({"a.pdf": good("pdf")}, 0, "*PASS*a.pdf*"),
        ({"a.pdf": good("pdf"), "b.pdf": b"text"}, 1, "*b.pdf*"),
        ({}, 1, "there is no artifact"),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_folder_is_verified_once_after_the_tests(
    pytester: pytest.Pytester, files: dict[str, bytes], code: int, words: str, workers: int
) -> None:
    (pytester.path / "out").mkdir()
    pytester.makepyfile(
        f"""
        import pathlib
        def test_makes_files():
            for name, body in {files!r}.items():
                pathlib.Path("out", name).write_bytes(body)
        """
    )
    options = ["-n", str(workers)] if workers else []
    result = pytester.runpytest_subprocess("--verify-artifacts", "out", *options)
    assert result.ret == code
    result.stdout.fnmatch_lines(["*verified artifacts*", words])
    assert result.stdout.str().count("verified artifacts") == 1


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def test_the_hooks_stop_a_commit_of_false_files(tmp_path: Path) -> None:
    """pre-commit runs them as written, but for the environment: this one instead of a new one."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        hook["language"] = "system"
        hook["entry"] = hook["entry"].replace("extforge ", f"{sys.executable} -m extforge ", 1)
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    tree = tmp_path / "openjiuwen/extensions/harness/empty"
    tree.mkdir(parents=True)
    (tmp_path / "good.pptx").write_bytes(good("pptx"))
    (tmp_path / "one.plan.yaml").write_text(
        "designs: [{gap_id: g, extension_name: sales_deck_pptx, components: [tool]}]\n"
    )
    (tmp_path / "two.plan.yaml").write_text(
        "designs: [{gap_id: h, extension_name: pdf_brief_of_day, components: [tool]}]\n"
    )
    assert run("git", "init", "-q", cwd=tmp_path).returncode == 0
    run("git", "add", ".", cwd=tmp_path)
    command = (sys.executable, "-m", "pre_commit", "run", "--all-files")
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Passed") == 2
    (tmp_path / "bad.pdf").write_text("to follow")
    (tmp_path / "bad.plan.yaml").write_text("designs: [{gap_id: g}]\n")
    (tree / "harness_config.yaml").write_text("schema_version: none\n")
    run("git", "add", ".", cwd=tmp_path)
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("Failed") == 3
    for words in ("artifact-placeholder", "extension_name", "extension-schema-version"):
        assert words in done.stdout
