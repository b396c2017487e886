"""Sound documents beside broken ones, and whether a command's answer still has them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import Result

from tests import corpus
from tests.cli.running import podgate
from tests.mutated import Mutant

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "", "namespace": "neighbours"},
    "spec": {"containers": [{"name": "main", "image": "registry.example.com/a:1"}]},
}
SOUND = """\
apiVersion: podgate.dev/v1alpha1
kind: WorkloadPolicy
metadata: {name: NAME, namespace: NAME}
spec: {defaults: {imagePullPolicy: Always}}
"""
MISTAKE = SOUND.replace("NAME", "mistaken").replace("Always", "shoutOut")
JOB_SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "sample"},
    "spec": {
        "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": POD["spec"]}}}}]
    },
}


@cache
def folder() -> str:
    """A folder with sound files."""
    made = Path(tempfile.mkdtemp(prefix="podgate-every-"))
    (made / "good.yaml").write_text(manifest("good"))
    (made / "sample.yaml").write_text(json.dumps(JOB_SET))
    return str(made)


def files() -> dict[str, str]:
    """Sound files that commands get beside a broken one."""
    return {f"{{{name}}}": f"{folder()}/{name}.yaml" for name in ("good", "sample")}


def manifest(name: str) -> str:
    """A Pod of this name."""
    return json.dumps({**POD, "metadata": {**POD["metadata"], "name": name}})  # type: ignore[dict-item]


def document(sort: str, name: str) -> str:
    """A document of this name, whose answer is known; "" where a sort has none."""
    if sort == "manifests":
        return manifest(name)
    if sort == "policies":
        return SOUND.replace("NAME", name)
    return ""


def between(sort: str, mutant: Mutant) -> Mutant:
    """A mutant between two sound documents, where its bytes are text."""
    number = mutant.name.partition("-")[0]
    before, after = document(sort, f"before-{number}"), document(sort, f"after-{number}")
    if not before or not mutant.whole:
        return mutant
    data = b"".join((before.encode(), b"\n---\n", mutant.data, b"\n---\n", after.encode(), b"\n"))
    return mutant._replace(data=data)


def names(several: Sequence[Mutant]) -> Iterator[str]:
    """The names of the neighbours of mutants."""
    for each in several:
        number = each.name.partition("-")[0]
        if each.data.count(f"after-{number}".encode()):
            yield from (f"before-{number}", f"after-{number}")


@cache
def expected() -> Any:
    """What `apply` gives for a neighbour alone, its name aside."""
    result = podgate("apply", "-p", str(corpus.POLICY), "-o", "json", files()["{good}"])
    return essence(json.loads(result.stdout), "good")


def essence(row: Any, name: str) -> Any:
    """A row without what differs by file."""
    text = json.dumps({key: value for key, value in row.items() if key != "source"})
    return json.loads(text.replace(name, "NAME"))


def lost(
    sort: str, command: Sequence[str], result: Result, several: Sequence[Mutant]
) -> Iterator[str]:
    """Neighbours that an answer has not, or has otherwise than alone."""
    if sort not in ("manifests", "policies") or command[0] in ("lint", "interface"):
        return
    wanted = list(names(several))
    if command[0] == "apply" and "json" in command:
        rows = {
            row["name"]: row for row in map(json.loads, filter(None, result.stdout.split("\n")))
        }
        for each in wanted:
            if each not in rows:
                yield f"{each} is lost"
            elif essence(rows[each], each) != expected():
                yield f"{each} has another answer than alone: {rows[each]}"
        return
    for each in wanted:
        if each not in result.stdout:
            yield f"{each} is lost"
