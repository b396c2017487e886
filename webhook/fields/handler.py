"""The two interfaces of this package: handlers of a shape of field, and fields compiled for one kind.

A row of the catalogue names its handler by text (`shape`); `registry.py` lists the handlers.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.server_defaults import KindDefaults
from webhook.evaluation.state import Evaluation
from webhook.fields.notation import PathValue
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.fields.store import NativeItem
from webhook.interface.fragment import FragmentSpec
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Effective, EffectiveDefault, Leaf
from webhook.policy.row import Binding, Field
from webhook.policy.table import TABLE

MAPPED, UNMAPPED = "mapped", "unmapped"
Support = tuple[str, str]
"""Whether a kind can have a field, and why not, or what limits it there."""
MAIN: Final[Path] = ("spec", "containers", 0)

ON_CHILDREN = (Binding.SAFETY, Binding.AMOUNT, Binding.REQUEST, Binding.CONFIG)

COMPUTED, KIND = "computed", "kind"
"""Where values come from that are at no single path."""

Subject = TypeVar("Subject")
"""What a field is checked on and written into: one pod, or all pods of the workload."""


@dataclass(frozen=True, slots=True)
class FieldSource:
    """What a field is compiled from: its row and leaf, and for whom.

    Fields of pods are compiled for each `component` and its `roles`, fields of the workload for all
    of them, with the merged rules of all in `effective`.
    """

    row: Field
    leaf: Leaf
    effective: Effective
    component: str
    roles: tuple[str, ...]
    definition: Definition
    server: KindDefaults
    config: InstallationConfig

    @property
    def attributes(self) -> dict[str, Leaf]:
        """The effective leaves of an itemized field's attributes by attribute name."""
        assert self.row.items is not None
        return {
            each.name: self.effective[f"{self.row.path}.{each.name}"]
            for each in self.row.items.attributes
            if f"{self.row.path}.{each.name}" in self.effective
        }

    def of(self, path: str) -> FieldSource:
        """The same for another field, which the policies may not name."""
        leaf = self.effective.get(path, Leaf(path))
        return replace(self, row=TABLE.fields[path], leaf=leaf)

    def is_forbidden(self) -> bool:
        """Whether the kind refuses the field, and no feature of the cluster allows it."""
        return any(
            each.field == self.row.path and each.unless not in self.config.features
            for each in self.definition.profile.forbidden_fields
        )


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One value of a field in an object, with the path inside the pod or the object.

    `value` is None where nothing is set at the path, and a default would go there. `key` names the
    container or instance. `derived` values are not literally at their path: they follow from what
    is there, or are there in another notation; `origin` (COMPUTED, KIND) says that they follow from
    more than one path. `hidden` ones are never shown. A `note` of None leaves it to the reader.
    `native` is the item that the object has, `item` the key of the policy's item that it is.
    """

    path: Path
    value: Any
    key: str = ""
    note: str | None = None
    derived: bool = False
    origin: str = ""
    hidden: bool = False
    native: NativeItem | None = None
    item: str = ""


@dataclass(frozen=True, slots=True)
class Phases:
    """The steps of a review that a compiled field takes part in.

    `locked`: it writes a default that nobody may change, so the final object must have it.
    `needed`: an object without its defaults may be rejected, so they are written where nothing
    else is.
    """

    intent: bool = False
    fill: bool = False
    final: bool = False
    locked: bool = False
    needed: bool = False


def phases_of(rules: ScalarRules, *, fill: bool = False) -> Phases:
    """The steps that the rules of a scalar ask for; `fill` where it has a default without them."""
    fill = fill or rules.default is not None
    locked = fill and any(each.type.fixes_default for each in rules.prohibitions)
    return Phases(
        intent=bool(rules.prohibitions),
        fill=fill,
        final=bool(rules.final or rules.required),
        locked=locked,
        needed=locked or (fill and bool(rules.required)),
    )


class CompiledField(Generic[Subject], metaclass=ABCMeta):
    """One field of the policies that apply to a kind, ready to be checked and written.

    Plans hold compiled fields and share them between requests and threads, so they keep nothing of
    a request. `decision` calls `check_intent`, `fill` and `check_final` in this order, each only
    where `phases` has it. They raise MalformedPod for a pod that no API server would accept,
    LocationError where the object's numbers cannot be read, and PatchError for what cannot be
    written. They report through `ev.violate` and `ev.warn`, write through `ev.write` and
    `ev.draft`, and change nothing else: no pod, no request, no state of their own.

    `order`: 0 for what adds containers, which then get the other defaults too, else 1.
    `on_children`: whether its rules apply to what controllers create: safety, images, amounts.
    """

    __slots__ = ("on_children", "order", "phases", "row", "rules")

    shares_fragments: ClassVar[bool] = False
    """Whether what is written for one pod may be a part of another: `fill` sees it written."""

    follows: Constraint | None = None
    """The defaultFrom rule that computes the default; None for a static default."""

    def __init__(self, row: Field, rules: ScalarRules | None = None) -> None:
        self.row = row
        self.rules = rules_of(row, Leaf(row.path)) if rules is None else rules
        self.phases = phases_of(self.rules)
        self.order = 1
        self.on_children = row.safety or row.binding in ON_CHILDREN

    @abstractmethod
    def check_intent(self, subject: Subject, ev: Evaluation, /) -> None:
        """Report what the user may not set, add or change, in the object as it was sent."""

    @abstractmethod
    def fill(self, subject: Subject, ev: Evaluation, /) -> None:
        """Write the default into the draft where the object leaves the field unset."""

    @abstractmethod
    def check_final(self, subject: Subject, ev: Evaluation, /) -> None:
        """Report what the result may not have or lacks, with its defaults written."""

    def read(self, subject: Subject, ev: Evaluation, /) -> Iterable[FieldValue]:
        """All values in a pod, or in the draft, with defaults written; called by `explain`.

        Where none is set, the paths that defaults would go to.
        """
        return ()

    def check_locked_intent(self, subject: Subject, ev: Evaluation, /) -> None:
        """`check_intent` for locked items alone, which also apply to what controllers create."""

    def check_locked_final(self, subject: Subject, ev: Evaluation, /) -> None:
        """`check_final` for locked items alone."""

    def current(self, subject: Subject, ev: Evaluation, /) -> Any:
        """The native value in the draft, from which other defaults are computed; None for unset."""
        return None

    def default_for(self, subject: Subject, ev: Evaluation, /) -> EffectiveDefault | None:
        """The default for a pod, or for the workload; computed defaults differ between pods."""
        return self.rules.default

    def rules_at(self, path: str) -> ScalarRules:
        """The rules of one leaf: of the field itself, or of an attribute of its items."""
        return self.rules

    def is_locked(self, key: str) -> bool:
        """Whether the item with this key must be present as the policy has it."""
        return False

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> Sequence[PathValue]:
        """Everything that a field of the workload reads of a document, to compare with before."""
        return ()


class PodField(CompiledField[PodView]):
    """A field of pods, checked and written one pod at a time."""

    __slots__ = ()

    @abstractmethod
    def read(self, view: PodView, ev: Evaluation, /) -> Iterable[FieldValue]:
        """All values in a pod; where none is set, the paths that defaults would go to."""


class WorkloadField(CompiledField[Sequence[PodView]]):
    """A field of the object as a whole, checked and written once, with all pods at hand."""

    __slots__ = ()

    @abstractmethod
    def read(self, views: Sequence[PodView], ev: Evaluation, /) -> Iterable[FieldValue]:
        """All values in the draft, whose pods are `views`."""

    @abstractmethod
    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> Sequence[PathValue]:
        """Everything that is read of a document, to compare an update with what was before."""


class FieldHandler(Generic[Subject], metaclass=ABCMeta):
    """Compiles the fields of one shape. Handlers have no state; `registry.py` has one of each."""

    name: ClassVar[str]
    """The shape, by which rows of the catalogue name their handler."""

    scope: ClassVar[Literal["pod", "workload"]]

    feeds_defaults: ClassVar[bool]
    """Whether other defaults can be computed from the field where no policy names it."""

    @abstractmethod
    def compile(self, source: FieldSource) -> CompiledField[Subject] | None:
        """The compiled field, None where this component or kind has no such field.

        Plans call it when they are built, never during a review, and in `explain`.
        """

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Whether a kind has a path for a field, in a component; for `explain` and `lint`."""
        found = definition.interface.component(component)
        if found is None:
            return MAPPED, ""
        if found.form is None and self.scope == "pod":
            return UNMAPPED, f"the pods of {component} are set in other objects"
        if row.binding is Binding.METADATA and found.form == "spec":
            return (
                (MAPPED, "") if found.metadata else (UNMAPPED, f"{component} has no pod metadata")
            )
        if found.form == "fragments":
            return supported_in_fragments(definition, component, self.pod_paths(row))
        return MAPPED, ""

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template, metadata included, has a field; any may be missing."""
        return (("spec",),)


class PodHandler(FieldHandler[PodView]):
    """A handler of fields that pods have."""

    scope = "pod"
    feeds_defaults = True

    def is_in_pods(self, row: Field, definition: Definition) -> bool:
        """Whether the kind has the field in its pods, not for the workload as a whole."""
        return True


class WorkloadHandler(FieldHandler[Sequence[PodView]]):
    """A handler of fields that the object has as a whole."""

    scope = "workload"
    feeds_defaults = False

    of_every_kind: ClassVar[bool] = False
    """Whether all objects have the field, also those that only wrap others."""

    of_devices: ClassVar[bool] = False
    """Whether the field is one of claims, device classes and compute domains, and of no others."""

    by_component: ClassVar[bool] = False
    """Whether the field is compiled for each component with its own rules, not once for all."""

    def refuses_default(self, source: FieldSource) -> bool:
        """Whether the kind would reject the default: the field, or this value of it."""
        return False


def container_paths(row: Field) -> list[Path]:
    """Where a pod template has a field of containers: in the first one, or at the pod."""
    of_pod = [("spec", *row.pod_at)] if row.pod_at else []
    return [(*MAIN, *row.at), *of_pod]


def supported_in_fragments(
    definition: Definition, component: str, paths: Sequence[Path]
) -> Support:
    """Whether a kind that has its pods in fragments has one for a field."""
    found = next((each for each in definition.plans if each.component == component), None)
    specs = found.specs if found is not None else ()
    known = found.assembler.forms if found is not None else {}
    forms = [
        known[spec.form]
        for at in paths
        for spec in specs
        if spec.pod[: len(at)] == at[: len(spec.pod)]
        and not known[spec.form].empty
        and len(spec.pod) >= unwritable_depth(specs, at)
    ]
    if not forms:
        kind = definition.interface.kind
        return UNMAPPED, f"{kind} has no such part of the pods of {component}"
    if all(each.read_only for each in forms):
        return MAPPED, "evaluated, but a default has no path there"
    return MAPPED, ""


def unwritable_depth(specs: Iterable[FragmentSpec], at: Path) -> int:
    """How long the path is that cannot be written around `at`; 0 where there is none."""
    return max(
        (len(p.pod) for p in specs if p.form == "told" and at[: len(p.pod)] == p.pod), default=0
    )
