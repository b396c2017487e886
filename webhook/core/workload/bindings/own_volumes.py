"""Volumes that a policy itself brings into pods: its rules on kinds of volumes spare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.core.pointer import Path
from webhook.core.workload.bindings.git import NUMBERED, SCRATCH, GitStore
from webhook.core.workload.bindings.home import MountedField
from webhook.core.workload.bindings.item_difference import difference
from webhook.core.workload.bindings.items import ItemsField
from webhook.core.workload.bindings.volumes import VolumeStore
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import PodView


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

    def has(self, view: PodView, ev: Evaluation, volume: dict[str, Any], path: Path) -> bool:
        """Whether a volume of the pod is one of these, by its whole content."""
        if any(volume == each.volume for each in self.directories):
            return True
        return any(self.is_of(each, view, ev, volume, path) for each in self.items)

    def is_of(
        self, field: ItemsField, view: PodView, ev: Evaluation, volume: dict[str, Any], path: Path
    ) -> bool:
        """Whether a volume is that of a default item, or of the checkout that one is."""
        store = field.store
        assert isinstance(store, VolumeStore)
        is_scratch = volume == {"name": volume.get("name"), SCRATCH: {}}
        checkout = is_scratch and NUMBERED.fullmatch(str(volume.get("name"))) is not None
        for native in store.read(view):
            mine = native.path == path
            if not mine and checkout and isinstance(store, GitStore):
                mine = store.volume_of(view, native) == volume.get("name")
            if mine and any(self.agree(field, ev, native)):
                return True
        return False

    def agree(self, field: ItemsField, ev: Evaluation, native: Any) -> Iterator[bool]:
        """For each default item that this is, whether it is so in all."""
        for item in field.items:
            if field.same(item, native):
                yield not difference(field, item, native, ev)
