"""The checks that a skill can name: files, held against the artifact verifier; text; JSON.

What a step says about its own success has no weight here: the file is looked at.
"""

from __future__ import annotations

import asyncio
import glob
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from extforge_harness.workflows.contract import CheckContext, Verdict
from extforge_harness.workflows.run import ask_checker
from extforge_harness.workflows.skill import IMAGES, ArtifactCheck, Check, Guardrail, JsonCheck, TextCheck
from extforge_verifiers import verify_artifact
from extforge_verifiers.checking import Requirement
from extforge_verifiers.claims import paths_in
from extforge_verifiers.findings import Report, Severity
from extforge_verifiers.findings import Verdict as Outcome
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.formats.json import lookup
from extforge_verifiers.paths import lies_in
from extforge_verifiers.results import claimed_path, read_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ArtifactChecker"]

PATTERN_SECONDS = 5.0  # one regular expression of a skill may take on one output
MOST_CLAIMS = 100
_FENCED = re.compile(r"^```(?:json|JSON)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# In a process of its own, because Python's `re` cannot be stopped and some patterns take for ever.
_SEARCH = "import json,re,sys; p,t=json.load(sys.stdin); print(int(re.search(p,t) is not None))"


class ArtifactChecker:
    """Decides rules that have a `check`; the others go to `fallback`, a checker from outside, plain or async."""

    def __init__(self, verify: Callable[..., Report] = verify_artifact, fallback: Any = None) -> None:
        self.verify, self.fallback = verify, fallback

    def covers(self, rule: Guardrail) -> bool:
        """Say whether the rule can be checked."""
        return rule.check is not None or self.fallback is not None

    async def check(self, rule: Guardrail, subject: str, output: str, context: CheckContext) -> Verdict:
        """Return whether the rule is broken, and how we know; raise when that cannot be said."""
        if rule.check is None:
            verdict: Verdict = await ask_checker(self.fallback, rule, subject, output, context)
            return verdict
        return await asyncio.to_thread(self._decide, rule.check, output, context)

    def _decide(self, check: Check, output: str, context: CheckContext) -> Verdict:
        if check.artifact is not None:
            return self._check_files(check.artifact, context)
        if check.text is not None:
            return _check_text(check.text, output)
        assert check.json_ is not None
        return _check_json(check.json_, output)

    def _check_files(self, check: ArtifactCheck, context: CheckContext) -> Verdict:
        root = os.path.realpath(context.workdir)
        claims = _claims(check, context, root)
        if not claims:
            what = f"{check.path!r} matches no file" if check.path else f"no {check.format} file was claimed"
            others = f" (claimed: {', '.join(context.artifacts[:5])})" if context.artifacts else ""
            return Verdict(violated=True, detail=what + others)
        if len(claims) > MOST_CLAIMS:
            raise ValueError(f"{len(claims)} files are claimed; at most {MOST_CLAIMS} are looked at")
        problems = [problem for claim in claims if (problem := self._check_file(check, claim, root))]
        return Verdict(violated=bool(problems), detail="; ".join(problems) or f"verified: {', '.join(claims)}")

    def _check_file(self, check: ArtifactCheck, claim: str, root: str) -> str | None:
        try:
            path = os.path.realpath(os.path.join(root, os.path.expanduser(claim)))
        except ValueError as exc:
            return f"{claim!r:.200}: {exc}"
        if not lies_in(path, root):
            return f"{claim}: lies outside the working directory"
        if not os.path.isfile(path):
            return f"{claim}: there is no such file"
        form = _format_of(check, path)
        if form is None:
            return f"{claim}: not named as {'an' if check.format == 'image' else 'a'} {check.format} file"
        bounds = [Requirement(fact, ">=", count) for fact, count in check.min_count.items()]
        keys = [_pointer(key) for key in check.require_keys]
        report = self.verify(path, form, requirements=bounds, keys=keys)
        errors = [f"{f.message} [{f.code}]" for f in report.findings if f.severity is Severity.ERROR]
        if errors:
            return f"{claim}: {'; '.join(errors)}"
        if report.verdict is not Outcome.PASS:
            raise ValueError(f"{claim}: {report.open_question or 'nothing could be checked'}")
        if check.min_bytes is not None and (size := os.path.getsize(path)) < check.min_bytes:
            return f"{claim}: {size} bytes, and at least {check.min_bytes} are required"
        return None


def _format_of(check: ArtifactCheck, path: str) -> str | None:
    suffix = os.path.splitext(path)[1].lower()
    names = IMAGES if check.format == "image" else (check.format,)
    return next((name for name in names if suffix in FORMATS[name].suffixes), None)


def _pointer(key: str) -> str:
    return key if key.startswith("/") else "/" + key.replace("~", "~0").replace("/", "~1")


# --------------------------------------------------------------------------- which files are claimed


def _claims(check: ArtifactCheck, context: CheckContext, root: str) -> list[str]:
    """Return the claimed files: from the first source that names any, each once."""
    names = IMAGES if check.format == "image" else (check.format,)
    suffixes = tuple(suffix for name in names for suffix in FORMATS[name].suffixes)
    if check.path is not None:
        return sorted(glob.glob(check.path, root_dir=root, recursive=True))
    sources: tuple[Callable[[], Iterable[str]], ...] = (
        lambda: context.artifacts,
        lambda: (path for text in context.outputs for path in _claimed_in_json(text)),
        lambda: (path for text in context.outputs for path in paths_in(text)),
    )
    for source in sources:
        if found := [path for path in dict.fromkeys(source()) if path.lower().endswith(suffixes)]:
            return found
    return []


def _claimed_in_json(text: str) -> list[str]:
    for candidate in [text, *_FENCED.findall(text[:200_000])]:
        result = read_result(candidate.strip())
        if result is not None and (path := claimed_path(result)):
            return [path]
    return []


# --------------------------------------------------------------------------- text and JSON


def _check_text(check: TextCheck, output: str) -> Verdict:
    problems = []
    if check.min_chars is not None and len(output) < check.min_chars:
        problems.append(f"{len(output)} characters, and at least {check.min_chars} are required")
    if check.max_chars is not None and len(output) > check.max_chars:
        problems.append(f"{len(output)} characters, and at most {check.max_chars} are allowed")
    problems += [f"nothing matches {pattern!r}" for pattern in check.must_match if not _search(pattern, output)]
    problems += [f"{pattern!r} matches" for pattern in check.must_not_match if _search(pattern, output)]
    return Verdict(violated=bool(problems), detail="; ".join(problems))


def _search(pattern: str, text: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 -- our own two lines; pattern and text are data
            [sys.executable, "-I", "-S", "-c", _SEARCH],
            input=json.dumps([pattern, text]),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATTERN_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the pattern {pattern!r:.80} took longer than {PATTERN_SECONDS:g} seconds") from None
    return done.stdout.strip() == "1"


def _check_json(check: JsonCheck, output: str) -> Verdict:
    fenced = _FENCED.search(output)
    try:
        value: Any = json.loads(fenced[1] if fenced else output)
    except (ValueError, RecursionError) as exc:
        return Verdict(violated=True, detail=f"the output is not JSON: {exc}")
    missing = []
    for key in check.require_keys:
        try:
            lookup(value, _pointer(key))
        except LookupError:
            missing.append(key)
    return Verdict(violated=bool(missing), detail=f"keys are missing: {', '.join(missing)}" if missing else "")
