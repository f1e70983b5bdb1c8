"""What generating would do to each file of a target; nothing is changed here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from extforge.errors import TargetError
from extforge.target.lock import Entry, Lock, digest, read_base
from extforge.target.merging import is_noise, merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from extforge.staging import Staged

__all__ = ["Action", "Change", "Changes", "Scope", "classify"]


class Action(StrEnum):
    """What becomes of a file."""

    CREATE = "create"
    UPDATE = "update"  # as we left it, and we now say something else
    MERGE = "merge"  # a person changed it, and so do we
    DELETE = "delete"  # as we left it, and no longer generated
    CONFLICT = "conflict"  # a person and we changed the same place
    FOREIGN = "foreign"  # not ours
    IDENTICAL = "identical"
    EDITED = "edited"  # a person changed it, and we have nothing new
    REMOVED = "removed"  # a person deleted it; it stays deleted
    ORPHANED = "orphaned"  # a person changed it, and it is no longer generated; it stays


WRITES = (Action.CREATE, Action.UPDATE, Action.MERGE, Action.DELETE)


@dataclass(frozen=True, slots=True)
class Change:
    """One file."""

    path: str
    action: Action
    before: str | None = None  # digest of what is there
    data: bytes | None = None  # what to write, when it is not what was rendered
    reason: str = ""
    moved_from: str | None = None  # where its edits come from


@dataclass(slots=True)
class Changes:
    """Every file, by path, and the lock that will be true afterwards."""

    rows: dict[str, Change] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def of(self, *actions: Action) -> list[str]:
        """Return the paths of these actions, sorted."""
        return sorted(path for path, row in self.rows.items() if row.action in actions)

    @property
    def blocked(self) -> list[str]:
        """The paths that keep everything from being applied."""
        return self.of(Action.CONFLICT, Action.FOREIGN)

    @property
    def writes(self) -> list[str]:
        """The paths that would be written or deleted."""
        return self.of(*WRITES)


@dataclass(frozen=True, slots=True)
class Scope:
    """What this run answers for: which plan it is, and below which roots something may vanish."""

    plan: str = ""
    roots: Mapping[str, dict[str, str]] = field(default_factory=dict)  # name -> root, gap, plan
    whole_plan: bool = True
    force: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()  # what the target has of these itself stays, and keeps nothing up
    conflicts: str = "refuse"  # or inline, mine, generated

    def owns(self, path: str, lock: Lock) -> bool:
        """Say whether a file that is no longer generated is this run's to delete."""
        if any(path.startswith(f"{e['root']}/") or path == f"acceptance/{n}.yaml" for n, e in self.roots.items()):
            return True
        return self.continues(lock) and lock.files[path].plan == self.plan

    def continues(self, lock: Lock) -> bool:
        """Say whether this is the plan that the lock knows by this name, and not another of the same name.

        A plan that has nothing in common with what was generated before deletes nothing of it.
        """
        if not (self.plan and self.whole_plan):
            return False
        before = {n: e for n, e in lock.extensions.items() if e["plan"] == self.plan}
        gaps = {e["gap"] for e in self.roots.values()}
        return any(n in self.roots or e["gap"] in gaps for n, e in before.items())


def classify(target: Path, staged: Staged, lock: Lock, scope: Scope) -> Changes:
    """Return what would happen to each file.

    Raises:
        TargetError: when a path cannot be used: a folder that is a file, or a link that leads out of the target.
    """
    if target.exists() and not target.is_dir():
        raise TargetError(f"{target} is not a folder")
    unknown = sorted(scope.force - set(staged.files))
    if unknown:
        raise TargetError(f"--force {unknown[0]}: not a file that this plan generates (paths start at {target})")
    changes = Changes(lock=Lock(dict(lock.files), dict(lock.extensions)))
    moved = _renames(lock, scope, staged)
    ground = _Ground(target)
    for path, file in sorted(staged.files.items()):
        ground.check(path)
        old = moved.get(path)
        if old is not None and path not in lock.files and not (target / path).exists():
            row = _move(target, path, old, staged, lock)
        else:
            row = _judge(target, path, staged, lock.files.get(path))
        row = _settle(row, scope, lambda path=path: staged.read(path))  # type: ignore[misc]
        changes.rows[path] = row
        if row.action is Action.REMOVED or (row.action is Action.EDITED and path not in lock.files):
            continue  # were it to come back as it was, it would still be known
        if row.action not in (Action.CONFLICT, Action.FOREIGN):
            changes.lock.files[path] = Entry(file.sha, scope.plan)
    settled = {old for path, old in moved.items() if changes.rows[path].moved_from == old}
    for path in sorted(set(lock.files) - set(staged.files)):
        if scope.owns(path, lock):
            ground.check(path)
            _retire(target, path, changes, lock.files[path], gone=path in settled)
    for name, entry in lock.extensions.items() if scope.continues(lock) else ():
        if entry["plan"] == scope.plan and name not in scope.roots:
            del changes.lock.extensions[name]
    changes.lock.extensions.update(scope.roots)
    return changes


def _judge(target: Path, path: str, staged: Staged, entry: Entry | None) -> Change:
    """Compare what was generated before, what is there, and what is generated now."""
    full = target / path
    new = staged.files[path].sha
    if not full.exists():
        return Change(path, Action.CREATE if entry is None else Action.REMOVED)
    mine = full.read_bytes()
    here = digest(mine)
    if here == new:
        return Change(path, Action.IDENTICAL, here)
    if entry is None:
        return Change(path, Action.FOREIGN, here, reason="it was there before, and says something else")
    if here == entry.sha:
        return Change(path, Action.UPDATE, here)
    base = read_base(target, entry.sha)
    if base is not None and is_noise(path, base, mine):
        same = new == entry.sha or is_noise(path, staged.read(path), mine)
        if same or b"skill_id:" not in mine:
            return Change(path, Action.IDENTICAL if same else Action.UPDATE, here)
    if new == entry.sha:
        return Change(path, Action.EDITED, here)
    if base is None:
        words = "it was edited, and .extforge/base no longer has what to merge from"
        return Change(path, Action.CONFLICT, here, reason=words)
    return _merged(path, base, mine, staged.read(path))


def _merged(path: str, base: bytes, mine: bytes, new: bytes) -> Change:
    result = merge(path, base, mine, new)
    if result.conflict:
        return Change(path, Action.CONFLICT, digest(mine), result.data, result.conflict)
    action = Action.EDITED if result.data == mine else Action.MERGE
    return Change(path, action, digest(mine), result.data)


def _settle(row: Change, scope: Scope, read_new: Callable[[], bytes]) -> Change:
    """Do about a conflict or a foreign file what the user asked for."""
    if row.path in scope.force and row.action in (Action.CONFLICT, Action.FOREIGN, Action.EDITED, Action.MERGE):
        return Change(row.path, Action.UPDATE, row.before, read_new(), "forced")
    if row.path in scope.force and row.action is Action.REMOVED:
        return Change(row.path, Action.CREATE)
    if row.action is Action.FOREIGN and row.path in scope.optional:
        return replace(row, action=Action.EDITED)
    if row.action is not Action.CONFLICT or scope.conflicts == "refuse":
        return row
    if scope.conflicts == "mine":  # nothing there: an edit that does not fit its new name stays under the old one
        action = Action.EDITED if row.before else Action.CREATE
        return replace(row, action=action, data=None, moved_from=None)
    if scope.conflicts == "generated":
        return replace(row, action=Action.UPDATE if row.before else Action.CREATE, data=read_new(), moved_from=None)
    if row.data is None or b"<<<<<<< " not in row.data:
        return row  # there is no text to put markers into
    return replace(row, action=Action.MERGE, reason=f"{row.reason}: markers were written into it")


def _retire(target: Path, path: str, changes: Changes, entry: Entry, *, gone: bool) -> None:
    """Decide about a file that is no longer generated."""
    full = target / path
    if not full.exists():
        del changes.lock.files[path]
        return
    mine = full.read_bytes()
    base = read_base(target, entry.sha) if digest(mine) != entry.sha else None
    if gone or digest(mine) == entry.sha or (base is not None and is_noise(path, base, mine)):
        changes.rows[path] = Change(path, Action.DELETE, digest(mine))
        del changes.lock.files[path]
    else:
        words = "edited, and no longer generated: delete it yourself"
        changes.rows[path] = Change(path, Action.ORPHANED, digest(mine), reason=words)


def _renames(lock: Lock, scope: Scope, staged: Staged) -> dict[str, str]:
    """Return new path -> old path for extensions that the plan now calls otherwise: same plan, same gap, new name."""
    if not scope.continues(lock):
        return {}
    before = {n: e for n, e in lock.extensions.items() if e["plan"] == scope.plan and n not in scope.roots}
    now = {n: e for n, e in scope.roots.items() if n not in lock.extensions}
    found: dict[str, str] = {}
    for old, entry in before.items():
        heirs = [name for name, other in now.items() if other["gap"] == entry["gap"]]
        rivals = [name for name, other in before.items() if other["gap"] == entry["gap"]]
        if len(heirs) == len(rivals) == 1 and entry["gap"]:
            found.update(_paths_after(old, entry["root"], heirs[0], now[heirs[0]]["root"], lock.files, staged))
    return found


def _paths_after(
    old: str, old_root: str, new: str, new_root: str, files: Iterable[str], staged: Staged
) -> dict[str, str]:
    found = {}
    for path in files:
        if path == f"acceptance/{old}.yaml":
            after = f"acceptance/{new}.yaml"
        elif path.startswith(f"{old_root}/"):
            after = f"{new_root}/{path.removeprefix(old_root)[1:].replace(old, new)}"
        else:
            continue
        if after in staged.files:
            found[after] = path
    return found


def _move(target: Path, path: str, old: str, staged: Staged, lock: Lock) -> Change:
    """Carry a person's edits over to the file's new name."""
    full = target / old
    base = read_base(target, lock.files[old].sha)
    if not full.is_file() or full.is_symlink() or base is None:
        return Change(path, Action.CREATE)
    mine = full.read_bytes()
    if mine == base or is_noise(old, base, mine):
        return Change(path, Action.CREATE, moved_from=old)
    result = merge(path, base, mine, staged.read(path))
    if result.conflict:
        words = f"the edits of {old} do not fit its new name: {result.conflict}"
        return Change(path, Action.CONFLICT, None, result.data, words, old)
    return Change(path, Action.MERGE, None, result.data, f"with the edits of {old}", moved_from=old)


class _Ground:
    """Refuses paths that are no files, or whose parents, links followed, lead out of the target."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.root = target.resolve()
        self.sound: set[Path] = set()

    def check(self, path: str) -> None:
        full = self.target / path
        if full.parent not in self.sound:
            self._check_parent(full.parent)
            self.sound.add(full.parent)
        if full.is_symlink() or full.is_dir():
            raise TargetError(f"{full} is in the way: it is a {'link' if full.is_symlink() else 'folder'}")
        if full.exists() and not os.access(full, os.R_OK):
            raise TargetError(f"{full} cannot be read")

    def _check_parent(self, parent: Path) -> None:
        while not parent.exists() and not parent.is_symlink():
            parent = parent.parent
        if parent.exists() and not parent.is_dir():
            raise TargetError(f"{parent} is a file, and a folder is needed there")
        resolved = parent.resolve()
        if self.target.exists() and resolved != self.root and self.root not in resolved.parents:
            raise TargetError(f"{parent} leads out of {self.target}")
