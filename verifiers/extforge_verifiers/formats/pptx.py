"""PowerPoint presentations (.pptx, .pptm, .potx, .potm, .ppsx, .ppsm).

Sources:

- ECMA-376-1 §13.3.6 presentation part, §13.3.8 slide part, §19.2.1.34 sldIdLst: slides are listed there, by
  relation id, in order; an orphan slide part is not part of the show.
- ECMA-376-1 §19.2.1.33 sldId: id is unique and at least 256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.findings import invalid, warning
from extforge_verifiers.packages import Family, check_placeholder, checks_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact
    from extforge_verifiers.findings import Finding
    from extforge_verifiers.packages import Package

__all__ = ["check"]

_OPEN = "application/vnd.openxmlformats-officedocument.presentationml"
_MACRO = "application/vnd.ms-powerpoint"

FAMILY = Family(
    "pptx",
    "presentation",
    {
        ".pptx": f"{_OPEN}.presentation.main+xml",
        ".pptm": f"{_MACRO}.presentation.macroEnabled.main+xml",
        ".potx": f"{_OPEN}.template.main+xml",
        ".potm": f"{_MACRO}.template.macroEnabled.main+xml",
        ".ppsx": f"{_OPEN}.slideshow.main+xml",
        ".ppsm": f"{_MACRO}.slideshow.macroEnabled.main+xml",
    },
    "presentationml",
    also={".ppsx": ".pptx", ".ppsm": ".pptm"},  # what LibreOffice writes
)
_PICTURES = ("pic", "graphicFrame", "cxnSp", "AlternateContent", "blip")
_FIRST_ID, _LAST_ID = 256, 2**31 - 1


def _check_slides(package: Package, artifact: Artifact) -> Iterator[Finding]:
    """Fake: a package that is a presentation in name, with no slide, a lost slide or an empty one."""
    relations = package.relations(package.main)
    found: set[str] = set()
    seen: set[str] = set()
    for slide in package.attributes(package.main, "sldId"):
        yield from _check_identity(package, slide.get("id", ""), seen)
        relation_id = slide.get(":id", "")
        relation = relations.get(relation_id)
        if (
            relation is None
            or relation.external
            or relation.target not in package.archive
        ):
            target = relation.target if relation else f"relation {relation_id!r}"
            yield invalid(
                "pptx-slide-missing",
                f"the presentation lists a slide that is not there: {target}",
                member=package.main,
            )
            continue
        if relation.target in found:
            words = f"the presentation lists {relation.target} twice"
            yield invalid("pptx-slide-id", words, member=package.main)
            continue
        found.add(relation.target)
        yield from _check_slide(package, relation.target)
    artifact.facts["slides"] = len(found)
    if not found and not any(f.where.member for f in package.problems.values()):
        yield invalid(
            "pptx-no-slides", "the presentation has no slide", member=package.main
        )


def _check_identity(
    package: Package, identity: str, seen: set[str]
) -> Iterator[Finding]:
    if identity in seen:
        yield invalid(
            "pptx-slide-id", f"two slides share the id {identity}", member=package.main
        )
    elif not identity.isdecimal() or not _FIRST_ID <= int(identity[:12]) <= _LAST_ID:
        yield invalid(
            "pptx-slide-id",
            f"slide id {identity!r} is outside 256 .. 2147483647",
            member=package.main,
        )
    seen.add(identity)


def _check_slide(package: Package, part: str) -> Iterator[Finding]:
    survey = package.survey(part)
    if survey is None:
        return
    if named := FAMILY.misnomer(survey.root, survey.namespace, "sld"):
        words = f"{part} is a <{named}>, not a slide"
        yield invalid("pptx-slide-root", words, member=part)
        return
    if not survey.text and not any(survey.counts[name] for name in _PICTURES):
        yield warning(
            "pptx-slide-blank", f"{part} has neither text nor a picture", member=part
        )
    yield from check_placeholder(part, survey.text)


check = checks_for(FAMILY, _check_slides)
