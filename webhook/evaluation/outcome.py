"""The outcome of a decision as values: what is allowed with which changes, or every violation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from webhook.documents.problem import Problem, Source
from webhook.objects.path import Path


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: field, place, value seen, what is allowed, rule, stable reason, source.

    `value` and `allowed` are texts ready for people; for secret fields they name no value. `identity`
    is what an item is whatever its name: the path of a host path, the claim of a volume.
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


class Excuser(Protocol):
    """What excuses violations of one object: an exception by its name."""

    @property
    def name(self) -> str:
        """How it is named."""

    def covers(self, violation: Violation) -> bool:
        """Whether a violation is within what it excuses."""


class Excused(NamedTuple):
    """A violation that an exception excuses, and the name of that exception."""

    violation: Violation
    exception: str


class Warning(NamedTuple):  # noqa: A001 - Kubernetes' own word for what a response carries beside the verdict
    """Something the user should know that refuses nothing; `reason` is stable, facts are texts.

    `would_be` is the violation that a policy on trial would make of it. A tuple for the reason that
    Change is one.
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

    `unseen` are claims (kind, namespace, name) that were asked for and are not known: seen, they
    might change the decision. `not_evaluated` is the reason why no policy was asked about the
    object, "" where the policies allow it.
    """

    object: Any
    patch: tuple[dict[str, Any], ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[Warning, ...] = ()
    audit: tuple[Violation, ...] = ()
    not_evaluated: str = ""
    excused: tuple[Excused, ...] = ()
    unseen: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def judged(self) -> bool:
        """Whether policies were asked about the object."""
        return not self.not_evaluated


class OwnerReference(NamedTuple):
    """The object that controls another, in the same namespace."""

    api_version: str
    kind: str
    name: str
    uid: str


class NeededObject(NamedTuple):
    """An object that a decision depends on: its path in the API server, and its UID ("": any)."""

    path: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """The object may not pass; every violation is here, sorted by place.

    `tell` is the workload whose author has to be told besides the controller that asked: what a
    controller makes of it was refused. It is there only for controllers, whose word it is.
    `completed` says that the mutating pass has let the object through before this pass refuses it.
    `unseen` as in Allowed. `needs` is an object that may excuse the violations: whoever can look it
    up adds it to the request and asks again.
    """

    violations: tuple[Violation, ...]
    warnings: tuple[Warning, ...] = ()
    audit: tuple[Violation, ...] = ()
    tell: OwnerReference | None = None
    excused: tuple[Excused, ...] = ()
    problems: tuple[Problem, ...] = ()
    unseen: frozenset[tuple[str, str, str]] = frozenset()
    needs: NeededObject | None = None
    completed: bool = False


Decision = Allowed | Denied

ALLOWED: Final = "allowed"
REFUSED: Final = "refused"
NOT_EVALUATED: Final = "not-evaluated"
FAULT: Final = "fault"
"""The reason where podgate itself fails on an object; no decision has it."""

UNKNOWN_KIND: Final = "unknown-kind"
UNKNOWN_VERSION: Final = "unknown-version"
NO_PODS: Final = "no-pods"
UNGOVERNED: Final = "ungoverned-namespace"
EXEMPT_SENDER: Final = "exempt-sender"
NO_POLICY: Final = "no-policy"
OTHER_OPERATION: Final = "other-operation"
UNCHANGED: Final = "unchanged"
NOT_EVALUATED_REASONS: Final = (
    UNKNOWN_KIND,
    UNKNOWN_VERSION,
    NO_PODS,
    UNGOVERNED,
    EXEMPT_SENDER,
    NO_POLICY,
    OTHER_OPERATION,
    UNCHANGED,
)
"""Why an object is not evaluated. `no-pods` is a kind of Kubernetes or podgate that holds none,
`unchanged` a document of podgate whose spec stays as it was."""


def outcome_of(decision: Decision) -> str:
    """One of the three outcomes; what is not evaluated is never called allowed."""
    if isinstance(decision, Denied):
        return REFUSED
    return NOT_EVALUATED if decision.not_evaluated else ALLOWED


def why_not_evaluated(decision: Decision) -> str:
    """The reason why an object is not evaluated, "" where it is."""
    return decision.not_evaluated if isinstance(decision, Allowed) else ""


@dataclass(slots=True)
class Findings:
    """What a judgement collects on its way; order is irrelevant until it is sorted at the end."""

    violations: list[Violation] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def sort_key(violation: Violation) -> tuple[Any, ...]:
    """By place (indices as numbers), then field, rule and source, so that output is stable."""
    place = tuple(
        (isinstance(step, str), str(step) if isinstance(step, str) else step)
        for step in violation.path
    )
    scope = violation.source.scope if violation.source else ""
    policy = violation.source.policy if violation.source else ""
    return (place, violation.field, violation.rule, scope, policy, violation.key)
