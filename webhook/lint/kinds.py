"""What advice looks at: policies, and the kinds that they govern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.objects.path import Path
from webhook.policy.combine import GUARDED
from webhook.policy.policy import Asset, Policy
from webhook.policy.report import Report
from webhook.policy.row import SERVING_PORT, WORKLOAD, Binding, Field

Identity = tuple[str, str, str]
Unit = tuple["Kind", str, str]
"""A kind, one of its components, and a role that this component has."""


@dataclass(frozen=True)
class Kind:
    """What policies need to know of a kind that has a definition."""

    group: str
    name: str
    workload_type: str = ""
    fields: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    components: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def label(self) -> str:
        """Kind.group, as kubectl takes it."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def carries(self, row: Field) -> bool:
        """Whether a workload of this kind has a place for the field."""
        if row.path in self.forbidden or row.binding is Binding.NOTHING:
            return False
        return row.shape not in (WORKLOAD, SERVING_PORT) or row.path in self.fields

    def units(self) -> list[Unit]:
        """Its components with their roles."""
        pairs = [(name, role) for name, roles in self.components for role in roles]
        return [(self, name, role) for name, role in pairs or [("", "worker")]]


@dataclass(frozen=True)
class World:
    """All that is looked at: every policy, those to advise on, and what they meet."""

    policies: Sequence[Policy]
    own: Sequence[Policy]
    kinds: Sequence[Kind]
    assets: Mapping[str, Asset] = field(default_factory=dict)
    sources: Mapping[Identity, SourceDocument] = field(default_factory=dict)
    combination: str = GUARDED

    def governed(self, policy: Policy) -> list[Kind]:
        """The kinds in reach of a policy."""
        return [k for k in self.kinds if policy.governs_kind(k.group, k.name, k.workload_type)]

    def at_envelope(self, policy: Policy, path: Path, reason: str, found: str, fix: str) -> Problem:
        """A warning at a place outside the body."""
        document = self.sources.get(identity(policy))
        if document is None:
            return Problem(policy.origin, "", found, fix, reason, severity="warning")
        report = Report(document)
        report.warn(path, reason, found, fix)
        return report.problems[0]


def identity(policy: Policy) -> Identity:
    """What tells policies and their documents apart."""
    return (policy.origin, policy.name, policy.namespace)
