"""Measures the repository's quality now and then while the service runs, in a process of its own.

A measurement keeps a core busy for seconds; a search must not wait for it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

log = logging.getLogger(__name__)

NICE = 10
FIRST_AFTER_S = 5.0
GIVE_UP_S = 600.0


class Measuring:
    """A thread that runs `bowerbird quality` every so often; what cannot be measured yet is tried again."""

    def __init__(self, folder: Path, every_s: float) -> None:
        self.folder = folder
        self.every_s = every_s
        self.said = ""  # by the last measurement that did not succeed
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="measuring", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, also in the middle of a measurement."""
        self._stop.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def measure(self) -> bool:
        """One measurement; whether it succeeded."""
        command = [sys.executable, "-m", "bowerbird", "quality", str(self.folder), "--json"]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us, and we end it
        ) as process:
            self._process = process
            try:
                os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            except OSError:
                pass  # it has ended already
            try:
                _, errors = process.communicate(timeout=GIVE_UP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
        self.said = "" if process.returncode == 0 else errors.strip()
        return process.returncode == 0

    def _run(self) -> None:
        wait_s = min(FIRST_AFTER_S, self.every_s)
        while not self._stop.wait(wait_s):
            if not self.measure() and not self._stop.is_set():
                log.info("quality not measured: %s", self.said)
            wait_s = self.every_s
