"""What reading a broken tree finds: openJiuwen's own static check beside ours, and what the host makes of the tree.

    python benchmarks/static_checks.py > docs/static-checks.md

The broken trees are those of the tests.  The host's check imports the code, so each tree gets a process of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from trees import BROKEN, FILES, write_tree

from extforge_verifiers import Severity, verify_extension

HEAD = """\
# Reading a tree: openJiuwen's static check and ours

Made by `python benchmarks/static_checks.py > docs/static-checks.md`, with openJiuwen {version}. The trees are those
of the tests (`tests/trees.py`): one that loads, broken in one way each. openJiuwen's check
(`run_static_checks_against_runtime`) imports and constructs the classes, and rewrites the files with ruff; ours only
reads. The last column is what running the tree in the host shows (`extforge verify --host`).

| broken in this way | openJiuwen's static check | extforge verify | in the host |
| --- | --- | --- | --- |"""


def host_check(root: str, queue: Any) -> None:
    """Run the host's check on a tree, and put its errors into the queue."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.chdir(tempfile.mkdtemp())
    from openjiuwen.rsi.harness_rsi.auto_harness.infra.runtime_extension_static_checks import (
        run_static_checks_against_runtime,
    )
    from openjiuwen.rsi.harness_rsi.auto_harness.schema import RuntimeExtensionArtifact

    name = os.path.basename(root)
    artifact = RuntimeExtensionArtifact(name, root, os.path.join(root, "harness_config.yaml"))
    try:
        result = asyncio.run(run_static_checks_against_runtime(runtime_ext=artifact, session_id_prefix="s"))
        queue.put(list(result.errors))
    except Exception as exc:  # noqa: BLE001 -- what it raises is its answer
        queue.put([f"raises {type(exc).__name__}: {exc}"])


def ask_host(root: Path) -> list[str]:
    """Return what the host's check says, from a process of its own."""
    queue: multiprocessing.Queue[list[str]] = multiprocessing.Queue()
    process = multiprocessing.Process(target=host_check, args=(str(root), queue))
    process.start()
    found = queue.get(timeout=120)
    process.join(10)
    process.kill()
    return found


def short(errors: list[str], root: Path) -> str:
    """Return the first error in a few words."""
    if not errors:
        return "nothing"
    words = errors[0].replace(str(root), "...").replace("|", "/").replace("`", "'").splitlines()[0]
    return f"{words[:70]}{'...' if len(words) > 70 else ''}"


def main() -> None:
    """Print the page."""
    from importlib.metadata import version

    print(HEAD.format(version=version("openjiuwen")))
    missed = {"host": 0, "ours": 0}
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        good = write_tree(Path(folder) / "good", FILES)
        assert not [f for f in verify_extension(str(good)).findings if f.severity is Severity.ERROR]
        print(f"| nothing: the tree loads | {short(ask_host(good), good)} | nothing | loads and works |")
        for number, broken in enumerate(BROKEN):
            root = write_tree(Path(folder) / str(number), broken.files, broken.name)
            report = verify_extension(str(root))
            codes = sorted({f.code for f in report.findings if f.severity is Severity.ERROR})
            errors = ask_host(root)
            total += 1
            missed["host"] += not errors
            missed["ours"] += not codes
            ours = ", ".join(f"`{code}`" for code in codes) or "nothing"
            host = f"`{broken.host}`" if broken.host else "no complaint"
            print(f"| {broken.id} | {short(errors, root)} | {ours} | {host} |", flush=True)
    print(
        f"\nOf {total} broken trees openJiuwen's check finds {total - missed['host']}, ours {total - missed['ours']}."
    )
    print("The rest only shows when the tree is run, and `--host` shows it.")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
