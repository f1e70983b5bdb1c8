"""What a user has in other agent products, by name only.

Reading only, as far as it can be read, and never an exception: no process, no network, no writing.  One file is opened
at all, `.claude/mcp.json`, for the names of its servers; everything else is a look at what folders hold.  Names that
smell of credentials are passed over before anything is opened, links that lead out of a product's folder too.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extforge_harness.runtimes.bundle import Entry
from extforge_verifiers.paths import lies_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FORBIDDEN", "Scan", "is_forbidden", "scan_external", "scan_project"]

FORBIDDEN = (
    "*auth.json", "auth_*", "*.token", "*credential*", "*secret*", "*.key", "*.pem", "*.crt", "*.p12", ".env*",
    "id_rsa*", "id_ed25519*", ".netrc",
)  # fmt: skip
LARGEST = 1 << 20  # bytes of a file that is opened
MOST_NAMES = 1_000  # per place
_NAME = re.compile(r"[\w.@ +-]{1,128}")
# Product folder -> its runtime, and where else the product looks below the home.
_RUNTIMES = {".claude": "claudecode", ".codex": "codex", ".agents": "codex", ".dsh": "dsh", ".openjiuwen": "native"}
# (folder, path below it, kind, what counts): a folder, a Markdown file, or that the file is there.
_PLACES = (
    (".claude", "mcp.json", "mcp", "servers"),
    (".claude", "CLAUDE.md", "instructions", "exists"),
    (".claude", "skills", "skill", "folders"),
    (".claude", "commands", "command", "markdown"),
    (".codex", "config.toml", "config", "exists"),
    (".codex", "plugins", "plugin", "folders"),
    (".codex", "prompts", "command", "markdown"),
    (".agents", "skills", "skill", "folders"),
    (".dsh", "skills", "skill", "folders"),
    (".openjiuwen", "workspace/skills", "skill", "folders"),
)
# The same of a project: (path, kind, what counts, runtime that looks there).
_PROJECT = (
    (".claude/skills", "skill", "folders", "claudecode"),
    (".agents/skills", "skill", "folders", "codex"),
    (".dsh/skills", "skill", "folders", "dsh"),
    (".mcp.json", "mcp", "servers", "claudecode"),
    ("CLAUDE.md", "instructions", "exists", "claudecode"),
    ("AGENTS.md", "instructions", "exists", "codex"),
)


@dataclass(slots=True)
class Scan:
    """What was found, and what was passed over, in words without the names that were refused."""

    entries: list[Entry] = field(default_factory=list)
    diagnostics: list[str] = field(default_factory=list)

    def note(self, words: str) -> None:
        """Remember a reason once."""
        if words not in self.diagnostics:
            self.diagnostics.append(words)


def scan_external(home: str | None = None, active: str | None = None) -> Scan:
    """Return what other products of this user hold.

    Args:
        home: the user's home; default: this user's.
        active: the runtime in use: what is its own can be used here, the rest is only known.
    """
    scan = Scan()
    base = os.path.expanduser("~") if home is None else home
    for folder, path, kind, what in _PLACES:
        root = os.path.join(base, folder)
        _look(scan, root, path, kind, what, _RUNTIMES[folder], active, f"~/{folder}")
    return scan


def scan_project(root: str, active: str | None = None) -> Scan:
    """Return what the user has put into a project: skill folders, names of MCP servers, instructions."""
    scan = Scan()
    for path, kind, what, runtime in _PROJECT:
        _look(scan, root, path, kind, what, runtime, active, "this project")
    return scan


def is_forbidden(path: str) -> bool:
    """Say whether any step of a path looks like a credential; capitals make no difference."""
    steps = [step.lower() for step in path.replace("\\", "/").split("/") if step]
    return any(fnmatch.fnmatchcase(step, pattern) for step in steps for pattern in FORBIDDEN)


def _look(  # noqa: PLR0913, PLR0917 -- one row of the tables above, and where
    scan: Scan, root: str, path: str, kind: str, what: str, runtime: str, active: str | None, origin: str
) -> None:
    try:
        names = list(_names(scan, root, path, what, origin))
    except Exception as exc:  # noqa: BLE001 -- a product that cannot be read has no entries, and nothing else happens
        scan.note(f"{origin}: cannot be read ({type(exc).__name__})")
        return
    executable = active == runtime or (runtime == "native" and active == "native_v2")
    hint = "" if executable else f"in {origin}; switch to {runtime} to use it"
    scan.entries += [
        Entry(f"{origin}/{path}:{name}", kind, name, origin, executable, hint) for name in dict.fromkeys(names)
    ]


def _names(scan: Scan, root: str, path: str, what: str, origin: str) -> Iterator[str]:
    full = os.path.join(root, *path.split("/"))
    if not os.path.lexists(full) or not _allowed(scan, root, full, origin):
        return
    if what == "exists":
        if stat.S_ISREG(os.stat(full).st_mode):
            yield os.path.basename(full)
    elif what == "servers":
        yield from _servers(scan, full, origin)
    else:
        with os.scandir(full) as listing:
            for number, entry in enumerate(sorted(listing, key=lambda e: e.name)):
                if number >= MOST_NAMES:
                    scan.note(f"{origin}: more than {MOST_NAMES} entries in {path}; the rest is not shown")
                    return
                wanted = entry.is_dir() if what == "folders" else entry.name.lower().endswith(".md") and entry.is_file()
                if wanted and _allowed(scan, root, entry.path, origin):
                    name = entry.name if what == "folders" else os.path.splitext(entry.name)[0]
                    yield from _shown(scan, name, origin)


def _allowed(scan: Scan, root: str, full: str, origin: str) -> bool:
    """Say whether a path may be looked at: by its own steps, and by those of what it really is."""
    base, real = os.path.realpath(root), os.path.realpath(full)
    below = os.path.relpath(full, root)
    if is_forbidden(below) or is_forbidden(os.path.basename(base)):
        scan.note(f"{origin}: passed over names that look like credentials")
        return False
    if not lies_in(full, root):
        scan.note(f"{origin}: passed over a link that leads out of it")
        return False
    if is_forbidden(os.path.relpath(real, base)):
        scan.note(f"{origin}: passed over names that look like credentials")
        return False
    return True


def _servers(scan: Scan, full: str, origin: str) -> Iterator[str]:
    """Yield the names of MCP servers; commands, environments and headers pass by unkept."""
    real = os.path.realpath(full)
    # Links were followed and judged; another one that appears now is not.  A pipe must not hang.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(real, flags)
    with os.fdopen(descriptor, "rb") as stream:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            scan.note(f"{origin}: {os.path.basename(full)} is no file of at most {LARGEST >> 20} MiB")
            return
        import ijson  # noqa: PLC0415 -- only where there is such a file

        for prefix, event, value in ijson.parse(stream):
            if event == "map_key" and prefix == "mcpServers":
                yield from _shown(scan, str(value), origin)


def _shown(scan: Scan, name: str, origin: str) -> Iterator[str]:
    if _NAME.fullmatch(name) and name.isprintable():
        yield name
    else:
        scan.note(f"{origin}: passed over a name that cannot be shown")
