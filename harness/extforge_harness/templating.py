"""Render Copier templates, cut off from the user's settings and from every folder that holds something.

Measured on Copier 9.19: it half-writes into existing folders on an error, reads the user's settings file, changes the
working directory of the process, compiles every template and every file name again for each rendering, and asks git
about every file.  So everything is rendered into a fresh folder, with settings of ours, one environment for all
renderings of a template, and no question about a repository that a fresh folder is not in.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jinja2.sandbox import SandboxedEnvironment

__all__ = ["Copier", "render_template", "template_folder"]


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
        Copier(template).copy(target, dict(context))
        return {
            path.relative_to(target).as_posix(): path.read_bytes()
            for path in sorted(target.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


class Copier:
    """Renders one template again and again."""

    def __init__(self, template: Path) -> None:
        self.template = template
        self._run = _make_run()

    def copy(self, target: Path, context: dict[str, Any]) -> None:
        """Render into `target`, which must not exist.

        Raises:
            TemplateError: when the template does not render.
        """
        import jinja2  # noqa: PLC0415 -- only rendering should pay for it
        from copier.errors import CopierError  # noqa: PLC0415

        try:
            with _own_settings():
                self._run(str(self.template), target, data=context, defaults=True, overwrite=True, quiet=True)
        except (CopierError, jinja2.TemplateError, OSError, ValueError) as exc:
            raise TemplateError(f"the template {self.template.name!r} does not render: {exc}") from exc


@contextmanager
def _own_settings() -> Iterator[None]:
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


def _make_run() -> Callable[..., Any]:
    """Return Copier's `run_copy`, with the environment shared between the designs of one run."""
    import copier  # noqa: PLC0415 -- half a second

    # All that is public makes a new environment each time; where the inside looks different, that has to do.
    Worker: Any = getattr(copier._main, "Worker", None)  # noqa: N806, SLF001 -- a class
    make: Any = vars(Worker).get("jinja_env") if Worker else None
    if not isinstance(make, cached_property):
        return copier.run_copy
    shared: list[SandboxedEnvironment] = []
    read: list[Any] = []

    class SharingWorker(Worker):  # type: ignore[misc]
        @cached_property
        def jinja_env(self) -> SandboxedEnvironment:
            if not shared:
                environment = make.func(self)
                _remember_strings(environment)
                shared.append(environment)
            return shared[0]

        @cached_property
        def template(self) -> Any:
            # Its copier.yml is read, and git asked what kind of folder it is, once.
            if not read:
                read.append(Worker.template.func(self))
                vars(read[0])["vcs"] = None  # the folder as it is: of a repository Copier would clone its newest tag
            return read[0]

        def _sync_git_index_executable_bit(self, dst_relpath: Any, src_mode: int) -> None:
            """A staging folder is in no repository."""

    def run(template: str, target: Path, **options: Any) -> None:
        with SharingWorker(src_path=template, dst_path=target, **options) as worker:
            worker.run_copy()

    return run


def _remember_strings(environment: SandboxedEnvironment) -> None:
    """Compile each file name once.  Copier's `yield` counts on preprocessing before every rendering, so that is done."""
    compiled: dict[str, Any] = {}
    compile_string, load = environment.from_string, environment.get_template

    def from_string(source: str, *args: Any, **kwargs: Any) -> Any:
        environment.preprocess(source)
        if args or kwargs:
            return compile_string(source, *args, **kwargs)
        if source not in compiled:
            compiled[source] = compile_string(source)
        return compiled[source]

    def get_template(*args: Any, **kwargs: Any) -> Any:
        environment.preprocess("")
        return load(*args, **kwargs)

    vars(environment).update(from_string=from_string, get_template=get_template)
