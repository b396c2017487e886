"""Argo CD's and Flux's own code for syncing and comparing, as small programs built on it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.gate import Gate, text_of
from tests.e2e.testbed import programs

NAMES = ("argocd", "flux")
APPLY, DIFF, INCLUDE = (
    f"{option}=true" for option in ("ServerSideApply", "ServerSideDiff", "IncludeMutationWebhook")
)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of `testbed.programs` with options, which are those of an Argo CD Application."""

    program: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The program and the names of its options."""
        return " ".join((self.program, *(each.partition("=")[0] for each in self.options)))

    def ignoring(self, places: Sequence[str]) -> Tool:
        """The same with jqPathExpressions of places that it does not compare."""
        return Tool(self.program, (*self.options, *(f"ignore={each}" for each in places)))

    def sync(self, gate: Gate, document: Json, space: str) -> None:
        """Sync one object into a namespace; AssertionError with what the tool said."""
        self._run("sync", gate, document, space)

    def differs(self, gate: Gate, document: Json, space: str) -> bool:
        """Whether it reports the live object as another than the document makes."""
        told = json.loads(self._run("diff", gate, document, space))
        if self.program == "flux":
            assert told["action"] in ("unchanged", "configured"), told
            return bool(told["action"] == "configured")
        return bool(told["modified"])

    def _run(self, action: str, gate: Gate, document: Json, space: str) -> str:
        placed = {**document, "metadata": {**document["metadata"], "namespace": space}}
        done = subprocess.run(
            [programs.find(self.program)[self.program], action, *self.options],
            env={**os.environ, "KUBECONFIG": str(gate.cluster.kubeconfig())},
            input=text_of(placed),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


# What compares by asking the server, and so podgate: nothing is left to report.
EXACT = (
    Tool("argocd", (DIFF,)),
    Tool("argocd", (DIFF, INCLUDE)),
    Tool("argocd", (APPLY, DIFF, INCLUDE)),
    Tool("flux"),
)
# What compares by itself. The kinds that it reports, each by lists that podgate has added to.
BY_ITSELF = {
    Tool("argocd"): {"PyTorchJob", "JobSet"},
    Tool("argocd", (APPLY,)): {"PyTorchJob", "RayCluster"},
}
