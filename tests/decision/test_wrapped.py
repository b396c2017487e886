"""Wrapped objects: what an AppWrapper, or any kind that wraps others, may hold and what comes of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.building import (
    annotated,
    catalog,
    container,
    cronjob,
    edited,
    job,
    mutated,
    policy,
    pytorchjob,
    reasons,
    refused,
    request,
    result,
    shell,
    validated,
)
from webhook.admission.judge import decide_review
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import violation_text
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.objects.path import display

CONTROLLER = "system:serviceaccount:appwrapper-system:appwrapper-controller-manager"
SOFT = "defaults: {workingDir: /w}"
NEVER_PRIVILEGED = "rules: {security: {privileged: {canEdit: false}}}"
PRIVILEGED = {"securityContext": {"privileged": True}}


def wrapper(*objects: Any, **beside: Any) -> dict[str, Any]:
    """An AppWrapper of these objects; `beside` stands next to each template."""
    components = [{**copy.deepcopy(beside), "template": each} for each in objects]
    return shell("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": components})


def deep(body: Any, levels: int) -> Any:
    """An object wrapped so many times."""
    for _ in range(levels):
        body = wrapper(body)
    return body


def places(rules: Catalog, document: Any, old: Any = None, **more: Any) -> list[tuple[str, str]]:
    """Reason and place of every violation of an object that must be refused."""
    decision = mutated(rules, document, old, **more)
    assert isinstance(decision, Denied), decision
    return [(each.reason, display(each.path)) for each in decision.violations]


def spec_of(document: Any, index: int = 0) -> Any:
    return document["spec"]["components"][index]["template"]["spec"]


def test_a_wrapper_without_objects_passes() -> None:
    for body in (wrapper(), shell("workload.codeflare.dev/v1beta2", "AppWrapper", {})):
        assert result(catalog(SOFT), body) == body


def test_each_object_is_completed_as_its_own_kind_by_one_patch() -> None:
    document = wrapper(pytorchjob(), job())
    made = result(catalog(SOFT), document)
    for replica in spec_of(made)["pytorchReplicaSpecs"].values():
        assert replica["template"]["spec"]["containers"][0]["workingDir"] == "/w"
    assert spec_of(made, 1)["template"]["spec"]["containers"][0]["workingDir"] == "/w"
    assert "dnsPolicy" not in spec_of(made, 1)["template"]["spec"]


def test_policies_reach_a_wrapped_object_by_its_own_type_and_kind() -> None:
    of_distributed = policy(SOFT, workloadTypes=["distributed"])
    made = result(catalog(of_distributed), wrapper(pytorchjob(), job()))
    assert (
        "workingDir"
        in spec_of(made)["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    )
    assert "workingDir" not in spec_of(made, 1)["template"]["spec"]["containers"][0]
    of_jobs = policy(SOFT, kinds=[{"group": "batch", "kind": "Job"}])
    made = result(catalog(of_jobs), wrapper(pytorchjob(), job()))
    assert "workingDir" in spec_of(made, 1)["template"]["spec"]["containers"][0]


def test_policies_for_the_wrapping_kind_reach_inside_and_only_add() -> None:
    wraps = [{"group": "workload.codeflare.dev", "kind": "AppWrapper"}]
    strict = policy(NEVER_PRIVILEGED, kinds=wraps)
    assert refused(catalog(strict), wrapper(job(container(**PRIVILEGED)))) == [
        ("security.privileged", "canEdit")
    ]
    loose = policy(
        "rules: {image: {options: [{value: a}]}}", "own", kinds=[{"group": "batch", "kind": "Job"}]
    )
    wide = policy(
        "rules: {image: {options: [{value: 'registry.example.com/main:1'}]}}",
        "wide",
        scope="tenant",
        kinds=wraps,
    )
    assert refused(catalog(loose, wide), wrapper(job())) == [("image", "options")]


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_a_privileged_container_is_refused_however_deep(levels: int) -> None:
    found = places(catalog(NEVER_PRIVILEGED), deep(job(container(**PRIVILEGED)), levels))
    prefix = ".".join(["spec.components[0].template"] * levels)
    at = f"{prefix}.spec.template.spec.containers[0].securityContext.privileged"
    assert set(found) == {("canEdit", at)}


def test_more_than_five_levels_are_refused() -> None:
    found = places(catalog(SOFT), deep(job(), 6))
    assert found == [("too-deep", ".".join(["spec.components[0].template"] * 6))]


@pytest.mark.parametrize("levels", [1, 3])
def test_another_namespace_is_refused_and_the_same_or_none_is_not(levels: int) -> None:
    rules = catalog(SOFT)
    for stated in ("team", "", None):
        body = edited(job(), lambda each, stated=stated: each["metadata"].update(namespace=stated))
        assert isinstance(mutated(rules, deep(body, levels)), Allowed)
    body = edited(
        job(container(**PRIVILEGED)), lambda each: each["metadata"].update(namespace="kube-system")
    )
    prefix = ".".join(["spec.components[0].template"] * levels)
    found = places(catalog(NEVER_PRIVILEGED), deep(body, levels))
    assert ("other-namespace", f"{prefix}.metadata.namespace") in found
    assert any(reason == "canEdit" for reason, _ in found), "all violations come in one answer"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}}, "wrapped-kind"),
        ({"apiVersion": "v1", "kind": "List", "items": [job()]}, "wrapped-kind"),
        ({"apiVersion": "batch/v1", "kind": "JobList", "items": [job()]}, "wrapped-kind"),
        ({"apiVersion": "batch/v9", "kind": "Job", "spec": {}}, "wrapped-kind"),
        ({"kind": "Job", "spec": {}}, "wrong-type"),
        ({"apiVersion": "batch/v1", "spec": {}}, "wrong-type"),
        ({"apiVersion": "batch/v1", "kind": ""}, "wrong-type"),
        ({"apiVersion": 1, "kind": "Job"}, "wrong-type"),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": []}, "wrong-type"),
        ({}, "wrong-type"),
        ("apiVersion: batch/v1", "wrong-type"),
        ([job()], "wrong-type"),
        (7, "wrong-type"),
    ],
)
def test_what_is_no_object_of_a_known_kind_is_refused(body: Any, reason: str) -> None:
    rules = catalog(SOFT)
    document = wrapper(job(), body)
    found = places(rules, document)
    assert [each for each, _ in found] == [reason]
    assert found[0][1].startswith("spec.components[1].template")
    assert isinstance(validated(rules, document), Denied)


def test_the_refusal_of_an_unknown_kind_says_how_to_add_a_definition() -> None:
    decision = mutated(catalog(SOFT), wrapper({"apiVersion": "example.com/v1", "kind": "Thing"}))
    assert isinstance(decision, Denied)
    text = violation_text(decision.violations[0])
    assert "Thing.example.com/v1" in text
    assert "podgate interface infer" in text


def test_kinds_that_make_no_pods_may_be_wrapped_but_hide_none() -> None:
    rules = catalog(SOFT)
    service = shell("v1", "Service", {"ports": [{"port": 80}]})
    assert isinstance(mutated(rules, wrapper(job(), service)), Allowed)
    service["spec"]["x"] = {"containers": [container()]}
    assert places(rules, wrapper(service)) == [("uncovered", "spec.components[0].template.spec.x")]
    elsewhere = edited(service, lambda each: each["metadata"].update(namespace="other"))
    assert ("other-namespace", "spec.components[0].template.metadata.namespace") in places(
        rules, wrapper(elsewhere)
    )


@pytest.mark.parametrize("levels", [0, 2])
def test_nothing_hides_beside_a_wrapped_object(levels: int) -> None:
    hidden = {"spec": {"containers": [container()]}}
    body = deep(wrapper(job(), aside=hidden), levels)
    at = ".".join([*["spec.components[0].template"] * levels, "spec.components[0].aside.spec"])
    assert places(catalog(SOFT), body) == [("uncovered", at)]


def test_nothing_hides_in_a_wrapped_object() -> None:
    """A JobSet's schema is open nowhere, but an AppWrapper prunes nothing: its own coverage holds."""
    body = shell("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"driver": {}, "executor": {}})
    body["spec"]["driver"]["template"] = {"spec": {"containers": [container()], "x": [container()]}}
    found = places(catalog(SOFT), wrapper(body))
    assert found
    assert all(at.startswith("spec.components[0].template.spec.driver.template") for _, at in found)


def test_all_that_is_wrapped_counts_against_the_budgets() -> None:
    few = wrapper(*[job() for _ in range(400)])
    assert isinstance(mutated(catalog(SOFT), few), Allowed)
    halves = [wrapper(*[job() for _ in range(501)]) for _ in range(2)]
    assert reasons(mutated(catalog(SOFT), wrapper(*halves))) == [("", "too-many-locations")]
    pods = [job(*[container(f"c{each}") for each in range(51)]) for _ in range(100)]
    assert reasons(mutated(catalog(SOFT), wrapper(*pods))) == [("", "too-many-containers")]
    empty = [wrapper() for _ in range(1001)]
    assert reasons(mutated(catalog(SOFT), wrapper(*empty))) == [("", "too-many-locations")]


@pytest.mark.parametrize(
    ("limit", "most", "reason", "body"),
    [
        ("pods.MOST_CONTAINERS", 3, "containers", job(*map(container, "abc"))),
        ("pods.MOST_ENTRIES", 3, "entries", job(*map(container, "abc"))),
        ("MAX_LOCATIONS", 3, "locations", wrapper(job(), job())),
        ("MAX_LOCATIONS", 2, "locations", wrapper(pytorchjob())),
        ("MOST_CONTAINERS", 3, "containers", wrapper(job(), job(*map(container, "ab")))),
        ("MOST_ENTRIES", 3, "entries", wrapper(job(), job(*map(container, "ab")))),
    ],
)
def test_an_object_may_use_up_its_budget(
    limit: str, most: int, reason: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrapper is an object of its own, and a PyTorchJob of two kinds of pods has two locations."""
    module = "webhook.decision" if "." in limit else "webhook.decision.wrapped"
    monkeypatch.setattr(f"{module}.{limit}", most)
    assert isinstance(mutated(catalog(SOFT), body), Allowed)
    monkeypatch.setattr(f"{module}.{limit}", most - 1)
    assert reasons(mutated(catalog(SOFT), body)) == [("", f"too-many-{reason}")]


def test_what_stands_in_a_wrapped_object_was_written_even_a_servers_default() -> None:
    """Alone, a backoffLimit of 6 may be the server's; wrapped, nobody else can have put it there."""
    rules = catalog("defaults: {backoffLimit: 3}\nrules: {backoffLimit: {canEdit: false}}")
    body = job()
    made = result(rules, wrapper(body))
    assert spec_of(made)["backoffLimit"] == 3
    body["spec"]["backoffLimit"] = 6
    assert refused(rules, wrapper(body)) == [("backoffLimit", "canEdit")]


def test_what_the_server_will_fill_in_counts_as_there() -> None:
    rules = catalog("rules: {backoffLimit: {max: 4}}")
    assert refused(rules, wrapper(job())) == [("backoffLimit", "max")]


def test_a_blocked_default_is_written_and_its_repetition_refused() -> None:
    rules = catalog("defaults: {workingDir: /w}\nrules: {workingDir: {blocked: true}}")
    made = result(rules, wrapper(job()))
    assert isinstance(mutated(rules, made), Allowed), "asked again about its own writing"
    written = annotated(made)
    assert refused_once(rules, written) == [("workingDir", "blocked")]


def refused_once(rules: Catalog, document: Any) -> list[tuple[str, str]]:
    return reasons(mutated(rules, document))


# Updates


def test_an_unchanged_component_is_never_a_violation() -> None:
    old = wrapper(job(container(**PRIVILEGED)), {"apiVersion": "example.com/v1", "kind": "Thing"})
    rules = catalog(NEVER_PRIVILEGED)
    suspended = edited(old, lambda each: each["spec"].update(suspend=True))
    assert isinstance(mutated(rules, suspended, old), Allowed)
    assert isinstance(validated(rules, suspended, old), Allowed)
    turned = edited(suspended, lambda each: each["spec"]["components"].reverse())
    assert isinstance(mutated(rules, turned, old), Allowed)


def test_only_the_component_that_changes_is_judged_and_completed() -> None:
    old = wrapper(job(container(**PRIVILEGED)), cronjob())
    rules = catalog(SOFT, NEVER_PRIVILEGED)

    def change(each: Any) -> None:
        spec_of(each, 1)["schedule"] = "1 1 * * *"
        pods = spec_of(each, 1)["jobTemplate"]["spec"]["template"]["spec"]
        pods["containers"][0]["image"] = "b:2"

    decision = mutated(rules, edited(old, change), old)
    assert isinstance(decision, Allowed)
    assert [each["path"] for each in decision.patch] == [
        "/spec/components/1/template/spec/jobTemplate/spec/template/spec/containers/0/workingDir"
    ]


def test_a_component_that_is_new_or_changed_meets_every_rule() -> None:
    old = wrapper(job())
    rules = catalog(NEVER_PRIVILEGED)
    bad = container(**PRIVILEGED)
    assert refused(rules, wrapper(job(bad)), old) == [("security.privileged", "canEdit")]
    more = edited(
        old, lambda each: each["spec"]["components"].append({"template": pytorchjob(bad)})
    )
    assert refused(rules, more, old) == [("security.privileged", "canEdit")]
    kept = wrapper(job(bad))
    other = edited(
        kept, lambda each: spec_of(each)["template"]["spec"]["containers"][0].update(image="b:1")
    )
    assert refused(rules, other, kept) == [("security.privileged", "canEdit")]


def test_strict_policies_judge_what_an_update_leaves_as_it_was() -> None:
    old = wrapper(job(container(**PRIVILEGED)))
    rules = catalog(policy(NEVER_PRIVILEGED, existing="strict"))
    suspended = edited(old, lambda each: each["spec"].update(suspend=True))
    assert refused(rules, suspended, old) == [("security.privileged", "canEdit")]
    labelled = edited(old, lambda each: each["metadata"].update(labels={"a": "b"}))
    assert isinstance(mutated(rules, labelled, old), Allowed)


def test_a_default_that_a_reapplied_manifest_lacks_comes_back_as_it_was() -> None:
    manifest = wrapper(job())
    before = result(catalog("defaults: {workingDir: /old}"), annotated(manifest))
    new = edited(
        annotated(manifest),
        lambda each: spec_of(each)["template"]["spec"]["containers"][0].update(tty=True),
    )
    made = result(catalog(SOFT), new, before)
    assert spec_of(made)["template"]["spec"]["containers"][0]["workingDir"] == "/old"


# Beside the objects


def test_gpus_of_a_wrapped_object_count_by_what_the_wrapper_says_of_its_pods() -> None:
    rules = catalog("rules: {total: {gpuDevices: {max: 8}}}")
    gpus = container(resources={"limits": {"nvidia.com/gpu": 4}})
    body = job(gpus)
    sets = [{"path": "template.spec.template", "replicas": 2}]
    assert isinstance(mutated(rules, wrapper(body, podSets=sets)), Allowed)
    more = [{"path": "template.spec.template", "replicas": 3}]
    assert refused(rules, wrapper(body, podSets=more)) == [("total.gpuDevices", "max")]
    old = wrapper(body, podSets=sets)
    assert refused(rules, wrapper(body, podSets=more), old) == [("total.gpuDevices", "max")]
    several = edited(body, lambda each: each["spec"].update(parallelism=3))
    assert refused(rules, wrapper(several, podSets=sets)) == [("total.gpuDevices", "max")]


@pytest.mark.parametrize(
    "path", ["template", "spec.x", "", 7, None, "template..spec", "template.spec[x]"]
)
def test_paths_of_pods_that_lead_nowhere_change_nothing(path: Any) -> None:
    document = wrapper(job(), podSets=[{"path": path, "replicas": 9}])
    assert isinstance(mutated(catalog(NEVER_PRIVILEGED), document), Allowed)


def test_pods_that_only_the_wrapper_tells_of_are_judged_and_completed() -> None:
    body = shell("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {}})
    body["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container()]}}
    body["spec"]["strange"] = {"spec": {"containers": [container(**PRIVILEGED)]}}
    document = wrapper(body, podSets=[{"path": "template.spec.strange"}])
    found = places(catalog(NEVER_PRIVILEGED), document)
    at = "spec.components[0].template.spec.strange.spec.containers[0].securityContext.privileged"
    assert set(found) == {("canEdit", at)}
    del body["spec"]["strange"]["spec"]["containers"][0]["securityContext"]
    made = result(catalog(SOFT), wrapper(body, podSets=[{"path": "template.spec.strange"}]))
    assert spec_of(made)["strange"]["spec"]["containers"][0]["workingDir"] == "/w"


def test_trials_are_told_with_their_place() -> None:
    trial = policy(NEVER_PRIVILEGED, enforcement="Warn")
    noted = policy("rules: {image: {options: [{value: none}]}}", "noted", enforcement="Audit")
    decision = mutated(catalog({**trial}, noted), wrapper(job(container(tty=True))))
    assert isinstance(decision, Allowed)
    assert [display(each.path) for each in decision.audit] == [
        "spec.components[0].template.spec.template.spec.containers[0].image"
    ]


def test_what_the_controller_makes_of_a_wrapper_is_exempt_and_its_pods_are_the_kinds_own() -> None:
    rules = catalog(SOFT, NEVER_PRIVILEGED)
    owner = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "name": "w",
        "uid": "1",
        "controller": True,
    }
    body = edited(
        job(container(**PRIVILEGED)), lambda each: each["metadata"].update(ownerReferences=[owner])
    )
    decision = decide_review(request(body, user=CONTROLLER), rules, References())
    assert isinstance(decision, Allowed)
    assert not decision.is_evaluated
    assert isinstance(decide_review(request(body), rules, References()), Denied)


def test_a_wrapper_that_a_controller_owns_is_judged_and_never_patched() -> None:
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Queue",
        "name": "q",
        "uid": "1",
        "controller": True,
    }
    document = edited(wrapper(job()), lambda each: each["metadata"].update(ownerReferences=[owner]))
    decision = decide_review(
        request(document, user="system:serviceaccount:q:q"), catalog(SOFT), References()
    )
    assert isinstance(decision, Allowed)
    assert not decision.patch
    bad = edited(document, lambda each: spec_of(each)["template"]["spec"].update(hostNetwork=True))
    rules = catalog("rules: {security: {hostNetwork: {blocked: true}}}")
    assert isinstance(
        decide_review(request(bad, user="system:serviceaccount:q:q"), rules, References()), Denied
    )


# A kind of one's own


INTERFACE = {
    "apiVersion": "optimization.nvidia.com/v1alpha1",
    "kind": "ResourceInterface",
    "metadata": {"name": "bundle.example.com"},
    "spec": {
        "structureDefinition": {
            "rootComponent": {
                "name": "bundle",
                "kind": {"group": "example.com", "version": "v1", "kind": "Bundle"},
                "specDefinition": {"podTemplateSpecPath": ".spec.own"},
                "statusDefinition": {
                    "phaseDefinition": {"path": ".status.phase"},
                    "statusMappings": {"running": [{"byPhase": "Running"}]},
                },
            }
        }
    },
}
PROFILE: dict[str, Any] = {
    "apiVersion": "podgate.dev/v1alpha1",
    "kind": "WorkloadProfile",
    "metadata": {"name": "bundle.example.com"},
    "spec": {
        "group": "example.com",
        "kind": "Bundle",
        "versions": ["v1"],
        "resource": "bundles",
        "components": {"bundle": {"role": "worker"}},
        "embedded": [{"place": ".spec.objects | .[]"}, {"place": ".spec.first"}],
        "shadowDefaults": [{"path": ".spec.first.spec.backoffLimit", "value": 6, "by": "crd"}],
    },
}


def bundles(*documents: Any, **spec: Any) -> Catalog:
    profile = copy.deepcopy(PROFILE)
    profile["spec"].update(spec)
    return catalog(INTERFACE, profile, *documents)


def bundle(first: Any = None, **objects: Any) -> dict[str, Any]:
    own = {"spec": {"containers": [container("own")]}}
    spec = {"own": own, "objects": objects, **({"first": first} if first else {})}
    return shell("example.com/v1", "Bundle", spec)


def test_any_kind_may_wrap_objects_beside_pods_of_its_own() -> None:
    document = bundle(job(), a=pytorchjob(), b=wrapper(job()))
    made = result(bundles(SOFT), document)["spec"]
    assert json.dumps(made).count('"/w"') == 1 + 1 + 2 + 1
    bad = bundle(a=wrapper(job(container(**PRIVILEGED))))
    assert refused(bundles(NEVER_PRIVILEGED), bad) == [("security.privileged", "canEdit")]


def test_what_the_wrapping_kinds_schema_fills_in_is_nobodys_choice() -> None:
    rules = bundles("defaults: {backoffLimit: 3}\nrules: {backoffLimit: {canEdit: false}}")
    body = job()
    body["spec"]["backoffLimit"] = 6
    made = result(rules, bundle(body))
    assert made["spec"]["first"]["spec"]["backoffLimit"] == 3
    assert refused(rules, bundle(a=body)) == [("backoffLimit", "canEdit")]


def test_nothing_is_written_where_the_wrapping_kind_forbids_changes() -> None:
    old = bundle(a=job())
    new = edited(old, lambda each: each["spec"]["objects"]["a"]["spec"].update(backoffLimit=2))
    change = {"image": "b:1"}
    new = edited(
        new,
        lambda each: each["spec"]["objects"]["a"]["spec"]["template"]["spec"]["containers"][
            0
        ].update(change),
    )
    made = result(bundles(SOFT), new, old)
    assert "workingDir" in json.dumps(made["spec"]["objects"])
    for place in (".spec.objects", ".spec.objects.a.spec.template"):
        fixed = bundles(SOFT, immutable=[{"place": place}])
        assert "workingDir" not in json.dumps(result(fixed, new, old)["spec"]["objects"])
    loose = bundles(
        SOFT, immutable=[{"place": ".spec.objects", "except": [".spec.objects.a.spec.template"]}]
    )
    assert "workingDir" in json.dumps(result(loose, new, old)["spec"]["objects"])


def test_a_kind_may_let_unknown_ones_pass_with_a_warning() -> None:
    rules = bundles(SOFT, uncovered="warn")
    decision = mutated(rules, bundle({"apiVersion": "example.com/v1", "kind": "Thing"}))
    assert isinstance(decision, Allowed)
    assert [each.reason for each in decision.warnings] == ["wrapped-kind"]
