"""What the list of injected content lacks for an object that a controller made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.building import catalog, container, pod, request
from webhook.decision.decide import decide
from webhook.decision.suggested import Suggestion, suggest
from webhook.evaluation.outcome import Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, RequestClass, Stage

RULES = """
rules:
  image: {options: [{value: "registry.example.com/main:1"}]}
  storage: {hostPath: {instances: {canAdd: false}}}
"""
MESH = {"name": "mesh", "image": "mesh.example.com/mesh:1"}
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "team", "uid": "u1"},
    "spec": {"template": {"metadata": {}, "spec": {"containers": [container()]}}},
}


def suggested(document: dict[str, Any], owner: ObjectRead) -> Suggestion:
    """What is suggested for a Pod of the ReplicaSet, once that was looked up."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1"}
    document["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    asked = request(document, stage=Stage.VALIDATE, request_class=RequestClass.DERIVED)
    rules = catalog(RULES)
    first = decide(asked, rules, References())
    assert isinstance(first, Denied)
    assert first.needs is not None
    asked = replace(asked, objects={first.needs.path: owner})
    refused = decide(asked, rules, References())
    assert isinstance(refused, Denied)
    definition = rules.definition("", "Pod", "v1")
    assert definition is not None
    return suggest(asked, rules, References(), definition, None, refused)


def test_a_volume_that_the_owner_lacks_is_an_item() -> None:
    mount = {"name": "host", "mountPath": "/host"}
    volume = {"name": "host", "hostPath": {"path": "/run", "type": ""}}
    found = suggested(pod(container(volumeMounts=[mount]), volumes=[volume]), ObjectRead(OWNER))
    assert [each.body for each in found.entries] == [
        {"field": "storage.hostPath", "content": volume, "mounts": [mount]}
    ]
    assert not found.left


def test_without_the_owner_every_container_is_taken_for_an_added_one() -> None:
    for owner in (ObjectRead(), ObjectRead(forbidden=True)):
        found = suggested(pod(container(), MESH), owner)
        assert [(each.body, each.of_owner) for each in found.entries] == [(MESH, False)]
        assert not found.left
