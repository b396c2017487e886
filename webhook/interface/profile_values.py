"""A workload profile as values: how policy fields land on a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from webhook.interface.fragment import Part
from webhook.interface.injected_items import Injected
from webhook.jq.path import Program
from webhook.objects.path import Path

Children = Literal["derived", "merged"]


@dataclass(frozen=True, slots=True)
class MainConvention:
    """Which container of a kind runs the workload: by name, by index, or neither.

    `named_at` and `with_ports` become a name or an index for each object. `place` is that of a
    container outside the pod spec, which comes before the others.
    """

    name: str | None = None
    index: int | None = None
    with_ports: bool = False
    named_at: Program | None = None
    place: Path | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups that multiply the instances that they list; `lists` goes one list deeper."""

    lists: Program
    replicas: Program | None
    minimum: Program | None
    maximum: Program | None
    absent: int


@dataclass(frozen=True, slots=True)
class ScaleRules:
    """What the scale paths of a component leave open; see the module's example.

    `pods_of` is the component whose pods these are too: it says how many there are.
    """

    absent: int | None = None
    instance: str | None = None
    minimum: Program | None = None
    maximum: Program | None = None
    maximum_only_with: Program | None = None
    unlimited: bool = False
    none_while: tuple[Program, ...] = ()
    unlimited_while: Program | None = None
    pods_of: str = ""
    absent_of: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[Groups, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentProfile:
    """How one component is treated; `by_instance` has its names in lower case.

    `merged_with` is the place that makes the children merged while it is set, `leader_with` the one
    that makes the role leader. While the component `stands_in_for` has no pods of its own, this
    one's pods are its pods too. `without_template`: its containers outside the template make a pod
    where the object has none. `makes` are kinds that the controller makes at once, and only for
    such components.
    """

    role: str = "worker"
    by_instance: Mapping[str, str] = field(default_factory=dict)
    main: MainConvention = MainConvention()
    children: Children = "derived"
    scale: ScaleRules = ScaleRules()
    merged_with: Program | None = None
    leader_with: Program | None = None
    stands_in_for: str = ""
    without_template: bool = False
    makes: frozenset[tuple[str, str]] = frozenset()

    def roles(self, instance: str) -> tuple[str, ...]:
        """The roles of the component's instance of that name."""
        return (self.by_instance.get(instance.casefold(), self.role),)


@dataclass(frozen=True, slots=True)
class ScaleOf:
    """The sum of a component's replicas, or of one of its instances (named without case).

    Of the scale subresource it may be a field of the workload instead, with no component.
    """

    component: str
    instance: str | None = None
    field: str = ""


@dataclass(frozen=True, slots=True)
class AbsentIsUnlimited:
    """A limit that, left out, does not exist, by the operator's `source`.

    It counts while `only_with` finds something; with `needs_parent` only where the object around it
    is set, else wherever the component that it limits is. With `even_if_set` the operator does not
    apply the limit then, whatever it is.
    """

    source: str
    needs_parent: bool = False
    only_with: Program | None = None
    even_if_set: bool = False


@dataclass(frozen=True, slots=True)
class FieldPlaces:
    """Where a workload-level field is; `write` are the places that a default goes to.

    `written` are the words for how the object writes the value where that is not the field's own
    form, `allows` the values that the kind takes (all while empty). `main_port` are components whose
    main containers have the field in their first port. While `first_counts`, the first place of an
    element that is set hides the others. No default is written without what `only_with` finds, nor
    beside what `not_with` finds.
    """

    places: tuple[Program, ...] = ()
    write: tuple[Program, ...] = ()
    only_with: Program | None = None
    scale_of: ScaleOf | None = None
    derived: str | None = None
    written: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    main_port: tuple[str, ...] = ()
    first_counts: bool = False
    not_with: Program | None = None
    absent_is_unlimited: AbsentIsUnlimited | None = None


@dataclass(frozen=True, slots=True)
class ExtraContainer:
    """A container outside the templates that runs in a component's pods, as `main` or beside it."""

    component: str
    place: Program
    only_in: tuple[str, ...] = ()
    note: str = ""
    main: bool = False


@dataclass(frozen=True, slots=True)
class NotPod:
    """A place that looks like pods and is none."""

    place: Program
    reason: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """A place of whole objects of other kinds, each judged by the definition of its own kind.

    `pod_sets` finds paths of pod templates as text, from the list element that the place is in (the
    object itself without one), `replicas` the number of pods of each. Objects of `podless` kinds
    need no definition.
    """

    place: Program
    pod_sets: Program | None = None
    replicas: Program | None = None
    podless: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ForbiddenField:
    """A field that the kind refuses, unless the named cluster feature is on."""

    field: str
    unless: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShadowDefault:
    """A value that the CRD's schema or the operator's webhook fills in.

    With `same_as` it is the value of that place, in the same element of a list. With `zero_too` the
    operator also replaces 0, which its Go type cannot tell from absent.
    """

    place: Program
    value: Any
    by: Literal["crd", "operator"]
    same_as: Program | None = None
    zero_too: bool = False


@dataclass(frozen=True, slots=True)
class Immutable:
    """A place that updates may not change, and the places below it that they may."""

    place: Program
    exceptions: tuple[Program, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another object, of a fixed kind or of the one at `kind_place`.

    While the place `implied_by` is set and names none, a controller chooses the object. `pods` says
    whether pods, or parts of them, come from it.
    """

    place: Program
    group: str
    kind: str
    kind_place: Program | None = None
    note: str = ""
    implied_by: Program | None = None
    pods: bool = True


@dataclass(frozen=True, slots=True)
class PodText:
    """A place whose text changes pods unread; of a map only `keys` that begin in one of these ways."""

    place: Program
    keys: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A place that ends in the pods and that only `writer` may write, whom the installation trusts."""

    place: Program
    writer: str


@dataclass(frozen=True, slots=True)
class SharedClaims:
    """Where claims of devices are stated beside the pods that share them.

    `claims` give {name, namespace}, `templates` {name, templateSpec}; `only_for` gives the names of
    the instances that alone get a claim, listed beside it or above it.
    """

    claims: tuple[Program, ...]
    templates: tuple[Program, ...]
    only_for: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile ready for use; `open_subtrees` is None when nothing is known of the schema.

    `versions` are all that it covers; those in `others` have a profile, and an interface, each.
    `pod_security_context` is false where the kind takes such settings in containers only.
    `name_label` is the label by which the kind's controller gives its pods the workload's name,
    `claim_templates` are the claims that it brings along as volumes of its pods,
    `pod_parts` are the pieces of pods that the kind states one by one, by component.
    `pod_texts` are texts that change pods, `cluster_scoped` kinds are in no namespace.
    `undefined_kinds` are intermediate kinds without a definition, known once all documents are
    there: with one of them, children of every component are merged.
    `adds` is what the operator itself adds to the pods that it makes. `defaults_of` is the built-in
    kind whose defaults the operator's webhook fills in too.
    """

    group: str
    kind: str
    versions: tuple[str, ...]
    resource: str
    workload_type: str | None = None
    built_in: bool = False
    uncovered: Literal["deny", "warn"] = "deny"
    components: Mapping[str, ComponentProfile] = field(default_factory=dict)
    fields: Mapping[str, FieldPlaces] = field(default_factory=dict)
    second_priority_places: tuple[Program, ...] = ()
    extra_containers: tuple[ExtraContainer, ...] = ()
    not_pods: tuple[NotPod, ...] = ()
    forbidden_fields: tuple[ForbiddenField, ...] = ()
    shadow_defaults: tuple[ShadowDefault, ...] = ()
    immutable: tuple[Immutable, ...] = ()
    intermediate_kinds: frozenset[tuple[str, str]] = frozenset()
    controllers: frozenset[str] = frozenset()
    references: tuple[Reference, ...] = ()
    scale_subresource: ScaleOf | None = None
    steering_labels: frozenset[str] = frozenset()
    steering_annotations: frozenset[str] = frozenset()
    open_subtrees: tuple[Program, ...] | None = None
    name: str = ""
    origin: str = ""
    name_label: str = ""
    pod_parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    others: Mapping[str, Profile] = field(default_factory=dict)
    pod_security_context: bool = True
    claim_templates: tuple[Program, ...] = ()
    shared_claims: tuple[SharedClaims, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    pod_texts: tuple[PodText, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    cluster_scoped: bool = False
    undefined_kinds: frozenset[tuple[str, str]] = frozenset()
    adds: Injected = field(default_factory=Injected)
    defaults_of: tuple[str, str] | None = None

    def of_version(self, version: str) -> Profile:
        """What holds for the interface of a version: its own profile, or the rest of this one."""
        if not self.others:
            return self
        rest = tuple(each for each in self.versions if each not in self.others)
        return self.others.get(version) or replace(self, versions=rest, others={})

    def component(self, name: str) -> ComponentProfile:
        """How the component is treated; one that the profile does not name is a worker."""
        found = self.components.get(name) or UNNAMED
        return replace(found, children="merged") if self.undefined_kinds else found


UNNAMED = ComponentProfile()
