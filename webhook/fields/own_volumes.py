"""Finds volumes that a policy itself adds to pods: its rules on volume types do not apply to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource
from webhook.fields.items.difference import difference
from webhook.fields.items.field import ItemsField
from webhook.fields.storage.git import NUMBERED, SCRATCH, GitStore
from webhook.fields.storage.home_directory import HomeField, MountedField, SharedMemoryField
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store_registry import items_field
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import HOME, SHARED_MEMORY, Field
from webhook.policy.table import TABLE


class OwnVolumes:
    """The defaults of one component that make volumes: directories, and items of storage."""

    __slots__ = ("directories", "items")

    def __init__(
        self, directories: Iterable[MountedField] = (), items: Iterable[ItemsField] = ()
    ) -> None:
        self.directories = [
            each
            for each in directories
            if each.rules.default is not None and each.rules.default.value
        ]
        self.items = [each for each in items if each.items]

    def reader(self, view: PodView, ev: Evaluation) -> OwnVolumesOf:
        """Identifies the volumes of one pod. Its items are read once."""
        return OwnVolumesOf(self, view, ev)


class OwnVolumesOf:
    """The volumes of one pod from default items: by path, for checkouts by name."""

    __slots__ = ("directories", "names", "places")

    def __init__(self, own: OwnVolumes, view: PodView, ev: Evaluation) -> None:
        self.directories = [each.volume for each in own.directories]
        self.places: set[Path] = set()
        self.names: set[str] = set()
        for field in own.items:
            store = field.store
            assert isinstance(store, VolumeStore)
            for native in store.read(view):
                if not any(not difference(field, each, native, ev) for each in field.find(native)):
                    continue
                self.places.add(native.path)
                if isinstance(store, GitStore):
                    self.names.add(store.volume_of(view, native))

    def has(self, volume: dict[str, Any], path: Path) -> bool:
        """Return whether a volume is one of these, by its whole content."""
        if path in self.places or volume in self.directories:
            return True
        name = volume.get("name")
        if name.__class__ is not str or name not in self.names:
            return False
        return volume == {"name": name, SCRATCH: {}} and NUMBERED.fullmatch(name) is not None


DIRECTORIES: dict[str, Callable[[Field, Leaf], MountedField]] = {
    HOME: HomeField,
    SHARED_MEMORY: SharedMemoryField,
}


def own_volumes(source: FieldSource) -> OwnVolumes:
    """Return the defaults of the same policies that add volumes."""
    named = [source.of(path) for path in source.effective if path in TABLE.fields]
    return OwnVolumes(
        [
            DIRECTORIES[each.row.shape](each.row, each.leaf)
            for each in named
            if each.row.shape in DIRECTORIES
        ],
        [
            items_field(each)
            for each in named
            if each.leaf.items and each.row.path.startswith("storage.")
        ],
    )
