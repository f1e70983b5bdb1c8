"""Render Copier templates, cut off from the user's settings and from every folder that holds something.

Measured on Copier 9.19: it half-writes into existing folders on an error, reads the user's settings file and
changes the working directory of the process.  So everything is rendered into a fresh folder of its own, with
settings of ours, before anything touches a target.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["render_template", "template_folder"]


def template_folder(name: str = "extension") -> Path:
    """Return the folder of a packaged template."""
    return Path(str(files("extforge_templates").joinpath(name)))


def render_template(template: Path, context: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a template renders to: path -> bytes.

    Args:
        template: the folder with its `copier.yml`.
        context: what it sees; the values are data, and are not rendered themselves.

    Raises:
        TemplateError: when it does not render.
    """
    with tempfile.TemporaryDirectory(prefix="extforge-") as folder:
        # Copier and we both follow symlinks of the system's temporary folder; resolve it once.
        target = Path(folder).resolve() / "tree"
        _copy(template, target, dict(context))
        return {
            path.relative_to(target).as_posix(): path.read_bytes()
            for path in sorted(target.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


@contextmanager
def _quiet_copier() -> Iterator[None]:
    """Run Copier without the user's settings, and come back to the same working directory."""
    before = os.environ.get("COPIER_SETTINGS_PATH")
    here = os.getcwd()
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as settings:
        settings.write("{}\n")
        settings.flush()
        os.environ["COPIER_SETTINGS_PATH"] = settings.name
        try:
            yield
        finally:
            os.chdir(here)
            if before is None:
                del os.environ["COPIER_SETTINGS_PATH"]
            else:
                os.environ["COPIER_SETTINGS_PATH"] = before


def _copy(template: Path, target: Path, context: dict[str, Any]) -> None:
    import copier  # noqa: PLC0415 -- half a second that only rendering should pay
    import jinja2  # noqa: PLC0415
    from copier.errors import CopierError  # noqa: PLC0415

    try:
        with _quiet_copier():
            copier.run_copy(
                str(template), target, data=context, defaults=True, overwrite=True, quiet=True, unsafe=False
            )
    except (CopierError, jinja2.TemplateError, OSError, ValueError) as exc:
        raise TemplateError(f"the template {template.name!r} does not render: {exc}") from exc
