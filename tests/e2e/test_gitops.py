"""GitOps tools: after the first sync there is nothing to report, and drift is found and undone."""

from __future__ import annotations

import copy
import json

import pytest

from tests.e2e.expectations import lacking
from tests.e2e.gate import Gate, resource, text_of
from tests.e2e.objects import Json, at, version_of
from tests.e2e.workloads import NEW, OLD, WORKLOADS, Workload, image_patch

pytestmark = [pytest.mark.e2e, pytest.mark.core]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)
# How each tool sends what is in Git. Argo CD applies like kubectl, or on the server's side where
# ServerSideApply is set; Flux always does the latter. Both take over what others have set.
SYNCS = {
    "argo-client-side": ("apply", "--field-manager=argocd-controller"),
    "argo-server-side": (
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=argocd-controller",
    ),
    "flux": ("apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"),
}
TOOLS = pytest.mark.parametrize("tool", SYNCS)
# What the server counts, and neither tool compares.
COUNTED = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


@pytest.fixture
def space(gate: Gate) -> str:
    """A governed namespace of the test's own."""
    return gate.governed_namespace()


def synced(gate: Gate, tool: str, document: Json, space: str) -> None:
    """One sync."""
    command = (*SYNCS[tool], "--filename=-", f"--namespace={space}")
    gate.kubectl(*command, input=text_of(document))


def predicted(gate: Gate, tool: str, document: Json, space: str) -> Json:
    """What a sync would store, by a dry run that goes through all webhooks."""
    command = (*SYNCS[tool], "--dry-run=server", "--output=json", "--filename=-")
    done = gate.kubectl(*command, f"--namespace={space}", input=text_of(document))
    return compared(json.loads(done.stdout))


def compared(document: Json) -> Json:
    """The object as the tools compare it."""
    found: Json = copy.deepcopy(document)
    found.pop("status", None)
    for key in COUNTED:
        found["metadata"].pop(key, None)
    return found


def live(gate: Gate, workload: Workload, space: str) -> Json:
    """The stored object, as kubectl shows it."""
    return gate.settled(workload.kind, space, workload.name)


@EVERY
@TOOLS
def test_after_the_first_sync_there_is_no_difference(
    gate: Gate, space: str, workload: Workload, tool: str
) -> None:
    document = gate.manifest(workload.manifest)
    synced(gate, tool, document, space)
    before = live(gate, workload, space)
    assert not lacking(before, workload.pods)
    assert predicted(gate, tool, document, space) == compared(before)
    synced(gate, tool, document, space)
    after = live(gate, workload, space)
    assert compared(after) == compared(before)
    assert version_of(after) == version_of(before)


@pytest.mark.parametrize(
    "workload",
    [each for each in WORKLOADS if each.kind in ("Deployment", "PyTorchJob", "RayCluster")],
    ids=lambda each: each.kind,
)
@TOOLS
def test_drift_is_seen_and_undone_and_defaults_stay(
    gate: Gate, space: str, workload: Workload, tool: str
) -> None:
    document = gate.manifest(workload.manifest)
    synced(gate, tool, document, space)
    first = live(gate, workload, space)
    patch = [{**image_patch(workload.main)[0][0], "value": NEW}]
    command = ("patch", f"{resource(workload.kind)}/{workload.name}", f"--namespace={space}")
    gate.kubectl(*command, "--type=json", f"--patch={json.dumps(patch)}")
    drifted = live(gate, workload, space)
    assert at(drifted, f"{workload.main}.image") == NEW
    assert predicted(gate, tool, document, space) != compared(drifted)
    synced(gate, tool, document, space)
    again = live(gate, workload, space)
    assert at(again, f"{workload.main}.image") == OLD
    assert again["spec"] == first["spec"]
    assert predicted(gate, tool, document, space) == compared(again)
