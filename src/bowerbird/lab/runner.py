"""Runs an experiment: every split of the data, one after the other or several at once, until the end or a stop."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from bowerbird.lab.experiment import Family, Finding, LabData, SplitResult, Summary
from bowerbird.lab.summaries import summarise
from bowerbird.model.errors import BowerbirdError

STOP_S = 5.0


class ExperimentError(BowerbirdError):
    """A split could not be measured."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come, said at its start and after each split."""

    done: int
    of: int
    elapsed_s: float
    latest: SplitResult | None = None

    @property
    def left_s(self) -> float | None:
        """How long the rest will take at this speed; None before the first split is done."""
        return self.elapsed_s / self.done * (self.of - self.done) if self.done else None


@dataclass(frozen=True, slots=True)
class Run:
    """What an experiment gave."""

    family: Family
    data: LabData
    policies: tuple[str, ...]
    seeds: int  # that were asked for
    jobs: int
    splits: list[SplitResult] = field(default_factory=list)  # those that were measured, in order
    summaries: list[Summary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def stopped(self) -> bool:
        """Whether it was ended before all splits were measured."""
        return len(self.splits) < self.seeds

    @property
    def measured(self) -> list[str]:
        """The policies of which something was measured: one that the data is not fit for may have nothing."""
        found = {row.policy for row in self.summaries if row.n}
        return [policy for policy in self.policies if policy in found]

    @property
    def data_notes(self) -> list[str]:
        """What was left out of the data, or taken for something else, when it was read."""
        return [str(value) for key, value in self.data.describe().items() if key.startswith("note ")]

    @property
    def notes(self) -> list[str]:
        """What the splits had to say, each thing once."""
        return list(dict.fromkeys(note for split in self.splits for note in split.notes))


Show = Callable[[Progress], None]


def run_experiment(
    family: Family,
    data: LabData,
    policies: Sequence[str],
    *,
    seeds: int,
    jobs: int = 1,
    show: Show = lambda progress: None,
) -> Run:
    """Measure splits 0…seeds-1. Ctrl-C ends it with those that are done; a split that fails is an error."""
    began = time.monotonic()
    done: list[SplitResult] = []
    measure = _in_turn if min(jobs, seeds) <= 1 else _at_once
    try:
        with measure(family, data, tuple(policies), seeds, jobs) as results:
            show(Progress(0, seeds, time.monotonic() - began))
            for result in results:
                done.append(result)
                show(Progress(len(done), seeds, time.monotonic() - began, result))
    except KeyboardInterrupt:
        pass
    done.sort(key=lambda result: result.split)
    complete = getattr(family, "complete", None)
    if complete is not None:
        done = complete(done)
    summaries = summarise(done)
    findings = family.conclude(data, summaries) if done else []
    return Run(
        family, data, tuple(policies), seeds, min(jobs, seeds), done, summaries, findings, time.monotonic() - began
    )


@contextmanager
def _in_turn(
    family: Family, data: LabData, policies: tuple[str, ...], seeds: int, jobs: int
) -> Iterator[Iterator[SplitResult]]:
    yield (family.run_split(data, split, policies) for split in range(seeds))


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection[Any, Any]
    split: int = -1


@contextmanager
def _at_once(
    family: Family, data: LabData, policies: tuple[str, ...], seeds: int, jobs: int
) -> Iterator[Iterator[SplitResult]]:
    """Forked processes: they share the data that was read, and know families that only this process knows.

    What uses OpenMP in this process before cannot use it again in a forked one: `Family.load` must not.
    """
    context = multiprocessing.get_context("fork")
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, seeds)):
            ours, theirs = context.Pipe()
            others = [worker.pipe for worker in workers] + [ours]
            process = context.Process(target=_work, args=(family, data, policies, theirs, others, jobs))
            process.start()
            theirs.close()
            workers.append(_Worker(process, ours))
        yield _collect(workers, seeds)
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join(STOP_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()


def _collect(workers: Sequence[_Worker], seeds: int) -> Iterator[SplitResult]:
    """Results as they come; who has none to measure is left waiting."""
    left = iter(range(seeds))
    for worker in workers:
        _give(worker, next(left))
    for _ in range(seeds):
        ready = wait([worker.pipe for worker in workers if worker.split >= 0])
        worker = next(worker for worker in workers if worker.pipe in ready)
        try:
            result = worker.pipe.recv()
        except (EOFError, ConnectionError):
            worker.process.join(STOP_S)
            raise ExperimentError(
                f"lab: the process that measured split {worker.split} ended (exit {worker.process.exitcode}); "
                "perhaps there was too little memory. Try fewer --jobs."
            ) from None
        if isinstance(result, BaseException):
            raise result
        _give(worker, next(left, -1))
        yield result


def _give(worker: _Worker, split: int) -> None:
    worker.split = split
    if split >= 0:
        worker.pipe.send(split)


def _work(
    family: Family,
    data: LabData,
    policies: tuple[str, ...],
    pipe: Connection[Any, Any],
    others: Sequence[Connection[Any, Any]],
    jobs: int,
) -> None:
    """In a process of its own: measure what is asked for until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started us, who then ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:  # or none of us would hear that the one who started us is gone
        other.close()
    _share_cores(jobs)
    while True:
        try:
            split = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            result: SplitResult | BaseException = family.run_split(data, split, policies)
        except BowerbirdError as error:
            result = error
        except Exception:
            result = ExperimentError(f"lab: split {split} failed.\n{traceback.format_exc()}")
        pipe.send(result)


def _share_cores(jobs: int) -> None:
    """Threads in so many processes would only get in each other's way."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # read by libraries that are loaded later
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(min(threads, numba.get_num_threads()))
