"""What a step's model reads, whatever runs the step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from extforge_verifiers.artifact import Artifact, ArtifactUnreadable
from extforge_verifiers.paths import lies_in
from extforge_verifiers.results import claimed_path, read_result

if TYPE_CHECKING:
    from extforge_harness.workflows.contract import StepRequest
    from extforge_harness.workflows.skill import Ref

__all__ = ["claimed_file", "system_text", "user_text"]

LONGEST_REF = 20_000  # characters of a text that is put into the message


def system_text(request: StepRequest) -> str:
    """Return the persona, when the step has one, and the instruction that all steps share."""
    return "\n\n".join(text for text in (request.system, request.spec.prompt) if text.strip())


def user_text(request: StepRequest) -> str:
    """Return the step's own instruction, the caller's input, the outputs it depends on, and the skill's material."""
    own = next(step.prompt for step in request.spec.steps if step.name == request.step)
    blocks = [own]
    if request.input:
        blocks.append(f"# Input\n\n{request.input}")
    blocks += [f"# Output of {name}\n\n{output}" for name, output in request.depends.items()]
    texts = {ref: _content(ref, request.folder) for ref in request.refs}
    blocks += [f"# Reference: {_title(ref)}\n\n{text}" for ref, text in texts.items() if text is not None]
    others = [ref for ref, text in texts.items() if text is None]
    if others:
        lines = [f"- {_title(ref)}{f' ({ref.path or ref.url})' if ref.title else ''}" for ref in others]
        blocks.append("\n".join(["# Further references", "", *lines]))
    if not request.tools:
        blocks.append("No tools are available in this step.")
    return "\n\n".join(blocks)


def _title(ref: Ref) -> str:
    return ref.title or ref.path or ref.url or ""


def _content(ref: Ref, folder: str | None) -> str | None:
    """Return the text of a short text file of the skill; a file that was swapped for a symlink meanwhile is not read."""
    if ref.path is None or folder is None:
        return None
    try:
        path = os.path.realpath(os.path.join(folder, ref.path))
        if not lies_in(path, folder):
            return None
        with Artifact(path) as artifact:
            text = artifact.head(4 * LONGEST_REF + 1).decode("utf-8")
    except (ArtifactUnreadable, OSError, ValueError):  # not UTF-8 is a ValueError
        return None
    return text if len(text) <= LONGEST_REF and "\x00" not in text else None


def claimed_file(result: Any) -> str | None:
    """Return the file that a tool's result claims to have made, or None."""
    flat = read_result(result)
    return claimed_path(flat) if flat is not None and flat.get("success") is True else None
