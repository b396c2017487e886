"""What controllers make is never refused, and nobody passes for a controller."""

from __future__ import annotations

import copy
import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.expectations import lacking_in
from tests.e2e.gate import Gate, resource, text_of, wait_for
from tests.e2e.objects import Json, pods_in, version_of
from tests.e2e.workloads import WORKLOADS, Workload, pointer

pytestmark = [pytest.mark.e2e, pytest.mark.core]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)
PRIVILEGED = {"privileged": True}


@pytest.fixture
def space(gate: Gate) -> str:
    """A governed namespace of the test's own."""
    return gate.governed_namespace()


def children(gate: Gate, kind: str, space: str, owner: str, count: int = 1) -> list[Json]:
    """The objects that the owner's controller made, as soon as there are `count`."""

    def found() -> list[Json] | None:
        mine = [each for each in gate.api.items(kind, space) if owner_of(each) == owner]
        return mine if len(mine) == count else None

    complaint = f"not {count} of {kind} for {owner} in {space}: {complaints(gate, space)}"
    return wait_for(found, complaint)


def owner_of(document: Json) -> str:
    """kind/name of the controller."""
    owners = document["metadata"].get("ownerReferences", ())
    return "".join(f"{each['kind']}/{each['name']}" for each in owners if each.get("controller"))


def complaints(gate: Gate, space: str) -> list[str]:
    """What controllers could not make."""
    events = gate.api.items("Event", space)
    return [each["message"] for each in events if each["reason"].startswith("Failed")]


def assert_made_freely(gate: Gate, space: str, account: str, kind: str, count: int) -> None:
    """podgate was asked about `count` objects that this controller made, and left them alone."""
    assert not complaints(gate, space)
    user = f"system:serviceaccount:kube-system:{account}"
    asked = [
        each
        for each in gate.recorder.recordings()
        if each.request["namespace"] == space
        and each.request["userInfo"]["username"] == user
        and each.request["kind"]["kind"] == kind
        and each.request["operation"] == "CREATE"
    ]
    # The mutating webhook is not asked: the API server knows its own controllers by name.
    assert [each.stage for each in asked].count("mutate") == 0
    assert [each.stage for each in asked].count("validate") == count
    for each in asked:
        assert each.response["allowed"], each.answer
        assert "patch" not in each.response, each.answer


def assert_defaults(pods: list[Json]) -> None:
    """Every pod is as promised."""
    for pod in pods:
        for _, metadata, spec in pods_in(pod):
            assert not list(lacking_in(metadata, spec))


def test_deployment(gate: Gate, space: str) -> None:
    document = gate.manifest("deployment")
    document["spec"]["replicas"] = 3
    gate.api.create(document, space)
    (set_,) = children(gate, "ReplicaSet", space, "Deployment/web")
    pods = children(gate, "Pod", space, f"ReplicaSet/{set_['metadata']['name']}", 3)
    assert_defaults([set_, *pods])
    assert_made_freely(gate, space, "deployment-controller", "ReplicaSet", 1)
    assert_made_freely(gate, space, "replicaset-controller", "Pod", 3)


def test_job(gate: Gate, space: str) -> None:
    document = gate.manifest("job")
    document["spec"].update(parallelism=2, completions=2)
    gate.api.create(document, space)
    assert_defaults(children(gate, "Pod", space, "Job/train", 2))
    assert_made_freely(gate, space, "job-controller", "Pod", 2)


def test_cronjob_run_by_its_schedule(gate: Gate, space: str) -> None:
    document = gate.manifest("cronjob")
    document["spec"]["schedule"] = "* * * * *"
    gate.api.create(document, space)
    overdue(gate, space)
    (job,) = children(gate, "Job", space, "CronJob/nightly")
    pods = children(gate, "Pod", space, f"Job/{job['metadata']['name']}")
    assert_defaults([job, *pods])
    assert job["spec"]["backoffLimit"] == 2
    assert_made_freely(gate, space, "cronjob-controller", "Job", 1)
    assert_made_freely(gate, space, "job-controller", "Pod", 1)


def overdue(gate: Gate, space: str) -> None:
    """Have the CronJob miss a run, so that its controller makes up for it at once."""
    last = (datetime.now(UTC) - timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    patch = {"status": {"lastScheduleTime": last}}
    gate.kubectl(
        "patch",
        "cronjob/nightly",
        f"--namespace={space}",
        "--subresource=status",
        "--type=merge",
        f"--patch={json.dumps(patch)}",
    )


def test_cronjob_run_by_hand(gate: Gate, space: str) -> None:
    gate.api.create(gate.manifest("cronjob"), space)
    gate.kubectl("create", "job", "now", "--from=cronjob/nightly", f"--namespace={space}")
    pods = children(gate, "Pod", space, "Job/now")
    assert_defaults([gate.stored("Job", space, "now"), *pods])
    assert_made_freely(gate, space, "job-controller", "Pod", 1)


def test_controllers_go_on_with_what_was_there_before_podgate(gate: Gate) -> None:
    space = gate.plain_namespace()
    document = gate.manifest("deployment")
    document["spec"]["template"]["spec"]["containers"][0]["securityContext"] = PRIVILEGED
    gate.api.create(document, space)
    (set_,) = children(gate, "ReplicaSet", space, "Deployment/web")
    owner = f"ReplicaSet/{set_['metadata']['name']}"
    (first,) = children(gate, "Pod", space, owner)
    gate.govern(space)
    gate.kubectl("delete", "pod", first["metadata"]["name"], f"--namespace={space}")
    (second,) = children(gate, "Pod", space, owner)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    gate.kubectl("scale", "deployment/web", "--replicas=3", f"--namespace={space}")
    children(gate, "Pod", space, owner, 3)
    assert not complaints(gate, space)


def forged(gate: Gate, space: str) -> Json:
    """A Pod that says a ReplicaSet has made it."""
    gate.api.create(gate.manifest("deployment"), space)
    (set_,) = children(gate, "ReplicaSet", space, "Deployment/web")
    pod = gate.manifest("pod")
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": set_["metadata"]["name"],
            "uid": set_["metadata"]["uid"],
            "controller": True,
        }
    ]
    return pod


def as_alice(gate: Gate, space: str, document: Json) -> Any:
    """Create an object as somebody who may edit the namespace."""
    role = ("rolebinding", "alice", "--clusterrole=admin", "--user=alice")
    gate.kubectl("create", *role, f"--namespace={space}")
    command = ("create", "--filename=-", f"--namespace={space}")
    return gate.kubectl(*command, input=text_of(document), user="alice", check=False)


def test_forged_owner_does_not_open_the_gate(gate: Gate, space: str) -> None:
    pod = forged(gate, space)
    pod["spec"]["containers"][0]["securityContext"] = PRIVILEGED
    done = as_alice(gate, space, pod)
    assert done.returncode == 1
    place = "spec.containers[0].securityContext.privileged"
    assert f"security.privileged at {place}" in done.stderr, done.stderr
    assert gate.api.find(f"/api/v1/namespaces/{space}/pods/notebook") is None


def test_forged_owner_does_not_avoid_defaults(gate: Gate, space: str) -> None:
    done = as_alice(gate, space, forged(gate, space))
    assert done.returncode == 0, done.stderr
    (asked,) = (
        each
        for each in gate.recorder.recordings()
        if each.request["namespace"] == space
        and each.request["userInfo"]["username"] == "alice"
        and each.stage == "validate"
    )
    # The ReplicaSet's controller has one too many now, and may already have deleted it.
    assert_defaults([asked.request["object"]])


def by_account(gate: Gate, space: str, elsewhere: str, *command: str, document: Json) -> Any:
    """Send an object as a service account of the tenant's second namespace."""
    account = f"system:serviceaccount:{elsewhere}:builder"
    role = (
        "rolebinding",
        "builder",
        "--clusterrole=admin",
        f"--serviceaccount={elsewhere}:builder",
    )
    gate.kubectl("create", *role, f"--namespace={space}", check=False)
    given = (*command, "--filename=-", f"--namespace={space}", f"--as={account}")
    return gate.kubectl(*given, input=text_of(document), check=False)


def test_an_account_of_another_namespace_is_no_controller(gate: Gate, space: str) -> None:
    """Finding A4: it creates a Deployment with a forged controller reference. It gets the required
    defaults and no others, so that the Pods that come of it have them too.
    """
    elsewhere = gate.plain_namespace()
    document = gate.manifest("deployment")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "x"}
    document["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    done = by_account(gate, space, elsewhere, "create", document=document)
    assert done.returncode == 0, done.stderr
    asked = [each for each in gate.recorder.recordings() if each.request["namespace"] == space]
    last = next(each.request["object"] for each in asked if each.stage == "validate")
    container = last["spec"]["template"]["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "Always"
    assert {"name": "CLUSTER", "value": "e2e"} in container["env"]
    assert "workingDir" not in container
    assert {"name": "OMP_NUM_THREADS", "value": "4"} not in container["env"]


def test_an_operator_that_keeps_removing_what_is_required_is_counted(
    gate: Gate, space: str
) -> None:
    """An unlisted operator compares its Deployment with a template, and updates it for ever."""
    elsewhere = gate.plain_namespace()
    document = gate.manifest("deployment")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    uid = gate.api.create(config, space)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid, "controller": True}
    document["metadata"]["ownerReferences"] = [owner]
    done = by_account(gate, space, elsewhere, "create", document=document)
    assert done.returncode == 0, done.stderr
    stored, before = gate.settled("Deployment", space, "web"), rewritten(gate)
    wanted = copy.deepcopy(stored)
    del wanted["metadata"]["resourceVersion"]
    container = wanted["spec"]["template"]["spec"]["containers"][0]
    del container["imagePullPolicy"]
    container["env"] = [each for each in container["env"] if each["name"] != "CLUSTER"]
    for round_ in range(1, 4):
        done = by_account(gate, space, elsewhere, "replace", document=wanted)
        assert done.returncode == 0, done.stderr
        assert rewritten(gate) == before + round_
        time.sleep(1.1)  # within a second it would be the same request, asked about again
    assert gate.stored("Deployment", space, "web")["spec"] == stored["spec"]


def rewritten(gate: Gate) -> float:
    """The sum that podgate counts for Deployments."""
    text = gate.podgate.metrics()
    found = re.findall(r'^podgate_rewritten_updates_total\{kind="Deployment"\} (\S+)$', text, re.M)
    return sum(map(float, found))


@EVERY
def test_what_breaks_todays_rules_can_be_deleted(gate: Gate, workload: Workload) -> None:
    space = gate.plain_namespace()
    document = gate.manifest(workload.manifest)
    document["metadata"]["finalizers"] = ["example.com/hold"]
    add_privileged(document, workload)
    gate.api.create(document, space)
    gate.govern(space)
    name = f"{resource(workload.kind)}/{workload.name}"
    before = gate.settled(workload.kind, space, workload.name)
    gate.kubectl("delete", name, f"--namespace={space}", "--wait=false")
    held = gate.stored(workload.kind, space, workload.name)
    assert held["metadata"]["deletionTimestamp"]
    assert held["spec"] == before["spec"]
    assert version_of(held) != version_of(before)
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    gate.kubectl(
        "patch", name, f"--namespace={space}", "--type=json", f"--patch={json.dumps(patch)}"
    )
    wait_for(lambda: not gate.api.items(workload.kind, space), f"{name} stays in {space}")


def add_privileged(document: Json, workload: Workload) -> None:
    """Make the first container privileged."""
    found: Any = document
    for step in pointer(workload.main).split("/")[1:]:
        found = found[int(step)] if step.isdecimal() else found[step]
    found["securityContext"] = PRIVILEGED
