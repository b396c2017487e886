"""Policies change while workloads live."""

from __future__ import annotations

import json

import pytest

from tests.e2e.api import StatusError
from tests.e2e.gate import Done, Gate, resource, text_of
from tests.e2e.objects import Json, at, pods_in, version_of
from tests.e2e.workloads import NEW, OLD, WORKLOADS, Workload, image_patch

pytestmark = [pytest.mark.e2e, pytest.mark.core]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)
CHANGEABLE = pytest.mark.parametrize(
    "workload",
    [
        each
        for each in WORKLOADS
        if each.kind in ("Deployment", "CronJob", "PyTorchJob", "RayCluster")
    ],
    ids=lambda each: each.kind,
)
SPACE = "live"
HOWS = pytest.mark.parametrize("how", ["apply", "server-side"])
WRITES = {"apply": ("apply",), "server-side": ("apply", "--server-side")}
POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: WorkloadPolicy
metadata:
  name: live
  namespace: live
spec:
  defaults:
    environmentVariables:
      instances:
        - {{name: CLUSTER, value: {cluster}}}
    compute:
      cpuCoreRequest: {default}
  rules:
    image:
      options: {images}
    compute:
      cpuCoreRequest:
        max: {most}
"""
# These ways of applying send lists of containers whole, without the defaults in them.
ATOMIC = (("PyTorchJob", "apply"), ("RayCluster", "apply"), ("RayCluster", "server-side"))
PROXY = "registry.example.com/base/proxy:1"


def options(*images: str) -> str:
    """A list of options."""
    return json.dumps([{"value": image} for image in images])


TIGHT = POLICY.format(cluster="later", default=0.1, most=0.2, images=options(OLD, PROXY))
LOOSE = POLICY.format(cluster="latest", default=1, most=8, images=options(OLD, NEW, PROXY))
Stored = dict[tuple[str, str], Json]


@pytest.fixture(scope="module")
def first(gate: Gate) -> Stored:
    """Every kind, applied in both ways, as it was stored under the first policy."""
    found = {}
    for how in WRITES:
        for workload in WORKLOADS:
            reapply(gate, workload, how)
    for how in WRITES:
        for workload in WORKLOADS:
            found[workload.kind, how] = gate.settled(workload.kind, SPACE, name_of(workload, how))
    return found


@pytest.fixture(scope="module")
def tightened(gate: Gate, first: Stored) -> Stored:
    """The same, after the policy allows less than they have."""
    gate.podgate.rewrite("live.yaml", TIGHT)
    return first


@pytest.fixture(scope="module")
def loosened(gate: Gate, tightened: Stored) -> Stored:
    """The same, after the policy allows more than ever."""
    gate.podgate.rewrite("live.yaml", LOOSE)
    return tightened


def name_of(workload: Workload, how: str) -> str:
    """The object's name."""
    return f"{workload.name}-{how}"


def reapply(gate: Gate, workload: Workload, how: str) -> Done:
    """Apply the manifest as it is, but for the name."""
    document = gate.manifest(workload.manifest)
    document["metadata"]["name"] = name_of(workload, how)
    command = (*WRITES[how], "--filename=-", f"--namespace={SPACE}")
    return gate.kubectl(*command, input=text_of(document))


def change_image(gate: Gate, workload: Workload, image: str) -> Done:
    """Give the first container another image."""
    patch = [{**image_patch(workload.main)[0][0], "value": image}]
    return gate.kubectl(
        "patch",
        resource(workload.kind),
        name_of(workload, "apply"),
        f"--namespace={SPACE}",
        "--type=json",
        f"--patch={json.dumps(patch)}",
        check=False,
    )


def variables(stored: Json, workload: Workload) -> dict[str, str]:
    """The variables of the first container."""
    return {each["name"]: each["value"] for each in at(stored, f"{workload.main}.env")}


def assert_as_before(gate: Gate, workload: Workload, how: str, before: Json) -> None:
    """Nothing but metadata differs, and no rollout began."""
    after = gate.stored(workload.kind, SPACE, name_of(workload, how))
    assert after["spec"] == before["spec"]
    assert version_of(after)[1] == version_of(before)[1]


@EVERY
@HOWS
def test_first_policy_holds(first: Stored, workload: Workload, how: str) -> None:
    stored = first[workload.kind, how]
    assert variables(stored, workload)["CLUSTER"] == "e2e"
    assert at(stored, f"{workload.main}.resources.requests.cpu") == "250m"


@EVERY
def test_new_policy_holds_for_new_objects(
    gate: Gate, tightened: Stored, workload: Workload
) -> None:
    document = gate.manifest(workload.manifest)
    document["metadata"]["name"] = "other"
    assert tightened
    if workload.kind == "RayCluster":
        with pytest.raises(StatusError, match=r"2 is more than the maximum 0\.2"):
            gate.api.create(document, SPACE, dry_run=True)
        return
    made = gate.api.create(document, SPACE, dry_run=True)
    assert variables(made, workload)["CLUSTER"] == "later"
    assert at(made, f"{workload.main}.resources.requests.cpu") == "100m"


@EVERY
@HOWS
def test_applying_again_under_a_tightened_policy_changes_nothing(
    gate: Gate,
    tightened: Stored,
    workload: Workload,
    how: str,
) -> None:
    reapply(gate, workload, how)
    if (workload.kind, how) in ATOMIC:
        # A list that is sent whole lacks the defaults. An old one that breaks today's rules is not
        # brought back (semantics §6): today's default is written in its place.
        stored = gate.stored(workload.kind, SPACE, name_of(workload, how))
        text = json.dumps([spec for _, _, spec in pods_in(stored)])
        assert '"cpu": "100m"' in text, text
        return
    assert_as_before(gate, workload, how, tightened[workload.kind, how])


@EVERY
def test_labels_under_a_tightened_policy_change_nothing_else(
    gate: Gate, tightened: Stored, workload: Workload
) -> None:
    name = name_of(workload, "apply")
    kind = resource(workload.kind)
    assert tightened
    before = gate.stored(workload.kind, SPACE, name)
    gate.kubectl("label", kind, name, "example.com/tier=a", f"--namespace={SPACE}")
    stored = gate.stored(workload.kind, SPACE, name)
    assert stored["metadata"]["labels"]["example.com/tier"] == "a"
    assert_as_before(gate, workload, "apply", before)


def test_no_rollout_began(gate: Gate, tightened: Stored) -> None:
    assert tightened
    assert len(gate.api.items("ReplicaSet", SPACE)) == len(WRITES)


@CHANGEABLE
def test_change_under_a_tightened_policy_gets_todays_rules(
    gate: Gate, tightened: Stored, workload: Workload
) -> None:
    assert tightened
    before = gate.stored(workload.kind, SPACE, name_of(workload, "apply"))
    done = change_image(gate, workload, NEW)
    assert done.returncode == 1, done.stdout
    assert f'"{NEW}" is not in the list' in done.stderr, done.stderr
    assert "(project policy live/live)" in done.stderr, done.stderr
    assert_as_before(gate, workload, "apply", before)


@CHANGEABLE
def test_change_under_a_loosened_policy_passes(
    gate: Gate, loosened: Stored, workload: Workload
) -> None:
    assert loosened
    before = gate.stored(workload.kind, SPACE, name_of(workload, "apply"))
    done = change_image(gate, workload, NEW)
    assert done.returncode == 0, done.stderr
    stored = gate.stored(workload.kind, SPACE, name_of(workload, "apply"))
    assert at(before, f"{workload.main}.image") == OLD
    assert at(stored, f"{workload.main}.image") == NEW
    # What the object has by now, it keeps: a default is for what is missing.
    assert variables(stored, workload) == variables(before, workload)
    assert at(stored, f"{workload.main}.resources") == at(before, f"{workload.main}.resources")
    assert version_of(stored)[1] == version_of(before)[1] + 1
