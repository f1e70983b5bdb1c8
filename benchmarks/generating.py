"""How long generating takes, side by side with Copier and Cookiecutter, in one process.

    python benchmarks/generating.py [--rounds 5] [--designs 1000]

The ten designs are those of examples/seed_only.plan.yaml.  `copier copy` renders our own template with the same data,
once per design; Cookiecutter (left out when it is not installed) gets an equal template: the same files, already
rendered, with the extension's name in names and texts.  Ours also checks the plan and every tree, and writes the lock.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import copier

from extforge.check import load_plan
from extforge.generate import generate
from extforge.render import build_context, render_plan, template_folder
from extforge.staging import staging

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
PLAN = str(ROOT / "examples/seed_only.plan.yaml")


def ours(folder: Path) -> None:
    generate(load_plan(PLAN), str(folder))


def again(folder: Path) -> None:
    generate(load_plan(PLAN), str(folder / ".." / "kept"))


def copier_copy(folder: Path) -> None:
    plan = load_plan(PLAN)
    formats = {t.name: t.format for b in plan.blueprints for t in b.tools if t.format}
    for blueprint in plan.blueprints:
        context = build_context(blueprint, formats)
        target = folder / blueprint.root
        copier.run_copy(str(template_folder()), target, data=context, defaults=True, overwrite=True, quiet=True)


def cookiecutter_template(folder: Path) -> dict[str, Path]:
    """Write a template per design: its files, with the name left open."""
    found = {}
    plan = load_plan(PLAN)
    with staging() as staged:
        render_plan(plan.blueprints, staged)
        for blueprint in plan.blueprints:
            home = folder / blueprint.name
            (home / "{{cookiecutter.name}}").mkdir(parents=True)
            (home / "cookiecutter.json").write_text(json.dumps({"name": blueprint.name}))
            for path in staged.files:
                if path.startswith(f"{blueprint.root}/"):
                    inner = path.removeprefix(f"{blueprint.root}/").replace(blueprint.name, "{{cookiecutter.name}}")
                    full = home / "{{cookiecutter.name}}" / inner
                    full.parent.mkdir(parents=True, exist_ok=True)
                    text = staged.read(path).decode()
                    text = text.replace("{{", "{{'{{'}}").replace("{%", "{{'{%'}}").replace("{#", "{{'{#'}}")
                    full.write_text(text.replace(blueprint.name, "{{cookiecutter.name}}"))
            found[blueprint.name] = home
    return found


def measure(rounds: int) -> dict[str, float]:
    """Return the median seconds of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs: dict[str, Callable[[Path], None]] = {
            "extforge generate": ours,
            "extforge generate, nothing new": again,
            "copier copy, ten times": copier_copy,
        }
        if importlib.util.find_spec("cookiecutter"):
            from cookiecutter.main import cookiecutter

            templates = cookiecutter_template(folder / "templates")

            def bake(target: Path) -> None:
                for name, home in templates.items():
                    cookiecutter(str(home), no_input=True, output_dir=str(target), extra_context={"name": name})

            runs["cookiecutter, ten times"] = bake
        generate(load_plan(PLAN), str(folder / "kept"))
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(rounds + 1):
            for title, run in runs.items():
                target = folder / f"{number}-{title.replace(' ', '-')}"
                target.mkdir()
                gc.collect()
                started = time.perf_counter()
                run(target)
                if number:  # the first one warms up
                    times[title].append(time.perf_counter() - started)
                shutil.rmtree(target)
    return {name: statistics.median(values) for name, values in times.items()}


CHILD = """
import json, resource, sys, time
from extforge.check import load_plan
from extforge.generate import generate
plan = load_plan(sys.argv[1], max_designs=100000)
started = time.perf_counter()
generate(plan, sys.argv[2])
print(json.dumps([time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def grow(sizes: list[int]) -> list[tuple[int, float, float]]:
    """Return (designs, seconds per design, peak memory) for plans of growing size, each in a process of its own."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder, "p.plan.json")
            components = (["tool"], ["rail", "tool"], ["skill"], ["tool", "skill"])
            words = ("export json", "usage budget", "style guide", "sales sheet xlsx")
            designs = [
                {"gap_id": f"g{n}", "extension_name": f"part_{n}", "components": components[n % 4], "description": words[n % 4]}
                for n in range(size)
            ]  # fmt: skip
            plan.write_text(json.dumps(designs))
            command = [sys.executable, "-c", CHILD, str(plan), str(Path(folder, "out"))]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
            seconds, memory = json.loads(done.stdout)
            found.append((size, seconds / size, memory * (1 if sys.platform == "darwin" else 1024)))
    return found


def main() -> int:
    """Print both tables; return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--designs", type=int, default=1000, help="of the largest plan")
    options = parser.parse_args()
    times = measure(options.rounds)
    base = times["copier copy, ten times"]
    print("| ten designs | time |\n| --- | --- |")
    for name, seconds in times.items():
        print(f"| {name} | {seconds / base:.2f} |")
    table = grow(sorted({10, 100, options.designs}))
    print("\n| designs | time per design | memory |\n| --- | --- | --- |")
    for size, seconds, memory in table:
        print(f"| {size:,} | {seconds / table[0][1]:.2f} | {memory / table[0][2]:.2f} |")
    targets = {
        "faster than half of ten copier runs": times["extforge generate"] < base / 2,
        "nothing new is faster than the first": times["extforge generate, nothing new"] < times["extforge generate"],
        "cost is linear": table[-1][1] < 1.5 * table[0][1],
        "memory is flat": table[-1][2] < 1.5 * table[0][2],
    }
    print()
    for words, held in targets.items():
        print(f"{'held' if held else 'MISSED'}: {words}")
    return int(not all(targets.values()))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
