"""Replicas: in the object, through the scale subresource, and other subresources of Pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import (
    catalog,
    container,
    deployment,
    edited,
    mutated,
    pod,
    policy,
    pytorchjob,
    reasons,
    refused,
    request,
    result,
    served,
    validated,
)
from webhook.admission.judge import decide_review
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

DEPLOYMENTS = ("apps", "v1", "deployments")
PYTORCHJOBS = ("kubeflow.org", "v1", "pytorchjobs")


def scaling(
    replicas: int | None, old: int | None, resource: tuple[str, str, str] = DEPLOYMENTS
) -> Request:
    def scale(number: int | None) -> Any:
        spec = {} if number is None else {"replicas": number}
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": spec}

    group, version, name = resource
    return Request(
        "autoscaling",
        "v1",
        "Scale",
        "UPDATE",
        scale(replicas),
        scale(old),
        resource=name,
        resource_group=group,
        resource_version=version,
        subresource="scale",
        namespace="team",
    )


def scaled(rules: Catalog, *numbers: Any) -> Decision:
    return decide_review(scaling(*numbers), rules, References())


BOUNDS = "rules: {scale: {replicas: {min: 2, max: 8, step: 2}}}"


@pytest.mark.parametrize("resource", [DEPLOYMENTS, PYTORCHJOBS])
def test_scale_meets_min_max_and_step(resource: tuple[str, str, str]) -> None:
    rules = catalog(BOUNDS)
    for number in (2, 4, 8):
        assert isinstance(scaled(rules, number, 4, resource), Allowed)
    assert reasons(scaled(rules, 10, 4, resource)) == [("scale.replicas", "max")]
    assert reasons(scaled(rules, 3, 4, resource)) == [("scale.replicas", "step")]
    assert ("scale.replicas", "min") in reasons(scaled(rules, 0, 4, resource))


def test_scale_ratchets() -> None:
    rules = catalog(BOUNDS)
    assert isinstance(scaled(rules, 12, 12), Allowed)
    assert isinstance(scaled(rules, 10, 12), Allowed)
    assert reasons(scaled(rules, 14, 12)) == [("scale.replicas", "max")]
    assert reasons(scaled(rules, 11, 12)) == [("scale.replicas", "step")]
    strict = catalog(policy(BOUNDS, existing="strict"))
    assert reasons(scaled(strict, 10, 12)) == [("scale.replicas", "max")]


def test_an_absent_number_of_replicas_is_zero() -> None:
    rules = catalog("rules: {scale: {replicas: {min: 2}}}")
    assert reasons(scaled(rules, None, 4)) == [("scale.replicas", "min")]
    assert isinstance(scaled(rules, None, None), Allowed)


def test_scale_of_workers_meets_the_rules_of_num_workers() -> None:
    rules = catalog(
        policy(
            "defaults: {worker: {numWorkers: 4}}\n"
            "rules: {worker: {numWorkers: {min: 2, max: 8, canEdit: false}}}",
            workloadTypes=["distributed"],
        )
    )
    assert isinstance(scaled(rules, 4, 2, PYTORCHJOBS), Allowed)
    assert reasons(scaled(rules, 16, 2, PYTORCHJOBS)) == [
        ("numWorkers", "canEdit"),
        ("numWorkers", "max"),
    ]
    assert isinstance(scaled(rules, 16, 2), Allowed)


GROVE = [
    ("grove.io", "v1alpha1", each)
    for each in ("podcliquesets", "podcliquescalinggroups", "podcliques")
]


@pytest.mark.parametrize("resource", GROVE)
def test_scale_meets_the_rules_of_the_field_that_it_sets(resource: tuple[str, str, str]) -> None:
    rules = catalog("rules: {replicas: {min: 2, max: 4}}")
    assert isinstance(scaled(rules, 4, 2, resource), Allowed)
    assert reasons(scaled(rules, 64, 2, resource)) == [("replicas", "max")]
    assert reasons(scaled(rules, 1, 2, resource)) == [("replicas", "min")]
    assert isinstance(scaled(rules, 63, 64, resource), Allowed)
    fixed = catalog("defaults: {replicas: 2}\nrules: {replicas: {canEdit: false}}")
    assert reasons(scaled(fixed, 3, 2, resource)) == [("replicas", "canEdit")]


@pytest.mark.parametrize("resource", GROVE[:2])
def test_scale_of_what_multiplies_pods_tells_that_no_total_is_judged(
    resource: tuple[str, str, str],
) -> None:
    rules = catalog(
        "rules: {total: {gpuDevices: {max: 8}}, compute: {gpuDevicesRequest: {max: 1}}}"
    )
    decision = scaled(rules, 4, 2, resource)
    assert isinstance(decision, Allowed)
    assert [each.reason for each in decision.warnings] == ["unseen-gpus"]
    assert not scaled(rules, 2, 4, resource).warnings


def test_scale_is_never_exempt_and_never_patched() -> None:
    rules = catalog(BOUNDS)
    sender = scaling(10, 4)
    for user in ("system:kube-controller-manager", "system:serviceaccount:kube-system:anything"):
        decision = decide_review(
            Request(**{**{n: getattr(sender, n) for n in sender.__slots__}, "user": user}),
            rules,
            References(),
        )
        assert reasons(decision) == [("scale.replicas", "max")]


def test_a_trial_of_scale_is_reported_and_decides_nothing() -> None:
    rules = catalog(policy(BOUNDS, enforcement="Warn"))
    decision = scaled(rules, 10, 4)
    assert isinstance(decision, Allowed)
    assert [each.rule for each in decision.audit] == ["max"]
    assert [each.reason for each in decision.warnings] == ["trial"]


def test_scale_of_an_unknown_resource_passes_unjudged() -> None:
    decision = scaled(catalog(BOUNDS), 10, 4, ("example.com", "v1", "things"))
    assert isinstance(decision, Allowed)
    assert not decision.is_evaluated


def test_a_scale_that_is_no_number_is_refused() -> None:
    broken = scaling(4, 4)
    broken.object["spec"]["replicas"] = "many"
    assert reasons(decide_review(broken, catalog(BOUNDS), References())) == [
        ("scale.replicas", "invalid-value")
    ]


def test_replicas_in_the_object_meet_the_same_rules() -> None:
    rules = catalog(BOUNDS)
    assert refused(rules, served(deployment(replicas=10))) == [("scale.replicas", "max")]
    assert refused(rules, pytorchjob(workers=10, master=False)) == [("scale.replicas", "max")]
    result(rules, served(deployment(replicas=4)))


# Subresources of Pods


def resize(new: Any, old: Any, stage: Stage = Stage.MUTATE, name: str = "resize") -> Request:
    return request(new, old, subresource=name, resource="pods", resource_version="v1", stage=stage)


def test_a_resize_is_judged_and_never_patched() -> None:
    rules = catalog(
        "defaults: {compute: {cpuMemoryRequest: 1Gi}, workingDir: /w}\n"
        "rules: {compute: {cpuCoreRequest: {max: 4}, cpuMemoryLimit: {canEdit: false}}}"
    )
    amounts = {"requests": {"cpu": "2"}, "limits": {"cpu": "8", "memory": "1Gi"}}
    old = served(pod(container(resources=amounts)))

    def sized(part: str, name: str, amount: str) -> Any:
        return edited(
            old,
            lambda each: each["spec"]["containers"][0]["resources"][part].update({name: amount}),
        )

    for stage in Stage:
        decision = decide_review(
            resize(sized("requests", "cpu", "3"), old, stage), rules, References()
        )
        assert isinstance(decision, Allowed)
        assert not decision.patch
        decision = decide_review(
            resize(sized("requests", "cpu", "5"), old, stage), rules, References()
        )
        assert reasons(decision) == [("compute.cpuCoreRequest", "max")]
        decision = decide_review(
            resize(sized("limits", "memory", "2Gi"), old, stage), rules, References()
        )
        assert reasons(decision) == [("compute.cpuMemoryLimit", "canEdit")]


def test_an_ephemeral_container_meets_the_safety_rules() -> None:
    rules = catalog("rules: {image: {options: [{value: 'registry.example.com/main:1'}]}}")
    old = served(pod())

    def debug(body: Any) -> Any:
        return edited(old, lambda each: each["spec"].update(ephemeralContainers=[body]))

    fine = {"name": "debug", "image": "registry.example.com/main:1"}
    for stage in Stage:
        for body, wanted in (
            (fine, []),
            ({**fine, "image": "evil:1"}, [("image", "options")]),
            (
                {**fine, "securityContext": {"privileged": True}},
                [("security.privileged", "canEdit")],
            ),
        ):
            asked = resize(debug(body), old, stage, "ephemeralcontainers")
            decision = decide_review(asked, rules, References())
            if wanted:
                assert reasons(decision) == wanted
            else:
                assert isinstance(decision, Allowed)
                assert not decision.patch


def test_other_operations_are_not_judged() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    for operation in ("DELETE", "CONNECT"):
        asked = request(served(pod()), operation=operation)
        decision = decide(asked, rules, References())
        assert isinstance(decision, Allowed)
        assert not decision.is_evaluated
    document = served(pod())
    assert isinstance(mutated(rules, document, document), Allowed)
    assert isinstance(validated(rules, document, document), Allowed)
