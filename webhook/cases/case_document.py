"""The members of a case's file, its variants, requests and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Strict

from webhook.documents.model import DocumentPart, WrittenAs, fault

ANY = "any"
Flag = Annotated[bool, Strict()]


def read_warnings(value: Any) -> Any:
    """A list of reasons, or the word for any."""
    if value == ANY or (isinstance(value, list) and all(isinstance(e, str) for e in value)):
        return value
    raise fault("wrong-type", "no list of reasons", f"write a list of texts, or {ANY}")


@dataclass(frozen=True, slots=True)
class CaseRequest(DocumentPart):
    """A request as an API server brings it."""

    object: Any
    """The object."""
    operation: str = ""
    """CREATE, UPDATE or DELETE; absent: UPDATE if there is an old object, else CREATE."""
    old: Mapping[str, Any] | None = None
    """The object before an update."""
    user: str = ""
    """Name of the user."""
    groups: tuple[str, ...] = ()
    """Groups of the user."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extra fields of the user that the API server adds."""
    field_manager: str = ""
    """Name of the client that writes."""
    replaces: Flag = False
    """The client replaces the whole object (PUT)."""
    subresource: str = ""
    """The subresource, such as scale."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """{group, version, resource} of the request."""
    stage: Literal["mutate", "validate", "documents"] = "mutate"
    """Which webhook is called."""
    dry_run: Flag = False
    """The request is a dry run."""
    cluster: tuple[Mapping[str, Any], ...] = ()
    """Objects of the cluster that podgate can read; `forbidden: true` marks one that it may not read."""


@dataclass(frozen=True, slots=True)
class ExpectedViolation(DocumentPart):
    """A violation, by the members that are compared."""

    field: Any = None
    """The policy field."""
    path: Any = None
    """Where the object breaks the rule."""
    rule: Any = None
    """The rule."""
    reason: Any = None
    """The stable reason: see [reasons](reasons.md)."""
    value: Any = None
    """The value found, as text."""
    allowed: Any = None
    """The allowed value, as text."""
    policy: Any = None
    """Name of the policy."""
    scope: Any = None
    """Scope of the policy."""
    key: Any = None
    """The key of the item."""
    message: Any = None
    """The message; not stable."""


@dataclass(frozen=True, slots=True)
class Expectation(DocumentPart):
    """The expected result."""

    allowed: Flag | None = None
    """The object is allowed."""
    violations: tuple[ExpectedViolation, ...] = ()
    """All violations, in order."""
    audit: tuple[ExpectedViolation, ...] = ()
    """All violations of policies in warn or audit mode."""
    warnings: Annotated[Any, WrittenAs(Any, read_warnings)] = None
    """Reasons of all warnings, or `any`."""
    judged: Flag | None = None
    """Whether the request was evaluated at all."""
    not_evaluated: Any = None
    """Why it was not evaluated."""
    object: Mapping[str, Any] | None = None
    """The whole object afterwards."""
    patch: tuple[Any, ...] | None = None
    """The patch."""
    changes: Mapping[str, Any] | None = None
    """What the patch changes, by path."""
    lookups: Annotated[int | None, Strict()] = None
    """Number of cluster objects that podgate read."""


@dataclass(frozen=True, slots=True)
class Variant(DocumentPart):
    """The same case with other values at some places."""

    name: Any = None
    """A name for the variant."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Values by path, such as `spec.containers[0].image`; null removes what is there."""
    expect: Expectation | None = None
    """The expected result."""


@dataclass(frozen=True, slots=True)
class CaseFile(DocumentPart):
    """A case: documents, what is submitted, and what comes of it."""

    policies: tuple[Any, ...] = ()
    """Policies in any form, or paths relative to the file."""
    assets: tuple[Any, ...] = ()
    """WorkloadAssets, or paths."""
    interfaces: tuple[Any, ...] = ()
    """Definitions of kinds in addition to the shipped ones, or paths."""
    crds: tuple[Any, ...] = ()
    """CustomResourceDefinitions, or paths."""
    references: tuple[Any, ...] = ()
    """Objects of the cluster: claims, claim templates, device classes, ComputeDomains, priority classes."""
    namespace: Any = None
    """The namespace of an object that sets none; absent: default."""
    namespace_labels: Mapping[str, Any] = field(default_factory=dict)
    """Labels of the namespace."""
    workload_type: str | None = None
    """The workload type of bare policies."""
    rule_combination: str | None = None
    """How rules of several policies combine: a setting of the server."""
    system_policy: Flag = True
    """false omits the built-in policy."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the server, such as gitImage or draFeatureGates."""
    time: Any = None
    """The time of the request, for exceptions."""
    object: Any = None
    """A manifest; or use `request`."""
    request: CaseRequest | None = None
    """A request; or use `object`."""
    expect: Expectation | None = None
    """The expected result."""
    variants: tuple[Variant, ...] = ()
    """The same case with other values at some paths."""
