"""A policy after parsing: canonical names and comparable values, nothing of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, get_args

from webhook.documents.problem import Check, Problem, Source
from webhook.objects.path import Path
from webhook.policy.policy_spec import PolicySpec, Selector

Scope = Literal["system", "tenant", "cluster", "department", "project"]
SCOPES: tuple[str, ...] = get_args(Scope)
ROLES = ("master", "worker", "leader")
COMPONENTS = "components"
EVERYWHERE = ""
"""The level of a leaf outside master, worker, leader and components.<name>."""

Entry = tuple[str, str, str, str]
"""An entry of a policy: kind (default, item, rule, ...), level, leaf, item key or rule name."""


def role_level(role: str) -> str:
    """Return the level of a leaf below `master:`, `worker:` or `leader:`."""
    return f"role:{role}"


def component_level(name: str) -> str:
    """Return the level of a leaf below `components.<name>:`."""
    return f"component:{name}"


def level_path(level: str) -> Path:
    """Return the path of a level below defaults and rules."""
    kind, _, name = level.partition(":")
    if level == EVERYWHERE:
        return ()
    return (name,) if kind == "role" else (COMPONENTS, name)


@dataclass(frozen=True, slots=True)
class Default:
    """A default value: `value` is comparable, `raw` keeps the author's notation."""

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

    An `excluded` item only removes the item with the same key of broader scopes.
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
class Policy(PolicySpec):
    """One accepted policy document. `positions` has path, line and column of each entry."""

    name: str
    scope: str
    body: Body
    namespace: str = ""
    namespace_selector: Selector | None = None
    created: str = ""
    origin: str = ""
    digest: str = ""
    positions: Mapping[Entry, tuple[str, int, int]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def source(self) -> Source:
        """Return the source of decisions by this policy."""
        return Source(
            self.name, self.scope, self.namespace, self.enforcement, self.message, self.docs_url
        )

    def position_of(self, entry: Entry) -> tuple[str, int, int]:
        """Return path, line and column of an entry at its level or, if absent there, EVERYWHERE."""
        kind, level, leaf, word = entry
        for each in (level, EVERYWHERE):
            if (kind, each, leaf, word) in self.positions:
                return self.positions[kind, each, leaf, word]
        return (leaf, 0, 0)

    def problem(
        self,
        check: Check[Any],
        entry: Entry,
        found: str,
        fix: str,
        reason: str = "",
        severity: str = "",
    ) -> Problem:
        """Return a check's problem at an entry, by default with its first id and its severity."""
        reason = reason or next(iter(check.ids))
        assert reason in check.ids, reason
        path, line, column = self.position_of(entry)
        severity = severity or check.severity
        return Problem(self.origin, path, found, fix, reason, line, column, severity)

    def governs_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the policy applies to objects of this namespace, "" for those without one."""
        if self.namespace and self.namespace != name:
            return False
        if name in self.exclude_namespaces:
            return False
        selector = self.namespace_selector
        return selector is None or (bool(name) and selector.matches(labels))

    def governs_kind(self, group: str, kind: str, workload_type: str) -> bool:
        """Whether the policy applies to this kind, with this workload type ("" for none)."""
        if self.kinds is not None:
            return (group, kind) in self.kinds
        return self.workload_types is None or workload_type in self.workload_types


@dataclass(frozen=True, slots=True)
class Asset:
    """A data source that policies can impose. It becomes a locked item of `field`."""

    id: str
    name: str
    kind: str
    field: str
    scope: str
    attributes: Mapping[str, Default]
    credential: bool = False
    origin: str = ""
