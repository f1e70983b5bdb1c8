"""ZIP archives (.zip), when one is what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.archive import Archive, ArchiveUnreadable, check_members
from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import Severity, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_archive"]

_HARMLESS = ("zip-directory-entry", "zip-member-method")


def check_archive(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an archive that is damaged, empty, or made to write outside the folder it is unpacked into."""
    disguised = list(check_disguise(artifact, "zip"))
    yield from disguised
    if disguised:
        return
    try:
        archive = Archive(artifact)
    except ArchiveUnreadable as exc:
        yield invalid("zip-unreadable", str(exc))
        return
    artifact.facts["members"] = len(archive.infos)
    hygiene = [f for f in archive.check_hygiene() if f.code not in _HARMLESS]
    yield from hygiene
    if not archive.infos:
        yield warning("zip-empty", "there is nothing in it")
    if not any(f.severity is Severity.ERROR for f in hygiene):
        yield from check_members(archive)
