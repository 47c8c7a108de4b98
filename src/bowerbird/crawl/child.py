"""Starting a worker process: a copy of this one while it is still alone, else a new interpreter.

Loading the compiled kernels takes most of a second of CPU in every process. Before this process has threads it may
be copied with them loaded; once the index and the archive have threads of their own, a replacement starts afresh.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Protocol

from bowerbird.crawl import worker
from bowerbird.crawl.reading import load_kernels

#: a worker is one of many: libraries must not start threads for every core in each of them
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
STDERR = 2


class Child(Protocol):
    """A process of ours."""

    @property
    def pid(self) -> int:
        """Its number."""

    def kill(self) -> None:
        """End it at once."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises `subprocess.TimeoutExpired`."""


class Copy:
    """A child made by copying this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended: int | None = None

    def kill(self) -> None:
        """End it at once."""
        if self._ended is None:  # until it is waited for, its number is not given to another
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self._ended is None:
            handle = os.pidfd_open(self.pid)
            try:
                if not select.select([handle], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            finally:
                os.close(handle)
            self._ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._ended


def start_child(commands: int, reports: int, keep: Sequence[int]) -> Child:
    """Start a worker that reads `commands`, writes `reports` and holds on to `keep`."""
    if threading.active_count() == 1 and hasattr(os, "pidfd_open"):
        return _copy_self(commands, reports, keep)
    return subprocess.Popen(
        [sys.executable, "-m", "bowerbird.crawl.worker", str(commands), str(reports), str(os.getpid())],
        pass_fds=(commands, reports, *keep),
        stdin=subprocess.DEVNULL,
        env={**os.environ, **ONE_THREAD},
    )


def _copy_self(commands: int, reports: int, keep: Sequence[int]) -> Child:
    load_kernels()
    gc.collect()  # what the copy would collect of ours, it would first have to copy
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    parent = os.getpid()
    heard = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)  # a signal meant for us must not run our handler there
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Copy(pid)
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _close_all_but({commands, reports, *keep})
        code = worker.main([str(commands), str(reports), str(parent)])
    except BaseException:  # nothing may go on in the copy as if it were the original
        traceback.print_exc()
    finally:
        os._exit(code)


def _close_all_but(keep: set[int]) -> None:
    """The other workers' pipes must end when the coordinator closes them, so nobody else may hold them."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    last = STDERR
    for fd in sorted(keep):
        os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
