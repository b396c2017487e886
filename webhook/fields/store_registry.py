"""Lists the stores: for each field with items in pods, the class that reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.fields.extended_resources import ExtendedStore
from webhook.fields.handler import MAIN, FieldSource, PodHandler
from webhook.fields.items.field import ItemsField
from webhook.fields.storage.buckets import BucketStore
from webhook.fields.storage.claims import ClaimStore
from webhook.fields.storage.config_files import FileStore
from webhook.fields.storage.data_volumes import DataVolumeStore
from webhook.fields.storage.git import GitStore
from webhook.fields.storage.scratch import ScratchStore
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import Store
from webhook.fields.stores.annotations import AnnotationStore, label_store
from webhook.fields.stores.environment import EnvironmentStore, TolerationStore
from webhook.fields.stores.ports import PortStore
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.policy.row import ITEMS, Field, Items


def volume_store(row: Field, make: Callable[[Items], VolumeStore] = VolumeStore) -> VolumeStore:
    """Return the store of the volumes of one source type."""
    assert row.items is not None
    return make(row.items)


def storage(
    make: Callable[[Items, InstallationConfig], Store],
) -> Callable[[Field, Definition, InstallationConfig], Store]:
    """Return a store of storage items that depends on settings."""

    def made(row: Field, definition: Definition, config: InstallationConfig) -> Store:
        assert row.items is not None
        return make(row.items, config)

    return made


def serving_components(definition: Definition) -> frozenset[str]:
    """Return the components whose main containers have the port of the service."""
    held = definition.profile.fields.values()
    return frozenset(component for each in held for component in each.main_port)


TABLE: dict[str, Callable[[Field, Definition, InstallationConfig], Store]] = {
    "environment": lambda row, definition, config: EnvironmentStore(),
    "labels": lambda row, definition, config: label_store(definition, config),
    "annotations": lambda row, definition, config: AnnotationStore(definition, config),
    "tolerations": lambda row, definition, config: TolerationStore(),
    "ports": lambda row, definition, config: PortStore(serving_components(definition)),
    "extended-resources": lambda row, definition, config: ExtendedStore(config),
    "configMap": lambda row, definition, config: volume_store(row, FileStore),
    "secret": lambda row, definition, config: volume_store(row, FileStore),
    "emptyDir": storage(ScratchStore),
    "pvc": storage(ClaimStore),
    "git": storage(GitStore),
    "s3": storage(BucketStore),
    "data-volume": storage(DataVolumeStore),
}


STORED_AT: dict[str, Path] = {
    "annotations": ("metadata", "annotations"),
    "environment": (*MAIN, "env"),
    "extended-resources": (*MAIN, "resources"),
    "labels": ("metadata", "labels"),
    "ports": (*MAIN, "ports"),
    "tolerations": ("spec", "tolerations"),
}
"""Stores of items that are not volumes."""


def store_of(row: Field, definition: Definition, config: InstallationConfig) -> Any:
    """Return the store of a field. Volumes of a plain source need no row here."""
    assert row.items is not None
    make = TABLE.get(row.items.store)
    return volume_store(row) if make is None else make(row, definition, config)


def items_field(source: FieldSource) -> ItemsField:
    """The itemized field of a row, with the store that the row names."""
    store = store_of(source.row, source.definition, source.config)
    return ItemsField(source.row, source.leaf, source.attributes, store)


class ItemsHandler(PodHandler):
    """Lists of items in pods: variables, volumes, labels, tolerations and more."""

    name = ITEMS
    feeds_defaults = False

    def compile(self, source: FieldSource) -> ItemsField:
        """The field with the items and the attribute rules of one component."""
        return items_field(source)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Return the paths of the items in a pod template: volumes unless another path is listed."""
        assert row.items is not None
        return [STORED_AT.get(row.items.store, ("spec", "volumes"))]
