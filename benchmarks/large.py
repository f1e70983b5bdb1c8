"""Memory that verifying takes as a file grows to 1 GB, as ratios to the smallest one.

    python benchmarks/large.py [--size 1024]

Each file is verified by `extforge verify` in a process of its own, and the kernel's peak for that process is read.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MB = 1 << 20
ALLOWED = 1.5  # times the memory of the 8 MB file


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)  # noqa: S311 -- the same every time


def write_deck(stream: IO[bytes], size: int) -> None:
    """A real deck, with a video in it."""
    import pptx

    small = Path(tempfile.mkdtemp()) / "deck.pptx"
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Large"
    deck.save(str(small))
    with zipfile.ZipFile(small) as source, zipfile.ZipFile(stream, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "[Content_Types].xml":
                data = data.replace(b"<Default", b'<Default Extension="mp4" ContentType="video/mp4"/><Default', 1)
            target.writestr(name, data)
        with target.open(zipfile.ZipInfo("ppt/media/media1.mp4"), "w", force_zip64=True) as video:
            block = noise(MB)
            for _ in range(size // MB):
                video.write(block)


def write_json(stream: IO[bytes], size: int) -> None:
    row = b'{"id": %d, "text": "' + b"x" * 900 + b'", "list": [1, 2, null]},\n'
    stream.write(b"[")
    for number in range(size // 940):
        stream.write(row % number)
    stream.write(b"{}]")


def write_lines(stream: IO[bytes], size: int) -> None:
    row = b'{"id": %d, "text": "' + b"x" * 960 + b'"}\n'
    for number in range(size // 980):
        stream.write(row % number)


def write_table(stream: IO[bytes], size: int) -> None:
    stream.write(b"id,text\n")
    for number in range(size // 500):
        stream.write(b'%d,"%s"\n' % (number, b"x" * 490))


def write_png(stream: IO[bytes], size: int) -> None:
    """Noise in 16 bits of red, green, blue and alpha, so that the file is as large as the picture."""
    from struct import pack

    def chunk(kind: bytes, data: bytes) -> None:
        stream.write(pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)))

    width = 1 << 12
    height = size // (8 * width + 1)
    stream.write(b"\x89PNG\r\n\x1a\n")
    chunk(b"IHDR", pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0))
    packer = zlib.compressobj(0)
    row = b"\0" + noise(8 * width)
    for _ in range(height):
        chunk(b"IDAT", packer.compress(row) or packer.flush(zlib.Z_SYNC_FLUSH))
    chunk(b"IDAT", packer.flush())
    chunk(b"IEND", b"")


WRITERS: dict[str, Callable[[IO[bytes], int], None]] = {
    "pptx": write_deck,
    "json": write_json,
    "jsonl": write_lines,
    "csv": write_table,
    "png": write_png,
}


def peak(path: Path) -> tuple[str, int]:
    """Verify a file in a new process; return its verdict and the most memory it held, in bytes."""
    command = [sys.executable, "-m", "extforge", "verify", str(path), "--json", "--timeout", "900"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        out.seek(0)
        return json.load(out)["verdict"], usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> int:
    """Print the table; return 1 when memory grows with the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="MB of the largest file")
    parser.add_argument("--write", nargs=2, metavar=("FORMAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        with Path(options.write[1]).open("wb") as stream:
            WRITERS[options.write[0]](stream, options.size * MB)
        return 0
    sizes = (8, 64, options.size)
    print(f"| format | {' | '.join(f'{size} MB' for size in sizes)} | verdict |")
    print(f"| --- |{' --- |' * (len(sizes) + 1)}")
    missed = []
    for name in WRITERS:
        ratios, verdicts = [], set()
        base = 0
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"large.{name}"
                # Not here: what this process holds counts for its children until they become other programs.
                subprocess.run([sys.executable, __file__, "--write", name, str(path), "--size", str(size)], check=True)
                verdict, memory = peak(path)
            base = base or memory
            ratios.append(memory / base)
            verdicts.add(verdict)
        if ratios[-1] > ALLOWED or verdicts != {"pass"}:
            missed.append(name)
        print(
            f"| {name} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} | {', '.join(sorted(verdicts))} |", flush=True
        )
    print(f"\nMISSED: {', '.join(missed)}" if missed else "\nMemory does not grow with the file.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
