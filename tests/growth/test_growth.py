"""The work of both passes grows with an object at most as n log n, whatever list or map grows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.growth import measure, policies, shapes
from tests.growth.counting import counted, lines
from webhook.catalog.catalog import Catalog
from webhook.evaluation.request import ObjectRead, Overdue, Stage

TIMES = 4
MOST = 4.3
"""Four times the entries are at most so many times the work; sorting makes it more than four."""
SIZE, PARTS, ALL = 20, 8, 4
MAKER = "system:serviceaccount:kube-system:replicaset-controller"
CHANGES = ("created", "altered", "emptied")
ALL_KINDS = ("Pod", "StatefulSet", "RayCluster", "PyTorchJob", "JobSet", "Workflow", "AppWrapper")


def work(catalog: Catalog, kind: str, shape: str, size: int, change: str) -> int:
    """What both passes over one change take."""
    body, small = shapes.grown(kind, shape, size), shapes.grown(kind, shape, 1)
    now, old = measure.changed(body, small, change)
    now, old = counted(now), counted(old)
    return lines(lambda: list(measure.passes(catalog, now, old)))


def growth(catalog: Catalog, kind: str, shape: str, size: int, change: str) -> float:
    """How many times the work it is to have `TIMES` as many entries."""
    work(catalog, kind, shape, 1, change)  # plans are compiled, and what is cached is cached
    few = work(catalog, kind, shape, size, change)
    return work(catalog, kind, shape, size * TIMES, change) / few


def steep(names: tuple[str, ...], kind: str, shape: str, size: int) -> Iterator[str]:
    """Each change of such an object that takes more than it may."""
    for name in names:
        for change in CHANGES:
            found = growth(policies.catalogs()[name], kind, shape, size, change)
            if found > MOST:
                yield f"{name}, {change}: {found:.2f} times"


@pytest.mark.parametrize("shape", [*shapes.POD, *shapes.OBJECT])
def test_each_list_and_map_of_a_workload(shape: str) -> None:
    assert not list(steep(("rules", "items"), "Deployment", shape, SIZE))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_all_lists_of_a_kind_together(kind: str) -> None:
    """What one list costs for each entry of another shows only where both grow."""
    assert not list(steep(("rules", "injected"), kind, "everything", ALL))


@pytest.mark.parametrize("name", ["defaults", "items", "strict"])
def test_all_lists_together_under_each_policy(name: str) -> None:
    assert not list(steep((name,), "Deployment", "everything", ALL))


@pytest.mark.parametrize(
    ("shape", "kind"), [(name, kind) for name, (kind, _) in shapes.PARTS.items()]
)
def test_lists_of_pods_and_of_wrapped_objects(shape: str, kind: str) -> None:
    assert not list(steep(("rules", "items"), kind, shape, PARTS))


def compared(catalog: Catalog, shape: str, size: int) -> int:
    """What it takes to compare a Pod, which OpenShift completed, with its owner."""
    pod = shapes.grown("Pod", shape, size)
    template = {"metadata": {}, "spec": copy.deepcopy(pod["spec"])}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "r"}}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r"}
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    pod["metadata"].setdefault("annotations", {})["openshift.io/scc"] = "restricted-v2"
    path = "/apis/apps/v1/namespaces/team/replicasets/web"
    read = ObjectRead(counted({**owner, "spec": {"template": template}}))
    request = measure.request_of(counted(pod), None, Stage.VALIDATE)
    request = replace(request, user=MAKER, objects={path: read})
    decision: Any = None

    def decide() -> None:
        nonlocal decision
        decision = measure.decide(catalog, request)

    found = lines(decide)
    assert getattr(decision, "needs", None) is None
    return found


@pytest.mark.parametrize("shape", [*shapes.POD, "everything"])
def test_what_a_controller_made_beside_its_owner(shape: str) -> None:
    size = ALL if shape == "everything" else SIZE
    catalog = policies.catalogs()["rules"]
    compared(catalog, shape, 1)
    assert compared(catalog, shape, size * TIMES) / compared(catalog, shape, size) < MOST


POLICIES = (
    "env",
    "labels",
    "tolerations",
    "host paths",
    "host paths of the policy",
    "capabilities",
)


@cache
def catalog_with(make: Callable[[int], Mapping[str, Any]], size: int) -> Catalog:
    """The catalog of a policy of a size; every shape is counted under the same ones."""
    return policies.catalog_of(make(size))


@pytest.mark.parametrize("shape", POLICIES)
@pytest.mark.parametrize("change", ["created", "altered"])
def test_policies_with_many_items_and_options_beside_long_lists(shape: str, change: str) -> None:
    """Both grow alike: what each item of a user costs for each of the policy's would be n * n."""
    for make in (policies.items, policies.options):
        small, large = catalog_with(make, SIZE), catalog_with(make, SIZE * TIMES)
        work(small, "Deployment", shape, 1, change)
        work(large, "Deployment", shape, 1, change)
        few = work(small, "Deployment", shape, SIZE, change)
        assert work(large, "Deployment", shape, SIZE * TIMES, change) / few < MOST, make.__name__


def test_a_scan_for_each_entry_would_be_noticed() -> None:
    """The count sees a loop in a loop, and one that Python hides in a comparison of lists."""
    held = counted([f"a{index}" for index in range(200)])
    asked = counted([f"a{index}" for index in range(200)])

    def hidden(size: int) -> int:
        return lines(lambda: [each in held[:size] for each in asked[:size]])

    def plain(size: int) -> int:
        return lines(lambda: [one for one in held[:size] for other in asked[:size]])

    assert hidden(200) / hidden(50) > 10
    assert plain(200) / plain(50) > 10


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        ("tolerations", 19_999),
        ("host paths", 2_857),
        ("capabilities", 19_999),
        ("expressions", 9_999),
        ("headers", 19_999),
        ("node selector", 19_999 + 64),
        ("pod labels", 19_998 + 16),
        ("pod annotations", 19_999 + 16),
        ("limits", 4_019),
    ],
)
def test_the_lists_and_maps_of_one_object_have_a_budget(shape: str, most: int) -> None:
    """A volume and its mount count seven. The container itself is an entry too.

    The first keys of a map count nothing, an expression has a list of its own, and a name of a
    resource counts four beside its key.
    """
    catalog = policies.catalogs()["defaults"]
    for size, refused in ((most, False), (most + 1, True)):
        request = measure.request_of(shapes.grown("Pod", shape, size), None, Stage.VALIDATE)
        decision = measure.decide(catalog, request)
        told = [each.reason for each in getattr(decision, "violations", ())]
        assert ("too-many-entries" in told) is refused


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Workflow"])
def test_an_old_object_beyond_the_budget_is_not_compared(kind: str) -> None:
    """It may be made smaller, with as little work as a new one."""
    catalog = policies.catalogs()["rules"]
    small = shapes.grown(kind, "limits", 1)
    work(catalog, kind, "limits", 1, "created")

    def made_smaller(size: int) -> int:
        old = shapes.grown(kind, "limits", size)
        return lines(lambda: list(measure.passes(catalog, small, old)))

    few, many = made_smaller(1), made_smaller(30_000)
    assert many < 2 * few + 20 * 30_000


def test_work_can_be_called_off_between_any_two_fields() -> None:
    """The longest stretch between two questions is a small part of the whole."""
    body = shapes.grown("Deployment", "everything", 20)
    catalog, asked = policies.catalogs()["rules"], 0

    def go_on() -> None:
        nonlocal asked
        asked += 1

    request = measure.request_of(body, None, Stage.MUTATE, go_on)
    measure.decide(catalog, request)
    assert asked > 100

    left = asked // 2

    def give_up() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Overdue

    request = measure.request_of(body, None, Stage.MUTATE, give_up)
    with pytest.raises(Overdue):
        measure.decide(catalog, request)
    assert left == -1
