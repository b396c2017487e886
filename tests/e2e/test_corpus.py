"""Real manifests, completed: a strict API server says of none what it does not say of the original."""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import corpus
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.conftest import bed_or_skip
from tests.e2e.testbed import upstream
from tests.e2e.testbed.cluster import Cluster
from webhook.catalog.catalog import Catalog

pytestmark = pytest.mark.e2e

SPACE = "corpus"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = {"usual": corpus.usual, "writing": corpus.writing}
PATIENCE = 240.0
NAME = re.compile(r"""^ +"?name"?: "?([^\s",]+)"?,?$""", re.MULTILINE)
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "some"},
    "handler": "some",
}
# The place that is told when some rules were not tried at all.
SKIPPED = "<nil>"
INDEX = re.compile(r"\[\d+\]")
OPEN = {"x-kubernetes-preserve-unknown-fields": True}


def crd_files(folder: Path) -> Iterator[Path]:
    """The files that may hold CRDs: those selected for all tests, then of every archive."""
    yield from sorted((folder / "crds").glob("*.yaml"))
    for name, project in upstream.PROJECTS.items():
        yield from sorted((upstream.module_dir(name) / project.crds).rglob("*.yaml"))


def crds_of(folder: Path, wanted: Collection[str]) -> Iterator[Json]:
    """The CRDs of these names; files that hold none of them are not parsed."""
    for path in crd_files(folder):
        text = path.read_text("utf-8")
        if not wanted.isdisjoint(NAME.findall(text)):
            for each in yaml.load_all(text, yaml.CSafeLoader):
                # Patches for kustomize bear the name, too.
                if each and each["metadata"]["name"] in wanted and each["spec"].get("versions"):
                    yield each


def mended(schema: Any) -> Any:
    """A schema that says nothing where API servers want something said: anything goes there."""
    if isinstance(schema, list):
        return [mended(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: mended(each) for key, each in schema.items()}
    if found.get("type") == "array" and "items" not in found:
        found["items"] = OPEN
    properties = found.get("properties")
    if isinstance(properties, dict):
        found["properties"] = {key: each or OPEN for key, each in properties.items()}
    if found.get("items") == {}:
        found["items"] = OPEN
    return found


def together(crds: Iterator[Json]) -> list[Json]:
    """One CRD of each name with the versions of all, to be served without its operator."""
    found: dict[str, Json] = {}
    for each in crds:
        name = each["metadata"]["name"]
        spec = {**mended(each["spec"]), "conversion": {"strategy": "None"}}
        bare = {
            "apiVersion": each["apiVersion"],
            "kind": each["kind"],
            # The API server wants the reason why a name in a group of its own is not its own.
            "metadata": {
                "name": name,
                "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
            },
            "spec": {**spec, "versions": list(spec["versions"])},
        }
        known = found.setdefault(name, bare)
        versions = {version["name"] for version in known["spec"]["versions"]}
        known["spec"]["versions"] += [
            {**version, "storage": False}
            for version in spec["versions"]
            if version["name"] not in versions
        ]
    return list(found.values())


def wait_served(api: Api, crds: Iterable[Json]) -> None:
    """Wait until all are served; the definitions themselves are too large to be asked for often."""
    end = time.monotonic() + PATIENCE
    for each in crds:
        spec = each["spec"]
        for version in (one["name"] for one in spec["versions"] if one["served"]):
            while not is_served(api, f"/apis/{spec['group']}/{version}", spec["names"]["plural"]):
                assert time.monotonic() < end, f"not served: {each['metadata']['name']}"
                time.sleep(0.5)


def is_served(api: Api, place: str, plural: str) -> bool:
    """Whether the API server knows the resource."""
    try:
        found = api.find(place)
    except ValueError:
        return False  # of a group that is not there yet it says so in plain text
    return found is not None and any(each["name"] == plural for each in found["resources"])


@pytest.fixture(scope="module")
def api(bare: Cluster, upstream_data: Path) -> Iterator[Api]:
    """The cluster, serving every custom kind that there is a CRD of."""
    definitions = [each for several in corpus.usual().definitions.values() for each in several]
    wanted = {f"{each.profile.resource}.{each.interface.group}" for each in definitions}
    with bed_or_skip():
        crds = together(crds_of(upstream_data, wanted))
    bare.kubectl("create", "namespace", SPACE)
    # What the policies' defaults name has to be there.
    bare.kubectl("create", "priorityclass", "low", "--value=1")
    bare.kubectl("create", "serviceaccount", "runner", f"--namespace={SPACE}")
    bare.kubectl("create", "-f", "-", input=yaml.safe_dump(RUNTIME_CLASS))
    with contextlib.closing(Api(bare)) as found:
        refused = []
        for each in crds:
            try:
                found.request("POST", CRDS, each)
            except StatusError as error:
                refused.append(str(error))
        assert not refused, "\n".join(refused)
        wait_served(found, crds)
        yield found


@pytest.fixture(scope="module")
def served(api: Api) -> dict[tuple[str, str], tuple[str, bool]]:
    """Path and whether it is namespaced, by apiVersion and kind."""
    groups = [
        version["groupVersion"]
        for group in api.request("GET", "/apis")["groups"]
        for version in group["versions"]
    ]
    found = {}
    for version, root in (("v1", "/api/v1"), *((each, f"/apis/{each}") for each in groups)):
        for each in api.request("GET", root)["resources"]:
            if "/" not in each["name"]:
                here = f"{root}/namespaces/{SPACE}" if each["namespaced"] else root
                found[version, each["kind"]] = f"{here}/{each['name']}", each["namespaced"]
    return found


def objects(origin: str) -> corpus.Corpus:
    with bed_or_skip():
        return corpus.samples(origin)


def faults(api: Api, place: str, document: Any, validation: str) -> Counter[str]:
    """What the API server finds wrong with a new object; nothing is stored."""
    try:
        api.request("POST", f"{place}?dryRun=All&fieldValidation={validation}", document)
    except StatusError as error:
        causes = error.causes()
        if causes:
            # Default items may stand before the user's and shift their indices.
            told = [
                INDEX.sub("[]", f"{each['field']}: {each['message']}")
                for each in causes
                if each["field"] != SKIPPED
            ]
        else:
            told = str(error).partition("strict decoding error: ")[2].split(", ") or [str(error)]
            told = told if told != [""] else [str(error)]
        return Counter(told)
    return Counter()


def created(document: Any, *, namespaced: bool) -> Any:
    """The object as it is sent: in the namespace of the test."""
    metadata = {key: each for key, each in document["metadata"].items() if key != "namespace"}
    if not metadata.get("name") and not metadata.get("generateName"):
        metadata["name"] = "unnamed"
    here = {"namespace": SPACE} if namespaced else {}
    return {**document, "metadata": {**metadata, **here}}


def new_faults(api: Api, place: str, original: Any, completed: Any) -> list[str]:
    """What is wrong with the completed object alone."""
    found: list[str] = []
    before = faults(api, place, original, "Strict")
    after = faults(api, place, completed, "Strict")
    found += after - before
    if before:
        # Unknown fields hide what else is wrong.
        found += faults(api, place, completed, "Ignore") - faults(api, place, original, "Ignore")
    return found


def test_what_a_kind_does_not_take_is_found(
    api: Api, served: dict[tuple[str, str], tuple[str, bool]]
) -> None:
    place, _ = served["ray.io/v1", "RayCluster"]
    template = {"spec": {"containers": [{"name": "main", "image": "a"}]}}
    head = {"rayStartParams": {}, "template": template}
    good = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": SPACE},
        "spec": {"headGroupSpec": head},
    }
    assert new_faults(api, place, good, good) == []
    unknown = {**good, "spec": {"headGroupSpec": head, "tolerations": []}}
    assert new_faults(api, place, good, unknown) == ['unknown field "spec.tolerations"']
    wrong = {**good, "spec": {"headGroupSpec": {**head, "serviceType": 5}}}
    found = new_faults(api, place, unknown, wrong)
    assert found
    assert all("serviceType" in each for each in found)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("origin", corpus.ORIGINS)
def test_what_is_written_is_what_the_api_server_takes(
    api: Api,
    served: dict[tuple[str, str], tuple[str, bool]],
    origin: str,
    policy: str,
) -> None:
    catalog: Catalog = POLICIES[policy]()
    found: list[str] = []
    tried = 0
    unserved: set[str] = set()
    for seen in corpus.judged(objects(origin), catalog):
        if seen.verdict is None or not seen.verdict.is_allowed or not seen.verdict.patch:
            continue
        place, namespaced = served.get((seen.raw["apiVersion"], seen.raw["kind"]), ("", False))
        if not place:
            unserved.add(seen.kind)
            continue
        original = created(seen.raw, namespaced=namespaced)
        completed = created(seen.verdict.object, namespaced=namespaced)
        tried += 1
        found += [
            f"{seen.kind} {seen.source}: {each}"
            for each in new_faults(api, place, original, completed)
        ]
    print(f"{origin}, {policy}: {tried} completed objects, not served: {sorted(unserved)}")
    assert not found, "\n".join(found)
