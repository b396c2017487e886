"""Updates: what is untouched passes, nothing is rolled out by surprise, defaults come back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.building import (
    KINDS,
    annotated,
    asset,
    catalog,
    container,
    deployment,
    edited,
    job,
    jobset,
    mutated,
    pod,
    policy,
    pytorchjob,
    raycluster,
    refused,
    result,
    served,
    validated,
)
from webhook.evaluation.outcome import Allowed

DEFAULTS = """
defaults:
  imagePullPolicy: Always
  terminationGracePeriodSeconds: 60
  priorityClass: low
  backoffLimit: 3
  nodeType: cpu
  environmentVariables: {instances: [{name: CLUSTER, value: a}]}
  labels: {instances: [{name: team, value: ml}]}
  tolerations: {instances: [{name: spot, key: spot, operator: Exists, effect: NoSchedule}]}
  compute: {cpuCoreRequest: 0.5, cpuMemoryRequest: 1Gi}
  security: {runAsUid: 1000}
  storage: {hostPath: {instances: [{name: data, path: /data, mountPath: /data}]}}
"""


def bookkeeping(document: Any) -> None:
    document["metadata"].update(
        finalizers=["example.com/wait"],
        ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}],
        resourceVersion="12",
        generation=3,
        managedFields=[{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}],
        annotations={"example.com/note": "hello"},
    )
    document["status"] = {"replicas": 1}


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "Pod"])
@pytest.mark.parametrize("existing", ["tolerate", "strict"])
def test_finalizers_owners_and_status_pass_by_themselves(kind: str, existing: str) -> None:
    """A policy that came later neither patches nor refuses what does not concern it."""
    rules = catalog(policy(DEFAULTS, existing=existing))
    banned = policy("rules: {image: {options: [{value: none}]}}", "images", existing=existing)
    old = served(KINDS[kind]())
    new = edited(old, bookkeeping)
    for built in (rules, catalog(policy(DEFAULTS, existing=existing), banned)):
        for decision in (mutated(built, new, old), validated(built, new, old)):
            assert isinstance(decision, Allowed)
            assert not decision.patch


def test_a_location_equal_to_the_old_one_gets_no_patch() -> None:
    rules = catalog(DEFAULTS)
    old = served(deployment())
    new = edited(old, lambda each: each["spec"].update(replicas=5))
    decision = mutated(rules, new, old)
    assert isinstance(decision, Allowed)
    assert not decision.patch
    assert isinstance(validated(rules, new, old), Allowed)


def test_a_priority_that_comes_back_rolls_no_untouched_pod_out() -> None:
    rules = catalog("defaults: {priorityClass: low}\nrules: {scale: {replicas: {max: 9}}}")
    old = served(deployment())
    new = edited(old, lambda each: each["spec"].update(replicas=5))
    document = result(rules, new, old)
    assert document["spec"]["template"] == old["spec"]["template"]


def test_a_changed_location_gets_the_missing_defaults() -> None:
    rules = catalog(DEFAULTS)
    old = served(deployment())

    def restart(each: Any) -> None:
        metadata = each["spec"]["template"]["metadata"]
        metadata["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now"}

    document = result(rules, edited(old, restart), old)
    spec = document["spec"]["template"]["spec"]
    main = spec["containers"][0]
    assert main["env"] == [{"name": "CLUSTER", "value": "a"}]
    assert spec["securityContext"] == {"runAsUser": 1000}
    assert spec["nodeSelector"] == {"run.ai/type": "cpu"}
    assert [each["key"] for each in spec["tolerations"]] == ["spot"]
    assert spec["volumes"] == [{"name": "data", "hostPath": {"path": "/data"}}]
    assert document["spec"]["template"]["metadata"]["labels"]["team"] == "ml"
    # Nothing shows that somebody wrote them, and they pass today's rules.
    assert main["imagePullPolicy"] == "IfNotPresent"
    assert spec["terminationGracePeriodSeconds"] == 30


YESTERDAY = """
defaults:
  workingDir: /old
  terminationGracePeriodSeconds: 40
  nodeType: cpu
  compute: {cpuCoreRequest: 1}
  security: {runAsUid: 1000}
  environmentVariables: {instances: [{name: CLUSTER, value: old}]}
  storage: {hostPath: {instances: [{name: data, path: /old, mountPath: /data}]}}
"""
TODAY = YESTERDAY.replace("old", "new").replace("40", "50").replace("1000", "2000")
TODAY = TODAY.replace("cpuCoreRequest: 1", "cpuCoreRequest: 2").replace("cpu\n", "gpu\n")
LOCKS = """
rules:
  workingDir: {canEdit: false}
  terminationGracePeriodSeconds: {canEdit: false}
  nodeType: {canEdit: false}
  compute: {cpuCoreRequest: {canEdit: false}}
  security: {runAsUid: {canEdit: false}}
  environmentVariables: {instances: {locked: [CLUSTER]}}
  storage: {hostPath: {instances: {locked: [data]}}}
"""


def reapplied(document: Any) -> Any:
    """What a re-apply of a custom resource sends: lists are replaced whole, other image."""
    return edited(
        document,
        lambda each: [
            one["template"]["spec"]["containers"][0].update(image="registry.example.com/main:2")
            for one in each["spec"]["pytorchReplicaSpecs"].values()
        ],
    )


def test_a_reapply_keeps_the_old_defaults_until_they_are_locked() -> None:
    raw = annotated(pytorchjob())
    old = result(catalog(YESTERDAY), raw)
    new = reapplied(raw)
    kept = result(catalog(TODAY), new, old)
    assert kept == reapplied(old)
    locked = result(catalog(TODAY + LOCKS), new, old)
    assert locked == result(catalog(TODAY + LOCKS), new)
    assert locked != kept


def test_a_value_that_the_user_wrote_and_took_out_is_not_kept() -> None:
    rules = catalog("defaults: {workingDir: /policy}")
    mine = edited(
        pytorchjob(master=False),
        lambda each: each["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"][
            "containers"
        ][0].update(workingDir="/mine"),
    )
    old = result(rules, annotated(mine))
    new = annotated(pytorchjob(master=False))
    worker = result(rules, new, old)["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert worker["template"]["spec"]["containers"][0]["workingDir"] == "/policy"


def test_an_unchanged_reapply_restores_everything_without_a_new_generation() -> None:
    """A merge patch drops defaulted env, labels, volumes; the result equals what is stored."""
    for kind in ("PyTorchJob", "RayCluster"):
        for body in (DEFAULTS, DEFAULTS + LOCKS.replace("  workingDir: {canEdit: false}\n", "")):
            raw = annotated(KINDS[kind]())
            rules = catalog(body)
            old = result(rules, raw)
            assert old != raw
            assert result(rules, raw, old) == old


def drop_containers_only(document: Any) -> None:
    """A merge patch of a manifest without volumes replaces the containers and leaves volumes."""
    for one in document["spec"]["pytorchReplicaSpecs"].values():
        one["template"]["spec"]["containers"] = [container()]


@pytest.mark.parametrize("locked", [False, True])
def test_a_mount_dropped_without_its_volume_comes_back(locked: bool) -> None:
    body = "defaults: {storage: {hostPath: {instances: [{name: d, path: /d, mountPath: /d}]}}}\n"
    if locked:
        body += "rules: {storage: {hostPath: {instances: {locked: [d]}}}}"
    rules = catalog(body)
    old = result(rules, annotated(pytorchjob()))
    assert result(rules, edited(old, drop_containers_only), old) == old


def test_an_imposed_volume_whose_mount_was_dropped_comes_back() -> None:
    rules = catalog(policy("imposedAssets: [data]"), asset("data", "/data", "/data"))
    old = result(rules, annotated(pytorchjob()))
    assert result(rules, edited(old, drop_containers_only), old) == old


def test_only_the_main_containers_mounts_of_a_default_volume_come_back() -> None:
    body = "defaults: {storage: {hostPath: {instances: [{name: d, path: /d, mountPath: /d}]}}}"
    rules = catalog(body)
    raw = pytorchjob(container(), container("side"), master=False)
    old = result(rules, raw)

    def share(each: Any) -> None:
        spec = each["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
        spec["containers"][1]["volumeMounts"] = [{"name": "d", "mountPath": "/shared"}]

    shared = edited(old, share)
    spec = result(rules, raw, shared)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "d", "mountPath": "/d"}]
    assert "volumeMounts" not in spec["containers"][1]


def test_a_kept_request_stays_below_a_limit_that_is_lowered() -> None:
    rules = catalog("defaults: {compute: {cpuCoreRequest: 2}}")
    old = result(rules, pytorchjob(master=False))
    new = pytorchjob(container(resources={"limits": {"cpu": "1"}}), master=False)
    spec = result(rules, new, old)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


def test_an_old_default_item_outside_todays_rules_is_not_kept() -> None:
    item = "{name: d, path: /d, mountPath: /d}"
    old = result(
        catalog(f"defaults: {{storage: {{hostPath: {{instances: [{item}]}}}}}}"), pytorchjob()
    )
    today = catalog(
        "defaults: {storage: {hostPath: {instances: "
        "[{name: d, path: /d, mountPath: /d, readOnly: true}]}}}\n"
        "rules: {storage: {hostPath: {attributes: {readOnly: {canEdit: false}}}}}"
    )
    document = result(today, reapplied(pytorchjob()), old)
    for one in document["spec"]["pytorchReplicaSpecs"].values():
        (mount,) = one["template"]["spec"]["containers"][0]["volumeMounts"]
        assert mount["readOnly"] is True


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_immutable_places_are_never_patched(kind: str) -> None:
    """While a job is suspended some of its template may change; we leave it."""
    rules = catalog(DEFAULTS + "rules: {environmentVariables: {instances: {locked: [CLUSTER]}}}")
    old = served(KINDS[kind]())

    def relabel(each: Any) -> None:
        spec = each["spec"]
        if kind == "JobSet":
            spec = spec["replicatedJobs"][0]["template"]["spec"]
        spec["template"]["metadata"]["labels"]["queue"] = "a"

    new = edited(old, relabel)
    document = result(rules, new, old)
    assert {**document["spec"], "backoffLimit": None} == {**new["spec"], "backoffLimit": None}


@pytest.mark.parametrize("existing", ["tolerate", "strict"])
def test_a_pod_spec_is_never_patched_but_for_what_may_change(existing: str) -> None:
    rules = catalog(policy(DEFAULTS, existing=existing))
    old = served(pod())
    new = edited(old, lambda each: each["spec"]["containers"][0].update(image="r.example.com/a:2"))
    document = result(rules, new, old)
    assert [each["key"] for each in document["spec"]["tolerations"]] == ["spot"]
    assert {**document["spec"], "tolerations": 0} == {**new["spec"], "tolerations": 0}


def test_a_job_suspends_and_resumes_whatever_policy_came_since() -> None:
    rules = catalog(
        policy("imposedAssets: [data]\n" + DEFAULTS + LOCKS.replace("workingDir: {", "image: {")),
        asset("data", "/imposed", "/imposed"),
    )
    for kind in ("Job", "JobSet", "PyTorchJob"):
        old = served(KINDS[kind]())
        at = "runPolicy" if kind == "PyTorchJob" else ""

        def suspend(each: Any, at: str = at) -> None:
            (each["spec"].setdefault(at, {}) if at else each["spec"])["suspend"] = True

        new = edited(old, suspend)
        assert result(rules, new, old) == new
        assert result(rules, old, new) == old


def test_scale_restart_and_set_image_pass_on_a_grandfathered_deployment() -> None:
    rules = catalog(
        DEFAULTS + "rules:\n  workingDir: {canEdit: false}\n"
        "  compute: {cpuCoreRequest: {max: 1}}\n"
        "  tolerations: {instances: {canAdd: false}}\n"
    )
    main = container(workingDir="/mine", resources={"requests": {"cpu": "4"}})
    old = served(deployment(main, tolerations=[{"key": "mine", "operator": "Exists"}]))
    for change in (
        lambda each: each["spec"].update(replicas=4),
        lambda each: each["spec"]["template"]["metadata"].update(annotations={"restartedAt": "x"}),
        lambda each: each["spec"]["template"]["spec"]["containers"][0].update(image="a.io/b:2"),
    ):
        document = result(rules, edited(old, change), old)
        main = document["spec"]["template"]["spec"]["containers"][0]
        assert main["workingDir"] == "/mine"


def test_our_own_defaults_do_not_switch_the_ratchet_of_a_container_off() -> None:
    """A restart brings new env and a new user; the container itself is the same."""
    rules = catalog(DEFAULTS + "rules: {security: {privileged: {canEdit: false}}}")
    old = served(deployment(container(securityContext={"privileged": True})))

    def restart(each: Any) -> None:
        each["spec"]["template"]["metadata"]["annotations"] = {"restartedAt": "now"}

    document = result(rules, edited(old, restart), old)
    main = document["spec"]["template"]["spec"]["containers"][0]
    assert main["env"] == [{"name": "CLUSTER", "value": "a"}]
    assert main["volumeMounts"]

    def own_env(each: Any) -> None:
        each["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MINE", "value": "1"}]

    assert refused(rules, edited(old, own_env), old) == [("security.privileged", "canEdit")]


def test_our_own_attribute_defaults_do_not_make_an_item_new() -> None:
    rules = catalog(
        "defaults: {storage: {hostPath: {attributes: {readOnly: true}}}, workingDir: /w}\n"
        "rules: {storage: {hostPath: {instances: {canAdd: false}}}}"
    )
    main = container(volumeMounts=[{"name": "mine", "mountPath": "/mine"}])
    old = served(deployment(main, volumes=[{"name": "mine", "hostPath": {"path": "/x"}}]))

    def restart(each: Any) -> None:
        each["spec"]["template"]["metadata"]["annotations"] = {"restartedAt": "now"}

    document = result(rules, edited(old, restart), old)
    main = document["spec"]["template"]["spec"]["containers"][0]
    assert main["volumeMounts"] == [{"name": "mine", "mountPath": "/mine", "readOnly": True}]


def test_a_deleted_object_gets_rid_of_its_finalizers_and_of_nothing_else() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    old = served(deployment())
    old["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a"])
    new = edited(old, lambda each: each["metadata"].pop("finalizers"))
    assert result(rules, new, old) == new
    worse = edited(
        new, lambda each: each["spec"]["template"]["spec"]["containers"][0].update(image="evil")
    )
    assert refused(rules, worse, old) == [("image", "options")]


def test_a_new_group_or_job_is_judged_as_new() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    for kind, old, new in (
        ("RayCluster", raycluster(), raycluster(groups=("small", "big"))),
        ("JobSet", jobset(), jobset(jobs=("workers", "evaluators"))),
        ("PyTorchJob", pytorchjob(master=False), pytorchjob()),
    ):
        assert refused(rules, new, old) == [("image", "options")], kind
        if kind != "JobSet":  # whose jobs may not be taken away
            assert result(rules, old, new) == old


def test_groups_that_change_places_are_the_same_groups() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    old = raycluster(groups=("small", "big"))
    new = raycluster(groups=("big", "small"))
    assert result(rules, new, old) == new


def test_steering_annotations_of_a_kind_count_as_a_change() -> None:
    """An annotation of the workload that changes what the pods become is no bookkeeping."""
    rules = catalog("defaults: {workingDir: /w}")
    old = raycluster()
    new = edited(
        old,
        lambda each: each["metadata"].update(
            annotations={"ray.io/overwrite-container-cmd": "true"}
        ),
    )
    decision = mutated(rules, new, old)
    assert isinstance(decision, Allowed)
    assert decision.patch


def test_our_exclude_annotation_counts_as_a_change() -> None:
    rules = catalog("defaults: {environmentVariables: {instances: [{name: A, value: b}]}}")
    old = edited(
        served(deployment()),
        lambda each: each["metadata"].update(
            annotations={"podgate.dev/exclude": '{"environmentVariables": ["A"]}'}
        ),
    )
    assert result(rules, old) == old
    new = edited(old, lambda each: each["metadata"].pop("annotations"))
    main = result(rules, new, old)["spec"]["template"]["spec"]["containers"][0]
    assert main["env"] == [{"name": "A", "value": "b"}]


def test_an_update_without_an_old_object_is_judged_as_new() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    document = served(deployment())
    assert refused(rules, document, operation="UPDATE") == [("image", "options")]


def test_an_old_object_that_cannot_be_read_excuses_nothing() -> None:
    rules = catalog("rules: {image: {options: [{value: none}]}}")
    document = served(deployment())
    for broken in ("text", [1], {"containers": "none"}):
        old = copy.deepcopy(document)
        old["spec"]["template"]["spec"] = broken
        assert refused(rules, document, old) == [("image", "options")]


def test_a_locked_item_that_an_immutable_pod_never_had_is_no_violation() -> None:
    rules = catalog(
        "defaults: {environmentVariables: {instances: [{name: A, value: b}]}}\n"
        "rules: {environmentVariables: {instances: {locked: [A]}}}"
    )
    old = served(pod())
    new = edited(old, lambda each: each["spec"]["containers"][0].update(image="r.example.com/a:2"))
    assert result(rules, new, old) == new
    strict = catalog(
        policy(
            "defaults: {environmentVariables: {instances: [{name: A, value: b}]}}\n"
            "rules: {environmentVariables: {instances: {locked: [A]}}}",
            existing="strict",
        )
    )
    assert validated(strict, new, old) != validated(rules, new, old)


def test_a_cronjob_and_a_job_keep_their_history() -> None:
    """Templates of a CronJob may change and are completed then; those of its Jobs stay."""
    rules = catalog("defaults: {workingDir: /w}")
    old = served(KINDS["CronJob"]())
    new = edited(old, lambda each: each["spec"].update(schedule="1 1 * * *"))
    assert result(rules, new, old) == new

    def change(each: Any) -> None:
        spec = each["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        spec["containers"][0]["image"] = "registry.example.com/main:2"

    spec = result(rules, edited(old, change), old)["spec"]["jobTemplate"]["spec"]["template"]
    assert spec["spec"]["containers"][0]["workingDir"] == "/w"
    assert result(rules, served(job()), served(job())) == served(job())
