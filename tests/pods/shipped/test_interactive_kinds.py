"""Sandboxes, devfiles, machines and Slurm: what their pods are, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.building import request, shell
from tests.definitions import shipped
from tests.pods.shipped import interactive
from webhook.access.object import bind
from webhook.admission.request_class import classify_request
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import RequestClass
from webhook.objects.draft import Draft
from webhook.pods.coverage import find_uncovered
from webhook.pods.locate import locate
from webhook.pods.location import LocationError, PodLocation
from webhook.pods.replicas import UNLIMITED, read_scales
from webhook.sources.load import Sources, load

WORKSPACE = "devworkspace.workspace.devfile.io"
INSTANCE = "virtualmachineinstance.kubevirt.io"
MACHINES = [
    (INSTANCE, ()),
    ("virtualmachine.kubevirt.io", ("spec", "template")),
    ("virtualmachineinstancereplicaset.kubevirt.io", ("spec", "template")),
    ("virtualmachinepool.pool.kubevirt.io", ("spec", "virtualMachineTemplate", "spec", "template")),
]


def only(name: str, data: Any) -> PodLocation:
    (found,) = locate(shipped(name), data)
    return found


def images(location: PodLocation) -> list[Any]:
    return [each.get("image") for each in location.spec["containers"]]


def place(location: PodLocation, *path: Any) -> Any:
    assert location.fragments is not None
    return location.fragments.report(("spec", *path))


def test_container_components_of_a_devfile_and_of_what_it_overrides_are_one_pod() -> None:
    spec = interactive.FULL_OBJECTS[WORKSPACE]
    found = only(WORKSPACE, {"spec": spec})
    assert images(found) == ["ide"] * 4
    assert found.spec["runtimeClassName"] == "kata"
    assert found.spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    base = ("spec", "template")
    assert place(found, "containers", 0, "image") == (*base, "components", 1, "container", "image")
    assert place(found, "containers", 2, "image")[:4] == (*base, "components", 2)
    assert place(found, "containers", 3, "image")[:2] == ("spec", "contributions")
    assert place(found, "containers", 0, "securityContext", "privileged") == (
        *(*base, "components", 1, "attributes", "container-overrides"),
        *("securityContext", "privileged"),
    )


def test_a_devfile_without_containers_of_its_own_has_no_pod() -> None:
    parent = {"parent": {"kubernetes": {"name": "p"}}, "components": [{"name": "a", "volume": {}}]}
    assert locate(shipped(WORKSPACE), {"spec": {"template": parent}}) == []


def test_overrides_of_a_devfile_that_are_text_are_read_and_others_refused() -> None:
    for text, privileged in (
        ('{"securityContext": {"privileged": true}}', True),
        ("no json", None),
    ):
        tool = {**interactive.TOOL, "attributes": {"container-overrides": text}}
        data = {"spec": {"template": {"components": [tool]}}}
        if privileged is None:
            with pytest.raises(LocationError) as caught:
                locate(shipped(WORKSPACE), data)
            assert caught.value.reason == "wrong-type"
            assert caught.value.path[-2:] == ("attributes", "container-overrides")
        else:
            (container,) = only(WORKSPACE, data).spec["containers"]
            assert container["securityContext"] == {"privileged": privileged}


def test_the_library_reads_the_image_of_a_devfile() -> None:
    tool = {"template": {"components": [interactive.TOOL]}}
    bound = bind(shipped(WORKSPACE), {"spec": tool})
    assert bound.component("workspace").fragments()[""]["image"] == "ide"


@pytest.mark.parametrize(("name", "base"), MACHINES)
def test_a_machines_pod_has_its_disks_hooks_devices_and_account(
    name: str, base: tuple[str, ...]
) -> None:
    data: Any = {"metadata": {}, "spec": interactive.FULL_OBJECTS[name]}
    if name == INSTANCE:
        data["metadata"] = interactive.MACHINE_METADATA
    found = only(name, data)
    assert images(found) == [None, "disk", "kernel", "hook"]
    assert found.spec["containers"][0]["resources"]["limits"] == {"cpu": "2", "nvidia.com/gpu": 1}
    assert found.spec["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
        {"name": "host", "hostPath": {"path": "/data"}},
    ]
    assert found.spec["serviceAccountName"] == "robot"
    assert found.spec["imagePullSecrets"] == [{"name": "key"}]
    assert place(found, "containers", 1, "image") == (
        *(*base, "spec", "volumes", 0),
        *("containerDisk", "image"),
    )
    assert place(found, "containers", 3, "image") == (
        *(*base, "metadata", "annotations"),
        interactive.HOOKS,
    )
    assert find_uncovered(data, [found], shipped(name)) == []


@pytest.mark.parametrize(("name", "base"), MACHINES)
def test_a_machine_that_names_nothing_of_a_pod_is_one(name: str, base: tuple[str, ...]) -> None:
    data: Any = {"metadata": {}, "spec": {"domain": {"devices": {}}}}
    for step in reversed(base):
        data = {step: data}
    assert len(locate(shipped(name), data)) == 1


def test_hooks_of_a_machine_that_cannot_be_read_are_refused() -> None:
    for text in ("[", '{"image": "a"}', '[{"IMAGE": "a"}]', '["a"]'):
        data = {"metadata": {"annotations": {interactive.HOOKS: text}}, "spec": interactive.MACHINE}
        with pytest.raises(LocationError, match="hookSidecars"):
            locate(shipped(INSTANCE), data)


def test_a_machine_asks_for_the_memory_of_its_guest_unless_it_says_otherwise() -> None:
    domain: dict[str, Any] = {"memory": {"guest": "4Gi"}}
    for stated, wanted in ((None, "4Gi"), ("1Gi", "1Gi")):
        if stated:
            domain["resources"] = {"requests": {"memory": stated}}
        found = only(INSTANCE, {"metadata": {}, "spec": {"domain": domain}})
        assert found.spec["containers"][0]["resources"]["requests"]["memory"] == wanted


@pytest.mark.parametrize(
    ("name", "spec", "replicas", "maximum"),
    [
        ("sandbox.agents.x-k8s.io", {}, 1, None),
        ("sandbox.agents.x-k8s.io", {"operatingMode": "Suspended"}, 0, None),
        ("sandboxtemplate.extensions.agents.x-k8s.io", {}, 0, None),
        ("sandboxwarmpool.extensions.agents.x-k8s.io", {}, 1, None),
        ("sandboxwarmpool.extensions.agents.x-k8s.io", {"replicas": 3}, 3, None),
        ("virtualmachine.kubevirt.io", {"runStrategy": "Always"}, 1, None),
        ("virtualmachine.kubevirt.io", {"runStrategy": "Halted"}, 0, None),
        ("virtualmachine.kubevirt.io", {"running": False}, 0, None),
        ("virtualmachinepool.pool.kubevirt.io", {"replicas": 2}, 2, None),
        ("nodeset.slinky.slurm.net", {}, 1, None),
        ("nodeset.slinky.slurm.net", {"replicas": 4}, 4, None),
        ("nodeset.slinky.slurm.net", {"replicas": 4, "scalingMode": "DaemonSet"}, 4, UNLIMITED),
        ("controller.slinky.slurm.net", {"external": True}, 0, None),
    ],
)
def test_how_many_pods_there_are(
    name: str, spec: dict[str, Any], replicas: int, maximum: int | None
) -> None:
    (found,) = read_scales(shipped(name), {"metadata": {}, "spec": spec})
    assert (found.replicas, found.maximum) == (replicas, maximum)


SLURM = [
    ("nodeset", "slurmd", "worker"),
    ("loginset", "login", "worker"),
    ("controller", "slurmctld", "master"),
    ("restapi", "slurmrestd", "worker"),
    ("accounting", "slurmdbd", "worker"),
]


@pytest.mark.parametrize(("kind", "container", "role"), SLURM)
def test_slurm_pods_need_no_template_and_their_main_container_is_outside(
    kind: str, container: str, role: str
) -> None:
    name = f"{kind}.slinky.slurm.net"
    for spec in ({}, {"template": interactive.TEMPLATE}):
        found = only(name, {"spec": {**spec, container: interactive.CONTAINER}})
        assert found.roles == (role,)
        assert found.main.place == ("spec", container)
        assert found.spec_path == ("spec", "template", "spec")
        assert found.children == "merged"
    template = {"spec": {"containers": [{"name": "x"}, {"name": container}]}}
    assert only(name, {"spec": {"template": template}}).main.name == container


@pytest.mark.parametrize(("owner", "child"), interactive.MACHINES)
def test_machines_that_machines_make_are_judged_too(owner: str, child: str) -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    version, kind = owner.split()
    data = shell(*child.split(), json.loads(json.dumps(interactive.VM)))
    reference = {"apiVersion": version, "kind": kind, "name": "a", "uid": "b", "controller": True}
    data["metadata"]["ownerReferences"] = [reference]
    made = classify_request(request(data, user=interactive.KUBEVIRT), catalog)
    assert made is RequestClass.CHILD
    assert classify_request(request(data), catalog) is RequestClass.OWNED


ODD: list[Any] = [5, "text", [], {}, [1], '{"spec": 1}']


def places_in(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place below a node."""
    inside = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inside:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places_in(value, (*path, key))


@pytest.mark.parametrize("name", sorted(interactive.FULL_OBJECTS))
def test_an_odd_value_at_any_place_is_judged_and_breaks_nothing(name: str) -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    interface = shipped(name).interface
    spec: dict[str, Any] = interactive.FULL_OBJECTS[name]
    metadata = {"name": "a", "namespace": "team", **interactive.MACHINE_METADATA}
    version = f"{interface.group}/{interface.version}"
    for path in places_in(spec):
        for odd in ODD:
            draft = Draft({"spec": spec})
            draft.set(("spec", *path), odd)
            data = {"apiVersion": version, "kind": interface.kind, "metadata": metadata}
            decision = decide(request({**data, **draft.document}), catalog, References())
            assert isinstance(decision, (Allowed, Denied))
