"""What an explanation is made of: leaves of policies, values of objects, and who says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.documents.problem import Source
from webhook.evaluation.outcome import Violation, Warning
from webhook.objects.path import Path

MAPPED, UNMAPPED, FORBIDDEN, NOT_NATIVE = "mapped", "unmapped", "forbidden", "not-native"
"""Whether a kind can carry a leaf: it has a place, has none, refuses it, or no object has one."""
REQUEST, SERVER, UNSET, COMPUTED = "request", "server default", "unset", "computed"
DEFAULT, DEFAULT_FROM, KIND = "default", "defaultFrom", "kind"
DEFAULT_ITEM, ATTRIBUTE_DEFAULT, IMPOSED, KEPT = (
    "default item",
    "attribute default",
    "imposed",
    "kept",
)
ENFORCE: Final = "Enforce"


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a policy says: its word (`default`, a rule), the value, and who says it."""

    what: str
    value: Any
    source: Source


@dataclass(frozen=True, slots=True)
class ItemSaid:
    """One default or imposed item; attribute values are None where they are never shown."""

    key: str
    attributes: Mapping[str, Any]
    source: Source
    imposed: bool = False
    asset: str = ""
    locked: bool = False


@dataclass(frozen=True, slots=True)
class LostSaid:
    """Something that a policy says and that is not in force: why, and whose word stands instead."""

    what: str
    value: Any
    source: Source
    reason: str
    to: Source | None


@dataclass(frozen=True, slots=True)
class LeafReport:
    """One leaf of the effective policy; `reach`: whether the kind can carry it, `why`: what for.

    `why` may also say of a leaf that is mapped what limits it there.
    """

    field: str
    secret: bool
    reach: str = MAPPED
    why: str = ""
    default: Said | None = None
    rules: tuple[Said, ...] = ()
    items: tuple[ItemSaid, ...] = ()
    lost: tuple[LostSaid, ...] = ()
    trial: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """The leaves of one component in one role; `pods` is where the kind keeps its pods."""

    component: str
    role: str
    pods: str
    leaves: tuple[LeafReport, ...]


@dataclass(frozen=True, slots=True)
class KindReport:
    """The effective policy of a kind in a namespace; `workload` are fields of the whole object."""

    group: str
    version: str
    kind: str
    workload_type: str
    namespace: str
    combination: str
    policies: tuple[Source, ...]
    components: tuple[ComponentReport, ...]
    workload: tuple[LeafReport, ...]


@dataclass(slots=True)
class AttributeEntry:
    """One attribute of an item: its value (None: never shown), place and source."""

    name: str
    value: Any
    path: Path
    source: str
    by: Source | None = None


@dataclass(slots=True)
class Entry:
    """One value of a field in the completed object: its place, its source, and what is wrong.

    `value` is ABSENT where nothing is set and None where it is never shown; `key` names the
    container, item or instance, `item` the policy's item that it is. `derived` values are not
    literally at their place: they follow from what is there, or stand there in another notation.
    """

    path: Path
    value: Any
    source: str
    by: Source | None = None
    key: str = ""
    item: str = ""
    note: str = ""
    derived: bool = False
    attributes: list[AttributeEntry] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)


@dataclass(slots=True)
class FieldReport:
    """One field of a pod or of the workload: its values, and what the policies say of it."""

    field: str
    secret: bool
    leaves: tuple[LeafReport, ...]
    entries: list[Entry]


@dataclass(slots=True)
class PodReport:
    """One pod location with its fields."""

    component: str
    instance: str
    roles: tuple[str, ...]
    path: Path
    fields: list[FieldReport]


@dataclass(slots=True)
class ObjectReport:
    """One object; `violations` and `warnings` are those that belong to no field told here."""

    policies: tuple[Source, ...]
    pods: list[PodReport]
    workload: list[FieldReport]
    violations: list[Violation]
    warnings: list[Warning]
    audit: tuple[Violation, ...] = ()
