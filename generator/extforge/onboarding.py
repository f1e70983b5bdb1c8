"""Scaffold the package of a new runtime."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from typing import TYPE_CHECKING

from extforge.errors import TargetError, TemplateError
from extforge.naming import is_snake_case, reserved_reason
from extforge_harness import errors
from extforge_harness.runtimes.descriptors import load_registry
from extforge_harness.runtimes.onboarding import FIXTURES, SCENARIOS
from extforge_harness.templating import render_template, template_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    try:
        files = render_template(template or template_folder("runtime"), context)
    except errors.TemplateError as exc:
        raise TemplateError(str(exc)) from exc
    target = Path(out) / package
    if target.exists():
        there = sorted(path.name for path in target.iterdir()) if target.is_dir() else []
        if there or not target.is_dir():
            raise TargetError(f"{target} is there already{f', with {there[0]} in it' if there else ''}")
    _place(target, files)
    return os.fspath(target), sorted(files)


def _place(target: Path, files: Mapping[str, bytes]) -> None:
    """Write the files beside the target, and give them its name in one step."""
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        for path, data in files.items():
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            (beside / path).write_bytes(data)
        beside.replace(target)
    except OSError as exc:
        raise TargetError(f"cannot write {target}: {exc.strerror or exc}; nothing was changed") from exc
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def provider_text(name: str) -> str:
    """Return the description of a provider, to be filled in."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "my-endpoint"
    return (
        f"id: {slug}\n"
        "wire: openai_chat # or openai_responses, anthropic_messages, account\n"
        "tools: true # false when its model calls no tools\n"
    )
