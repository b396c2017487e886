"""Every kind through everything that people do with kubectl."""

from __future__ import annotations

import json

import pytest

from tests.e2e.expectations import lacking
from tests.e2e.gate import MANIFESTS, Gate, resource
from tests.e2e.objects import Json, at, essence, pods_in, version_of
from tests.e2e.workloads import NEW, WORKLOADS, Workload, pointer

pytestmark = [pytest.mark.e2e, pytest.mark.core]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)
WRITES = {
    "create": ("create",),
    "apply": ("apply",),
    "server-side": ("apply", "--server-side", "--field-manager=tests"),
}
EVIL = "registry.example.com/evil/miner:1"


@pytest.fixture
def space(gate: Gate) -> str:
    """A governed namespace of the test's own."""
    return gate.governed_namespace()


def file_of(workload: Workload) -> str:
    """The manifest's path."""
    return f"--filename={MANIFESTS / workload.manifest}.yaml"


def created(gate: Gate, workload: Workload, space: str, how: str = "create") -> Json:
    """The object once it is stored and left alone."""
    gate.kubectl(*WRITES[how], file_of(workload), f"--namespace={space}")
    return gate.settled(workload.kind, space, workload.name)


def named(workload: Workload) -> str:
    """kind/name."""
    return f"{resource(workload.kind)}/{workload.name}"


def assert_complete(workload: Workload, stored: Json) -> None:
    """Everything promised is there, at every place."""
    assert not lacking(stored, workload.pods)
    for place, value in workload.fields.items():
        assert at(stored, place) == value, place


def assert_no_rollout(gate: Gate, space: str, before: Json, after: Json) -> None:
    """Nobody makes pods anew for what was written."""
    if before["kind"] == "Deployment":
        # Its generation counts changes of annotations too, of the revision for one.
        assert len(gate.api.items("ReplicaSet", space)) == 1
    else:
        assert version_of(after)[1] == version_of(before)[1]


@EVERY
@pytest.mark.parametrize("how", WRITES)
def test_stored_object_carries_every_default(
    gate: Gate, space: str, workload: Workload, how: str
) -> None:
    assert_complete(workload, created(gate, workload, space, how))


@EVERY
@pytest.mark.parametrize("how", ["apply", "server-side"])
def test_applying_again_changes_nothing(
    gate: Gate, space: str, workload: Workload, how: str
) -> None:
    before = created(gate, workload, space, how)
    diff = gate.kubectl("diff", *WRITES[how][1:], file_of(workload), f"--namespace={space}")
    assert diff.stdout == ""
    told = gate.kubectl(*WRITES[how], file_of(workload), f"--namespace={space}", "--output=name")
    assert told.returncode == 0
    after = gate.stored(workload.kind, space, workload.name)
    assert essence(after) == essence(before)
    assert version_of(after) == version_of(before)


@EVERY
def test_changing_from_one_apply_to_the_other_keeps_pods(
    gate: Gate, space: str, workload: Workload
) -> None:
    before = created(gate, workload, space, "apply")
    gate.kubectl(*WRITES["server-side"], "--force-conflicts", file_of(workload), f"-n={space}")
    after = gate.settled(workload.kind, space, workload.name)
    assert essence(after) == essence(before)
    assert_no_rollout(gate, space, before, after)


@EVERY
def test_edit(gate: Gate, space: str, workload: Workload) -> None:
    before = created(gate, workload, space)
    script, place, value = workload.edit
    done = gate.edit(script, workload.kind, workload.name, space)
    assert done.returncode == 0, done.stderr
    after = gate.stored(workload.kind, space, workload.name)
    assert at(after, place) == value
    assert version_of(after)[1] == version_of(before)[1] + 1
    assert_complete(workload, after)


@EVERY
@pytest.mark.parametrize("type_", ["strategic", "merge", "json"])
def test_patch(gate: Gate, space: str, workload: Workload, type_: str) -> None:
    if type_ not in workload.patches:
        pytest.skip("custom resources have no strategic merge")
    created(gate, workload, space)
    patch, place, value = workload.patches[type_]
    gate.kubectl(
        "patch",
        named(workload),
        f"--namespace={space}",
        f"--type={type_}",
        f"--patch={json.dumps(patch)}",
    )
    after = gate.stored(workload.kind, space, workload.name)
    assert at(after, place) == value
    assert_complete(workload, after)


@EVERY
def test_patch_that_breaks_a_rule_is_refused(gate: Gate, space: str, workload: Workload) -> None:
    before = created(gate, workload, space)
    place = f"{workload.main}.securityContext"
    patch = [{"op": "add", "path": pointer(place), "value": {"privileged": True}}]
    done = gate.kubectl(
        "patch",
        named(workload),
        f"--namespace={space}",
        "--type=json",
        f"--patch={json.dumps(patch)}",
        check=False,
    )
    assert done.returncode == 1
    assert "security.privileged at " in done.stderr, done.stderr
    assert "system policy system" in done.stderr, done.stderr
    assert version_of(gate.stored(workload.kind, space, workload.name)) == version_of(before)


@EVERY
def test_removing_a_default_brings_it_back(gate: Gate, space: str, workload: Workload) -> None:
    before = created(gate, workload, space)
    spec = workload.main.rpartition(".containers")[0]
    patch = [{"op": "remove", "path": pointer(f"{spec}.nodeSelector")}]
    gate.kubectl(
        "patch",
        named(workload),
        f"--namespace={space}",
        "--type=json",
        f"--patch={json.dumps(patch)}",
    )
    after = gate.stored(workload.kind, space, workload.name)
    assert essence(after) == essence(before)
    assert version_of(after)[1] == version_of(before)[1]


@EVERY
def test_set_image(gate: Gate, space: str, workload: Workload) -> None:
    if not workload.built_in:
        pytest.skip("kubectl set image does not know custom resources")
    before = created(gate, workload, space)
    command = ("set", "image", named(workload), f"--namespace={space}")
    refused = gate.kubectl(*command, f"main={EVIL}", check=False)
    assert refused.returncode == 1
    text = f'image at {display(workload.main)}.image: "{EVIL}" is not in the list'
    assert text in refused.stderr, refused.stderr
    assert version_of(gate.stored(workload.kind, space, workload.name)) == version_of(before)
    if workload.images:
        gate.kubectl(*command, f"main={NEW}")
        after = gate.stored(workload.kind, space, workload.name)
        assert at(after, f"{workload.main}.image") == NEW
        assert version_of(after)[1] == version_of(before)[1] + 1
        assert_complete(workload, after)


def display(place: str) -> str:
    """A dotted place as messages show it."""
    steps = place.split(".")
    return "".join(f"[{x}]" if x.isdecimal() else f".{x}" for x in steps).removeprefix(".")


@EVERY
def test_dry_run_stores_nothing(gate: Gate, space: str, workload: Workload) -> None:
    for how in WRITES.values():
        told = gate.kubectl(
            *how, file_of(workload), f"-n={space}", "--dry-run=server", "--output=json"
        )
        assert_complete(workload, json.loads(told.stdout))
        assert not gate.api.items(workload.kind, space)


@EVERY
def test_diff_shows_defaults(gate: Gate, space: str, workload: Workload) -> None:
    done = gate.kubectl("diff", file_of(workload), f"--namespace={space}", check=False)
    assert done.returncode == 1, done.stderr
    added = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("+")]
    for line in ("workingDir: /workspace", "run.ai/type: cpu", "value: e2e", "memory: 256Mi"):
        assert line in added, done.stdout
    assert not gate.api.items(workload.kind, space)


@EVERY
def test_replace(gate: Gate, space: str, workload: Workload) -> None:
    if not workload.replaceable:
        pytest.skip("the API server does not take a raw manifest back for this kind")
    before = created(gate, workload, space)
    gate.kubectl("replace", file_of(workload), f"--namespace={space}")
    after = gate.settled(workload.kind, space, workload.name)
    assert essence(after) == essence(before)
    assert_no_rollout(gate, space, before, after)


@pytest.mark.parametrize("name", ["deployment", "pytorchjob"])
def test_scale(gate: Gate, space: str, name: str) -> None:
    workload = next(each for each in WORKLOADS if each.manifest == name)
    before = created(gate, workload, space)
    command = ("scale", named(workload), f"--namespace={space}")
    gate.kubectl(*command, "--replicas=3")
    after = gate.stored(workload.kind, space, workload.name)
    place = {
        "deployment": "spec.replicas",
        "pytorchjob": "spec.pytorchReplicaSpecs.Worker.replicas",
    }[name]
    assert at(after, place) == 3
    assert version_of(after)[1] == version_of(before)[1] + 1
    assert list(pods_in(after)) == list(pods_in(before))
    refused = gate.kubectl(*command, "--replicas=6", check=False)
    assert refused.returncode == 1
    text = "scale.replicas at spec.replicas: 6 is more than the maximum 5 (cluster policy platform)"
    assert text in refused.stderr, refused.stderr
    if name == "pytorchjob":
        assert "numWorkers at spec.replicas: 6 is more than the maximum 4" in refused.stderr
    assert at(gate.stored(workload.kind, space, workload.name), place) == 3


def test_rollout_restart(gate: Gate, space: str) -> None:
    workload = next(each for each in WORKLOADS if each.kind == "Deployment")
    before = created(gate, workload, space)
    gate.kubectl("rollout", "restart", named(workload), f"--namespace={space}")
    after = gate.stored(workload.kind, space, workload.name)
    assert version_of(after)[1] == version_of(before)[1] + 1
    notes = after["spec"]["template"]["metadata"].pop("annotations")
    assert list(notes) == ["kubectl.kubernetes.io/restartedAt"]
    assert list(pods_in(after)) == list(pods_in(before))
