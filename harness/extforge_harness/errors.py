"""Every exception this package raises on purpose.

* HarnessError
  * Missing          -- something needed is not here; `.fix` says how to get it
    x HostMissing      -- openJiuwen, or a package that a tree requires, is not installed where it should run
    x ChatMissing      -- httpx, or the endpoint of a model, is not there
  * ChatFailed       -- the endpoint of a model gave no usable answer
    x ChatRefused      -- it answered with an HTTP error; `.status` has it
    x ChatTimeout      -- it took too long
    x ChatMalformed    -- what it answered is too large, or no message
  x HostFailed       -- the host process gave no answer: it crashed, or took too long
"""

from __future__ import annotations

__all__ = [
    "ChatFailed", "ChatMalformed", "ChatMissing", "ChatRefused", "ChatTimeout", "HarnessError", "HostFailed",
    "HostMissing", "Missing",
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


class HostFailed(HarnessError):
    """The host process gave no answer."""
