"""The same plan gives the same bytes on every Python: `python benchmarks/pythons.py python3.12 python3.13`.

Each interpreter gets an environment of its own with the pins of constraints.txt, and generates every example plan.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def digest(folder: Path) -> str:
    """Return one digest of every file in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def generate(python: str, folder: Path) -> dict[str, str]:
    """Return the digest of what this Python makes of each example."""
    found = {}
    for plan in sorted((ROOT / "examples").glob("*.plan.yaml")):
        target = folder / plan.stem
        command = [python, "-m", "extforge", "generate", str(plan), "--into", str(target), "--quiet"]
        subprocess.run([*command, "--max-designs", "100"], check=True)
        found[plan.stem] = digest(target)
    return found


def main() -> int:
    """Compare each Python with this one; return 1 when one differs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = generate(sys.executable, folder / "ours")
        worst = 0
        for number, python in enumerate(sys.argv[1:] or ["python3.11", "python3.12", "python3.13"]):
            home = folder / str(number)
            subprocess.run([python, "-m", "venv", str(home / "env")], check=True)
            own = str(home / "env/bin/python")
            pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(ROOT)], check=True)
            version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout.strip()
            differ = [plan for plan, sha in generate(own, home).items() if ours[plan] != sha]
            print(f"{version}: {'the same bytes' if not differ else f'differs: {differ}'} ({len(ours)} plans)")
            worst |= bool(differ)
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
