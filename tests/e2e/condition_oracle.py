"""Match conditions as kube-apiserver's own code evaluates them: who is sent, at what cost, which errors."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.testbed import programs

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """Whether one webhook is asked about a review; cost and error of each condition by its name."""

    sent: bool
    costs: Mapping[str, int]
    errors: Mapping[str, str]


def evaluate(
    webhooks: Mapping[str, Sequence[Json]], reviews: Iterable[Json]
) -> Iterator[tuple[Json, dict[str, Answer]]]:
    """Yield each review and its answers, by the names of the webhooks whose conditions are given.

    One review at a time is in memory. Raises RuntimeError when a condition does not compile.
    """
    program = programs.find("condition-oracle")["condition-oracle"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "conditions.json"
        file.write_text(json.dumps(webhooks), "utf-8")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([program, file], text=True, **pipes) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            for review in reviews:
                try:
                    running.stdin.write(f"{json.dumps(review)}\n")
                    running.stdin.flush()
                except BrokenPipeError:
                    break
                line = running.stdout.readline()
                if not line:
                    break
                yield (
                    review,
                    {
                        name: Answer(each["sent"], each["costs"], each["errors"])
                        for name, each in json.loads(line).items()
                    },
                )
            with contextlib.suppress(BrokenPipeError):
                running.stdin.close()
    if running.returncode:
        raise RuntimeError("the oracle failed; its message is above")
