"""What other webhooks add to pods by an installation's own word: excused by whole content.

    containers:            # a sidecar: what is not named here must be absent, but for its env,
    - name: istio-proxy    # ports, resources, args and what its probes do not run
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
    - field: scheduling.schedulerName   # a value of the pod, in what controllers make
      content: volcano
    - field: security.volumeTypes       # a volume of a type that is not allowed
      content: {name: keys, csi: {driver: keys.example.com}}

A `*` in a text stands for anything; `{owner}` stands for the name of the object that the pod is
made of, or the beginning of that name before a dash: a Job `pi-launcher` is of `pi`. `{more}` at
the end of a list stands for any further members. Without `args` any are excused; `args: []` means none.
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
"""What an injected container may have only as the list says."""
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
"""What may run commands: those have to be on the list, too."""
CONTAINER_KEYS = ("name", "image", *PRIVILEGES, "args", *PROBES, "resources")
ORDINARY = frozenset({"cpu", "memory", "ephemeral-storage"})
ITEM_KEYS = ("field", "content", "mounts")
KEYED = frozenset({"labels", "annotations"})
SPECIAL = re.compile(r"[*?[{]")
OWNER, MORE = "{owner}", "{more}"


@dataclass(frozen=True, slots=True)
class InjectedItem:
    """One item of a field, with the mounts that a volume may have."""

    field: str
    content: Any
    mounts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Injected:
    """An installation's list; empty, it excuses nothing. `owner` is the name for `{owner}`."""

    containers: tuple[Mapping[str, Any], ...] = ()
    items: tuple[InjectedItem, ...] = ()
    owner: str = ""

    def made_of(self, owner: str) -> Injected:
        """The list for what is made of an object of this name."""
        return replace(self, owner=owner) if self.containers or self.items else self

    def has_container(self, body: Mapping[str, Any], view: View | None = None) -> bool:
        """Whether a container is one of the list, with its image, mounts and privileges."""
        return bool(self.containers) and any(True for _ in self.entries_for(body, view))

    def entries_for(
        self, body: Mapping[str, Any], view: View | None
    ) -> Iterator[Mapping[str, Any]]:
        """The entries of the list that a container is as.

        The API server mounts the token of the pod's service account into containers that webhooks
        add as well; that mount is Kubernetes' own, whatever the list says.
        """
        body = without_token(body, view)
        return (each for each in self.containers if is_container(each, body, self.owner))

    def excuses(self, body: Mapping[str, Any], view: View | None = None) -> bool:
        """Whether a container is one of the list, devices included: it then counts in no total."""
        asked = devices_of(body)
        return any(alike(devices_of(each), asked) for each in self.entries_for(body, view))

    def has_value(self, field: str, content: Any) -> bool:
        """Whether a value of the pod is one of the list; items have names and are listed as such."""
        return any(
            each.field == field
            and not is_itemized(field)
            and alike(each.content, content, self.owner)
            for each in self.items
        )

    def has_item(self, field: str, key: str, raw: Any) -> bool:
        """Whether an item of a field is one of the list; `raw` is a volume with its mounts too."""
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
        """Whether something is an item of the list, whatever field it belongs to."""
        return any(alike(each.content, raw, self.owner) for each in self.items)


def without_token(body: Mapping[str, Any], view: View | None) -> Mapping[str, Any]:
    """A container without the mount of the token that the API server adds."""
    mounts = body.get("volumeMounts")
    if view is None or not isinstance(mounts, list):
        return body
    left = [each for each in mounts if not is_token_mount(each, view)]
    found = {key: value for key, value in body.items() if key != "volumeMounts"}
    return {**found, "volumeMounts": left} if left else found


def container_entry(body: Mapping[str, Any], view: View | None = None) -> dict[str, Any]:
    """The entry of a list that excuses this container and no other."""
    body = without_token(body, view)
    found = {key: body[key] for key in ("name", "image", *PRIVILEGES) if body.get(key) is not None}
    found |= {each: {"exec": run} for each in PROBES if (run := run_by(body, each)) is not None}
    if devices := devices_of(body):
        found["resources"] = devices
    return {key: exact(value) for key, value in found.items()}


def item_entry(field: str, content: Any, mounts: Iterable[Any] = ()) -> dict[str, Any]:
    """The entry of a list that excuses this item, or value of the pod, and no other."""
    found = {"field": field, "content": exact(content)}
    listed = [exact(each) for each in mounts]
    return {**found, "mounts": listed} if listed else found


def exact(value: Any) -> Any:
    """A pattern that is `alike` this value only."""
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    return SPECIAL.sub(r"[\g<0>]", value) if isinstance(value, str) else value


def devices_of(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The limits and requests of a container beside cpu, memory and storage of the node."""
    resources = body.get("resources")
    found = {}
    for part in ("limits", "requests"):
        held = resources.get(part) if isinstance(resources, dict) else None
        named = held.items() if isinstance(held, dict) else ()
        if own := {key: value for key, value in named if key not in ORDINARY}:
            found[part] = own
    return found


def united_lists(lists: Iterable[Injected]) -> Injected:
    """Several lists as one."""
    found = list(lists)
    return Injected(
        tuple(one for each in found for one in each.containers),
        tuple(one for each in found for one in each.items),
    )


def is_container(pattern: Mapping[str, Any], body: Mapping[str, Any], owner: str = "") -> bool:
    """Whether a container is the one that a pattern means."""
    if "args" in pattern and not alike(pattern["args"] or [], body.get("args") or [], owner):
        return False
    return all(
        alike(pattern.get(key), body.get(key), owner) for key in ("name", "image", *PRIVILEGES)
    ) and all(alike(run_by(pattern, each), run_by(body, each), owner) for each in PROBES)


def run_by(body: Mapping[str, Any], probe: str) -> Any:
    """What a probe runs in its container; None for nothing."""
    found = read(body, (probe, "exec"))
    return None if found is ABSENT else found


def alike(pattern: Any, value: Any, owner: str = "") -> bool:
    """Whether a value is what a pattern says, member by member."""
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
    """Whether a text is what a pattern says; what is before `{owner}` is no pattern."""
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
"""Takes one fault of a list: where it is in there, what was found, what to write instead."""


def parse_injected(document: SourceDocument) -> tuple[Injected, tuple[Problem, ...]]:
    """The list of a document, and everything that is wrong with it."""
    problems: list[Problem] = []

    def complain(path: Path, found: str, fix: str) -> None:
        line, column = document.position(path)
        shown = display(path) if path else ""
        told = Problem(document.origin, shown, found, fix, "injected-items", line, column)
        problems.append(told)

    return read_injected(document.data, complain), tuple(problems)


def read_injected(data: Any, complain: Complain) -> Injected:
    """The list as decoded data; empty once anything is wrong with it."""
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
    """Every fault of such a list, with its place in there."""
    if not isinstance(data, dict) or not set(data) <= {"containers", "items"}:
        yield (), "no list of injected items", "write containers: and items: at the top"
        return
    for part, known, needed in (
        ("containers", CONTAINER_KEYS, ("name", "image")),
        ("items", ITEM_KEYS, ("field", "content")),
    ):
        listed = data.get(part)
        if listed is None:
            continue
        if not isinstance(listed, list):
            yield (part,), "no list", f"write a list of {part}"
            continue
        for index, each in enumerate(listed):
            at: Path = (part, index)
            if not isinstance(each, dict) or not set(each) <= set(known):
                yield at, "an unknown member", f"write {', '.join(known)}"
            elif missing := [key for key in needed if not each.get(key)]:
                yield at, f"no {missing[0]}", f"write {' and '.join(needed)}"
            elif (
                part == "items" and not is_itemized(each["field"]) and not is_of_pod(each["field"])
            ):
                fix = "name an itemized field or one of the pod, such as storage.emptyDirVolume"
                yield (*at, "field"), str(each["field"])[:80], fix
            elif not isinstance(each.get("mounts"), list | None):
                yield (*at, "mounts"), "no list", "write a list of mounts"


def is_of_pod(name: Any) -> bool:
    """Whether a field of that name is one value of the pod spec, or a set of names in it."""
    row = TABLE.fields.get(name) if isinstance(name, str) else None
    return row is not None and row.shape in (POD, POD_SET)


def is_itemized(name: Any) -> bool:
    """Whether a field of that name has items."""
    row = TABLE.fields.get(name) if isinstance(name, str) else None
    return row is not None and row.items is not None
