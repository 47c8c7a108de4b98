"""Running a command and measuring it with all its child processes: wall time, CPU seconds, memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass(slots=True)
class Sample:
    """Resident bytes of the processes of a tree at one moment: the first process, and the rest."""

    at_s: float
    main_bytes: int
    children_bytes: int


@dataclass(slots=True)
class Measured:
    """What a command cost."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str
    status: int
    load: float
    samples: list[Sample] = field(default_factory=list)


def run_measured(command: Sequence[str], *, every_s: float = 0.25, cwd: Path | None = None) -> Measured:
    """Run to the end. CPU time is that of the process and all descendants that were waited for."""
    load = os.getloadavg()[0]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd)
    samples: list[Sample] = []
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, began, every_s, samples, ended))
    watcher.start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    ended.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = max((s.main_bytes + s.children_bytes for s in samples), default=usage.ru_maxrss * 1024)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Measured(wall_s, cpu_s, peak, output, process.returncode, load, samples)


def _watch(pid: int, began: float, every_s: float, samples: list[Sample], ended: threading.Event) -> None:
    try:
        main = psutil.Process(pid)
        children: list[psutil.Process] = []
        looked_at = 0.0
        while not ended.wait(every_s):
            now = time.perf_counter()
            if now - looked_at > 1.0 or not children:
                children = main.children(recursive=True)  # reads all of /proc, so not at every sample
                looked_at = now
            samples.append(Sample(now - began, main.memory_info().rss, sum(_rss(child) for child in children)))
    except psutil.Error:
        return


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
