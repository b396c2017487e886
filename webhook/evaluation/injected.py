"""Recognises items that Kubernetes itself adds to objects: by their whole content, not by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

from webhook.evaluation.intent import LAST_APPLIED, last_applied
from webhook.evaluation.request import Request
from webhook.interface.account_token import is_token_mount, is_token_volume
from webhook.objects import quantity
from webhook.objects.path import Path, read
from webhook.pods.pod_view import PodView


class Item(Protocol):
    """The attributes of an item that are compared."""

    key: str
    path: Path
    raw: Any


JOB_LABELS: Final = {"controller-uid": "uid", "job-name": "name"}
# What kubectl rollout restart, and the LimitRanger plugin, write into a pod's annotations.
RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
FILLED_IN: Final = re.compile(
    r"LimitRanger plugin set: "
    r"[\w./-]+(, [\w./-]+)* (request|limit) for (init )?container [a-z0-9-]+"
    r"(; [\w./-]+(, [\w./-]+)* (request|limit) for (init )?container [a-z0-9-]+)*"
)
NODE_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
MEMORY_PRESSURE = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def is_job_label(key: str, value: Any, document: Any) -> bool:
    """Return whether a label ties a Job's pods to the Job. Its value must be the Job's own."""
    member = JOB_LABELS.get(key.removeprefix("batch.kubernetes.io/"))
    return member is not None and bool(value) and value == read(document, ("metadata", member))


def is_node_toleration(raw: Any) -> bool:
    """Return whether a toleration is exactly what the DefaultTolerationSeconds plugin adds to Pods."""
    return bool(
        isinstance(raw, dict)
        and isinstance(raw.get("key"), str)
        and raw["key"] in NODE_TOLERATIONS
        and raw
        == {
            "key": raw["key"],
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
    )


def is_device_toleration(raw: Any, view: PodView) -> bool:
    """Return whether the ExtendedResourceToleration plugin adds a toleration for a requested resource.

    If the pod requests none of it, the toleration would be a way to any taint. The plugin ignores
    names in Kubernetes' own domain.
    """
    key = raw.get("key") if isinstance(raw, dict) else None
    if not isinstance(key, str) or "/" not in key or "kubernetes.io/" in key:
        return False
    if raw != {"key": key, "operator": "Exists", "effect": "NoSchedule"}:
        return False
    return key in view.once("requested", lambda: frozenset(requested_resources(view.spec)))


def requested_resources(spec: dict[str, Any]) -> Iterator[str]:
    """Yield the resources that some container requests more than zero of."""
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        for container in containers if isinstance(containers, list) else ():
            requests = read(container, ("resources", "requests"))
            for resource, amount in requests.items() if isinstance(requests, dict) else ():
                if is_some(amount):
                    yield resource


def is_some(amount: Any) -> bool:
    """Return whether an amount is more than zero."""
    try:
        return quantity.parse(amount) > 0
    except (ValueError, TypeError):
        return False


def is_own_annotation(item: Item, view: PodView, request: Request) -> bool:
    """Return whether an annotation is one of kubectl, or one of the API server on Pods, by its form.

    kubectl stores the manifest with the object. The object's metadata may be the metadata of its
    pods.
    """
    key, value = item.key, item.raw
    if not isinstance(value, str):
        return False
    if key == RESTARTED:
        return TIME.fullmatch(value) is not None
    if key == LAST_APPLIED:
        manifest = last_applied(request.object)
        of_object = view.at(item.path).report == ("metadata", "annotations", key)
        return of_object and isinstance(manifest, dict) and manifest.get("kind") == request.kind
    if request.kind != "Pod" or request.group:
        return False
    return key == LIMIT_RANGER and FILLED_IN.fullmatch(value) is not None


def is_injected(store: str, item: Item, view: PodView, request: Request) -> bool:
    """Return whether Kubernetes, not the user, added this item. The whole content must match."""
    if store == "labels":
        return request.kind == "Job" and is_job_label(item.key, item.raw, request.object)
    if store == "annotations":
        return is_own_annotation(item, view, request)
    if request.kind != "Pod" or request.group:
        return False
    raw = item.raw
    if store == "tolerations":
        return is_node_toleration(raw) or raw == MEMORY_PRESSURE or is_device_toleration(raw, view)
    if store == "volumes":
        return is_token_volume(raw)
    if store == "configMap":
        return isinstance(raw, list) and bool(raw) and is_token_volume(raw[0])
    return store == "mounts" and is_token_mount(raw, view)
