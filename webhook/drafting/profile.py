"""Drafts the profile of a kind: roles, fields, additional containers, defaults of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.drafting.fields import (
    Kind,
    claim_templates,
    elastic,
    fields,
    immutable,
    priority_places,
    restart_policies,
    shadow_defaults,
    switches,
)
from webhook.drafting.pods import Places, Pods
from webhook.drafting.replicas import Scaling
from webhook.interface.crd_schema import Steps, expression, last_each, outside
from webhook.interface.schema_places import EACH_KEY
from webhook.objects.path import Path

Notes = dict[Path, str]
BY_KEY = {"Master": "master", "Chief": "master", "Launcher": "master"}
JOB_FIELDS = frozenset({"backoffLimit", "autoDeletionTimeAfterCompletionSeconds", "completions"})


def profile_spec(
    kind: Kind, found: Places, scales: Mapping[str, Scaling], subresource: Any
) -> tuple[dict[str, Any], Notes]:
    """Return the rest of a profile's spec, and comments by path."""
    notes: Notes = {}
    used = [steps for scale in scales.values() for steps in scale.used]
    landing = field_places(kind, scales, subresource, notes, used)
    spec: dict[str, Any] = {}
    if guess := workload_type(kind, landing):
        spec["workloadType"] = guess
        notes["workloadType",] = "a guess; it decides which policies apply to the kind"
    spec["components"] = {
        each.name: treatment(each, scales[each.name], notes) for each in found.pods
    }
    spec["fields"] = landing
    rows = [(extra.row, extra.why) for each in found.pods for extra in each.extras]
    spec["extraContainers"] = [row for row, _ in rows]
    notes.update({("extraContainers", at): why for at, (_, why) in enumerate(rows)})
    spec["podParts"] = [row for each in found.pods for row in each.fragments]
    notes["podParts",] = "guesses by names and types; which fragment is which path of the pod"
    if any(row.get("form") == "containers" for row in spec["podParts"]):
        spec["assembler"] = "nim"
        notes["assembler",] = "it knows lists of further containers"
    spec |= rest(kind, used, notes)
    if subresource is not None:
        spec |= scale_subresource(kind, scales, subresource, notes)
    spec["embedded"] = [
        {"place": expression(steps)}
        for steps, node in outside(kind.schema)
        if node.get("x-kubernetes-embedded-resource")
    ]
    notes["embedded",] = (
        "the schema has whole objects here; add those that make no pods as `podless`"
    )
    spec["openSubtrees"] = [expression(each) for each in found.open]
    notes["openSubtrees",] = "what the schema leaves open; all else is known to have no pods"
    empty = [key for key, value in spec.items() if value in ([], {}) and key != "openSubtrees"]
    spec = {key: value for key, value in spec.items() if key not in empty}
    notes["resource",] = (
        "add `controllers`, the exact user names of the operator, and `intermediateKinds`, what "
        "it makes between the workload and its pods: a schema shows neither"
    )
    return spec, {at: text for at, text in notes.items() if at[0] in spec or at[0] == "resource"}


def treatment(pods: Pods, scale: Scaling, notes: Notes) -> dict[str, Any]:
    """Return one component of the profile."""
    at: Path = ("components", pods.name)
    made: dict[str, Any] = {}
    if last_each(pods.steps) and pods.steps[last_each(pods.steps) - 1] == EACH_KEY:
        made["roles"] = {"byInstance": dict(BY_KEY), "otherwise": "worker"}
        notes[*at, "roles"] = "a guess by the usual keys"
    else:
        made["role"] = pods.role
        notes[*at, "role"] = "a guess by the name"
    # The operator decides the values that such an object does not have.
    made["children"] = "derived" if pods.form in {"pod template", "pod spec"} else "merged"
    if made["children"] == "derived":
        notes[*at, "children"] = "write merged if the operator fills in more than names and labels"
    if scale.profile:
        made["scale"] = scale.profile
    return made


def workload_type(kind: Kind, landing: Mapping[str, Any]) -> str | None:
    """Return the workload type, None if unknown."""
    several = len(kind.pods) > 1 or any(last_each(each.steps) for each in kind.pods)
    if JOB_FIELDS & set(landing):
        return "distributed" if several else "training"
    return None


def field_places(
    kind: Kind,
    scales: Mapping[str, Scaling],
    subresource: Any,
    notes: Notes,
    used: list[Steps],
) -> dict[str, Any]:
    """Return the fields of the profile. Their paths are added to `used`."""
    made: dict[str, Any] = {}
    for name, places in fields(kind).items():
        made[name] = with_write(places, places[-1:])
        notes["fields", name] = "a guess by name and type"
        used += places
    if policies := restart_policies(kind):
        made["restartPolicy"] = restart_field(kind, policies)
        notes["fields", "restartPolicy"] = "add `allows` when the kind takes some values only"
        used += policies
    for steps in elastic(kind):
        made[steps[-1]] = {"places": [expression(steps)], "onlyWith": expression(steps[:-1])}
        notes["fields", steps[-1]] = "a default never creates the policy around it"
        used.append(steps)
    used += switches(kind)
    many = [each.name for each in kind.pods if last_each(each.steps) and scales[each.name].paths]
    if len(many) == 1:
        made["numWorkers"] = {"scaleOf": {"component": many[0]}}
        if instance := instance_of(kind, many[0], subresource):
            made["numWorkers"]["scaleOf"]["instance"] = instance
        notes["fields", "numWorkers"] = "a guess: the only component with several instances"
    return made


def with_write(places: list[Steps], write: list[Steps]) -> dict[str, Any]:
    """Return paths, and the one for defaults if there are several."""
    made: dict[str, Any] = {"places": [expression(each) for each in places]}
    if len(places) > 1:
        made["write"] = [expression(each) for each in write]
    return made


def restart_field(kind: Kind, places: list[Steps]) -> dict[str, Any]:
    """Return restart policies. One next to a template hides the template's."""
    templates = {each.steps for each in kind.pods}
    beside = [each for each in places if not any(each[: len(at)] == at for at in templates)]
    made = with_write(places, beside or places)
    if beside and len(places) == len(beside) + 1:
        made["firstCounts"] = True
    return made


def rest(kind: Kind, used: list[Steps], notes: Notes) -> dict[str, Any]:
    """Return second priority classes, claims, defaults and immutable paths."""
    made: dict[str, Any] = {}
    if second := priority_places(kind):
        made["priorityClass"] = {"secondPlaces": [expression(each) for each in second]}
        notes["priorityClass",] = "a guess by the name"
    if claims := claim_templates(kind):
        made["claimTemplates"] = [expression(each) for each in claims]
    made["shadowDefaults"] = [
        {"path": expression(steps), "value": value, "by": "crd"}
        for steps, value in shadow_defaults(kind, used)
    ]
    notes["shadowDefaults",] = "of the schema; add what the operator's own webhook fills in"
    made["immutable"] = [{"place": expression(each)} for each in immutable(kind)]
    notes["immutable",] = "by the schema's own rules; webhooks of the operator may fix more"
    return made


def instance_of(kind: Kind, name: str, subresource: Any) -> str | None:
    """Return the key of a map of components that the scale subresource names."""
    steps = next(each.steps for each in kind.pods if each.name == name)
    path = subresource.get("specReplicasPath") if isinstance(subresource, dict) else None
    depth = last_each(steps)
    keys = tuple(str(path).strip(".").split("."))
    if path and steps[depth - 1] == EACH_KEY and keys[: depth - 1] == steps[: depth - 1]:
        return keys[depth - 1] if len(keys) > depth else None
    return None


def scale_subresource(
    kind: Kind, scales: Mapping[str, Scaling], subresource: Any, notes: Notes
) -> dict[str, Any]:
    """Return what the scale subresource sets, if it has the path of a component's replicas."""
    path = subresource.get("specReplicasPath") if isinstance(subresource, dict) else None
    for each in kind.pods:
        counted = [expression(steps) for steps in scales[each.name].counts]
        if path in counted:
            notes["scaleSubresource",] = "the first component that this number counts"
            return {"scaleSubresource": {"component": each.name}}
        if last_each(each.steps) and (instance := instance_of(kind, each.name, subresource)):
            return {"scaleSubresource": {"component": each.name, "instance": instance}}
    return {}
