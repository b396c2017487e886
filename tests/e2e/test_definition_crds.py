"""Definitions as objects: `podgate crds` on a real API server, and what its schema lets in."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import Result

from tests.cli.running import podgate
from tests.definitions import POLICIES, base, children, root
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.testbed.cluster import Cluster
from webhook.interface.names import ALL, INTERFACES, PROVIDED, KindNames
from webhook.policy.envelope import VERSION
from webhook.sources.files import read_all

pytestmark = pytest.mark.e2e

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CREATED = "customresourcedefinition.apiextensions.k8s.io/{} {}"
STRICT = "dryRun=All&fieldValidation=Strict"
EVERY = [each.full for each in ALL]
BY_KIND = {each.kind: each for each in INTERFACES}


def install(cluster: Cluster, *more: str) -> Result:
    return podgate("crds", "install", "--kubeconfig", str(cluster.kubeconfig()), *more)


def told(found: Result) -> list[str]:
    assert found.exit_code == 0, found.stderr
    return found.stdout.splitlines()


def lines(done: str, suffix: str = "") -> list[str]:
    return [CREATED.format(name, done) + suffix for name in EVERY]


@pytest.fixture(scope="module")
def api(bare: Cluster) -> Iterator[Api]:
    """The cluster without podgate, having neither kind."""
    with contextlib.closing(Api(bare)) as found:
        yield found


@pytest.fixture(scope="module")
def serving(bare: Cluster, api: Api) -> Api:
    """The same once both kinds are there, brought by the command."""
    found = told(install(bare))
    assert set(found) <= {*lines("created"), *lines("unchanged")}
    bare.wait_established(set(EVERY))
    return api


def test_they_are_installed_once_and_left_alone_where_they_are_their_owners(
    bare: Cluster, api: Api
) -> None:
    for name in EVERY:
        # Tests of other modules may have brought them.
        with contextlib.suppress(StatusError):
            api.request("DELETE", f"{CRDS}/{name}")
    until = time.monotonic() + 60
    while any(api.find(f"{CRDS}/{name}") for name in EVERY) and time.monotonic() < until:
        time.sleep(0.2)
    assert told(install(bare, "--dry-run")) == lines("created", " (server dry run)")
    assert all(api.find(f"{CRDS}/{name}") is None for name in EVERY)
    assert told(install(bare)) == lines("created")
    bare.wait_established(set(EVERY))
    assert told(install(bare)) == lines("unchanged")

    first, second = INTERFACES
    place = f"{CRDS}/{first.full}"
    patch = "application/merge-patch+json"
    api.request("PATCH", place, {"metadata": {"labels": {PROVIDED: None}}}, patch)
    before = api.request("GET", place)["metadata"]["resourceVersion"]
    left, other, *_ = told(install(bare))
    assert left.startswith(CREATED.format(first.full, "left alone: "))
    assert other == CREATED.format(second.full, "unchanged")
    assert api.request("GET", place)["metadata"]["resourceVersion"] == before
    api.request("PATCH", place, {"metadata": {"labels": {PROVIDED: "true"}}}, patch)

    short = {"spec": {"names": {"shortNames": ["other"]}}}
    api.request("PATCH", place, short, patch)
    assert told(install(bare, "--dry-run"))[0].endswith("configured (server dry run)")
    assert told(install(bare))[0] == CREATED.format(first.full, "configured")
    assert api.request("GET", place)["spec"]["names"]["shortNames"] == [first.short]


def test_who_may_not_write_definitions_is_told(bare: Cluster) -> None:
    config = str(bare.kubeconfig("alice"))
    found = podgate("crds", "install", "--kubeconfig", config)
    assert found.exit_code == 2
    assert found.stderr.startswith("error: GET /apis/")
    assert 'User "alice" cannot get resource' in found.stderr.replace("user", "User")
    assert len(found.stderr.splitlines()) == 1


def test_a_cluster_that_is_not_there_is_told(bare: Cluster, tmp_path: Any) -> None:
    text = bare.kubeconfig().read_text("utf-8").replace(bare.server, "https://127.0.0.1:9")
    nowhere = tmp_path / "config"
    nowhere.write_text(text, "utf-8")
    found = podgate("crds", "install", "--kubeconfig", str(nowhere))
    assert found.exit_code == 2
    assert found.stderr.startswith("error: GET /apis/")
    assert found.stderr.endswith(": asking the API server failed: Connection refused\n")


def test_both_are_served_as_kubectl_wants_them(bare: Cluster, serving: Api) -> None:
    for names in INTERFACES:
        place = f"/apis/{names.group}/{VERSION}"
        resources = serving.request("GET", place)["resources"]
        (main,) = (each for each in resources if each["name"] == names.plural)
        assert (main["namespaced"], main["shortNames"]) == (False, [names.short])
        assert f"{names.plural}/status" in {each["name"] for each in resources}
        conditions = serving.request("GET", f"{CRDS}/{names.full}")["status"]["conditions"]
        found = {each["type"]: each["status"] for each in conditions}
        assert found["Established"] == "True"
        # Set where a schema is not structural.
        assert "NonStructuralSchema" not in found
    document = {**base(), "metadata": {"name": "shown"}}
    place = collection(INTERFACES[0])
    serving.request("POST", place, document)
    try:
        shown = bare.kubectl("get", "ri", "shown").stdout.splitlines()
        assert shown[0].split() == ["NAME", "FRAMEWORK", "ROOT", "COMPONENT", "AGE"]
        assert shown[1].split()[:3] == ["shown", "Deployment", "root"]
        condition = {
            "type": "Accepted",
            "status": "False",
            "reason": "ShippedFirst",
            "message": "the shipped definition decides",
            "lastTransitionTime": "2026-11-22T00:00:00Z",
        }
        change = {"status": {"conditions": [condition]}}
        patch = "application/merge-patch+json"
        after = serving.request("PATCH", f"{place}/shown/status", change, patch)
        assert after["status"]["conditions"] == [condition]
        assert after["spec"]["structureDefinition"]["rootComponent"]["name"] == "root"
    finally:
        serving.request("DELETE", f"{place}/shown")


def collection(names: KindNames) -> str:
    """The path of a kind's objects."""
    return names.path


def offered(api: Api, names: KindNames, document: Json) -> None:
    """Offer a document as one of the kinds to a strict server; StatusError when it is refused."""
    sent = {**document, "apiVersion": f"{names.group}/{VERSION}", "kind": names.kind}
    api.request("POST", f"{collection(names)}?{STRICT}", sent)


@pytest.mark.parametrize("kind", BY_KIND)
def test_every_shipped_definition_is_taken_as_either_kind(serving: Api, kind: str) -> None:
    documents, _ = read_all([str(POLICIES)])
    shipped = [each.data for each in documents if each.data["kind"] == "ResourceInterface"]
    assert len(shipped) > 40
    refusals = []
    for each in shipped:
        try:
            offered(serving, BY_KIND[kind], each)
        except StatusError as error:
            refusals.append(f"{each['metadata']['name']}: {error}")
    assert not refusals, "\n".join(refusals)


def changed(**component: Any) -> Json:
    """BaseDef with other keys of its root; None takes one away."""
    data = base()
    for key, value in component.items():
        root(data).pop(key, None)
        if value is not None:
            root(data)[key] = value
    return data


def with_gang(gang: Any) -> Json:
    data = base()
    data["spec"]["optimizationInstructions"] = {"gangScheduling": gang}
    return data


def with_children(*several: Json) -> Json:
    data = base()
    data["spec"]["structureDefinition"]["childComponents"] = list(several)
    return data


def selecting(**selector: Any) -> Json:
    return changed(podSelector={"componentTypeSelector": selector})


def status(**body: Any) -> Json:
    return changed(statusDefinition={"statusMappings": {}, **body})


def matching(*matchers: Any) -> Json:
    return changed(statusDefinition={"statusMappings": {"running": list(matchers)}})


CHILD = children(base())[0]
ACTION = {"path": ".spec.suspend", "value": "true"}
TWICE = [{"componentName": "root"}, {"componentName": "root"}]
REFUSED: dict[str, tuple[Json, str]] = {
    "no spec": ({"metadata": {"name": "x"}}, "spec: Required"),
    "no structure": (
        {"metadata": {"name": "x"}, "spec": {}},
        "spec.structureDefinition: Required",
    ),
    "a component without a name": (changed(name=None), "rootComponent.name: Required"),
    "a kind without its version": (
        changed(kind={"group": "apps", "kind": "Deployment"}),
        "kind.version: Required",
    ),
    "two children of one name": (with_children(CHILD, CHILD), "Duplicate value"),
    "a path that is no text": (
        changed(specDefinition={"podSpecPath": 5}),
        "podSpecPath in body must be of type string",
    ),
    "a misspelt owner": (
        with_children({"name": "worker", "ownerName": "root"}),
        'unknown field "spec.structureDefinition.childComponents[0].ownerName"',
    ),
    "a status without mappings": (changed(statusDefinition={}), "statusMappings: Required"),
    "a phase without a path": (status(phaseDefinition={}), "phaseDefinition.path: Required"),
    "conditions without a path": (
        status(conditionsDefinition={}),
        "conditionsDefinition.path: Required",
    ),
    "one matcher instead of a list": (
        changed(statusDefinition={"statusMappings": {"running": {"byPhase": "Running"}}}),
        'unknown field "spec.structureDefinition.rootComponent.statusDefinition.statusMappings.running',
    ),
    "a condition without a type": (
        matching({"byConditions": [{"status": "True"}]}),
        "byConditions[0].type: Required",
    ),
    "an expression without a result": (
        matching({"byExpression": {"expression": ".a"}}),
        "byExpression.expectedResult: Required",
    ),
    "a selector with nothing (N12)": (selecting(), "keyPath, matchLabels or both must be set"),
    "a value without a path (N13)": (
        selecting(value="x", matchLabels={"a": "b"}),
        "value needs a keyPath",
    ),
    "a selector by no label": (selecting(matchLabels={}), "matchLabels"),
    "a selector by an empty path": (selecting(keyPath=""), "keyPath"),
    "an instance selector without a path": (
        changed(podSelector={"componentInstanceSelector": {}}),
        "idPath: Required",
    ),
    "nothing to do on suspension": (
        changed(suspendDefinition={"suspendActions": [], "resumeActions": [ACTION]}),
        "should have at least 1 items",
    ),
    "no way to go on": (
        changed(suspendDefinition={"suspendActions": [ACTION]}),
        "resumeActions: Required",
    ),
    "a group without members": (
        with_gang({"podGroups": [{"name": "a"}]}),
        "podGroups[0].members: Required",
    ),
    "a member twice": (
        with_gang({"podGroups": [{"name": "a", "members": TWICE}]}),
        "Duplicate value",
    ),
    "a filter twice": (
        with_gang(
            {
                "podGroups": [
                    {"name": "a", "members": [{"componentName": "root", "filters": [".a", ".a"]}]}
                ]
            }
        ),
        "Duplicate value",
    ),
    "half a topology": (
        with_gang({"podGroup": {"name": "a", "topology": {"topologyName": "racks"}}}),
        "requiredTopologyLevel: Required",
    ),
}


@pytest.mark.parametrize("kind", BY_KIND)
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_schema_can_see_is_refused(serving: Api, case: str, kind: str) -> None:
    document, wanted = REFUSED[case]
    with pytest.raises(StatusError) as refusal:
        offered(serving, BY_KIND[kind], document)
    assert wanted in str(refusal.value)


GOOD = {
    "the base": base(),
    "labels alone (N10)": selecting(matchLabels={"a": "b"}),
    "a path alone (N9)": selecting(keyPath=".metadata.labels.a"),
    "all three (N11)": selecting(keyPath=".a", value="x", matchLabels={"a": "b"}),
    "actions as text and as JSON (N7)": changed(
        suspendDefinition={
            "suspendActions": [ACTION, {"path": ".spec.state", "value": '"Suspended"'}],
            "resumeActions": [{"path": ".spec.a", "value": value} for value in (True, 1, {"b": 2})],
        }
    ),
    "a group in the newer form": with_gang(
        {"podGroup": {"name": "all", "subGroups": [{"componentName": "worker"}]}}
    ),
    "a core kind": changed(kind={"group": "", "version": "v1", "kind": "Pod"}),
}


@pytest.mark.parametrize("case", GOOD)
def test_what_is_good_is_taken(serving: Api, case: str) -> None:
    for names in INTERFACES:
        offered(serving, names, copy.deepcopy(GOOD[case]))


def test_names_of_condition_keys_are_filled_in(serving: Api) -> None:
    document = status(conditionsDefinition={"path": ".status.conditions"})
    sent = serving.request("POST", f"{collection(INTERFACES[0])}?{STRICT}", document)
    component = root(sent)
    filled = component["statusDefinition"]["conditionsDefinition"]
    assert filled == {
        "path": ".status.conditions",
        "typeFieldName": "type",
        "statusFieldName": "status",
        "messageFieldName": "message",
        "reasonFieldName": "reason",
    }
