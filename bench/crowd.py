"""A cluster that is full: a thousand policies for five hundred namespaces and sixty kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from bench.api import Caller
from webhook.sources.load import Sources, load

POLICIES, NAMESPACES, KINDS, TEAMS = 1000, 500, 60, 40
GROUP = "/apis/podgate.dev/v1alpha1"
Json = dict[str, Any]


def kinds() -> list[tuple[str, str]]:
    """Group and kind of as many shipped kinds, the benchmark's own among them."""
    catalog, _ = load(Sources())
    assert catalog is not None
    own = [("apps", "Deployment"), ("ray.io", "RayCluster")]
    return [*own, *(key for key in sorted(catalog.definitions) if key not in own)][:KINDS]


def namespaces() -> Iterator[Json]:
    """Namespaces, each of a team."""
    for number in range(NAMESPACES):
        labels = {"podgate.dev/governed": "true", "team": f"team-{number % TEAMS}"}
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": f"crowd-{number}", "labels": labels},
        }


def policies() -> Iterator[Json]:
    """One for each namespace, one for each team, and the rest for some kinds each."""
    for number in range(NAMESPACES):
        yield policy(f"own-{number}", number, namespace=f"crowd-{number}")
    for number in range(TEAMS):
        selector = {"matchLabels": {"team": f"team-{number}"}}
        yield policy(f"team-{number}", number, scope="department", namespaceSelector=selector)
    named = kinds()
    for number in range(POLICIES - NAMESPACES - TEAMS):
        group, kind = named[number % len(named)]
        selector = {"matchLabels": {"project": f"number-{number}"}}
        own = {} if number < len(named) else {"namespaceSelector": selector}
        yield policy(f"kind-{number}", number, kinds=[{"group": group, "kind": kind}], **own)


def policy(name: str, number: int, namespace: str = "", **spec: Any) -> Json:
    """A policy with two defaults and four rules that agrees with all others."""
    spec["defaults"] = {"security": {"runAsGid": 2000 + number}, "imagePullPolicy": "IfNotPresent"}
    spec["rules"] = {
        "compute": {"cpuCoreRequest": {"max": 64 + number % 5}, "cpuMemoryRequest": {"max": "1Ti"}},
        "image": {"required": True},
        "security": {"runAsGid": {"min": 1000}},
    }
    if not namespace and "scope" not in spec and "namespaceSelector" not in spec:
        del spec["defaults"]  # two of one scope for one kind must not contradict each other
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "WorkloadPolicy" if namespace else "ClusterWorkloadPolicy"
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def place(body: Json) -> str:
    """The collection that an object belongs to."""
    version, kind = body["apiVersion"], body["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def fill(call: Caller, bodies: Iterable[Json]) -> None:
    """Create objects, several at once."""

    def create(body: Json) -> None:
        status, answer = call("POST", place(body), orjson.dumps(body))
        assert status == 201, answer[:500]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, bodies))
