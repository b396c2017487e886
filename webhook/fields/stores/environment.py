"""Stores of itemized fields: env entries, labels and tolerations, read and written as items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import LIMIT_VARIABLE
from webhook.fields.storage.home_directory import HOME_ENTRY
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import MalformedPod, PodView, mapping, sequence
from webhook.policy.policy import Default
from webhook.policy.row import Field

EXCLUDE_PREFIX = "podgate.dev/"


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
        # Policies cannot set `optional`, so an optional entry is a different one.
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
        if ev.can_write(path) and (own := ev.find_written_path(row.path, path)) is not None:
            ev.insert(path, index, entry)
            # In a pod in fragments, entries from other paths come after its own.
            ev.note_item(row, (*own, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """A default home directory's HOME, and the limit of a part of a GPU, are other fields'."""
        return bool(item.raw == HOME_ENTRY) or (
            item.key == LIMIT_VARIABLE and "value" in item.values
        )


class LabelStore:
    """Labels of the pod's metadata, by key. `others` are those that belong to other fields."""

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
            ev.assign(path, value)
            ev.note_item(new.row, path, value, new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Set the old value again."""
        if view.location.metadata_path is None:
            return False
        path = (*view.location.metadata_path, self.part, item.key)
        if ev.can_write(path):
            ev.assign(path, item.raw)
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
        ev.append(path, entry)
        ev.note_item(row, (*path, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return False: no toleration belongs to another field."""
        return False
