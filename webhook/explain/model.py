"""The parts of an explanation: leaves of policies, values of objects, and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.documents.problem import Source
from webhook.evaluation.outcome import Violation, Warning
from webhook.fields.handler import MAPPED
from webhook.objects.path import Path

FORBIDDEN, NOT_NATIVE = "forbidden", "not-native"
"""Why a kind cannot have a leaf, besides `unmapped`: it refuses the leaf, or no object has it."""
REQUEST, SERVER, UNSET = "request", "server default", "unset"
DEFAULT, DEFAULT_FROM = "default", "defaultFrom"
DEFAULT_ITEM, ATTRIBUTE_DEFAULT, IMPOSED, KEPT = (
    "default item",
    "attribute default",
    "imposed",
    "kept",
)
ENFORCE: Final = "Enforce"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a policy: `default` or a rule, the value, and the source."""

    what: str
    value: Any
    source: Source


@dataclass(frozen=True, slots=True)
class ItemSetting:
    """One default or imposed item. Attribute values are None if they are never shown."""

    key: str
    attributes: Mapping[str, Any]
    source: Source
    imposed: bool = False
    asset: str = ""
    locked: bool = False


@dataclass(frozen=True, slots=True)
class LostSetting:
    """A setting that is not in force: why, and the source that applies instead."""

    what: str
    value: Any
    source: Source
    reason: str
    to: Source | None


@dataclass(frozen=True, slots=True)
class LeafReport:
    """One leaf of the effective policy. `support` says whether the kind can have it, `why` the reason.

    For a mapped leaf, `why` may describe a limit.
    """

    field: str
    secret: bool
    support: str = MAPPED
    why: str = ""
    default: Setting | None = None
    rules: tuple[Setting, ...] = ()
    items: tuple[ItemSetting, ...] = ()
    lost: tuple[LostSetting, ...] = ()
    unenforced: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """The leaves of one component in one role. `pods` is the path of its pods."""

    component: str
    role: str
    pods: str
    leaves: tuple[LeafReport, ...]


@dataclass(frozen=True, slots=True)
class KindReport:
    """The effective policy of a kind in a namespace. `workload` are fields of the whole object."""

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
    """One attribute of an item: its value (None: never shown), path and source."""

    name: str
    value: Any
    path: Path
    source: str
    by: Source | None = None


@dataclass(slots=True)
class Entry:
    """One value of a field in the completed object: its path, its source, and its findings.

    `value` is ABSENT if nothing is set, and None if it is never shown. `key` names the container,
    item or instance, `item` the matching item of the policy. `derived` values are not literally at
    their path: they follow from other values, or have another notation there.
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
    """One field of a pod or of the workload: its values and the policies' settings."""

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
    """One object. `violations` and `warnings` are those without a reported field."""

    policies: tuple[Source, ...]
    pods: list[PodReport]
    workload: list[FieldReport]
    violations: list[Violation]
    warnings: list[Warning]
    audit: tuple[Violation, ...] = ()
