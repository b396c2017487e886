"""Storage items: one volume of a pod together with its mounts in all containers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from webhook.core.pointer import Path
from webhook.core.policy.combine import EffectiveItem
from webhook.core.policy.fields import Field
from webhook.core.policy.model import Default
from webhook.core.workload.bindings.stores import NativeItem
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import Container, PodView, mapping, sequence


def dns_label(name: str) -> str:
    """A policy item's name as a volume name: a DNS label of at most 63 characters."""
    label = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:63].strip("-")
    return label or "volume"


def mounts_of(view: PodView) -> dict[str, list[tuple[Container, Path, dict[str, Any]]]]:
    """Every mount of every container by volume name."""
    found: dict[str, list[tuple[Container, Path, dict[str, Any]]]] = {}
    for container in view.everyone:
        held = container.body.get("volumeMounts")
        if not held:
            continue
        path = (*container.path, "volumeMounts")
        for index, entry in enumerate(sequence(held, path)):
            body = mapping(entry, (*path, index))
            found.setdefault(str(body.get("name")), []).append((container, (*path, index), body))
    return found


def clean_path(path: Any) -> str:
    """A mount path as runtimes resolve it: absolute, without doubled slashes, `.` and `..`."""
    return posixpath.normpath(f"/{str(path).lstrip('/')}")


def covers(path: str, other: str) -> bool:
    """Whether one mount path lies at, above or below another."""
    one, two = clean_path(path).rstrip("/") + "/", clean_path(other).rstrip("/") + "/"
    return one.startswith(two) or two.startswith(one)


class VolumeStore:
    """Volumes of one source type, such as hostPath, joined with their mounts."""

    def __init__(
        self, source: str, attributes: tuple[tuple[str, tuple[str, ...], Any], ...]
    ) -> None:
        self.source = source
        self.attributes = attributes

    def read(self, view: PodView) -> list[NativeItem]:
        """Every volume of the type; an unmounted one is an item too."""
        path = (*view.spec_path, "volumes")
        volumes = sequence(view.spec.get("volumes"), path)
        if not volumes:
            return []
        mounts: dict[str, list[tuple[Container, Path, dict[str, Any]]]] | None = None
        found = []
        for index, entry in enumerate(volumes):
            place = (*path, index)
            body = mapping(entry, place)
            if body.get(self.source) is None:
                continue
            if mounts is None:
                mounts = mounts_of(view)
            found.append(self.item(view, body, place, mounts.get(str(body.get("name")), [])))
        return found

    def item(
        self,
        view: PodView,
        volume: dict[str, Any],
        place: Path,
        mounts: list[tuple[Container, Path, dict[str, Any]]],
    ) -> NativeItem:
        """One volume and its mounts as an item."""
        source = mapping(volume[self.source], (*place, self.source))
        values: dict[str, tuple[Any, ...]] = {}
        at: dict[str, tuple[Path, ...]] = {}
        for name, (where, native), absent in self.attributes:
            if where == "source":
                seen = source.get(native)
                values[name] = () if seen in (None, "") else (seen,)
                at[name] = ((*place, self.source, native),)
                continue
            seen_all = tuple(body.get(native, absent) for _, _, body in mounts)
            if where == "both" and source.get(native):
                seen_all = (True,)
            if where == "both" and not mounts:
                seen_all = (bool(source.get(native, absent)),)
            values[name] = tuple(each for each in seen_all if each is not None)
            at[name] = tuple((*path, native) for _, path, _ in mounts)
        values["name"] = (str(volume.get("name")),)
        at["name"] = ((*place, "name"),)
        in_main = any(container is view.main for container, _, _ in mounts)
        sub = any(body.get("subPath") or body.get("subPathExpr") for _, _, body in mounts)
        raw = [volume, *(body for _, _, body in mounts)]
        name = str(volume.get("name"))
        owners = tuple((container.list, container.name) for container, _, _ in mounts)
        tampered = "subPath" if sub else ""
        return NativeItem(name, values, place, raw, at, in_main, tampered, owners)

    def add(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
        why: str,
    ) -> None:
        """Append the volume, and its mount on the main container; a clash of names is refused."""
        name = dns_label(attributes["name"].value if "name" in attributes else item.key)
        mount_path = attributes["mountPath"].value if "mountPath" in attributes else ""
        if self.clashes(view, ev, row, item, name, mount_path):
            return
        path = (*view.spec_path, "volumes")
        if not ev.can_write(path):
            return
        source, mount = self.native(attributes)
        volume = {"name": name, self.source: source}
        index = len(ev.now(path) or [])
        ev.draft.append(path, volume)
        ev.note_item(row, (*path, index), volume, why, item.source)
        if mount_path:
            self.mount(view, ev, row, {"name": name, **mount}, item, why)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old volume, and the mounts that the main container had of it."""
        path = (*view.spec_path, "volumes")
        volumes = ev.now(path) or []
        if any(isinstance(each, dict) and each.get("name") == item.key for each in volumes):
            return False
        if ev.can_write(path):
            ev.draft.append(path, item.raw[0])
            ev.note_item(row, (*path, len(volumes)), item.raw[0], "kept", None)
            self.restore_mounts(view, ev, row, item)
        return True

    def restore_mounts(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> None:
        """Append the mounts that the main container had of an old volume, where nothing is now."""
        if view.main is None:
            return
        place = (*view.main.path, "volumeMounts")
        main = view.main.list, view.main.name
        for owner, mount in zip(item.owners, item.raw[1:], strict=True):
            held = ev.now(place) or []
            taken = {clean_path(each.get("mountPath")) for each in held if isinstance(each, dict)}
            if owner == main and clean_path(mount.get("mountPath")) not in taken:
                ev.draft.append(place, mount)
                ev.note_item(row, (*place, len(held)), mount, "kept", None)

    def add_mount(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
        why: str,
        volume: str,
    ) -> None:
        """Mount a volume that is there on the main container, which does not have it."""
        mount_path = attributes["mountPath"].value if "mountPath" in attributes else ""
        if mount_path and not self.mount_clashes(view, ev, row, item, volume, mount_path):
            _, mount = self.native(attributes)
            self.mount(view, ev, row, {"name": volume, **mount}, item, why)

    def native(self, attributes: Mapping[str, Default]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The volume source and the mount of an item."""
        source: dict[str, Any] = {}
        mount: dict[str, Any] = {}
        for name, (where, native), absent in self.attributes:
            if name not in attributes:
                continue
            value = attributes[name].value
            if where in ("source", "both") and (where == "source" or value != absent):
                source[native] = value
            if where in ("mount", "both") and (name == "mountPath" or value != absent):
                mount[native] = value
        return source, mount

    def mount(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        mount: dict[str, Any],
        item: EffectiveItem,
        why: str,
    ) -> None:
        """Append one mount on the main container."""
        if view.main is None:
            return
        path = (*view.main.path, "volumeMounts")
        if ev.can_write(path):
            index = len(ev.now(path) or [])
            ev.draft.append(path, mount)
            ev.note_item(row, (*path, index), mount, why, item.source)

    def clashes(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        name: str,
        mount_path: str,
    ) -> bool:
        """Whether a volume of that name, or a mount at that path, is there; then refused."""
        volumes = ev.now((*view.spec_path, "volumes")) or []
        for index, volume in enumerate(volumes):
            if isinstance(volume, dict) and volume.get("name") == name:
                path = (*view.spec_path, "volumes", index, "name")
                return self.refuse_clash(ev, row, item, path, f"volume {name}")
        return bool(mount_path) and self.mount_clashes(view, ev, row, item, name, mount_path)

    def mount_clashes(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        name: str,
        mount_path: str,
    ) -> bool:
        """Whether the main container has something at that path already; then refused."""
        if view.main is None:
            return False
        path = (*view.main.path, "volumeMounts")
        for index, mount in enumerate(ev.now(path) or []):
            if not isinstance(mount, dict):
                continue
            if clean_path(mount.get("mountPath")) == clean_path(mount_path):
                place = (*path, index, "mountPath")
                other = f"volume {mount.get('name')} at {mount_path}"
                return self.refuse_clash(ev, row, item, place, other)
        return False

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

    def shadows(self, view: PodView, native: NativeItem, mount_path: str) -> Path | None:
        """A mount of another volume at, above or below a locked mount path, in its container."""
        name = native.values["name"][0]
        for container in view.everyone:
            held = container.body.get("volumeMounts") or []
            if not any(isinstance(m, dict) and m.get("name") == name for m in held):
                continue
            for index, mount in enumerate(held):
                other = isinstance(mount, dict) and mount.get("name") != name
                if other and covers(mount.get("mountPath", ""), mount_path):
                    return (*container.path, "volumeMounts", index, "mountPath")
        return None

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """A volume is the item of one field only."""
        return False
