"""The registration as files that API servers read from disk: manifest-based admission configuration.

Kubernetes 1.37 and newer read it at start, before they serve anything, and nobody can change it through the
API: docs/decisions/0036.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

Json = dict[str, Any]
SUFFIX: Final = ".static.k8s.io"
"""The suffix of the names of such configurations; the API rejects these names."""
FOLDERS: Final = {
    "MutatingWebhookConfiguration": "mutating",
    "ValidatingWebhookConfiguration": "validating",
}
PLUGINS: Final = {
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
"""The admission plugins; each reads its own folder and rejects other kinds."""


def static(configurations: Iterable[Json]) -> list[Json]:
    """Return the same configurations with names for files, entries included.

    With different entry names, messages, logs and metrics show which registration was called.
    """
    found = copy.deepcopy(list(configurations))
    for body in found:
        body["metadata"]["name"] += SUFFIX
        for entry in body["webhooks"]:
            entry["name"] += SUFFIX
    return found


def admission_configuration(folder: PurePosixPath) -> Json:
    """Return the file for `--admission-control-config-file`, with the folders below this one."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [
            {
                "name": plugin,
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "WebhookAdmissionConfiguration",
                    "staticManifestsDir": str(folder / FOLDERS[kind]),
                },
            }
            for kind, plugin in PLUGINS.items()
        ],
    }


def heading(body: Json, end: datetime) -> str:
    """Return the comment above one configuration: where it belongs, and until when it works."""
    kind = body["kind"]
    return (
        f"# For the folder that staticManifestsDir of the plugin {PLUGINS[kind]} names, and no other.\n"
        f"# The CA in it ends at {end:%Y-%m-%dT%H:%M:%SZ}: replace this file on every control-plane node"
        " before that.\n"
    )
