"""Annotations of the pod as items, but for those that other fields live in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.evaluation.installation import InstallationConfig
from webhook.fields.gpu.annotations import is_gpu_annotation
from webhook.fields.store import NativeItem
from webhook.fields.stores.environment import LabelStore
from webhook.pods.definition import Definition
from webhook.pods.pod_view import MAIN_ANNOTATIONS

PLACE: Final = re.compile(r'\.metadata\.(labels|annotations)(?:\["([^"\\]+)"\]|\.(\w+))')
PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"


def keys_of_fields(definition: Definition, part: str) -> Iterator[str]:
    """Return the labels or annotations that the kind's profile uses for other fields."""
    profile = definition.profile
    programs = [*profile.priority_class.second_places]
    for held in profile.fields.values():
        programs += (*held.places, *held.write)
    for program in programs:
        for where, quoted, plain in PLACE.findall(program.text):
            if where == part:
                yield quoted or plain


def label_store(definition: Definition, config: InstallationConfig) -> LabelStore:
    """The store of a kind's labels."""
    others = {PREEMPTIBILITY, *config.node_pool_labels, *keys_of_fields(definition, "labels")}
    return LabelStore(frozenset(others))


class AnnotationStore(LabelStore):
    """Annotations of the pod's metadata, by key."""

    part = "annotations"

    def __init__(self, definition: Definition, config: InstallationConfig) -> None:
        others = {*MAIN_ANNOTATIONS, *keys_of_fields(definition, "annotations")}
        super().__init__(frozenset({*others, config.node_pools_annotation}))

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """GPU fields have their own annotations, which the pods of any kind can carry."""
        return is_gpu_annotation(item.key) or super().belongs_elsewhere(item)
