"""Advice on policies that load: when each piece is given, and when it is not."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from functools import lru_cache
from types import ModuleType

import pytest

import webhook.lint
from tests.building import shipped, table
from webhook.catalog.build import Choices, assemble
from webhook.cli.lint import build_lint_context, kinds_of
from webhook.documents.problem import Problem
from webhook.documents.yaml_source import read_documents
from webhook.lint.advice import REASONS, TABLES, lint
from webhook.lint.kinds import Kind, LintContext, identity
from webhook.policy import checks
from webhook.policy.table import TABLE
from webhook.sources.load import Sources, load

HEAD = "apiVersion: podgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{space}}}\nspec:\n  {spec}\n"


def cluster(spec: str, name: str = "wide") -> str:
    """A cluster policy around the lines of its spec."""
    return HEAD.format(kind="ClusterWorkloadPolicy", name=name, space="", spec=spec)


def project(spec: str, name: str = "narrow", namespace: str = "team") -> str:
    """A project policy around the lines of its spec."""
    space = f", namespace: {namespace}"
    return HEAD.format(kind="WorkloadPolicy", name=name, space=space, spec=spec)


def advice(*texts: str) -> list[Problem]:
    """What is said about these policies beyond what loading says."""
    documents = [each for text in texts for each in read_documents(text, "given.yaml")[0]]
    catalog, problems = assemble(shipped(), documents, Choices(), table())
    assert catalog is not None, problems
    return list(lint(build_lint_context(catalog, documents, Sources())))


def reasons(*texts: str) -> list[str]:
    """The reasons of the advice."""
    return [each.reason for each in advice(*texts)]


def test_every_piece_has_a_place_a_reason_and_a_fix() -> None:
    spec = "workloadTypes: [training]\n  rules: {compute: {cpuCoreLimit: {max: 4}}}"
    found = advice(cluster(spec))
    assert [(each.line, each.column) for each in found] == [(6, 36), (6, 36)]
    for each in found:
        assert each.severity == "warning"
        assert each.reason in REASONS
        assert each.fix
        assert each.path == "spec.rules.compute.cpuCoreLimit.max"


@pytest.mark.parametrize(
    "leaf", ["compute: {gpuDevicesRequest: {max: 4}}", "security: {runAsNonRoot: {canEdit: false}}"]
)
def test_a_rule_for_some_types_leaves_out_the_others(leaf: str) -> None:
    (found,) = advice(cluster(f"workloadTypes: [training, distributed]\n  rules: {{{leaf}}}"))
    assert found.reason == "kinds-not-covered"
    for name in ("workspace", "inference", "distributedInference"):
        assert name in found.found
    assert "training" not in found.found


def test_a_rule_for_kinds_names_the_other_kinds() -> None:
    kinds = "kinds: [{group: apps, kind: StatefulSet}]"
    (found,) = advice(cluster(f"{kinds}\n  rules: {{image: {{canEdit: false}}}}"))
    assert found.reason == "kinds-not-covered"
    assert "NIMCache.apps.nvidia.com" in found.found
    assert "StatefulSet" not in re.findall(r"[A-Za-z.]+", found.found)


@pytest.mark.parametrize(
    "spec",
    [
        "rules: {compute: {gpuDevicesRequest: {max: 4}}}",
        "workloadTypes: [training]\n  rules: {backoffLimit: {max: 4}}",
        "workloadTypes: [training]\n  defaults: {compute: {gpuDevicesRequest: 4}}",
        "workloadTypes: [training]\n  rules: {security: {privileged: {canEdit: true}}}",
    ],
)
def test_rules_for_all_kinds_other_sections_and_permissions_leave_nothing_out(spec: str) -> None:
    assert reasons(cluster(spec)) == []


def test_another_policy_may_cover_the_rest() -> None:
    rules = "rules: {compute: {gpuDevicesRequest: {max: 4}}}"
    some = cluster(f"workloadTypes: [training, distributed, workspace]\n  {rules}", "some")
    rest = cluster(
        f"workloadTypes: [inference, distributedInference, nimService]\n  {rules}", "rest"
    )
    # Kinds without a workload type are named one by one.
    catalog, _ = load(Sources())
    assert catalog is not None
    named = ", ".join(
        f"{{group: {json.dumps(each.group)}, kind: {each.name}}}"
        for each in kinds_of(catalog)
        if not each.workload_type
    )
    untyped = f"kinds: [{named}]"
    untyped_too = cluster(f"{untyped}\n  {rules}", "untyped")
    assert reasons(some, rest, untyped_too) == []
    elsewhere = f"namespaceSelector: {{matchLabels: {{a: b}}}}\n  {rules}"
    assert reasons(some, cluster(elsewhere, "rest")) == ["kinds-not-covered"]
    trial = f"enforcement: Audit\n  {rules}"
    assert reasons(some, cluster(trial, "rest")) == ["kinds-not-covered"]
    team = project(f"workloadTypes: [training]\n  {rules}")
    assert "kinds-not-covered" not in reasons(team, cluster(rules))


def test_a_rule_below_one_role_leaves_out_the_others() -> None:
    rules = "rules: {worker: {security: {capabilities: {canEdit: false}}}}"
    (found,) = advice(cluster(rules))
    assert found.reason == "kinds-not-covered"
    assert "the master of" in found.found
    both = "rules: {security: {capabilities: {canEdit: false}}, worker: {image: {blocked: false}}}"
    assert reasons(cluster(both)) == []


def test_kinds_without_definition() -> None:
    spec = "kinds: [{group: ray.io, kind: RayCluster}, {group: ray.io, kind: RayClutser}]"
    (found,) = advice(cluster(f"{spec}\n  rules: {{nodeType: {{canEdit: false}}}}"))
    assert (found.reason, found.path) == ("no-shipped-kind", "spec.kinds[1]")
    assert "RayCluster.ray.io" in found.fix


def test_types_without_kinds() -> None:
    context = LintContext((), (), ())
    assert lint(context) == ()
    documents, _ = read_documents(cluster("workloadTypes: [nimService]"), "given.yaml")
    catalog, _ = assemble(shipped(), documents, Choices(), table())
    assert catalog is not None
    full = build_lint_context(catalog, documents, Sources())
    kinds = [each for each in full.kinds if each.workload_type != "nimService"]
    found = lint(LintContext(full.policies, full.own, kinds, sources=full.sources))
    assert [(each.reason, each.path) for each in found] == [
        ("no-shipped-kind", "spec.workloadTypes")
    ]


def test_fields_that_no_governed_kind_carries() -> None:
    kinds = "kinds: [{group: apps, kind: Deployment}]"
    (found,) = advice(cluster(f"{kinds}\n  rules: {{backoffLimit: {{max: 3}}}}"))
    assert found.reason == "no-kind-carries"
    assert "backoffLimit" in found.found
    assert "Job" in found.fix
    more = "kinds: [{group: apps, kind: Deployment}, {group: batch, kind: Job}]"
    assert reasons(cluster(f"{more}\n  rules: {{backoffLimit: {{max: 3}}}}")) == []


def test_prohibitions_of_narrower_scopes_that_a_broader_claim_takes_away() -> None:
    wide = cluster("rules: {compute: {gpuDevicesRequest: {max: 4}}}")
    narrow = project("rules: {compute: {gpuDevicesRequest: {blocked: true}}}")
    (found,) = advice(wide, narrow)
    assert found.reason == "prohibition-lost"
    assert found.path == "spec.rules.compute.gpuDevicesRequest.blocked"
    assert "cluster policy wide" in found.found


def test_rules_that_another_scope_takes_away() -> None:
    wide = cluster("rules: {compute: {gpuDevicesRequest: {max: 4}}}")
    narrow = project("rules: {compute: {gpuDevicesRequest: {min: 1}}}")
    assert reasons(wide, narrow) == ["rules-lost"]
    # Of other sections the closest scope's rules hold; the broader ones hold elsewhere.
    wide, narrow = (make("rules: {nodeType: {required: true}}") for make in (cluster, project))
    assert reasons(wide, narrow) == []


def test_lists_of_images_without_a_common_one() -> None:
    wide = cluster("rules: {image: {options: [a, b], required: true}}")
    apart = project("rules: {image: {options: [c, d], required: true}}")
    found = advice(wide, apart)
    assert [(each.reason, each.path) for each in found] == [
        ("no-common-image", "spec.rules.image.options")
    ] * 2
    assert any("cluster policy wide" in each.found for each in found)
    assert reasons(wide, project("rules: {image: {options: [b, c], required: true}}")) == []
    # The system's list gives way to any other.
    system = cluster("scope: system\n  rules: {image: {options: [x, y], required: true}}", "system")
    assert reasons(system, apart) == []


def test_defaults_that_are_always_replaced() -> None:
    tenant = cluster("scope: tenant\n  defaults: {nodeType: a}", "tenant")
    assert reasons(tenant, cluster("defaults: {nodeType: b}")) == ["default-never-written"]
    assert reasons(tenant, project("defaults: {nodeType: b}")) == []


def test_a_single_option() -> None:
    options = "rules: {nodeType: {options: [{value: a}]}}"
    assert reasons(cluster(options)) == ["single-option"]
    assert reasons(cluster(f"defaults: {{nodeType: a}}\n  {options}")) == []
    assert reasons(cluster("rules: {nodeType: {options: [a], required: true}}")) == []
    assert reasons(cluster("rules: {nodeType: {options: [a, b]}}")) == []
    assert reasons(cluster("defaults: {nodeType: a}", "other"), cluster(options)) == []


@pytest.mark.parametrize(
    "rule, told",
    [
        ("compute: {cpuCoreLimit: {max: 4}}", True),
        ("compute: {cpuMemoryLimit: {min: 4Gi}}", True),
        ("security: {runAsUid: {min: 1000}}", True),
        ("security: {runAsUid: {max: 1000}}", False),
        ("compute: {cpuCoreLimit: {max: 4, required: true}}", False),
        ("compute: {cpuCoreLimit: {max: 4, blocked: true}}", False),
        ("compute: {cpuCoreRequest: {max: 4}}", False),
        ("compute: {gpuDevicesRequest: {max: 4}}", False),
    ],
)
def test_bounds_that_who_gives_no_value_passes(rule: str, told: bool) -> None:
    assert ("bound-without-value" in reasons(cluster(f"rules: {{{rule}}}"))) == told


@pytest.mark.parametrize(
    "selector, reason",
    [
        ("{}", "selector-all"),
        ("{matchExpressions: [{key: a, operator: NotIn, values: [b]}]}", "selector-negative"),
        ("{matchExpressions: [{key: a, operator: DoesNotExist}]}", "selector-negative"),
        (
            "{matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}",
            "selector-empty",
        ),
        ("{matchLabels: {metadata.name: b}}", "selector-name-label"),
        ("{matchLabels: {kubernetes.io/metadata.nam: b}}", "selector-name-label"),
        ("{matchLabels: {a: b}}", ""),
        ("{matchLabels: {kubernetes.io/metadata.name: b}}", ""),
        ("{matchLabels: {a: b}, matchExpressions: [{key: c, operator: DoesNotExist}]}", ""),
    ],
)
def test_selectors(selector: str, reason: str) -> None:
    assert reasons(cluster(f"namespaceSelector: {selector}")) == ([reason] if reason else [])


def test_exclusions_of_what_is_not_selected() -> None:
    by_name = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}"
    assert reasons(cluster(f"{by_name}\n  excludeNamespaces: [b]")) == ["exclusion-without-effect"]
    assert reasons(cluster("excludeNamespaces: [b]")) == []


def test_shipped_policies_are_not_advised_on() -> None:
    assert advice() == []


@lru_cache
def kinds() -> tuple[Kind, ...]:
    """The shipped kinds."""
    catalog, _ = assemble(shipped(), [], Choices(), table())
    assert catalog is not None
    return tuple(kinds_of(catalog))


def test_facts_about_shipped_kinds() -> None:
    found = {each.label: each for each in kinds()}
    assert found["Job.batch"].workload_type == "training"
    assert "backoffLimit" in found["Job.batch"].fields
    assert found["Pod"].fields >= frozenset()
    roles = {role for _, role in found["PyTorchJob.kubeflow.org"].components for role in role}
    assert {"master", "worker"} <= roles


def test_documents_are_found_by_what_they_say() -> None:
    documents, _ = read_documents("defaults: {nodeType: a}", "dir/bare.yaml")
    catalog, _ = assemble(shipped(), documents, Choices(), table())
    assert catalog is not None
    (own,) = build_lint_context(catalog, documents, Sources()).own
    assert identity(own) == ("dir/bare.yaml", "bare", "")


@pytest.mark.parametrize(
    "leaf",
    ["scheduling: {nodeName: {blocked: true}}", "total: {gpuDevices: {max: 8}}"],
)
def test_rules_on_scheduling_and_totals_guard_the_cluster_too(leaf: str) -> None:
    assert reasons(cluster(f"rules: {{{leaf}}}")) == []
    assert reasons(cluster(f"workloadTypes: [training]\n  rules: {{{leaf}}}")) == [
        "kinds-not-covered"
    ]


def test_numbers_of_pods_are_a_matter_of_each_kind() -> None:
    kinds = "kinds: [{group: apps, kind: Deployment}]"
    assert reasons(cluster(f"{kinds}\n  rules: {{scale: {{replicas: {{max: 4}}}}}}")) == []


def test_a_single_element_of_a_list_is_a_bound_and_no_only_value() -> None:
    assert reasons(cluster("rules: {security: {capabilities: {options: [CHOWN]}}}")) == []


def test_serving_ports_are_carried_by_the_kinds_whose_profiles_name_them() -> None:
    row = TABLE.fields["servingPort.protocol"]
    assert not Kind("apps", "Deployment").carries(row)
    assert Kind("", "Service", fields=frozenset({row.path})).carries(row)


SWITCHES = ("stdin", "tty", *(f"security.{name}" for name in ("hostIpc", "hostNetwork", "hostPid")))


@pytest.mark.parametrize(
    "leaf",
    [
        *SWITCHES,
        "security.hostPorts",
        "security.procMount",
        "security.uidGidSource",
        "servingPort.clusterLocalAccessOnly",
        "storage.nfs.attributes.readOnly",
        "tolerations.attributes.operator",
    ],
)
def test_required_has_no_effect_where_absence_is_a_value(leaf: str) -> None:
    """Kubernetes drops an explicit false of these before any webhook sees it."""
    assert "required-without-effect" in reasons(cluster(f"rules: {nested(leaf)}"))


@pytest.mark.parametrize(
    "leaf",
    [
        *(
            f"security.{name}"
            for name in (
                "privileged",
                "runAsNonRoot",
                "readOnlyRootFilesystem",
                "allowPrivilegeEscalation",
                "seccompProfileType",
            )
        ),
        "storage.nfs.attributes.server",
        "modelStore.pvc.claimInfo.accessModes.readWriteOnce",
        "terminateAfterPreemption",
    ],
)
def test_required_has_an_effect_where_a_value_has_to_be_written(leaf: str) -> None:
    assert "required-without-effect" not in reasons(cluster(f"rules: {nested(leaf)}"))


def nested(leaf: str) -> str:
    """The rules of a policy that requires a leaf, as text."""
    found: object = {"required": True}
    for step in reversed(leaf.split(".")):
        found = {step: found}
    return json.dumps(found)


def test_priority_classes_of_the_platform_are_known() -> None:
    listed = "very-low, low, medium-low, medium, medium-high, high, very-high"
    body = f"defaults: {{priorityClass: high}}\n  rules: {{priorityClass: {{options: [{listed}]}}}}"
    assert "unknown-priority-class" not in reasons(cluster(body))


@pytest.mark.parametrize(
    "body", ["defaults: {priorityClass: hihg}", "rules: {priorityClass: {options: [low, hihg]}}"]
)
def test_another_priority_class_is_a_warning(body: str) -> None:
    """A cluster may have classes of its own, so it is no error."""
    found = [each for each in advice(cluster(body)) if each.reason == "unknown-priority-class"]
    assert [(each.found.split(",")[0], each.fix) for each in found] == [
        ("hihg", "did you mean high?")
    ]


def checks_in(package: ModuleType) -> set[type]:
    """Every class of a package that is a check."""
    names = [each.name for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    return {
        found
        for name in names
        for found in vars(importlib.import_module(name)).values()
        if isinstance(found, type) and hasattr(found, "run") and found.__module__ == name
    }


def test_every_check_is_in_a_table_and_no_reason_is_of_two() -> None:
    tables = (checks.OF_LEVELS, checks.OF_DRAFTS, checks.OF_SETS, checks.OF_SETTINGS)
    listed = [each for table in (*tables, *TABLES) for each in table]
    assert {type(each) for each in listed} == checks_in(checks) | checks_in(webhook.lint)
    reasons = [reason for each in listed for reason in each.ids]
    assert sorted(reasons) == sorted(set(reasons))
    assert {each.severity for each in listed} <= {"error", "warning", "note"}
    assert all(each.__doc__ for each in listed)


@pytest.mark.parametrize(
    "kind, leaf, carriers",
    [
        ("{group: batch, kind: Job}", "computeDomain: {numNodes: {max: 4}}", "ComputeDomain."),
        ("{group: batch, kind: Job}", "perClaim: {max: 4}", "ResourceClaim."),
        ("{group: resource.k8s.io, kind: ResourceClaim}", "perPod: {max: 4}", "more have it"),
        ("{group: resource.k8s.io, kind: DeviceClass}", "count: {max: 4}", "more have it"),
        ("{group: resource.nvidia.com, kind: ComputeDomain}", "count: {max: 4}", "more have it"),
    ],
)
def test_rules_of_devices_that_no_governed_kind_carries(
    kind: str, leaf: str, carriers: str
) -> None:
    (found,) = advice(cluster(f"kinds: [{kind}]\n  rules: {{devices: {{{leaf}}}}}"))
    assert (found.reason, found.severity) == ("no-kind-carries", "warning")
    assert carriers in found.fix


def test_rules_of_pods_on_claims_bind_nowhere() -> None:
    kinds = "kinds: [{group: resource.k8s.io, kind: ResourceClaim}]"
    (found,) = advice(cluster(f"{kinds}\n  rules: {{compute: {{cpuCoreRequest: {{max: 4}}}}}}"))
    assert found.reason == "no-kind-carries"


def test_rules_of_devices_guard_the_cluster() -> None:
    rules = "rules: {devices: {types: {options: [gpu]}}}"
    assert reasons(cluster(rules)) == []
    (found,) = advice(cluster(f"kinds: [{{group: batch, kind: Job}}]\n  {rules}"))
    assert found.reason == "kinds-not-covered"


@pytest.mark.parametrize(
    "leaf",
    [
        "allocationMode: {options: [ExactCount]}",
        "sharing: {strategy: {options: [MPS]}}",
        "vfio: {backendPolicy: {options: [LegacyOnly]}}",
    ],
)
def test_a_single_option_of_devices_has_no_gap(leaf: str) -> None:
    assert reasons(cluster(f"rules: {{devices: {{{leaf}}}}}")) == []
