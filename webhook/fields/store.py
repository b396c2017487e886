"""The interface of stores: items in an object, and items to write."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from webhook.evaluation.state import Evaluation
from webhook.objects.lookup import frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field


@dataclass(slots=True)
class NativeItem:
    """One item in a pod: attribute values (several for mounts), its path, its raw form.

    `at` maps attributes to their paths. `in_main` says whether the main container has it. `owners`
    are the containers that have it, by list and name. `tampered` is a member that no policy item
    can have. `elsewhere` says that it belongs to another field. `unresolved` are attributes that
    this form of item does not show: no rule applies to them. `label` is shown instead of a secret
    key. Values of attributes with their own codec are comparable ones.
    """

    key: str
    values: dict[str, tuple[Any, ...]]
    path: Path
    raw: Any
    at: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    in_main: bool = True
    tampered: str = ""
    owners: tuple[tuple[str, str], ...] = ()
    elsewhere: bool = False
    unresolved: frozenset[str] = frozenset()
    label: str = ""

    @property
    def shown_key(self) -> str:
        """The key to show."""
        return self.label or self.key

    def like(self, other: NativeItem) -> bool:
        """Return whether another item is the same, in the same containers, in any order."""
        if self.key != other.key or len(self.owners) != len(other.owners):
            return False
        if len(self.owners) < 2:
            return self.owners == other.owners and bool(self.raw == other.raw)
        volume, *mounts = self.raw
        known, *others = other.raw
        return bool(volume == known) and in_order(self.owners, mounts) == in_order(
            other.owners, others
        )

    def content(self) -> Hashable:
        """Return what equal items have in common, for lookups."""
        if len(self.owners) < 2:
            return self.owners, frozen(self.raw)
        volume, *mounts = self.raw
        return frozen(volume), tuple(
            (owner, frozen(mount)) for owner, mount in in_order(self.owners, mounts)
        )

    def has(self, name: str, wanted: Any) -> bool:
        """Return whether one of the attribute's values is this one."""
        return wanted in self.values.get(name, ())


def in_order(owners: tuple[tuple[str, str], ...], mounts: list[Any]) -> list[Any]:
    """Return mounts by container, in the order of each container."""
    return sorted(zip(owners, mounts, strict=True), key=lambda each: each[0])


@dataclass(frozen=True, slots=True)
class Addition:
    """A policy's item to write: its row, its attributes, and why."""

    row: Field
    item: EffectiveItem
    attributes: Mapping[str, Default]
    why: str


class Store(Protocol):
    """Reads and writes the items of one field."""

    def read(self, view: PodView) -> list[NativeItem]:
        """Every item of the pod, in order."""

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Write one new item into the copy."""

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Write an item of the old object again. Return False if that is not possible."""

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return whether the item belongs to another field, so that it is no addition here."""


def values_of(attributes: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Attributes as one-element tuples, absent ones left out."""
    return {name: (value,) for name, value in attributes.items() if value is not None}
