"""TABLE of stores: for each itemized field that lives in pods, what reads and writes its items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.annotations import AnnotationStore
from webhook.core.workload.bindings.buckets import BucketStore
from webhook.core.workload.bindings.claims import ClaimStore
from webhook.core.workload.bindings.data_volumes import DataVolumeStore
from webhook.core.workload.bindings.extended import ExtendedStore
from webhook.core.workload.bindings.git import GitStore
from webhook.core.workload.bindings.ports import PortStore
from webhook.core.workload.bindings.stores import (
    EnvironmentStore,
    LabelStore,
    Store,
    TolerationStore,
)
from webhook.core.workload.bindings.volumes import VolumeStore
from webhook.core.workload.locations import Definition
from webhook.core.workload.vocabulary import Vocabulary


def volume_store(row: Field) -> VolumeStore:
    """The store of the volumes of one source type."""
    assert row.items is not None
    return VolumeStore(
        row.items.store,
        tuple(
            (
                each.name,
                (each.at[0], each.at[1]),
                each.absent if isinstance(each.absent, bool | str) else None,
            )
            for each in row.items.attributes
            if len(each.at) == 2
        ),
    )


TABLE: dict[str, Callable[[Field, Definition, Vocabulary], Store]] = {
    "environment": lambda row, definition, words: EnvironmentStore(),
    "labels": lambda row, definition, words: LabelStore(),
    "annotations": lambda row, definition, words: AnnotationStore(words),
    "tolerations": lambda row, definition, words: TolerationStore(),
    "ports": lambda row, definition, words: PortStore(),
    "extended-resources": lambda row, definition, words: ExtendedStore(words),
    "pvc": lambda row, definition, words: ClaimStore(definition),
    "git": lambda row, definition, words: GitStore(words),
    "s3": lambda row, definition, words: BucketStore(words),
    "data-volume": lambda row, definition, words: DataVolumeStore(words),
}


def store_of(row: Field, definition: Definition, words: Vocabulary) -> Any:
    """The store of an itemized field; volumes of a plain source need no row here."""
    assert row.items is not None
    make = TABLE.get(row.items.store)
    return volume_store(row) if make is None else make(row, definition, words)
