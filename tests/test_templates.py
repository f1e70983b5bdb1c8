"""What a template author breaks is named, and the packaged skeletons have none of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import run_cli

from extforge.errors import TemplateError
from extforge.templates import check_template, find_template, packaged_templates
from extforge_harness.templating import template_folder
from extforge_verifiers import Verdict, verify_extension

ADAPTER = "template/{% yield tool from tools %}{{ tool.adapter_path }}{% endyield %}.py.jinja"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def append(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        path.write_text(path.read_text() + text)

    return change


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of the extension template with its smallest example."""
    shutil.copytree(template_folder(), tmp_path / "mine", ignore=shutil.ignore_patterns("parts.plan.yaml"))
    return tmp_path / "mine"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Copier leaves a folder open
@pytest.mark.parametrize(
    ("damage", "code"),
    [
        pytest.param(append(ADAPTER, "{{ nobody }}\n"), "template-does-not-render", id="a name that nobody defines"),
        pytest.param(append(ADAPTER, "{% if %}\n"), "template-syntax", id="syntax"),
        pytest.param(append(ADAPTER, "import os\n"), "template-lint", id="lint"),
        pytest.param(append(ADAPTER, "# {{ name | nonsense }}\n"), "template-does-not-render", id="a filter that is none"),
        pytest.param(append(ADAPTER, "# {{ ['a', 'b', 'c', 'd'] | random }}{{ ['a', 'b', 'c', 'd'] | random }}{{ range(9999) | random }}\n"), "template-not-deterministic", id="chance"),
        pytest.param(lambda f: edit(f / "parts/tool_adapter.py.jinja", "async def invoke", "def invoke"), "extension-tool-method", id="what the host would not call"),
        pytest.param(append("copier.yml", "_tasks: [touch x]\n"), "template-needs-trust", id="tasks"),
        pytest.param(append("copier.yml", "unused: {type: str, default: x}\n"), "template-question-unused", id="a question for nothing"),
        pytest.param(lambda f: edit(f / "copier.yml", "jinja2.StrictUndefined", "jinja2.Undefined"), "template-lenient", id="lenient"),
        pytest.param(lambda f: edit(f / "copier.yml", "_subdirectory: template", "_subdirectory: tree"), "template-tree-missing", id="no tree"),
        pytest.param(lambda f: shutil.rmtree(f / "examples"), "template-example-missing", id="no example"),
        pytest.param(lambda f: (f / "template/aux.txt").write_text("x"), "template-windows-name", id="a device of Windows"),
        pytest.param(lambda f: [(f / "template" / n).write_text("x") for n in ("a.txt", "A.txt")], "template-windows-name", id="capitals"),
    ],
)  # fmt: skip
def test_a_mistake_of_an_author_is_named(mine: Path, damage: Callable[[Path], None], code: str) -> None:
    damage(mine)
    found = {finding.code for report in check_template(find_template(str(mine))) for finding in report.findings}
    assert code in found, found


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Copier leaves a folder open
def test_a_template_that_is_a_repository_is_checked_as_it_lies_there(mine: Path) -> None:
    git = ["git", "-C", str(mine), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "unused"], ["tag", "v1"]):
        subprocess.run([*git, *arguments], check=True)
    append(ADAPTER, "{{ nobody }}\n")(mine)
    append("copier.yml", "unused: {type: str, default: x}\n")(mine)  # a word of the commit, which is no use of it
    found = [finding for report in check_template(find_template(str(mine))) for finding in report.findings]
    assert {finding.code for finding in found} == {"template-does-not-render", "template-question-unused"}
    assert all("nobody" in f.message for f in found if f.code == "template-does-not-render"), found


def test_a_file_that_git_ignores_is_named(mine: Path) -> None:
    subprocess.run(["git", "init", "-q", str(mine)], check=True)
    (mine / ".gitignore").write_text("*.json.jinja\n")
    found = [f for f in check_template(find_template(str(mine)))[0].findings if f.code == "template-not-shipped"]
    assert {Path(str(f.where.path)).name[-12:] for f in found} == {"}.json.jinja"}


@pytest.mark.parametrize("name", [template.name for template in packaged_templates()])
def test_the_packaged_templates_are_sound(name: str) -> None:
    for report in check_template(find_template(name)):
        assert report.verdict is Verdict.PASS, (report.path, report.findings)


@pytest.mark.host
def test_the_host_runs_what_the_examples_render() -> None:
    done = run_cli("templates", "check", "extension", "--host", "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["verdict"]) == (0, "pass"), done.stdout
    assert [("host" in report["checked"]) for report in data["reports"]] == [False, True, True, True]


def test_the_command_line_lists_renders_and_refuses(mine: Path, tmp_path: Path) -> None:
    assert "extension" in run_cli("templates", "list").stdout
    done = run_cli("templates", "render", str(mine), "--into", str(tmp_path / "look"))
    assert done.returncode == 0, done.stderr
    assert "openjiuwen/extensions/harness/note_writer_json/tools/note_writer_json.py" in done.stdout.splitlines()
    again = run_cli("templates", "render", str(mine), "--into", str(tmp_path / "look"))
    assert (again.returncode, "is not empty" in again.stderr) == (2, True)
    with pytest.raises(TemplateError, match="no packaged template"):
        find_template(str(tmp_path))


@pytest.mark.parametrize(
    ("answers", "files"),
    [
        pytest.param(["components=[tool, skill]", "format=pptx"], {"tools/my_thing.py", "skills/my_thing/SKILL.md"}, id="tool and skill"),
        pytest.param(["kind=constraint"], {"rails/my_thing.py", "rails/my_thing_rail.py"}, id="guard"),
        pytest.param(["components=[rail]"], {"rails/my_thing_rail.py"}, id="prompt"),
    ],
)  # fmt: skip
def test_plain_copier_makes_a_tree_that_loads(tmp_path: Path, answers: list[str], files: set[str]) -> None:
    target = tmp_path / "my_thing"
    say = "description='Says: \"hi\" & {{ 7 * 7 }} é'"
    data = [part for answer in ("name=my_thing", say, *answers) for part in ("-d", answer)]
    command = [sys.executable, "-m", "copier", "copy", "-q", "--defaults", *data, str(template_folder()), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {path.relative_to(target).as_posix() for path in target.rglob("*")}
    assert files < found
    assert [f for f in verify_extension(str(target)).findings if f.severity.value == "error"] == []
    bad = subprocess.run([*command[:-1], str(tmp_path / "bad"), "-d", "name=No-Name"], capture_output=True, check=False)
    assert bad.returncode != 0
