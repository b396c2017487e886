"""ConfigMaps and Secrets as files: volumes of their own, and sources of projected volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import Unreadable
from webhook.fields.storage.mounts import Mount
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView, mapping, sequence
from webhook.policy.row import Field

PROJECTED = "projected"
ALTERING = ("items", "optional")
"""Parts of a source that no policy item has: chosen keys, and whether it may be missing."""


def numeric(mode: Any) -> Any:
    """Return a mode unchanged, Unreadable if it is a text."""
    return (
        Unreadable(mode, "a number without quotes such as 420") if isinstance(mode, str) else mode
    )


class FileStore(VolumeStore):
    """Volumes of one ConfigMap or Secret; projected ones are read, and never written."""

    server_filled = frozenset({"defaultMode"})

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is of this type, or projects a source of it."""
        return super().holds(volume) or volume.get(PROJECTED) is not None

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """One item of a volume of its own, one for every matching source of a projected one."""
        if super().holds(volume):
            item = self.item(view, volume, path, mounts, self.read_attributes(volume, path))
            return [self.check_item(item, mapping(volume[self.source], path))]
        where = (*path, PROJECTED, "sources")
        projected = mapping(volume[PROJECTED], where[:-1])
        found = []
        for index, entry in enumerate(sequence(projected.get("sources"), where)):
            source = mapping(entry, (*where, index)).get(self.source)
            if source is not None:
                at = (*where, index, self.source)
                body = mapping(source, at)
                stated = self.read_projected(body, at, projected)
                item = self.item(view, volume, path, mounts, stated)
                found.append(self.check_item(self.unwritten(item, mounts, at), body))
        return found

    def read_attributes(self, volume: dict[str, Any], path: Path) -> Stated:
        """Return the attributes in the volume's source. Kubernetes takes only numbers for a mode."""
        stated = super().read_attributes(volume, path)
        raw, at = stated["defaultMode"]
        stated["defaultMode"] = (numeric(raw), at)
        return stated

    def read_projected(self, source: dict[str, Any], at: Path, volume: dict[str, Any]) -> Stated:
        """Return the attributes in one source of a projected volume. The mode is the whole volume's."""
        key = "configMap" if self.source == "configMap" else "secret"
        return {
            key: (source.get("name"), (*at, "name")),
            "defaultMode": (numeric(volume.get("defaultMode")), ()),
        }

    def unwritten(self, item: NativeItem, mounts: Sequence[Mount], at: Path) -> NativeItem:
        """Return the item without the paths that a default could be written to."""
        item.path = at
        item.at["subPath"] = tuple(
            (*path, "subPath") for _, path, body in mounts if "subPath" in body
        )
        return item

    def check_item(self, item: NativeItem, source: Mapping[str, Any]) -> NativeItem:
        """The item, marked where parts of its source change what it means."""
        altered = next((key for key in ALTERING if source.get(key)), "")
        item.tampered = item.tampered or altered
        return item

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old volume again, unless it is a projected one."""
        if not super().holds(item.raw[0]):
            return False
        return super().restore(view, ev, row, item)
