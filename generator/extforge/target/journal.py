"""Change many files as one: after a kill at any moment the next run finds the old state or makes the new one.

1. Everything new is written beside the target's files, below `.extforge/staging/`, and reaches the disk.
2. `journal.json` appears, with one rename: from here on the new state is what counts.
3. Each file is moved into place; what it replaces is kept below staging.  The lock is the last one.
4. The journal goes, then the staging folder.

Killed before 2, nothing has happened.  Killed after 2, the next run goes on where the journal is.  An error on the way
(a folder that is read-only, say) turns the journal into one that puts everything back, which a kill does not stop
either.  A file that a person changed in between is theirs, and the lock goes on saying what we last wrote there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from extforge.errors import TargetError
from extforge.target.changes import Action, Changes, Ground
from extforge.target.lock import (
    ATTRIBUTES,
    IGNORE,
    LOCK,
    STATE,
    Lock,
    base_path,
    digest,
    is_inside,
    parse_lock,
    read_base,
    read_lock,
    stray_bases,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from extforge.staging import Staged

__all__ = ["apply_changes", "exclusive", "is_interrupted", "recover"]

Step = dict[str, Any]  # path, and the digests before and after it
JOURNAL = f"{STATE}/journal.json"
STAGING = f"{STATE}/staging"
PATIENCE = 30.0  # seconds that a second run waits for the first


def is_interrupted(target: Path) -> bool:
    """Say whether a run was killed here while it changed files."""
    return (target / JOURNAL).exists()


@contextmanager
def exclusive(target: Path) -> Iterator[None]:
    """Keep other runs out of a target; the system lets go when the process dies, however it dies.

    Raises:
        TargetError: when another run does not end, or the folder cannot be written.
    """
    state = target / STATE
    for path in (state, *(state / name for name in ("base", "staging", "running", "lock.json", "journal.json"))):
        if path.is_symlink():
            raise TargetError(f"{path} is a link; extforge keeps its state in files and folders of the target")
    made = [folder for folder in (state, target, *target.parents) if not folder.exists()]
    running = state / "running"
    try:
        state.mkdir(parents=True, exist_ok=True)
        with _hold(running, target):
            try:
                yield
            finally:
                if os.listdir(state) == ["running"]:
                    running.unlink()  # nothing was changed, and nothing of ours is here
    except OSError as exc:
        raise TargetError(f"{_words(target, exc)}; nothing was changed") from exc
    finally:
        with contextlib.suppress(OSError):
            for folder in made if not (target / LOCK).exists() else ():
                folder.rmdir()


@contextmanager
def _hold(path: Path, target: Path) -> Iterator[None]:
    started = time.monotonic()
    while True:
        with open(path, "a+b") as stream:
            # Another run may have removed the file between our opening and locking it.
            if _try_lock(stream.fileno()) and _is_same(stream.fileno(), path):
                yield
                return
        if time.monotonic() - started > PATIENCE:
            raise TargetError(f"another extforge has been working on {target} for {PATIENCE:g} seconds")
        time.sleep(0.05)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 -- exists there only

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 -- does not exist on Windows

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def apply_changes(target: Path, staged: Staged, changes: Changes) -> None:
    """Make the target what `changes` say; call it with the target held by `exclusive`.

    Raises:
        TargetError: when something cannot be written; the target is as it was before.
    """
    folder = target / STAGING
    shutil.rmtree(folder, ignore_errors=True)
    try:
        steps = _prepare(target, folder, staged, changes)
        if not steps:
            return
        _commit(target, folder, {"steps": steps})
    except OSError as exc:
        shutil.rmtree(folder, ignore_errors=True)
        raise TargetError(f"{_words(target, exc)}; nothing was changed") from exc
    _carry_out(target, steps)
    _tidy(target, changes.lock)


def _prepare(target: Path, folder: Path, staged: Staged, changes: Changes) -> list[Step]:
    """Write everything new below staging, and return the steps that bring it into place."""
    folder.mkdir(parents=True)
    steps: list[Step] = []
    written: list[Path] = []
    usual = 0o666 & ~_umask()

    def add(path: str, data: bytes | None, before: str | None, *, executable: bool = False) -> None:
        step: Step = {"path": path, "before": before, "after": None}
        if data is not None:
            full = folder / str(len(steps))
            full.write_bytes(data)
            mode = stat.S_IMODE((target / path).stat().st_mode) if before else usual
            full.chmod(mode | (mode & 0o444) >> 2 if executable else mode)
            written.append(full)
            step["after"] = digest(data)
        steps.append(step)

    for path in changes.writes:
        row = changes.rows[path]
        if row.action is Action.DELETE:
            add(path, None, row.before)
        else:
            data = row.data if row.data is not None else staged.read(path)
            add(path, data, row.before, executable=path in staged.files and staged.files[path].executable)
    text = changes.lock.to_bytes()
    here = _digest_of(target / LOCK)
    known = {file.sha: path for path, file in staged.files.items()}
    for sha in sorted({entry.sha for entry in changes.lock.files.values()} & set(known)):
        if read_base(target, sha) is None:
            add(base_path(sha), staged.read(known[sha]), _digest_of(target / base_path(sha)))
    for name, data in ((".gitignore", IGNORE), (".gitattributes", ATTRIBUTES)):
        if not (target / STATE / name).exists():
            add(f"{STATE}/{name}", data, None)
    if not steps and digest(text) == here:
        shutil.rmtree(folder)
        return []
    add(LOCK, text, here)
    with ThreadPoolExecutor(16) as pool:  # the system writes them out together; one by one takes ten times as long
        for start in range(0, len(written), 256):  # not all at once: each waiting call takes memory
            list(pool.map(_flush, written[start : start + 256]))
    return steps


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest_of(path: Path) -> str | None:
    return digest(path.read_bytes()) if path.is_file() and not path.is_symlink() else None


def _commit(target: Path, folder: Path, journal: dict[str, Any]) -> None:
    draft = folder / "journal"
    draft.write_text(json.dumps(journal), encoding="utf-8")
    _flush(draft)
    draft.replace(target / JOURNAL)
    with contextlib.suppress(OSError):  # Windows has no handles for folders
        _flush(target / STATE)


def _carry_out(target: Path, steps: list[Step]) -> None:
    """Bring every step into place; on an error put everything back, and raise TargetError."""
    made: list[Path] = []
    try:
        for number, step in enumerate(steps):
            _take(target, number, step, made)
    except (OSError, TargetError) as exc:
        with contextlib.suppress(OSError):  # from now on the next run would put back, too
            _commit(target, target / STAGING, {"steps": steps, "undo": True})
        _undo(target, steps)
        for made_folder in reversed(made):
            with contextlib.suppress(OSError):
                made_folder.rmdir()
        words = exc if isinstance(exc, TargetError) else _words(target, exc)
        raise TargetError(f"{words}; nothing was changed") from exc
    _finish(target)


def _undo(target: Path, steps: list[Step]) -> None:
    for number, step in reversed(list(enumerate(steps))):
        _put_back(target, number, step)
    _finish(target)


def _finish(target: Path) -> None:
    (target / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(target / STAGING, ignore_errors=True)


def _words(target: Path, exc: OSError) -> str:
    return f"cannot write to {exc.filename2 or exc.filename or target}: {exc.strerror or exc}"


def _take(target: Path, number: int, step: Step, made: list[Path]) -> None:
    full = target / step["path"]
    ready, old = target / STAGING / str(number), target / STAGING / f"{number}.old"
    here = _digest_of(full)
    if here == step["after"]:
        ready.unlink(missing_ok=True)
        return  # done before the last run was killed
    if here != step["before"]:
        raise TargetError(f"{full} was changed meanwhile")
    if here is not None and not old.exists():
        _keep(full, old)
    if step["after"] is None:
        full.unlink()
        _drop_empty(target, full.parent)
        return
    _make_folder(full.parent, made)
    ready.replace(full)


def _keep(full: Path, old: Path) -> None:
    try:
        os.link(full, old)
    except OSError:  # a file system without links
        shutil.copy2(full, old)


def _put_back(target: Path, number: int, step: Step) -> None:
    full, old = target / step["path"], target / STAGING / f"{number}.old"
    with contextlib.suppress(OSError):
        if old.exists():
            full.parent.mkdir(parents=True, exist_ok=True)
            old.replace(full)
        elif step["before"] is None and _digest_of(full) == step["after"]:
            full.unlink()


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        made.append(path)


def _drop_empty(target: Path, folder: Path) -> None:
    """Remove the folders that a deletion left empty, but for the bytecode of what is gone."""
    while folder != target and target in folder.parents:
        left = os.listdir(folder)
        if left == ["__pycache__"]:
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        elif left:
            return
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _tidy(target: Path, lock: Lock) -> None:
    """Remove pristine files that nothing refers to; what fails here does no harm."""
    for path in stray_bases(target, lock):
        with contextlib.suppress(OSError):
            (target / path).unlink()
            (target / path).parent.rmdir()


def recover(target: Path) -> bool:
    """Finish what a killed run had begun, and say whether there was something; hold the target with `exclusive`.

    Raises:
        TargetError: when that cannot be done yet; the run after this one tries again.
    """
    if not is_interrupted(target):
        shutil.rmtree(target / STAGING, ignore_errors=True)
        _tidy(target, read_lock(target))  # it may have been killed after everything was in place
        return False
    journal = _read_journal(target)
    steps = journal["steps"]
    if journal.get("undo"):
        _undo(target, steps)
        return True
    if _is_stale(target, steps):
        _finish(target)
        return False
    # What a person changed since is theirs: its step is dropped, and the lock keeps what it said about it.
    theirs = {s["path"] for s in steps[:-1] if _digest_of(target / s["path"]) not in (s["before"], s["after"])}
    if theirs:
        _keep_known(target, steps, theirs)
    for number, step in enumerate(steps):
        if step["path"] not in theirs:
            _take(target, number, step, [])
    _finish(target)
    _tidy(target, read_lock(target))
    return True


def _read_journal(target: Path) -> dict[str, Any]:
    path = target / JOURNAL
    way = "no run of ours left it; remove it if you know where it comes from"
    try:
        journal: dict[str, Any] = json.loads(path.read_bytes())
        steps = journal["steps"]
        sound = all(
            isinstance(step["path"], str)
            and all(step[key] is None or isinstance(step[key], str) for key in ("before", "after"))
            for step in steps
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise TargetError(f"{path} cannot be read ({type(exc).__name__}): {way}") from exc
    foreign = [step["path"] for step in steps if not _is_ours(step["path"])] if sound else ["something else"]
    if foreign or not steps or steps[-1]["path"] != LOCK:
        raise TargetError(f"{path} names {foreign[0] if foreign else 'no lock'!r}: {way}")
    ground = Ground(target)
    for step in steps:
        ground.check(step["path"])
    return journal


def _is_stale(target: Path, steps: list[Step]) -> bool:
    """Say whether the journal speaks of another state than this one: a checkout in between, a staging folder that is gone.

    Then it is dropped: the lock that is here says what is here, and the run that follows starts from that.
    """
    last = steps[-1]
    if _digest_of(target / LOCK) not in (last["before"], last["after"]):
        return True
    return any(
        step["after"]
        and _digest_of(target / step["path"]) == step["before"] != step["after"]
        and not (target / STAGING / str(number)).exists()
        for number, step in enumerate(steps)
    )


def _keep_known(target: Path, steps: list[Step], theirs: set[str]) -> None:
    """Let the new lock say of these files what the old one says: that is what an edit will be merged from."""
    staged = target / STAGING / str(len(steps) - 1)
    if not staged.exists():
        return
    old, new = read_lock(target), parse_lock(staged.read_bytes(), staged)
    for path in theirs:
        new.files.pop(path, None)
        if path in old.files:
            new.files[path] = old.files[path]
    data = new.to_bytes()
    staged.write_bytes(data)
    steps[-1]["after"] = digest(data)


def _is_ours(path: str) -> bool:
    state = (f"{STATE}/.gitignore", f"{STATE}/.gitattributes", LOCK, base_path(path.rpartition("/")[2]))
    return path in state or is_inside(path)
