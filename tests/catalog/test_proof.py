"""CRDs in the catalog: places nobody covers, what is walked, and what servers would prune."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.building import request
from tests.definitions import document, grouped
from tests.pods.test_coverage import ITEM, OPEN, POD, TEXT, objects
from webhook.catalog.build import Choices, assemble, prove_all
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.devices.kinds import KINDS
from webhook.documents.problem import Problem
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.interface.kind_schema import KindSchema, read_schemas
from webhook.interface.pruning import Shape, Shapes
from webhook.pods.coverage import find_uncovered
from webhook.pods.locate import locate
from webhook.pods.schema_proof import prove
from webhook.sources.files import read_all
from webhook.sources.load import Sources, load, schemas_of, shipped_documents

GROUP = "batch.example.com"
TEMPLATE = objects(metadata=objects(labels=OPEN), spec=POD)
INTERFACE = {
    "apiVersion": "run.ai/v1alpha1",
    "kind": "Karta",
    "metadata": {"name": "group"},
    "spec": {
        "structureDefinition": {
            "rootComponent": {
                "name": "group",
                "kind": {"group": GROUP, "version": "v1", "kind": "Group"},
                "statusDefinition": {"statusMappings": {}},
                "specDefinition": {"podTemplateSpecPath": ".spec.template"},
            }
        }
    },
}
PROFILE = {
    "apiVersion": "podgate.dev/v1alpha1",
    "kind": "WorkloadProfile",
    "metadata": {"name": "group"},
    "spec": {
        "group": GROUP,
        "kind": "Group",
        "versions": ["v1", "v2"],
        "resource": "groups",
        "components": {"group": {"role": "worker"}},
    },
}
RUN = {"name": "a", "image": "a", "command": ["x"]}


def crd(kind: str = "Group", **schemas: Any) -> dict[str, Any]:
    versions = [
        {"name": name, "served": True, "schema": {"openAPIV3Schema": each} if each else None}
        for name, each in schemas.items()
    ]
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": GROUP, "names": names, "versions": versions},
    }


def read(*bodies: Any) -> tuple[list[KindSchema], list[Problem]]:
    shapes, found, problems = Shapes(), [], []
    for each in bodies:
        schemas, more = read_schemas(document(each, "crd.yaml"), shapes)
        found += schemas
        problems += more
    return found, problems


def catalog(*bodies: Any, policy: Any = None, **profile: Any) -> tuple[Catalog, list[Problem]]:
    spec = {**PROFILE["spec"], "openSubtrees": [], **profile}  # type: ignore[dict-item]
    given = [document(INTERFACE), document({**PROFILE, "spec": spec})]
    given += [document(policy)] if policy is not None else []
    schemas, problems = read(*bodies)
    found, more = assemble([], given, Choices(), schemas=schemas)
    assert found is not None, more
    return found, [*problems, *more]


def judged(found: Catalog, spec: Any, version: str = "v1", **more: Any) -> Decision:
    body = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Group",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [RUN]}}, **spec},
    }
    return decide(request(body, **more), found, References())


def refused_at(decision: Decision) -> list[tuple[str | int, ...]]:
    assert isinstance(decision, Denied), decision
    assert {each.reason for each in decision.violations} == {"uncovered"}
    return [each.path for each in decision.violations]


def whole(**spec: Any) -> dict[str, Any]:
    return objects(metadata={}, spec=objects(template=TEMPLATE, **spec))


def test_a_place_that_the_definition_misses_is_told_and_refused_when_used() -> None:
    schema = whole(
        helper=TEMPLATE,
        tasks={"type": "array", "items": objects(pod=POD)},
        roles={"type": "object", "additionalProperties": objects(sidecar=ITEM)},
    )
    found, problems = catalog(crd(v1=schema))
    told = [(each.path, each.reason, each.severity) for each in problems]
    assert told == [
        (path, "place-uncovered", "warning")
        for path in (".spec.helper", ".spec.tasks[].pod", ".spec.roles[].sidecar")
    ]
    assert all("Group.batch.example.com/v1" in each.found for each in problems)
    assert isinstance(judged(found, {}), Allowed)
    pod = {"containers": [RUN]}
    used = {
        "helper": {"spec": pod},
        "tasks": [{}, {"pod": pod}],
        "roles": {"b": {"sidecar": {"name": "only"}}, "a": {"sidecar": {"image": "x"}}},
    }
    assert refused_at(judged(found, used)) == [
        ("spec", "helper", "spec"),
        ("spec", "roles", "a", "sidecar"),
        ("spec", "tasks", 1, "pod"),
    ]


@pytest.mark.parametrize(
    "value", [{"hostNetwork": True}, {"containers": [{}]}, {"securityContext": {"runAsUser": 0}}]
)
def test_a_place_of_a_pod_need_not_look_like_one_to_be_refused(value: Any) -> None:
    found, _ = catalog(crd(v1=whole(helper=POD)))
    assert refused_at(judged(found, {"helper": value})) == [("spec", "helper")]
    assert isinstance(judged(found, {"helper": {"replicas": 1, "containers": []}}), Allowed)


def test_a_profile_may_say_that_a_place_is_no_pod_or_that_uncovered_ones_are_told() -> None:
    schema, use = whole(helper=POD), {"helper": {"containers": [RUN]}}
    found, problems = catalog(
        crd(v1=schema), notPods=[{"place": ".spec.helper", "reason": "an example"}]
    )
    assert problems == []
    assert isinstance(judged(found, use), Allowed)
    found, problems = catalog(crd(v1=schema), uncovered="warn")
    assert "warned" in problems[0].found
    decision = judged(found, use)
    assert [each.reason for each in decision.warnings] == ["uncovered"]


def test_a_place_that_a_location_has_is_not_refused_though_no_schema_can_prove_it() -> None:
    (schema,), _ = read(crd(v1=whole(helper=POD)))
    other = grouped(specDefinition={"podSpecPath": ".spec.helper"})
    narrow = grouped(specDefinition={"podTemplateSpecPath": ".spec.template"})
    narrow.proofs["v1"] = prove(narrow, schema)
    data = {"apiVersion": f"{GROUP}/v1", "spec": {"helper": {"containers": [RUN]}}}
    assert find_uncovered(data, locate(other, data), narrow) == []
    assert find_uncovered(data, [], narrow) == [(("spec", "helper"), "pod spec")]


def test_an_update_that_leaves_an_uncovered_place_alone_passes() -> None:
    found, _ = catalog(crd(v1=whole(helper=POD, size={"type": "integer"})))
    old = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Group",
        "metadata": {"name": "a"},
        "spec": {"helper": {"containers": [RUN]}, "size": 1},
    }
    new = {**old, "spec": {**old["spec"], "size": 2}}  # type: ignore[dict-item]
    assert isinstance(decide(request(new, old=old), found, References()), Allowed)
    changed = {**old, "spec": {"helper": {"containers": [RUN, RUN]}}}
    assert refused_at(decide(request(changed, old=old), found, References())) == [
        ("spec", "helper")
    ]


def test_only_what_the_schema_leaves_open_is_walked_whatever_the_profile_says() -> None:
    schema = whole(extra=OPEN, closed=objects(a=TEXT))
    found, problems = catalog(crd(v1=schema), openSubtrees=[".spec.closed"])
    assert problems == []
    pod = {"any": [{"containers": [RUN]}]}
    assert refused_at(judged(found, {"extra": pod, "closed": pod})) == [("spec", "extra", "any", 0)]
    other = judged(found, {"extra": pod, "closed": pod}, version="v2")
    assert refused_at(other) == [("spec", "closed", "any", 0)]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        OPEN,
        objects(spec=OPEN, status=OPEN),
        objects(spec=objects(x=TEXT) | {"x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_a_schema_that_describes_nothing_leaves_everything_to_be_walked(schema: Any) -> None:
    found, problems = catalog(crd(v1=schema))
    assert problems == []
    use = {"deep": {"er": {"containers": [RUN]}}}
    assert refused_at(judged(found, use)) == [("spec", "deep", "er")]
    assert isinstance(judged(found, {}), Allowed)


def test_a_crd_that_prunes_nothing_is_open_whatever_its_schema_says() -> None:
    body = crd(v1=whole())
    body["spec"]["preserveUnknownFields"] = True
    found, _ = catalog(body)
    assert refused_at(judged(found, {"x": {"containers": [RUN]}})) == [("spec", "x")]


def test_open_subtrees_that_are_no_pods_are_not_walked() -> None:
    place = {"place": ".spec.extra", "reason": "values of a loop"}
    found, _ = catalog(crd(v1=whole(extra=OPEN)), notPods=[place])
    assert isinstance(judged(found, {"extra": {"containers": [RUN]}}), Allowed)


def test_without_a_crd_the_profile_decides_what_is_walked() -> None:
    found, problems = catalog()
    assert problems == []
    assert isinstance(judged(found, {"x": {"containers": [RUN]}}), Allowed)


def test_kinds_and_versions_without_a_definition_are_named() -> None:
    schema = whole(jobs={"type": "array", "items": objects(pod=POD)})
    bodies = [crd(v3=schema), crd("Other", v1=schema), crd("Plain", v1=objects(spec=objects()))]
    _, problems = catalog(*bodies)
    first, second = problems
    assert {each.reason for each in problems} == {"kind-ungoverned"}
    assert {each.severity for each in problems} == {"warning"}
    assert "Group.batch.example.com/v3" in first.found
    assert "no definition is for this version" in first.found
    assert "Other.batch.example.com/v1" in second.found
    assert ".spec.template, .spec.jobs[].pod" in second.found
    assert "podgate interface infer" in second.fix


INCOMPLETE = "a CustomResourceDefinition without spec.names.kind or spec.versions"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ([], "no CustomResourceDefinition"),
        ({"kind": "Kustomization"}, "Kustomization instead of a CustomResourceDefinition"),
        ({"kind": "CustomResourceDefinition"}, INCOMPLETE),
        (
            {"kind": "CustomResourceDefinition", "spec": {"names": {"kind": "X"}, "versions": []}},
            INCOMPLETE,
        ),
    ],
)
def test_what_is_no_crd_is_told_and_left_out(data: Any, found: str) -> None:
    schemas, (problem,) = read(data)
    assert schemas == []
    assert (problem.reason, problem.severity) == ("not-a-crd", "warning")
    assert problem.found == found


def test_a_list_of_crds_is_read_as_its_items() -> None:
    listed = {"kind": "List", "items": [crd(v1=whole()), crd("Other", v1=whole())]}
    schemas, problems = read(listed)
    assert problems == []
    assert [each.kind for each in schemas] == ["Group", "Other"]


def policy(**defaults: Any) -> dict[str, Any]:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "p"},
        "spec": {"scope": "cluster", "defaults": defaults},
    }


LABELLED = {"labels": {"instances": [{"name": "team", "value": "a"}]}}
DIRECTORY = {
    "storage": {"emptyDirVolume": {"instances": [{"name": "scratch", "path": "/scratch"}]}}
}


@pytest.mark.parametrize(
    ("defaults", "field", "lacking", "having"),
    [
        (
            {"security": {"hostNetwork": True}},
            "security.hostNetwork",
            objects(spec=POD),
            objects(spec=objects(**POD["properties"], hostNetwork={"type": "boolean"})),
        ),
        (LABELLED, "labels", objects(metadata={"type": "object"}, spec=POD), TEMPLATE),
        (
            DIRECTORY,
            "storage.emptyDirVolume",
            objects(
                spec=objects(
                    containers={
                        "type": "array",
                        "items": objects(
                            **ITEM["properties"],
                            volumeMounts={
                                "type": "array",
                                "items": objects(name=TEXT, mountPath=TEXT),
                            },
                        ),
                    },
                    volumes={"type": "array", "items": objects(name=TEXT)},
                )
            ),
            objects(spec=OPEN),
        ),
    ],
)
def test_a_default_that_the_server_would_prune_is_told_instead_of_written(
    defaults: Any, field: str, lacking: Any, having: Any
) -> None:
    bodies = crd(
        v1=objects(spec=objects(template=lacking)), v2=objects(spec=objects(template=having))
    )
    found, _ = catalog(bodies, policy=policy(**defaults))
    decision = judged(found, {})
    assert isinstance(decision, Allowed)
    assert (decision.patch, decision.changes) == ((), ())
    assert [(each.reason, each.field, each.facts) for each in decision.warnings] == [
        ("pruned-default", field, ("Group v1",))
    ]
    written = judged(found, {}, version="v2")
    assert isinstance(written, Allowed)
    assert written.patch
    assert written.warnings == ()


def test_a_locked_default_without_a_place_is_not_asked_for_in_the_final_object() -> None:
    body = policy(security={"hostNetwork": True})
    body["spec"]["rules"] = {"security": {"hostNetwork": {"canEdit": False}}}
    having = objects(spec=objects(**POD["properties"], hostNetwork={"type": "boolean"}))
    wide = objects(spec=objects(template=having))
    found, _ = catalog(crd(v1=whole(), v2=wide), policy=body)
    assert isinstance(judged(found, {}, stage=Stage.VALIDATE), Allowed)
    assert isinstance(judged(found, {}, version="v2", stage=Stage.VALIDATE), Denied)


def shape(schema: Any) -> Shape:
    return Shapes().of(schema)


@pytest.mark.parametrize(
    ("path", "value", "kept"),
    [
        (("metadata", "labels", "a"), "b", True),
        (("spec", "a"), "x", True),
        (("spec", "b"), "x", False),
        (("spec", "list", 3, "a"), "x", True),
        (("spec", "list", 3, "b"), "x", False),
        (("spec", "list"), [{"a": 1}, {"b": 1}], False),
        (("spec", "map", "any", "a"), "x", True),
        (("spec", "map"), {"any": {"a": 1}}, True),
        (("spec", "map"), {"any": {"b": 1}}, False),
        (("spec", "open", "any", 0, "deep"), {"er": 1}, True),
        (("spec", "text", "below"), 1, False),
        (("spec", "half", "known"), {"b": 1}, False),
        (("spec", "half", "unknown"), {"b": 1}, True),
        (("spec", "inner", "metadata", "labels"), {"a": "b"}, True),
        (("other",), 1, False),
    ],
)
def test_a_shape_knows_what_servers_keep(path: Any, value: Any, kept: bool) -> None:
    inner = objects(a=TEXT)
    known = shape(
        objects(
            spec=objects(
                a=TEXT,
                list={"type": "array", "items": inner},
                map={"type": "object", "additionalProperties": inner},
                open=OPEN,
                text=TEXT,
                half=objects(known=inner) | {"x-kubernetes-preserve-unknown-fields": True},
                inner={"type": "object", "x-kubernetes-embedded-resource": True},
            )
        )
    )
    assert known.keeps(path, value) is kept


def test_equal_parts_of_schemas_are_kept_once() -> None:
    shapes = Shapes()
    first, second = (shapes.of(objects(spec=objects(a=POD, b=POD))) for _ in range(2))
    spec = first.keys["spec"]
    assert first is second
    assert spec.keys["a"] is spec.keys["b"]


def test_the_shipped_definitions_cover_every_crd_that_is_at_hand(upstream_data: Path) -> None:
    found, problems = load(Sources(crds=(str(upstream_data / "crds"),)))
    assert found is not None
    assert problems == ()
    schemas, _ = schemas_of([str(upstream_data / "crds")])
    assert len(schemas) >= 28
    for each in schemas:
        definition = found.definition(each.group, each.kind, each.version)
        governed = bool(each.spots) or (each.group, each.kind) in KINDS
        assert (definition is not None) == governed, each.name


def test_sixty_crds_are_compiled_in_two_seconds_and_kept_small(upstream_data: Path) -> None:
    documents, _ = read_all([str(upstream_data / "crds")], kubernetes=True)
    own, _ = shipped_documents()
    bare, _ = assemble(own, (), Choices())
    assert bare is not None
    started = time.process_time()
    shapes, schemas = Shapes(), []
    for each in documents:
        schemas += read_schemas(each, shapes)[0]
    assert list(prove_all(dict(bare.definitions), schemas)) == []
    spent = time.process_time() - started
    assert spent * 60 / len(documents) < 2
    # Ten thousand nodes and more in each large schema come down to what they share.
    assert len(shapes.known) < 100 * len(documents)


def test_a_definition_without_a_profile_is_proven_too() -> None:
    schemas, _ = read(crd(v1=whole(helper=POD)))
    alone = grouped(specDefinition={"podTemplateSpecPath": ".spec.template"})
    problems = list(prove_all({(GROUP, "Group"): (alone,)}, schemas))
    assert [each.path for each in problems] == [".spec.helper"]
