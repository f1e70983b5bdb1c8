"""What a template author asks: does my skeleton render, does the host load what it renders, what did I forget?

A template is a folder with `copier.yml`, the tree that its `_subdirectory` names, and plans in `examples/`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from extforge.check import check_plan
from extforge.errors import TemplateError
from extforge.render import render_plan
from extforge.staging import Staged, staging
from extforge_harness.templating import template_folder
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Report, Severity, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from extforge.check import CheckedPlan

__all__ = ["Template", "check_template", "find_template", "packaged_templates", "render_example"]

_NEEDS_TRUST = ("_tasks", "_migrations", "_jinja_extensions")
_WINDOWS = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]$')
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_OWN_COMMAND = ("agent", "runtime")  # not made from plans
_HOSTILE = '\'"""\\ {{ 7*7 }} {% raw %} ${x} --- # a: [b\n*c &d !!e <f> 😀\u202e\u2028 end'


@dataclass(frozen=True, slots=True)
class Template:
    """A template folder."""

    folder: Path
    config: dict[str, Any]

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.folder.name

    @property
    def tree(self) -> Path:
        """The folder that is rendered."""
        return self.folder / str(self.config.get("_subdirectory", "."))

    @property
    def files(self) -> list[Path]:
        """Its own files: not those of a repository that it is the root of, nor what Python leaves behind."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return [path for path in found if not {".git", "__pycache__"} & set(path.relative_to(self.folder).parts)]

    @property
    def examples(self) -> list[Path]:
        """The plans that it should render."""
        return sorted(p for p in (self.folder / "examples").glob("*") if p.suffix in (".yaml", ".yml", ".json"))

    @property
    def about(self) -> str:
        """The comment at the top of its copier.yml."""
        lines = (self.folder / "copier.yml").read_text(encoding="utf-8").splitlines()
        first = next((line for line in lines if line.startswith("#")), "").lstrip("# ")
        return first.partition(".")[0]


def packaged_templates() -> list[Template]:
    """Return the templates that come with extforge."""
    home = Path(str(files("extforge_templates")))
    return [find_template(path.name) for path in sorted(home.iterdir()) if (path / "copier.yml").is_file()]


def find_template(name: str) -> Template:
    """Return a packaged template by its name, or the one in a folder.

    Raises:
        TemplateError: when there is none, or its copier.yml cannot be read.
    """
    folder = Path(name)
    if not (folder / "copier.yml").is_file():
        packaged = template_folder(name) if re.fullmatch(r"[a-z0-9_]+", name) else folder
        if not (packaged / "copier.yml").is_file():
            known = sorted(path.parent.name for path in Path(str(files("extforge_templates"))).glob("*/copier.yml"))
            raise TemplateError(f"{name}: no copier.yml there, and no packaged template; those are {', '.join(known)}")
        folder = packaged
    try:
        config = yaml.safe_load((folder / "copier.yml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        raise TemplateError(f"{folder / 'copier.yml'}: {exc}") from exc
    if not isinstance(config, dict):
        raise TemplateError(f"{folder / 'copier.yml'}: must be a mapping")
    return Template(folder.resolve(), config)


def render_example(template: Template, example: Path, staged: Staged) -> CheckedPlan:
    """Render an example plan into `staged`.

    Raises:
        TemplateError: when it does not render, or is no sound plan.
    """
    plan = check_plan(str(example), max_designs=1000)
    if plan.errors:
        raise TemplateError(f"{example.name} is no sound plan: {plan.errors[0].where}: {plan.errors[0].message}")
    render_plan(plan.blueprints, staged, template.folder)
    return plan


def check_template(template: Template, *, host: bool = False) -> list[Report]:
    """Return what is wrong with a template: one report on its files, and one on each example that it renders.

    Args:
        template: the template.
        host: also load and run what the examples render in the real openJiuwen.

    Raises:
        HostMissing, HostFailed: from `host`.
    """
    checked = ["copier.yml", "syntax", "questions", "file names", "shipped"]
    skipped = {} if shutil.which("git") else {"shipped": "needs git, which is not installed"}
    findings = tuple(_check_files(template))
    reports = [
        Report(str(template.folder), "template", tuple(c for c in checked if c not in skipped), skipped, {}, findings)
    ]
    if any(finding.severity is Severity.ERROR for finding in findings):
        return reports
    if template.name in _OWN_COMMAND and not template.examples:
        return [replace(reports[0], skipped={**skipped, "examples": "its examples are rendered by its own command"})]
    with tempfile.TemporaryDirectory(prefix="extforge-hostile-") as folder:
        hostile = Path(folder, "hostile.plan.json")
        hostile.write_text(_hostile_plan(), encoding="utf-8")
        reports += [_check_example(template, example, host=host) for example in (*template.examples, hostile)]
    return reports


# --------------------------------------------------------------------------- the files


def _check_files(template: Template) -> Iterator[Finding]:
    copier_file = str(template.folder / "copier.yml")
    for key in _NEEDS_TRUST:
        if template.config.get(key):
            words = f"{key} needs a template that is trusted; extforge renders none that does"
            yield Finding("template-needs-trust", words, where=Where(copier_file), fix=f"do without {key}")
    undefined = (template.config.get("_envops") or {}).get("undefined")
    if undefined != "jinja2.StrictUndefined":
        words = "a name that nobody defines would silently render as nothing"
        fix = "_envops: {undefined: jinja2.StrictUndefined}"
        yield Finding("template-lenient", words, where=Where(copier_file), fix=fix)
    if not template.tree.is_dir():
        words = f"_subdirectory names {template.tree.name!r}, which is no folder"
        yield Finding("template-tree-missing", words, where=Where(copier_file))
        return
    if not template.examples and template.name not in _OWN_COMMAND:
        words = "there is no plan in examples/, so nothing shows that it renders"
        yield Finding("template-example-missing", words, Severity.WARNING, Where(str(template.folder)))
    texts = {path: path.read_bytes() for path in template.files}
    yield from _check_syntax(template, texts)
    yield from _check_questions(template, texts)
    yield from _check_names([path.relative_to(template.folder).as_posix() for path in texts], template.folder)
    yield from _check_shipped(template)


def _check_syntax(template: Template, texts: dict[Path, bytes]) -> Iterator[Finding]:
    import jinja2  # noqa: PLC0415 -- only authors need it
    from copier._jinja_ext import YieldExtension  # noqa: PLC0415

    envops = {key: value for key, value in (template.config.get("_envops") or {}).items() if key != "undefined"}
    environment = jinja2.Environment(extensions=[YieldExtension], autoescape=False, **envops)  # noqa: S701 -- parses only
    for path, data in texts.items():
        name = path.relative_to(template.folder).as_posix()
        sources = [(name, 0)] + ([(data.decode("utf-8", "replace"), 1)] if path.suffix == ".jinja" else [])
        for source, is_body in sources:
            try:
                environment.parse(source)
            except jinja2.TemplateSyntaxError as exc:
                where = Where(str(path), line=exc.lineno if is_body else None)
                what = "" if is_body else "its name: "
                yield Finding("template-syntax", f"{what}{exc.message}", where=where)


def _check_questions(template: Template, texts: dict[Path, bytes]) -> Iterator[Finding]:
    questions = [key for key in template.config if not key.startswith("_")]
    everything = "\n".join(
        f"{path.relative_to(template.folder)}\n{data.decode('utf-8', 'replace')}"
        for path, data in texts.items()
        if path.name != "copier.yml"
    )
    rest = yaml.safe_dump({key: value for key, value in template.config.items() if key.startswith("_")})
    for key in questions:
        others = yaml.safe_dump({k: v for k, v in template.config.items() if k != key and not k.startswith("_")})
        if not re.search(rf"\b{re.escape(key)}\b", everything + rest + others):
            words = f"the question {key!r} is asked, and its answer used nowhere"
            yield Finding(
                "template-question-unused", words, Severity.WARNING, Where(str(template.folder / "copier.yml"))
            )


def _check_names(names: list[str], folder: Path) -> Iterator[Finding]:
    folded: dict[str, str] = {}
    for name in names:
        bad = [part for part in name.split("/") if _WINDOWS.search(part) or _DEVICES.match(part)]
        if bad:
            words = f"{bad[0]!r} cannot name a file on Windows"
            yield Finding("template-windows-name", words, where=Where(str(folder / name)))
        twin = folded.setdefault(name.casefold(), name)
        if twin != name:
            words = f"differs from {twin} in capitals only, which is one file on Windows and macOS"
            yield Finding("template-windows-name", words, where=Where(str(folder / name)))


def _check_shipped(template: Template) -> Iterator[Finding]:
    """Whatever .gitignore covers is left out of the wheel without a word."""
    git = shutil.which("git")
    paths = [str(path) for path in template.files]
    if git is None or not paths:
        return
    done = subprocess.run(  # noqa: S603 -- fixed arguments, our own files
        [git, "-C", str(template.folder), "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    for path in filter(None, done.stdout.decode("utf-8", "replace").split("\0")):
        words = "is ignored by git, so it is left out of wheels and clones"
        yield Finding(
            "template-not-shipped", words, where=Where(path), fix="git check-ignore -v shows which line does it"
        )


# --------------------------------------------------------------------------- what it renders


def _check_example(template: Template, example: Path, *, host: bool) -> Report:
    checked = ["renders", "loads (L1)", "ruff", "file names", "same bytes"]
    skipped: dict[str, str] = {}
    findings: list[Finding] = []
    ruff = _ruff()
    if ruff is None:
        skipped["ruff"] = "needs ruff, which is not installed"
    if not host:
        skipped["host"] = "not asked for (--host)"
    with staging() as staged:
        try:
            plan = render_example(template, example, staged)
        except TemplateError as exc:
            finding = Finding("template-does-not-render", str(exc), where=Where(str(example)))
            return Report(str(example), "template example", ("renders",), {}, {}, (finding,))
        roots = [str(staged.folder / blueprint.root) for blueprint in plan.blueprints]
        for root in roots:
            findings += verify_extension(root).findings
        if ruff is not None:
            findings += _lint(ruff, staged.folder)
        findings += _check_names(list(staged.files), staged.folder)
        findings += _check_same(template, example, staged)
        if host:
            from extforge_harness.host.run import verify_in_host  # noqa: PLC0415 -- needs openJiuwen

            checked.append("host")
            findings += [finding for report in verify_in_host(roots).reports for finding in report.findings]
        facts = {"extensions": len(roots), "files": len(staged.files)}
        findings = [_shown(finding, staged.folder) for finding in findings]
    done = tuple(name for name in checked if name not in skipped)
    return Report(str(example), "template example", done, skipped, facts, tuple(findings))


def _shown(finding: Finding, folder: Path) -> Finding:
    """Return the finding with paths as they would be in a target."""
    path = finding.where.path
    message = finding.message.replace(f"{folder}{os.sep}", "")
    where = replace(finding.where, path=os.path.relpath(path, folder)) if path else finding.where
    return replace(finding, message=message, where=where)


def _ruff() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "ruff")
    return beside if os.path.exists(beside) else shutil.which("ruff")


def _lint(ruff: str, folder: Path) -> Iterator[Finding]:
    for arguments in (("check", "--output-format=concise"), ("format", "--check")):
        done = subprocess.run(  # noqa: S603 -- fixed arguments, files that we rendered
            [ruff, *arguments, "--isolated", "--no-cache", str(folder)], capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            if match := re.match(r"(?P<path>.+?\.py):(?P<line>\d+):(?P<column>\d+): (?P<words>.+)", line):
                where = Where(match["path"], line=int(match["line"]), column=int(match["column"]))
                yield Finding("template-lint", match["words"], where=where)
            elif line.startswith("Would reformat: "):
                where = Where(line.removeprefix("Would reformat: "))
                yield Finding("template-lint", "ruff format would change it", where=where)


def _check_same(template: Template, example: Path, staged: Staged) -> Iterator[Finding]:
    """Render once more in another process, with another hash seed, time zone, locale and umask."""
    with tempfile.TemporaryDirectory(prefix="extforge-again-") as folder:
        code = "import os, sys; os.umask(0o077); from extforge.cli import run; run()"
        command = ["templates", "render", str(template.folder), "--example", str(example), "--into", f"{folder}/again"]
        env = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "1"}
        done = subprocess.run(  # noqa: S603 -- ourselves
            [sys.executable, "-c", code, *command], capture_output=True, text=True, env=env, cwd=folder, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            yield Finding("template-not-deterministic", f"a second rendering failed: {lines[-1]}")
            return
        again = Path(folder, "again")
        found = {path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file()}
        for name in sorted(found ^ set(staged.files)):
            yield Finding("template-not-deterministic", "is only there in one of two renderings", where=Where(name))
        for name in sorted(found & set(staged.files)):
            if (again / name).read_bytes() != staged.read(name):
                words = "differs between two renderings in another locale, time zone and hash seed"
                yield Finding("template-not-deterministic", words, where=Where(name))


def _hostile_plan() -> str:
    import json  # noqa: PLC0415 -- once

    texts = {"description": _HOSTILE}
    designs = [
        {"gap_id": "h1", "extension_name": "hostile_export_json", "components": ["tool"], **texts, "tools": [texts]},
        {"gap_id": "h2", "extension_name": "hostile_knowledge", "components": ["skill"], **texts, "skills": [texts]},
        {"gap_id": "h3", "extension_name": "hostile_rail_prompt", "components": ["rail"], **texts},
    ]
    return json.dumps(designs)
