"""Every command takes bad input the same way: one exit code for one kind of trouble, the place, and JSON for who asked.

What a command is about and could be opened, but is wrong inside, is 1; what cannot be opened is 2, and so is whatever an
option names.  `verify` looks for files that are claimed, so one that is not there is its finding: 1.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chat_server import ChatServer, Reply
from support import ROOT, run_cli

from extforge import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
PLAN = "- {gap_id: g1, extension_name: sales_deck, components: [tool, skill]}\n"
TREE = "tree/openjiuwen/extensions/harness/sales_deck"
MODEL = ("OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY")

# Where IN stands is the input.  What the command is about:
SUBJECTS = {
    "check": ["check", "IN"],
    "generate": ["generate", "IN", "--into", "out"],
    "design": ["design", "IN"],
    "agents check": ["agents", "check", "IN"],
    "agents build": ["agents", "build", "IN", "--out", "out", "--no-host"],
    "agents resolve": ["agents", "resolve", "IN"],
    "agents prompt": ["agents", "prompt", "IN", "hi"],
    "agents run": ["agents", "run", "IN", "hi"],
    "runtimes catalog --plan": ["runtimes", "catalog", "--plan", "IN"],
    "runtimes matrix --plan": ["runtimes", "matrix", "--plan", "IN"],
    "workflows check": ["workflows", "check", "IN"],
    "workflows show": ["workflows", "show", "IN"],
    "workflows run": ["workflows", "run", "IN", "--script", "script.yaml"],
}
# What an option names beside it:
OPTIONS = {
    "agents check --plan": ["agents", "check", "good.agent.yaml", "--plan", "IN"],
    "verify --plan": ["verify", TREE, "--plan", "IN"],
    "verify --schema": ["verify", "good.json", "--schema", "IN"],
    "templates render --example": ["templates", "render", "extension", "--example", "IN", "--into", "out"],
    "workflows run --script": ["workflows", "run", "skills/note", "--script", "IN"],
    "workflows run --agent": ["workflows", "run", "skills/report", "--script", "script.yaml", "--agent", "IN"],
    "runtimes matrix --provider": ["runtimes", "matrix", TREE, "--provider", "IN"],
}
DOCUMENTS = {
    "an empty file": b"",
    "a byte order mark and nothing": b"\xef\xbb\xbf",
    "bad YAML": b"a: [b\nc: d: e\n",
    "bad JSON": b'{"a": 1,}',
    "a list of numbers": b"- 1\n- 2\n",
    "a word": b"word\n",
    "no UTF-8": b"name: caf\xe9\n",
}
UNOPENED = ("missing", "a folder", "no permission")
# Folders: what is about trees, skills, templates and packages of them.
FOLDERS = {
    "check": ["check", "IN"],
    "generate": ["generate", "IN", "--into", "out"],
    "design": ["design", "IN"],
    "agents check": ["agents", "check", "IN"],
    "agents run": ["agents", "run", "IN", "hi"],
    "agents run --extension": ["agents", "run", "good.agent.yaml", "hi", "--extension", "IN"],
    "workflows list": ["workflows", "list", "IN"],
    "workflows check": ["workflows", "check", "IN"],
    "workflows show": ["workflows", "show", "IN"],
    "workflows run": ["workflows", "run", "IN", "--script", "script.yaml"],
    "workflows run --extension": ["workflows", "run", "skills/note", "--script", "script.yaml", "--extension", "IN"],
    "runtimes catalog": ["runtimes", "catalog", "IN"],
    "runtimes matrix": ["runtimes", "matrix", "IN"],
    "runtimes matrix --plan": ["runtimes", "matrix", "--plan", "IN"],
    "runtimes compile": ["runtimes", "compile", "IN", "--runtime", "native"],
    "runtimes gate": ["runtimes", "gate", "IN"],
    "templates check": ["templates", "check", "IN"],
    "templates render": ["templates", "render", "IN", "--into", "out"],
    "generate --template": ["generate", "good.plan.yaml", "--into", "out", "--template", "IN"],
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder with good material, which anybody may enter; pytest's own are for one user only."""
    with tempfile.TemporaryDirectory(prefix="extforge-inputs-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        for path, text in {
            "good.plan.yaml": PLAN,
            "good.agent.yaml": "name: helper\n",
            "good.json": "{}",
            "gaps.yaml": "- {id: g1, feature: decks, gap_description: there is no tool that makes a pptx deck}\n",
            "provider.yaml": "id: mine\nwire: openai_chat\n",
            "script.yaml": "write: done\n",
            "skills/note/skill.yaml": "description: A note.\nsteps: [{name: write, prompt: Write it.}]\n",
            "skills/report/skill.yaml": "description: A report.\ncontext: fork\nagent: helper\nsteps: [{name: write, prompt: x}]\n",
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        assert call(folder, "generate", "good.plan.yaml", "--into", "tree")[0] == 0
        yield folder


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODEL:
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err, old = io.BytesIO(), io.BytesIO(), (sys.stdin, sys.stdout, sys.stderr, sys.argv)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout, sys.stderr = (io.TextIOWrapper(s, encoding="utf-8", write_through=True) for s in (out, err))
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv = old


def call(folder: Path, *arguments: str, stdin: bytes = b"", nobody: bool = False) -> tuple[int, str, str]:
    """Run the command line in this process, as somebody who may read nothing when asked to: seconds, not minutes."""
    nobody = nobody and os.geteuid() == 0
    if nobody:  # first as who may read Python too: what is imported on the way is there then
        call(folder, *arguments, stdin=stdin)
        shutil.rmtree(folder / "out", ignore_errors=True)
    with streams(stdin) as (out, err), contextlib.chdir(folder):
        sys.argv = ["extforge", *arguments]
        if nobody:
            os.seteuid(NOBODY)
        try:
            cli.run()
            code = 0
        except SystemExit as exc:
            code = int(exc.code or 0)
        finally:
            if nobody:
                os.seteuid(0)
        return code, out.getvalue().decode(), err.getvalue().decode()


def check_both_forms(folder: Path, arguments: list[str], expected: int, named: str, **how: Any) -> None:
    """Hold text and JSON to the exit code, the input's name, and no trace of us."""
    code, out, err = call(folder, *arguments, **how)
    said = out + err
    assert code == expected, said
    assert named in said
    assert "Traceback" not in said
    assert "bug in extforge" not in said
    assert "Errno" not in said
    shutil.rmtree(folder / "out", ignore_errors=True)
    code, out, err = call(folder, *arguments, "--json", **how)
    assert code == expected, out + err
    assert json.loads(out)["schema_version"].startswith("extforge."), out
    shutil.rmtree(folder / "out", ignore_errors=True)


def made(folder: Path, command: str, trouble: str) -> Path:
    """Make the input."""
    inputs = folder / "in"
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir()
    inputs.chmod(0o755)
    suffix = ".json" if trouble == "bad JSON" else ".yaml"
    path = inputs / ("skill.yaml" if command.startswith("workflows") and "--" not in command else f"x.agent{suffix}")
    if trouble in ("a folder", "an empty folder", "a folder without permission"):
        path.mkdir()
    elif trouble != "missing":
        path.write_bytes(DOCUMENTS.get(trouble, b"{}"))
    if "permission" in trouble:
        path.chmod(0)
    return path


@pytest.mark.parametrize("trouble", [*UNOPENED, *DOCUMENTS])
@pytest.mark.parametrize("command", [*SUBJECTS, *OPTIONS, "verify"])
def test_one_kind_of_trouble_has_one_exit_code_everywhere(place: Path, command: str, trouble: str) -> None:
    path = made(place, command, trouble)
    known = {**SUBJECTS, **OPTIONS, "verify": ["verify", "IN"]}
    arguments = [str(path) if part == "IN" else part for part in known[command]]
    expected = 1 if command == "verify" or (command in SUBJECTS and trouble in DOCUMENTS) else 2
    check_both_forms(place, arguments, expected, path.name, nobody=trouble == "no permission")


@pytest.mark.parametrize("trouble", ["missing", "an empty folder", "a folder without permission"])
@pytest.mark.parametrize("command", FOLDERS)
def test_a_folder_with_nothing_of_the_kind_in_it_is_2_everywhere(place: Path, command: str, trouble: str) -> None:
    path = made(place, "", trouble)
    arguments = [str(path) if part == "IN" else part for part in FOLDERS[command]]
    check_both_forms(place, arguments, 2, path.name, nobody="permission" in trouble)


def test_a_tree_without_skills_has_an_empty_list_of_them(place: Path) -> None:
    (place / "guard.plan.yaml").write_text(
        "- {gap_id: g, extension_name: name_guard, kind: constraint, components: [rail]}\n"
    )
    assert call(place, "generate", "guard.plan.yaml", "--into", "guards")[0] == 0
    assert call(place, "workflows", "list", "guards")[:2] == (0, "")


WRITERS = {
    "design": ["design", "gaps.yaml", "-o", "OUT"],
    "verify": ["verify", "good.json", "-o", "OUT"],
    "runtimes matrix": ["runtimes", "matrix", TREE, "--html", "OUT"],
    "agents run": ["agents", "run", "good.agent.yaml", "hi", "--record", "OUT"],
    "init": ["init", "OUT"],
    "generate": ["generate", "good.plan.yaml", "--into", "OUT"],
    "agents build": ["agents", "build", "good.agent.yaml", "--no-host", "--out", "OUT"],
    "templates render": ["templates", "render", "extension", "--into", "OUT"],
    "runtimes new": ["runtimes", "new", "hermes", "--differs", "protocol", "--out", "OUT"],
    "workflows run": ["workflows", "run", "skills/note", "--script", "script.yaml", "--workdir", "OUT"],
    "demo": ["demo", "--keep", "OUT"],
}


@pytest.mark.parametrize("command", WRITERS)
def test_where_nothing_can_be_written_is_2_everywhere(place: Path, command: str) -> None:
    before = sorted(place.rglob("*"))
    for out, words in (("good.json/x", "good.json"), ("", "it is empty")):
        arguments = [out if part == "OUT" else part for part in WRITERS[command]]
        check_both_forms(place, arguments, 2, words)
    assert sorted(place.rglob("*")) == before


def test_an_empty_name_is_refused_and_an_empty_text_is_one(place: Path) -> None:
    for arguments in (
        ["verify", ""],
        ["verify", "good.json", "--plan", ""],
        ["runtimes", "matrix", TREE, "--provider", ""],
    ):
        check_both_forms(place, arguments, 2, "it is empty")
    assert call(place, "workflows", "run", "skills/note", "--script", "script.yaml", "--input", "")[0] == 0


# --------------------------------------------------------------------------- standard input

GOOD = {"plan": "good.plan.yaml", "agent": "good.agent.yaml", "gaps": "gaps.yaml", "script": "script.yaml", "provider": "provider.yaml", "json": "good.json"}  # fmt: skip
PIPED = [
    ("plan", ["check", "-"]),
    ("plan", ["generate", "-", "--into", "out"]),
    ("plan", ["runtimes", "catalog", "--plan", "-"]),
    ("plan", ["runtimes", "matrix", "--plan", "-", "--mcp"]),
    ("plan", ["agents", "check", "good.agent.yaml", "--plan", "-"]),
    ("plan", ["templates", "render", "extension", "--example", "-", "--into", "out"]),
    ("gaps", ["design", "-"]),
    ("agent", ["agents", "check", "-"]),
    ("agent", ["agents", "build", "-", "--out", "out", "--no-host"]),
    ("agent", ["agents", "resolve", "-"]),
    ("agent", ["agents", "prompt", "-", "hi"]),
    ("agent", ["workflows", "run", "skills/report", "--script", "script.yaml", "--agent", "-"]),
    ("script", ["workflows", "run", "skills/note", "--script", "-"]),
    ("provider", ["runtimes", "matrix", TREE, "--provider", "-"]),
    ("json", ["verify", "good.json", "--schema", "-"]),
]


@pytest.mark.parametrize(("kind", "arguments"), PIPED, ids=[" ".join(words) for _, words in PIPED])
def test_standard_input_is_taken_wherever_a_document_is(place: Path, kind: str, arguments: list[str]) -> None:
    shutil.rmtree(place / "out", ignore_errors=True)
    code, out, err = call(place, *arguments, stdin=(place / GOOD[kind]).read_bytes())
    assert code == 0, out + err
    shutil.rmtree(place / "out", ignore_errors=True)
    takes_nothing = 1 if arguments[:2] in ([w, "-"] for w in ("check", "generate", "design")) or "--plan" in arguments[:3] else 2  # fmt: skip
    expected = 1 if arguments[0] == "agents" and "--plan" not in arguments else takes_nothing
    check_both_forms(place, arguments, expected, "<stdin>" if "--example" not in arguments else "stdin")


def test_standard_input_is_read_once_and_who_asks_twice_is_told(place: Path) -> None:
    code, out, err = call(place, "agents", "check", "-", "--plan", "-", stdin=b"name: a\n")
    assert code == 2
    code, out, err = call(place, "agents", "check", "-", "-", stdin=b"name: a\n")
    assert (code, "standard input is read once" in out + err) == (2, True)


# --------------------------------------------------------------------------- options that need each other


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["design", "gaps.yaml", "--fallback"], "--fallback is for --llm"),
        (["design", "gaps.yaml", "--rounds", "3", "--model", "m"], "--model and --rounds are for --llm"),
        (["design", "gaps.yaml", "--force"], "--force is for -o"),
        (["runtimes", "matrix", TREE, "--mcp"], "--mcp is for --plan"),
        (["runtimes", "catalog", TREE, "--mcp", "--skills-from", "."], "--skills-from and --mcp are for --plan"),
        (["runtimes", "matrix", TREE, "--by-extension", "--json"], "--by-extension is for text"),
        (["workflows", "list", "skills", "--max-chars", "9"], "--max-chars is for --audience"),
        (["workflows", "run", "skills/note", "--script", "script.yaml", "--python", "py"], "--python is for --executor host"),
        (["workflows", "run", "skills/note", "--script", "script.yaml", "--agent", "good.agent.yaml"], "note names none"),
        (["verify", "good.json", "--root", "."], "--root speaks of the files that results and runs claim"),
        (["verify", TREE, "--require", "slides>=3"], "--require speaks of files and tool results"),
        (["verify", TREE, "--require-key", "/a"], "--require-key speaks of files and tool results"),
        (["verify", TREE, "--schema", "good.json"], "--schema speaks of files and tool results"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_an_option_that_would_be_passed_over_is_refused(place: Path, arguments: list[str], words: str) -> None:
    check_both_forms(place, arguments, 2, words)


def test_a_package_is_run_with_the_skills_it_holds(place: Path) -> None:
    assert call(place, "agents", "build", "good.agent.yaml", "--out", "packages", "--no-host")[0] == 0
    check_both_forms(
        place, ["agents", "run", "packages/helper", "hi", "--skills", "skills"], 2, "a package holds its skills"
    )


def test_mcp_for_a_plan_without_tools_says_that_it_changed_nothing(place: Path) -> None:
    plan = "- {gap_id: g1, extension_name: style_notes, components: [skill], description: Notes. Use when writing.}\n"
    code, _, err = call(place, "generate", "-", "--into", "noted", "--mcp", stdin=plan.encode())
    assert (code, "--mcp changed nothing" in err) == (0, True)


def test_a_plan_with_community_skills_has_a_catalog_when_they_are_at_hand(place: Path) -> None:
    skill = place / "collection/brand/SKILL.md"
    skill.parent.mkdir(parents=True, exist_ok=True)
    skill.write_text("---\nname: brand\ndescription: The brand. Use for decks.\n---\n# Brand\n")
    plan = b"- {gap_id: g, extension_name: brand_book, components: [skill], skill_source: 'community:brand'}\n"
    code, _, err = call(place, "runtimes", "catalog", "--plan", "-", stdin=plan)
    assert (code, "--skills-from" in err) == (2, True), err
    code, out, err = call(place, "runtimes", "catalog", "--plan", "-", "--skills-from", "collection", stdin=plan)
    assert (code, "brand_book/skill:brand" in out) == (0, True), err


# --------------------------------------------------------------------------- an endpoint where nobody is

ASKING = {
    "design": ["design", "gaps.yaml", "--llm"],
    "agents run": ["agents", "run", "good.agent.yaml", "hi"],
    "workflows run chat": ["workflows", "run", "skills/note", "--executor", "chat"],
    "workflows run host": ["workflows", "run", "skills/note", "--executor", "host"],
}


@pytest.mark.host
@pytest.mark.parametrize("command", ASKING)
def test_an_endpoint_where_nobody_answers_is_3_and_named_everywhere(
    place: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer("") as server:
        url = server.url  # free again below
    monkeypatch.setattr("extforge_harness.chat._pause", lambda _attempt: 0.001)
    for name, value in zip(MODEL, (url, "m", "EMPTY"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    code, out, err = call(place, *ASKING[command])
    (line,) = (line for line in err.splitlines() if "nothing answers" in line)
    assert (
        code,
        f"nothing answers at {url}; start the server there, or give another address in OPENAI_BASE_URL" in line,
    ) == (3, True), out + err
    code, out, _ = call(place, *ASKING[command], "--json")
    assert code == 3
    assert "nothing answers" in json.loads(out)["error"]


@pytest.mark.parametrize("command", [name for name in ASKING if name.endswith(("design", "chat"))])
def test_an_endpoint_that_refuses_is_bad_and_not_missing(
    place: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Reply(raw=b'{"error": {"message": "Incorrect API key"}}', status=401)
    with ChatServer(refusal) as server:
        for name, value in zip(MODEL, (server.url, "m", "sk-wrong-wrong"), strict=True):
            monkeypatch.setenv(name, value)
        code, out, err = call(place, *ASKING[command])
    assert (code, "answered HTTP 401 (OPENAI_API_KEY is missing or wrong)" in err) == (1, True), out + err


# --------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["agents", "run", "skills", "hi"], 2, "skills is no agent package: it has no agent.json"),
        (["agents", "resolve", "skills"], 2, "skills: cannot be read: it is a folder"),
        (["agents", "check", "-"], 1, "<stdin>:1:1: $: the document is empty"),
        (["check", "-"], 1, "<stdin>:1:1: $: the document is empty"),
        (["workflows", "run", "skills/note", "--script", "-"], 2, "error: what --script names cannot be used"),
        (["workflows", "run", "skills/note", "--extension", "skills"], 2, "skills is no extension: it has neither"),
        (["verify", TREE, "--host", "--python", "./none"], 3, "./none cannot be run: No such file or directory; name a Python"),
        (["check", "wrong.plan.yaml"], 1, "must be a mapping, not 1 ["),
        (["check", "/dev/zero"], 1, "a document may have"),  # read no further
        (["design", "/dev/zero"], 1, "a document may have"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_message_says_what_is_wrong_where_and_what_to_do(
    place: Path, arguments: list[str], code: int, words: str
) -> None:
    (place / "wrong.plan.yaml").write_text("- 1\n")
    check_both_forms(place, arguments, code, words)


def test_a_folder_of_plans_says_every_problem_at_once(place: Path) -> None:
    folder = place / "many"
    folder.mkdir()
    (folder / "a.plan.yaml").symlink_to("nowhere")
    (folder / "b.plan.yaml").write_text("a: [b\n")
    (folder / "c.plan.yaml").write_text("knid: 1\n")
    code, out, _ = call(place, "check", "many")
    assert (code, [word in out for word in ("a.plan.yaml: cannot be read", "b.plan.yaml:2:1", "c.plan.yaml:1:1")]) == (2, [True] * 3), out  # fmt: skip


def test_a_broken_template_is_bad_when_it_is_checked_and_unusable_when_it_is_named(place: Path) -> None:
    (place / "mine").mkdir()
    for text in ("_subdirectory: [a\nb: c\n", "- 1\n"):
        (place / "mine/copier.yml").write_text(text)
        check_both_forms(place, ["templates", "check", "mine"], 1, "copier.yml:")
        check_both_forms(place, ["templates", "render", "mine", "--into", "out"], 1, "copier.yml:")
        arguments = ["generate", "good.plan.yaml", "--into", "out", "--template", "mine"]
        check_both_forms(place, arguments, 2, "what --template names cannot be used")


def test_every_problem_of_an_example_is_said_at_once(place: Path) -> None:
    bad = b"- {gap_id: g1, extension_name: sales_deck, knid: x, components: tool}\n"
    code, _, err = call(place, "templates", "render", "extension", "--example", "-", "--into", "out", stdin=bad)
    assert (code, "unknown key 'knid'" in err, "components must be a list" in err) == (2, True, True), err


def test_the_json_of_several_plans_is_one_document(place: Path) -> None:
    (place / "wrong.plan.yaml").write_text("- 1\n")
    code, out, _ = call(place, "check", "good.plan.yaml", "wrong.plan.yaml", "--json")
    data = json.loads(out)
    assert (code, data["schema_version"], data["verdict"]) == (1, "extforge.checks.v1", "fail")
    assert [(row["source"], row["verdict"]) for row in data["plans"]] == [("good.plan.yaml", "pass"), ("wrong.plan.yaml", "fail")]  # fmt: skip


def test_what_was_to_be_proved_and_could_not_is_missing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extforge_harness.host.process.host_available", lambda *_: False)
    code, out, err = call(place, "runtimes", "matrix", TREE, "--prove")
    assert (code, "not tried: openJiuwen is not installed" in err, "sales_deck" in out) == (3, True, True), err


# --------------------------------------------------------------------------- as a process


def test_a_process_says_the_same(place: Path) -> None:
    for arguments, code in ((["check", "in/none.yaml"], 2), (["design", "good.json"], 1), (["workflows", "list", str(ROOT / "docs")], 2)):  # fmt: skip
        done = run_cli(*arguments, "--json", cwd=place)
        assert (done.returncode, json.loads(done.stdout)["schema_version"][:9]) == (code, "extforge."), done.stderr
        assert call(place, *arguments)[0] == code
