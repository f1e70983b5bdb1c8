"""How long commands take to start, as ratios to a bare Python that imports what any ZIP reader needs.

Each command is run in turn, several times, and the medians are compared: figures of one run on one machine.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROUNDS = 15


def sample(folder: Path) -> Path:
    """Write a small deck."""
    import pptx

    deck = pptx.Presentation()
    for number in range(10):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = f"Slide {number}"
    path = folder / "one.pptx"
    deck.save(str(path))
    assert zipfile.is_zipfile(io.BytesIO(path.read_bytes()))
    return path


def main() -> None:
    """Print the table; exit 1 when a target is missed."""
    python = sys.executable
    script = str(Path(python).with_name("extforge"))
    with tempfile.TemporaryDirectory() as folder:
        deck = str(sample(Path(folder)))
        commands = {
            "bare python": [python, "-c", "import zipfile, json"],
            "extforge --help": [script, "--help"],
            "extforge verify one.pptx": [script, "verify", deck],
            "python-pptx opens it": [python, "-c", f"import pptx; pptx.Presentation({deck!r})"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, env=os.environ, check=True)
                times[name].append(time.perf_counter() - started)
    base = statistics.median(times["bare python"])
    ratios = {name: statistics.median(values) / base for name, values in times.items()}
    for name, ratio in ratios.items():
        print(f"{name:<28} {ratio:5.2f} x bare python")
    sys.exit(ratios["extforge verify one.pptx"] > 3)


if __name__ == "__main__":
    main()
