"""Tells processes apart and ends them, by id and time of start."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A process id with the process's time of start, since ids are used again."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Tell whether this very process still runs."""
        return started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Send signal `number` if this very process still runs."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def record(pid: int) -> Recorded:
    """Return the record of the running process `pid`."""
    return Recorded(pid, started(pid))


def started(pid: int) -> str:
    """Return when process `pid` started, in words of the system; empty if it does not run."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            # The name in parentheses may hold spaces; the state and 19 more fields follow it.
            state, *rest = stat.read_text("utf-8").rpartition(")")[2].split()
            return "" if state == "Z" else rest[18]
        return ""
    told = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def wait_until_gone(recorded: list[Recorded], seconds: float = PATIENCE) -> bool:
    """Wait until none of `recorded` runs; tell whether that came true within `seconds`."""
    end = time.monotonic() + seconds
    while any(one.alive() for one in recorded):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def tail(path: Path, lines: int = 25) -> str:
    """Return the last `lines` of the file at `path`, or a remark that there is none."""
    if not path.exists():
        return f"(no {path})"
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-lines:])


def die_with_parent() -> None:
    """Have the kernel end this process when its parent is gone; for `preexec_fn`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
