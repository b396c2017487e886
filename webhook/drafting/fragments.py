"""Drafts the fragments of a pod, for kinds without a pod template, by names and types."""

from __future__ import annotations

from typing import Any

from webhook.interface.crd_schema import Schema, Spot, Steps, expression, image_key, node_at
from webhook.interface.schema_places import EACH_ITEM, properties

FIRST = ".spec.containers[0]"
CONTAINER_FRAGMENTS = {
    "command": "array",
    "args": "array",
    "env": "array",
    "envFrom": "array",
    "ports": "array",
    "volumeMounts": "array",
    "resources": "object",
    "imagePullPolicy": "string",
    "workingDir": "string",
    "lifecycle": "object",
}
POD_FRAGMENTS = {
    "nodeSelector": "object",
    "tolerations": "array",
    "affinity": "object",
    "topologySpreadConstraints": "array",
    "schedulerName": "string",
    "priorityClassName": "string",
    "runtimeClassName": "string",
    "serviceAccountName": "string",
    "restartPolicy": "string",
    "hostNetwork": "boolean",
    "hostPID": "boolean",
    "hostIPC": "boolean",
    "shareProcessNamespace": "boolean",
    "volumes": "array",
    "resourceClaims": "array",
    "terminationGracePeriodSeconds": "integer",
    "hostAliases": "array",
    "dnsConfig": "object",
}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
FRAGMENTS = {
    "labels": "labelsPath",
    "annotations": "annotationsPath",
    "resources": "resourcesPath",
    "schedulerName": "schedulerNamePath",
    "priorityClassName": "priorityClassNamePath",
}


def draft_fragments(component: str, spot: Spot) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the fragments for the interface, and all podParts for the profile."""
    key = image_key(spot.node) or "image"
    fragments = {"imagePath": expression((*spot.steps, key))}
    for name, fragment in FRAGMENTS.items():
        if has(spot.node, name, "string" if name.endswith("Name") else "object"):
            fragments[fragment] = expression((*spot.steps, name))
    rows = image_rows(spot, key)
    rows += [
        (f"{FIRST}.{name}", (name,), "same")
        for name, sort in CONTAINER_FRAGMENTS.items()
        if has(spot.node, name, sort)
    ]
    rows += [(f"{FIRST}.{name}", place, "same") for name, place in probes(spot.node)]
    rows += pod_rows(spot.node)
    parts = [row(component, pod, (*spot.steps, *place), form) for pod, place, form in rows]
    return fragments, parts


Row = tuple[str, Steps, str]


def image_rows(spot: Spot, key: str) -> list[Row]:
    """Return the image, as one text or in several members, with the other members of the image."""
    image = node_at(spot.node, (key,))
    if not properties(image):
        return [(f"{FIRST}.image", (key,), "same")]
    rows: list[Row] = [(f"{FIRST}.image", (key,), "image")]
    if has(image, "pullPolicy", "string"):
        rows.append((f"{FIRST}.imagePullPolicy", (key, "pullPolicy"), "same"))
    if has(image, "pullSecrets", "array"):
        rows.append(secrets(image, "pullSecrets", (key, "pullSecrets")))
    return rows


def pod_rows(node: Schema) -> list[Row]:
    """Return members of the pod that are next to the container."""
    rows: list[Row] = [
        (f".metadata.{name}", (name,), "same")
        for name in ("labels", "annotations")
        if has(node, name, "object")
    ]
    rows += [
        (f".spec.{name}", (name,), "same")
        for name, sort in POD_FRAGMENTS.items()
        if has(node, name, sort)
    ]
    if has(node, "imagePullSecrets", "array"):
        rows.append(secrets(node, "imagePullSecrets", ("imagePullSecrets",)))
    if has(node, "securityContext", "object"):
        own = "capabilities" in properties(node_at(node, ("securityContext",)))
        pod = f"{FIRST}.securityContext" if own else ".spec.securityContext"
        rows.append((pod, ("securityContext",), "same"))
    if has(node, "podSecurityContext", "object"):
        rows.append((".spec.securityContext", ("podSecurityContext",), "same"))
    return rows


def secrets(node: Schema, key: str, place: Steps) -> Row:
    """Return the image pull secrets, as names or as references."""
    names = node_at(node, (key, EACH_ITEM)).get("type") == "string"
    return (".spec.imagePullSecrets", place, "names" if names else "same")


def probes(node: Schema) -> list[tuple[str, Steps]]:
    """Return the probes. Some kinds wrap each with a switch."""
    found: list[tuple[str, Steps]] = []
    for name in PROBES:
        inside = properties(node_at(node, (name,)))
        if "httpGet" in inside or "exec" in inside:
            found.append((name, (name,)))
        elif "probe" in inside:
            found.append((name, (name, "probe")))
    return found


def has(node: Schema, name: str, sort: str) -> bool:
    """Whether an object has a property of this JSON type."""
    return node_at(node, (name,)).get("type") == sort


def row(component: str, pod: str, place: Steps, form: str) -> dict[str, Any]:
    """Return one row of podParts."""
    made = {"component": component, "pod": pod, "place": expression(place)}
    return made if form == "same" else {**made, "form": form}
