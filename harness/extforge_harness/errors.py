"""Every exception this package raises on purpose.

* HarnessError
  * Missing          -- something needed is not here; `.fix` says how to get it
    x HostMissing      -- openJiuwen, or a package that a tree requires, is not installed where it should run
    x ChatMissing      -- httpx, or the endpoint of a model, is not there
  * ChatFailed       -- the endpoint of a model gave no usable answer
    x ChatRefused      -- it answered with an HTTP error; `.status` has it
    x ChatTimeout      -- it took too long
    x ChatMalformed    -- what it answered is too large, or no message
  * AgentError       -- an agent cannot be used; `.findings` say where and why
    x AgentDefinitionError -- its definition, or what is asked of it, is wrong
    x AgentBuildError  -- no package can be made of it; nothing was changed
  x TemplateError    -- a template is broken
  x HostFailed       -- the host process gave no answer: it crashed, or took too long
  x SetupFailed      -- what a tool needs around it to be tried could not be made
  x WorkFailed       -- (work.py) a work module could not be loaded, or raised
  x CatalogError     -- extensions do not make a catalog together; `.findings` say why
  x CompileError     -- a context cannot be compiled for a runtime
  x BundleError      -- a bundle would mislead whoever reads it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extforge_verifiers.errors import Unusable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from extforge_verifiers.findings import Finding

__all__ = [
    "AgentBuildError", "AgentDefinitionError", "AgentError", "BundleError", "CatalogError", "ChatFailed", "ChatMalformed", "ChatMissing", "ChatRefused", "ChatTimeout", "CompileError", "HarnessError", "HostFailed",
    "HostMissing", "Missing", "SetupFailed", "TemplateError",
]  # fmt: skip


class HarnessError(Exception):
    """Base class; catch this to catch them all."""


class Missing(HarnessError):
    """Something needed is not here; `fix` says how to get it."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.message, self.fix = message, fix

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}"


class HostMissing(Missing):
    """Something is not installed; `fix` is the command that installs it."""

    def __str__(self) -> str:
        return f"{self.message}; install it with: {self.fix}"


class ChatMissing(Missing):
    """httpx is not installed, or there is no endpoint to ask, or nothing answers there."""


class ChatFailed(HarnessError):
    """The endpoint of a model gave no usable answer."""


class ChatRefused(ChatFailed):
    """The endpoint answered with an HTTP error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.message, self.status = message, status

    def __str__(self) -> str:
        return self.message


class ChatTimeout(ChatFailed):
    """The endpoint took too long."""


class ChatMalformed(ChatFailed):
    """The endpoint's answer is too large, or no message."""


class AgentError(Unusable, HarnessError):
    """An agent cannot be used: every problem is in `findings`."""


class AgentDefinitionError(AgentError, ValueError):
    """The definition, or what is asked of the agent, is wrong."""


class AgentBuildError(AgentError):
    """No package can be made of the definition; nothing was changed."""


class TemplateError(HarnessError):
    """A template did not render: a mistake in the template, not in what it was given."""


class HostFailed(HarnessError):
    """The host process gave no answer."""


class SetupFailed(HarnessError):
    """What a tool needs around it to be tried could not be made."""


class CatalogError(HarnessError):
    """Extensions do not make a catalog together; every reason is in `findings`."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(findings)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "; ".join(finding.message for finding in self.findings)


class CompileError(HarnessError):
    """A context cannot be compiled: an unknown name, a contract that does not hold, or no room."""


class BundleError(HarnessError):
    """A bundle would mislead: an entry without a hint, twice the same id, a relation to nothing."""
