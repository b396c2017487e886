"""Every field of the policy language on every kind, at a real API server that stores what it gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import everything
from tests.e2e import whole as w
from tests.e2e.api import StatusError
from tests.e2e.gate import Gate, text_of
from tests.e2e.objects import Json, essence, version_of
from tests.e2e.persistence import lost, patched
from tests.e2e.served import offline
from tests.e2e.test_twin import in_cluster, in_order
from tests.e2e.test_zz_replay import answer, generation_of
from tests.e2e.testbed import releases
from webhook.catalog.build import Choices
from webhook.policy.row import NOTHING
from webhook.policy.table import TABLE
from webhook.sources.load import Sources, load

pytestmark = pytest.mark.e2e

MANIFESTS = {each.file.stem: each for each in w.EVERY_KIND}
EVERY = pytest.mark.parametrize("name", MANIFESTS)
WAYS = {w.CLIENT: (), w.SERVER: ("--server-side",)}
OPERATOR = "system:serviceaccount:nim-operator:k8s-nim-operator"
# A pod has its GPUs in one form.
BY_PORTION = {"compute.gpuPortionRequest", "compute.gpuPortionLimit"}
OTHER_FORMS = {"compute.gpuMemoryRequest", "compute.gpuMemoryLimit", "compute.migProfile"}
UNWRITTEN_BY = {
    w.CLIENT: OTHER_FORMS | {"compute.gpuDevicesRequest"},
    w.SERVER: OTHER_FORMS | BY_PORTION,
}
UNWRITTEN = {
    # What absence means already; of three modes only one can be true; what the kind itself says.
    "security.privileged",
    "security.procMount",
    "security.uidGidSource",
    "modelStore.pvc.claimInfo.accessModes.readOnlyMany",
    "modelStore.pvc.claimInfo.accessModes.readWriteMany",
    "distributedFramework",
    # It goes with the type Localhost alone, and another type is the default here.
    "security.appArmorProfile.localhostProfile",
    # The CRD of NIMService requires the user to name it.
    "ngcAuthSecret",
}
# Claims and ComputeDomains have them, which are no workloads.
OF_DEVICES = {row.path for row in TABLE.fields.values() if row.section == "devices"}
# What broken.yaml breaks, in the order of places.
BROKEN = (
    "category",
    "priorityClass",
    "numWorkers",
    "scale.replicas",
    "restartPolicy",
    "annotations",
    "nodePools",
    "labels",
    "total.gpuDevices",
    "args",
    "command",
    "environmentVariables",
    "image",
    "imagePullPolicy",
    "ports",
    "probes.readiness.periodSeconds",
    "compute.cpuCoreLimit",
    "compute.extendedResources",
    "compute.cpuMemoryLimit",
    "compute.gpuDevicesRequest",
    "compute.cpuCoreRequest",
    "compute.cpuMemoryRequest",
    "security.capabilities",
    "security.privileged",
    "security.privileged",
    "security.runAsGid",
    "security.runAsNonRoot",
    "security.runAsUid",
    "security.seccompProfileType",
    "stdin",
    "tty",
    "storage.hostPath.mountPath",
    "workingDir",
    "security.hostIpc",
    "security.hostNetwork",
    "security.hostPid",
    "nodeType",
    "scheduling.schedulerName",
    "security.supplementalGroups",
    "security.serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "storage.hostPath",
    "storage.hostPath.path",
    "storage.hostPath.name",
    "backoffLimit",
    "cleanPodPolicy",
    "autoDeletionTimeAfterCompletionSeconds",
)


@dataclass(frozen=True, slots=True)
class Story:
    """What came of applying all manifests in one way, applying them again, and a label."""

    space: str
    told: str
    first: dict[str, Json]
    difference: str
    second: dict[str, Json]
    labelled: dict[str, Json]


@pytest.fixture(scope="module")
def whole(
    gate: Gate, upstream_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[w.Whole]:
    """podgate with a policy on every field, asked about namespaces of its own."""
    crds = [upstream_data / "crds" / f"{name}.yaml" for name in w.CRDS]
    with w.running(gate, tmp_path_factory.mktemp("whole"), crds) as whole:
        yield whole


@pytest.fixture(scope="module", params=WAYS)
def story(request: pytest.FixtureRequest, whole: w.Whole) -> Story:
    """All kinds at once, as each call of kubectl takes its time."""
    space = str(request.param)
    given = (*WAYS[space], f"--filename={w.HERE / 'kinds'}", f"--namespace={space}")
    told = whole.gate.kubectl("apply", *given, check=False)
    first = whole.settled(space)
    difference = whole.gate.kubectl("diff", *given, check=False)
    told_again = whole.gate.kubectl("apply", *given, check=False)
    second = whole.settled(space)
    label = ("label", *given[-2:], "example.com/reviewed=yes")
    labelled = whole.gate.kubectl(*label, check=False)
    said = f"{told.stderr}\n{told_again.stderr}\n{labelled.stderr}"
    assert difference.returncode in (0, 1), difference.stderr
    return Story(space, said, first, difference.stdout, second, whole.settled(space))


@EVERY
def test_server_takes_and_keeps_every_default(whole: w.Whole, story: Story, name: str) -> None:
    assert name in story.first, story.told
    reviews = whole.creations(story.space, MANIFESTS[name])
    assert "patch" in reviews[-1].response or "patch" in reviews[-2].response
    for review, later in zip(reviews, [*reviews[1:], None], strict=True):
        before, after = review.request["object"], patched(review)
        then = later.request["object"] if later else story.first[name]
        missing = set(lost(after, then)) - set(lost(before, then))
        assert not missing, "\n".join(sorted(missing))


def test_every_field_is_written_on_some_kind(whole: w.Whole, story: Story) -> None:
    written: set[str] = set()
    for each in whole.recorder.recordings():
        if each.request["namespace"] == story.space:
            changes = each.response["auditAnnotations"].get("changes", "")
            written.update(changes.partition(": ")[2].split(", "))
    rows = [row for row in TABLE.fields.values() if row.shape != NOTHING and row.writes != "never"]
    unwritten = {row.path for row in rows} - written - OF_DEVICES
    assert sorted(unwritten ^ UNWRITTEN ^ UNWRITTEN_BY[story.space]) == []


@EVERY
def test_applying_again_changes_nothing(story: Story, name: str) -> None:
    assert version_of(story.second[name]) == version_of(story.first[name])
    assert story.second[name]["spec"] == story.first[name]["spec"]


def test_nothing_differs_from_what_is_stored(story: Story) -> None:
    assert story.difference == ""


@EVERY
def test_label_of_the_workload_passes(whole: w.Whole, story: Story, name: str) -> None:
    labelled, before = story.labelled[name], story.second[name]
    assert labelled["metadata"]["labels"]["example.com/reviewed"] == "yes", story.told
    assert labelled["spec"] == before["spec"]
    kept = dict(labelled["metadata"]["labels"])
    del kept["example.com/reviewed"]
    assert kept == before["metadata"].get("labels", {})
    reviews = whole.reviews(story.space, MANIFESTS[name], "UPDATE")
    labels = [each for each in reviews if "example.com/reviewed" in each.body]
    assert labels
    assert not [each for each in labels if "patch" in each.response]


@pytest.fixture(scope="module")
def verdicts(whole: w.Whole) -> dict[str, Json]:
    """What `podgate apply` says of every manifest, by its file's name."""
    files = [each.file for each in MANIFESTS.values()]
    found, _ = offline(whole.podgate.policies, files, w.TWIN, w.SETTINGS)
    return {Path(each["source"]).stem: each for each in found}


@EVERY
def test_offline_twin_makes_the_same_object(
    whole: w.Whole, verdicts: dict[str, Json], name: str
) -> None:
    verdict = verdicts[name]
    assert verdict["allowed"], verdict["violations"]
    found = in_cluster(whole.gate, MANIFESTS[name].document, w.TWIN)
    elsewhere = in_cluster(whole.gate, verdict["object"], w.PLAIN)
    assert not isinstance(found, StatusError), found
    assert not isinstance(elsewhere, StatusError), elsewhere
    assert in_order(essence(elsewhere)) == in_order(essence(found))


@pytest.mark.parametrize("how", [("create",), ("apply", "--server-side")], ids=" ".join)
def test_every_broken_rule_is_named(whole: w.Whole, how: tuple[str, ...]) -> None:
    file, asked = w.HERE / "broken.yaml", f"--namespace={w.RULES}"
    done = whole.gate.kubectl(*how, f"--filename={file}", asked, check=False)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("- ")]
    fields = [line.removeprefix("- ").partition(" at ")[0] for line in lines]
    assert fields == list(BROKEN), done.stderr
    assert f"podgate refused this object: {len(BROKEN)} rules are broken" in done.stderr
    assert "something-secret" not in done.stderr
    said = [line for line in lines if "(project policy every-rule/whole)" in line]
    assert len(said) == len(lines) - 1
    assert "(system policy system)" in done.stderr


def test_the_same_workload_passes_once_it_is_fixed(whole: w.Whole) -> None:
    file, asked = w.HERE / "fixed.yaml", f"--namespace={w.RULES}"
    whole.gate.kubectl("create", f"--filename={file}", asked)
    (fixed,) = w.manifests(w.HERE, "fixed.yaml")
    stored = whole.stored(fixed, w.RULES)
    assert stored is not None
    assert not list(lost(fixed.document, stored))
    done = whole.gate.kubectl("apply", f"--filename={w.HERE / 'broken.yaml'}", asked, check=False)
    assert "podgate refused this object" in done.stderr
    assert whole.stored(fixed, w.RULES) == stored


@pytest.fixture(scope="module")
def operator(whole: w.Whole) -> Json:
    """The owner reference of a NIMService; its operator may work in the namespace."""
    bind = ("create", "rolebinding", "operator", "--clusterrole=admin", f"--user={OPERATOR}")
    whole.gate.kubectl(*bind, f"--namespace={w.NIM}")
    service = MANIFESTS["nimservice"]
    whole.gate.kubectl("create", f"--filename={service.file}", f"--namespace={w.NIM}")
    stored = whole.stored(service, w.NIM)
    assert stored is not None
    kept = {key: stored[key] for key in ("apiVersion", "kind")}
    metadata = stored["metadata"]
    return {**kept, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def made_by_operator(whole: w.Whole, owner: Json, name: str, **pod: object) -> tuple[Json, str]:
    """A Deployment as the operator makes it, and what the API server said against it."""
    labels = {"app": name}
    container = {"name": "main", "image": "registry.example.com/nim/llama:1", **pod}
    document: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    asked = ("create", "--filename=-", f"--namespace={w.NIM}", f"--as={OPERATOR}")
    done = whole.gate.kubectl(*asked, input=text_of(document), check=False)
    return document, done.stderr


def test_children_keep_to_the_policy_of_their_nimservice(whole: w.Whole, operator: Json) -> None:
    limits = {"limits": {"nvidia.com/gpu": 4}}
    context = {"privileged": True, "runAsUser": 0}
    made = {"securityContext": context, "resources": limits, "image": "evil/miner:1"}
    _, said = made_by_operator(whole, operator, "bad", **made)
    container = "spec.template.spec.containers[0]"
    for fact in (
        f'image at {container}.image: "evil/miner:1"',
        f"security.privileged at {container}.securityContext.privileged: true",
        f"security.runAsUid at {container}.securityContext.runAsUser: 0",
        f'compute.gpuDevicesRequest at {container}.resources.limits["nvidia.com/gpu"]: 4',
        "(project policy nim/whole)",
    ):
        assert fact in said, said
    assert whole.gate.api.find(f"/apis/apps/v1/namespaces/{w.NIM}/deployments/bad") is None


def test_children_that_keep_to_it_pass_as_they_are(whole: w.Whole, operator: Json) -> None:
    document, said = made_by_operator(whole, operator, "good", imagePullPolicy="IfNotPresent")
    assert "denied" not in said
    stored = whole.gate.api.find(f"/apis/apps/v1/namespaces/{w.NIM}/deployments/good")
    assert stored is not None, said
    assert not list(lost(document, stored))
    asked = [
        each
        for each in whole.recorder.recordings()
        if each.request["kind"]["kind"] == "Deployment"
        and each.request["userInfo"]["username"] == OPERATOR
        and each.request["name"] == "good"
        # The mutating hook leaves out what listed controllers make.
        and each.stage == "validate"
    ]
    assert asked
    assert not [each for each in asked if "patch" in each.response]
    template = stored["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "good"}


def test_every_review_gets_the_same_answer_offline(whole: w.Whole) -> None:
    sources = Sources(
        (str(whole.podgate.policies),),
        kubernetes_minor=releases.chosen().minor,
        choices=Choices(config=everything.WORDS),
    )
    catalog, problems = load(sources)
    assert catalog is not None, problems
    recordings = whole.recorder.recordings()
    assert len(recordings) > 100
    for recording in recordings:
        assert generation_of(recording) == 1
        again = answer(recording, catalog)
        assert again == recording.answer, json.dumps(recording.request)[:2000]
