"""PolicyException: named objects that are excused from named rules, up to a value, until a date.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, Field

from webhook.documents import read_model as typed
from webhook.documents.problem import Problem
from webhook.documents.read_model import Model, Report, shown
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Violation
from webhook.interface.names import EXCEPTION_KIND as KIND
from webhook.objects.path import Path
from webhook.policy.leaves import LEAF_NAMES, LeafType, leaf_type
from webhook.policy.names import closest
from webhook.policy.rules import TABLE as RULES

API_VERSION: Final = "podgate.dev/v1alpha1"
BOUNDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "max": lambda seen, value: bool(seen <= value),
    "min": lambda seen, value: bool(seen >= value),
}
BY_KEY: Final = frozenset({"canAdd", "locked"})
WITHOUT_VALUE: Final = frozenset({"required"})
SPEC: Final[Path] = ("spec",)
TIME: Final = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
"""A moment as Kubernetes writes it: of two such texts the later one is the greater."""


def listed(value: Any) -> Any:
    """One value where a list of them may stand."""
    return value if isinstance(value, list) else [value]


Values = Annotated[list[Any], BeforeValidator(listed)]


class ObjectModel(Model):
    """One object: group "" is the core group."""

    group: str = ""
    kind: str = Field(min_length=1)
    namespace: str = Field(min_length=1)
    name: str = Field(min_length=1)


class RuleModel(Model):
    """One rule on one field, of one policy or of all, and how far it does not hold."""

    field: str
    rule: str
    value: Values = Field(default_factory=list)
    key: str | None = None
    policy: str | None = None


class ExceptionSpec(Model):
    """The body of a PolicyException."""

    objects: list[ObjectModel] = Field(min_length=1)
    rules: list[RuleModel] = Field(min_length=1)
    until: str
    reason: str = ""


class Named(NamedTuple):
    """A group, kind, namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Excuse:
    """One rule that does not hold: `values` are comparable, the bound alone for min and max."""

    field: str
    rule: str
    values: tuple[Any, ...] = ()
    key: str = ""
    policy: str = ""

    def covers(self, violation: Violation) -> bool:
        """Whether a violation is within what is excused; what cannot be read is not."""
        if (self.field, self.rule) != (violation.field, violation.rule):
            return False
        if self.policy and (violation.source is None or violation.source.policy != self.policy):
            return False
        if self.rule in BY_KEY:
            # Anybody can give another volume the name of one that is excused.
            return self.key == (violation.identity or violation.key)
        if self.rule in WITHOUT_VALUE:
            return True
        if violation.value is None or violation.reason != violation.rule:
            return False
        codec = leaf_type(self.field).codec
        if any(violation.value == codec.show(each) for each in self.values):
            return True
        within = BOUNDS.get(self.rule)
        try:
            seen = codec.parse(violation.value, violation.value)
            return within is not None and within(seen, self.values[0])
        except (ValueError, TypeError):
            return False


@dataclass(frozen=True, slots=True)
class PolicyException:
    """An accepted exception; `until` is a moment as text, see TIME."""

    name: str
    objects: tuple[Named, ...]
    excuses: tuple[Excuse, ...]
    until: str
    reason: str = ""
    origin: str = ""
    namespace: str = ""

    def holds(self, now: str) -> bool:
        """Whether it has not expired; without a moment, "", nobody can say that it has not."""
        return bool(now) and now < self.until

    def covers(self, violation: Violation) -> bool:
        """Whether it excuses a violation of one of its objects."""
        return any(each.covers(violation) for each in self.excuses)


def is_exception(document: Any) -> bool:
    """Whether a decoded document is a PolicyException, by apiVersion and kind."""
    return (
        isinstance(document, dict)
        and document.get("apiVersion") == API_VERSION
        and document.get("kind") == KIND
    )


def parse_exception(
    document: SourceDocument, home: str = ""
) -> tuple[PolicyException | None, tuple[Problem, ...]]:
    """The exception, None when it cannot be used, and all problems.

    `home` is the one namespace whose exceptions count; "" takes those of any, as offline.
    """
    report = Report(document)
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        report.add(("metadata",), "no name", "write metadata.name", "missing-name")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    if home and own != home:
        found = f"an exception in namespace {shown(str(own))}"
        report.add(
            ("metadata", "namespace"), found, f"create exceptions in {home} only", "not-home"
        )
    spec = typed.read(ExceptionSpec, document.data.get("spec"), SPEC, report)
    if spec is None:
        return None, tuple(report.problems)
    until = read_until(spec.until, report)
    excuses = [read_excuse(each, index, report) for index, each in enumerate(spec.rules)]
    if report.failed:
        return None, tuple(report.problems)
    objects = tuple(Named(e.group, e.kind, e.namespace, e.name) for e in spec.objects)
    known = tuple(each for each in excuses if each is not None)
    found_exception = PolicyException(
        str(name), objects, known, until, spec.reason, document.origin, str(own or "")
    )
    return found_exception, tuple(report.problems)


def read_until(text: str, report: Report) -> str:
    """The end of an exception."""
    if TIME.fullmatch(text) is None:
        fix = 'write a moment in UTC, such as "2026-12-01T00:00:00Z"'
        report.add((*SPEC, "until"), f"`{shown(text)}`", fix, "bad-time")
    return text


def read_excuse(model: RuleModel, index: int, report: Report) -> Excuse | None:
    """One rule of an exception; every fault is told."""
    at = (*SPEC, "rules", index)
    leaf = read_leaf(model, at, report)
    if leaf is None:
        return None
    if model.rule not in RULES:
        near = closest(model.rule, RULES)
        fix = f"did you mean `{near}`?" if near else f"known: {', '.join(RULES)}"
        report.add((*at, "rule"), f"no rule `{shown(model.rule)}`", fix, "unknown-rule")
        return None
    if model.rule in BY_KEY:
        if not model.key:
            report.add(at, "no item", "write `key:` with the item's key", "missing-value")
        return Excuse(leaf.path, model.rule, key=model.key or "", policy=model.policy or "")
    if model.rule in WITHOUT_VALUE:
        return Excuse(leaf.path, model.rule, policy=model.policy or "")
    return Excuse(
        leaf.path, model.rule, read_values(leaf, model, at, report), policy=model.policy or ""
    )


def read_leaf(model: RuleModel, at: Path, report: Report) -> LeafType | None:
    """The field of a rule, by its name or an older spelling of it."""
    name = model.field.lower()
    path = LEAF_NAMES.leaves.get(name) or LEAF_NAMES.aliases.get(name)
    if path is None:
        near = closest(model.field, LEAF_NAMES.leaves.values())
        fix = f"did you mean `{near}`?" if near else "write the name of a field"
        report.add((*at, "field"), f"no field `{shown(model.field)}`", fix, "unknown-field")
        return None
    if path != model.field:
        report.warn((*at, "field"), f"`{shown(model.field)}`", f"write `{path}`", "alias")
    return leaf_type(path)


def read_values(leaf: LeafType, model: RuleModel, at: Path, report: Report) -> tuple[Any, ...]:
    """What is excused: the bound for min and max, else the values themselves."""
    if leaf.secret:
        fix = "values of this field are shown nowhere, so none can be excused"
        report.add((*at, "field"), f"`{leaf.path}`", fix, "secret-field")
        return ()
    if not model.value:
        report.add(at, "no value", "write `value:`, up to which it is excused", "missing-value")
        return ()
    if model.rule in BOUNDS and len(model.value) > 1:
        report.add((*at, "value"), "several values", "write the one bound", "one-bound")
    found = []
    for raw in model.value:
        try:
            found.append(leaf.codec.parse(raw, None))
        except (ValueError, TypeError):
            told = f"`{shown(str(raw))}`"
            report.add((*at, "value"), told, f"write {leaf.wanted}", "wrong-type")
    return tuple(found)
