"""ZIP archives (.zip), when one is what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.archive import check_links, check_members, open_archive
from extforge_verifiers.findings import Severity, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding

__all__ = ["check_archive"]

_HARMLESS = ("zip-directory-entry", "zip-member-method")


def check_archive(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an archive that is damaged, empty, or made to write outside the folder it is unpacked into."""
    archive = yield from open_archive(artifact)
    if archive is None:
        return
    artifact.facts["members"] = len(archive.infos)
    hygiene = [
        finding
        for finding in archive.check_hygiene(capitals=True)
        if finding.code not in _HARMLESS
    ]
    hygiene += check_links(archive)
    yield from hygiene
    if not archive.infos:
        yield warning("zip-empty", "there is nothing in it")
    if not any(f.severity is Severity.ERROR for f in hygiene):
        yield from check_members(archive)
