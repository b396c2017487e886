"""Tells whether an update leaves a container what it was; only then does it tolerate its values."""

from __future__ import annotations

import re
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import Container, PodView

GUARDED_PARTS = (
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
"""What decides what a container does. The policy makes an init container one that stays, a command
may be relative to the directory, a shell waits for input, and a file is mounted at the path."""
POD_PARTS = (
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
"""What every container has of its pod: an identity, namespaces, a sandbox, and what names lead to."""
ABSENT_IS_FALSE = frozenset({"hostIPC", "hostNetwork", "hostPID", "shareProcessNamespace"})
ACCOUNT = ("serviceAccountName", "serviceAccount")
NOT_OF_CONTAINERS = frozenset({"fsGroup", "fsGroupChangePolicy", "seLinuxChangePolicy", "sysctls"})
"""What a pod's security context says of its volumes and of its kernel, which have other fields."""
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
"""Other places of a container that say what runs in it."""
READ_OF_POD = ("volumes", "securityContext", "resourceClaims", *ACCOUNT, *POD_PARTS)


def guarded_parts_changed(
    ev: Evaluation, view: PodView, container: Container, before: Container
) -> bool:
    """Whether the update changes what decides what the container may do, its pod's part included.

    Defaults that we add to a changed pod are no such change.
    """
    body, old = container.body, before.body
    changed = [part for part in GUARDED_PARTS if body.get(part) != old.get(part)]
    if any(read(body, place) != read(old, place) for place in (*COMMANDS, CLAIMS)):
        return True
    if not changed and not gets_something_else(view, container, before):
        return False
    completed = ev.completed(view)
    ours = completed.container_like(container) if completed is not None else None
    if completed is None or ours is None:
        return True
    if given_by_pod(view, container) != given_by_pod(completed, ours):
        return True
    return any(body.get(part) != ours.body.get(part) for part in changed)


def gets_something_else(view: PodView, container: Container, before: Container) -> bool:
    """Whether a container gets something else of its pod than before the update."""
    old = view.old
    if old is None:
        return False
    # Of most pods nothing differs, which is found out once for all containers.
    same = view.once("given", lambda: gives_the_same(view, old))
    return not same and given_by_pod(view, container) != given_by_pod(old, before)


def gives_the_same(view: PodView, old: PodView) -> bool:
    """Whether all that containers have of their pod is as it was."""
    same = all(view.spec.get(key) == old.spec.get(key) for key in READ_OF_POD)
    same = same and [body for _, body in view.claims] == [body for _, body in old.claims]
    return same and view.metadata == old.metadata


def given_by_pod(view: PodView, container: Container) -> dict[str, Any]:
    """What a container has of its pod: the volumes and devices that it names, and who it runs as.

    Behind an unchanged mount another volume makes it another container.
    """
    body = container.body
    volumes = view.once("volumes", lambda: volumes_by_name(view))
    found: dict[str, Any] = {
        f"volume {mount.get('name')}": volumes.get(str(mount.get("name")))
        for part in ("volumeMounts", "volumeDevices")
        for mount in body.get(part) or ()
        if isinstance(mount, dict)
    }
    context, own = view.spec.get("securityContext"), body.get("securityContext")
    if isinstance(context, dict):
        known = own if isinstance(own, dict) else {}
        found |= {
            k: v for k, v in context.items() if known.get(k) is None and k not in NOT_OF_CONTAINERS
        }
    found["account"] = next((view.spec[key] for key in ACCOUNT if view.spec.get(key)), "default")
    for key in POD_PARTS:
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
    """The claims of devices of a pod by name; of one name there may be several."""
    found: dict[str, list[Any]] = {}
    for each in view.spec.get("resourceClaims") or ():
        if isinstance(each, dict):
            found.setdefault(str(each.get("name")), []).append(each)
    return found


def volumes_by_name(view: PodView) -> dict[str, list[Any]]:
    """The volumes and claim templates of a pod by name; of one name there may be several."""
    by_name: dict[str, list[Any]] = {}
    for volume in view.spec.get("volumes") or ():
        if isinstance(volume, dict):
            by_name.setdefault(str(volume.get("name")), []).append(volume)
    for _, claim in view.claims:
        metadata = claim.get("metadata")
        if isinstance(metadata, dict):
            by_name.setdefault(str(metadata.get("name")), []).append(claim.get("spec"))
    return by_name
