"""Reviews that a real API server sent, answered under policies that use every field."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.building import catalog, policy
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review, respond
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.objects.path import read

EVERYTHING = yaml.safe_load((Path(__file__).parents[1] / "corpus-policy.yaml").read_text())["spec"]
FORBIDDEN = """
rules:
  image: {canEdit: false}
  imagePullPolicy: {canEdit: false}
  workingDir: {canEdit: false}
  command: {blocked: true}
  args: {blocked: true}
  terminationGracePeriodSeconds: {canEdit: false}
  nodeType: {canEdit: false}
  priorityClass: {options: [{value: none}]}
  backoffLimit: {canEdit: false}
  scale: {replicas: {max: 0}}
  labels: {instances: {canAdd: false}}
  environmentVariables: {instances: {canAdd: false}}
  tolerations: {instances: {canAdd: false}}
  compute: {cpuCoreRequest: {canEdit: false}, cpuMemoryLimit: {required: true},
    gpuDevicesRequest: {max: 0}}
  security: {runAsUid: {required: true}, privileged: {canEdit: false}}
  storage: {hostPath: {instances: {canAdd: false}}, nfs: {instances: {canAdd: false}}}
"""
POLICIES: dict[str, dict[str, Any] | str] = {
    "everything": policy(yaml.safe_dump(EVERYTHING)),
    "forbidden": FORBIDDEN,
    "strict": policy(FORBIDDEN, existing="strict"),
    "tried": policy(FORBIDDEN, enforcement="Warn"),
}


@pytest.fixture(scope="module")
def recorded(upstream_data: Path) -> dict[str, bytes]:
    found = {each.name: each.read_bytes() for each in sorted((upstream_data / "reviews").glob("*"))}
    assert found
    return found


@pytest.fixture(scope="module")
def built() -> dict[str, Catalog]:
    return {name: catalog(each) for name, each in POLICIES.items()}


def requests(recorded: dict[str, bytes]) -> dict[str, Request]:
    parsed = {name: parse_review(body, Stage.MUTATE) for name, body in recorded.items()}
    return {name: each for name, each in parsed.items() if isinstance(each, Request)}


@pytest.mark.parametrize("name", POLICIES)
def test_every_review_is_answered_in_both_passes(
    name: str, recorded: dict[str, bytes], built: dict[str, Catalog]
) -> None:
    rules = built[name]
    for file, asked in requests(recorded).items():
        first = decide_review(asked, rules, References())
        assert json.loads(respond(asked, first))["response"]["uid"] == asked.uid
        if isinstance(first, Denied):
            continue
        assert jsonpatch.apply_patch(asked.object, list(first.patch)) == first.object, file
        written = replace(asked, object=first.object)
        again = decide_review(written, rules, References())
        assert isinstance(again, Allowed), file
        assert not again.patch, (file, again.patch)
        final = decide_review(replace(written, stage=Stage.VALIDATE), rules, References())
        assert isinstance(final, Allowed), (file, final)
        respond(replace(written, stage=Stage.VALIDATE), final)


def test_an_object_that_does_not_change_passes_untouched(
    recorded: dict[str, bytes], built: dict[str, Catalog]
) -> None:
    for asked in requests(recorded).values():
        document = asked.object
        held = json.loads(json.dumps(document))
        held["metadata"]["resourceVersion"] = "99"
        held["metadata"]["finalizers"] = ["example.com/wait"]
        for rules in built.values():
            for stage in Stage:
                unchanged = replace(
                    asked, operation="UPDATE", object=held, old=document, stage=stage
                )
                decision = decide_review(unchanged, rules, References())
                assert isinstance(decision, Allowed)
                assert not decision.patch


def test_only_what_an_update_changes_is_refused(
    recorded: dict[str, bytes], built: dict[str, Catalog]
) -> None:
    """Whatever else is wrong with an object: a refusal names what differs from before."""
    updates = [
        each
        for each in requests(recorded).values()
        if each.old is not None and not each.subresource
    ]
    assert len(updates) > 10
    for asked in updates:
        decision = decide_review(asked, built["forbidden"], References())
        for each in getattr(decision, "violations", ()):
            if each.field.startswith(("security.", "image")):
                continue  # of a container whose image changed
            now, before = read(asked.object, each.path), read(asked.old, each.path)
            names = [
                read(document, (*each.path[:index], "name"))
                for document in (asked.object, asked.old)
                for index in range(len(each.path))
            ]
            half = len(names) // 2
            assert now != before or names[:half] != names[half:], each


EXPECTED = {
    "0106-mutate-update-deployment.json": {"image"},
    "0107-mutate-update-deployment.json": {"image"},
    "0109-mutate-update-deployment.json": set(),
    "0110-mutate-update-deployment.json": {"image"},
    "0111-mutate-update-deployment.json": set(),
    "0112-mutate-update-deployment.json": set(),
    "0113-mutate-update-deployment.json": set(),
    "0115-mutate-update-pytorchjob.json": {"image"},
    "0117-mutate-update-pytorchjob.json": {"image"},
    "0118-mutate-update-pytorchjob.json": set(),
    "0119-mutate-update-pytorchjob.json": set(),
    "0108-mutate-update-scale-scale.json": {"scale.replicas"},
    "0124-mutate-update-scale-scale.json": {"scale.replicas"},
}


def test_what_the_updates_of_kubectl_meet(
    recorded: dict[str, bytes], built: dict[str, Catalog]
) -> None:
    asked = requests(recorded)
    for name, fields in EXPECTED.items():
        decision = decide_review(asked[name], built["forbidden"], References())
        found = {each.field for each in getattr(decision, "violations", ())}
        assert found - {"security.runAsUid"} == fields, name
        tried = decide_review(asked[name], built["tried"], References())
        assert isinstance(tried, Allowed)
        assert not [each for each in tried.changes if each.field != "terminationGracePeriodSeconds"]
