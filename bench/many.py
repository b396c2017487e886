"""Gates of size: policies that do not concern the request, and a policy that speaks of everything."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import yaml

from bench.inprocess import POLICIES, admission, operations, review
from bench.timing import ROUNDS, Gate, ratio, seconds_of, settle
from tests import everything
from webhook.catalog.catalog import Catalog
from webhook.sources.load import Sources, load

COUNTS = (1, 10, 100, 1000)
# Fields that the bench's objects state, if only by saying nothing, so that options refuse them.
STATED = frozenset(
    {
        "image",
        "args",
        "ports",
        "security.procMount",
        "security.serviceAccountName",
        "security.volumeTypes",
        "storage.configMapVolume",
        "storage.emptyDirVolume",
        "storage.pvc",
        "tolerations",
    }
)


def stranger(index: int) -> dict[str, Any]:
    """A policy for another kind, another namespace, or namespaces that are labelled otherwise."""
    spec: dict[str, Any] = {
        "defaults": {"security": {"runAsGid": 2000 + index}},
        "rules": {"compute": {"cpuCoreRequest": {"max": 64}}, "image": {"required": True}},
    }
    metadata: dict[str, Any] = {"name": f"stranger-{index}"}
    kind = "ClusterWorkloadPolicy"
    match index % 3:
        case 0:
            spec["kinds"] = [{"group": "example.com", "kind": f"Kind{index}"}]
        case 1:
            kind, metadata["namespace"] = "WorkloadPolicy", f"namespace-{index}"
        case _:
            spec["scope"] = "department"
            spec["namespaceSelector"] = {"matchLabels": {"department": f"number-{index}"}}
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def catalog_with(folder: Path, documents: list[dict[str, Any]]) -> Catalog:
    """The gates' catalog with further policies."""
    path = folder / f"policies-{len(documents)}.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    found, problems = load(Sources(policies=(POLICIES, str(path))))
    if found is None:
        raise SystemExit(f"bench policies do not load: {problems}")
    return found


def leaves(held: Catalog) -> int:
    """How many leaves with rules the policies of a catalog have."""
    return sum(len(level) for policy in held.policies for level in policy.body.rules.values())


def gates() -> Iterator[Gate]:
    """T11 by the number of strange policies, T1w with rules on every leaf."""
    body = review("raycluster-create")
    with TemporaryDirectory() as name:
        folder = Path(name)
        runs = {
            count: admission(body, catalog_with(folder, [stranger(n) for n in range(count)]))
            for count in COUNTS
        }
        rules = everything.rules(without=STATED, closed=False)
        wide = catalog_with(folder, [everything.policy("everything", scope="tenant", rules=rules)])
    for run in runs.values():
        run()
    settle()
    seconds: dict[int, list[float]] = {count: [] for count in COUNTS}
    for _ in range(ROUNDS):
        for count, run in runs.items():
            seconds[count].append(seconds_of(run))
    base = seconds[1]
    for count in COUNTS[1:]:
        pairs = zip(seconds[count], base, strict=True)
        figure = statistics.median(one / two for one, two in pairs)
        detail = f"{statistics.median(seconds[count]) * 1e6:.0f} µs"
        yield Gate(f"T11/{count}", f"{count} strange policies ÷ one", figure, 1.1, detail)
    figure, ours, theirs = ratio(admission(body, wide), lambda: orjson.loads(body))
    ops = operations(body, wide)
    detail = f"{leaves(wide)} leaves, {ops} operations: {ours:.0f} µs beside {theirs:.0f} µs"
    yield Gate("T1w", "admission with rules on every leaf ÷ orjson.loads", figure, 6.0, detail)
