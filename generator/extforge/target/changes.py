"""What generating would do to each file of a target; nothing is changed here."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from extforge.errors import TargetError
from extforge.target.lock import Entry, Extension, Lock, digest, read_base
from extforge.target.merging import is_noise, merge, with_line_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from extforge.staging import Staged

__all__ = ["NO_NAME", "Action", "Change", "Changes", "Ground", "Scope", "classify"]

NO_NAME = "-"  # a plan from standard input: nobody can say whether the next one continues it


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


_SKILL = re.compile(r"(?<=/skills/)[^/]+(?=/)")
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
    """What this run answers for."""

    plan: str  # how the lock calls it
    package: str = ""  # how the plan calls its package
    extensions: Mapping[str, Extension] = field(default_factory=dict)  # by the folder each is in
    whole_plan: bool = True
    force: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()  # what the target has of these itself stays, and keeps nothing up
    conflicts: str = "refuse"  # or inline, mine, generated

    @property
    def favour(self) -> str:
        """Whose version counts where both changed the same place."""
        return self.conflicts if self.conflicts in ("mine", "generated") else ""

    def gives_up(self, lock: Lock, staged: Staged) -> list[str]:
        """Return the files that are no longer generated, and this run's to decide about."""
        gone = sorted(
            path for path, entry in lock.files.items() if path not in staged.files and self.plan in entry.plans
        )
        if self.continues(lock):
            return gone
        homes = tuple(f"{home}/" for home in self.extensions)
        tests = {f"acceptance/{found.name}.yaml" for found in self.extensions.values()}
        return [path for path in gone if path.startswith(homes) or path in tests]

    def before(self, lock: Lock) -> dict[str, Extension]:
        """Return the extensions that this plan made before."""
        return {home: found for home, found in lock.extensions.items() if self.plan in found.plans}

    def leaves(self, home: str, lock: Lock) -> bool:
        """Say whether an extension is gone after this run: it was this plan's, and nobody else's."""
        return home not in self.extensions and lock.extensions[home].plans == (self.plan,) and self.continues(lock)

    def packages(self, lock: Lock) -> dict[str, str]:
        """Return the package name of every plan that the target has extensions of, by plan."""
        plans = {plan for home, found in lock.extensions.items() if not self.leaves(home, lock) for plan in found.plans}
        known = {plan: name for plan, name in lock.packages.items() if plan in plans}
        if self.plan != NO_NAME or NO_NAME not in known:  # the plans that have no name are not one
            known[self.plan] = self.package
        return known

    def continues(self, lock: Lock) -> bool:
        """Say whether this is the plan that the lock knows by this name, and not another of the same name.

        A plan that has no extension in common with what was generated before gives up nothing of it; one that has a
        single extension may have renamed it.
        """
        if not self.whole_plan or self.plan == NO_NAME:
            return False
        before, now = list(self.before(lock).values()), list(self.extensions.values())
        if len(before) == len(now) == 1 and before[0].gap == now[0].gap:
            return True
        return bool({found.name for found in before} & {found.name for found in now})


def classify(target: Path, staged: Staged, lock: Lock, scope: Scope) -> Changes:
    """Return what would happen to each file.

    Raises:
        TargetError: when a path cannot be used: a folder that is a file, or a link that leads out of the target; or
            when an extension belongs to another plan.
    """
    if target.exists() and not target.is_dir():
        raise TargetError(f"{target} is not a folder")
    _check_scope(staged, lock, scope, target)
    changes = Changes(lock=Lock(dict(lock.files), dict(lock.extensions), scope.packages(lock)))
    moved = _moves(lock, scope, staged)
    ground = Ground(target)
    for path, file in sorted(staged.files.items()):
        ground.check(path)
        entry = lock.files.get(path)
        if path in moved:
            ground.check(moved[path])
            row = _move(target, path, moved, staged, lock, scope)
        else:
            row = _judge(target, path, staged, entry, scope)
        row = changes.rows[path] = _settle(row, scope, staged)
        if row.action is Action.REMOVED:
            # The old text stays known: were it to come back as it was, it would be brought up to date.
            changes.lock.files[path] = lock.files[moved.get(path, path)]
        elif row.action not in (Action.CONFLICT, Action.FOREIGN) and not (
            row.action is Action.EDITED and entry is None
        ):
            changes.lock.files[path] = Entry(file.sha, tuple({*(entry.plans if entry else ()), scope.plan}))
    left = {old for path, old in moved.items() if _has_moved(changes.rows[path])}
    for path in scope.gives_up(lock, staged):
        ground.check(path)
        _retire(target, path, changes, lock.files[path], scope, gone=path in left)
    _update_extensions(target, changes, lock, scope, moved)
    return changes


def _check_scope(staged: Staged, lock: Lock, scope: Scope, target: Path) -> None:
    unknown = sorted(scope.force - set(staged.files))
    if unknown:
        raise TargetError(f"--force {unknown[0]}: not a file that this plan generates (paths start at {target})")
    for home, found in scope.extensions.items():
        there = lock.extensions.get(home)
        if there and there.plans and scope.plan not in there.plans and there.gap != found.gap:
            words = (
                f"{home} was generated from {', '.join(there.plans)}, for the gap {there.gap!r} and not {found.gap!r}"
            )
            raise TargetError(f"{words}: give one of the two another name")


def _update_extensions(target: Path, changes: Changes, lock: Lock, scope: Scope, moved: Mapping[str, str]) -> None:
    """Note which extensions there are now, and name what a person left in the folders of those that are gone."""
    for home, found in scope.before(lock).items() if scope.continues(lock) else ():
        if home in scope.extensions:
            continue
        others = tuple(plan for plan in found.plans if plan != scope.plan)
        if others:
            changes.lock.extensions[home] = replace(found, plans=others)
            continue
        del changes.lock.extensions[home]
        heirs = sorted({new for new, old in moved.items() if old.startswith(f"{home}/")})
        where = f"; the extension is now in {os.path.commonpath(heirs)}" if heirs else ""
        for path in _files_below(target, home):
            if path not in lock.files:
                words = f"yours, and left where it is{where or ', although the extension is gone'}"
                changes.rows[path] = Change(path, Action.ORPHANED, reason=words)
    skills = {_skill_folder(old): _skill_folder(new) for new, old in moved.items()}
    for old, new in skills.items():
        if old and new and old.partition("/skills/")[0] == new.partition("/skills/")[0]:
            for path in _files_below(target, old):
                if path not in lock.files:
                    words = f"yours, and left where it is; the skill is now in {new}"
                    changes.rows[path] = Change(path, Action.ORPHANED, reason=words)
    for home, found in scope.extensions.items():
        there = lock.extensions.get(home)
        plans = tuple({*(there.plans if there else ()), scope.plan})
        changes.lock.extensions[home] = replace(found, plans=plans)


def _files_below(target: Path, home: str) -> Iterator[str]:
    for folder, below, names in os.walk(target / home):
        below[:] = sorted(name for name in below if name != "__pycache__")
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), target).replace(os.sep, "/")


# --------------------------------------------------------------------------- one file


def _judge(target: Path, path: str, staged: Staged, entry: Entry | None, scope: Scope) -> Change:
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
        if same:
            return Change(path, Action.IDENTICAL, here)
        if b"skill_id:" not in mine:
            return Change(path, Action.UPDATE, here, with_line_ends(base, mine, staged.read(path)))
    if new == entry.sha:
        return Change(path, Action.EDITED, here)
    return _merge_edit(path, base, mine, staged.read(path), scope)


def _merge_edit(path: str, base: bytes | None, mine: bytes, new: bytes, scope: Scope) -> Change:
    if base is None:
        words = "it was edited, and .extforge/base no longer has what to merge from"
        return Change(path, Action.CONFLICT, digest(mine), reason=words)
    result = merge(path, base, mine, new, scope.favour)
    if result.conflict:
        return Change(path, Action.CONFLICT, digest(mine), result.data, result.conflict)
    return Change(path, Action.EDITED if result.data == mine else Action.MERGE, digest(mine), result.data)


def _move(target: Path, path: str, moved: Mapping[str, str], staged: Staged, lock: Lock, scope: Scope) -> Change:
    """Carry a person's edits over to where the file is generated now."""
    old = moved[path]
    entry = lock.files[old]
    there = (target / path).read_bytes() if (target / path).exists() else None
    before = digest(there) if there is not None else None
    if there is not None and path not in moved.values() and before != staged.files[path].sha:
        known = lock.files.get(path)
        if known is None:
            return Change(path, Action.FOREIGN, before, reason="it was there before, and says something else")
        if before != known.sha:
            words = f"it was edited, and what was {old} takes its place"
            return Change(path, Action.CONFLICT, before, reason=words)
    if not (target / old).exists():
        return Change(path, Action.REMOVED, before, moved_from=old)
    mine = (target / old).read_bytes()
    base = mine if digest(mine) == entry.sha else read_base(target, entry.sha)
    new = staged.read(path)
    write = Action.CREATE if before is None else Action.UPDATE
    if base is None:
        words = f"{old} was edited, and .extforge/base no longer has what to merge from"
        return Change(path, Action.CONFLICT, before, reason=words, moved_from=old)
    if mine == base or (is_noise(old, base, mine) and b"skill_id:" not in mine):
        return Change(path, write, before, with_line_ends(base, mine, new), moved_from=old)
    result = merge(path, base, mine, new, scope.favour)
    if result.conflict:
        words = f"the edits of {old} do not fit its new place: {result.conflict}"
        return Change(path, Action.CONFLICT, before, result.data, words, old)
    return Change(path, Action.MERGE, before, result.data, f"with the edits of {old}", old)


def _has_moved(row: Change) -> bool:
    return row.moved_from is not None and row.action in (*WRITES, Action.REMOVED)


def _settle(row: Change, scope: Scope, staged: Staged) -> Change:
    """Do about a conflict or a foreign file what the user asked for."""
    if row.path in scope.force:
        if row.action is Action.REMOVED:
            return Change(row.path, Action.CREATE)
        if row.action not in (Action.CREATE, Action.UPDATE) and row.before != staged.files[row.path].sha:
            return Change(row.path, Action.UPDATE, row.before, staged.read(row.path), "forced", row.moved_from)
    if row.action is Action.FOREIGN and row.path in scope.optional:
        return replace(row, action=Action.EDITED, reason="")
    if row.action is not Action.CONFLICT or scope.conflicts == "refuse":
        return row
    if scope.favour == "generated":
        action = Action.UPDATE if row.before else Action.CREATE
        return replace(row, action=action, data=staged.read(row.path))
    if scope.favour == "mine" and row.before:
        return replace(row, action=Action.EDITED, data=None)
    if row.data is None or b"<<<<<<< " not in row.data:
        return row  # there is no text to put markers into
    return replace(row, action=Action.MERGE, reason=f"{row.reason}: markers were written into it")


def _retire(target: Path, path: str, changes: Changes, entry: Entry, scope: Scope, *, gone: bool) -> None:
    """Decide about a file that is no longer generated."""
    others = tuple(plan for plan in entry.plans if plan != scope.plan)
    if others:
        changes.lock.files[path] = Entry(entry.sha, others)
        return
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
        words = "edited, and no longer generated; it stays until you delete it"
        changes.rows[path] = Change(path, Action.ORPHANED, digest(mine), reason=words)


# --------------------------------------------------------------------------- extensions that moved


def _moves(lock: Lock, scope: Scope, staged: Staged) -> dict[str, str]:
    """Return new path -> old path for extensions that the plan now calls otherwise, or that lie elsewhere now.

    What makes an extension the same is its gap, and else its name.  Within one, skills are spelled for their readers.
    """
    before, found = scope.before(lock), {}
    pairs = [(home, home) for home in scope.extensions if home in before]
    if scope.continues(lock):
        pairs += [(old, new) for old, new in _pairs(before, scope.extensions) if old != new]
    for old, new in pairs:
        names = before[old].name, scope.extensions[new].name
        found.update(_paths_after(old, new, names, lock.files, staged))
    return found


def _pairs(before: Mapping[str, Extension], now: Mapping[str, Extension]) -> Iterator[tuple[str, str]]:
    gaps = [Counter(found.gap for found in side.values()) for side in (before, now)]
    left = dict(before)
    rest = []
    for new, extension in now.items():
        same = [home for home, found in before.items() if found.gap == extension.gap]
        if same and gaps[0][extension.gap] == gaps[1][extension.gap] == 1:
            del left[same[0]]
            yield same[0], new
        else:
            rest.append(new)
    for new in rest:
        same = [home for home, found in left.items() if found.name == now[new].name]
        if len(same) == 1:
            del left[same[0]]
            yield same[0], new


def _paths_after(old: str, new: str, names: tuple[str, str], files: Iterable[str], staged: Staged) -> dict[str, str]:
    """Return new path -> old path for the files of one extension; file names carry the extension's name."""
    found = {}
    part = re.compile(rf"(?<![^/])({re.escape(names[0])}|{re.escape(_spelled(names[0]))})(?=[-_./]|$)")
    respelled = {_SKILL.sub(lambda step: _spelled(step[0]), path, count=1): path for path in staged.files}
    for path in files:
        if path == f"acceptance/{names[0]}.yaml":
            after = f"acceptance/{names[1]}.yaml"
        elif path.startswith(f"{old}/"):
            after = path if old == new else f"{new}/{part.sub(names[1], path.removeprefix(old)[1:])}"
        else:
            continue
        if after not in staged.files:
            after = respelled.get(_SKILL.sub(lambda step: _spelled(step[0]), after, count=1), after)
        if after in staged.files and after != path:
            found[after] = path
    return found


def _skill_folder(path: str) -> str:
    """Return the folder of the skill that a file is of; empty for another file."""
    match = _SKILL.search(path)
    return path[: match.end()] if match else ""


def _spelled(name: str) -> str:
    """Return a skill's name as agentskills spells it, which knows no underscores."""
    return name.replace("_", "-")


class Ground:
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
