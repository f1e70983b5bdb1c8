"""ZIP archives (.zip), when one is what was promised."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
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
    names = Counter(info.filename.replace("\\", "/") for info in archive.infos)
    hygiene = [
        _milder(finding, names)
        for finding in archive.check_hygiene()
        if finding.code not in _HARMLESS
    ]
    hygiene += check_links(archive)
    yield from hygiene
    if not archive.infos:
        yield warning("zip-empty", "there is nothing in it")
    if not any(f.severity is Severity.ERROR for f in hygiene):
        yield from check_members(archive)


def _milder(finding: Finding, names: Counter[str]) -> Finding:
    """Where only capitals differ, an archive is sound on systems that tell them apart: a warning."""
    if finding.code != "zip-member-duplicate" or names[finding.where.member or ""] > 1:
        return finding
    return replace(finding, severity=Severity.WARNING, failure_id=None)
