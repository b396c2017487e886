"""Storage items: a volume of a pod together with its mounts in all containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.fields.items.attributes import comparable
from webhook.fields.storage.mounts import DEVICES, MOUNTS, Mount, covers, dns_label, mounts_of
from webhook.fields.storage.write import VolumeWriter
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView, mapping, sequence
from webhook.policy.row import Attribute
from webhook.policy.values import AMOUNT_TEXT

Stated = dict[str, tuple[Any, Path]]
"""Attributes in the volume itself: native value (None for none) and path."""

__all__ = ["VolumeStore", "dns_label"]


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, an empty one for other types."""
    return value if isinstance(value, list) else []


class VolumeStore(VolumeWriter):
    """Volumes of one source type, such as hostPath, with their mounts.

    `server_filled` are attributes whose meaning the API server writes if they are absent. `implied`
    are those whose absence follows from other values of the user.
    """

    server_filled: frozenset[str] = frozenset()
    implied: frozenset[str] = frozenset()

    def read(self, view: PodView) -> list[NativeItem]:
        """Return every volume of the type, including unmounted ones."""
        path = (*view.spec_path, "volumes")
        volumes = sequence(view.spec.get("volumes"), path)
        mounts: dict[str, list[Mount]] | None = None
        found: list[NativeItem] = []
        for index, entry in enumerate(volumes):
            body = entry if entry.__class__ is dict else mapping(entry, (*path, index))
            if not self.holds(body):
                continue
            place = (*path, index)
            if mounts is None:
                mounts = self.mounts(view)
            found += self.of_volume(view, body, place, mounts.get(str(body.get("name")), []))
        return found

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is of this type."""
        return volume.get(self.source) is not None

    def mounts(self, view: PodView) -> dict[str, list[Mount]]:
        """The mounts of all containers by volume name."""
        return mounts_of(view)

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """The items of one volume."""
        return [self.item(view, volume, path, mounts, self.read_attributes(volume, path))]

    def read_attributes(self, volume: dict[str, Any], path: Path) -> Stated:
        """Return the attributes in the volume's source."""
        where = (*path, self.source)
        source = mapping(volume[self.source], where)
        return {
            each.name: (source.get(each.at[1]), (*where, each.at[1]))
            for each in self.items.attributes
            if each.at and each.at[0] in ("source", "both")
        }

    def item(
        self,
        view: PodView,
        volume: dict[str, Any],
        place: Path,
        mounts: Sequence[Mount],
        stated: Stated,
    ) -> NativeItem:
        """One volume and its mounts as an item."""
        name = str(volume.get("name"))
        values: dict[str, tuple[Any, ...]] = {}
        at: dict[str, tuple[Path, ...]] = {}
        for each in self.items.attributes:
            if each.at and each.at[0] in ("mount", "both"):
                values[each.name] = self.of_mounts(each, mounts, stated)
                at[each.name] = tuple((*path, self.key_of(each, body)) for _, path, body in mounts)
            elif each.name in stated:
                raw, where = stated[each.name]
                unset = raw is None or (raw == "" and each.codec is not AMOUNT_TEXT)
                values[each.name] = () if unset else (comparable(each, raw),)
                at[each.name] = (where,) if where else ()
        values["name"] = (name,)
        at["name"] = ((*place, "name"),)
        return NativeItem(
            name,
            values,
            place,
            [volume, *(body for _, _, body in mounts)],
            at,
            any(container is view.main for container, _, _ in mounts),
            self.find_tampering(volume, mounts),
            tuple((container.list, container.name) for container, _, _ in mounts),
        )

    def key_of(self, attribute: Attribute, mount: Mapping[str, Any]) -> str:
        """Return the key of a mount for an attribute. Raw devices have another key for the path."""
        native = attribute.at[1]
        device = native == "mountPath" and "devicePath" in mount and native not in mount
        return "devicePath" if device else native

    def of_mounts(
        self, attribute: Attribute, mounts: Sequence[Mount], stated: Stated
    ) -> tuple[Any, ...]:
        """The values of an attribute that every mount has for itself."""
        source = stated.get(attribute.name, (None, ()))[0]
        if source:
            return (comparable(attribute, source),)
        absent = attribute.absent if isinstance(attribute.absent, bool | str) else None
        if attribute.at[0] == "both" and not mounts:
            return () if absent is None else (absent,)
        raws = (body.get(self.key_of(attribute, body), absent) for _, _, body in mounts)
        return tuple(comparable(attribute, raw) for raw in raws if raw is not None)

    def find_tampering(self, volume: Mapping[str, Any], mounts: Sequence[Mount]) -> str:
        """Return what changes the meaning of an item without being an attribute, "" for nothing."""
        keys = ["subPathExpr"] + ([] if self.items.attribute("subPath") else ["subPath"])
        found = any(body.get(key) for _, _, body in mounts for key in keys)
        return "subPath" if found else ""

    def volume_of(self, view: PodView, native: NativeItem) -> str:
        """The name of the volume that an item is mounted from."""
        return native.key

    def shadows(self, view: PodView, native: NativeItem, mount_path: str) -> Path | None:
        """Return a mount of another volume at, above or below a locked mount path in its container."""
        name = self.volume_of(view, native)
        for container in view.everyone:
            held = [
                (part, index, mount)
                for part in (MOUNTS, DEVICES)
                for index, mount in enumerate(as_list(container.body.get(part)))
                if isinstance(mount, dict)
            ]
            if not any(mount.get("name") == name for _, _, mount in held):
                continue
            for part, index, mount in held:
                if mount.get("name") != name and covers(self.path_of(mount), mount_path):
                    key = "mountPath" if part == MOUNTS else "devicePath"
                    return (*container.path, part, index, key)
        return None

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return False: a volume belongs to one field only."""
        return False
