"""Items that Kubernetes itself adds to objects: excused by their whole content, never by name alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

from webhook.evaluation.intent import LAST_APPLIED, last_applied
from webhook.evaluation.request import Request
from webhook.interface.account_token import View, is_token_mount, is_token_volume
from webhook.objects import quantity
from webhook.objects.path import Path, read, real


class Item(Protocol):
    """What is looked at of an item."""

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
    """The labels by which the API server ties a Job's pods to it: values are the Job's own."""
    part = JOB_LABELS.get(key.removeprefix("batch.kubernetes.io/"))
    return part is not None and bool(value) and value == read(document, ("metadata", part))


def is_node_toleration(raw: Any) -> bool:
    """What the DefaultTolerationSeconds plugin adds to Pods, to the letter."""
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


def is_device_toleration(raw: Any, view: View) -> bool:
    """What the ExtendedResourceToleration plugin adds for a resource that the pod asks for.

    Asking for none of it would be a way to any taint, as would a name of Kubernetes' own domain,
    which the plugin leaves alone.
    """
    key = raw.get("key") if isinstance(raw, dict) else None
    if not isinstance(key, str) or "/" not in key or "kubernetes.io/" in key:
        return False
    if raw != {"key": key, "operator": "Exists", "effect": "NoSchedule"}:
        return False
    return key in view.once("requested", lambda: frozenset(requested(view.spec)))


def requested(spec: dict[str, Any]) -> Iterator[str]:
    """The resources of which some container of a pod requests more than none."""
    for name in ("containers", "initContainers"):
        held = spec.get(name)
        for container in held if isinstance(held, list) else ():
            requests = read(container, ("resources", "requests"))
            for resource, amount in requests.items() if isinstance(requests, dict) else ():
                if is_some(amount):
                    yield resource


def is_some(amount: Any) -> bool:
    """Whether an amount is more than none."""
    try:
        return quantity.parse(amount) > 0
    except (ValueError, TypeError):
        return False


def is_own_annotation(item: Item, request: Request) -> bool:
    """What kubectl keeps for itself, and what the API server notes on Pods, by their form.

    kubectl keeps the manifest with the object, whose metadata may be that of its pods.
    """
    key, value = item.key, item.raw
    if not isinstance(value, str):
        return False
    if key == RESTARTED:
        return TIME.fullmatch(value) is not None
    if key == LAST_APPLIED:
        manifest = last_applied(request.object)
        of_object = real(item.path) == ("metadata", "annotations", key)
        return of_object and isinstance(manifest, dict) and manifest.get("kind") == request.kind
    if request.kind != "Pod" or request.group:
        return False
    return key == LIMIT_RANGER and FILLED_IN.fullmatch(value) is not None


def is_injected(store: str, item: Item, view: View, request: Request) -> bool:
    """Whether Kubernetes, and not the user, put this item there; whole content must match."""
    if store == "labels":
        return request.kind == "Job" and is_job_label(item.key, item.raw, request.object)
    if store == "annotations":
        return is_own_annotation(item, request)
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
