"""Run work modules of an extension, without openJiuwen.  Started as its own process: `python worker.py < JOB`.

The tree is loaded under a name of its own, so that an extension called `json` hides nothing, and a tree that
would import openJiuwen fails here.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from typing import Any

PACKAGE = "extforge_work_tree"


class _NoHost:
    """Makes `import openjiuwen` fail: work modules must do without it, installed or not."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name.partition(".")[0] == "openjiuwen":
            raise ImportError("a work module must not import openjiuwen")


def load(tree: str, module: str) -> Any:
    """Return a module of the tree, such as `tools.deck`."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(tree, "__init__.py"), submodule_search_locations=[tree]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{tree} is not a package")
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{module}")


def main() -> None:
    """Read the job from standard input, and write the answers to standard output."""
    job = json.load(sys.stdin)
    answers: list[dict[str, Any]] = []
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    sys.meta_path.insert(0, _NoHost())
    try:
        module = load(job["tree"], job["module"])
        function = getattr(module, job["function"])
        answers = [{"value": function(*arguments)} for arguments in job["calls"]]
    except Exception as exc:  # noqa: BLE001 -- the caller must always get an answer
        answers.append({"error": f"{type(exc).__name__}: {exc}", "trace": traceback.format_exc()})
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        json.dump(answers, stream, ensure_ascii=False, default=repr)


if __name__ == "__main__":
    main()
