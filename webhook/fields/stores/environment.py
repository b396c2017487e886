"""Stores of itemized fields: env entries, labels and tolerations, read and written as items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import LIMIT_VARIABLE
from webhook.fields.storage.home_directory import HOME_ENTRY
from webhook.objects.lookup import frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import MalformedPod, PodView, mapping, sequence
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field

EXCLUDE_PREFIX = "podgate.dev/"


@dataclass(slots=True)
class NativeItem:
    """One item found in a pod: attribute values (several for mounts), its place, its raw form.

    `at` maps attributes to their places; `in_main` says whether the main container has it, `owners`
    which containers do, by list and name: that of an env entry, those of a volume's mounts.
    `tampered` is a part of it that no policy item can have, `elsewhere` says that it is the place
    of another field.
    `unseen` are attributes that this form of item does not show; no rule is judged on them.
    `label` is what people are told instead of a key that may not be printed.
    Values of attributes with a codec of their own are comparable ones.
    """

    key: str
    values: dict[str, tuple[Any, ...]]
    path: Path
    raw: Any
    at: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    in_main: bool = True
    tampered: str = ""
    owners: tuple[tuple[str, str], ...] = ()
    elsewhere: bool = False
    unseen: frozenset[str] = frozenset()
    label: str = ""

    @property
    def told(self) -> str:
        """The key for people."""
        return self.label or self.key

    def like(self, other: NativeItem) -> bool:
        """Whether it is the same in all, in the same containers, in whatever order these stand."""
        if self.key != other.key or len(self.owners) != len(other.owners):
            return False
        if len(self.owners) < 2:
            return self.owners == other.owners and bool(self.raw == other.raw)
        volume, *mounts = self.raw
        known, *others = other.raw
        return bool(volume == known) and in_order(self.owners, mounts) == in_order(
            other.owners, others
        )

    def content(self) -> Hashable:
        """What items that are alike have in common, to be looked up by."""
        if len(self.owners) < 2:
            return self.owners, frozen(self.raw)
        volume, *mounts = self.raw
        return frozen(volume), tuple(
            (owner, frozen(mount)) for owner, mount in in_order(self.owners, mounts)
        )

    def has(self, name: str, wanted: Any) -> bool:
        """Whether one of the attribute's values is this one."""
        return wanted in self.values.get(name, ())


def in_order(owners: tuple[tuple[str, str], ...], mounts: list[Any]) -> list[Any]:
    """Mounts with their containers, those of one container as they stand."""
    return sorted(zip(owners, mounts, strict=True), key=lambda each: each[0])


@dataclass(frozen=True, slots=True)
class Addition:
    """A policy's item to be written: of which row, with which attributes, and why."""

    row: Field
    item: EffectiveItem
    attributes: Mapping[str, Default]
    why: str


class Store(Protocol):
    """Where the items of one field live."""

    def read(self, view: PodView) -> list[NativeItem]:
        """Every item of the pod, in order."""

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Write one new.item into the copy."""

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Write an item of the old object again, as it was; False where it cannot be."""

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Whether the item is the place of another field, so that it is no addition here."""


def values_of(attributes: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Attributes as one-element tuples, absent ones left out."""
    return {name: (value,) for name, value in attributes.items() if value is not None}


class EnvironmentStore:
    """env entries of every container, by name."""

    REFERENCES = (
        ("secret", "secretKeyRef"),
        ("configMap", "configMapKeyRef"),
        ("podFieldRef", "fieldRef"),
    )

    def read(self, view: PodView) -> list[NativeItem]:
        """Every env entry of every container; a doubled name is two items."""
        found = []
        for container in view.everyone:
            entries = container.body.get("env")
            if not entries:
                continue
            path = (*container.path, "env")
            for index, entry in enumerate(sequence(entries, path)):
                place = (*path, index)
                body = mapping(entry, place)
                name = body.get("name")
                if not isinstance(name, str):
                    raise MalformedPod((*place, "name"), "text", name)
                found.append(
                    NativeItem(
                        name,
                        self.values(body),
                        place,
                        entry,
                        in_main=container is view.main,
                        owners=((container.list, container.name),),
                    )
                )
        return found

    def values(self, entry: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
        """One entry as attributes: a literal value, or a reference in the policy's words."""
        result: dict[str, tuple[Any, ...]] = {"name": (entry.get("name"),)}
        sources = entry.get("valueFrom")
        if isinstance(sources, dict):
            for attribute, native in self.REFERENCES:
                held = sources.get(native)
                if isinstance(held, dict):
                    result[attribute] = (self.reference(native, held),)
            if len(result) == 1:
                result["other"] = (str(sorted(sources)),)
        else:
            result["value"] = (str(entry.get("value") or ""),)
        return result

    def reference(self, native: str, held: dict[str, Any]) -> dict[str, Any]:
        """{name, key} or {path}, as a policy writes it."""
        if native == "fieldRef":
            return {"path": held.get("fieldPath")}
        found = {"name": held.get("name"), "key": held.get("key")}
        # No policy says so: an entry that may be missing is another one.
        return {**found, "optional": True} if held.get("optional") else found

    def entry(self, attributes: Mapping[str, Default]) -> dict[str, Any]:
        """The native entry of a policy item."""
        name = attributes["name"].value
        for attribute, native in self.REFERENCES:
            if attribute in attributes:
                held = attributes[attribute].value
                body = {"fieldPath": held.get("path")} if native == "fieldRef" else dict(held)
                return {"name": name, "valueFrom": {native: body}}
        value = attributes["value"].value if "value" in attributes else ""
        return {"name": name, "value": value}

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Put the entry before the user's, so that $(VAR) in theirs resolves; in new.item order."""
        self.put(view, ev, new.row, self.entry(new.attributes), new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Put the old entry where a default's would go."""
        self.put(view, ev, row, item.raw, "kept", None)
        return True

    def put(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        entry: Any,
        why: str,
        source: Source | None,
    ) -> None:
        """Insert one entry behind those that were inserted before it."""
        main = view.main
        if main is None:
            return
        path = (*main.path, "env")
        held = main.body.get("env") or []
        now = ev.now(path) or []
        index = len(now) - len(held)
        if ev.can_write(path) and (own := ev.held(row.path, path)) is not None:
            ev.draft.insert(path, index, entry)
            # Where a pod in pieces has entries of other places, these stand behind its own.
            ev.note_item(row, (*own, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """A default home directory's HOME, and the limit of a part of a GPU, are other fields'."""
        return bool(item.raw == HOME_ENTRY) or (
            item.key == LIMIT_VARIABLE and "value" in item.values
        )


class LabelStore:
    """Labels of the pod's metadata, by key; `others` are those that are places of other fields."""

    part = "labels"

    def __init__(self, others: frozenset[str] = frozenset()) -> None:
        self.others = others

    def read(self, view: PodView) -> list[NativeItem]:
        """Every label of the pod."""
        if view.location.metadata_path is None:
            return []
        path = (*view.location.metadata_path, self.part)
        held = mapping(view.metadata.get(self.part), path)
        for key in held:
            if not isinstance(key, str):
                raise MalformedPod(path, "a map of texts", held)
        return [
            NativeItem(key, {"name": (key,), "value": (value,)}, (*path, key), value)
            for key, value in held.items()
        ]

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Set the missing key."""
        if view.location.metadata_path is None:
            ev.warn("unmapped-default", new.row.path, view.location.place)
            return
        path = (*view.location.metadata_path, self.part, new.attributes["name"].value)
        if ev.can_write(path):
            value = new.attributes["value"].value if "value" in new.attributes else ""
            ev.draft.set(path, value)
            ev.note_item(new.row, path, value, new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Set the old value again."""
        if view.location.metadata_path is None:
            return False
        path = (*view.location.metadata_path, self.part, item.key)
        if ev.can_write(path):
            ev.draft.set(path, item.raw)
            ev.note_item(row, path, item.raw, "kept", None)
        return True

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """The priority label belongs to priorityClass, our own domain to podgate."""
        own = item.key == "priorityClassName" or item.key.startswith(EXCLUDE_PREFIX)
        return own or item.key in self.others


class TolerationStore:
    """Tolerations of the pod; a name lives in the policy only."""

    NATIVE = (
        ("operator", "operator"),
        ("key", "key"),
        ("value", "value"),
        ("effect", "effect"),
        ("seconds", "tolerationSeconds"),
    )

    def read(self, view: PodView) -> list[NativeItem]:
        """Every toleration in order; absent operator is Equal, absent effect is Any."""
        entries = view.spec.get("tolerations")
        if not entries:
            return []
        path = (*view.spec_path, "tolerations")
        found = []
        for index, entry in enumerate(sequence(entries, path)):
            place = (*path, index)
            body = mapping(entry, place)
            values: dict[str, tuple[Any, ...]] = {
                "operator": (body.get("operator") or "Equal",),
                "effect": (body.get("effect") or "Any",),
            }
            for name in ("key", "value"):
                if held := body.get(name):
                    values[name] = (held,)
            seconds = body.get("tolerationSeconds")
            if seconds is not None:
                values["seconds"] = (seconds,)
            at: dict[str, tuple[Path, ...]] = {
                name: ((*place, native),) for name, native in self.NATIVE
            }
            found.append(NativeItem(str(body.get("key") or "*"), values, place, entry, at))
        return found

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the toleration."""
        path = (*view.spec_path, "tolerations")
        if not ev.can_write(path):
            return
        entry = {
            native: new.attributes[name].value
            for name, native in self.NATIVE
            if name in new.attributes
            and not (name == "effect" and new.attributes[name].value == "Any")
        }
        self.put(ev, new.row, path, entry, new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old toleration."""
        path = (*view.spec_path, "tolerations")
        if ev.can_write(path):
            self.put(ev, row, path, item.raw, "kept", None)
        return True

    def put(
        self,
        ev: Evaluation,
        row: Field,
        path: Path,
        entry: Any,
        why: str,
        source: Source | None,
    ) -> None:
        """Append one entry."""
        index = len(ev.now(path) or [])
        ev.draft.append(path, entry)
        ev.note_item(row, (*path, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """No toleration is the place of another field."""
        return False
