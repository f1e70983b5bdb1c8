"""Plain text (.txt)."""

from __future__ import annotations

from extforge_verifiers.texts import check_text

__all__ = ["check_text"]
