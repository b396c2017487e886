"""Drafts the paths of workload-level fields, and the schema's defaults and immutable fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.drafting.pods import Pods
from webhook.interface.crd_schema import EACH, Schema, Steps, last_each, node_at, outside, takes
from webhook.interface.schema_places import below

NAMES = {
    "backoffLimit": ("backoffLimit", "integer"),
    "ttlSecondsAfterFinished": ("autoDeletionTimeAfterCompletionSeconds", "integer"),
    "cleanPodPolicy": ("cleanPodPolicy", "string"),
    "completions": ("completions", "integer"),
    "parallelism": ("parallelism", "integer"),
    "slotsPerWorker": ("slotsPerWorker", "integer"),
    "sshAuthMountPath": ("sshAuthMountPath", "string"),
    "launcherCreationPolicy": ("mpiLauncherCreationPolicy", "string"),
    "startupPolicy": ("startupPolicy", "string"),
}
"""Properties whose name and type match a field of the catalogue."""
ELASTIC = "elasticPolicy"
PRIORITY = ("priorityClassName", "priorityClass")
FIXED = re.compile(r"\s*(?:self\s*==\s*oldSelf|oldSelf\s*==\s*self)\s*")
NOT_FIELDS = frozenset({"volumes", "env", "envFrom", "ephemeralContainers"})
"""Members of a pod whose defaults no field of the catalogue reads."""


@dataclass(slots=True)
class Kind:
    """A schema with its drafted components."""

    schema: Schema
    pods: list[Pods]

    def around(self) -> set[Steps]:
        """The objects around the components' paths."""
        return {each.steps[:depth] for each in self.pods for depth in range(1, len(each.steps) + 1)}

    def candidates(self) -> Iterator[tuple[Steps, Schema]]:
        """Properties of objects around the pods, and of the policies next to them."""
        around = self.around()
        for steps, node in outside(self.schema):
            parent = steps[:-1]
            policy = bool(parent) and len(parent) <= 3 and parent[-1].endswith("Policy")
            if parent in around or (policy and not EACH & set(parent)):
                yield steps, node


def fields(kind: Kind) -> dict[str, list[Steps]]:
    """Return the paths of workload-level fields by name, outermost first."""
    found: dict[str, list[Steps]] = {}
    for steps, node in kind.candidates():
        name, sort = NAMES.get(steps[-1], ("", ""))
        if name and takes(node, sort):
            found.setdefault(name, []).append(steps)
    for places in found.values():
        places.sort(key=lambda each: (len(each), each))
    return found


def elastic(kind: Kind) -> list[Steps]:
    """The bounds of an elastic policy."""
    return [
        steps
        for steps, node in kind.candidates()
        if steps[-2:-1] == (ELASTIC,)
        and steps[-1] in {"minReplicas", "maxReplicas"}
        and takes(node, "integer")
    ]


def restart_policies(kind: Kind) -> list[Steps]:
    """Return the restart policies of the pods, and those of replica specifications."""
    found: list[Steps] = []
    for each in kind.pods:
        beside = (*each.steps[:-1], "restartPolicy")
        if each.form == "pod template" and each.steps[-2:-1] and each.steps[-2] in EACH:
            found += [beside] if node_at(kind.schema, beside).get("type") == "string" else []
        inside = {"pod template": ("spec", "restartPolicy"), "pod spec": ("restartPolicy",)}
        steps = (*each.steps, *inside.get(each.form, ("",)))
        if each.form in inside and node_at(kind.schema, steps).get("type") == "string":
            found.append(steps)
    return found


def switches(kind: Kind) -> list[Steps]:
    """Return the path that suspends the workload."""
    return [
        steps
        for steps, node in kind.candidates()
        if steps[-1] == "suspend" and takes(node, "boolean") and not last_each(steps)
    ]


def priority_places(kind: Kind) -> list[Steps]:
    """Return priority classes outside the pods."""
    pieces = {
        (*each.steps, name) for each in kind.pods if each.form == "pieces" for name in PRIORITY
    }
    inside = {
        (*each.steps, name) for each in kind.pods if each.form == "pod spec" for name in PRIORITY
    }
    return [
        steps
        for steps, node in kind.candidates()
        if steps[-1] in PRIORITY and takes(node, "string") and steps not in pieces | inside
    ]


def claim_templates(kind: Kind) -> list[Steps]:
    """Return claim templates of the workload."""
    return [
        (*steps, "[]")
        for steps, node in kind.candidates()
        if steps[-1] == "volumeClaimTemplates" and takes(node, "array")
    ]


def immutable(kind: Kind) -> list[Steps]:
    """Return paths that the schema's rules make immutable."""
    found = [steps for steps, node in outside(kind.schema) if is_fixed(node)]
    return list(dict.fromkeys(found))


def is_fixed(node: Schema) -> bool:
    """Whether a rule of the schema makes the value immutable."""
    rules = node.get("x-kubernetes-validations")
    return isinstance(rules, list) and any(
        isinstance(rule, dict) and FIXED.fullmatch(str(rule.get("rule", ""))) for rule in rules
    )


def shadow_defaults(kind: Kind, used: list[Steps]) -> list[tuple[Steps, Any]]:
    """Return the schema's defaults at the paths of fields."""
    found = {steps: node_at(kind.schema, steps).get("default") for steps in used}
    for each in kind.pods:
        if each.form != "pieces":  # around pieces there may be anything
            found.update(pod_defaults(each.node, each.steps))
        for extra in each.extras:
            found.update(pod_defaults(node_at(kind.schema, extra.steps), extra.steps))
    return [(steps, value) for steps, value in found.items() if value not in (None, "")]


def pod_defaults(schema: Schema, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """Return the defaults inside a pod that fields of the catalogue read."""
    for step, node in below(schema):
        if step in NOT_FIELDS or not isinstance(node, dict):
            continue
        if "default" in node:
            yield (*steps, step), node["default"]
        yield from pod_defaults(node, (*steps, step))
