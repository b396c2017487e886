"""PolicyException: exempts named objects from named rules, up to a value, until a date.

apiVersion: podgate.dev/v1alpha1
kind: PolicyException
metadata: {name: big-run, namespace: podgate-exceptions}
spec:
  reason: The benchmark of week 48 needs 16 GPUs
  until: "2026-12-01T00:00:00Z"
  objects: [{group: kubeflow.org, kind: PyTorchJob, namespace: vision, name: bench}]
  rules:
    - {field: compute.gpuDevicesRequest, rule: max, value: 16}         # up to 16; min: down to
    - {field: security.privileged, rule: canEdit, value: true, policy: baseline}
    - {field: image, rule: options, value: [registry.example.com/tool:1]}
    - {field: storage.hostPath, rule: canAdd, key: /dev/shm}           # canAdd, locked: the item
    - {field: scheduling.nodePools, rule: required}
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from webhook.documents import read_model
from webhook.documents.model import DocumentPart, NotWritten, WrittenAs
from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, show_value
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Violation
from webhook.interface.names import EXCEPTION_KIND as KIND
from webhook.objects.path import Path
from webhook.policy.leaves import LEAF_NAMES, LeafType, leaf_type
from webhook.policy.names import closest
from webhook.policy.rules import TABLE as RULES

API_VERSION: Final = "podgate.dev/v1alpha1"
SPEC: Final[Path] = ("spec",)
TIME: Final = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
"""A time as Kubernetes writes it. Such texts sort by time."""


def as_list(value: Any) -> Any:
    """Return the value as a list. A single value may be written without one."""
    return value if isinstance(value, list) else [value]


class Named(NamedTuple):
    """A group, kind, namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class NamedObject(DocumentPart):
    """One object."""

    kind: Annotated[str, Field(min_length=1)]
    """Kind, as objects name it."""
    namespace: Annotated[str, Field(min_length=1)]
    """Its namespace."""
    name: Annotated[str, Field(min_length=1)]
    """Its name."""
    group: str = ""
    """API group; absent: the core group."""


def named(objects: list[NamedObject]) -> tuple[Named, ...]:
    """Return the objects in the form in which reviews look them up."""
    return tuple(Named(each.group, each.kind, each.namespace, each.name) for each in objects)


@dataclass(frozen=True, slots=True)
class Excuse(DocumentPart):
    """One rule of one field that does not apply, and how far."""

    field: str
    """Name of the field."""
    rule: str
    """Name of the rule."""
    values: Annotated[
        tuple[Any, ...], Field(alias="value"), WithJsonSchema({}), BeforeValidator(as_list)
    ] = ()
    """Up to which value, or which values, it is excused: one bound for min and max; none for items."""
    key: str = ""
    """The item, for canAdd and locked."""
    policy: str = ""
    """Name of the one policy; absent: of all policies."""

    def covers(self, violation: Violation) -> bool:
        """Return whether the violation is excused. Unreadable values never are."""
        if (self.field, self.rule) != (violation.field, violation.rule):
            return False
        if self.policy and (violation.source is None or violation.source.policy != self.policy):
            return False
        rule = RULES[self.rule]
        if rule.of_items:
            # Anybody can give another volume the name of an excused one.
            return self.key == (violation.identity or violation.key)
        if rule.requires_value:
            return True
        if violation.value is None or violation.reason != violation.rule:
            return False
        codec = leaf_type(self.field).codec
        if any(violation.value == codec.show(each) for each in self.values):
            return True
        try:
            value = codec.parse(violation.value, violation.value)
            return rule.is_ordered and rule.is_no_further(value, self.values[0])
        except (ValueError, TypeError):
            return False


@dataclass(frozen=True, slots=True)
class PolicyException(DocumentPart):
    """Objects that are excused from rules, by name, up to a value and until a date."""

    objects: Annotated[
        tuple[Named, ...], WrittenAs(Annotated[list[NamedObject], Field(min_length=1)], named)
    ]
    """The objects."""
    excuses: Annotated[tuple[Excuse, ...], Field(alias="rules", min_length=1)]
    """The rules."""
    until: Annotated[str, Field(json_schema_extra={"pattern": f"^{TIME.pattern}$"})]
    """A moment in UTC, such as "2026-12-01T00:00:00Z", from which on it does not count."""
    reason: str = ""
    """Why, for people."""
    name: Annotated[str, NotWritten()] = ""
    origin: Annotated[str, NotWritten()] = ""
    namespace: Annotated[str, NotWritten()] = ""

    def is_active(self, now: str) -> bool:
        """Return whether it has not expired at the time `now`. With "", the time is unknown: False."""
        return bool(now) and now < self.until

    def covers(self, violation: Violation) -> bool:
        """Return whether it excuses a violation of one of its objects."""
        return any(each.covers(violation) for each in self.excuses)


def is_exception(document: Any) -> bool:
    """Return whether a decoded document is a PolicyException, by apiVersion and kind."""
    return (
        isinstance(document, dict)
        and document.get("apiVersion") == API_VERSION
        and document.get("kind") == KIND
    )


def parse_exception(
    document: SourceDocument, home: str = ""
) -> tuple[PolicyException | None, tuple[Problem, ...]]:
    """Return the exception, None if it cannot be used, and all problems.

    `home` is the only namespace whose exceptions count. "" accepts all namespaces (offline).
    """
    report = Report(document)
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        report.add(("metadata",), "no name", "write metadata.name", "missing-name")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    if home and own != home:
        found = f"an exception in namespace {show_value(str(own))}"
        report.add(
            ("metadata", "namespace"), found, f"create exceptions in {home} only", "not-home"
        )
    read = read_model.read(PolicyException, document.data.get("spec"), SPEC, report)
    if read is None:
        return None, tuple(report.problems)
    check_until(read.until, report)
    excuses = [check_excuse(each, index, report) for index, each in enumerate(read.excuses)]
    if report.has_errors:
        return None, tuple(report.problems)
    found_exception = replace(
        read,
        excuses=tuple(each for each in excuses if each is not None),
        name=str(name),
        origin=document.origin,
        namespace=str(own or ""),
    )
    return found_exception, tuple(report.problems)


def check_until(text: str, report: Report) -> None:
    """Report an `until` that is not a time in UTC."""
    if TIME.fullmatch(text) is None:
        fix = 'write a moment in UTC, such as "2026-12-01T00:00:00Z"'
        report.add((*SPEC, "until"), f"`{show_value(text)}`", fix, "bad-time")


def check_excuse(given: Excuse, index: int, report: Report) -> Excuse | None:
    """Return one rule with the field's canonical name and parsed values, None if it has problems."""
    at = (*SPEC, "rules", index)
    leaf = read_leaf(given, at, report)
    if leaf is None:
        return None
    if given.rule not in RULES:
        near = closest(given.rule, RULES)
        fix = f"did you mean `{near}`?" if near else f"known: {', '.join(RULES)}"
        report.add((*at, "rule"), f"no rule `{show_value(given.rule)}`", fix, "unknown-rule")
        return None
    if RULES[given.rule].of_items:
        if not given.key:
            report.add(at, "no item", "write `key:` with the item's key", "missing-value")
        return replace(given, field=leaf.path, values=())
    if RULES[given.rule].requires_value:
        return replace(given, field=leaf.path, values=(), key="")
    values = read_values(leaf, given, at, report)
    return replace(given, field=leaf.path, values=values, key="")


def read_leaf(given: Excuse, at: Path, report: Report) -> LeafType | None:
    """Return the field of a rule, by its name or an alias. Reports an unknown one and returns None."""
    name = given.field.lower()
    path = LEAF_NAMES.leaves.get(name) or LEAF_NAMES.aliases.get(name)
    if path is None:
        near = closest(given.field, LEAF_NAMES.leaves.values())
        fix = f"did you mean `{near}`?" if near else "write the name of a field"
        report.add((*at, "field"), f"no field `{show_value(given.field)}`", fix, "unknown-field")
        return None
    if path != given.field:
        report.warn((*at, "field"), f"`{show_value(given.field)}`", f"write `{path}`", "alias")
    return leaf_type(path)


def read_values(leaf: LeafType, given: Excuse, at: Path, report: Report) -> tuple[Any, ...]:
    """Return the excused values, or the bound for min and max. Reports what cannot be read."""
    if leaf.secret:
        fix = "values of this field are shown nowhere, so none can be excused"
        report.add((*at, "field"), f"`{leaf.path}`", fix, "secret-field")
        return ()
    if not given.values:
        report.add(at, "no value", "write `value:`, up to which it is excused", "missing-value")
        return ()
    if RULES[given.rule].is_ordered and len(given.values) > 1:
        report.add((*at, "value"), "several values", "write the one bound", "one-bound")
    bare = leaf.is_array and not any(isinstance(each, list) for each in given.values)
    found = []
    for raw in given.values:
        try:
            found.append(leaf.codec.parse([raw] if bare else raw, None))
        except (ValueError, TypeError):
            shown = f"`{show_value(str(raw))}`"
            report.add((*at, "value"), shown, f"write {leaf.expected_form}", "wrong-type")
    if bare and len(found) == len(given.values):
        found.append(leaf.codec.parse(list(given.values), None))  # an object may have all of them
    return tuple(found)
