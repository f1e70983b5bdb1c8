"""Where a path really leads."""

from __future__ import annotations

import os

__all__ = ["lies_in"]


def lies_in(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Say whether a path is a folder or lies below it, links followed, whether it exists or not.

    What nobody can follow, such as a name with a NUL in it, lies nowhere.
    """
    try:
        place, root = os.path.realpath(path), os.path.realpath(folder)
    except (OSError, ValueError):
        return False
    return place == root or place.startswith(os.path.join(root, ""))
