"""Scalable Vector Graphics (.svg).

Sources:

- W3C SVG 2 §5.1: the root is `svg` in the SVG namespace; §4.3: scripts run in a browser, so they are pointed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.disguises import check_disguise
from extforge_verifiers.findings import Finding, Severity, Where, invalid, warning
from extforge_verifiers.markup import DoctypeRefused, MarkupError, local_name, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge_verifiers.artifact import Artifact

__all__ = ["check_drawing"]

_SHAPES = frozenset(
    (
        "path",
        "rect",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "text",
        "image",
        "use",
    )
)


def check_drawing(artifact: Artifact) -> Iterator[Finding]:
    """Fake: an HTML page or text saved as diagram.svg; a drawing with nothing in it."""
    roots: list[str] = []
    shapes = 0
    scripts: list[str] = []
    foreign = 0  # how deep inside a foreignObject; its text is seen

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal shapes, foreign
        name = local_name(tag)
        if foreign or name == "foreignObject":
            foreign += 1
        if not roots:
            roots.append(tag)
        shapes += name in _SHAPES
        if name == "script":
            scripts.append("a script element")
        scripts.extend(
            f"the attribute {key}"
            for key in attributes
            if local_name(key).startswith("on")
        )
        target = next((v for k, v in attributes.items() if local_name(k) == "href"), "")
        if target.strip().lower().startswith("javascript:"):
            scripts.append("a javascript: link")

    def on_text(text: str) -> None:
        nonlocal shapes
        shapes += bool(foreign and text.strip())

    def on_end(_: str) -> None:
        nonlocal foreign
        foreign = max(foreign - 1, 0)

    try:
        scan(artifact.chunks(), on_start, on_text, on_end, doctype=True)
    except DoctypeRefused as exc:
        # Adobe Illustrator writes such files, so they are no fakes; but entities are never expanded here.
        words = "its DOCTYPE declares entities; the drawing was not looked into"
        yield warning("svg-entities", words, line=exc.line)
        return
    except MarkupError as exc:
        is_svg = bool(roots) and local_name(roots[0]) == "svg"
        found = [] if is_svg else list(check_disguise(artifact, "svg"))
        words = f"not well-formed XML: {exc.message}"
        yield from found or [
            invalid("xml-not-well-formed", words, line=exc.line, column=exc.column)
        ]
        return
    root = local_name(roots[0])
    if root != "svg":
        page = ": it is an HTML page" if root == "html" else ""
        yield invalid("svg-root", f"the root is <{root}>, not <svg>{page}")
        return
    if "http://www.w3.org/2000/svg" not in roots[0]:
        yield warning(
            "svg-namespace",
            "the root is not in the SVG namespace; browsers show nothing",
        )
    artifact.facts["shapes"] = shapes
    if not shapes:
        yield warning("svg-blank", "there is no shape in it")
    if scripts:
        words = f"it has {scripts[0]}"
        yield Finding(
            "svg-script",
            words,
            Severity.WARNING,
            Where(),
            fix="remove it, or show the drawing as an image",
        )
