"""Drafts of definitions: they load, reach every place of the schema, and match the shipped ones.

`python -m tests.drafting.test_infer` prints what shipped definitions have beyond drafts, with reasons.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pytest
import yaml

from tests.upstream import data
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.devices.kinds import KINDS
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.drafting.fields import Kind, priority_places, switches
from webhook.drafting.from_crd import Draft, NotACrdError, differences, infer
from webhook.drafting.pods import places
from webhook.drafting.text import scalar, text_of
from webhook.interface.crd_schema import (
    EACH,
    EACH_ITEM,
    EACH_KEY,
    expression,
    has_image_parts,
    ids_of,
    name_key,
    spots,
)
from webhook.interface.interface import is_interface
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS
from webhook.interface.profile_document import is_profile
from webhook.interface.schema_path import NotInSchemaError, targets
from webhook.interface.schema_places import is_open, kind_of
from webhook.lint.definition import check_sample, check_schemas
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.replicas import read_scales
from webhook.pods.schema_proof import find_gaps
from webhook.sources import files
from webhook.sources.load import shipped_paths

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
CONTAINER = CONTAINER_KEYS | {"image"}
POD = CONTAINER_KEYS | POD_KEYS | {"labels", "annotations", "podAffinity", "nodeAffinity"}
Definitions = dict[tuple[str, str], tuple[Definition, ...]]
NAMES = sorted(f"{each}.yaml" for each in data.CRDS)


@lru_cache
def crd(name: str) -> Any:
    """The CRD of a file."""
    documents, problems = files.read_all([str(data.folder() / "crds" / name)], kubernetes=True)
    assert not problems
    return documents[0].data


def loaded(draft: Draft) -> Definitions:
    """The definitions of a draft; it must load without a problem."""
    documents, faults = read_documents(draft.text.encode(), "draft")
    assert not faults
    assert [each.data for each in documents] == [each.data for each in draft.documents]
    catalog, problems = assemble([], documents, Choices())
    assert problems == ()
    assert catalog is not None
    return read_definitions(catalog)


def read_definitions(catalog: Catalog) -> Definitions:
    """The definitions of documents: those of kinds with devices are in every catalog."""
    return {kind: each for kind, each in catalog.definitions.items() if kind not in KINDS}


def schemas(body: Any) -> dict[str, Any]:
    """The served schemas by version."""
    return {
        each["name"]: each["schema"]["openAPIV3Schema"]
        for each in body["spec"]["versions"]
        if each["served"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_draft_loads_and_reaches_every_place_of_its_schema(name: str) -> None:
    body = crd(name)
    draft = infer(body)
    if not draft.documents:
        assert not any(spots(each) for each in schemas(body).values())
        return
    definitions = [each for several in loaded(draft).values() for each in several]
    for version, schema in schemas(body).items():
        definition = next(each for each in definitions if version in each.versions)
        assert find_gaps(schema, definition) == []


@pytest.mark.parametrize("name", NAMES)
def test_paths_of_a_draft_are_in_its_schema(name: str) -> None:
    body = crd(name)
    documents, _ = read_documents(infer(body).text.encode(), "draft")
    for document in documents:
        spec = document.data["spec"]
        if is_profile(document.data):
            served = {each: schemas(body)[each] for each in spec["versions"]}
        else:
            version = spec["structureDefinition"]["rootComponent"]["kind"]["version"]
            served = {version: schemas(body)[version]}
        assert check_schemas(document, served) == ()


def test_elements_of_a_map_are_named_by_its_keys() -> None:
    told = (".spec.groups | to_entries[] | .key", "the keys of the map")
    assert ids_of({}, ("spec", "groups", EACH_KEY, "template")) == told
    listed = ids_of({}, ("spec", "groups", EACH_ITEM, "template"))
    assert listed is not None
    assert listed[1].startswith("no text is required")


def test_the_key_of_a_list_names_its_items_before_what_is_required_beside() -> None:
    names = ("ownName", "otherName", "groupName")
    items = {
        "properties": {each: {"type": "string"} for each in names},
        "required": ["ownName", "otherName"],
    }
    listed = {"items": items, "x-kubernetes-list-map-keys": ["groupName"]}
    assert name_key({"properties": {"groups": listed}}, ("groups",)) == "groupName"
    del listed["x-kubernetes-list-map-keys"]
    assert name_key({"properties": {"groups": listed}}, ("groups",)) == "ownName"


def test_an_entry_that_the_next_version_lacks_is_taken_away_and_no_other() -> None:
    assert differences(
        {"fields": {"a": 1, "b": 2, "d": 5}, "role": 1},
        {"fields": {"b": 3, "c": 4, "d": 5}, "role": 1},
    ) == {"fields": {"a": None, "b": 3, "c": 4}}


@pytest.mark.parametrize(
    ("value", "text"),
    [("a.b/c", "a.b/c"), ("On", '"On"'), ("a: b", '"a: b"'), ('a "b"', "'a \"b\"'"), (1, "1")],
)
def test_text_is_quoted_only_where_a_reader_takes_it_for_something_else(
    value: Any, text: str
) -> None:
    assert scalar(value) == text


def properties(**nodes: Any) -> dict[str, Any]:
    """The schema of an object with these members."""
    return {"type": "object", "properties": nodes}


POD_SPEC = properties(
    containers={"type": "array", "items": properties(name=TEXT, image=TEXT, command=LIST)},
    priorityClassName=TEXT,
)


def test_what_suspends_is_a_switch_of_that_name_and_a_class_inside_the_pods_is_theirs() -> None:
    switch = {"type": "boolean"}
    spec = properties(
        suspend=switch,
        paused=switch,
        count={"type": "integer"},
        priorityClassName=TEXT,
        pod=POD_SPEC,
    )
    schema = properties(spec=spec)
    kind = Kind(schema, places(schema).pods)
    assert [each.form for each in kind.pods] == ["pod spec"]
    assert switches(kind) == [("spec", "suspend")]
    assert priority_places(kind) == [("spec", "priorityClassName")]
    named = properties(spec=properties(suspend=TEXT, pod=POD_SPEC))
    assert switches(Kind(named, places(named).pods)) == []


def made(schema: Any) -> SourceDocument:
    """The interface that is drafted for a kind of this schema."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    body = {
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.com",
            "names": {"kind": "Group", "plural": "groups"},
            "versions": [version],
        },
    }
    return read_documents(infer(body).text.encode(), "draft")[0][0]


def test_a_path_that_only_some_versions_lack_is_a_warning() -> None:
    known = properties(spec=properties(pod=POD_SPEC))
    document, lacking = made(known), properties(spec=properties(other=TEXT))
    assert {each.severity for each in check_schemas(document, {"v1": lacking})} == {"error"}
    some = check_schemas(document, {"v1": lacking, "v2": known})
    assert {(each.severity, each.reason) for each in some} == {("warning", "not-in-schema")}


# Comparison with the shipped definitions


class Beyond(NamedTuple):
    """A place of a shipped definition that the draft does not have, and why."""

    kind: str
    place: str
    reason: str


@lru_cache
def shipped() -> Definitions:
    """The shipped definitions."""
    documents, _ = files.read_all(shipped_paths())
    own = [each for each in documents if is_interface(each.data) or is_profile(each.data)]
    catalog, problems = assemble([], own, Choices())
    assert catalog is not None, problems
    return read_definitions(catalog)


def plain(text: str) -> str:
    """A path in its shortest spelling."""
    return re.sub(r"\s*\|\s*", "", text).replace(".[]", "[]")


def pod_places(definitions: tuple[Definition, ...]) -> dict[str, None]:
    """Every path of pods, of their metadata, of pieces and of containers outside."""
    found: dict[str, None] = {}
    for definition in (each for one in definitions for each in one.everyone):
        for component in definition.interface.components:
            programs = [component.template, component.spec, component.metadata]
            found |= dict.fromkeys(plain(each.text) for each in programs if each is not None)
        extras = definition.profile.extra_containers
        found |= dict.fromkeys(plain(each.place.text) for each in extras)
        for plan in definition.plans:
            found |= dict.fromkeys(plain(each.place.text) for each in plan.specs)
    return found


def is_part(place: str, drafted: dict[str, None]) -> bool:
    """Whether a draft has a place, what it lies in, or its members one by one."""
    return any(
        place == each
        or place.startswith((f"{each}.", f"{each}["))
        or each == f"{place}[]"
        or (each.rpartition(".")[0] in {place, f"{place}[]"} and is_key(each, CONTAINER))
        for each in drafted
    )


def is_key(place: str, keys: frozenset[str]) -> bool:
    """Whether a place ends in one of these keys."""
    return place.rpartition(".")[2] in keys


def reason_of(place: str, schema: Any) -> str | None:
    """Why a schema does not show a place; None when it is shaped like a container or a pod."""
    if place.startswith(".status."):
        return "in the status, which controllers write"
    if "//" in place or "select" in place:
        return "a path with a condition"
    try:
        found = targets(place, schema)
    except NotInSchemaError:
        return "of another version"
    for each in found:
        if each.schema is None or is_open(each.schema):
            return "an open subtree: walked at run time"
        if kind_of(each.schema) or has_image_parts(each.schema):
            return None
    if is_key(place, POD) and not imaged(place, schema):
        return "a key of pods, but without an image beside it"
    return "a name or a form of the kind's own"


def imaged(place: str, schema: Any) -> bool:
    """Whether an image stands beside a place."""
    around = targets(place.rpartition(".")[0] or ".", schema)
    return any("image" in (each.schema or {}).get("properties", {}) for each in around)


def beyond() -> Iterator[Beyond]:
    """What the shipped definitions have beyond the drafts; an empty reason is a fault."""
    bodies: dict[tuple[str, str], list[Any]] = {}
    for name in NAMES:
        spec = crd(name)["spec"]
        bodies.setdefault((spec["group"], spec["names"]["kind"]), []).append(crd(name))
    for kind, definitions in shipped().items():
        if kind not in bodies:
            continue
        drafted: dict[str, None] = {}
        served: dict[str, Any] = {}
        for body in bodies[kind]:
            drafted |= pod_places(loaded(infer(body))[kind])
            served |= schemas(body)
        known = [served[each] for one in definitions for each in one.versions if each in served]
        for place in pod_places(definitions):
            if not is_part(place, drafted) and known:
                yield Beyond(kind[1], place, reason_of(place, known[0]) or "")


def test_drafts_have_every_place_of_shipped_definitions_or_there_is_a_reason() -> None:
    rows = list(beyond())
    assert [each for each in rows if not each.reason] == []
    # Where the schema has whole pods, the draft finds all that people found.
    with_whole_pods = {"RayCluster", "RayJob", "PyTorchJob", "JobSet", "InferenceService"}
    assert not with_whole_pods & {each.kind for each in rows}


def test_a_shape_that_is_left_out_would_be_a_fault() -> None:
    schema = schemas(crd("rayclusters.ray.io.yaml"))["v1"]
    assert reason_of(".spec.headGroupSpec.template", schema) is None
    assert reason_of(".spec.autoscalerOptions", schema) is None
    assert reason_of(".spec.suspend", schema)


@pytest.mark.parametrize(
    "name", ["rayclusters.ray.io", "jobsets.jobset.x-k8s.io", "pytorchjobs.kubeflow.org"]
)
def test_ids_and_replicas_are_those_of_the_shipped_definition(name: str) -> None:
    draft = loaded(infer(crd(f"{name}.yaml")))
    ((kind, found),) = draft.items()
    ids = [plain(each.ids.text) for each in found[0].interface.components if each.ids]
    replicas = [
        plain(each.replicas.text)
        for each in found[0].interface.components
        if each.ids and each.replicas
    ]
    own = shipped()[kind][0].interface.components
    assert ids == [plain(each.ids.text) for each in own if each.ids]
    assert replicas == [plain(each.replicas.text) for each in own if each.ids and each.replicas]


# A kind of our own


OWN_CONTAINER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"protocol": {"default": "TCP"}}},
        },
    },
}
OWN_POD = {
    "type": "object",
    "properties": {
        "containers": {"type": "array", "items": OWN_CONTAINER},
        "restartPolicy": {"type": "string"},
    },
}
TEMPLATE = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": OWN_POD}}


def own_crd() -> dict[str, Any]:
    """Two nested lists of templates, a pod in pieces, an open subtree, phases, fixed places."""
    member = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "replicas": {"type": "integer", "default": 2},
            "template": TEMPLATE,
        },
    }
    team = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "members": {"type": "array", "items": member}},
    }
    gateway = {
        "type": "object",
        "properties": {
            "image": {"type": "object", "properties": {"repository": {}, "tag": {}}},
            "env": {"type": "array", "items": {"type": "object"}},
            "tolerations": {"type": "array"},
            "sidecars": {"type": "array", "items": OWN_CONTAINER},
            "instances": {"type": "integer"},
        },
    }
    spec = {
        "type": "object",
        "properties": {
            "teams": {"type": "array", "items": team},
            "gateway": gateway,
            "odd-name": TEMPLATE,
            "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "suspend": {"type": "boolean"},
            "backoffLimit": {"type": "integer", "default": 6},
            "queue": {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
            },
        },
    }
    condition = {"type": "object", "properties": {"type": {}, "status": {}}}
    status = {
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["", "Pending", "Running", "Done", "Odd"]},
            "conditions": {"type": "array", "items": condition},
        },
    }
    column = {"name": "ok", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column],
        "subresources": {"scale": {"specReplicasPath": ".spec.gateway.instances"}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.com",
            "names": {"kind": "Fleet", "plural": "fleets"},
            "versions": [version],
        },
    }


OWN_OBJECT = """
apiVersion: example.com/v1
kind: Fleet
spec:
  teams:
  - members:
    - {name: a, replicas: 3, template: {spec: {containers: [{name: c, image: x}]}}}
    - {name: b, template: {spec: {containers: [{name: c, image: x}]}}}
  - members:
    - {name: a, template: {spec: {containers: [{name: c, image: x}]}}}
  gateway: {image: {repository: r, tag: t}, instances: 2, sidecars: [{name: s, image: y}]}
"""


def test_a_kind_of_our_own_is_drafted_whole() -> None:
    (definition,) = loaded(infer(own_crd()))["example.com", "Fleet"]
    document = yaml.safe_load(OWN_OBJECT)
    found = [(each.component, each.instance, each.place) for each in locate(definition, document)]
    teams = [("teams", 0, "members"), ("teams", 1, "members")]
    assert found == [
        ("members", "0/a", ("spec", *teams[0], 0, "template")),
        ("members", "0/b", ("spec", *teams[0], 1, "template")),
        ("members", "1/a", ("spec", *teams[1], 0, "template")),
        ("gateway", "", ("spec", "gateway")),
    ]
    gateway = locate(definition, document)[-1]
    assert [each["image"] for each in gateway.spec["containers"]] == ["r:t", "y"]
    scales = [(each.instance, each.replicas) for each in read_scales(definition, document)]
    assert scales == [("0/a", 3), ("0/b", 2), ("1/a", 2), ("", 2), ("", 1)]
    profile = definition.profile
    assert [each.text for each in profile.open_subtrees or ()] == [".spec.anything"]
    assert set(profile.fields) >= {"backoffLimit", "restartPolicy"}
    assert [each.place.text for each in profile.immutable] == [".spec.queue"]
    shadows = {each.place.text: each.value for each in profile.shadow_defaults}
    assert shadows[".spec.teams[].members[].replicas"] == 2
    assert shadows[".spec.backoffLimit"] == 6
    assert shadows['.spec."odd-name".spec.containers[].ports[].protocol'] == "TCP"
    assert profile.scale_subresource is not None
    assert profile.scale_subresource.component == "gateway"


def test_a_pod_in_the_object_of_another_one_has_not_its_replicas() -> None:
    (definition,) = loaded(infer(crd("nimservices.apps.nvidia.com.yaml"))).popitem()[1]
    picker = definition.interface.component("container")
    assert picker is not None
    assert not picker.scales
    service = definition.interface.component("pods")
    assert service is not None
    assert service.maximum is not None
    assert service.maximum.text == ".spec.scale.hpa.maxReplicas"


def test_the_status_is_read_of_enumerations_and_printed_columns() -> None:
    text = infer(own_crd()).text
    root = yaml.safe_load(text.split("---\n")[0])["spec"]["structureDefinition"]["rootComponent"]
    assert root["statusDefinition"]["statusMappings"] == {
        "initializing": [{"byPhase": "Pending"}],
        "running": [
            {"byPhase": "Running"},
            {"byConditions": [{"type": "Ready", "status": "True"}]},
        ],
        "completed": [{"byPhase": "Done"}],
    }
    assert "fill in what these mean: Odd" in text


@pytest.mark.parametrize(
    ("status", "note"),
    [
        ({}, "the status has neither a phase nor conditions: byExpression can read its counts"),
        (
            {"phase": {"type": "string"}},
            "the schema names no phase and no condition: fill in which of them mean what",
        ),
        (
            {"phase": {"type": "string", "enum": ["Running"]}},
            "a guess by the names of phases and printed conditions; compare with the operator",
        ),
    ],
)
def test_a_note_says_what_the_schema_leaves_open_of_the_status(
    status: dict[str, Any], note: str
) -> None:
    body = own_crd()
    (version,) = body["spec"]["versions"]
    del version["additionalPrinterColumns"]
    version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"] = status
    assert [each for each in infer(body).text.splitlines() if note in each]


def test_a_draft_puts_what_has_no_further_members_on_one_line() -> None:
    document = {
        "flat": {"a": 1, "b": []},
        "deep": {"a": {"b": 1}},
        "list": ["x", {}],
        "lists": [["x"], ["w", "z"]],
        "maps": [{"a": {"b": 1}}],
    }
    assert text_of(document, {}).splitlines() == [
        "flat: {a: 1, b: []}",
        "deep:",
        "  a: {b: 1}",
        "list: [x, {}]",
        "lists:",
        "  - [x]",
        "  - [w, z]",
        "maps:",
        "  - a: {b: 1}",
    ]


def test_versions_of_another_layout_have_an_interface_of_their_own() -> None:
    body = own_crd()
    old = copy.deepcopy(body["spec"]["versions"][0])
    old["name"], old["storage"] = "v1beta1", False
    del old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["gateway"]
    body["spec"]["versions"].append(old)
    new, former = loaded(infer(body))["example.com", "Fleet"]
    assert (new.versions, former.versions) == (("v1",), ("v1beta1",))
    assert [each.name for each in former.interface.components] == ["fleet", "members", "odd-name"]


def test_the_bounds_of_an_elastic_policy_are_fields() -> None:
    body = own_crd()
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    numbers = {name: {"type": "integer"} for name in ("minReplicas", "maxReplicas", "maxRestarts")}
    schema["properties"]["spec"]["properties"]["elasticPolicy"] = {
        "type": "object",
        "properties": {**numbers, "minReplicas": {"type": "integer"}},
    }
    (definition,) = loaded(infer(body))["example.com", "Fleet"]
    places = {
        name: [each.text for each in field.places]
        for name, field in definition.profile.fields.items()
        if name.endswith("Replicas")
    }
    assert places == {
        name: [f".spec.elasticPolicy.{name}"] for name in ("minReplicas", "maxReplicas")
    }


def test_equal_versions_share_one_interface() -> None:
    body = own_crd()
    body["spec"]["versions"].append({**copy.deepcopy(body["spec"]["versions"][0]), "name": "v2"})
    (definition,) = loaded(infer(body))["example.com", "Fleet"]
    assert definition.versions == ("v1", "v2")


@pytest.mark.parametrize(
    "body",
    [None, [], {"kind": "Pod"}, {"kind": "CustomResourceDefinition"}, {**own_crd(), "spec": 7}],
)
def test_what_is_no_crd_is_refused(body: Any) -> None:
    with pytest.raises(NotACrdError):
        infer(body)


JUNK = (None, 7, "x", [], {}, [None], {"type": []}, {"properties": 3}, True)


def places_in(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    yield at
    if isinstance(node, (dict, list)):
        members = node.items() if isinstance(node, dict) else enumerate(node)
        for key, each in members:
            yield from places_in(each, (*at, key))


def test_a_broken_schema_never_raises_anything_else() -> None:
    choice = random.Random(5)
    every = [each for each in places_in(own_crd()) if len(each) > 2]
    for place in every:
        body = copy.deepcopy(own_crd())
        holder: Any = body
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = choice.choice(JUNK)
        try:
            draft = infer(body)
        except NotACrdError:
            continue
        if draft.documents:
            loaded(draft)


# The text


def test_text_reads_back_as_it_was() -> None:
    data = {
        "a": "true",
        "b": '.x["y"]',
        "c": "it's",
        "d": "1e3",
        "e": ["- x", "# no", "", "a: b", "null", "~", 5, True, None],
        "f": {"g": {}, "h": [], "i": [{"j": "k" * 100, "l": {"m": "n"}}]},
        "odd key: x": "line\nbreak",
    }
    notes = {(): "head", ("f", "i", 0): "an item", ("f", "i", 0, "j"): "a\nkey", ("a",): "w " * 90}
    text = text_of(data, notes)
    documents, faults = read_documents(text.encode(), "text")
    assert not faults
    assert documents[0].data == data
    assert yaml.safe_load(text) == data
    assert all(len(line) <= 110 for line in text.splitlines() if line.lstrip().startswith("#"))


# Paths and samples


def test_a_path_is_followed_through_a_schema() -> None:
    schema = own_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    (found,) = targets(".spec.teams[] | .members[0].template", schema)
    assert found.text == ".spec.teams[].members[0].template"
    assert targets(".spec.anything.goes", schema)[0].schema is None
    assert len(targets("(.spec.backoffLimit // 1) * .spec.gateway.instances", schema)) == 3
    for text, missing in (
        (".spec.team[].x", ".spec.team"),
        (".spec.teams.members", ".spec.teams.members"),
        (".spec.gateway[]", ".spec.gateway[]"),
        ('.spec.teams[] | select(.nme == "x")', ".spec.teams[].nme"),
    ):
        with pytest.raises(NotInSchemaError) as caught:
            targets(text, schema)
        assert caught.value.path == missing


def test_counts_of_a_sample() -> None:
    (definition,) = loaded(infer(own_crd()))["example.com", "Fleet"]
    sample = SourceDocument("s.yaml", 1, yaml.safe_load(OWN_OBJECT), {}, {})
    counts, problems = check_sample(definition, sample)
    assert problems == ()
    assert {each.component: (each.pods, each.ids, each.replicas) for each in counts} == {
        "fleet": (0, None, None),
        "members": (3, 3, 7),
        "gateway": (1, None, 2),
        "odd-name": (0, None, 1),
    }
    sample.data["spec"]["anything"] = {"x": {"image": "i", "command": ["sh"]}}
    _, problems = check_sample(definition, sample)
    assert [(each.path, each.reason) for each in problems] == [("spec.anything.x", "uncovered")]
    sample.data["spec"]["teams"][0]["members"][1]["name"] = "a"
    _, problems = check_sample(definition, sample)
    assert [each.reason for each in problems] == ["instance-ids"]


def test_expressions_quote_odd_keys() -> None:
    assert expression(("spec", "odd-name", "[]", "x")) == '.spec."odd-name"[].x'
    assert {"[]", "{}"} == EACH


def test_places_of_whole_objects_are_drafted_as_wrapped_ones() -> None:
    whole = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    parts = {"type": "object", "properties": {"template": whole, "name": {"type": "string"}}}
    spec = {"type": "object", "properties": {"parts": {"type": "array", "items": parts}}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bundles.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Bundle", "plural": "bundles"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }
    (definition,) = loaded(infer(crd))["example.com", "Bundle"]
    assert [each.place.text for each in definition.embedded] == [".spec.parts[].template"]
    assert definition.only_wraps


if __name__ == "__main__":
    for row in beyond():
        print(f"{row.kind:22} {row.place:70} {row.reason}")
