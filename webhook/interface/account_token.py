"""Recognizes the service account token that the API server mounts into pods, by its whole content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class View(Protocol):
    """The members of a PodView that are needed here."""

    spec: dict[str, Any]

    def once(self, key: Any, find: Callable[[], frozenset[str]]) -> frozenset[str]:
        """Return the result of `find`, which is called once."""


ACCOUNT_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [
                {
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }
            ]
        }
    },
]
# OpenShift's API server adds this source.
SERVICE_CA = {
    "configMap": {
        "name": "openshift-service-ca.crt",
        "items": [{"key": "service-ca.crt", "path": "service-ca.crt"}],
    }
}
ACCOUNT_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
ACCOUNT_PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"


def is_token_volume(raw: Any) -> bool:
    """Whether a volume is the one that the ServiceAccount plugin adds: token, CA and namespace."""
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str):
        return False
    return bool(ACCOUNT_VOLUME.fullmatch(name)) and any(
        raw == {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
        for sources in (ACCOUNT_SOURCES, [*ACCOUNT_SOURCES, SERVICE_CA])
    )


def is_token_mount(raw: Any, view: View) -> bool:
    """Whether a mount is the one of that volume, which the plugin adds to every container."""
    if not isinstance(raw, dict):
        return False
    name = raw.get("name")
    if not isinstance(name, str) or raw != {
        "name": name,
        "readOnly": True,
        "mountPath": ACCOUNT_PLACE,
    }:
        return False
    return name in view.once("tokens", lambda: frozenset(token_volumes(view.spec)))


def token_volumes(spec: dict[str, Any]) -> Iterator[str]:
    """Return the names of a pod's volumes that the ServiceAccount plugin adds."""
    volumes = spec.get("volumes")
    for each in volumes if isinstance(volumes, list) else ():
        if is_token_volume(each):
            yield each["name"]
