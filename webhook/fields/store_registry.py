"""TABLE of stores: for each itemized field that lives in pods, what reads and writes its items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.fields.extended_resources import ExtendedStore
from webhook.fields.storage.buckets import BucketStore
from webhook.fields.storage.claims import ClaimStore
from webhook.fields.storage.config_files import FileStore
from webhook.fields.storage.data_volumes import DataVolumeStore
from webhook.fields.storage.git import GitStore
from webhook.fields.storage.scratch import ScratchStore
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.annotations import AnnotationStore, label_store
from webhook.fields.stores.environment import EnvironmentStore, Store, TolerationStore
from webhook.fields.stores.ports import PortStore
from webhook.pods.definition import Definition
from webhook.policy.row import Field, Items


def volume_store(row: Field, make: Callable[[Items], VolumeStore] = VolumeStore) -> VolumeStore:
    """The store of the volumes of one source type."""
    assert row.items is not None
    return make(row.items)


def storage(
    make: Callable[[Items, Vocabulary], Store],
) -> Callable[[Field, Definition, Vocabulary], Store]:
    """A store of storage items that the words of the installation decide on."""

    def made(row: Field, definition: Definition, words: Vocabulary) -> Store:
        assert row.items is not None
        return make(row.items, words)

    return made


def serving_components(definition: Definition) -> frozenset[str]:
    """The components whose main containers have the port of the service."""
    held = definition.profile.fields.values()
    return frozenset(component for each in held for component in each.main_port)


TABLE: dict[str, Callable[[Field, Definition, Vocabulary], Store]] = {
    "environment": lambda row, definition, words: EnvironmentStore(),
    "labels": lambda row, definition, words: label_store(definition, words),
    "annotations": lambda row, definition, words: AnnotationStore(definition, words),
    "tolerations": lambda row, definition, words: TolerationStore(),
    "ports": lambda row, definition, words: PortStore(serving_components(definition)),
    "extended-resources": lambda row, definition, words: ExtendedStore(words),
    "configMap": lambda row, definition, words: volume_store(row, FileStore),
    "secret": lambda row, definition, words: volume_store(row, FileStore),
    "emptyDir": storage(ScratchStore),
    "pvc": storage(ClaimStore),
    "git": storage(GitStore),
    "s3": storage(BucketStore),
    "data-volume": storage(DataVolumeStore),
}


def store_of(row: Field, definition: Definition, words: Vocabulary) -> Any:
    """The store of an itemized field; volumes of a plain source need no row here."""
    assert row.items is not None
    make = TABLE.get(row.items.store)
    return volume_store(row) if make is None else make(row, definition, words)
