"""Many files: in order, whatever happens to a worker; one large file: in memory that does not grow."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import jsonschema
import killers
import pytest
from damage import good

from extforge_verifiers import Report, Verdict, verify_artifact, verify_many
from extforge_verifiers.many import _GRACE, lost_report, map_reports
from extforge_verifiers.reports.json import report_schema


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Twelve files, good and bad by turns; the fifth is one that some verify functions do not survive."""
    paths = []
    for number in range(12):
        name = "killer" if number == 4 else f"{number:02}"
        path = tmp_path / f"{name}.pdf"
        path.write_bytes(b"not a PDF" if number % 3 == 2 else good("pdf"))
        paths.append(str(path))
    return paths


def expected(paths: list[str]) -> list[Report]:
    return [verify_artifact(path) for path in paths]


def test_processes_give_the_same_reports_in_the_same_order(files: list[str]) -> None:
    assert list(verify_many(files, jobs=2)) == expected(files)
    assert list(verify_many([], jobs=2)) == []


def test_any_executor_will_do(files: list[str]) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert list(verify_many(files, executor=executor, jobs=2)) == expected(files)


def test_paths_are_taken_as_they_are_needed(files: list[str]) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield files[0]

    with ThreadPoolExecutor(2) as executor:
        reports = verify_many(endless(), executor=executor, jobs=2)
        for _ in range(5):
            assert next(reports).verdict is Verdict.PASS
        reports.close()  # type: ignore[attr-defined]
    assert taken < 20


@pytest.mark.parametrize("verify", [killers.kills, killers.kills_once, killers.hangs])
def test_a_dead_worker_takes_no_other_report_with_it(files: list[str], verify: Callable[[str], Report]) -> None:
    seconds = 1.0 - _GRACE  # the timer of a hanging process, without the grace
    reports = list(map_reports(files, verify, lost_report, jobs=2, seconds=seconds))
    want = expected(files)
    assert [r.path for r in reports] == files
    for number, (report, should) in enumerate(zip(reports, want, strict=True)):
        if number != 4 or verify is killers.kills_once:
            assert report == should
    if verify is not killers.kills_once:
        assert [f.code for f in reports[4].findings] == ["budget-exceeded"]
        assert reports[4].verdict is Verdict.FAIL


def test_what_a_foreign_executor_loses_is_tried_again(files: list[str]) -> None:
    with ProcessPoolExecutor(2) as executor:
        reports = list(map_reports(files, killers.kills, lost_report, executor=executor, jobs=2))
    assert [r.path for r in reports] == files
    assert [r.verdict for r in reports[5:]] == [r.verdict for r in expected(files)[5:]]
    assert [f.code for f in reports[4].findings] == ["budget-exceeded"]


@pytest.mark.filterwarnings("ignore")  # a cluster's own
def test_a_cluster_of_dask_is_an_executor(files: list[str]) -> None:
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        executor = client.get_executor()  # type: ignore[no-untyped-call]
        assert list(verify_many(files, executor=executor)) == expected(files)


def test_an_interrupt_leaves_a_valid_partial_report(tmp_path: Path) -> None:
    rows = [{"id": n, "text": "x" * 50, "more": [n, n + 1]} for n in range(200_000)]
    (tmp_path / "00.json").write_text(json.dumps(rows))
    for number in range(1, 60):
        os.link(tmp_path / "00.json", tmp_path / f"{number:02}.json")
    command = [sys.executable, "-m", "extforge", "verify", str(tmp_path), "--jobs", "2", "--json"]
    for seconds in (5, 10, 20):  # on a busy machine Python itself may need longer to start
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in errors) == (130, False), errors
        if out:
            break
    data = json.loads(out)
    jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)
    assert (data["partial"], data["verdict"]) == (True, "undetermined")
    assert len(data["reports"]) < 60
    assert all(report["verdict"] == "pass" for report in data["reports"])


# --------------------------------------------------------------------------- size


def large_json(stream: object) -> None:
    write = stream.write  # type: ignore[attr-defined]
    write(b"[")
    for number in range(600_000):
        write(b'{"id": %d, "text": "%s", "list": [1, 2, null]},\n' % (number, b"x" * 60))
    write(b"{}]")


def large_lines(stream: object) -> None:
    for number in range(600_000):
        stream.write(b'{"id": %d, "text": "%s"}\n' % (number, b"x" * 60))  # type: ignore[attr-defined]


def large_table(stream: object) -> None:
    for number in range(900_000):
        stream.write(b'%d,"%s"\n' % (number, b"x" * 60))  # type: ignore[attr-defined]


def large_document(stream: object) -> None:
    body = good("pdf")
    end = body.index(b"1 0 obj")
    stream.write(body[:end] + b"%" + bytes(60 << 20) + b"\n" + body[end:])  # type: ignore[attr-defined]


def large_picture(stream: object) -> None:
    width, height = 32_000, 8_000
    size = 54 + width * 4 * height
    header = (
        b"BM"
        + struct.pack("<LLL", size, 0, 54)
        + struct.pack("<LllHHLLllLL", 40, width, height, 1, 32, 0, 0, 0, 0, 0, 0)
    )
    stream.write(header)  # type: ignore[attr-defined]
    stream.truncate(size)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.json", large_json),
        ("a.jsonl", large_lines),
        ("a.csv", large_table),
        ("a.txt", large_lines),
        ("a.pdf", large_document),
        ("a.bmp", large_picture),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str, write: Callable[[object], None]) -> None:
    path = tmp_path / name
    with path.open("wb") as stream:
        write(stream)
    assert path.stat().st_size > 40 << 20
    script = (
        "import resource, sys; from extforge_verifiers import verify_artifact; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; report = verify_artifact(sys.argv[1]); "
        "print(report.verdict.value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    verdict, grown = done.stdout.split()
    assert verdict == "pass"
    assert int(grown) * (1 if sys.platform == "darwin" else 1024) < 24 << 20


def test_a_large_json_text_is_judged_by_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as stream:
        large_json(stream)
    report = verify_artifact(path)
    assert (report.facts["type"], report.facts["records"], report.checked) == ("array", 600_001, ("deep:check_json",))
    body = b"[" + (b'"' + b"x" * 9996 + b'",\n') * 3500
    for end, code, column in (
        (b"{}", "json-truncated", None),
        (b"NaN]", "json-constant", 1),
        (b'"\xff"]', "json-not-utf8", None),
        (b"]]", "json-syntax", 1),
        (b'"\xc3\xbc" "x"]', "json-syntax", 7),
        (b"{}]\n[1]", "json-syntax", None),
    ):
        path.write_bytes(body + end)
        (finding,) = verify_artifact(path).findings
        assert (finding.code, "b'" in finding.message) == (code, False), finding
        if column is not None:
            assert (finding.where.line, finding.where.column) == (3501, column), finding


@pytest.mark.parametrize(
    ("head", "tail", "code"),
    [
        pytest.param(b'```json\n["', b'"]\n```', "json-fenced", id="a fence"),
        pytest.param(b"<html><body>", b"</body></html>", "artifact-placeholder", id="HTML"),
        pytest.param(b"\xff\xfe", b"", "json-not-utf8", id="UTF-16"),
        pytest.param(b'\xef\xbb\xbf["', b'"]', "json-bom", id="a byte order mark"),
        pytest.param(b'["' + "ü".encode("latin-1"), b'"]', "json-not-utf8", id="Latin-1"),
        pytest.param(b"[" * 5000 + b'"', b'"' + b"]" * 5000, "json-deep", id="deep"),
        pytest.param(b'["",null', b',""]', "json-hollow", id="hollow"),
    ],
)
def test_a_large_json_text_is_named_as_a_small_one_is(tmp_path: Path, head: bytes, tail: bytes, code: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(head + (b" " if code == "json-hollow" else b"x") * (33 << 20) + tail)
    findings = verify_artifact(path).findings
    assert [f.code for f in findings] == [code]


def test_a_file_over_its_time_fails_with_the_limit_named(tmp_path: Path) -> None:
    from extforge_verifiers import Limits

    path = tmp_path / "a.csv"
    with path.open("wb") as stream:
        large_table(stream)
    report = verify_artifact(path, limits=Limits(seconds=0.05))
    assert [f.message for f in report.findings] == ["took longer than 0.05 seconds"]
