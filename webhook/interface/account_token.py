"""The token of a service account, which the API server mounts into pods: recognised by its whole content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class View(Protocol):
    """What is looked at of a pod."""

    spec: dict[str, Any]

    def once(self, key: Any, find: Callable[[], frozenset[str]]) -> frozenset[str]:
        """What `find` gives, found once."""


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
# OpenShift's API server adds one more.
SERVICE_CA = {
    "configMap": {
        "name": "openshift-service-ca.crt",
        "items": [{"key": "service-ca.crt", "path": "service-ca.crt"}],
    }
}
ACCOUNT_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
ACCOUNT_PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"


def is_token_volume(raw: Any) -> bool:
    """What the ServiceAccount plugin adds to Pods: the token, its CA and the namespace."""
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str):
        return False
    return bool(ACCOUNT_VOLUME.fullmatch(name)) and any(
        raw == {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
        for sources in (ACCOUNT_SOURCES, [*ACCOUNT_SOURCES, SERVICE_CA])
    )


def is_token_mount(raw: Any, view: View) -> bool:
    """The mount of such a volume that the plugin adds to every container."""
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
    """The names of the volumes of a pod that the ServiceAccount plugin adds."""
    volumes = spec.get("volumes")
    for each in volumes if isinstance(volumes, list) else ():
        if is_token_volume(each):
            yield each["name"]
