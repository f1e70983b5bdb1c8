"""Make an openJiuwen `agent_template` package of a definition and its skills.

What the package holds is what the agent gets: DeepAgent takes every skill in it, whatever `enabled_skills` says, so
only the listed ones are copied.  There is no model file: endpoint and key come from where the agent runs.

Source: openJiuwen 0.1.19, `harness/resources/extension_loader.py` and `harness_providers/factory.py`.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extforge_harness.agents.settings import RUNTIMES
from extforge_harness.errors import AgentBuildError, HostMissing
from extforge_harness.host.process import host_available
from extforge_harness.skills import check_skill_files, find_skills, read_skill_files
from extforge_harness.templating import render_template, template_folder
from extforge_verifiers.documents import read_text
from extforge_verifiers.errors import DocumentError
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.findings import Finding, Report, Severity, Where
from extforge_verifiers.frontmatter import check_skill

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from extforge_harness.agents.definition import AgentDefinition

__all__ = ["Built", "build_agent", "build_package", "check_own", "package_files"]

_KEYS = {"package_type", "name", "description", "persona", "skills", "metadata"}
NOT_INSTALLED = "host not installed"
# A sentence ends with a full stop and a space or the end, or with its Chinese sign.
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Built:
    """A package, and what the checks of it showed."""

    path: Path
    files: list[str]
    report: Report


def build_agent(
    definition: AgentDefinition,
    skill_sources: Iterable[str | os.PathLike[str]],
    out_dir: str | os.PathLike[str],
    *,
    force: bool = False,
) -> Path:
    """Return the folder of the package that was made; see `build_package`."""
    return build_package(definition, skill_sources, out_dir, force=force).path


def build_package(
    definition: AgentDefinition,
    skill_sources: Iterable[str | os.PathLike[str]],
    out_dir: str | os.PathLike[str],
    *,
    force: bool = False,
    host: bool | None = None,
) -> Built:
    """Make the package `<out_dir>/<name>`, check it, and put it in place only when it is good.

    Args:
        definition: the agent.
        skill_sources: packs, extensions, or folders that extensions were generated into.
        out_dir: where the package goes; it is made when it is missing.
        force: replace a package that is there.
        host: also load it in the real openJiuwen, through every provider; None: when it is installed.

    Raises:
        AgentBuildError: with every reason why there is no package; nothing was changed.
        HostMissing: when `host` is true and openJiuwen is not installed.
        HostFailed: when openJiuwen gives no answer.
    """
    target = Path(out_dir) / definition.name
    files = package_files(definition, skill_sources)
    findings = list(_check_target(target, force=force))
    if findings:
        raise AgentBuildError(definition.name, findings)
    try:
        Path(out_dir).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".extforge-staging-", dir=Path(out_dir).resolve()) as folder:
            staged = Path(folder) / definition.name
            for path, (data, mode) in files.items():
                (staged / path).parent.mkdir(parents=True, exist_ok=True)
                (staged / path).write_bytes(data)
                (staged / path).chmod(mode)
            report = _check_package(definition, staged, host=host)
            if errors := [f for f in report.findings if f.severity is Severity.ERROR]:
                raise AgentBuildError(definition.name, [_moved(f, staged, target) for f in errors])
            _put(staged, target)
    except OSError as exc:
        words = f"cannot write to {out_dir}: {exc.strerror or exc}; nothing was changed"
        raise AgentBuildError(definition.name, [Finding("agent-unwritable", words, where=Where(str(out_dir)))]) from exc
    findings = [_moved(finding, staged, target) for finding in report.findings]
    return Built(target, sorted(files), replace(report, path=str(target), findings=tuple(findings)))


def _moved(finding: Finding, staged: Path, target: Path) -> Finding:
    """Return a finding about the staged package as one about the place where it belongs."""
    path = (finding.where.path or "").replace(str(staged), str(target))
    return replace(finding, message=finding.message.replace(str(staged), str(target))).at(path=path or None)


def check_own(package: str) -> list[Finding]:
    """Return why a package is not run: it is broken, or holds what only a stranger could have put there."""
    report = verify_extension(package)
    findings = [f for f in report.findings if f.severity is Severity.ERROR]
    try:
        manifest = json.loads((Path(package) / "manifest.json").read_bytes())
    except (OSError, ValueError) as exc:
        words = f"{package} is no agent package: {exc}"
        return [Finding("agent-package", words, where=Where(package))]
    if foreign := sorted(set(manifest) - _KEYS):
        words = f"the package has {', '.join(foreign)}, which extforge does not write"
        fix = "look at it; what only holds a persona and skills can be built from its agent.json"
        findings.append(Finding("agent-package", words, where=Where(package), fix=fix))
    return findings


def _check_target(target: Path, *, force: bool) -> Iterator[Finding]:
    """Yield why nothing can be put in this place; only what we made before is ever replaced."""
    where = Where(str(target))
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        yield Finding("agent-target-exists", f"{target} is in the way: it is no folder", where=where)
    elif target.is_dir() and any(target.iterdir()):
        if not force:
            fix = "replace it with --force, or build into another folder"
            yield Finding("agent-target-exists", f"{target} exists and is not empty", where=where, fix=fix)
        elif not _is_package(target):
            words = f"{target} is no agent package; it is not replaced"
            yield Finding("agent-target-exists", words, where=where, fix="build into another folder")


def _is_package(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("package_type") == "agent_template"


def _put(staged: Path, target: Path) -> None:
    """Move the package into place; what was there comes back when that fails."""
    if not target.exists():
        staged.rename(target)
        return
    old = staged.with_name("replaced")  # goes away with the staging folder
    target.rename(old)
    try:
        staged.rename(target)
    except OSError:
        old.rename(target)
        raise


# --------------------------------------------------------------------------- content


def package_files(
    definition: AgentDefinition, skill_sources: Iterable[str | os.PathLike[str]]
) -> dict[str, tuple[bytes, int]]:
    """Return every file of a package: path -> bytes and mode.

    Raises:
        AgentBuildError: with everything that is wrong with the skills.
    """
    skills, findings = _choose(definition, find_skills(skill_sources))
    for name, folder in skills.items():
        try:
            findings += _check_skill(name, folder)
        except OSError as exc:
            words = f"the skill {name!r} cannot be read: {exc.strerror or exc}"
            findings.append(Finding("agent-unreadable", words, where=Where(str(exc.filename or folder))))
    if findings:
        raise AgentBuildError(definition.name, findings)
    documents = {"manifest": _manifest(definition), "definition": definition.data()}
    context = {key: json.dumps(value, ensure_ascii=False, indent=2) + "\n" for key, value in documents.items()}
    context |= {"name": definition.name, "persona": persona(definition)}
    files = {path: (text, 0o644) for path, text in render_template(template_folder("agent"), context).items()}
    for name, folder in skills.items():
        for path, (data, runs) in read_skill_files(str(folder)).items():  # scripts stay what they are
            files[f"skills/{name}/{path}"] = (data, 0o755 if runs else 0o644)
    return files


def _choose(definition: AgentDefinition, offered: Mapping[str, list[Path]]) -> tuple[dict[str, Path], list[Finding]]:
    """Return the folder of each listed skill, and why some have none."""
    chosen: dict[str, Path] = {}
    findings: list[Finding] = []
    if unknown := [name for name in definition.skills if name not in offered]:
        words = f"agent.skills unknown skill(s): {', '.join(unknown)}"
        fix = f"known skills: {', '.join(offered) or 'none'}"
        findings.append(Finding("agent-unknown-skill", words, where=Where(json_path="$.skills"), fix=fix))
    for name in definition.skills:
        folders = offered.get(name, [])
        if len(folders) > 1:
            words = f"{len(folders)} skills are named {name!r}: {', '.join(map(str, folders))}"
            fix = "name only the source that is meant"
            findings.append(Finding("agent-ambiguous-skill", words, where=Where(json_path="$.skills"), fix=fix))
        elif folders:
            chosen[name] = folders[0]
    return chosen, findings


def _check_skill(name: str, folder: Path) -> Iterator[Finding]:
    """Yield why a skill cannot go into a package that all runtimes load."""
    path = str(folder / "SKILL.md")
    try:
        text = read_text((folder / "SKILL.md").read_bytes(), path)
    except DocumentError as exc:
        yield from exc.findings
        return
    for finding in check_skill(text, path, name):
        # Native runtimes go by the folder, the others by the front matter: they must be the same skill.
        if finding.severity is Severity.ERROR or finding.code == "skill-name-folder":
            yield replace(finding, severity=Severity.ERROR)
    yield from check_skill_files(str(folder))


def describe(definition: AgentDefinition) -> str:
    """Return what the host shows of the agent: its description, the first sentence of its instructions, or its name."""
    if definition.description and definition.description.strip():
        return definition.description
    if definition.instructions:
        match = _SENTENCE.match(definition.instructions)
        return " ".join((match[0] if match else definition.instructions).split())[:1000]
    return definition.name


def persona(definition: AgentDefinition) -> str:
    """Return the instructions as they are, or one sentence when there are none: the host wants a persona."""
    return definition.instructions or f"You are {definition.name}: {describe(definition).strip()}\n"


def _manifest(definition: AgentDefinition) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "package_type": "agent_template",
        "name": definition.name,
        "description": describe(definition),
        "persona": {"dir": "persona"},
    }
    if definition.skills:
        manifest["skills"] = [{"dir": "skills", "mode": "all", "enabled_skills": list(definition.skills)}]
    identity = {**definition.summary(), "defaults": dict(definition.defaults)}
    return {**manifest, "metadata": {"agent_definition": identity}}


# --------------------------------------------------------------------------- self check


def _check_package(definition: AgentDefinition, staged: Path, *, host: bool | None) -> Report:
    """Read the package as a stranger would, and load it in the real host."""
    report = verify_extension(str(staged))
    if report.facts.get("package_type") != "agent_template" or report.facts.get("skills") != len(definition.skills):
        words = f"what was made is no package with {len(definition.skills)} skills: {report.facts}"
        return report.with_findings(Finding("agent-package", words, where=Where(str(staged))))
    if host is None and not host_available():
        return replace(report, skipped={**report.skipped, "host": NOT_INSTALLED})
    if host is False:
        return replace(report, skipped={**report.skipped, "host": "not asked for"})
    from extforge_harness.host.agents import load_package  # noqa: PLC0415 -- only where the host is used

    try:
        facts = load_package(str(staged), RUNTIMES)
    except HostMissing as exc:
        if host is None:
            return replace(report, skipped={**report.skipped, "host": exc.message})
        raise
    findings = list(_compare(definition, staged, facts))
    checked = (*report.checked, "host", *(f"host {name}" for name in facts["providers"]))
    return replace(report, checked=checked, facts={**report.facts, "openjiuwen": facts["openjiuwen"]}).with_findings(
        *findings
    )


def _compare(definition: AgentDefinition, staged: Path, facts: dict[str, Any]) -> Iterator[Finding]:
    """Yield where the host's idea of the package differs from ours."""
    where = Where(str(staged))
    if error := facts.get("error"):
        yield Finding("agent-host-refused", f"openJiuwen does not load it: {error['message']}", where=where)
        return
    spec = facts["spec"]
    seen = {
        "name": spec["agent_card"]["name"],
        "description": spec["agent_card"]["description"],
        "persona": "\n".join(text.strip() for section in spec["prompt_sections"] for text in [_text(section)]),
        "skills": [(item["dir"], item["enabled_skills"]) for item in spec["skills"]],
        "metadata": spec["metadata"],
    }
    manifest = _manifest(definition)
    wanted = {
        "name": manifest["name"],
        "description": manifest["description"],
        "persona": persona(definition).strip(),
        "skills": [(str(staged.resolve() / "skills"), list(definition.skills))] if definition.skills else [],
        "metadata": manifest["metadata"],
    }
    for key, value in wanted.items():
        if seen[key] != value:
            words = f"openJiuwen reads another {key} than was written: {seen[key]!r:.200}"
            yield Finding("agent-host-differs", words, where=where)
    for name, outcome in facts["providers"].items():
        if error := outcome.get("error"):
            yield Finding(
                "agent-host-refused", f"the provider {name} does not take it: {error['message']}", where=where
            )


def _text(section: dict[str, Any]) -> str:
    return str(section["content"].get("en", ""))
