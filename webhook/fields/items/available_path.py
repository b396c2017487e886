"""Where the items of a field would stand in a pod, and whether the object has such a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.evaluation.state import is_held
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView

POD: Mapping[str, str] = {"tolerations": "tolerations", "pull-secrets": "imagePullSecrets"}
CONTAINER: Mapping[str, str] = {
    "environment": "env",
    "ports": "ports",
    "extended-resources": "resources",
}
METADATA = frozenset({"labels", "annotations"})


def has_room(store: str, view: PodView) -> bool:
    """Whether items of a store can stand in a pod at all: pods in pieces lack places."""
    return view.location.parts is None or all(is_held(path) for path in places(store, view))


def places(store: str, view: PodView) -> Iterator[Path]:
    """The lists and maps that an item is part of; a volume stands in two of them."""
    if store in METADATA:
        if view.location.metadata_path is not None:
            yield (*view.location.metadata_path, store)
        return
    if store in POD:
        yield (*view.spec_path, POD[store])
        return
    if store not in CONTAINER:
        yield (*view.spec_path, "volumes")
    if view.main is not None:
        yield (*view.main.path, CONTAINER.get(store, "volumeMounts"))
