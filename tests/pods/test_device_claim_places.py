"""Every path of every CRD at hand where a kind states a claim of devices is known, so that it counts."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pods.test_shipped_workloads import CUSTOM, definition, schemas
from webhook.interface.schema_places import properties
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError

Steps = tuple[str | int, ...]
NAMED = re.compile(r"\w*resourceClaim(s|Name|Template)?\w*|resourceSharing|\w*deviceClass\w*", re.I)
FIELDS = re.compile(r"resourceClaim(Template)?Name|deviceClassName|claimCreationSpec")
KEYS = ("Worker", "Master", "Launcher", "a")
STATED = {"name": "c", "resourceClaimName": "x", "claimName": "x", "scope": "AllReplicas"}
NO_CLAIMS: dict[str, set[str]] = {}
"""Paths with such a name that state no claim, by kind, with the reason beside each."""


def claim_paths(node: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """The outermost paths whose name, or whose fields, are those of a claim of devices."""
    if not isinstance(node, dict):
        return
    inside = properties(node)
    for key, each in inside.items():
        path = (*steps, key)
        if steps == () and key in ("status", "metadata"):
            continue
        listed = properties(each.get("items") or {})
        if NAMED.fullmatch(key) or any(FIELDS.fullmatch(name) for name in listed):
            yield path, each
        else:
            yield from claim_paths(each, path)
    if isinstance(node.get("items"), dict):
        yield from claim_paths(node["items"], (*steps, 0))
    if isinstance(node.get("additionalProperties"), dict):
        yield from claim_paths(node["additionalProperties"], (*steps, "{}"))


def document_with(steps: Steps, value: Any, pods: dict[str, Any], key: str) -> Any:
    """An object that holds a value at a path, beside what makes a pod of its holder."""
    for depth, step in reversed(list(enumerate(steps))):
        if step == 0:
            value = [value]
        elif isinstance(step, str):
            beside = pods if depth == len(steps) - 1 else {}
            named = {"name": "a", "groupName": "a", **beside, step: value}
            value = {key: value} if step == "{}" else named
    return value


def is_counted(found: Definition, steps: Steps) -> bool:
    """Whether a claim at a path is one of a pod's, however the pod is stated."""
    containers = {"containers": [{"name": "main", "image": "a"}]}
    step = {"container": {"image": "a"}}
    holders = (containers, step, {"templates": [{"name": "a", **step}]}, {})
    for pods, key in itertools.product(holders, KEYS):
        try:
            located = locate(found, document_with(steps, [dict(STATED)], pods, key))
        except LocationError:
            continue
        if any(each.spec.get("resourceClaims") or each.shared for each in located):
            return True
    return False


def unknown(name: str, found: Definition, folder: Path) -> dict[str, bool]:
    """The paths of a kind's CRD that state claims, and whether each is unknown to its definition."""
    known = schemas(folder, found.profile)
    return {
        ".".join(map(str, steps)): not is_counted(found, steps)
        for schema in known.values()
        for steps, _ in claim_paths(schema)
        if ".".join(map(str, steps)) not in NO_CLAIMS.get(name, set())
    }


@pytest.mark.parametrize("name", CUSTOM)
def test_every_path_to_a_claim_of_devices_is_known(name: str, upstream_data: Path) -> None:
    found = unknown(name, definition(name), upstream_data)
    assert [path for path, is_unknown in found.items() if is_unknown] == []


def test_a_path_that_a_definition_does_not_know_is_noticed(upstream_data: Path) -> None:
    forgotten = {}
    for name in CUSTOM:
        found = definition(name)
        parts = {
            component: tuple(each for each in parts if each.pod != ("spec", "resourceClaims"))
            for component, parts in found.profile.fragments.items()
        }
        profile = replace(found.profile, fragments=parts)
        without = Definition(found.interface, profile, found.others, found.versions)
        forgotten[name] = [
            path for path, lost in unknown(name, without, upstream_data).items() if lost
        ]
    # Of the other kinds with pieces the interface names the path too.
    assert forgotten["workflow.argoproj.io"]


GROVE = "podcliqueset.grove.io"
SHARING = [
    ("spec", "template", "resourceSharing"),
    ("spec", "template", "cliques", 0, "resourceSharing"),
    ("spec", "template", "podCliqueScalingGroups", 0, "resourceSharing"),
    ("spec", "template", "cliques", 0, "spec", "podSpec", "resourceClaims"),
]


def test_every_path_to_a_claim_of_grove_is_known() -> None:
    # Its CRDs are in no archive at hand: these are all the paths of its Go types.
    clique = {"name": "a", "spec": {"podSpec": {"containers": [{"name": "main", "image": "a"}]}}}
    found = definition(GROVE)
    for steps in SHARING:
        document: Any = {"spec": {"template": {"cliques": [copy.deepcopy(clique)]}}}
        document["spec"]["template"]["podCliqueScalingGroups"] = [{"name": "g"}]
        holder = document
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = [dict(STATED)]
        (located,) = locate(found, document)
        assert located.spec.get("resourceClaims") or located.shared


def test_enough_kinds_have_a_schema_here(upstream_data: Path) -> None:
    walked = {name for name in CUSTOM if unknown(name, definition(name), upstream_data)}
    assert len(walked) > 15
