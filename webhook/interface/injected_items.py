"""Content that other webhooks add to pods. The installation lists it, and podgate does not reject it.

    containers:            # a sidecar: other members must be absent, except for env, ports,
    - name: istio-proxy    # resources, args, and probes that run no command
      image: docker.io/istio/proxyv2:*
      securityContext: {runAsUser: 1337, privileged: false}
      resources: {limits: {example.com/nic: '1'}}   # devices; cpu and memory are not compared
      volumeMounts: [{name: istio-token, mountPath: /var/run/secrets/tokens}]
    items:                 # one item of a field, as the pod has it
    - field: annotations
      content: {sidecar.istio.io/status: '*'}
    - field: storage.emptyDirVolume
      content: {name: istio-envoy, emptyDir: {medium: Memory}}
      mounts: [{name: istio-envoy, mountPath: /etc/istio/proxy}]
    - field: scheduling.schedulerName   # a value of the pod, in objects that controllers create
      content: volcano
    - field: security.volumeTypes       # a volume of a type that is not allowed
      content: {name: keys, csi: {driver: keys.example.com}}

A `*` in a text matches anything. `{owner}` matches the name of the object that owns the pod, or
the beginning of that name before a dash: Job `pi-launcher` belongs to `pi`. `{more}` at the end of
a list matches any further members. Without `args` any arguments match; `args: []` matches none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.interface.account_token import View, is_token_mount
from webhook.objects.path import ABSENT, Path, display, read
from webhook.policy.row import POD, POD_SET
from webhook.policy.table import TABLE

PRIVILEGES = ("volumeMounts", "volumeDevices", "securityContext", "envFrom", "lifecycle", "command")
"""Members that an injected container can have only if the list has them."""
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
"""Members that can run commands. The list must have these commands too."""
CONTAINER_KEYS = ("name", "image", *PRIVILEGES, "args", *PROBES, "resources")
ORDINARY = frozenset({"cpu", "memory", "ephemeral-storage"})
ITEM_KEYS = ("field", "content", "mounts")
KEYED = frozenset({"labels", "annotations"})
SPECIAL = re.compile(r"[*?[{]")
OWNER, MORE = "{owner}", "{more}"


@dataclass(frozen=True, slots=True)
class InjectedItem:
    """One item of a field, with the mounts that a volume can have."""

    field: str
    content: Any
    mounts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Injected:
    """The list of an installation. `owner` is the name that `{owner}` matches."""

    containers: tuple[Mapping[str, Any], ...] = ()
    items: tuple[InjectedItem, ...] = ()
    owner: str = ""

    def made_of(self, owner: str) -> Injected:
        """Return the list for pods of an owner with this name."""
        return replace(self, owner=owner) if self.containers or self.items else self

    def has_container(self, body: Mapping[str, Any], view: View | None = None) -> bool:
        """Whether the list has a container, with its image, mounts and privileges."""
        return bool(self.containers) and any(True for _ in self.entries_for(body, view))

    def entries_for(
        self, body: Mapping[str, Any], view: View | None
    ) -> Iterator[Mapping[str, Any]]:
        """Return the entries of the list that match a container.

        The API server also mounts the token of the pod's service account into containers that
        webhooks add. That mount is ignored.
        """
        body = without_token(body, view)
        return (each for each in self.containers if is_container(each, body, self.owner))

    def excuses(self, body: Mapping[str, Any], view: View | None = None) -> bool:
        """Whether the list has a container with the same devices: it then counts in no total."""
        asked = devices_of(body)
        return any(alike(devices_of(each), asked) for each in self.entries_for(body, view))

    def has_value(self, field: str, content: Any) -> bool:
        """Whether the list has a value of a pod's field that is not itemized."""
        return any(
            each.field == field
            and not is_itemized(field)
            and alike(each.content, content, self.owner)
            for each in self.items
        )

    def has_item(self, field: str, key: str, raw: Any) -> bool:
        """Whether the list has an item of a field. `raw` can be a list: a volume and its mounts."""
        whole, mounts = {key: raw} if field in KEYED else raw, []
        if isinstance(raw, list) and raw:
            whole, *mounts = raw
        return any(
            each.field == field
            and alike(each.content, whole, self.owner)
            and all(any(alike(one, mount, self.owner) for one in each.mounts) for mount in mounts)
            for each in self.items
        )

    def has_content(self, raw: Any) -> bool:
        """Whether the list has an item with this content, for any field."""
        return any(alike(each.content, raw, self.owner) for each in self.items)


def without_token(body: Mapping[str, Any], view: View | None) -> Mapping[str, Any]:
    """Return a container without the token mount that the API server adds."""
    mounts = body.get("volumeMounts")
    if view is None or not isinstance(mounts, list):
        return body
    left = [each for each in mounts if not is_token_mount(each, view)]
    found = {key: value for key, value in body.items() if key != "volumeMounts"}
    return {**found, "volumeMounts": left} if left else found


def container_entry(body: Mapping[str, Any], view: View | None = None) -> dict[str, Any]:
    """Return the entry that matches only this container."""
    body = without_token(body, view)
    found = {key: body[key] for key in ("name", "image", *PRIVILEGES) if body.get(key) is not None}
    found |= {each: {"exec": run} for each in PROBES if (run := run_by(body, each)) is not None}
    if devices := devices_of(body):
        found["resources"] = devices
    return {key: exact(value) for key, value in found.items()}


def item_entry(field: str, content: Any, mounts: Iterable[Any] = ()) -> dict[str, Any]:
    """Return the entry that matches only this item, or value of the pod."""
    found = {"field": field, "content": exact(content)}
    listed = [exact(each) for each in mounts]
    return {**found, "mounts": listed} if listed else found


def exact(value: Any) -> Any:
    """Return a pattern that matches only this value."""
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    return SPECIAL.sub(r"[\g<0>]", value) if isinstance(value, str) else value


def devices_of(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the limits and requests of a container, except cpu, memory and ephemeral storage."""
    resources = body.get("resources")
    found = {}
    for member in ("limits", "requests"):
        amounts = resources.get(member) if isinstance(resources, dict) else None
        named = amounts.items() if isinstance(amounts, dict) else ()
        if own := {key: value for key, value in named if key not in ORDINARY}:
            found[member] = own
    return found


def merge_lists(lists: Iterable[Injected]) -> Injected:
    """Merge several lists into one."""
    found = list(lists)
    return Injected(
        tuple(one for each in found for one in each.containers),
        tuple(one for each in found for one in each.items),
    )


def is_container(pattern: Mapping[str, Any], body: Mapping[str, Any], owner: str = "") -> bool:
    """Whether a container matches a pattern."""
    if "args" in pattern and not alike(pattern["args"] or [], body.get("args") or [], owner):
        return False
    return all(
        alike(pattern.get(key), body.get(key), owner) for key in ("name", "image", *PRIVILEGES)
    ) and all(alike(run_by(pattern, each), run_by(body, each), owner) for each in PROBES)


def run_by(body: Mapping[str, Any], probe: str) -> Any:
    """Return the command of a probe, else None."""
    found = read(body, (probe, "exec"))
    return None if found is ABSENT else found


def alike(pattern: Any, value: Any, owner: str = "") -> bool:
    """Whether a value matches a pattern, member by member."""
    if isinstance(pattern, dict) and isinstance(value, dict):
        return pattern.keys() == value.keys() and all(
            alike(pattern[key], value[key], owner) for key in pattern
        )
    if isinstance(pattern, list) and isinstance(value, list):
        if pattern and pattern[-1] == MORE:
            pattern, value = pattern[:-1], value[: len(pattern) - 1]
        return len(pattern) == len(value) and all(
            alike(one, each, owner) for one, each in zip(pattern, value, strict=True)
        )
    if isinstance(pattern, str) and isinstance(value, str):
        return matches(pattern, value, owner)
    return type(pattern) is type(value) and bool(pattern == value)


def matches(pattern: str, value: str, owner: str) -> bool:
    """Whether a text matches a pattern. Text before `{owner}` is compared literally."""
    before, named, after = pattern.partition(OWNER)
    if not named:
        return fnmatchcase(value, pattern)
    if not owner or not value.startswith(before):
        return False
    rest = value[len(before) :]
    ends = [*(index for index, each in enumerate(owner) if each == "-"), len(owner)]
    return any(
        rest.startswith(owner[:end]) and matches(after, rest[end:], owner) for end in ends if end
    )


Complain = Callable[[Path, str, str], None]
"""Receives one problem of a list: its path, what was found, and what to write instead."""


def parse_injected(document: SourceDocument) -> tuple[Injected, tuple[Problem, ...]]:
    """Return the list of a document, and all its problems."""
    problems: list[Problem] = []

    def complain(path: Path, found: str, fix: str) -> None:
        line, column = document.position(path)
        shown = display(path) if path else ""
        problems.append(Problem(document.origin, shown, found, fix, "injected-items", line, column))

    return read_injected(document.data, complain), tuple(problems)


def read_injected(data: Any, complain: Complain) -> Injected:
    """Read a decoded list. It is empty if it has any problem."""
    faults = list(faults_of(data))
    for path, found, fix in faults:
        complain(path, found, fix)
    if faults:
        return Injected()
    items = tuple(
        InjectedItem(each["field"], each["content"], tuple(each.get("mounts") or ()))
        for each in data.get("items") or ()
    )
    return Injected(tuple(data.get("containers") or ()), items)


def faults_of(data: Any) -> Iterator[tuple[Path, str, str]]:
    """Return every problem of a list: its path, what was found, and what to write instead."""
    if not isinstance(data, dict) or not set(data) <= {"containers", "items"}:
        yield (), "no list of injected items", "write containers: and items: at the top"
        return
    for section, known, needed in (
        ("containers", CONTAINER_KEYS, ("name", "image")),
        ("items", ITEM_KEYS, ("field", "content")),
    ):
        listed = data.get(section)
        if listed is None:
            continue
        if not isinstance(listed, list):
            yield (section,), "no list", f"write a list of {section}"
            continue
        for index, each in enumerate(listed):
            at: Path = (section, index)
            if not isinstance(each, dict) or not set(each) <= set(known):
                yield at, "an unknown member", f"write {', '.join(known)}"
            elif missing := [key for key in needed if not each.get(key)]:
                yield at, f"no {missing[0]}", f"write {' and '.join(needed)}"
            elif (
                section == "items"
                and not is_itemized(each["field"])
                and not is_of_pod(each["field"])
            ):
                fix = "name an itemized field or one of the pod, such as storage.emptyDirVolume"
                yield (*at, "field"), str(each["field"])[:80], fix
            elif not isinstance(each.get("mounts"), list | None):
                yield (*at, "mounts"), "no list", "write a list of mounts"


def is_of_pod(name: Any) -> bool:
    """Whether a field with this name is one value of the pod spec, or a set of names in it."""
    row = TABLE.fields.get(name) if isinstance(name, str) else None
    return row is not None and row.shape in (POD, POD_SET)


def is_itemized(name: Any) -> bool:
    """Whether a field with this name has items."""
    row = TABLE.fields.get(name) if isinstance(name, str) else None
    return row is not None and row.items is not None
