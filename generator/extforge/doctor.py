"""What is installed here, and what each part is needed for."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from dataclasses import dataclass

from extforge import __version__

__all__ = ["Part", "examine"]

_HOST = 'pip install "extforge[host]"'
_PACKAGES = (
    ("copier", "rendering templates", "pip install extforge"),
    ("python-pptx", "generated PPTX tools", "pip install extforge"),
    ("python-docx", "generated DOCX tools", "pip install extforge"),
    ("openpyxl", "generated XLSX tools", "pip install extforge"),
    ("reportlab", "generated PDF tools", "pip install extforge"),
    ("matplotlib", "generated PNG tools", "pip install extforge"),
    ("lxml", "extforge verify --deep on Office documents", 'pip install "extforge[deep]"'),
    ("pikepdf", "extforge verify --deep on PDF", 'pip install "extforge[deep]"'),
    ("pillow", "extforge verify --deep on pictures", 'pip install "extforge[deep]"'),
    ("httpx", "extforge design --llm, extforge workflows run --executor chat", 'pip install "extforge[chat]"'),
    ("openjiuwen", "extforge agents run, extforge verify --host, extforge demo --host", _HOST),
    ("mcp", "MCP servers of extensions, extforge runtimes matrix --prove", 'pip install "extforge[mcp]"'),
    ("opentelemetry-exporter-otlp-proto-common", "openJiuwen's own static check (optional)", _HOST),
)
_PROGRAMS = (
    ("git", "merging your edits in `generate` (its own merger without)", "your system's package manager"),
    ("soffice", "looking at Office documents (tests)", "LibreOffice"),
    ("pdftoppm", "looking at PDF pages (tests)", "poppler-utils"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that may be installed."""

    name: str
    version: str  # empty when it is missing
    needed_for: str
    install: str


def examine() -> list[Part]:
    """Return every part with its version here."""
    parts = [
        Part("extforge", __version__, "everything", ""),
        Part("Python", platform.python_version(), "everything; openJiuwen needs 3.11 to 3.13", ""),
    ]
    for name, needed_for, install in _PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        parts.append(Part(name, version, needed_for, install))
    for name, needed_for, install in _PROGRAMS:
        parts.append(Part(name, "found" if shutil.which(name) else "", needed_for, install))
    return parts
