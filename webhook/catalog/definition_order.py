"""Definitions as somebody stated them, in the order in which several of one kind decide.

A shipped document comes before a given one, unless the settings name the kind; then the oldest;
then the first by name. Documents of files have no age and come before all that have one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from webhook.documents.source import SourceDocument
from webhook.interface.interface import Interface
from webhook.interface.profile import Profile

KindName = tuple[str, str]
V = TypeVar("V", Interface, Profile)
# What API servers write: in this form the order of texts is the order of times.
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True, eq=False)
class Stated(Generic[V]):
    """An interface or a profile with the document that states it; `shipped` ones are podgate's."""

    value: V
    document: SourceDocument
    shipped: bool = False

    @property
    def key(self) -> KindName:
        """Group and kind that it is of."""
        return self.value.group, self.value.kind

    @property
    def sort(self) -> str:
        """Which kind of document it is."""
        return str(self.document.data.get("kind"))

    @property
    def creation_time(self) -> str:
        """When the cluster got it; "" for a file."""
        metadata = self.document.data.get("metadata")
        time = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
        return time if isinstance(time, str) and TIME.fullmatch(time) else ""

    def rank(self, preferred: Collection[KindName]) -> tuple[Any, ...]:
        """What documents of one kind are ordered by; `preferred` kinds are those of the settings."""
        first = self.shipped != (self.key in preferred)
        source = (self.document.origin, self.document.index)
        return (not first, self.creation_time, self.value.name, self.sort, source)


Document = Stated[Interface] | Stated[Profile]


def kind_name(text: str) -> KindName:
    """Group and kind of KIND.GROUP; the core group is absent or `core`."""
    kind, _, group = text.partition(".")
    return ("" if group == "core" else group), kind


def full_name(key: KindName) -> str:
    """KIND.GROUP, or the kind alone in the core group."""
    group, kind = key
    return f"{kind}.{group}" if group else kind
