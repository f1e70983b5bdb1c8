"""Reports for people and machines.  To add one: write its module, add its row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from extforge_verifiers.findings import Report

    class Renderer(Protocol):
        """Returns reports as text; `describe` explains a code, `partial` says that some are missing."""

        def __call__(
            self,
            reports: Sequence[Report],
            *,
            describe: Callable[[str], str] | None = None,
            partial: bool = False,
        ) -> str: ...


__all__ = ["RENDERERS", "renderer"]

# format -> module that has `render`; a command needs one of them, so none is imported before it is asked for.
RENDERERS: dict[str, str] = {
    "text": "extforge_verifiers.reports.text",
    "json": "extforge_verifiers.reports.json",
    "sarif": "extforge_verifiers.reports.sarif",
    "junit": "extforge_verifiers.reports.junit",
    "github": "extforge_verifiers.reports.github",
    "markdown": "extforge_verifiers.reports.markdown",
    "html": "extforge_verifiers.reports.html",
}


def renderer(name: str) -> Renderer:
    """Return the function that renders reports in one of the formats of `RENDERERS`."""
    found: Renderer = import_module(RENDERERS[name]).render
    return found
