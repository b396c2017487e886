"""Every way of writing an object, each with a case that a naive reading gets wrong, both ways.

Naive is to take a present value for the user's own, or one that equals the server's for nobody's.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.building import (
    annotated,
    catalog,
    container,
    deployment,
    edited,
    jobset,
    mutated,
    pod_spec,
    policy,
    reasons,
    refused,
    result,
    served,
    shell,
    template,
)
from webhook.catalog.catalog import Catalog
from webhook.evaluation.intent import LAST_APPLIED
from webhook.evaluation.outcome import Allowed

# A default that anybody may change, and one that nobody may. The server has 30 and IfNotPresent.
OPEN = "defaults: {terminationGracePeriodSeconds: 20}"
HELD = "defaults: {imagePullPolicy: Always}\nrules: {imagePullPolicy: {canEdit: false}}"
GRACE = "terminationGracePeriodSeconds"
PULL = "imagePullPolicy"
REFUSED = [(PULL, "canEdit")]
APPLY, CLIENT = "kubectl", "kubectl-client-side-apply"
PATCHES = ("kubectl-edit", "kubectl-patch")


def spec_of(document: Any) -> Any:
    return document["spec"]["template"]["spec"]


def main(document: Any) -> Any:
    return spec_of(document)["containers"][0]


def typed(**spec: Any) -> Any:
    """A manifest; `pull` goes to the container, the rest to the pod."""
    pull = {PULL: spec.pop("pull")} if "pull" in spec else {}
    return deployment(container(**pull), **spec)


def applied(manifest: Any) -> Any:
    """What the server shows of a first client-side apply."""
    return annotated(served(manifest), manifest)


def entry(manager: str, **spec: Any) -> dict[str, Any]:
    """The managedFields entry of a server-side apply that states these values."""
    fields: dict[str, Any] = {f"f:{name}": {} for name in spec if name != "pull"}
    if "pull" in spec:
        fields["f:containers"] = {'k:{"name":"main"}': {".": {}, f"f:{PULL}": {}}}
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": fields}}},
    }


def by(document: Any, *entries: dict[str, Any]) -> Any:
    return edited(document, lambda each: each["metadata"].update(managedFields=list(entries)))


def relabelled(document: Any) -> Any:
    """The pod changes in a way that no rule is about."""
    return edited(document, lambda each: spec_of(each).update(hostname="other"))


# create


def test_create_gets_defaults_over_the_servers_and_keeps_what_differs_from_them() -> None:
    made = result(catalog(OPEN), served(typed()))
    assert spec_of(made)[GRACE] == 20
    assert spec_of(result(catalog(OPEN), served(typed(**{GRACE: 31}))))[GRACE] == 31
    assert main(result(catalog(HELD), served(typed())))[PULL] == "Always"
    assert refused(catalog(HELD), served(typed(pull="Never"))) == REFUSED


def test_create_cannot_show_that_somebody_typed_the_servers_value() -> None:
    """To be documented: there is no trace of it, and it counts as unset."""
    assert spec_of(result(catalog(OPEN), served(typed(**{GRACE: 30}))))[GRACE] == 20
    assert main(result(catalog(HELD), served(typed(pull="IfNotPresent"))))[PULL] == "Always"


# client-side apply


def test_client_side_apply_shows_the_servers_value_where_it_was_typed() -> None:
    assert spec_of(result(catalog(OPEN), applied(typed(**{GRACE: 30}))))[GRACE] == 30
    assert spec_of(result(catalog(OPEN), applied(typed())))[GRACE] == 20
    assert refused(catalog(HELD), applied(typed(pull="IfNotPresent"))) == REFUSED


def test_a_second_apply_may_type_the_servers_value_over_the_default() -> None:
    first = result(catalog(OPEN), applied(typed()))
    manifest = typed(**{GRACE: 30})
    second = edited(first, lambda each: spec_of(each).update({GRACE: 30}))
    second["metadata"]["annotations"][LAST_APPLIED] = json.dumps(manifest)
    found = result(catalog(OPEN), second, first, field_manager=CLIENT, replaces=True)
    assert spec_of(found)[GRACE] == 30
    held = result(catalog(HELD), applied(typed()))
    pulled = edited(held, lambda each: main(each).update({PULL: "IfNotPresent"}))
    pulled["metadata"]["annotations"][LAST_APPLIED] = json.dumps(typed(pull="IfNotPresent"))
    assert refused(catalog(HELD), pulled, held, field_manager=CLIENT, replaces=True) == REFUSED


def test_a_second_apply_that_no_longer_types_a_value_gets_the_default() -> None:
    """The patch takes the value out and the server fills in its own, which nobody wrote."""
    first = result(catalog(OPEN), applied(typed(**{GRACE: 45})))
    assert spec_of(first)[GRACE] == 45
    second = edited(first, lambda each: spec_of(each).update({GRACE: 30}))
    second["metadata"]["annotations"][LAST_APPLIED] = json.dumps(typed())
    found = result(catalog(OPEN), second, first, field_manager=CLIENT, replaces=True)
    assert spec_of(found)[GRACE] == 20


def test_the_same_apply_again_changes_nothing_whatever_policy_came_since() -> None:
    first = result(catalog(OPEN), applied(typed()))
    for rules in (catalog(OPEN.replace("20", "10")), catalog(HELD), catalog()):
        again = mutated(rules, copy.deepcopy(first), first, field_manager=CLIENT, replaces=True)
        assert isinstance(again, Allowed)
        assert not again.patch


# server-side apply


def test_server_side_apply_shows_what_its_manager_states() -> None:
    for rules, values, wanted in (
        (catalog(OPEN), {GRACE: 30}, 30),
        (catalog(OPEN), {}, 20),
    ):
        document = by(served(typed(**values)), entry(APPLY, **values))
        assert spec_of(result(rules, document, field_manager=APPLY))[GRACE] == wanted
    shown = by(served(typed(pull="IfNotPresent")), entry(APPLY, pull="IfNotPresent"))
    assert reasons(mutated(catalog(HELD), shown, field_manager=APPLY)) == REFUSED


def test_what_one_manager_states_is_no_default_for_another() -> None:
    """A second manager that applies something else must not have the first one's value replaced."""
    first = by(served(typed(**{GRACE: 30})), entry("team", **{GRACE: 30}))
    first = result(catalog(OPEN), first, field_manager="team")
    assert spec_of(first)[GRACE] == 30
    second = by(relabelled(first), entry("team", **{GRACE: 30}), entry("ops", hostname="other"))
    for manager in ("ops", "kubectl-patch", "controller"):
        found = result(catalog(OPEN), second, first, field_manager=manager, replaces=True)
        assert spec_of(found)[GRACE] == 30, manager


def test_what_a_manager_stops_to_state_gets_the_default() -> None:
    first = by(served(typed(**{GRACE: 30})), entry("team", **{GRACE: 30}))
    second = by(relabelled(first), entry("team", hostname="other"))
    found = result(catalog(OPEN), second, first, field_manager="team", replaces=True)
    assert spec_of(found)[GRACE] == 20


def test_what_the_server_filled_in_belongs_to_no_manager() -> None:
    first = by(served(typed()), entry("team"))
    second = by(relabelled(first), entry("team"), entry("ops", hostname="other"))
    found = result(catalog(OPEN), second, first, field_manager="ops", replaces=True)
    # It stood there before, passes, and nobody wrote it: no rollout beyond the change.
    assert spec_of(found)[GRACE] == 30


def test_another_managers_lock_breaking_value_is_tolerated_and_never_excused_when_new() -> None:
    old = by(served(typed(pull="Never")), entry("team", pull="Never"))
    second = by(relabelled(old), entry("team", pull="Never"), entry("ops", hostname="other"))
    found = result(catalog(HELD), second, old, field_manager="ops", replaces=True)
    assert main(found)[PULL] == "Never"
    fresh = result(catalog(HELD), served(typed()))
    forged = by(
        edited(fresh, lambda each: main(each).update({PULL: "Never"})), entry("team", pull="Never")
    )
    assert refused(catalog(HELD), forged, fresh, field_manager="ops", replaces=True) == REFUSED


# replace


def test_replace_with_the_manifest_is_completed_and_with_what_was_read_changes_nothing() -> None:
    for rules, read in (
        (catalog(OPEN), lambda each: spec_of(each)[GRACE] == 20),
        (catalog(HELD), lambda each: main(each)[PULL] == "Always"),
    ):
        stored = result(rules, served(typed()))
        put = result(rules, served(typed()), stored, field_manager="kubectl-replace", replaces=True)
        assert read(put)
        again = mutated(rules, copy.deepcopy(stored), stored, field_manager="kubectl-replace")
        assert isinstance(again, Allowed)
        assert not again.patch


def test_replace_with_a_value_of_ones_own_keeps_it_or_is_refused() -> None:
    stored = result(catalog(OPEN), served(typed()))
    put = result(catalog(OPEN), served(typed(**{GRACE: 45})), stored, replaces=True)
    assert spec_of(put)[GRACE] == 45
    held = result(catalog(HELD), served(typed()))
    assert refused(catalog(HELD), served(typed(pull="Never")), held, replaces=True) == REFUSED


# edit, patch in its three forms


@pytest.mark.parametrize("manager", PATCHES)
def test_an_edit_or_patch_to_the_servers_value_is_the_users(manager: str) -> None:
    """All three forms of patch arrive as the same whole object, by the same manager."""
    stored = result(catalog(OPEN), applied(typed()))
    new = edited(stored, lambda each: spec_of(each).update({GRACE: 30}))
    assert spec_of(result(catalog(OPEN), new, stored, field_manager=manager))[GRACE] == 30
    held = result(catalog(HELD), applied(typed()))
    pulled = edited(held, lambda each: main(each).update({PULL: "IfNotPresent"}))
    assert refused(catalog(HELD), pulled, held, field_manager=manager) == REFUSED


@pytest.mark.parametrize("manager", PATCHES)
def test_an_edit_or_patch_of_something_else_leaves_values_that_stood_there(manager: str) -> None:
    before = served(typed(**{GRACE: 30}))
    found = result(catalog(OPEN), relabelled(before), before, field_manager=manager)
    assert spec_of(found)[GRACE] == 30
    old = served(typed(pull="Never"))
    kept = result(catalog(HELD), relabelled(old), old, field_manager=manager)
    assert main(kept)[PULL] == "Never"


@pytest.mark.parametrize("manager", PATCHES)
def test_a_patch_that_takes_a_default_out_gets_it_back(manager: str) -> None:
    rules = catalog("defaults: {workingDir: /w}\nrules: {workingDir: {canEdit: false}}")
    stored = result(rules, applied(typed()))
    bare = edited(stored, lambda each: main(each).pop("workingDir"))
    assert main(result(rules, bare, stored, field_manager=manager))["workingDir"] == "/w"


# set image, scale, rollout restart


def test_set_image_leaves_pull_policies_that_the_server_chose_for_the_old_image() -> None:
    """IfNotPresent is what the server fills in for :1 and not for :latest: it is nobody's still."""
    old = applied(typed())
    new = edited(old, lambda each: main(each).update(image="registry.example.com/main:latest"))
    for rules in (catalog(HELD), catalog("rules: {imagePullPolicy: {canEdit: false}}"), catalog()):
        decision = mutated(rules, new, old, field_manager="kubectl-set")
        assert isinstance(decision, Allowed), reasons(decision)


def test_set_image_is_held_to_the_options_of_today_for_that_container_alone() -> None:
    rules = catalog("rules: {image: {options: [{value: 'good:1'}]}}")
    old = applied(deployment(container(), container("side")))
    good = edited(old, lambda each: main(each).update(image="good:1"))
    assert isinstance(mutated(rules, good, old, field_manager="kubectl-set"), Allowed)
    bad = edited(old, lambda each: main(each).update(image="bad:2"))
    assert refused(rules, bad, old, field_manager="kubectl-set") == [("image", "options")]


def test_scaling_the_object_touches_no_pod_and_is_held_to_the_bounds() -> None:
    rules = catalog(OPEN + "\nrules: {scale: {replicas: {max: 4}}}")
    old = applied(typed(**{GRACE: 45}))
    old["spec"]["replicas"] = 2
    more = edited(old, lambda each: each["spec"].update(replicas=4))
    decision = mutated(rules, more, old, field_manager="kubectl-scale")
    assert isinstance(decision, Allowed)
    assert not decision.patch
    many = edited(old, lambda each: each["spec"].update(replicas=5))
    assert refused(rules, many, old) == [("scale.replicas", "max")]


def test_a_restart_is_no_annotation_of_the_users_and_any_other_is() -> None:
    rules = catalog("rules: {annotations: {instances: {canAdd: false}}}")
    old = applied(typed())

    def noted(name: str, value: str) -> Any:
        notes = {name: value}
        return edited(
            old, lambda each: each["spec"]["template"]["metadata"].update(annotations=notes)
        )

    restarted = noted("kubectl.kubernetes.io/restartedAt", "2026-11-22T02:00:00Z")
    assert isinstance(mutated(rules, restarted, old, field_manager="kubectl-rollout"), Allowed)
    for other in (
        noted("kubectl.kubernetes.io/restartedAt", "whenever; rm -rf /"),
        noted("example.com/restartedAt", "2026-11-22T02:00:00Z"),
    ):
        assert refused(rules, other, old, field_manager="kubectl-rollout") == [
            ("annotations", "canAdd")
        ]


# Defaults of CRDs and of operators' webhooks


def leader_set(**spec: Any) -> Any:
    body = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template(pod_spec())}}
    return shell("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {**body, **spec})


def filled(document: Any) -> Any:
    """With what the CRD of LeaderWorkerSet fills in."""
    return edited(document, lambda each: each["spec"].setdefault("replicas", 1))


def test_a_default_of_the_crd_is_nobodys_unless_it_was_typed() -> None:
    rules = catalog(policy("defaults: {replicas: 3}", workloadTypes=["distributedInference"]))
    assert result(rules, filled(leader_set()))["spec"]["replicas"] == 3
    silent = annotated(filled(leader_set()), leader_set())
    assert result(rules, silent)["spec"]["replicas"] == 3
    typed = annotated(filled(leader_set(replicas=1)), leader_set(replicas=1))
    assert result(rules, typed)["spec"]["replicas"] == 1


def pods_of(document: Any) -> Any:
    return document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def defaulted(document: Any) -> Any:
    """With what JobSet's own webhook fills in."""
    return edited(document, lambda each: pods_of(each).setdefault("restartPolicy", "OnFailure"))


def silent_set(**spec: Any) -> Any:
    document = jobset()
    pods_of(document).pop("restartPolicy", None)
    pods_of(document).update(spec)
    return document


def test_a_default_of_an_operators_webhook_is_nobodys_unless_it_was_typed() -> None:
    rules = catalog("defaults: {restartPolicy: Never}")
    assert pods_of(result(rules, defaulted(silent_set())))["restartPolicy"] == "Never"
    shown = annotated(defaulted(silent_set()), silent_set())
    assert pods_of(result(rules, shown))["restartPolicy"] == "Never"
    typed = silent_set(restartPolicy="OnFailure")
    assert pods_of(result(rules, annotated(typed, typed)))["restartPolicy"] == "OnFailure"
    held = catalog("defaults: {restartPolicy: Never}\nrules: {restartPolicy: {canEdit: false}}")
    assert refused(held, annotated(typed, typed)) == [("restartPolicy", "canEdit")]
    assert pods_of(result(held, shown))["restartPolicy"] == "Never"


# What is forged proves nothing but against its author


@pytest.mark.parametrize("rules", [catalog(HELD), catalog(OPEN)], ids=["held", "open"])
def test_forged_evidence_can_only_speak_against_its_author(rules: Catalog) -> None:
    """Claiming to have written nothing, or the default, makes no difference for what differs."""
    for forge in (
        lambda each: annotated(each, {}),
        lambda each: annotated(each, typed(pull="Always", **{GRACE: 20})),
        lambda each: by(each, entry("system", pull="Never")),
        lambda each: by(each, entry("me", hostname="x")),
    ):
        document = forge(served(typed(pull="Never", **{GRACE: 45})))
        decision = mutated(rules, document, field_manager="me")
        if isinstance(decision, Allowed):
            assert spec_of(decision.object)[GRACE] == 45
            assert main(decision.object)[PULL] == "Never"
        else:
            assert reasons(decision) == REFUSED
