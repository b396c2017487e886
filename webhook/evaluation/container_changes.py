"""Finds whether an update changes what a container may do.

Existing violations are tolerated only in containers that stay the same.
"""

from __future__ import annotations

import re
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import Container, PodView

GUARDED_FIELDS = (
    "image",
    "command",
    "args",
    "workingDir",
    "restartPolicy",
    "restartPolicyRules",
    "env",
    "envFrom",
    "volumeMounts",
    "volumeDevices",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
    "terminationMessagePath",
)
"""Fields that decide what a container does.

A restart policy turns an init container into a sidecar, a command may be relative to the working
directory, a shell waits for input, and a file is mounted at the termination message path.
"""
POD_FIELDS = (
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "os",
    "runtimeClassName",
    "shareProcessNamespace",
)
"""Fields of a pod that apply to all its containers: identity, namespaces, sandbox and name lookup."""
ABSENT_IS_FALSE = frozenset({"hostIPC", "hostNetwork", "hostPID", "shareProcessNamespace"})
ACCOUNT = ("serviceAccountName", "serviceAccount")
NOT_OF_CONTAINERS = frozenset({"fsGroup", "fsGroupChangePolicy", "seLinuxChangePolicy", "sysctls"})
"""Members of a pod's security context about volumes and the kernel, which other fields cover."""
CLAIMS: Path = ("resources", "claims")
NAMED = re.compile(r"metadata\.(annotations|labels)\['(.+)'\]")
"""A field reference that gives a variable one annotation or label."""
COMMANDS: tuple[Path, ...] = (
    ("lifecycle", "postStart", "exec"),
    ("lifecycle", "preStop", "exec"),
    ("livenessProbe", "exec"),
    ("readinessProbe", "exec"),
    ("startupProbe", "exec"),
)
"""Other paths of a container that decide what runs in it."""
READ_OF_POD = ("volumes", "securityContext", "resourceClaims", *ACCOUNT, *POD_FIELDS)


def has_guarded_change(
    ev: Evaluation, view: PodView, container: Container, before: Container
) -> bool:
    """Return whether the update changes a guarded field of the container, or a value from its pod.

    Defaults that podgate adds to a changed pod do not count.
    """
    body, old = container.body, before.body
    changed = [field for field in GUARDED_FIELDS if body.get(field) != old.get(field)]
    if any(read(body, path) != read(old, path) for path in (*COMMANDS, CLAIMS)):
        return True
    if not changed and not gets_something_else(view, container, before):
        return False
    completed = ev.complete_old(view)
    ours = completed.container_like(container) if completed is not None else None
    if completed is None or ours is None:
        return True
    if given_by_pod(view, container) != given_by_pod(completed, ours):
        return True
    return any(body.get(field) != ours.body.get(field) for field in changed)


def gets_something_else(view: PodView, container: Container, before: Container) -> bool:
    """Return whether a container gets other values from its pod than before the update."""
    old = view.old
    if old is None:
        return False
    # Most pods do not differ, so this is checked once for all containers.
    same = view.once("given", lambda: gives_the_same(view, old))
    return not same and given_by_pod(view, container) != given_by_pod(old, before)


def gives_the_same(view: PodView, old: PodView) -> bool:
    """Return whether all values that containers get from their pod are as before."""
    same = all(view.spec.get(key) == old.spec.get(key) for key in READ_OF_POD)
    same = same and [body for _, body in view.claims] == [body for _, body in old.claims]
    return same and view.metadata == old.metadata


def given_by_pod(view: PodView, container: Container) -> dict[str, Any]:
    """Return the values that a container gets from its pod: named volumes and devices, and its identity.

    If another volume is behind an unchanged mount, it is another container.
    """
    body = container.body
    volumes = view.once("volumes", lambda: volumes_by_name(view))
    found: dict[str, Any] = {
        f"volume {mount.get('name')}": volumes.get(str(mount.get("name")))
        for field in ("volumeMounts", "volumeDevices")
        for mount in body.get(field) or ()
        if isinstance(mount, dict)
    }
    context, own = view.spec.get("securityContext"), body.get("securityContext")
    if isinstance(context, dict):
        known = own if isinstance(own, dict) else {}
        found |= {
            k: v for k, v in context.items() if known.get(k) is None and k not in NOT_OF_CONTAINERS
        }
    found["account"] = next((view.spec[key] for key in ACCOUNT if view.spec.get(key)), "default")
    for key in POD_FIELDS:
        value = view.spec.get(key)
        found[key] = value or None if key in ABSENT_IS_FALSE else value
    named = read(body, CLAIMS)
    if isinstance(named, list) and named:
        claims = view.once("resource claims", lambda: claims_by_name(view))
        names = [str(each.get("name")) for each in named if isinstance(each, dict)]
        found |= {f"claim {name}": claims.get(name) for name in names}
    for entry in body.get("env") or ():
        path = read(entry, ("valueFrom", "fieldRef", "fieldPath"))
        match = NAMED.fullmatch(path) if isinstance(path, str) else None
        if match is not None:
            value = read(view.metadata, match.groups())
            found[match[0]] = None if value is ABSENT else value
    return {key: value for key, value in found.items() if value is not None}


def claims_by_name(view: PodView) -> dict[str, list[Any]]:
    """Return the resource claims of a pod by name. Several claims may have one name."""
    found: dict[str, list[Any]] = {}
    for each in view.spec.get("resourceClaims") or ():
        if isinstance(each, dict):
            found.setdefault(str(each.get("name")), []).append(each)
    return found


def volumes_by_name(view: PodView) -> dict[str, list[Any]]:
    """Return the volumes and claim templates of a pod by name. Several may have one name."""
    by_name: dict[str, list[Any]] = {}
    for volume in view.spec.get("volumes") or ():
        if isinstance(volume, dict):
            by_name.setdefault(str(volume.get("name")), []).append(volume)
    for _, claim in view.claims:
        metadata = claim.get("metadata")
        if isinstance(metadata, dict):
            by_name.setdefault(str(metadata.get("name")), []).append(claim.get("spec"))
    return by_name
