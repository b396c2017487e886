"""The members of a policy's spec besides its body: its scope, and how it is enforced.

The parser, the CRDs, the JSON Schema and docs/documents.md are generated from these classes. The
text under a member is its description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from webhook.documents.model import DocumentPart, WrittenAs
from webhook.policy.row import WorkloadType

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
ADDRESS = "^(https?://.*)?$"


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: labels must meet every requirement (key, operator, values)."""

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels match, with the semantics of Kubernetes."""
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
class Expression(DocumentPart):
    """One requirement of a label selector."""

    key: Annotated[str, Field(min_length=1)]
    """The label."""
    operator: Operator
    """How the label's value is compared."""
    values: tuple[str, ...] = ()
    """The values. Only In and NotIn have values."""


@dataclass(frozen=True, slots=True)
class LabelSelector(DocumentPart):
    """A selector of namespaces by their labels. All requirements must be met."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that must have these values."""
    match_expressions: tuple[Expression, ...] = ()
    """Requirements on single labels."""


@dataclass(frozen=True, slots=True)
class PolicyKind(DocumentPart):
    """A group and kind."""

    kind: Annotated[str, Field(min_length=1)]
    """The kind of the objects."""
    group: str = ""
    """API group; absent: the core group."""


def pairs(kinds: list[PolicyKind]) -> frozenset[tuple[str, str]]:
    """Kinds as pairs of group and kind."""
    return frozenset((each.group, each.kind) for each in kinds)


def requirements(selector: LabelSelector) -> Selector | None:
    """Convert to a Selector, whose requirements have one form. An empty selector returns None."""
    labels = {(key, "In", (value,)) for key, value in selector.match_labels.items()}
    others = ((e.key, e.operator, tuple(sorted({*e.values}))) for e in selector.match_expressions)
    found = tuple(sorted(labels.union(others)))
    return Selector(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec(DocumentPart):
    """The members that both kinds of policy have besides their body."""

    exclude_namespaces: Annotated[frozenset[str], WrittenAs(list[str], frozenset)] = frozenset()
    """Names of namespaces that the policy does not apply to."""
    workload_types: Annotated[
        frozenset[str] | None,
        WrittenAs(Annotated[list[WorkloadType], Field(min_length=1)], frozenset),
    ] = None
    """The workload types that the policy applies to; absent: all kinds."""
    kinds: Annotated[
        frozenset[tuple[str, str]] | None,
        WrittenAs(Annotated[list[PolicyKind], Field(min_length=1)], pairs),
    ] = None
    """The kinds that the policy applies to, instead of workloadTypes."""
    enforcement: Literal["Enforce", "Warn", "Audit"] = "Enforce"
    """With Warn and Audit, podgate neither rejects nor changes objects."""
    existing: Literal["tolerate", "strict"] = "tolerate"
    """tolerate: values that an update does not change are accepted. strict: they are evaluated too."""
    containers: Literal["all", "main"] = "all"
    """The containers that prohibitions apply to."""
    message: str = ""
    """A text that is shown with every violation of this policy."""
    docs_url: Annotated[str, Field(alias="docsURL", pattern=ADDRESS)] = ""
    """A link that is shown with every violation of this policy."""

    @property
    def tolerates_existing(self) -> bool:
        """Whether values that an update does not change are accepted without evaluation."""
        return self.existing == "tolerate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicySpec(PolicySpec):
    """The members that a cluster policy has besides its body."""

    scope: Literal["cluster", "system", "tenant", "department"] = "cluster"
    """The scope; absent: cluster. From the broadest: system, tenant, cluster, department."""
    namespace_selector: Annotated[Selector | None, WrittenAs(LabelSelector, requirements)] = None
    """The namespaces that the policy applies to, by their labels."""
