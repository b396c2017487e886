"""Match conditions as kube-apiserver's own code evaluates them: who is sent, at what cost, which errors."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
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
) -> list[dict[str, Answer]]:
    """Return the answers for each review, by the names of the webhooks whose conditions are given."""
    program = programs.find("condition-oracle")["condition-oracle"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "conditions.json"
        file.write_text(json.dumps(webhooks), "utf-8")
        text = "".join(f"{json.dumps(each)}\n" for each in reviews)
        done = subprocess.run(
            [program, file], input=text, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = map(json.loads, done.stdout.splitlines())
    return [
        {name: Answer(each["sent"], each["costs"], each["errors"]) for name, each in line.items()}
        for line in lines
    ]
