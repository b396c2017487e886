"""Gates inside one process: a whole admission beside decoding the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from bench.objects import ray_cluster
from bench.timing import Gate, ratio, seconds_of, settle
from webhook.admission.judge import decide_review
from webhook.admission.review import ReviewFault, parse_review, respond
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.pods.coverage import find_uncovered
from webhook.pods.locate import locate
from webhook.sources.load import Sources, load

HERE = Path(__file__).resolve().parent
POLICIES = str(HERE / "policies" / "gates.yaml")


def catalog() -> Catalog:
    """The catalog of the gates."""
    found, problems = load(Sources(policies=(POLICIES,)))
    if found is None:
        raise SystemExit(f"bench policies do not load: {problems}")
    return found


def review(name: str) -> bytes:
    """A recorded review's bytes, compact as the API server sends them."""
    return orjson.dumps(orjson.loads((HERE / "data" / f"{name}.json").read_bytes()))


def admission(body: bytes, held: Catalog) -> Callable[[], bytes]:
    """Bytes of a review in, bytes of the answer out."""
    references = References()

    def admit() -> bytes:
        request = parse_review(body, Stage.MUTATE)
        assert not isinstance(request, ReviewFault)
        return respond(request, decide_review(request, held, references))

    return admit


def operations(body: bytes, held: Catalog) -> int:
    """How many patch operations the admission answers with."""
    request = parse_review(body, Stage.MUTATE)
    assert not isinstance(request, ReviewFault)
    decision = decide_review(request, held, References())
    assert isinstance(decision, Allowed), decision
    return len(decision.patch)


def grown(body: bytes, groups: int) -> bytes:
    """The recorded RayCluster review with more worker groups."""
    data: dict[str, Any] = orjson.loads(body)
    spec = ray_cluster(groups)["spec"]
    data["request"]["object"]["spec"] = spec
    annotations = data["request"]["object"]["metadata"]["annotations"]
    for key in annotations:
        annotations[key] = json.dumps({"spec": spec}, separators=(",", ":"))
    return orjson.dumps(data)


def gates() -> Iterator[Gate]:
    """T1, T1u, T1b, T5, T6."""
    held = catalog()
    bodies = {
        name: review(name)
        for name in ("raycluster-create", "raycluster-update", "deployment-create")
    }
    for body in bodies.values():
        admission(body, held)()
    settle()
    create = bodies["raycluster-create"]
    for name, body, limit in (
        ("T1", create, 6.0),
        ("T1u", bodies["raycluster-update"], 9.0),
        ("T1b", bodies["deployment-create"], 5.5),
    ):
        figure, ours, theirs = ratio(admission(body, held), lambda body=body: orjson.loads(body))
        ops = operations(body, held)
        detail = (
            f"{len(body) / 1000:.0f} KB, {ops} operations: {ours:.0f} µs beside {theirs:.0f} µs"
        )
        yield Gate(name, "admission ÷ orjson.loads of its bytes", figure, limit, detail)
    yield from path_gates(create, held)


def path_gates(create: bytes, held: Catalog) -> Iterator[Gate]:
    """T5 path finding, T6 linearity."""
    document = orjson.loads(create)["request"]["object"]
    definition = held.definition("ray.io", "RayCluster", "v1")
    assert definition is not None
    whole = admission(create, held)
    share, ours, _ = ratio(lambda: locate(definition, document), whole)
    yield Gate("T5", "finding the pods ÷ whole admission", share, 0.03, f"{ours:.1f} µs")
    found = locate(definition, document)
    share, ours, _ = ratio(
        lambda: find_uncovered(document, locate(definition, document), definition), whole
    )
    detail = f"{ours:.1f} µs for {len(found)} pods, by the profile"
    yield Gate("T5c", "the same and searching for others ÷ whole admission", share, 0.03, detail)
    large = grown(create, 62)
    small_seconds, large_seconds = seconds_of(whole, 1.0), seconds_of(admission(large, held), 1.0)
    figure = (large_seconds / len(large)) / (small_seconds / len(create))
    detail = f"{len(large) / 1000:.0f} KB beside {len(create) / 1000:.0f} KB"
    yield Gate("T6", "µs per KB, large ÷ small", figure, 1.5, detail)
