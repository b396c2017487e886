"""What is told of the effective policy of a kind, and of one object: who says what, and why."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest

from tests import building, everything
from tests.building import asset, container, deployment, policy, pytorchjob
from webhook.cases.run_offline import Place, evaluate_manifest, request_of
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import violation_text
from webhook.documents.problem import Problem
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.explain.findings import fields_of
from webhook.explain.kinds import find_kind
from webhook.explain.leaves import explain_kind
from webhook.explain.model import Entry, KindReport, LeafReport, ObjectReport
from webhook.explain.objects import explain_object
from webhook.objects.path import ABSENT, display, read
from webhook.policy.combine import COMBINATIONS, GUARDED, STRICTEST
from webhook.policy.table import TABLE

TEAM = Place("team")


def kind(catalog: Catalog, name: str, component: str = "") -> KindReport:
    """The report of a kind in namespace team."""
    found = find_kind(catalog, name)
    assert not isinstance(found, Problem), found
    definition, version = found
    plans = catalog.plans_for(definition, "team", References(), {})
    return explain_kind(definition, version, "team", plans, component)


def catalog_of(config: InstallationConfig, *documents: dict[str, Any]) -> Catalog:
    """A catalog of policies in an installation with these words."""
    found = [one for each in documents for one in read_documents(json.dumps(each), "p.yaml")[0]]
    choices = Choices(GUARDED, config)
    built, problems = assemble(building.shipped(), found, choices, building.table())
    assert built is not None, problems
    return built


def leaf(report: KindReport, field: str, role: str = "worker") -> LeafReport:
    """One leaf of the component with that role, or of the workload."""
    leaves = [one for each in report.components if each.role == role for one in each.leaves]
    return next(each for each in (*leaves, *report.workload) if each.field == field)


def told(said: Any) -> list[tuple[Any, ...]]:
    """Word, value and policy of what is said."""
    return [(each.what, each.value, each.source.policy) for each in said]


def explained(catalog: Catalog, raw: Any) -> ObjectReport:
    """The report of one manifest in namespace team."""
    verdict = evaluate_manifest(raw, "file.yaml", catalog, References(), TEAM)
    group, _, version = raw["apiVersion"].rpartition("/")
    definition = catalog.definition(group, raw["kind"], version)
    assert definition is not None
    request = request_of(raw, catalog.complete(definition, raw), TEAM)
    plans = catalog.plans_for(definition, "team", References(), {})
    return explain_object(request, plans, References(), None, verdict.decision)


def entries(report: ObjectReport, field: str, pod: int = 0) -> list[Entry]:
    """The values of one field in one pod, or of the workload."""
    found = [*report.pods[pod].fields, *report.workload]
    return next((each.entries for each in found if each.field == field), [])


def values(report: ObjectReport, field: str, pod: int = 0) -> list[tuple[Any, str, str | None]]:
    """Value, source and policy of every value of a field."""
    return [
        (each.value, each.source, each.by.policy if each.by else None)
        for each in entries(report, field, pod)
    ]


# Kinds


@pytest.mark.parametrize(
    "text, name, version",
    [
        ("PyTorchJob", "PyTorchJob", "v1"),
        ("pytorchjobs", "PyTorchJob", "v1"),
        ("Deployment.apps", "Deployment", "v1"),
        ("DEPLOYMENTS.apps/v1", "Deployment", "v1"),
        ("pod", "Pod", "v1"),
        ("Pod.core/v1", "Pod", "v1"),
    ],
)
def test_kinds_are_found_by_kind_plural_group_and_version(
    text: str, name: str, version: str
) -> None:
    found = find_kind(building.catalog(), text)
    assert not isinstance(found, Problem)
    assert (found[0].interface.kind, found[1]) == (name, version)


@pytest.mark.parametrize(
    "text, reason, fix",
    [
        ("Deploymnt", "unknown-kind", "did you mean Deployment.apps?"),
        ("pytorchjbs.kubeflow.org", "unknown-kind", "did you mean PyTorchJob.kubeflow.org?"),
        ("Deployment.batch", "unknown-kind", "write Deployment.apps"),
        ("Deployment/v2", "unknown-version", "write v1"),
        ("Zebra", "unknown-kind", "add a definition: --interfaces"),
    ],
)
def test_an_unknown_kind_is_told_with_what_was_meant(text: str, reason: str, fix: str) -> None:
    found = find_kind(building.catalog(), text)
    assert isinstance(found, Problem)
    assert (found.reason, found.fix) == (reason, fix)


# The effective policy


def test_every_leaf_has_its_default_and_rules_with_their_policies() -> None:
    rules = building.catalog(
        policy("{rules: {compute: {cpuCoreRequest: {max: 4}}}}", "floor"),
        policy("{defaults: {compute: {cpuCoreRequest: 2}}}", "ours", namespace="team"),
    )
    found = leaf(kind(rules, "Deployment"), "compute.cpuCoreRequest")
    assert found.default is not None
    assert told([found.default]) == [("default", 2, "ours")]
    assert found.default.source.scope == "project"
    assert told(found.rules) == [("max", "4", "floor")]


def test_a_default_that_lost_names_the_winner() -> None:
    rules = building.catalog(
        policy("{defaults: {workingDir: /a}}", "wide"),
        policy("{defaults: {workingDir: /b}}", "near", namespace="team"),
    )
    (lost,) = leaf(kind(rules, "Deployment"), "workingDir").lost
    assert (lost.what, lost.value, lost.source.policy, lost.reason) == (
        "default",
        "/a",
        "wide",
        "a closer scope sets it",
    )
    assert lost.to is not None
    assert lost.to.policy == "near"


def test_what_a_lock_shuts_out_names_the_lock() -> None:
    rules = building.catalog(
        policy("{defaults: {workingDir: /a}, rules: {workingDir: {canEdit: false}}}", "lock"),
        policy("{defaults: {workingDir: /b}}", "near", namespace="team"),
    )
    found = leaf(kind(rules, "Deployment"), "workingDir")
    assert found.default is not None
    assert found.default.value == "/a"
    assert [(each.value, each.to and each.to.policy) for each in found.lost] == [("/b", "lock")]


def test_rules_that_lost_are_told_with_the_order_of_their_field() -> None:
    rules = building.catalog(
        policy(
            "{rules: {compute: {cpuCoreRequest: {max: 4}}, workingDir: {options: [/a]}}}", "wide"
        ),
        policy(
            "{rules: {compute: {cpuCoreRequest: {max: 8}}, workingDir: {options: [/b]}}}",
            "near",
            namespace="team",
        ),
    )
    report = kind(rules, "Deployment")
    for field, winner, loser, order in (
        ("compute.cpuCoreRequest", "wide", "near", "broadest"),
        ("workingDir", "near", "wide", "closest"),
    ):
        found = leaf(report, field)
        assert [each.source.policy for each in found.rules] == [winner]
        (lost,) = found.lost
        assert lost.source.policy == loser
        assert order in lost.reason
        assert lost.to is not None
        assert lost.to.policy == winner


def test_a_released_system_prohibition_names_who_releases_it() -> None:
    opened = policy("{rules: {security: {privileged: {canEdit: true}}}}", "open", namespace="team")
    found = leaf(kind(building.catalog(opened), "Deployment"), "security.privileged")
    assert found.rules == ()
    (lost,) = found.lost
    assert (lost.what, lost.value, lost.source.scope) == ("canEdit", False, "system")
    assert lost.to is not None
    assert lost.to.policy == "open"


def test_a_permission_that_a_broader_prohibition_outlives_is_told_as_lost() -> None:
    rules = building.catalog(
        policy("{rules: {workingDir: {canEdit: false}}}", "lock"),
        policy("{rules: {workingDir: {canEdit: true}}}", "open", namespace="team"),
    )
    found = leaf(kind(rules, "Deployment"), "workingDir")
    assert told(found.rules) == [("canEdit", False, "lock")]
    assert [(each.what, each.value, each.source.policy) for each in found.lost] == [
        ("canEdit", True, "open")
    ]


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_rules_in_force_and_rules_that_lost_are_together_all_that_was_said(
    combination: str,
) -> None:
    body = "{rules: {compute: {cpuCoreRequest: {min: %d, max: %d}}, workingDir: {options: [/%s]}}}"
    rules = building.catalog(
        policy(body % (1, 9, "a"), "tenant", scope="tenant"),
        policy(body % (2, 8, "b"), "cluster"),
        policy(body % (3, 7, "c"), "project", namespace="team"),
        combination=combination,
    )
    report = kind(rules, "Deployment")
    for field, count in (("compute.cpuCoreRequest", 6), ("workingDir", 3)):
        found = leaf(report, field)
        assert len(found.rules) + len(found.lost) == count
        assert not (combination == STRICTEST and found.lost)


def test_imposed_and_default_items_are_told_with_their_lock() -> None:
    rules = building.catalog(
        asset("data", "/data", "/data"),
        policy("{imposedAssets: [data]}", "imposes"),
        policy(
            "{defaults: {labels: {instances: [{name: team, value: a}]}}, "
            "rules: {labels: {instances: {locked: [team]}}}}",
            "labels",
        ),
    )
    report = kind(rules, "Deployment")
    (imposed,) = leaf(report, "storage.hostPath").items
    assert (imposed.key, imposed.imposed, imposed.locked) == ("data", True, True)
    assert imposed.source.policy == "imposes"
    (label,) = leaf(report, "labels").items
    assert (label.key, label.imposed, label.locked) == ("team", False, True)
    assert label.attributes == {"name": "team", "value": "a"}


def test_components_and_roles_have_their_own_leaves() -> None:
    rules = building.catalog("{defaults: {worker: {workingDir: /w}, master: {workingDir: /m}}}")
    report = kind(rules, "pytorchjob")
    for role, value in (("worker", "/w"), ("master", "/m")):
        default = leaf(report, "workingDir", role).default
        assert default is not None
        assert default.value == value
    only = kind(rules, "pytorchjob", "Master")
    assert [each.role for each in only.components] == ["master"]


def test_fields_that_the_kind_cannot_carry_are_told() -> None:
    rules = building.catalog(
        "{rules: {backoffLimit: {max: 3}, autoscaling: {maxReplicas: {max: 3}}}}"
    )
    found = leaf(kind(rules, "Deployment"), "autoscaling.maxReplicas")
    assert (found.support, found.why) == ("unmapped", "Deployment has no path for it")
    found = leaf(kind(rules, "Deployment"), "backoffLimit")
    assert found.why == "for workloads of type workspace, training, distributed only"
    assert leaf(kind(rules, "Job"), "backoffLimit").support == "mapped"


def test_policies_on_trial_are_told_apart_from_those_in_force() -> None:
    rules = building.catalog(
        policy("{rules: {workingDir: {required: true}}}", "trial", enforcement="Warn"),
    )
    report = kind(rules, "Deployment")
    found = leaf(report, "workingDir")
    assert found.rules == ()
    assert told(found.unenforced) == [("required", True, "trial")]
    assert [each.policy for each in report.policies] == ["system", "trial"]


def test_values_of_secret_fields_are_in_no_report() -> None:
    rules = building.catalog(
        "{defaults: {args: S3CRET, environmentVariables: {instances: [{name: A, value: S3CRET}]}}, "
        "rules: {command: {options: [S3CRET]}}}"
    )
    report = kind(rules, "Deployment")
    assert leaf(report, "args").default is not None
    assert [each.what for each in leaf(report, "command").rules] == ["options"]
    assert "S3CRET" not in repr(report)


# Objects


def test_each_value_has_its_source() -> None:
    rules = building.catalog(
        asset("data", "/data", "/data"),
        policy("{imposedAssets: [data]}", "imposes"),
        policy(
            """
            defaults:
              workingDir: /work
              labels: {instances: [{name: team, value: a}]}
              compute: {cpuMemoryRequest: 1Gi}
              storage: {hostPath: {attributes: {readOnly: true}}}
            rules:
              compute: {cpuMemoryLimit: {defaultFrom: {field: compute.cpuMemoryRequest, factor: 2}}}
            """,
            "base",
        ),
    )
    volumes = [{"name": "own", "hostPath": {"path": "/own"}}]
    mounts = [{"name": "own", "mountPath": "/own"}]
    report = explained(rules, deployment(container(volumeMounts=mounts), volumes=volumes))
    image = "registry.example.com/main:1"
    assert values(report, "image") == [(image, "request", None)]
    assert values(report, "imagePullPolicy") == [("IfNotPresent", "server default", None)]
    assert values(report, "workingDir") == [("/work", "default", "base")]
    assert values(report, "compute.cpuMemoryRequest") == [("1Gi", "default", "base")]
    assert values(report, "compute.cpuMemoryLimit") == [("2Gi", "defaultFrom", "base")]
    assert ("a", "default item", "base") in values(report, "labels")
    own, imposed = entries(report, "storage.hostPath")
    assert (own.key, own.source) == ("own", "request")
    only_read = next(each for each in own.attributes if each.name == "readOnly")
    assert (only_read.value, only_read.source) == (True, "attribute default")
    assert (imposed.key, imposed.source) == ("data", "imposed")
    assert imposed.by is not None
    assert imposed.by.policy == "imposes"


def test_values_are_those_of_the_completed_object_at_their_places() -> None:
    rules = building.catalog(
        "{defaults: {workingDir: /work, backoffLimit: 2, compute: {cpuCoreRequest: 1}, "
        "tolerations: {instances: [{name: t, key: a, operator: Exists}]}}}"
    )
    raw = pytorchjob(container(command=["x"]))
    completed = evaluate_manifest(raw, "file.yaml", rules, References(), TEAM).object
    report = explained(rules, raw)
    count = 0
    for _, found in fields_of(report):
        for entry in found.entries:
            plain = entry.value is not ABSENT and not isinstance(entry.value, dict | None)
            if plain and entry.path and not entry.derived:
                count += 1
                assert read(completed, entry.path) == entry.value, display(entry.path)
    assert count > 8


def test_a_value_below_its_request_is_told_as_brought_in_line() -> None:
    rules = building.catalog("{defaults: {compute: {cpuMemoryLimit: 1Gi}}}")
    raw = deployment(container(resources={"requests": {"memory": "2Gi"}}))
    (entry,) = entries(explained(rules, raw), "compute.cpuMemoryLimit")
    assert (entry.value, entry.source) == ("2Gi", "default")
    assert "in line with the request" in entry.note


def test_violations_stand_at_their_values_even_where_defaults_move_these() -> None:
    rules = building.catalog(
        "{defaults: {environmentVariables: {instances: [{name: A, value: a}, {name: B, value: b}]}},"
        " rules: {environmentVariables: {instances: {canAdd: false}}}}"
    )
    env = [{"name": "MINE", "value": "S3CRET"}]
    report = explained(rules, deployment(container(env=env)))
    assert report.violations == []
    found = {each.key: [v.reason for v in each.violations] for each in env_of(report)}
    assert found == {"A": [], "B": [], "MINE": ["canAdd"]}
    assert "S3CRET" not in repr(report.pods)


def env_of(report: ObjectReport) -> list[Entry]:
    """The env entries of the first pod."""
    return entries(report, "environmentVariables")


def test_every_violation_is_told_once() -> None:
    rules = building.catalog(
        "{rules: {workingDir: {required: true}, backoffLimit: {max: 3}, image: {options: [a]}, "
        "security: {privileged: {canEdit: false}}, compute: {cpuCoreRequest: {max: 1}}, "
        "storage: {hostPath: {instances: {canAdd: false}}}}}"
    )
    main = container(
        securityContext={"privileged": True}, resources={"requests": {"cpu": 3}, "limits": {}}
    )
    raw = pytorchjob(main, container("side"), volumes=[{"name": "h", "hostPath": {"path": "/h"}}])
    raw["spec"]["runPolicy"] = {"backoffLimit": 9}
    verdict = evaluate_manifest(raw, "file.yaml", rules, References(), TEAM)
    report = explained(rules, raw)
    seen = [v for _, f in fields_of(report) for e in f.entries for v in e.violations]
    assert report.violations == []
    assert sorted(map(repr, seen)) == sorted(map(repr, getattr(verdict.decision, "violations", ())))
    assert len(seen) > 8


def test_an_excluded_item_is_told() -> None:
    rules = building.catalog("{defaults: {labels: {instances: [{name: team, value: a}]}}}")
    raw = deployment()
    note = json.dumps({"labels": ["team"]})
    raw["metadata"]["annotations"] = {"podgate.dev/exclude": note}
    team = next(each for each in entries(explained(rules, raw), "labels") if each.key == "team")
    assert team.value is ABSENT
    assert "exclude" in team.note


def test_a_field_that_the_kind_cannot_carry_is_unset_with_the_reason() -> None:
    rules = building.catalog("{defaults: {backoffLimit: 3, autoscaling: {maxReplicas: 3}}}")
    report = explained(rules, deployment())
    assert entries(report, "backoffLimit") == []
    (entry,) = entries(report, "autoscaling.maxReplicas")
    assert (entry.value, entry.source) == (ABSENT, "unset")
    assert entry.note == "Deployment has no path for it"
    assert [each.reason for each in entry.warnings] == ["unmapped-default"]


QUAY = {"group": "ports.example.org", "version": "v1", "kind": "Quay"}
QUAY_INTERFACE = {
    "apiVersion": "run.ai/v1alpha1",
    "kind": "Karta",
    "metadata": {"name": "quay"},
    "spec": {
        "structureDefinition": {
            "rootComponent": {
                "name": "quay",
                "kind": QUAY,
                "statusDefinition": {"statusMappings": {}},
            },
            "childComponents": [
                {
                    "name": "crane",
                    "ownerRef": "quay",
                    "specDefinition": {"podTemplateSpecPath": ".spec.crane"},
                },
                {
                    "name": "gate",
                    "ownerRef": "quay",
                    "specDefinition": {
                        "fragmentedPodSpecDefinition": {
                            "imagePath": ".spec.gate.image",
                            "resourcesPath": ".spec.gate.resources",
                        }
                    },
                },
            ],
        }
    },
}


def test_a_pod_in_pieces_beside_a_whole_one_is_told_to_lack_the_place() -> None:
    rules = building.catalog(QUAY_INTERFACE, "{defaults: {imagePullPolicy: Always}}")
    crane = building.template(building.pod_spec())
    raw = building.shell(
        "ports.example.org/v1", "Quay", {"crane": crane, "gate": {"image": "gate:1"}}
    )
    report = explained(rules, raw)
    (whole,), (pieces,) = (entries(report, "imagePullPolicy", pod) for pod in (0, 1))
    assert (whole.value, whole.warnings) == ("Always", [])
    assert [(each.reason, each.path) for each in pieces.warnings] == [
        ("unmapped-default", ("spec", "gate"))
    ]


def test_a_kind_is_told_where_its_pods_are_also_where_they_stand_in_pieces() -> None:
    told = kind(building.catalog(QUAY_INTERFACE), "Quay").components
    assert [(each.component, each.pods) for each in told] == [
        ("crane", ".spec.crane"),
        ("gate", ".spec.gate (in fragments)"),
    ]


def test_an_object_whose_pods_cannot_be_told_has_its_violation_on_top() -> None:
    raw = deployment()
    raw["spec"]["template"]["spec"]["containers"] = "none"
    report = explained(building.catalog(), raw)
    assert report.pods == []
    assert [each.reason for each in report.violations] == ["wrong-type"]


def test_a_number_that_no_single_place_holds_is_told_as_computed() -> None:
    rules = building.catalog("{rules: {scale: {replicas: {max: 9}}, numWorkers: {max: 9}}}")
    raw = building.raycluster(groups=("one", "two"))
    report = explained(rules, raw)
    (workers,) = entries(report, "numWorkers")
    assert (workers.value, workers.source) == (2, "computed")
    raw = deployment(replicas=3)
    assert values(explained(rules, raw), "scale.replicas") == [(3, "request", None)]
    del raw["spec"]["replicas"]
    assert values(explained(rules, raw), "scale.replicas") == [(1, "server default", None)]


# The whole catalogue


def nimservice() -> dict[str, Any]:
    """A NIMService, which states its pods in pieces."""
    return {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": {"name": "nim"},
        "spec": {
            "image": {"repository": "nvcr.io/nim/a", "tag": "1", "pullSecrets": ["ngc"]},
            "env": [{"name": "TOKEN", "value": "S3CRET"}],
            "multiNode": {"parallelism": {"pipeline": 4}},
            "resources": {"limits": {"nvidia.com/gpu": 2}},
        },
    }


def leaderworkerset(**workload: Any) -> dict[str, Any]:
    """A LeaderWorkerSet of one template with that container's fields."""
    pod = {"containers": [container(**workload)]}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "group"},
        "spec": {"leaderWorkerTemplate": {"size": 4, "workerTemplate": {"spec": pod}}},
    }


@lru_cache(maxsize=1)
def everything_at_once() -> Catalog:
    """A catalog whose policies have a default and a rule of every field."""
    body = everything.policy("all", defaults=everything.defaults(), scope="cluster")
    other = everything.policy("rules", rules=everything.rules(), scope="tenant")
    return catalog_of(everything.WORDS, body, other)


@pytest.mark.parametrize(
    "name", ["Pod", "Deployment", "Job", "NIMService", "LeaderWorkerSet", "RayCluster", "JobSet"]
)
def test_every_leaf_of_every_field_is_told_of_every_kind(name: str) -> None:
    report = kind(everything_at_once(), name)
    told_leaves = [one for each in report.components for one in each.leaves]
    named = {TABLE.owner(each.field).path for each in (*told_leaves, *report.workload)}
    assert named == set(TABLE.fields)
    for each in (*told_leaves, *report.workload):
        assert each.support == "mapped" or each.why, each.field


@pytest.mark.parametrize(
    "field, reach, why",
    [
        ("category", "not-native", 'kept in metadata.labels["podgate.dev/category"], for others'),
        ("exposedUrls", "not-native", 'kept in metadata.annotations["podgate.dev/exposed-urls"]'),
        ("servingPort.authorizationType", "not-native", "no Kubernetes object has a path for it"),
        ("ports.toolType", "not-native", "no Kubernetes object has a path for it"),
        ("numWorkers", "unmapped", "for workloads of type distributed only"),
        ("total.gpuDevices", "mapped", ""),
    ],
)
def test_what_no_object_carries_and_what_is_for_other_types(
    field: str, reach: str, why: str
) -> None:
    rules = building.catalog(
        "{rules: {category: {required: true}, exposedUrls: {instances: {canAdd: false}}, "
        "servingPort: {authorizationType: {required: true}}, numWorkers: {max: 1}, "
        "total: {gpuDevices: {max: 1}}, ports: {attributes: {toolType: {required: true}}}}}"
    )
    found = leaf(kind(rules, "Deployment"), field)
    assert found.support == reach
    assert found.why.startswith(why)


@pytest.mark.parametrize("features", [frozenset(), frozenset({"kubernetes.podspec-nodeselector"})])
def test_a_field_that_a_feature_of_the_cluster_allows(features: frozenset[str]) -> None:
    config = InstallationConfig(features=features)
    rules = catalog_of(config, policy("{defaults: {nodeType: a100}}"))
    found = leaf(kind(rules, "Service.serving.knative.dev"), "nodeType")
    assert found.support == ("mapped" if features else "forbidden")
    assert ("kubernetes.podspec-nodeselector" in found.why) is not bool(features)


def test_places_of_pods_in_pieces_are_those_of_the_object() -> None:
    rules = building.catalog(
        "{defaults: {workingDir: /w, imagePullPolicy: Always, multiNode: {workers: 1}}}"
    )
    report = explained(rules, nimservice())
    (image,) = entries(report, "image")
    assert (image.value, image.derived) == ("nvcr.io/nim/a:1", True)
    assert image.path == ("spec", "image", "repository")
    (secret,) = entries(report, "imagePullSecrets")
    assert (secret.key, secret.path) == ("ngc", ("spec", "image", "pullSecrets", 0))
    assert values(report, "imagePullPolicy") == [("Always", "default", "rules-0")]
    (unset,) = entries(report, "workingDir")
    assert unset.value is ABSENT
    assert unset.note == "NIMService has no such part of the pods of service"
    (workers,) = entries(report, "multiNode.workers")
    assert (workers.value, workers.note, workers.derived) == (3, "written 4", True)
    assert "S3CRET" not in repr(report)


def test_words_that_follow_from_other_values_are_told_as_derived() -> None:
    rules = building.catalog(
        "{defaults: {security: {runAsUid: 5}, compute: {largeShmRequest: true, "
        "gpuDevicesRequest: 1}}, rules: {total: {gpuDevices: {max: 9}}}}"
    )
    report = explained(rules, deployment())
    (source,) = entries(report, "security.uidGidSource")
    assert (source.value, source.source, source.derived) == ("custom", "computed", True)
    (shm,) = entries(report, "compute.largeShmRequest")
    assert (shm.value, shm.source, shm.derived) == (True, "default", True)
    (total,) = entries(report, "total.gpuDevices")
    assert (total.value, total.source) == (1, "computed")


def test_preemptibility_follows_from_the_priority_class() -> None:
    raw = deployment()
    raw["metadata"]["labels"] = {"priorityClassName": "very-high"}
    (entry,) = entries(explained(building.catalog(), raw), "preemptibility")
    assert (entry.value, entry.source) == ("non-preemptible", "computed")
    assert entry.note == "follows from the priority class"


def test_items_have_their_amounts_in_the_notation_of_the_field() -> None:
    main = container(resources={"limits": {"example.com/fpga": 2}})
    volumes = [{"name": "s", "emptyDir": {"sizeLimit": "2048Mi"}}]
    report = explained(building.catalog(), deployment(main, volumes=volumes))
    (device,) = entries(report, "compute.extendedResources")
    assert (device.key, device.value) == ("example.com/fpga", {"quantity": "2"})
    (scratch,) = entries(report, "storage.emptyDirVolume")
    assert scratch.value["sizeLimit"] == "2Gi"


def test_items_of_one_annotation_have_their_own_sources() -> None:
    rules = building.catalog(
        "{defaults: {exposedUrls: {instances: [{name: web, container: 8080}]}}}"
    )
    raw = deployment()
    listed = json.dumps([{"name": "mine", "container": 8443}])
    raw["metadata"]["annotations"] = {"podgate.dev/exposed-urls": listed}
    found = entries(explained(rules, raw), "exposedUrls")
    assert [each.source for each in found] == ["request", "default item"]


def test_serving_ports_stand_at_the_port_of_the_pod_that_serves() -> None:
    raw = leaderworkerset(ports=[{"containerPort": 8000, "name": "h2c"}])
    report = explained(building.catalog("{rules: {servingPort: {port: {max: 9000}}}}"), raw)
    assert values(report, "servingPort.port") == [(8000, "request", None)]
    (protocol,) = entries(report, "servingPort.protocol")
    assert (protocol.value, protocol.derived) == ("grpc", True)
    (workers,) = entries(report, "workers")
    assert (workers.value, workers.note) == (3, "written 4")


@pytest.mark.parametrize(
    "wrong",
    [
        {"ports": 7},
        {"ports": [None]},
        {"env": {"a": "b"}},
        {"resources": []},
        {"volumeMounts": [7]},
        {"readinessProbe": {"httpGet": 3}},
        {"securityContext": "x"},
    ],
)
@pytest.mark.parametrize("text", ["{}", "{defaults: {createHomeDir: true}}"])
def test_what_cannot_be_read_is_told_and_never_raises(wrong: dict[str, Any], text: str) -> None:
    rules = building.catalog(text)
    report = explained(rules, deployment(container(**wrong)))
    assert report.policies


def test_a_refused_sum_says_that_several_groups_count_and_a_single_one_what_to_ask_for() -> None:
    rules = building.catalog("{rules: {numWorkers: {max: 4}}}")

    def told(*replicas: int) -> str:
        template = building.template(building.pod_spec())
        groups = [
            {"groupName": f"g{at}", "replicas": number, "template": template}
            for at, number in enumerate(replicas)
        ]
        body = {"headGroupSpec": {"template": template}, "workerGroupSpecs": groups}
        report = explained(rules, building.shell("ray.io/v1", "RayCluster", body))
        (workers,) = entries(report, "numWorkers")
        (violation,) = workers.violations
        return violation_text(violation)

    assert "spec.workerGroupSpecs[0]: 5 is more than the maximum 4" in told(2, 3)
    assert told(2, 3).endswith(
        "The sum of 2 groups counts, and this is the first: change one of them."
    )
    assert told(5).endswith("Write at most 4.")


@pytest.mark.parametrize("kind", ["Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"])
def test_the_pools_of_a_pod_in_fragments_without_metadata_are_unset(kind: str) -> None:
    templates = [
        {"name": "a", "container": {"image": "a"}},
        {
            "name": "b",
            "container": {"image": "a"},
            "metadata": {"labels": {"kai.scheduler/node-pool": "z"}},
        },
    ]
    raw = building.shell("argoproj.io/v1alpha1", kind, {"entrypoint": "a", "templates": templates})
    report = explained(building.catalog(policy("rules: {nodePools: {options: [z]}}")), raw)
    assert [values(report, "nodePools", pod)[0][:2] for pod in (0, 1)] == [
        (ABSENT, "unset"),
        (["z"], "request"),
    ]
