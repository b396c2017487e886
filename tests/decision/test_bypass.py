"""Bypass attempts: a privileged container at every place that a schema has for one is refused."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.building import request
from tests.pods.test_every_place import WITHOUT_PLACES
from tests.pods.test_shipped_workloads import CUSTOM, definition, schemas
from webhook.admission.judge import decide_review
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.devices.definitions import has_devices
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.interface.crd_schema import Spot, image_key, spots
from webhook.interface.pod_keys import POD_KEYS, POD_LISTS
from webhook.interface.schema_places import EACH_ITEM, EACH_KEY, is_below, properties
from webhook.pods.schema_proof import schema_place_of
from webhook.sources.load import Sources, load

IMAGE = "registry.example.com/a:1"
PLAIN = {"name": "plain", "image": IMAGE, "command": ["a"]}
PRIVILEGED = {**PLAIN, "name": "bad", "securityContext": {"privileged": True}}


@functools.cache
def catalog(crds: str = "") -> Catalog:
    """The shipped documents, the built-in system policy among them, with CRDs or without."""
    found, problems = load(Sources(crds=(crds,) if crds else ()))
    assert found is not None, problems
    return found


def minimal(schema: Any, word: str = "a") -> Any:
    """The smallest value that a schema takes, required fields filled; `word` is for its texts."""
    if not isinstance(schema, dict):
        return {}
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            inside = properties(schema)
            # Controllers want names where schemas do not.
            wanted = {*schema.get("required", ()), *({"name", "pipelineTaskName"} & set(inside))}
            return {key: minimal(inside.get(key), word) for key in sorted(wanted)}
        case "array":
            return [
                minimal(schema.get("items"), f"{word}{n}") for n in range(schema.get("minItems", 0))
            ]
        case "integer" | "number":
            return max(schema.get("minimum", 1), 1)
        case "boolean":
            return False
        case "string":
            return word
        case _:
            return 1 if schema.get("x-kubernetes-int-or-string") else {}


def built(schema: Any, steps: tuple[str, ...], leaf: Any, word: str = "a") -> Any:
    """An object that has a leaf at a place: in the second of its list, under a lower-case key."""
    if not steps:
        body = minimal(schema, word)
        return {**body, **leaf} if isinstance(body, dict) and isinstance(leaf, dict) else leaf
    step, rest = steps[0], steps[1:]
    if step == EACH_ITEM:
        items = schema.get("items")
        return [filled(items, rest, f"{word}1"), built(items, rest, leaf, f"{word}2")]
    if step == EACH_KEY:
        values = schema.get("additionalProperties")
        return {"Worker": filled(values, rest, word), "worker": built(values, rest, leaf, word)}
    body = minimal(schema, word)
    body[step] = built(properties(schema).get(step), rest, leaf, word)
    return body


def filled(schema: Any, rest: tuple[str, ...], word: str) -> Any:
    """The harmless neighbour of what hides a leaf."""
    body = minimal(schema, word)
    return body if isinstance(body, dict | list) or not rest else {}


def pod_leaves(node: Any, container: Any) -> Iterator[tuple[str, Any]]:
    """A container as the second of each list that a pod spec has."""
    for name in sorted(POD_LISTS & set(properties(node))):
        pod = {"containers": [PLAIN], name: [{**PLAIN, "name": "first"}, container]}
        yield name, pod


def container_leaf(node: Any, container: Any) -> Any:
    """A container as far as a place can carry it; its image in parts where that is the form."""
    inside = properties(node)
    leaf = {key: value for key, value in container.items() if key in inside}
    key = image_key(node) or "image"
    parts = properties(inside.get(key))
    leaf[key] = (
        {each: minimal(parts[each]) for each in parts if each != "pullSecrets"} if parts else IMAGE
    )
    return leaf


def leaves(spot: Spot, container: Any) -> Iterator[tuple[str, Any]]:
    """What is put at a place, with a word for it."""
    if spot.what == "pod template":
        for name, pod in pod_leaves(properties(spot.node)["spec"], container):
            yield name, {"spec": {**minimal(properties(spot.node)["spec"]), **pod}}
    elif spot.what == "pod spec":
        yield from pod_leaves(spot.node, container)
    elif spot.what == "open":
        yield "open", {"containers": [PLAIN, container]}
        yield "open case", {"a": [{"Spec": {"InitContainers": [container]}}]}
        yield "open container", {"a": {"b": {**container, "Image": IMAGE}}}
    else:
        yield "container", container_leaf(spot.node, container)


def carries(spot: Spot) -> bool:
    """Whether the schema lets a container say there that it is privileged."""
    if spot.what in ("container", "pieces"):
        return "privileged" in properties(properties(spot.node).get("securityContext"))
    return True


def attempts(name: str, folder: Path, container: Any) -> Iterator[tuple[str, Spot, Any]]:
    """Each place of each version of a kind, with an object that has a container there."""
    profile = definition(name).profile
    for version, schema in schemas(folder, profile).items():
        aside = [each.place for each in profile.not_pods]
        for spot in spots(schema):
            if is_below(schema_place_of(spot), aside):
                continue  # the profile says why
            if spot.what == "open" and spot.steps and spot.steps[-1] in POD_KEYS:
                continue  # a field of a pod, whose type has no containers
            for what, leaf in leaves(spot, container):
                body = built(schema, spot.steps, leaf)
                body |= {
                    "apiVersion": f"{profile.group}/{version}",
                    "kind": profile.kind,
                    "metadata": {"name": "a", "namespace": "team"},
                }
                place = ".".join(spot.steps)
                yield f"{version} {place} {what}", spot, body


def refused(decision: Decision) -> bool:
    """Whether an object is refused for what was hidden in it, and not for anything else."""
    if isinstance(decision, Allowed):
        return False
    known = {("security.privileged", "canEdit"), ("", "uncovered")}
    assert {(each.field, each.reason) for each in decision.violations} <= known, decision
    return True


def decisions(body: Any, found: Catalog, old: Any = None) -> Iterator[tuple[str, Decision]]:
    """What both passes make of an object."""
    for stage in Stage:
        asked = replace(request(copy.deepcopy(body), old=old), stage=stage)
        yield stage.value, decide(asked, found, References())


def is_half(name: str, spot: Spot) -> bool:
    """Whether a place alone makes no pod: Argo's templates need a main container too."""
    return name.endswith(".argoproj.io") and spot.steps[-2:-1] in {
        ("initContainers",),
        ("sidecars",),
    }


@pytest.mark.parametrize("name", CUSTOM)
@pytest.mark.parametrize("known", [False, True])
def test_a_privileged_container_anywhere_is_refused(
    name: str, known: bool, upstream_data: Path
) -> None:
    found = catalog(str(upstream_data / "crds") if known else "")
    wrong = []
    plain = attempts(name, upstream_data, PLAIN)
    for (what, spot, body), (_, _, harmless) in zip(
        attempts(name, upstream_data, PRIVILEGED), plain, strict=True
    ):
        if not carries(spot):
            continue
        wrong += [f"{what} CREATE {at}" for at, each in decisions(body, found) if not refused(each)]
        again = decisions(body, found, harmless)
        wrong += [f"{what} UPDATE {at}" for at, each in again if not refused(each)]
        if spot.what != "open" and not is_half(name, spot):
            same = decisions(harmless, found)
            wrong += [f"{what} {at} {each}"[:500] for at, each in same if isinstance(each, Denied)]
    assert wrong == [], "\n".join(wrong)


def test_there_are_attempts_at_nearly_every_custom_kind(upstream_data: Path) -> None:
    tried = {name for name in CUSTOM for _ in attempts(name, upstream_data, PRIVILEGED)}
    assert set(CUSTOM) - tried <= WITHOUT_PLACES


def merged_places(folder: Path) -> Iterator[tuple[str, Spot]]:
    """Places of merged components that cannot say whether a container is privileged."""
    for name in CUSTOM:
        profile = definition(name).profile
        if all(each.children == "merged" for each in profile.components.values()):
            for schema in schemas(folder, profile).values():
                yield from ((name, spot) for spot in spots(schema) if not carries(spot))


def test_what_a_place_cannot_say_is_refused_at_the_pod(upstream_data: Path) -> None:
    names = {name for name, _ in merged_places(upstream_data)}
    assert len(names) >= 4
    wrong = []
    for name in sorted(names):
        profile = definition(name).profile
        owner = {
            "apiVersion": f"{profile.group}/{profile.versions[0]}",
            "kind": profile.kind,
            "name": "a",
            "uid": "b",
            "controller": True,
        }
        assert profile.controllers, name
        for user in profile.controllers:
            for container, passes in ((PRIVILEGED, False), (PLAIN, True)):
                pod = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "a", "namespace": "team", "ownerReferences": [owner]},
                    "spec": {"containers": [PLAIN, {**container, "name": "other"}]},
                }
                for stage in Stage:
                    asked = request(copy.deepcopy(pod), user=user, stage=stage)
                    decision = decide_review(asked, catalog(), References())
                    if refused(decision) is passes:
                        wrong.append(f"{name} {user} {stage}")
    assert wrong == []


POD_OF = {
    "v1 Pod": (),
    "v1 PodTemplate": ("template",),
    "v1 ReplicationController": ("spec", "template"),
    "apps/v1 Deployment": ("spec", "template"),
    "apps/v1 ReplicaSet": ("spec", "template"),
    "apps/v1 StatefulSet": ("spec", "template"),
    "apps/v1 DaemonSet": ("spec", "template"),
    "batch/v1 Job": ("spec", "template"),
    "batch/v1 CronJob": ("spec", "jobTemplate", "spec", "template"),
}


def built_in(name: str, pod: Any) -> dict[str, Any]:
    """An object of a built-in kind around a pod spec."""
    body: dict[str, Any] = {"spec": pod}
    for step in reversed(POD_OF[name]):
        body = {step: body}
    version, kind = name.split()
    return {**body, "apiVersion": version, "kind": kind, "metadata": {"name": "a"}}


def test_every_built_in_kind_is_attempted() -> None:
    kinds = {
        f"{f'{group}/' if group else ''}{version} {kind}"
        for (group, kind), every in catalog().definitions.items()
        for each in every
        for version in each.versions
        if each.profile.built_in and not has_devices(each)
    }
    assert kinds == set(POD_OF)


@pytest.mark.parametrize("name", sorted(POD_OF))
@pytest.mark.parametrize("lists", sorted(POD_LISTS))
def test_a_privileged_container_in_any_list_of_a_built_in_kind_is_refused(
    name: str, lists: str
) -> None:
    harmless = {"containers": [PLAIN], lists: [PLAIN, {**PLAIN, "name": "second"}]}
    bad = {**harmless, lists: [PLAIN, PRIVILEGED]}
    before, after = built_in(name, harmless), built_in(name, bad)
    for stage in Stage:
        for old in (None, before):
            asked = request(copy.deepcopy(after), old=old, stage=stage)
            assert refused(decide(asked, catalog(), References()))
        asked = request(copy.deepcopy(before), stage=stage)
        assert isinstance(decide(asked, catalog(), References()), Allowed)


def test_a_privileged_ephemeral_container_of_a_running_pod_is_refused() -> None:
    old = built_in("v1 Pod", {"containers": [PLAIN]})
    new = built_in("v1 Pod", {"containers": [PLAIN], "ephemeralContainers": [PRIVILEGED]})
    for stage in Stage:
        asked = request(new, old=old, stage=stage, subresource="ephemeralcontainers")
        assert refused(decide_review(asked, catalog(), References()))


@functools.cache
def opened() -> list[str]:
    """Version and kind of what has an open spec."""
    return sorted(
        f"{group}/{each.versions[0]} {kind}"
        for (group, kind), every in catalog().definitions.items()
        for each in every
        if {".spec"} <= {program.text for program in each.profile.open_subtrees or ()}
    )


ODD: list[tuple[str, Any]] = [
    ("a pod", {"Containers": [PRIVILEGED]}),
    ("init containers", {"a": {"initcontainers": [{**PRIVILEGED, "Image": "a"}]}}),
    ("a template", {"Template": {"Spec": {"EphemeralContainers": [PRIVILEGED]}}}),
    ("a container", [[{"IMAGE": "a", "SecurityContext": {"Privileged": True}}]]),
]


@pytest.mark.parametrize(("what", "hidden"), ODD, ids=[each for each, _ in ODD])
def test_letter_case_hides_nothing_in_an_open_spec(what: str, hidden: Any) -> None:
    assert len(opened()) > 40
    for name in opened():
        version, kind = name.split()
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
        for place in ({"hidden": hidden}, {"x": [{"y": hidden}]}):
            for stage in Stage:
                asked = request({**body, "spec": place}, stage=stage)
                decision = decide(asked, catalog(), References())
                assert isinstance(decision, Denied), name
                assert {each.reason for each in decision.violations} == {"uncovered"}, name
