"""Items that Kubernetes itself adds to objects: excused by their whole content, never by name alone."""

from __future__ import annotations

from typing import Any, Protocol

from webhook.core.request import Request


class Item(Protocol):
    """What is looked at of an item."""

    key: str
    raw: Any


class View(Protocol):
    """What is looked at of a pod."""

    spec: dict[str, Any]


NODE_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
MEMORY_PRESSURE = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def is_job_label(key: str, value: Any, document: Any) -> bool:
    """The labels by which the API server ties a Job's pods to it: values are the Job's own."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return False
    if key in ("batch.kubernetes.io/controller-uid", "controller-uid"):
        return bool(value) and value == metadata.get("uid")
    if key in ("batch.kubernetes.io/job-name", "job-name"):
        return bool(value) and value == metadata.get("name")
    return False


def is_node_toleration(raw: Any) -> bool:
    """What the DefaultTolerationSeconds plugin adds to Pods, to the letter."""
    return bool(
        isinstance(raw, dict)
        and raw.get("key") in NODE_TOLERATIONS
        and raw
        == {
            "key": raw["key"],
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
    )


def is_device_toleration(raw: Any, view: View) -> bool:
    """What the ExtendedResourceToleration plugin adds for a resource that the pod asks for."""
    if not isinstance(raw, dict):
        return False
    key = raw.get("key")
    if raw != {"key": key, "operator": "Exists", "effect": "NoSchedule"} or "/" not in str(key):
        return False
    containers = view.spec.get("containers")
    return any(
        key in ((each.get("resources") or {}).get("requests") or {})
        for each in (containers if isinstance(containers, list) else ())
        if isinstance(each, dict) and isinstance(each.get("resources"), dict | None)
    )


def is_injected(store: str, item: Item, view: View, request: Request) -> bool:
    """Whether Kubernetes, and not the user, put this item there; whole content must match."""
    if store == "labels":
        return request.kind == "Job" and is_job_label(item.key, item.raw, request.object)
    if store == "tolerations" and request.kind == "Pod" and not request.group:
        raw = item.raw
        return is_node_toleration(raw) or raw == MEMORY_PRESSURE or is_device_toleration(raw, view)
    return False
