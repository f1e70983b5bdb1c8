"""Files that ship with the package but live elsewhere in the checkout."""

from __future__ import annotations

from pathlib import Path

from extforge.errors import ExtforgeError

__all__ = ["CODES", "DEMO_PLAN", "shipped"]

# name in the installed package, path in the checkout
CODES = ("codes.md", "docs/codes.md")
DEMO_PLAN = ("demo.plan.yaml", "examples/demo.plan.yaml")


def shipped(resource: tuple[str, str]) -> Path:
    """Return where a resource is: beside this module when installed, in the checkout otherwise."""
    here = Path(__file__).resolve().parent
    for path in (here / resource[0], here.parents[1] / resource[1]):
        if path.is_file():
            return path
    raise ExtforgeError(f"this installation lacks {resource[0]}; reinstall extforge")
