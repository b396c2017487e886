"""The subjects of advice: policies, and the kinds that they apply to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.devices.kinds import KINDS
from webhook.documents.problem import Check, Problem
from webhook.documents.source import SourceDocument
from webhook.fields.devices import carriers
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
    """The properties of a kind with a definition that advice uses."""

    group: str
    name: str
    workload_type: str = ""
    fields: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    components: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def label(self) -> str:
        """Kind.group, as in kubectl."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def carries(self, row: Field) -> bool:
        """Whether an object of this kind can carry the field: a claim, or a workload with pods."""
        if (self.group, self.name) in KINDS:
            return carriers.carries(row, self.group, self.name)
        if row.path in self.forbidden or row.binding is Binding.NOTHING:
            return False
        if row.path in carriers.NOT_OF_PODS:
            return False
        return row.shape not in (WORKLOAD, SERVING_PORT) or row.path in self.fields

    def units(self) -> list[Unit]:
        """The components with their roles."""
        pairs = [(name, role) for name, roles in self.components for role in roles]
        return [(self, name, role) for name, role in pairs or [("", "worker")]]


@dataclass(frozen=True)
class LintContext:
    """Everything that advice uses: all policies, those to advise on, kinds, assets and sources."""

    policies: Sequence[Policy]
    own: Sequence[Policy]
    kinds: Sequence[Kind]
    assets: Mapping[str, Asset] = field(default_factory=dict)
    sources: Mapping[Identity, SourceDocument] = field(default_factory=dict)
    combination: str = GUARDED

    def kinds_in_scope(self, policy: Policy) -> list[Kind]:
        """Return the kinds that a policy applies to."""
        return [k for k in self.kinds if policy.governs_kind(k.group, k.name, k.workload_type)]

    def problem(
        self, check: Check[PolicyInContext], policy: Policy, path: Path, found: str, fix: str
    ) -> Problem:
        """Return a check's problem at a path outside the body."""
        document = self.sources.get(identity(policy))
        if document is None:
            reason = next(iter(check.ids))
            return Problem(policy.origin, "", found, fix, reason, severity=check.severity)
        return Report(document).found_by(check, path, found, fix)


class PolicyInContext(NamedTuple):
    """A policy to advise on, and everything else."""

    context: LintContext
    policy: Policy


def identity(policy: Policy) -> Identity:
    """Return what identifies a policy and its document."""
    return (policy.origin, policy.name, policy.namespace)
