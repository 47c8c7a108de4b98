from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.conftest import ROOT

from bowerbird.crawl.child import Child, Copy, start_child


def start() -> tuple[Child, int, int]:
    command_read, command_write = os.pipe()
    report_read, report_write = os.pipe()
    child = start_child(command_read, report_write, ())
    os.close(command_read)
    os.close(report_write)
    return child, command_write, report_read


def test_a_copy_ends_when_its_own_pipe_ends_though_another_was_started_after_it() -> None:
    program = "from tests.crawl.test_child import end_copies; end_copies()"  # tests may have threads about
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "the other goes on\n"), ended.stderr


def end_copies() -> None:
    """Two copies of this process, of which the first is ended."""
    assert threading.active_count() == 1
    first, first_commands, first_reports = start()
    second, second_commands, second_reports = start()
    assert isinstance(first, Copy)
    os.close(first_commands)
    assert first.wait(20) == 0
    first.kill()  # its number may belong to another by now: nothing happens
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.5)
    print("the other goes on")
    os.kill(second.pid, signal.SIGTERM)  # it obeys as any process does
    assert second.wait(20) == -signal.SIGTERM
    for fd in (second_commands, first_reports, second_reports):
        os.close(fd)


def test_with_threads_about_a_new_interpreter_is_started() -> None:
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait)
    thread.start()
    try:
        child, commands, reports = start()
    finally:
        leave.set()
        thread.join()
    assert isinstance(child, subprocess.Popen)
    os.close(commands)
    assert child.wait(30) == 0
    os.close(reports)
