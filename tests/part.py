"""One command of `make test`: its output, its time, and what its closing line counts."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

COUNTED = re.compile(r"(\d+) (passed|failed|skipped|xfailed|xpassed|errors?)\b")

SHARE = re.compile(r"\[ *(\d+)%\]$", re.MULTILINE)


@dataclass(slots=True)
class Part:
    """One command; `needed` ones fail the whole, `nice` is what they give way by."""

    title: str
    command: Sequence[str]
    needed: bool = True
    nice: int = 0
    minor: str = ""
    seconds: float = 0.0
    failed: bool = False
    output: Path = field(default_factory=Path)

    def run(self, folder: Path, running: dict[int, tuple[Part, subprocess.Popen[bytes]]]) -> None:
        """Run the command to its end, its output in a file of `folder`."""
        environment = {**os.environ, **({"PODGATE_KUBERNETES": self.minor} if self.minor else {})}
        command = ("nice", "-n", str(self.nice), *self.command) if self.nice else self.command
        started = time.monotonic()
        self.output = folder / f"{self.title.replace(' ', '-').replace(',', '')}.log"
        with self.output.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=environment
            )
            running[process.pid] = (self, process)
            self.failed = process.wait() != 0
            del running[process.pid]
        self.seconds = time.monotonic() - started

    def text(self) -> str:
        """What it has printed so far."""
        return self.output.read_text(errors="replace") if self.output.is_file() else ""

    def progress(self) -> str:
        """The share of its tests that have run, where it tells one; else its last words."""
        text = self.text()
        if shares := SHARE.findall(text):
            return f"{shares[-1]} %"
        return text.rstrip().rpartition("\n")[2][-100:]

    def counts(self) -> Counter[str]:
        """How many tests ended how, by the runner's closing line."""
        closing = self.text().rstrip().rpartition("\n")[2]
        counted = COUNTED.findall(closing)
        return Counter({"errors" if "error" in word else word: int(n) for n, word in counted})
