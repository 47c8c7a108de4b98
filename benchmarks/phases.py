"""Phases of a benchmark, each in a process of its own: what one leaves in memory does not count for the next."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any


def peak_gb() -> float:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def run_phase(script: str, name: str, folder: Path, *more: str) -> dict[str, Any]:
    """One phase of a script, which is its `--phase`; it prints its result as JSON, last."""
    load = os.getloadavg()[0]
    command = [sys.executable, script, "--phase", name, "--folder", str(folder), *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the phase {name!r} ended with {done.returncode}")
    return dict(json.loads(done.stdout.splitlines()[-1])) | {"load": round(load, 2)}
