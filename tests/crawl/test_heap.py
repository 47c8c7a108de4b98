"""The heap of a long life: what threads that come and go leave behind, and what goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from bowerbird.crawl.heap import ARENAS, Trimmer

GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
THREADS = """
import ctypes, os, sys, threading
from bowerbird.crawl.heap import Trimmer, settle_heap
if "settled" in sys.argv:
    settle_heap()
def own():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
before = own()
def work(meet):
    taken = [libc.malloc(1000) for _ in range(4000)]
    meet.wait()
    for place in taken[:-1]:
        libc.free(place)
meet = threading.Barrier(8)
threads = [threading.Thread(target=work, args=(meet,)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
after = own()
Trimmer(0.0).trim()
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
read, write = os.pipe()
stream = libc.fdopen(write, b"w")
libc.malloc_info(0, stream)
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fclose(stream)
told = open(read).read()
print(after - before, own() - before, told.count("<heap nr"))
"""


def grown(*arguments: str) -> tuple[int, int, int]:
    """Kilobytes after eight threads that took 4 MB each and left a little, and after free memory was given back.

    And how many arenas there are.
    """
    ran = subprocess.run([sys.executable, "-c", THREADS, *arguments], capture_output=True, text=True, check=True)
    left, trimmed, arenas = ran.stdout.split()
    return int(left), int(trimmed), int(arenas)


@GLIBC
def test_what_is_free_goes_back() -> None:
    left, trimmed, _ = grown()
    assert left > 10_000
    assert trimmed < 0.2 * left


def test_it_is_done_now_and_then() -> None:
    assert Trimmer(0.0).trim()
    assert not Trimmer(60.0).trim()


@GLIBC
def test_a_settled_heap_has_few_arenas() -> None:
    assert grown()[2] > ARENAS
    assert grown("settled")[2] <= ARENAS
