"""Scaffold the package of a new runtime."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from extforge.apply import apply_changes, classify
from extforge.errors import TargetError
from extforge.naming import is_snake_case, reserved_reason
from extforge.render import render_template, template_folder
from extforge_harness.runtimes.descriptors import load_registry
from extforge_harness.runtimes.onboarding import FIXTURES, SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["provider_text", "scaffold_runtime"]


def scaffold_runtime(name: str, out: str, template: Path | None = None) -> tuple[str, list[str]]:
    """Write `<name>_runtime/` below `out`, all files or none, and return (its folder, the files).

    Raises:
        TargetError: when the name cannot be used, or a file is in the way; nothing was changed.
    """
    from pathlib import Path  # noqa: PLC0415 -- at the top for types only

    if not is_snake_case(name) or len(name) > 32 or reserved_reason(name):
        raise TargetError(f"{name!r} cannot name a runtime: use snake_case, at most 32 characters")
    if name in load_registry().ids:
        raise TargetError(f"there is a runtime {name!r} already")
    package = f"{name}_runtime"
    context = {
        "name": name,
        "package": package,
        "differs": "protocol",
        "scenarios": {key: shows for key, (shows, _) in SCENARIOS.items()},
        "fixtures": list(FIXTURES),
    }
    files = render_template(template or template_folder("runtime"), context)
    target = Path(out) / package
    changes = classify(target, files)
    if changes.foreign or changes.identical:
        raise TargetError(f"{target} is there already, with {', '.join([*changes.foreign, *changes.identical][:3])}")
    apply_changes(target, files, changes)
    return os.fspath(target), changes.create


def provider_text(name: str) -> str:
    """Return the description of a provider, to be filled in."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "my-endpoint"
    return (
        f"id: {slug}\n"
        "wire: openai_chat # or openai_responses, anthropic_messages, account\n"
        "tools: true # false when its model calls no tools\n"
    )
