"""What counts as written by the user, in both passes, and what never excuses anything."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.building import (
    annotated,
    asset,
    catalog,
    container,
    deployment,
    edited,
    job,
    mutated,
    pod,
    policy,
    pytorchjob,
    reasons,
    refused,
    result,
    served,
    validated,
)
from webhook.evaluation.intent import LAST_APPLIED, contains
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.request import RequestClass

PULL = "defaults: {imagePullPolicy: Always}\nrules: {imagePullPolicy: {canEdit: false}}"
BANNED = "rules: {imagePullPolicy: {canEdit: false}}"
REFUSED = [("imagePullPolicy", "canEdit")]
OPERATOR = "system:serviceaccount:operators:manager"
CLOSED = """
rules:
  environmentVariables: {instances: {canAdd: false}}
  tolerations: {instances: {canAdd: false}}
  labels: {instances: {canAdd: false}}
  storage: {hostPath: {instances: {canAdd: false}}}
"""


def main(document: Any) -> Any:
    spec = document["spec"]
    if document["kind"] != "Pod":
        spec = spec["template"]["spec"]
    return spec["containers"][0]


def pulling(value: str) -> Any:
    return lambda each: main(each).update(imagePullPolicy=value)


def of_containers(name: str) -> Any:
    """A set of fields that names one container by whatever is given."""
    item = {name: {"f:imagePullPolicy": {}}}
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": item}}}}


def owned(manager: str, operation: str, fields: Any, version: str = "apps/v1") -> Any:
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return lambda each: each["metadata"].setdefault("managedFields", []).append(entry)


FIELDS: dict[str, Any] = {
    "f:spec": {
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"main"}': {".": {}, "f:name": {}, "f:imagePullPolicy": {}}
                }
            }
        }
    }
}


def test_a_manifest_states_the_items_that_it_has_and_no_others() -> None:
    served = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    for manifest in ({"env": [{"name": "A", "value": "1"}]}, {"env": []}, {}):
        assert not contains(manifest, served, ("env", 1))
        assert not contains(manifest, served, ("env", 1, "value"))
    assert contains({"env": [{"name": "B", "value": "0"}]}, served, ("env", 1))


# New objects


def test_without_evidence_a_server_default_counts_as_unset() -> None:
    """With `kubectl create` nobody can tell whether it was typed."""
    document = served(deployment())
    assert main(document)["imagePullPolicy"] == "IfNotPresent"
    assert main(result(catalog(PULL), document))["imagePullPolicy"] == "Always"
    assert result(catalog(BANNED), document) == document


def test_last_applied_shows_a_typed_server_default() -> None:
    typed = deployment(container(imagePullPolicy="IfNotPresent"))
    assert refused(catalog(PULL), annotated(served(typed), typed)) == REFUSED
    assert refused(catalog(BANNED), annotated(served(typed), typed)) == REFUSED
    silent = annotated(served(deployment()), deployment())
    assert main(result(catalog(PULL), silent))["imagePullPolicy"] == "Always"


def test_an_apply_entry_of_the_requesting_manager_shows_it() -> None:
    document = edited(served(deployment()), owned("gitops", "Apply", FIELDS))
    assert reasons(mutated(catalog(BANNED), document, field_manager="gitops")) == REFUSED
    assert reasons(mutated(catalog(PULL), document, field_manager="gitops")) == REFUSED


@pytest.mark.parametrize(
    "entry",
    [
        owned("other", "Apply", FIELDS),
        owned("gitops", "Update", FIELDS),
        owned("gitops", "Apply", FIELDS, "apps/v1beta1"),
        owned("gitops", "Apply", {"f:spec": {}}),
        owned("gitops", "Apply", None),
        owned("gitops", "Apply", {"f:spec": {"f:template": []}}),
        *(
            owned("gitops", "Apply", of_containers(name))
            for name in (
                "k:5",
                "k:null",
                "k:[]",
                'k:"main"',
                "k:{",
                "k:" + "[" * 100_000,
                "i:9",
                "v:5",
            )
        ),
        lambda each: each["metadata"].update(managedFields="text"),
        lambda each: each["metadata"].update(managedFields=[None, 1, {"operation": "Apply"}]),
        lambda each: each["metadata"].update(annotations={LAST_APPLIED: "{"}),
        lambda each: each["metadata"].update(annotations={LAST_APPLIED: "[1]"}),
        lambda each: each["metadata"].update(annotations={LAST_APPLIED: "[" * 100_000}),
        lambda each: each["metadata"].update(annotations={LAST_APPLIED: 5}),
    ],
)
def test_other_entries_show_nothing_and_harm_nobody(entry: Any) -> None:
    document = edited(served(deployment()), entry)
    decision = mutated(catalog(PULL), document, field_manager="gitops")
    assert isinstance(decision, Allowed)
    assert main(decision.object)["imagePullPolicy"] == "Always"


FORGED = {
    "an empty manifest": lambda each: annotated(each, {}),
    "a manifest that says the default": lambda each: annotated(
        each, deployment(container(imagePullPolicy="Always"))
    ),
    "nobody owns it": lambda each: edited(each, owned("gitops", "Apply", {})),
    "another one owns it": lambda each: edited(each, owned("system", "Apply", FIELDS)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_evidence_excuses_no_value_and_no_item(name: str) -> None:
    typed = served(deployment(container(imagePullPolicy="Never")))
    for rules in (catalog(PULL), catalog(BANNED)):
        assert refused(rules, FORGED[name](typed), field_manager="gitops") == REFUSED
    spec: dict[str, Any] = {
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "h", "hostPath": {"path": "/etc"}}],
    }
    items = served(deployment(container(env=[{"name": "A", "value": "b"}]), **spec))
    items["spec"]["template"]["metadata"]["labels"] = {"mine": "1"}
    assert refused(catalog(CLOSED), FORGED[name](items), field_manager="gitops") == [
        ("environmentVariables", "canAdd"),
        ("labels", "canAdd"),
        ("storage.hostPath", "canAdd"),
        ("tolerations", "canAdd"),
    ]


def test_final_rules_never_use_intent() -> None:
    rules = catalog("rules: {imagePullPolicy: {options: [{value: Always}]}}")
    document = annotated(served(deployment()), deployment())
    assert refused(rules, document) == [("imagePullPolicy", "options")]


# Updates


def test_an_edit_to_the_server_default_is_the_users() -> None:
    old = result(catalog(PULL), served(deployment()))
    assert main(old)["imagePullPolicy"] == "Always"
    edit = edited(old, pulling("IfNotPresent"))
    assert refused(catalog(PULL), edit, old) == REFUSED
    never = served(deployment(container(imagePullPolicy="Never")))
    assert refused(catalog(BANNED), edited(never, pulling("IfNotPresent")), never) == REFUSED


def test_a_whole_object_without_the_value_is_completed_again() -> None:
    """PUT of the raw manifest, and server-side apply that drops it: the server fills it in."""
    old = result(catalog(PULL), served(deployment()))
    again = served(deployment())
    assert result(catalog(PULL), again, old, replaces=True) == old
    assert result(catalog(BANNED), again, old, replaces=True) == again


def test_a_stale_annotation_does_not_hide_what_a_patch_changes() -> None:
    raw = deployment(container(imagePullPolicy="Always", workingDir="/a"))
    old = annotated(served(raw), raw)
    rules = catalog(
        "defaults: {workingDir: /a, imagePullPolicy: Always}\n"
        "rules: {imagePullPolicy: {canEdit: false}, workingDir: {canEdit: false}}"
    )
    assert result(rules, old) == old
    edit = edited(old, lambda each: main(each).update(workingDir="/b"))
    assert refused(rules, edit, old) == [("workingDir", "canEdit")]


def test_a_server_side_apply_that_drops_fields_gets_the_defaults_back() -> None:
    rules = catalog(
        "defaults: {workingDir: /w, environmentVariables: {instances: [{name: A, value: b}]}}\n"
        "rules: {workingDir: {canEdit: false}, environmentVariables: {instances: {locked: [A]}}}"
    )
    old = result(rules, pytorchjob())
    dropped = edited(pytorchjob(), owned("gitops", "Apply", {"f:spec": {}}, "kubeflow.org/v1"))
    kept = result(rules, dropped, old, field_manager="gitops", replaces=True)
    assert kept["spec"] == old["spec"]


def test_what_a_user_is_shown_to_have_written_is_not_kept_for_them() -> None:
    """Whoever takes away what they wrote gets today's default and not their old value."""
    raw = annotated(pytorchjob(container(workingDir="/mine")))
    rules = catalog("defaults: {workingDir: /policy}")
    old = result(rules, raw)
    document = result(rules, pytorchjob(), old)
    for one in document["spec"]["pytorchReplicaSpecs"].values():
        assert one["template"]["spec"]["containers"][0]["workingDir"] == "/policy"


# The validating pass, which may follow a mutating pass that was skipped


def test_validate_takes_the_default_and_what_the_server_wrote_where_none_is() -> None:
    silent = served(deployment())
    default = edited(silent, pulling("Always"))
    never = edited(silent, pulling("Never"))
    assert isinstance(validated(catalog(PULL), default), Allowed)
    assert isinstance(validated(catalog(BANNED), silent), Allowed)
    assert reasons(validated(catalog(PULL), silent)) == REFUSED
    assert reasons(validated(catalog(PULL), never)) == REFUSED
    assert reasons(validated(catalog(BANNED), never)) == REFUSED
    without = "defaults: {workingDir: /w}\nrules: {workingDir: {canEdit: false}}"
    # The default that nobody may change is not there: the mutating pass was skipped.
    assert reasons(validated(catalog(without), silent)) == [("workingDir", "canEdit")]
    kept = catalog("defaults: {workingDir: /w}\nrules: {workingDir: {blocked: true}}")
    written = edited(silent, lambda each: main(each).update(workingDir="/w"))
    # Asked again, the mutating pass sees its own default; the user's repetition has to be shown.
    assert isinstance(mutated(kept, written), Allowed)
    note = {LAST_APPLIED: json.dumps(written)}
    said = edited(written, lambda each: each["metadata"].update(annotations=note))
    assert reasons(mutated(kept, said)) == [("workingDir", "blocked")]
    assert isinstance(validated(kept, written), Allowed)
    # What was there before the update is nobody's new value.
    changed = edited(never, lambda each: each["spec"]["template"].update(metadata={}))
    assert isinstance(validated(catalog(PULL), changed, never), Allowed)


def test_validate_misses_locked_items() -> None:
    defaults = """
defaults:
  environmentVariables: {instances: [{name: A, value: b}]}
  labels: {instances: [{name: team, value: ml}]}
  tolerations: {instances: [{name: t, key: spot, operator: Exists}]}
"""
    rules = """
rules:
  environmentVariables: {instances: {locked: [A]}}
  labels: {instances: {locked: [team]}}
  tolerations: {instances: {locked: [t]}}
imposedAssets: [data]
"""
    locked = catalog(policy(defaults + rules), asset("data", "/data", "/data"))
    bare = served(deployment())
    assert reasons(validated(locked, bare)) == [
        ("environmentVariables", "locked"),
        ("labels", "locked"),
        ("storage.hostPath", "locked"),
        ("tolerations", "locked"),
    ]
    assert isinstance(validated(catalog(defaults), bare), Allowed)
    done = result(locked, bare)
    for change in (
        lambda each: main(each)["env"].clear(),
        lambda each: main(each)["env"][0].update(value="c"),
        lambda each: main(each)["env"].append({"name": "A", "value": "c"}),
        lambda each: main(each)["volumeMounts"].clear(),
        lambda each: main(each)["volumeMounts"][0].update(readOnly=False),
        lambda each: main(each)["volumeMounts"][0].update(subPath="x"),
        lambda each: each["spec"]["template"]["spec"]["volumes"][0]["hostPath"].update(path="/x"),
        lambda each: each["spec"]["template"]["spec"]["tolerations"].clear(),
        lambda each: each["spec"]["template"]["metadata"]["labels"].pop("team"),
    ):
        assert isinstance(validated(locked, edited(done, change)), Denied)
        assert isinstance(validated(locked, edited(done, change), done), Denied)


# What Kubernetes itself adds


def labelled(**labels: str) -> Any:
    document = served(job())
    document["metadata"]["uid"] = "11-22"
    document["spec"]["template"]["metadata"]["labels"] = labels
    return document


LABELS = {
    "controller-uid": "11-22",
    "job-name": "web",
    "batch.kubernetes.io/controller-uid": "11-22",
    "batch.kubernetes.io/job-name": "web",
}


def test_the_labels_of_a_job_are_excused_by_their_value() -> None:
    rules = catalog(CLOSED)
    assert isinstance(validated(rules, labelled(**LABELS)), Allowed)
    for name in LABELS:
        assert reasons(validated(rules, labelled(**{**LABELS, name: "other"}))) == [
            ("labels", "canAdd")
        ]
    template = deployment()
    template["spec"]["template"]["metadata"]["labels"] = dict(LABELS)
    assert ("labels", "canAdd") in refused(rules, served(template))


NODE = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
INJECTED = [
    {"key": "node.kubernetes.io/not-ready", **NODE},
    {"key": "node.kubernetes.io/unreachable", **NODE},
]


def test_the_tolerations_of_a_pod_are_excused_by_their_whole_content() -> None:
    rules = catalog(CLOSED)
    unlabelled = pod(tolerations=INJECTED)
    assert isinstance(validated(rules, served(unlabelled)), Allowed)
    for change in ({"tolerationSeconds": 301}, {"effect": "NoSchedule"}, {"value": "x"}, {"x": 1}):
        other = pod(tolerations=[{**INJECTED[0], **change}])
        assert refused(rules, served(other)) == [("tolerations", "canAdd")], change
    longer = pod(tolerations=[{"key": INJECTED[0]["key"], "operator": "Exists"}])
    assert refused(rules, served(longer)) == [("tolerations", "canAdd")]
    template = deployment(tolerations=INJECTED)
    template["spec"]["template"]["metadata"] = {}
    assert refused(rules, served(template)) == [("tolerations", "canAdd")]


# Objects that are judged and not written to


def test_an_owned_object_keeps_what_the_server_wrote() -> None:
    document = served(deployment())
    for rules in (catalog(PULL), catalog(BANNED)):
        for judge in (mutated, validated):
            decision = judge(rules, document, request_class=RequestClass.UNPATCHED, user=OPERATOR)
            assert isinstance(decision, Allowed)
            assert not decision.patch
    never = edited(document, pulling("Never"))
    assert reasons(mutated(catalog(PULL), never, request_class=RequestClass.UNPATCHED)) == REFUSED


@pytest.mark.parametrize("user", ["eve", "system:serviceaccount:team:builder"])
def test_who_only_says_that_a_controller_owns_it_may_not_leave_the_servers_value(user: str) -> None:
    """The mutating pass writes the fixed default there; without it the object is refused."""
    document = served(deployment())
    asked = {"request_class": RequestClass.OWNED, "user": user}
    assert reasons(validated(catalog(PULL), document, **asked)) == REFUSED
    written = mutated(catalog(PULL), document, **asked)
    assert isinstance(written, Allowed)
    assert main(written.object)["imagePullPolicy"] == "Always"
    newer = edited(document, lambda each: main(each).update(image="registry.example.com/main:2"))
    changed = mutated(catalog(PULL), newer, document, **asked)
    assert isinstance(changed, Allowed)
    assert main(changed.object)["imagePullPolicy"] == "Always"
    assert isinstance(validated(catalog(PULL), changed.object, document, **asked), Allowed)
    always = edited(document, pulling("Always"))
    assert isinstance(validated(catalog(PULL), always, **asked), Allowed)
    assert reasons(validated(catalog(PULL), newer, always, **asked)) == REFUSED


def test_trusted_senders_meet_final_rules_only() -> None:
    rules = catalog(PULL)
    never = served(deployment(container(imagePullPolicy="Never")))
    decision = mutated(rules, never, request_class=RequestClass.TRUSTED)
    assert isinstance(decision, Allowed)
    assert not decision.patch
    bound = catalog("rules: {imagePullPolicy: {options: [{value: Always}]}}")
    decision = mutated(bound, never, request_class=RequestClass.TRUSTED)
    assert reasons(decision) == [("imagePullPolicy", "options")]


# Offline


def test_offline_the_raw_file_is_the_intent() -> None:
    raw = deployment(container(imagePullPolicy="IfNotPresent"))
    assert reasons(mutated(catalog(PULL), served(raw), raw=raw)) == REFUSED
    silent = deployment()
    decision = mutated(catalog(PULL), served(silent), raw=silent)
    assert isinstance(decision, Allowed)
    assert main(decision.object)["imagePullPolicy"] == "Always"
    # An annotation that was copied into the file says nothing beside the file itself.
    copied = copy.deepcopy(silent)
    copied["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(raw)}
    assert isinstance(mutated(catalog(PULL), served(copied), raw=copied), Allowed)
