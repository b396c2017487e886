"""Scopes, trials and reach at work: the worked examples of the policy language as decisions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import (
    asset,
    catalog,
    container,
    deployment,
    mutated,
    policy,
    pytorchjob,
    reasons,
    refused,
    request,
    result,
    served,
    validated,
)
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References

VISION: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"department": "vision"}}}
MODES = ("guarded", "documented", "strictest")


def department(body: str, **spec: Any) -> dict[str, Any]:
    return policy(body, "vision", "department", **VISION, **spec)


def project(body: str, **spec: Any) -> dict[str, Any]:
    return policy(body, "own", namespace="team", **spec)


def main(document: Any) -> Any:
    return document["spec"]["template"]["spec"]["containers"][0]


def gpus(count: int) -> Any:
    return served(deployment(container(resources={"limits": {"nvidia.com/gpu": str(count)}})))


def privileged() -> Any:
    return served(deployment(container(securityContext={"privileged": True})))


INSIDE = {"namespace_labels": {"department": "vision"}}
PRIVILEGED = [("security.privileged", "canEdit")]


# 18: the system policy and its release


@pytest.mark.parametrize("mode", MODES)
def test_the_system_policy_holds_until_a_scope_releases_it(mode: str) -> None:
    alone = catalog(combination=mode)
    assert refused(alone, privileged()) == PRIVILEGED
    long = served(deployment(terminationGracePeriodSeconds=301))
    assert refused(alone, long) == [("terminationGracePeriodSeconds", "max")]
    opened = catalog(
        department("rules: {security: {privileged: {canEdit: true}}}"), combination=mode
    )
    assert refused(opened, privileged()) == PRIVILEGED
    document = result(opened, privileged(), **INSIDE)
    assert main(document)["securityContext"]["privileged"] is True
    assert refused(opened, long, **INSIDE) == [("terminationGracePeriodSeconds", "max")]


@pytest.mark.parametrize("mode", MODES)
def test_only_the_system_lock_can_be_released(mode: str) -> None:
    rules = catalog(
        policy("rules: {security: {privileged: {canEdit: false}}}"),
        project("rules: {security: {privileged: {canEdit: true}}}"),
        combination=mode,
    )
    assert refused(rules, privileged()) == PRIVILEGED


# 19: the rules of a leaf


def leaves(mode: str) -> Catalog:
    return catalog(
        policy(
            "rules: {compute: {gpuDevicesRequest: {max: 8}}, priorityClass: {options: [{value: low}]}}"
        ),
        project(
            "rules: {compute: {gpuDevicesRequest: {min: 1, max: 2}, cpuCoreRequest: {max: 4}},"
            " priorityClass: {options: [{value: high}]}}"
        ),
        combination=mode,
    )


def prioritized(name: str) -> Any:
    return served(deployment(priorityClassName=name))


@pytest.mark.parametrize("mode", ["guarded", "documented"])
def test_the_rules_of_a_leaf_come_from_one_scope(mode: str) -> None:
    rules = leaves(mode)
    result(rules, gpus(0))
    result(rules, gpus(8))
    assert refused(rules, gpus(9)) == [("compute.gpuDevicesRequest", "max")]
    busy = served(deployment(container(resources={"requests": {"cpu": "5"}})))
    assert refused(rules, busy) == [("compute.cpuCoreRequest", "max")]
    result(rules, prioritized("high"))
    assert refused(rules, prioritized("low")) == [("priorityClass", "options")]


def test_strictest_takes_all_of_them() -> None:
    rules = leaves("strictest")
    result(rules, gpus(2))
    assert refused(rules, gpus(0)) == [("compute.gpuDevicesRequest", "min")]
    assert refused(rules, gpus(3)) == [("compute.gpuDevicesRequest", "max")]
    for name in ("low", "high"):
        assert refused(rules, prioritized(name)) == [("priorityClass", "options")]


@pytest.mark.parametrize("mode", MODES)
def test_prohibitions_of_broader_scopes_stay_unless_documented(mode: str) -> None:
    rules = catalog(
        policy("rules: {priorityClass: {canEdit: false}, workingDir: {blocked: true}}"),
        project("rules: {priorityClass: {options: [{value: high}]}, workingDir: {blocked: false}}"),
        combination=mode,
    )
    document = served(deployment(container(workingDir="/x"), priorityClassName="high"))
    wanted = [("workingDir", "blocked")]
    if mode != "documented":
        wanted.insert(0, ("priorityClass", "canEdit"))
    assert refused(rules, document) == wanted


def test_prohibitions_on_items_of_broader_scopes_stay() -> None:
    rules = catalog(
        policy(
            "defaults: {environmentVariables: {instances: [{name: A, value: '1'}]}}\n"
            "rules: {environmentVariables: {instances: {locked: [A]}},"
            " tolerations: {instances: {canAdd: false}}}"
        ),
        project(
            "defaults: {environmentVariables: {instances: [{name: A, value: '2'}]}}\n"
            "rules: {environmentVariables: {instances: {locked: [B]}},"
            " tolerations: {instances: {canAdd: true}}}"
        ),
    )
    document = result(rules, served(deployment()))
    assert main(document)["env"] == [{"name": "A", "value": "1"}]
    changed = served(
        deployment(container(env=[{"name": "A", "value": "2"}]), tolerations=[{"key": "x"}])
    )
    assert refused(rules, changed) == [
        ("environmentVariables", "locked"),
        ("tolerations", "canAdd"),
    ]


# 20: defaults


@pytest.mark.parametrize("mode", MODES)
def test_the_closest_default_counts_unless_a_lock_holds_its_own(mode: str) -> None:
    rules = catalog(
        policy(
            "defaults: {security: {runAsUid: 1000}, workingDir: /a, environmentVariables:"
            " {instances: [{name: MIRROR, value: m1}, {name: REGION, value: r1}]}}\n"
            "rules: {security: {runAsUid: {canEdit: false}}}"
        ),
        project(
            "defaults: {security: {runAsUid: 0}, workingDir: /c, environmentVariables:"
            " {instances: [{name: REGION, value: r2}]}}"
        ),
        combination=mode,
    )
    document = result(rules, served(deployment()))
    assert document["spec"]["template"]["spec"]["securityContext"] == {"runAsUser": 1000}
    assert main(document)["workingDir"] == "/c"
    values = {each["name"]: each["value"] for each in main(document)["env"]}
    assert values == {"MIRROR": "m1", "REGION": "r2"}
    root = served(deployment(container(securityContext={"runAsUser": 0})))
    assert refused(rules, root) == [("security.runAsUid", "canEdit")]


def test_a_ban_without_a_default_takes_none_from_a_narrower_scope() -> None:
    rules = catalog(
        policy("rules: {workingDir: {canEdit: false}, tolerations: {instances: {canAdd: false}}}"),
        project(
            "defaults: {workingDir: /mine, tolerations: {instances: [{name: t, key: x,"
            " operator: Exists}]}}"
        ),
    )
    document = served(deployment())
    assert result(rules, document) == document
    mine = served(deployment(container(workingDir="/mine"), tolerations=[{"key": "x"}]))
    assert refused(rules, mine) == [("tolerations", "canAdd"), ("workingDir", "canEdit")]


def test_an_asset_imposed_twice_is_there_once() -> None:
    data = asset("data", "/data", "/data")
    rules = catalog(policy("imposedAssets: [data]"), project("imposedAssets: [data]"), data)
    document = result(rules, served(deployment()))
    assert len(document["spec"]["template"]["spec"]["volumes"]) == 1
    assert len(main(document)["volumeMounts"]) == 1


def test_imposed_assets_of_all_scopes_are_united() -> None:
    rules = catalog(
        policy("imposedAssets: [data]"),
        project(
            "imposedAssets: [models]\nrules: {storage: {hostPath: {instances: {canAdd: false}}}}"
        ),
        asset("data", "/data", "/data"),
        asset("models", "/models", "/models"),
    )
    document = result(rules, served(deployment()))
    names = {each["name"] for each in document["spec"]["template"]["spec"]["volumes"]}
    assert names == {"data", "models"}


# Trials

TRIALS = ("Warn", "Audit")


@pytest.mark.parametrize("enforcement", TRIALS)
def test_a_trial_changes_neither_decision_nor_patch(enforcement: str) -> None:
    enforced = policy(
        "defaults: {workingDir: /a}\nrules: {compute: {gpuDevicesRequest: {max: 4}}}", "enforced"
    )
    trial = policy(
        "defaults: {workingDir: /b, imagePullPolicy: Always}\n"
        "rules: {compute: {gpuDevicesRequest: {max: 2}}, image: {options: [{value: none}]}}",
        "trial",
        "department",
        enforcement=enforcement,
        **VISION,
    )
    alone, both = catalog(enforced), catalog(enforced, trial)
    for count in (1, 3, 5):
        plain = mutated(alone, gpus(count), **INSIDE)
        tried = mutated(both, gpus(count), **INSIDE)
        assert type(plain) is type(tried)
        if isinstance(plain, Allowed) and isinstance(tried, Allowed):
            assert (plain.patch, plain.object) == (tried.patch, tried.object)
        if isinstance(plain, Denied) and isinstance(tried, Denied):
            assert plain.violations == tried.violations
        assert [(each.field, each.rule) for each in tried.audit] == [("image", "options")]
        told = [each for each in tried.warnings if each.reason == "trial"]
        assert len(told) == (1 if enforcement == "Warn" else 0)
        assert not [each for each in plain.warnings if each.reason == "trial"]


@pytest.mark.parametrize("enforcement", TRIALS)
def test_a_trial_cannot_loosen(enforcement: str) -> None:
    trial = policy("rules: {security: {privileged: {canEdit: true}}}", enforcement=enforcement)
    assert refused(catalog(trial), privileged()) == PRIVILEGED
    wider = policy(
        "rules: {compute: {gpuDevicesRequest: {max: 80}}}",
        "wide",
        "tenant",
        enforcement=enforcement,
    )
    held = policy("rules: {compute: {gpuDevicesRequest: {max: 4}}}", "held")
    assert refused(catalog(wider, held), gpus(5)) == [("compute.gpuDevicesRequest", "max")]


def test_a_trial_reaches_where_nothing_is_enforced() -> None:
    trial = policy("rules: {image: {options: [{value: none}]}}", enforcement="Audit")
    decision = mutated(catalog(trial), served(deployment()))
    assert isinstance(decision, Allowed)
    assert [each.rule for each in decision.audit] == ["options"]
    assert not validated(catalog(trial), served(deployment())).audit


# Reach


def test_selectors_and_excludes_choose_namespaces() -> None:
    body = "rules: {image: {options: [{value: none}]}}"
    rules = catalog(
        policy(
            body,
            namespaceSelector={
                "matchLabels": {"tier": "gold"},
                "matchExpressions": [
                    {"key": "legacy", "operator": "DoesNotExist"},
                    {"key": "owner", "operator": "Exists"},
                ],
            },
            excludeNamespaces=["sandbox"],
        )
    )
    document = served(deployment())
    gold = {"tier": "gold", "owner": ""}
    assert refused(rules, document, namespace_labels=gold) == [("image", "options")]
    for namespace, labels in (
        ("team", {}),
        ("team", {**gold, "tier": "silver"}),
        ("team", {"tier": "gold"}),
        ("team", {**gold, "legacy": ""}),
        ("sandbox", gold),
    ):
        assert result(rules, document, namespace=namespace, namespace_labels=labels) == document
    known = References(namespaces={"team": gold})
    assert reasons(decide(request(document), rules, known)) == [("image", "options")]
    own = catalog(project(body))
    assert refused(own, document) == [("image", "options")]
    assert result(own, document, namespace="other") == document


def test_types_and_kinds_choose_objects() -> None:
    body = "rules: {image: {options: [{value: none}]}}"
    distributed = catalog(policy(body, workloadTypes=["distributed"]))
    assert refused(distributed, pytorchjob()) == [("image", "options")]
    assert result(distributed, served(deployment())) == served(deployment())
    kinds = catalog(policy(body, kinds=[{"group": "apps", "kind": "Deployment"}]))
    assert refused(kinds, served(deployment())) == [("image", "options")]
    result(kinds, pytorchjob())


def test_roles_of_a_distributed_kind_have_their_own_words() -> None:
    rules = catalog(
        policy(
            "defaults: {worker: {workingDir: /worker}, master: {workingDir: /master}}\n"
            "rules: {master: {compute: {gpuDevicesRequest: {max: 0}}}}",
            workloadTypes=["distributed"],
        )
    )
    replicas = result(rules, pytorchjob())["spec"]["pytorchReplicaSpecs"]
    for role in ("Master", "Worker"):
        (only,) = replicas[role]["template"]["spec"]["containers"]
        assert only["workingDir"] == f"/{role.lower()}"
    busy = pytorchjob(container(resources={"limits": {"nvidia.com/gpu": "1"}}))
    decision = mutated(rules, busy)
    assert isinstance(decision, Denied)
    assert {each.path[2] for each in decision.violations} == {"Master"}
