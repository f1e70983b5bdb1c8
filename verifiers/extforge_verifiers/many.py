"""Many files at once: in order, in bounded memory, and no file takes another's report with it.

Any `concurrent.futures.Executor` will do; Dask's `Client.get_executor()` is one.  Our own pool uses processes:
threads do not scale here, because the checks hold Python's lock.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
from collections import deque
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from extforge_verifiers.artifact import Limits
from extforge_verifiers.findings import Finding, Report
from extforge_verifiers.verify import verify_artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["lost_report", "map_reports", "verify_many"]

Item = TypeVar("Item")
_AHEAD = 4  # items waiting per worker: enough to keep it busy, few enough to keep memory bounded
_GRACE = 10.0  # seconds past its own deadline before a worker is stopped from outside


def verify_many(
    paths: Iterable[str | os.PathLike[str]],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    limits: Limits | None = None,
    deep: bool = False,
) -> Iterator[Report]:
    """Yield a report per path, in the order of the paths, as they are done.

    Args:
        paths: the files; taken as they are needed, so it may be endless.
        executor: where to verify; by default processes of our own.
        jobs: how many of those; by default one per CPU.
        limits: what looking at one file may cost.
        deep: also look with libraries.

    A script that lets us start processes needs the usual `if __name__ == "__main__":`.
    """
    verify = partial(verify_artifact, limits=limits, deep=deep)
    seconds = (limits or Limits()).seconds
    named = (os.fspath(path) for path in paths)
    lost = partial(lost_report, seconds=seconds)
    yield from map_reports(
        named, verify, lost, executor=executor, jobs=jobs, seconds=seconds
    )


def lost_report(path: str, reason: str, *, seconds: float = 0.0) -> Report:
    """Return the report on a file whose verification never came back."""
    limit = f" or longer than {seconds:g} seconds" if seconds else ""
    words = f"verifying it ended the process that did: killed, out of memory{limit} ({reason})"
    finding = Finding("budget-exceeded", words, failure_id="artifact_format_invalid")
    return Report(path, "unknown", checked=("started",), findings=(finding,))


def map_reports(
    items: Iterable[Item],
    verify: Callable[[Item], Report],
    lost: Callable[[Item, str], Report],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    seconds: float = 0.0,
) -> Iterator[Report]:
    """Yield `verify(item)` for each item, in order; `lost(item, why)` for one that kills its worker twice.

    Args:
        items: anything that can be sent to a process.
        verify: a function that can be sent to a process, and that raises nothing.
        lost: makes the report for an item whose worker died, alone on it.
        executor: where to verify; by default processes of our own.
        jobs: how many of those; by default one per CPU.
        seconds: after this time, and some grace, a process of our own is stopped; 0 means never.
    """
    jobs = jobs or os.cpu_count() or 1
    if executor is not None:
        yield from _stream(items, verify, lost, executor, seconds, jobs)
        return
    waiting = iter(items)
    guarded = partial(_in_worker, verify, seconds)
    again: list[Item] = []
    while True:
        with _pool(jobs) as pool:
            try:
                yield from _ordered(waiting, guarded, pool, jobs, again)
            except _Broken:
                pass  # `again` holds what was under way
            else:
                return
        for item in again:
            yield _alone(item, verify, lost, seconds)
        again.clear()


class _Broken(Exception):
    """The pool lost a process, and with it everything that was under way."""


def _ordered(
    waiting: Iterator[Item],
    verify: Callable[[Item], Report],
    executor: Executor,
    jobs: int,
    again: list[Item],
) -> Iterator[Report]:
    """Yield reports in order; on a broken pool raise `_Broken`, with the unfinished items in `again`."""
    pending: deque[tuple[Item, Future[Report]]] = deque()
    for item in waiting:
        try:
            pending.append((item, executor.submit(verify, item)))
        except RuntimeError as exc:  # a broken pool takes nothing more
            again += [*(waited for waited, _ in pending), item]
            raise _Broken from exc
        if len(pending) >= jobs * _AHEAD:
            yield _next(pending, again)
    while pending:
        yield _next(pending, again)


def _next(pending: deque[tuple[Item, Future[Report]]], again: list[Item]) -> Report:
    try:
        report = pending[0][1].result()
    except (RuntimeError, CancelledError) as exc:  # BrokenExecutor is a RuntimeError
        again += [waited for waited, _ in pending]
        raise _Broken from exc
    pending.popleft()
    return report


def _stream(
    items: Iterable[Item],
    verify: Callable[[Item], Report],
    lost: Callable[[Item, str], Report],
    executor: Executor,
    seconds: float,
    jobs: int,
) -> Iterator[Report]:
    """Yield reports from somebody else's executor; what it loses is tried once more in a process of our own."""
    pending: deque[tuple[Item, Future[Report] | None]] = deque()

    def settle(item: Item, future: Future[Report] | None) -> Report:
        if future is not None:
            with suppress(
                Exception
            ):  # a cluster has errors of its own for a lost worker
                return future.result()
        return _alone(item, verify, lost, seconds)

    for item in items:
        try:
            future = executor.submit(verify, item)
        except RuntimeError:
            future = None
        pending.append((item, future))
        if len(pending) >= jobs * _AHEAD:
            yield settle(*pending.popleft())
    while pending:
        yield settle(*pending.popleft())


def _alone(
    item: Item,
    verify: Callable[[Item], Report],
    lost: Callable[[Item, str], Report],
    seconds: float,
) -> Report:
    """Verify an item in a process of its own: what dies now dies of this item."""
    with _pool(1) as pool:
        try:
            return pool.submit(_in_worker, verify, seconds, item).result()
        except Exception as exc:  # noqa: BLE001 -- whatever it is, it is this item's
            return lost(item, type(exc).__name__)


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool; when it is left by an interrupt its processes are stopped, so that nothing waits for them."""
    # Not fork: the caller may have threads, and a forked child would inherit their locks.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):
        # A worker that was just starting got the interrupt too, and may never say anything again.
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown()
        raise
    pool.shutdown()


def _ignore_interrupts() -> None:
    # Ctrl-C reaches every process of the terminal; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_worker(verify: Callable[[Item], Report], seconds: float, item: Item) -> Report:
    """Verify in a process that ends itself when a library never returns."""
    if not seconds:
        return verify(item)
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        # A timer below Python: it works when a library holds the lock for ever.
        faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=nowhere)
        try:
            return verify(item)
        finally:
            faulthandler.cancel_dump_traceback_later()
