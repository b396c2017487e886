"""The outcome of a decision: allowed with changes, or denied with every violation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from webhook.documents.problem import Problem, Source
from webhook.objects.path import Path
from webhook.policy.rules import TABLE as RULES
from webhook.policy.rules.rule_type import RuleType


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: field, path, value found, what is allowed, rule, stable reason, source.

    `value` and `allowed` are texts for messages. For secret fields they contain no value.
    `identity` identifies an item independently of its name: the path of a host path, the claim of a
    volume.
    """

    field: str
    path: Path
    value: str | None
    allowed: str | None
    rule: str
    reason: str
    source: Source | None
    key: str = ""
    fix: str = ""
    identity: str = ""

    @property
    def rule_type(self) -> RuleType | None:
        """The broken rule. None if no policy's rule is broken, and `rule` is the reason."""
        return RULES.get(self.rule)


class Excuser(Protocol):
    """An exception that excuses violations of one object."""

    @property
    def name(self) -> str:
        """The name of the exception."""

    def covers(self, violation: Violation) -> bool:
        """Return whether it excuses a violation."""


class Excused(NamedTuple):
    """A violation that an exception excuses, and the name of that exception."""

    violation: Violation
    exception: str


class Warning(NamedTuple):  # noqa: A001 - Kubernetes' own word for what a response carries beside the verdict
    """A fact that the user should know, but that denies nothing. `reason` is stable, facts are texts.

    `would_be` is the violation that a policy in warn or audit mode would report. A tuple for the
    same reason as Change.
    """

    reason: str
    field: str
    path: Path
    facts: tuple[str, ...] = ()
    source: Source | None = None
    would_be: Violation | None = None


class Change(NamedTuple):
    """One value that the decision wrote, and why: default, default item, imposed asset, ...

    A tuple, because many are made per request and a frozen dataclass costs four times as much.
    """

    field: str
    path: Path
    value: Any
    why: str
    source: Source | None
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """The object may pass, with `patch` (RFC 6902) leading from the request's object to `object`.

    `unresolved` are claims (kind, namespace, name) that the decision looked up and that are
    unknown. They might change the decision. `not_evaluated` is the reason why no policy was
    evaluated, "" if the policies allow the object.
    """

    object: Any
    patch: tuple[dict[str, Any], ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[Warning, ...] = ()
    audit: tuple[Violation, ...] = ()
    not_evaluated: str = ""
    excused: tuple[Excused, ...] = ()
    unresolved: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def is_evaluated(self) -> bool:
        """Whether policies were evaluated for the object."""
        return not self.not_evaluated


class OwnerReference(NamedTuple):
    """The object that controls another, in the same namespace."""

    api_version: str
    kind: str
    name: str
    uid: str


class NeededObject(NamedTuple):
    """An object that a decision depends on: its path in the API, and its UID ("" for any)."""

    path: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """The object may not pass. Contains every violation, sorted by path.

    `report_to` is the workload whose author gets an event, if a controller made the refused object.
    It is set only for requests of controllers, because others could name any owner. `completed`
    means that the mutating pass has allowed the object before this pass refuses it. `unresolved` is
    as in Allowed. `needs` is an object that may excuse the violations. A caller that can look it up
    adds it to the request and decides again.
    """

    violations: tuple[Violation, ...]
    warnings: tuple[Warning, ...] = ()
    audit: tuple[Violation, ...] = ()
    report_to: OwnerReference | None = None
    excused: tuple[Excused, ...] = ()
    problems: tuple[Problem, ...] = ()
    unresolved: frozenset[tuple[str, str, str]] = frozenset()
    needs: NeededObject | None = None
    completed: bool = False


Decision = Allowed | Denied

ALLOWED: Final = "allowed"
REFUSED: Final = "refused"
NOT_EVALUATED: Final = "not-evaluated"
FAULT: Final = "fault"
"""The outcome if podgate itself fails on an object. No decision has it."""

UNKNOWN_KIND: Final = "unknown-kind"
UNKNOWN_VERSION: Final = "unknown-version"
NO_PODS: Final = "no-pods"
UNGOVERNED: Final = "ungoverned-namespace"
EXEMPT_SENDER: Final = "exempt-sender"
NO_POLICY: Final = "no-policy"
OTHER_OPERATION: Final = "other-operation"
UNCHANGED: Final = "unchanged"
IMMUTABLE: Final = "immutable"
NOT_EVALUATED_REASONS: Final = (
    UNKNOWN_KIND,
    UNKNOWN_VERSION,
    NO_PODS,
    UNGOVERNED,
    EXEMPT_SENDER,
    NO_POLICY,
    OTHER_OPERATION,
    UNCHANGED,
    IMMUTABLE,
)
"""Why an object is not evaluated. `no-pods` is a kind of Kubernetes or podgate without pods.
`unchanged` is a document of podgate whose spec did not change, `immutable` an update of an object
whose spec cannot change.
"""


def outcome_of(decision: Decision) -> str:
    """Return one of the three outcomes. An object that is not evaluated is never called allowed."""
    if isinstance(decision, Denied):
        return REFUSED
    return NOT_EVALUATED if decision.not_evaluated else ALLOWED


def why_not_evaluated(decision: Decision) -> str:
    """Return the reason why an object is not evaluated, "" if it is."""
    return decision.not_evaluated if isinstance(decision, Allowed) else ""


@dataclass(slots=True)
class Findings:
    """What an evaluation collects. The order does not matter: it is sorted at the end."""

    violations: list[Violation] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def sort_key(violation: Violation) -> tuple[Any, ...]:
    """Sort by path (indices as numbers), then field, rule and source, so that output is stable."""
    path = tuple(
        (isinstance(step, str), str(step) if isinstance(step, str) else step)
        for step in violation.path
    )
    scope = violation.source.scope if violation.source else ""
    policy = violation.source.policy if violation.source else ""
    return (path, violation.field, violation.rule, scope, policy, violation.key)
