"""Killed at any moment, refused by the disk, or two at once: the old state or the new one, and nothing between."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import design, run_cli

from extforge.check import load_plan
from extforge.errors import TargetError
from extforge.generate import Generated, generate
from extforge.render import render_plan
from extforge.staging import Staged, staging
from extforge.target import journal
from extforge.target.changes import Changes
from extforge.target.journal import exclusive, is_interrupted, recover

KILLS = int(os.environ.get("EXTFORGE_KILLS", "40"))
OLD = [design("notes_json", description="Old."), design("gone_json"), design("sales_guide", components=["skill"])]
NEW = [design("notes_json", description="New."), design("more_json"), design("sales_guide", components=["skill"])]
SKILL = "openjiuwen/extensions/harness/sales_guide/skills/sales_guide/SKILL.md"
NOTES = "openjiuwen/extensions/harness/notes_json/tools/notes_json.json"
TOUCHES = ("open", "os.", "shutil.")

State = dict[str, bytes]
Apply = Callable[..., None]
forks = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")


def state(folder: Path) -> State:
    """Return what a person would see, and what the next run goes by."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".extforge/staging/") and name != ".extforge/running":
            found[name] = path.read_bytes()
    return found


def run(folder: Path, designs: list[dict[str, object]]) -> Generated:
    plan = folder / "my.plan.json"
    plan.write_text(json.dumps(designs))
    return generate(load_plan(str(plan)), str(folder / "out"))


@dataclass
class Case:
    """A folder in the old state, with an edit to merge; what the old and the new state look like; the new one rendered."""

    folder: Path
    old: State
    new: State
    rendered: Staged


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    folder = tmp_path_factory.mktemp("crash")
    run(folder, OLD)
    with (folder / "out" / SKILL).open("a") as stream:
        stream.write("\nOurs.\n")
    old = state(folder / "out")
    done = tmp_path_factory.mktemp("done")
    shutil.copytree(folder, done, dirs_exist_ok=True)
    assert run(done, NEW).applied
    new = state(done / "out")
    assert b"Ours." in new[SKILL]
    assert old != new
    with staging() as staged:
        render_plan(load_plan(str(done / "my.plan.json")).blueprints, staged)
        yield Case(folder, old, new, staged)


def doomed(after: int) -> Apply:
    """Return `apply_changes` that counts what it does to files, and is killed at that count."""
    count = 0

    def watch(event: str, _: object) -> None:
        nonlocal count
        if event.startswith(TOUCHES):
            count += 1
            if count == after:
                os.kill(os.getpid(), signal.SIGKILL)

    def apply(*arguments: Any) -> None:
        sys.addaudithook(watch)
        journal.apply_changes(*arguments)
        os.write(1, b"%d" % count)

    return apply


def in_child(case: Case, folder: Path, apply: Apply) -> tuple[int, str]:
    """Generate the new state in a process of its own; return its exit status, and what it says."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        import extforge.generate as module

        def render(_: object, staged: Staged, __: object) -> None:
            shutil.copytree(case.rendered.folder, staged.folder, dirs_exist_ok=True)
            staged.files.update(case.rendered.files)

        vars(module).update(render_plan=render, check_rendered=lambda *_: None, apply_changes=apply)
        try:
            run(folder, NEW)
        except BaseException as exc:  # noqa: BLE001 -- it goes to the parent
            os.write(1, str(exc).encode())
            os._exit(2)
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as stream:
        return status, stream.read().decode()


@forks
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_state(case: Case, tmp_path: Path) -> None:
    shutil.copytree(case.folder, tmp_path / "whole")
    status, said = in_child(case, tmp_path / "whole", doomed(-1))
    steps = int(said)
    assert (status, steps > 100) == (0, True)
    assert state(tmp_path / "whole/out") == case.new
    dice = random.Random(7)
    seen = set()
    for number, after in enumerate(sorted(dice.sample(range(1, steps), min(KILLS, steps - 1)))):
        copy = tmp_path / str(number)
        shutil.copytree(case.folder, copy)
        status, _ = in_child(case, copy, doomed(after))
        assert os.WIFSIGNALED(status), after
        target = copy / "out"
        with exclusive(target):
            recover(target)
        found = state(target)
        assert found in (case.old, case.new), f"killed at {after} of {steps}"
        seen.add("new" if found == case.new else "old")
        if number % 10 == 0:  # and the command goes on from there
            assert run(copy, NEW).applied
            assert state(target) == case.new
        shutil.rmtree(copy)
    assert seen == {"old", "new"}


def committed(case: Case, folder: Path) -> Path:
    """Return a target with a journal, as if killed right after it was written."""
    for after in range(1, 10_000, 25):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(case.folder, folder)
        in_child(case, folder, doomed(after))
        if is_interrupted(folder / "out"):
            return folder / "out"
    raise AssertionError


@forks
def test_what_a_person_changed_after_the_kill_is_theirs(case: Case, tmp_path: Path) -> None:
    target = committed(case, tmp_path / "work")
    (target / NOTES).write_text('{"all": "mine"}')
    command = ("generate", str(tmp_path / "work/my.plan.json"), "--into", str(target))
    assert run_cli(*command, "--check").returncode == 2  # which may change nothing, so cannot finish it
    data = json.loads(run_cli(*command, "--json").stdout)
    assert (data["recovered"], data["conflict"]) == (True, [NOTES])  # ours is still known, so it is not lost in silence
    found = state(target)
    assert found[NOTES] == b'{"all": "mine"}'
    lost = {path for path, data in case.new.items() if not path.startswith(".extforge/") and found.get(path) != data}
    lost.remove(NOTES)
    assert lost == set()
    assert run_cli(*command, "--conflicts", "mine").returncode == 0


@forks
def test_a_checkout_after_the_kill_makes_the_journal_void(case: Case, tmp_path: Path) -> None:
    target = committed(case, tmp_path / "work")
    for path, data in case.old.items():  # everything as it was, but for another run's lock
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(data)
    lock = target / ".extforge/lock.json"
    lock.write_bytes(lock.read_bytes() + b" ")
    with exclusive(target):
        assert recover(target) is False
    assert not is_interrupted(target)
    assert (target / SKILL).read_bytes() == case.old[SKILL]
    assert run(tmp_path / "work", NEW).applied
    found = state(target)
    assert {path for path in found if found[path] != case.new.get(path)} == set()


@forks
def test_staging_that_is_gone_is_no_dead_end(case: Case, tmp_path: Path) -> None:
    target = committed(case, tmp_path / "work")
    shutil.rmtree(target / journal.STAGING)
    assert run(tmp_path / "work", NEW).applied
    assert state(target) == case.new


def test_a_kill_while_everything_is_put_back_does_not_stop_that(case: Case, tmp_path: Path) -> None:
    target = tmp_path / "out"
    shutil.copytree(case.folder / "out", target)
    steps = [{"path": path, "before": journal.digest(data), "after": "0" * 64} for path, data in case.old.items()]
    steps.sort(key=lambda step: step["path"] == ".extforge/lock.json")
    (target / journal.STAGING).mkdir()
    for number in range(0, len(steps), 2):  # these are still to be put back
        path = target / steps[number]["path"]
        path.rename(target / journal.STAGING / f"{number}.old")
        path.write_text("new")
    (target / journal.JOURNAL).write_text(json.dumps({"steps": steps, "undo": True}))
    with exclusive(target):
        assert recover(target)
    assert state(target) == case.old


@pytest.mark.parametrize("name", ["base", "staging", "running", "lock.json", "journal.json", "."])
def test_a_link_below_the_state_folder_is_refused(case: Case, tmp_path: Path, name: str) -> None:
    target, outside = tmp_path / "out", tmp_path / "outside"
    shutil.copytree(case.folder / "out", target)
    outside.mkdir()
    (outside / "thesis.txt").write_text("mine")
    place = target / ".extforge" / name
    if place.is_dir():
        shutil.rmtree(target / ".extforge" if name == "." else place)
    else:
        place.unlink(missing_ok=True)
    (target / ".extforge" if name == "." else place).symlink_to(outside)
    with pytest.raises(TargetError, match="is a link"), exclusive(target):
        pass
    assert [path.name for path in outside.iterdir()] == ["thesis.txt"]


def test_a_journal_cannot_lead_out_through_a_link(tmp_path: Path) -> None:
    target, outside = tmp_path / "out", tmp_path / "outside"
    (target / ".extforge").mkdir(parents=True)
    outside.mkdir()
    (outside / "keep").write_text("keep")
    (target / "link").symlink_to(outside)
    steps = [
        {"path": "link/keep", "before": journal.digest(b"keep"), "after": None},
        {"path": ".extforge/lock.json", "before": None, "after": "0" * 64},
    ]
    (target / journal.JOURNAL).write_text(json.dumps({"steps": steps}))
    with exclusive(target), pytest.raises(TargetError, match="leads out"):
        recover(target)
    assert (outside / "keep").read_text() == "keep"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"steps": []}', '{"steps": [{"path": 5}]}', '{"steps": [{"path": "a"}]}', '{"steps": 7}']
)
def test_a_malformed_journal_is_an_error_with_a_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "out/.extforge").mkdir(parents=True)
    (tmp_path / "out" / journal.JOURNAL).write_text(text)
    with exclusive(tmp_path / "out"), pytest.raises(TargetError, match="remove it"):
        recover(tmp_path / "out")


def test_a_journal_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out/.extforge").mkdir(parents=True)
    keep = tmp_path / "keep.txt"
    keep.write_text("keep")
    steps = [{"path": "../keep.txt", "before": journal.digest(b"keep"), "after": None}]
    (tmp_path / "out" / journal.JOURNAL).write_text(json.dumps({"steps": steps}))
    with exclusive(tmp_path / "out"), pytest.raises(TargetError, match="no run of ours"):
        recover(tmp_path / "out")
    assert keep.read_text() == "keep"


@forks
@pytest.mark.parametrize("where", ["openjiuwen/extensions/harness/notes_json/tools", "acceptance"])
def test_a_folder_that_cannot_be_written_puts_everything_back(case: Case, where: str) -> None:
    def apply(target: Path, staged: Staged, changes: Changes) -> None:
        uid, gid = os.geteuid(), os.getegid()
        staged.folder.chmod(0o755)
        if uid == 0:  # permissions are not for root
            os.setegid(65534)
            os.seteuid(65534)
        try:
            journal.apply_changes(target, staged, changes)
        finally:
            os.seteuid(uid)
            os.setegid(gid)

    with tempfile.TemporaryDirectory() as folder:  # below pytest's own only its owner may go
        copy = Path(folder) / "copy"
        shutil.copytree(case.folder, copy)
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        (copy / "out" / where).chmod(0o555)
        status, said = in_child(case, copy, apply)
        (copy / "out" / where).chmod(0o777)
        assert os.waitstatus_to_exitcode(status) == 2, said
        assert f"{where}/" in said
        assert said.endswith("Permission denied; nothing was changed")
        assert state(copy / "out") == case.old


def test_two_runs_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "my.plan.json").write_text(json.dumps(NEW))
    command = [
        sys.executable,
        "-m",
        "extforge",
        "generate",
        str(tmp_path / "my.plan.json"),
        "--into",
        str(tmp_path / "out"),
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], results
    assert sorted(b"created" in out for out, _ in results) == [False, False, True]
    assert not (tmp_path / "out" / journal.STAGING).exists()


def test_the_second_run_gives_up_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with exclusive(tmp_path / "out"):
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    try:
        with pytest.raises(TargetError, match="another extforge"), exclusive(tmp_path / "out"):
            pass
    finally:
        done.set()
        thread.join()
    assert not (tmp_path / "out").exists()
