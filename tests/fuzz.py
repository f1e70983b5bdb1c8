"""Mutated files of every kind, thrown at both tiers: `python tests/fuzz.py --files 100000 --jobs 2`.

Nothing may crash, take longer or more memory than allowed, write, start a program or open a socket.  What did is kept
under the folder that is named at the end, with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from damage import good, pack, parts, png_chunk, with_columns, with_picture, with_table

from extforge_verifiers import Limits, verify_artifact, verify_run
from extforge_verifiers.extensions import verify_extension
from extforge_verifiers.formats import FORMATS
from extforge_verifiers.results import verify_result

SECONDS = 5.0  # what one file may take
MEMORY = 1 << 30  # bytes that verifying may add to the process
BOMB = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
)
ATTACKS = [
    (BOMB + "]><l>&j;</l>").encode(),
    b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><x/>',
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b'"' + b"\\" * 9_999,
    b"<a>" * 20_000,
    b"9" * 20_000,
    b"../" * 50,
    b"\x00" * 64,
    b"\xff" * 64,
    "\u202e\ud7ff\U0010ffff".encode(),
    b"%PDF-1.7 obj << /Length 99999999999 >> stream",
    png_chunk(b"IDAT", zlib.compress(bytes(1 << 20))),
    b"{{ 1/0 }}${jndi:ldap://x}",
]
SKILL = b"---\nname: report\ndescription: >-\n  Makes a report: from data\nmetadata: {a: 1}\n---\n# Report\n\n- one\n"
MANIFEST = b"schema_version: harness_config.v0.1\nname: x\nresources:\n  tools:\n  - type: package\n    module: openjiuwen.extensions.harness.x.tools.t\n    class: T\n  skills: {dirs: [skills]}\n"
SOURCE = b"from openjiuwen.core.foundation.tool.base import Tool\n\n\nclass T(Tool):\n    def __init__(self):\n        super().__init__(ToolCard(id='t', name='t', description='d', input_params={'type': 'object'}))\n\n    async def invoke(self, inputs, **kwargs):\n        return {}\n\n    async def stream(self, inputs, **kwargs):\n        yield {}\n"
CHAT = b'{"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "t"}}]}, {"role": "tool", "tool_call_id": "1", "content": "{\'success\': True, \'path\': \'a.pdf\', \'format\': \'pdf\'}"}, {"role": "assistant", "content": "I saved it to a.pdf"}]}'


def seeds() -> dict[str, list[bytes]]:
    """Return good files by kind."""
    found = {name: [good(name)] for name in FORMATS}
    found["pptx"] += [with_picture(good("pptx"), good("png")), with_table(good("pptx"))]
    found["xlsx"].append(with_columns(good("xlsx")))
    found |= {"skill": [SKILL], "manifest": [MANIFEST], "source": [SOURCE], "run": [CHAT], "result": [CHAT[-200:]]}
    return found


def mutate(data: bytes, others: list[bytes], dice: random.Random) -> bytes:
    """Return the bytes after one to four changes of any kind."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data) + 1)
        end = min(len(data), at + dice.choice((1, 4, 40, 400, 4000)))
        match dice.randrange(11):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + data[end:]
            case 3:
                data = data[:end] + data[at:end] * dice.randint(1, 20) + data[end:]
            case 4:
                data = data[:at] + dice.choice(ATTACKS) + data[at:]
            case 5:
                data = data[:at] + dice.randbytes(end - at) + data[end:]
            case 6:
                other = dice.choice(others)
                data = data[:at] + other[dice.randrange(len(other) + 1) :]
            case 7:
                size = dice.choice((1, 2, 4, 8))
                number = dice.choice((0, 1, 255, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)) % 256**size
                data = data[:at] + number.to_bytes(size, dice.choice(("little", "big"))) + data[at + size :]
            case 8 if data[:2] == b"PK":
                data = mutate_member(data, others, dice)
            case 9:
                data = data.replace(b"\n", b"\r\n") if dice.random() < 0.5 else data.decode("utf-8", "replace").encode()
            case _:
                data = dice.choice(others)[:at] + data[at:]
    return data[: 4 << 20]


def mutate_member(data: bytes, others: list[bytes], dice: random.Random) -> bytes:
    """Change one part of an archive, and pack it again with right checksums."""
    try:
        members = parts(data)
    except Exception:  # noqa: BLE001 -- already damaged
        return data
    if not members:
        return data
    name = dice.choice(sorted(members))
    match dice.randrange(4):
        case 0:
            members[name] = mutate(members[name], others, dice)
        case 1:
            members[name] = dice.choice(ATTACKS)
        case 2:
            members[dice.choice(("../x", "/x", "a\\b", "C:x", name.upper(), "x" * 300, name + "/"))] = members[name]
        case _:
            del members[name]
    with contextlib.suppress(Exception):
        return pack(members)
    return data


def judge(kind: str, path: Path, data: bytes, folder: Path) -> list[str]:
    """Verify one file in both tiers, and return the codes."""
    limits = Limits(seconds=SECONDS)
    match kind:
        case "skill" | "manifest" | "source":
            places = {"skill": "skills/report/SKILL.md", "manifest": "harness_config.yaml", "source": "tools/t.py"}
            for name, body in {"skill": SKILL, "manifest": MANIFEST, "source": SOURCE, kind: data}.items():
                place = folder / places[name]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(body)
            with guarded():
                reports = [verify_extension(str(folder))]
        case "run":
            path = path.with_suffix(".json")
            path.write_bytes(data)
            with guarded():
                reports = [verify_run(str(path), said=True, limits=limits)]
        case "result":
            with guarded():
                reports = [verify_result(data.decode("utf-8", "replace"), root=str(path.parent))]
        case _:
            path.write_bytes(data)
            with guarded():
                reports = [verify_artifact(path, kind, limits=limits, deep=deep) for deep in (False, True)]
    return [finding.code for report in reports for finding in report.findings]


GUARD = {"on": False}


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    GUARD["on"] = True
    try:
        yield
    finally:
        GUARD["on"] = False


def watch(event: str, args: tuple[object, ...]) -> None:
    """Refuse what a verifier has no business doing."""
    if not GUARD["on"]:
        return
    if event.startswith(
        ("socket.", "subprocess.", "os.system", "os.exec", "os.remove", "os.rename", "os.mkdir", "shutil.")
    ):
        raise PermissionError(f"a verifier did {event}")
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
        unnamed = getattr(os, "O_TMPFILE", 0)
        if not (unnamed and args[2] & unnamed == unnamed):  # no name, no trace: what libtiff complains goes there
            raise PermissionError(f"a verifier opened {args[0]!r} to write")


def worker(number: int, options: argparse.Namespace, keep: Path, done: Callable[[int, str], None]) -> None:
    """Run until the files or the seconds are used up; what goes wrong is named with its seed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # decoders complain
    kinds = seeds()
    everything = [data for group in kinds.values() for data in group]
    sys.addaudithook(watch)
    for kind, group in kinds.items():  # imports and caches, before memory is measured
        judge(kind, keep / f"warm{number}", group[0], keep / f"tree{number}")
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    names = sorted(kinds)
    log = (keep / f"trace{number}").open("w+")
    started = time.monotonic()
    for index in range(number, options.files, options.jobs):
        if options.seconds and time.monotonic() - started > options.seconds:
            break
        seed = f"{options.seed}-{index}"
        dice = random.Random(seed)
        kind = dice.choice(names)
        data = mutate(dice.choice(kinds[kind]), everything, dice)
        path = keep / f"now{number}"
        (keep / f"seed{number}").write_text(f"{seed} {kind}")
        faulthandler.dump_traceback_later(SECONDS * 2 + 5, exit=True, file=log)
        begun = time.monotonic()
        problem = ""
        try:
            codes = judge(kind, path, data, keep / f"tree{number}")
            problem = "check-crashed" if "check-crashed" in codes else ""
        except BaseException as exc:  # noqa: BLE001 -- nothing may come out of a verifier
            problem = f"{type(exc).__name__}: {exc}"
        faulthandler.cancel_dump_traceback_later()
        if not problem and time.monotonic() - begun > SECONDS * 2 + 1:
            problem = f"took {time.monotonic() - begun:.1f} seconds"
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
        if not problem and grown > MEMORY:
            problem, base = f"grew by {grown:,} bytes", base + grown
        if problem:
            (keep / f"{seed}.{kind}").write_bytes(data)
        done(1, f"{seed} {kind}: {problem}" if problem else "")


def main() -> int:
    """Run the workers, and return 1 when anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    options = parser.parse_args()
    keep = Path(tempfile.mkdtemp(prefix="extforge-fuzz-"))
    queue: multiprocessing.SimpleQueue[tuple[int, str]] = multiprocessing.SimpleQueue()

    def start(number: int) -> multiprocessing.Process:
        process = multiprocessing.Process(
            target=worker, args=(number, options, keep, lambda count, words: queue.put((count, words)))
        )
        process.start()
        return process

    processes = [start(number) for number in range(options.jobs)]
    count, problems = 0, []
    while any(process.is_alive() for process in processes) or not queue.empty():
        if queue.empty():
            time.sleep(0.05)
            continue
        step, words = queue.get()
        count += step
        problems += [words] if words else []
        if count % 5000 == 0:
            print(f"{count:,} files", flush=True)
    for number, process in enumerate(processes):
        if process.exitcode:
            seed = (keep / f"seed{number}").read_text()
            trace = (keep / f"trace{number}").read_text()
            problems.append(f"{seed}: the process ended with {process.exitcode}\n{trace}")
    for words in problems:
        print(words)
    print(f"{count:,} files of {len(seeds())} kinds, seed {options.seed}: {len(problems)} problems")
    if problems:
        print(f"kept in {keep}")
    return int(bool(problems))


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
