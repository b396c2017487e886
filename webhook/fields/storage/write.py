"""Writes storage items: a volume, and its mount on the main container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import to_native
from webhook.fields.storage.mounts import DEVICES, MOUNTS, clean_path, dns_label
from webhook.fields.store import Addition, NativeItem
from webhook.objects.lookup import Growing, frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items


class VolumeWriter:
    """Writes the volumes of one source type.

    `adds_containers` says whether a written item adds a container.
    """

    adds_containers = False

    def __init__(self, items: Items, source: str = "") -> None:
        self.items = items
        self.source = source or items.store
        self.mounted_at = "mountPath" if items.attribute("mountPath") else "path"

    def complete_attributes(self, attributes: Mapping[str, Default]) -> Mapping[str, Default]:
        """The attributes of an item with what follows from them."""
        return attributes

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the volume, and its mount on the main container. A name clash is refused."""
        source = self.make_source(view, ev, new.row, new.item, new.attributes)
        if source is None:
            return
        name = dns_label(new.attributes["name"].value if "name" in new.attributes else new.item.key)
        mount = self.mount_body(name, new.attributes)
        if self.clashes(view, ev, new.row, new.item, mount):
            return
        path = (*view.spec_path, "volumes")
        if not ev.can_write(path):
            return
        volume = {"name": name, **source}
        index = len(ev.now(path) or [])
        ev.append(path, volume)
        written = ev.note_item(new.row, (*path, index), volume, new.why, new.item.source)
        # A mount without its volume would be a pod that never starts.
        if written and self.path_of(mount):
            self.mount(view, ev, new.row, mount, new.item, new.why)

    def make_source(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> dict[str, Any] | None:
        """Return the source of a volume for an item. None, with a warning, if there is none."""
        return {self.source: self.source_body(attributes)}

    def source_body(self, attributes: Mapping[str, Default]) -> dict[str, Any]:
        """Return the volume's source from the attributes."""
        body: dict[str, Any] = {}
        for each in self.items.attributes:
            given = attributes.get(each.name)
            if given is None or not each.at or each.at[0] not in ("source", "both"):
                continue
            if each.at[0] == "source" or given.value != each.absent:
                body[each.at[1]] = to_native(each, given.value, given.raw)
        return body

    def mount_body(self, name: str, attributes: Mapping[str, Default]) -> dict[str, Any]:
        """The mount of an item's volume; without a path when the item has none."""
        body: dict[str, Any] = {"name": name}
        if self.mounted_at in attributes:
            body["mountPath"] = attributes[self.mounted_at].value
        for each in self.items.attributes:
            given = attributes.get(each.name)
            if given is None or not each.at or each.at[0] not in ("mount", "both"):
                continue
            if each.name != self.mounted_at and given.value != each.absent:
                body[each.at[1]] = to_native(each, given.value, given.raw)
        return body

    def path_of(self, mount: Mapping[str, Any]) -> str:
        """The path of a mount or device; "" for none."""
        return str(mount.get("mountPath") or mount.get("devicePath") or "")

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old volume, and the mounts that the main container had of it."""
        path = (*view.spec_path, "volumes")
        volumes = ev.now(path) or []
        if self.volumes_named(ev, path, volumes, item.key):
            return False
        if ev.can_write(path):
            ev.append(path, item.raw[0])
            ev.note_item(row, (*path, len(volumes)), item.raw[0], "kept", None)
            self.restore_mounts(view, ev, row, item)
        return True

    def restore_mounts(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> None:
        """Append the mounts that the main container had of an old volume, where nothing is now."""
        if view.main is None:
            return
        main = view.main.list, view.main.name
        taken: dict[str, set[str]] = {}
        for owner, mount in zip(item.owners, item.raw[1:], strict=True):
            if owner != main:
                continue
            part = DEVICES if "devicePath" in mount else MOUNTS
            path, at = (*view.main.path, part), clean_path(self.path_of(mount))
            held = ev.now(path) or []
            if part not in taken:
                taken[part] = {
                    clean_path(self.path_of(each)) for each in held if isinstance(each, dict)
                }
            if at not in taken[part]:
                taken[part].add(at)
                index = len(held)
                ev.append(path, mount)
                ev.note_item(row, (*path, index), mount, "kept", None)

    def add_mount(
        self,
        view: PodView,
        ev: Evaluation,
        new: Addition,
        volume: str,
    ) -> None:
        """Mount a volume that is there on the main container, which does not have it."""
        mount = self.mount_body(volume, new.attributes)
        if self.path_of(mount) and not self.mount_clashes(view, ev, new.row, new.item, mount):
            self.mount(view, ev, new.row, mount, new.item, new.why)

    def mend(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        native: NativeItem,
        why: str,
    ) -> None:
        """Restore what an existing item has lost. A volume alone loses nothing."""

    def mount(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        mount: dict[str, Any],
        item: EffectiveItem,
        why: str,
    ) -> None:
        """Append one mount on the main container, unless it is there."""
        if view.main is None:
            return
        path = (*view.main.path, DEVICES if "devicePath" in mount else MOUNTS)
        held = ev.now(path) or []
        there = self.mounts_at(ev, path, held, self.path_of(mount))
        if not any(held[index] == mount for index in there) and ev.can_write(path):
            index = len(held)
            ev.append(path, mount)
            ev.note_item(row, (*path, index), mount, why, item.source)

    def clashes(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        mount: Mapping[str, Any],
    ) -> bool:
        """Return whether a volume of that name, or a mount at that path, exists, and report it."""
        path = (*view.spec_path, "volumes")
        for index in self.volumes_named(ev, path, ev.now(path) or [], mount["name"]):
            place = (*path, index, "name")
            return self.refuse_clash(ev, row, item, place, f"volume {mount['name']}")
        return bool(self.path_of(mount)) and self.mount_clashes(view, ev, row, item, mount)

    def mount_clashes(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        ours: Mapping[str, Any],
    ) -> bool:
        """Return whether the main container has something else at that path, and report it.

        An update that sends only the list of volumes drops a volume and keeps its mount.
        """
        if view.main is None:
            return False
        path, mount_path = (*view.main.path, MOUNTS), self.path_of(ours)
        held = ev.now(path) or []
        for index in self.mounts_at(ev, path, held, mount_path):
            mount = held[index]
            if mount != ours:
                place = (*path, index, "mountPath")
                other = f"volume {mount.get('name')} at {mount_path}"
                return self.refuse_clash(ev, row, item, place, other)
        return False

    def volumes_named(self, ev: Evaluation, path: Path, held: list[Any], name: Any) -> list[int]:
        """Return where volumes of that name are in the copy's list."""
        found = ev.once(("named", path), lambda: Growing(lambda each: frozen(each.get("name"))))
        return found.at(held, frozen(name))

    def mounts_at(self, ev: Evaluation, path: Path, held: list[Any], at: str) -> list[int]:
        """Return where mounts, or devices, at that path are in the copy's list."""
        key = "devicePath" if path[-1] == DEVICES else "mountPath"
        found = ev.once(("mounted", path), lambda: Growing(lambda each: clean_path(each.get(key))))
        return found.at(held, clean_path(at))

    def refuse_clash(
        self, ev: Evaluation, row: Field, item: EffectiveItem, path: Path, other: str
    ) -> bool:
        """Record a clash, naming both sides."""
        ev.violate(
            row.path,
            path,
            other,
            f"item {item.key}",
            None,
            reason="name-clash",
            source=item.source,
            key=item.key,
        )
        return True
