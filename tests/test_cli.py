"""The command line as its users meet it: a process of its own, exit codes, both streams, no traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import jsonschema
import pytest
from damage import good
from support import ROOT, Plans, design, example, run_cli
from trees import write_tree

from extforge import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAN = "- {gap_id: g1, extension_name: sales_deck, components: [tool, skill]}\n"


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "p.plan.yaml"
    path.write_text(PLAN)
    return str(path)


def schema(kind: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run_cli("schema", kind).stdout)
    return found


# --------------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["frobnicate"], 2, "No such command", id="an unknown command"),
        pytest.param(["verify"], 2, "Missing argument", id="no path"),
        pytest.param(["verify", "x", "--as", "pptz"], 2, "unknown; known: pptx", id="an unknown format"),
        pytest.param(["verify", "x", "y", "--as", "pdf"], 2, "one PATH", id="--as with two paths"),
        pytest.param(["verify", "x", "--require", "slides"], 2, "slides>=3", id="a bad requirement"),
        pytest.param(["verify", "x.pdf", "--python", "python3"], 2, "--python is for --host", id="--python without --host"),
        pytest.param(["verify", "x.pdf", "--host"], 2, "there is none under these paths", id="--host without a tree"),
        pytest.param(["check", "no.yaml"], 2, "No such file", id="a missing plan"),
        pytest.param(["generate", "no.yaml", "--into", "out"], 2, "No such file", id="generating a missing plan"),
        pytest.param(["check", "p", "--max-designs", "0"], 2, "--max-designs", id="an impossible limit"),
        pytest.param(["explain", "pptx-no-slide"], 2, "did you mean pptx-no-slides", id="an unknown code"),
        pytest.param(["verify", "no.pdf"], 1, "No such file", id="a missing file"),
        pytest.param(["verify", "/dev/null"], 1, "not a regular file", id="a device"),
        pytest.param(["schema", "nothing"], 2, "plan", id="an unknown schema"),
    ],
)  # fmt: skip
def test_wrong_usage_has_one_clear_message_and_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    done = run_cli(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bug_of_ours_is_exit_70_with_one_line() -> None:
    code = "import sys, extforge.doctor\nextforge.doctor.examine = lambda: 1 / 0\nsys.argv = ['extforge', 'doctor']\nfrom extforge.cli import run\nrun()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "division by zero" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "EXTFORGE_TRACEBACK": "1"},
        check=False,
    )
    assert "Traceback" in done.stderr


def test_an_interrupt_is_exit_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "extforge", "check", "-"]
    for seconds in (1.5, 5, 15):  # until it surely waits for its input, however busy the machine is
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        if process.returncode == 130:
            break
    assert (process.returncode, "Traceback" in errors) == (130, False)


def test_a_reader_that_stops_is_no_error(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.json").write_text("{}")
    command = f"{sys.executable} -m extforge verify {tmp_path} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


# --------------------------------------------------------------------------- init, check, generate


def test_init_writes_a_plan_that_passes_and_never_overwrites(tmp_path: Path) -> None:
    assert run_cli("init", cwd=tmp_path).returncode == 0
    done = run_cli("check", "extforge.plan.yaml", "--strict", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 designs, 0 warnings" in done.stdout
    again = run_cli("init", cwd=tmp_path)
    assert (again.returncode, "not overwritten" in again.stderr) == (2, True)


def test_check_reads_standard_input(plan: str) -> None:
    done = run_cli("check", "-", stdin=f"Sure! Here you go:\n```yaml\n{PLAN}```\n")
    assert done.returncode == 0, done.stdout
    assert "<stdin>: 1 design" in done.stdout


def test_check_prints_findings_with_places_and_fixes(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("- gap_id: g\n  extension_name: sales_deck\n  knid: constraint\n  components: tool\n")
    done = run_cli("check", str(path))
    assert done.returncode == 1
    assert f"error {path}:3:3: $[0].knid: unknown key 'knid' [document-unknown-key]" in done.stdout
    assert "fix: did you mean 'kind'?" in done.stdout
    assert "[plan-components-not-a-list]" in done.stdout


def test_explain_prints_every_choice_with_its_reason(plan: str) -> None:
    done = run_cli("check", plan, "--explain")
    assert "tools[0].does: artifact: pptx  <- the word 'deck'" in done.stdout


def test_strict_turns_warnings_into_a_bad_result(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("- {gap_id: '', extension_name: sales_deck, components: [tool]}\n")
    assert run_cli("check", str(path)).returncode == 0
    assert run_cli("check", str(path), "--strict").returncode == 1
    done = run_cli("generate", str(path), "--into", str(tmp_path / "out"), "--strict")
    assert (done.returncode, (tmp_path / "out").exists()) == (1, False)


def test_generate_says_where_and_how_to_load(plan: str, tmp_path: Path) -> None:
    done = run_cli("generate", plan, "--into", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "SkillUseRail" in done.stdout
    assert "'openjiuwen/extensions/harness/sales_deck'," in done.stdout
    again = run_cli("generate", plan, "--into", str(tmp_path / "out"), "--json")
    assert json.loads(again.stdout)["create"] == []
    (tmp_path / "out/openjiuwen/extensions/harness/sales_deck/harness_config.yaml").write_text("mine")
    kept = run_cli("generate", plan, "--into", str(tmp_path / "out"))
    assert (kept.returncode, "1 file edited by you and kept" in kept.stdout) == (0, True)
    (tmp_path / "out/.extforge/lock.json").unlink()
    refused = run_cli("generate", plan, "--into", str(tmp_path / "out"))
    assert refused.returncode == 1
    assert "says something else" in refused.stderr


def test_a_community_skill_is_copied_untouched_or_refused_never_replaced(tmp_path: Path) -> None:
    collection = tmp_path / "skills"
    skill = collection / "office" / "deck_style"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: deck_style\ndescription: Style. Use for decks.\nlicense: MIT\n---\n\n# Style\n"
    )
    (skill / "scripts/run.py").write_text("print(1)\n")
    path = tmp_path / "p.yaml"
    path.write_text(
        "- {gap_id: g, extension_name: deck_of_sales, components: [skill], skill_source: 'community:deck_style'}\n"
    )
    refused = run_cli("generate", str(path), "--into", str(tmp_path / "out"))
    assert (refused.returncode, "--skills-from" in refused.stderr) == (2, True)
    missing = run_cli("generate", str(path), "--into", str(tmp_path / "out"), "--skills-from", str(tmp_path / "out2"))
    assert missing.returncode == 2
    (tmp_path / "empty").mkdir()
    missing = run_cli("generate", str(path), "--into", str(tmp_path / "out"), "--skills-from", str(tmp_path / "empty"))
    assert (missing.returncode, "no community skill 'deck_style'" in missing.stderr) == (1, True)
    done = run_cli("generate", str(path), "--into", str(tmp_path / "out"), "--skills-from", str(collection))
    assert done.returncode == 0, done.stderr
    copy = tmp_path / "out/openjiuwen/extensions/harness/deck_of_sales/skills/deck_style"
    assert {p.relative_to(copy).as_posix(): p.read_bytes() for p in copy.rglob("*") if p.is_file()} == {
        p.relative_to(skill).as_posix(): p.read_bytes() for p in skill.rglob("*") if p.is_file()
    }


@pytest.mark.parametrize("trouble", ["link", "program", "twice", "bad front matter"])
def test_an_unusable_community_skill_is_an_error(tmp_path: Path, trouble: str) -> None:
    skill = tmp_path / "skills" / "deck_style"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: deck_style\ndescription: Style. Use for decks.\n---\n\n# Style\n")
    if trouble == "link":
        (skill / "secret").symlink_to("/etc/passwd")
    elif trouble == "program":
        (skill / "tool").write_bytes(b"\x7fELF" + bytes(100))
    elif trouble == "twice":
        (tmp_path / "skills/other/deck_style").mkdir(parents=True)
        (tmp_path / "skills/other/deck_style/SKILL.md").write_text(
            "---\nname: deck_style\ndescription: Other.\n---\n\nx\n"
        )
    else:
        (skill / "SKILL.md").write_text("---\nname: deck_style\ndescription: Use: for decks\n---\n\nx\n")
    path = tmp_path / "p.yaml"
    path.write_text(
        "- {gap_id: g, extension_name: deck_of_sales, components: [skill], skill_source: 'community:deck_style'}\n"
    )
    done = run_cli("generate", str(path), "--into", str(tmp_path / "out"), "--skills-from", str(tmp_path / "skills"))
    assert (done.returncode, (tmp_path / "out").exists()) == (1, False), done.stderr


# --------------------------------------------------------------------------- verify


def test_verify_a_folder_counts_what_it_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    (tmp_path / "b.pptx").write_text("# not a deck\n\n- x\n")
    (tmp_path / "c.py").write_text("x = 1")
    (tmp_path / ".git").mkdir()
    write_tree(tmp_path / "repo")
    (tmp_path / "result.json").write_text(
        json.dumps({"success": True, "path": "a.pdf", "format": "pdf", "exists": True, "size_bytes": len(good("pdf"))})
    )
    done = run_cli("verify", str(tmp_path), "-v")
    assert done.returncode == 1
    assert done.stdout.count("PASS") == 3
    assert "named .pptx, but it is Markdown text" in done.stdout
    assert "3 passed, 1 failed" in done.stdout
    assert "passed over: 3 paths" in done.stderr
    assert "c.py: no checks for its suffix" in done.stderr


def test_a_path_that_stays_undetermined_is_exit_1(tmp_path: Path) -> None:
    (tmp_path / "x.xyz").write_text("?")
    (tmp_path / "empty").mkdir()
    for name in ("x.xyz", "empty"):
        done = run_cli("verify", str(tmp_path / name))
        assert (done.returncode, "UNDETERMINED" in done.stdout) == (1, True)


def test_as_forces_a_kind(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(good("pptx"))
    assert run_cli("verify", str(tmp_path / "x.bin"), "--as", "pptx", "--require", "slides>=2").returncode == 0
    assert run_cli("verify", str(tmp_path / "x.bin"), "--as", "pdf").returncode == 1


def test_root_bounds_the_claims_of_a_result(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    (tmp_path / "records").mkdir()
    record = tmp_path / "records/r.json"
    record.write_text(json.dumps({"success": True, "path": str(tmp_path / "a.pdf")}))
    assert "outside" in run_cli("verify", str(record)).stdout
    assert run_cli("verify", str(record), "--root", str(tmp_path)).returncode == 0


def test_the_json_form_follows_its_schema(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    (tmp_path / "b.pptx").write_bytes(good("pptx")[:-40])
    (tmp_path / "c.xyz").write_text("?")
    done = run_cli(
        "verify",
        *(str(tmp_path / n) for n in ("a.pdf", "b.pptx", "c.xyz")),
        "--json",
        "-o",
        str(tmp_path / "report.json"),
    )
    assert (done.returncode, done.stdout) == (1, "")
    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.Draft202012Validator(schema("report")).validate(report)
    assert [r["verdict"] for r in report["reports"]] == ["pass", "fail", "undetermined"]
    assert report["verdict"] == "fail"


def test_chosen_warnings_fail_and_a_schema_is_held_against_json(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.json", tmp_path / "a.schema.json"
    path.write_text("{}")
    schema.write_text('{"required": ["id"]}')
    assert run_cli("verify", str(path), "--fail-on", "json-hollow").returncode == 1
    assert run_cli("verify", str(path), "--fail-on", "png-chunk").returncode == 0
    done = run_cli("verify", str(path), "--schema", str(schema), "--jobs", "2")
    assert (done.returncode, "'id' is a required property" in done.stdout) == (1, True), done.stdout
    for option, value, words in (
        ("--fail-on", "no-such-code", "no such code"),
        ("--schema", str(path) + "x", "cannot be read"),
    ):
        wrong = run_cli("verify", str(path), option, value)
        assert (wrong.returncode, words in wrong.stderr, "Traceback" in wrong.stderr) == (2, True, False), wrong.stderr
    schema.write_text('{"type": "nonsense"}')
    assert "not valid under any" in run_cli("verify", str(path), "--schema", str(schema)).stderr


def test_strict_fails_on_warnings(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": null}')
    assert run_cli("verify", str(tmp_path / "a.json")).returncode == 0
    assert run_cli("verify", str(tmp_path / "a.json"), "--strict").returncode == 1


def test_claims_are_held_against_a_conversation_without_any_tool_call(tmp_path: Path) -> None:
    record = tmp_path / "chat.json"
    says = "I have saved the report to out/report.pptx."
    record.write_text(
        json.dumps({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": says}]})
    )
    done = run_cli("verify", str(record), "--claims")
    assert (done.returncode, "claim-file-missing" in done.stdout) == (1, True)
    (tmp_path / "data.json").write_text('{"a": 1}')
    nothing = run_cli("verify", str(tmp_path / "data.json"), "--claims")
    assert (nothing.returncode, "there is no record" in nothing.stderr) == (2, True)


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = line.replace("extforge", f"'{sys.executable}' -m extforge")
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("extforge runtimes list | head -1", 0),
        ("extforge doctor | head -1", 0),
        ("extforge verify . >&-", 1),
        ("extforge check - <&-", 1),
        ("extforge generate p.plan.json --into ''", 2),
        ("extforge generate p.plan.json --into out --template .", 2),
        ("extforge verify a.json -o a.json", 2),
        ("extforge verify a.json --format sarif --json", 2),
        ("extforge runtimes scan --runtime nope", 2),
        ("extforge schema plan > /dev/full", 2),
    ],
)
def test_odd_streams_and_odd_wishes_are_no_bugs(tmp_path: Path, line: str, code: int) -> None:
    (tmp_path / "p.plan.json").write_text('[{"gap_id": "g", "extension_name": "notes_json", "components": ["tool"]}]')
    (tmp_path / "a.json").write_text("[1")
    done = shell(line, tmp_path)
    assert (done.returncode, "bug in extforge" in done.stderr, "Traceback" in done.stderr) == (code, False, False), done


def test_who_asked_for_json_gets_json_when_something_is_wrong_too(tmp_path: Path) -> None:
    for arguments in (
        ("generate", "nope.yaml"),
        ("design", "nope.md"),
        ("verify", "x", "--as", "y"),
        ("explain", "nope"),
    ):
        done = run_cli(*arguments, "--json", cwd=tmp_path)
        data = json.loads(done.stdout)
        assert (done.returncode, data["schema_version"][:9]) == (2, "extforge."), done
    assert json.loads(run_cli("explain", "pptx-no-slides", "--json").stdout)["code"] == "pptx-no-slides"


def test_colour_follows_the_terminal_and_the_two_variables(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(good("pdf"))
    assert "\x1b[" not in run_cli("verify", str(tmp_path)).stdout
    assert "\x1b[" in run_cli("verify", str(tmp_path), FORCE_COLOR="1").stdout
    assert "\x1b[" not in run_cli("verify", str(tmp_path), FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_hostile_file_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2Jb\nPASS.pdf").write_bytes(b"x")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.pdf", os.O_CREAT))
    done = run_cli("verify", str(tmp_path))
    assert "\x1b" not in done.stdout
    assert "\nPASS" not in done.stdout
    assert json.loads(run_cli("verify", str(tmp_path), "--json").stdout)["verdict"] == "fail"


# --------------------------------------------------------------------------- schemas, help, machine output


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.plan.*")), ids=lambda p: p.name)
def test_examples_pass_and_fit_the_plan_schema(path: Path) -> None:
    from extforge_verifiers.documents import read_document

    assert run_cli("check", str(path)).returncode == 0
    jsonschema.Draft202012Validator(schema("plan")).validate(read_document(path.read_bytes(), str(path)).value)


def test_generated_acceptance_files_fit_their_schema(plans: Plans) -> None:
    from extforge_verifiers.documents import read_document

    result = plans.generate(*example("everything"))
    checker = jsonschema.Draft202012Validator(schema("acceptance"))
    for path in (result.target / "acceptance").iterdir():
        checker.validate(read_document(path.read_bytes(), str(path)).value)


def test_schemas_are_schemas_and_reject_a_wrong_plan() -> None:
    for kind in ("plan", "gaps", "acceptance", "report"):
        jsonschema.Draft202012Validator.check_schema(schema(kind))
    checker = jsonschema.Draft202012Validator(schema("plan"))
    assert not list(checker.iter_errors([design()]))
    assert list(checker.iter_errors([{**design(), "kind": "x"}]))
    assert list(checker.iter_errors([{**design(), "components": ["tool", "x"]}]))


def commands(group: click.Group = cli.main, *above: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield " ".join((*above, name)), command


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_that_fit_it(name: str) -> None:
    command = COMMANDS[name]
    context = click.Context(command, info_name=f"extforge {name}", terminal_width=80)
    text = command.get_help(context)
    about, _, examples = text.partition("Examples:\n")
    assert [line for line in about.splitlines() if len(line) > 80] == []
    lines = [line.strip() for line in examples.splitlines()]
    assert lines
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for line in lines:
        _, found, rest = line.partition(f"extforge {name}")
        assert found, line
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest)) <= known, line
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
        else:  # what it is, is said above the options
            name_of = re.sub(r"\W", "", parameter.make_metavar(context).split("|")[0])
            assert re.search(rf"\b{name_of}\b", about.split("\n", 1)[1].partition("Options:")[0]), parameter.name
    assert {"--json", "--format"} <= known


def test_the_page_on_the_command_line_has_every_command_and_no_option_that_there_is_not() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", page.partition("## Exit codes")[0], re.MULTILINE)
    told = set()
    for head, words in rows:
        names = [f"templates {verb}" for verb in ("list", "check", "render")] if head.startswith("templates") else []
        names = names or [name for name in COMMANDS if f"{head} ".startswith(f"{name} ")]
        assert names, head
        told |= set(names)
        known = {flag for name in names for parameter in COMMANDS[name].params for flag in parameter.opts}
        assert set(re.findall(r"(?<=`)--[a-z-]+|(?<= )--[a-z-]+", f"{head} {words}")) <= known, head
    assert told == set(COMMANDS)


def test_the_list_of_commands_fits_a_terminal() -> None:
    listed = run_cli("--help", COLUMNS="80").stdout
    assert [line for line in listed.splitlines() if len(line) > 80] == []
    for name, words in cli.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", listed, re.MULTILINE), name


@pytest.mark.parametrize(
    "command", [["init", "x.yaml"], ["check", "PLAN"], ["generate", "PLAN", "--into", "out", "--dry-run"], ["doctor"]]
)
def test_machine_output_is_one_json_document_with_a_version(plan: str, tmp_path: Path, command: list[str]) -> None:
    done = run_cli(*(plan if part == "PLAN" else part for part in command), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema_version"].startswith("extforge.")


def test_explain_prints_the_section_of_a_code() -> None:
    assert "lists no slide" in run_cli("explain", "pptx-no-slides").stdout


def test_the_demo_ends_with_verified_files_and_where_they_are(tmp_path: Path) -> None:
    done = run_cli("demo", "--keep", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert f"everything is in {tmp_path / 'demo'}" in done.stdout
    files = sorted(p.name for p in (tmp_path / "demo/files").iterdir())
    assert files == [
        "excel_financial_report.result.json",
        "excel_financial_report.xlsx",
        "incident_brief_pdf.pdf",
        "incident_brief_pdf.result.json",
        "quarterly_sales_deck.result.json",
        "quarterly_sales_deck_v1.pptx",
    ]
    assert run_cli("verify", str(tmp_path / "demo")).returncode == 0
    again = run_cli("demo", "--keep", str(tmp_path / "demo"))
    assert (again.returncode, "is not empty" in again.stderr) == (2, True)


# --------------------------------------------------------------------------- light imports


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        pytest.param("import sys; sys.argv = ['extforge', 'verify', PATH]; from extforge.cli import run\ntry: run()\nexcept SystemExit: pass", ("copier", "pydantic", "jinja2", "pptx", "docx", "openpyxl", "reportlab", "lxml", "yaml", "rich", "matplotlib", "openjiuwen"), id="verify a file"),
        pytest.param("import sys; sys.argv = ['extforge', '--help']; from extforge.cli import run\ntry: run()\nexcept SystemExit: pass", ("copier", "pydantic", "yaml", "rich", "zipfile"), id="--help"),
        pytest.param("import extforge_verifiers", ("click", "zipfile", "xml", "dataclasses"), id="import the verifiers"),
    ],
)  # fmt: skip
def test_a_command_imports_only_what_it_needs(tmp_path: Path, code: str, forbidden: tuple[str, ...]) -> None:
    (tmp_path / "a.pptx").write_bytes(good("pptx"))
    code = code.replace("PATH", repr(str(tmp_path / "a.pptx")))
    code += "\nimport sys; print('MODULES', *sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = set(done.stdout.rpartition("MODULES")[2].split())
    assert loaded, done.stderr
    assert not loaded & set(forbidden)
