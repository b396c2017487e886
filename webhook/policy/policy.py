"""A policy as it is held after parsing: canonical names and comparable values, nothing of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from webhook.documents.problem import Source
from webhook.objects.path import Path

SCOPES = ("system", "tenant", "cluster", "department", "project")
ROLES = ("master", "worker", "leader")
COMPONENTS = "components"
EVERYWHERE = ""
"""The level of a leaf that stands outside master, worker, leader and components.<name>."""

Place = tuple[str, str, str, str]
"""What was said: kind (default, item, rule, ...), level, leaf, item key or rule name."""


def role_level(role: str) -> str:
    """The level of a leaf below `master:`, `worker:` or `leader:`."""
    return f"role:{role}"


def component_level(name: str) -> str:
    """The level of a leaf below `components.<name>:`."""
    return f"component:{name}"


def level_path(level: str) -> Path:
    """Where a level stands below defaults and rules."""
    kind, _, name = level.partition(":")
    if level == EVERYWHERE:
        return ()
    return (name,) if kind == "role" else (COMPONENTS, name)


@dataclass(frozen=True, slots=True)
class Default:
    """A default value: `value` comparable, `raw` as the author wrote it (it keeps notation)."""

    value: Any
    raw: Any


@dataclass(frozen=True, slots=True)
class DefaultFrom:
    """A default computed from another leaf: its canonical path and an exact factor."""

    field: str
    factor: Fraction


@dataclass(frozen=True, slots=True)
class DefaultItem:
    """One default or imposed item: attributes by canonical name, each comparable and raw.

    An `excluded` one is no item: it removes that of the same key of broader scopes.
    """

    key: str
    attributes: Mapping[str, Default]
    imposed: bool = False
    asset_id: str = ""
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """`defaults` and `rules` by level and leaf path; items by level and field path.

    A rules object maps rule names to comparable arguments: options and locked are frozensets of
    values and keys, step is `rules.Step`, defaultFrom is `DefaultFrom`.
    """

    defaults: Mapping[str, Mapping[str, Default]] = field(default_factory=dict)
    items: Mapping[str, Mapping[str, tuple[DefaultItem, ...]]] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    imposed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: every requirement (key, operator, values) must hold."""

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Kubernetes' meaning of matchLabels and matchExpressions."""
        for key, operator, wanted in self.requirements:
            if operator == "In" and labels.get(key) not in wanted:
                return False
            if operator == "NotIn" and key in labels and labels[key] in wanted:
                return False
            if operator == "Exists" and key not in labels:
                return False
            if operator == "DoesNotExist" and key in labels:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Policy:
    """One accepted policy document; `places` gives path, line and column of what it says."""

    name: str
    scope: str
    body: Body
    namespace: str = ""
    enforcement: str = "Enforce"
    tolerates_existing: bool = True
    containers: str = "all"
    message: str = ""
    docs_url: str = ""
    workload_types: frozenset[str] | None = None
    kinds: frozenset[tuple[str, str]] | None = None
    namespace_selector: Selector | None = None
    exclude_namespaces: frozenset[str] = frozenset()
    created: str = ""
    origin: str = ""
    digest: str = ""
    places: Mapping[Place, tuple[str, int, int]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def source(self) -> Source:
        """How decisions name this policy."""
        return Source(
            self.name, self.scope, self.namespace, self.enforcement, self.message, self.docs_url
        )

    def governs_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether objects of this namespace are in reach."""
        if self.namespace and self.namespace != name:
            return False
        if name in self.exclude_namespaces:
            return False
        return self.namespace_selector is None or self.namespace_selector.matches(labels)

    def governs_kind(self, group: str, kind: str, workload_type: str) -> bool:
        """Whether this kind, of this policy workload type ("" for none), is in reach."""
        if self.kinds is not None:
            return (group, kind) in self.kinds
        return self.workload_types is None or workload_type in self.workload_types


@dataclass(frozen=True, slots=True)
class Asset:
    """A data source that policies may impose: it becomes a locked item of `field`."""

    id: str
    name: str
    kind: str
    field: str
    scope: str
    attributes: Mapping[str, Default]
    credential: bool = False
    origin: str = ""
