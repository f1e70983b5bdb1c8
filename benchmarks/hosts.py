"""Run the example plans on openJiuwen from the oldest supported version to the newest, and print a table.

    python benchmarks/hosts.py [VERSION [PLAN...]]

Older versions are installed without their dependencies, beside the current environment: that is how their
behaviour was measured, and it is cheap (75 MB each).
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from extforge.check import load_plan
from extforge.generate import generate
from extforge_harness.host.run import verify_in_host
from extforge_verifiers import Verdict

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("0.1.14.post2", "0.1.15.post3", "0.1.16.post20", "0.1.17.post2", "0.1.18.post1", "")
PLANS = ("seed_only", "everything", "demo", "archetypes")


def python_with(version: str, folder: Path) -> str:
    """Return a Python that imports this version of openJiuwen; empty: the installed one."""
    if not version:
        return sys.executable
    target = folder / version
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(target),
        f"openjiuwen=={version}",
    ]
    subprocess.run(command, check=True)
    script = folder / f"python-{version}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{target}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def main() -> None:
    """Print one line per version and plan; exit 1 when an extension does not work somewhere."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trees = {}
        versions, plans = (sys.argv[1:2] or VERSIONS), (sys.argv[2:] or PLANS)
        for plan in plans:
            made = generate(load_plan(str(ROOT / "examples" / f"{plan}.plan.yaml")), str(folder / plan))
            trees[plan] = [os.path.join(made.target, root) for root in made.roots]
        for version in versions:
            try:
                python = python_with(version, folder)
            except subprocess.CalledProcessError:
                print(f"openJiuwen {version} cannot be had here, and was not tried")
                continue
            for plan, roots in trees.items():
                run = verify_in_host(roots, python=python)
                bad = [report for report in run.reports if report.verdict is not Verdict.PASS]
                failed += len(bad)
                print(f"openJiuwen {run.version:<14} {plan:<12} {len(roots) - len(bad)} of {len(roots)} load and work")
                for report in bad:
                    for finding in report.findings:
                        print(f"    {os.path.basename(report.path)}: {finding.message} [{finding.code}]")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
