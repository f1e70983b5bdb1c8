"""A web page in one file: nothing is fetched, and only its own style and script run, whatever a file name says."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from extforge_verifiers.reports.json import version
from extforge_verifiers.reports.text import printable

__all__ = ["BASE_STYLE", "shown", "web_page"]

# Colours for light and dark, and what every page of ours looks like.
BASE_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#d5dae0;--paper:#fff;--back:#f4f6f8;--focus:#0b57d0}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a3adb8;--line:#3a424b;--paper:#1b1f24;--back:#12151a;
--focus:#8ab4f8}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,"Noto Sans","Noto Sans CJK SC",sans-serif}
h1{font-size:1.5rem;margin:.5rem 0}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
""".strip()


def shown(text: str) -> str:
    """Return a text that is markup nowhere in the page."""
    return escape(printable(text))


def web_page(title: str, body: str, *, style: str, script: str = "") -> str:
    """Return a page with `body` in it.

    Args:
        title: shown as text, whatever is in it.
        body: markup, with everything from outside escaped.
        style: CSS, after BASE_STYLE.
        script: JavaScript at the end of the body.
    """
    style = f"{BASE_STYLE}\n{style}"
    policy = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    policy += f"; style-src 'sha256-{_digest(style)}'"
    if script:
        policy += f"; script-src 'sha256-{_digest(script)}'"
        script = f"<script>{script}</script>\n"
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="extforge {escape(version())}">
<title>{shown(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
{script}</body>
</html>
"""
    # A file name that is not UTF-8 must not keep a page from being written.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
