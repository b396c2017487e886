"""What other webhooks add to pods by an installation's own word: excused by whole content.

    containers:            # a sidecar: what is not named here must be absent, but for its env,
    - name: istio-proxy    # ports, resources and probes
      image: docker.io/istio/proxyv2:*
      securityContext: {runAsUser: 1337, privileged: false}
      volumeMounts: [{name: istio-token, mountPath: /var/run/secrets/tokens}]
    items:                 # one item of a field, as the pod has it
    - field: annotations
      content: {sidecar.istio.io/status: '*'}
    - field: storage.emptyDirVolume
      content: {name: istio-envoy, emptyDir: {medium: Memory}}
      mounts: [{name: istio-envoy, mountPath: /etc/istio/proxy}]

A `*` in a text stands for anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from webhook.core.decision import Problem
from webhook.core.injected import View, is_token_mount
from webhook.core.pointer import Path, display
from webhook.core.policy.fields import TABLE
from webhook.core.source import SourceDocument

PRIVILEGES = ("volumeMounts", "volumeDevices", "securityContext", "envFrom", "lifecycle")
"""What an injected container may have only as the list says."""
CONTAINER_KEYS = ("name", "image", *PRIVILEGES)
ITEM_KEYS = ("field", "content", "mounts")
KEYED = frozenset({"labels", "annotations"})


@dataclass(frozen=True, slots=True)
class InjectedItem:
    """One item of a field, with the mounts that a volume may have."""

    field: str
    content: Any
    mounts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Injected:
    """An installation's list; empty, it excuses nothing."""

    containers: tuple[Mapping[str, Any], ...] = ()
    items: tuple[InjectedItem, ...] = ()

    def has_container(self, body: Mapping[str, Any], view: View | None = None) -> bool:
        """Whether a container is one of the list, with its image, mounts and privileges.

        The API server mounts the token of the pod's service account into containers that webhooks
        add as well; that mount is Kubernetes' own, whatever the list says.
        """
        if not self.containers:
            return False
        mounts = body.get("volumeMounts")
        if view is not None and isinstance(mounts, list):
            body = {**body, "volumeMounts": [m for m in mounts if not is_token_mount(m, view)]}
            if not body["volumeMounts"]:
                del body["volumeMounts"]
        return any(is_container(each, body) for each in self.containers)

    def has_item(self, field: str, key: str, raw: Any) -> bool:
        """Whether an item of a field is one of the list; `raw` is a volume with its mounts too."""
        whole, mounts = {key: raw} if field in KEYED else raw, []
        if isinstance(raw, list) and raw:
            whole, *mounts = raw
        return any(
            each.field == field
            and alike(each.content, whole)
            and all(any(alike(one, mount) for one in each.mounts) for mount in mounts)
            for each in self.items
        )

    def has_content(self, raw: Any) -> bool:
        """Whether something is an item of the list, whatever field it belongs to."""
        return any(alike(each.content, raw) for each in self.items)


def is_container(pattern: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a container is the one that a pattern means."""
    named = alike(pattern.get("name"), body.get("name"))
    imaged = alike(pattern.get("image"), body.get("image"))
    return named and imaged and all(alike(pattern.get(k), body.get(k)) for k in PRIVILEGES)


def alike(pattern: Any, value: Any) -> bool:
    """Whether a value is what a pattern says, member by member."""
    if isinstance(pattern, dict) and isinstance(value, dict):
        return pattern.keys() == value.keys() and all(alike(pattern[k], value[k]) for k in pattern)
    if isinstance(pattern, list) and isinstance(value, list):
        return len(pattern) == len(value) and all(map(alike, pattern, value))
    if isinstance(pattern, str) and isinstance(value, str):
        return fnmatchcase(value, pattern)
    return type(pattern) is type(value) and bool(pattern == value)


def parse_injected(document: SourceDocument) -> tuple[Injected, tuple[Problem, ...]]:
    """The list of a document, and everything that is wrong with it."""
    problems = list(faults(document))
    data = document.data if isinstance(document.data, dict) else {}
    if problems:
        return Injected(), tuple(problems)
    items = tuple(
        InjectedItem(each["field"], each["content"], tuple(each.get("mounts") or ()))
        for each in data.get("items") or ()
    )
    return Injected(tuple(data.get("containers") or ()), items), ()


def faults(document: SourceDocument) -> Iterator[Problem]:
    """Every problem of such a document, with its place."""

    def problem(path: Path, found: str, fix: str) -> Problem:
        line, column = document.position(path)
        shown = display(path) if path else ""
        return Problem(document.origin, shown, found, fix, "injected-items", line, column)

    data = document.data
    if not isinstance(data, dict) or not set(data) <= {"containers", "items"}:
        yield problem((), "no list of injected items", "write containers: and items: at the top")
        return
    for part, known, needed in (
        ("containers", CONTAINER_KEYS, ("name", "image")),
        ("items", ITEM_KEYS, ("field", "content")),
    ):
        listed = data.get(part)
        if listed is None:
            continue
        if not isinstance(listed, list):
            yield problem((part,), "no list", f"write a list of {part}")
            continue
        for index, each in enumerate(listed):
            at: Path = (part, index)
            if not isinstance(each, dict) or not set(each) <= set(known):
                yield problem(at, "an unknown member", f"write {', '.join(known)}")
            elif missing := [key for key in needed if not each.get(key)]:
                yield problem(at, f"no {missing[0]}", f"write {' and '.join(needed)}")
            elif part == "items" and not is_itemized(each["field"]):
                fix = "name an itemized field, such as annotations or storage.emptyDirVolume"
                yield problem((*at, "field"), str(each["field"])[:80], fix)


def is_itemized(name: Any) -> bool:
    """Whether a field of that name has items."""
    row = TABLE.fields.get(name) if isinstance(name, str) else None
    return row is not None and row.items is not None
