"""A workload profile: where policy fields are in a kind.

A profile complements the kind's resource interface and uses its component names. All paths are
native jq paths from the object's root, and can match several times. `profile_document.py` reads
the document into these classes. The text under a member is its description in the CRD, in the
JSON Schema and in docs/documents.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from webhook.documents.model import DocumentPart, NotWritten, WrittenAs, fault
from webhook.interface.fragment import FragmentSpec
from webhook.interface.injected_items import Injected
from webhook.interface.interface import Interface
from webhook.interface.profile_forms import (
    Bound,
    Count,
    Flag,
    Folded,
    GroupKind,
    Kinds,
    MaybePlace,
    Place,
    Places,
    PodPlace,
    Texts,
    TextSet,
    folded,
    listed,
    pair,
    read_content,
)
from webhook.jq.path import Program
from webhook.objects.path import Path
from webhook.policy.row import WorkloadType

Children = Literal["derived", "merged"]
Role = Literal["master", "worker", "leader"]
Notation = Literal[
    "text",
    "duration",
    "plusOne",
    "clusterLocal",
    "metricName",
    "disruptionRule",
    "disruptionRuleOfJob",
    "anyTrue",
    "enabledRoute",
    "unlimitedZero",
    "accessMode:ReadWriteOnce",
    "accessMode:ReadOnlyMany",
    "accessMode:ReadWriteMany",
    "accessMode:ReadWriteOncePod",
]


def one_convention(main: MainConvention) -> MainConvention:
    """Check that a convention has exactly one rule."""
    if [main.name is None, main.index is None, not main.with_ports].count(False) != 1:
        found = "no rule or several for the main container"
        raise fault("main-container", found, "set one of `name`, `index` and `withPorts`")
    return main


@dataclass(frozen=True, slots=True)
class MainConvention(DocumentPart):
    """How the kind marks its main container: one of name, index and withPorts."""

    name: Annotated[str | None, Field(min_length=1)] = None
    """Name of the container."""
    index: Annotated[int | None, Strict(), Field(ge=0)] = None
    """Number of the container, from 0."""
    with_ports: Flag = False
    """The first container that has ports."""
    named_at: MaybePlace = None
    """Path of the container's name in the object."""
    place: Annotated[Path | None, NotWritten()] = None
    # For one pod: a container outside its spec. It overrides the rules above.


@dataclass(frozen=True, slots=True)
class Roles(DocumentPart):
    """Roles by the name of the instance, compared without case."""

    by_instance: Mapping[Folded, Role]
    """The role of each instance."""
    otherwise: Role = "worker"
    """The role of all others."""


@dataclass(frozen=True, slots=True)
class Groups(DocumentPart):
    """Groups of instances. The replicas of an instance are multiplied by those of its group."""

    lists: Place
    """Path of the instance names of each group, one list deeper than the paths of the numbers."""
    replicas: Place
    """The number of replicas of the group."""
    minimum: MaybePlace = None
    """The smallest number of replicas of the group."""
    maximum: MaybePlace = None
    """The largest number of replicas of the group."""
    absent: Count = 1
    """The number of replicas if the group sets none."""


@dataclass(frozen=True, slots=True)
class ScaleRules(DocumentPart):
    """Rules on replicas that the interface's scale paths do not express."""

    absent: Annotated[int | None, Strict(), Field(ge=0)] = None
    """Number of replicas if the object sets none."""
    absent_of: Mapping[Folded, Count] = field(default_factory=dict)
    """Other numbers for some instances, compared without case."""
    instance: Annotated[str | None, AfterValidator(folded)] = None
    """The bounds below apply to this instance only."""
    minimum: Bound = None
    """The smallest number; can be computed."""
    maximum: Bound = None
    """The largest number; can be computed."""
    maximum_only_with: MaybePlace = None
    """The maximum applies only while the value at this path is true."""
    unlimited: Flag = False
    """A maximum that is absent or 0 means no limit."""
    none_while: Places = ()
    """There are no pods while one of these paths finds a value."""
    unlimited_while: MaybePlace = None
    """There is no limit while this path finds a value."""
    pods_of: str = ""
    """Another component with the same pods, which the object sets twice. It has their number."""
    groups: tuple[Groups, ...] = ()
    """Groups that multiply the instances that they list. They have their own minimum and maximum."""


@dataclass(frozen=True, slots=True)
class ComponentProfile(DocumentPart):
    """Properties of one component."""

    one_role: Annotated[Role | None, Field(alias="role")] = None
    """The role of its pods: worker when absent."""
    many_roles: Annotated[Roles | None, Field(alias="roles")] = None
    """Roles by the name of the instance, instead of role."""
    main: Annotated[
        MainConvention, Field(alias="mainContainer"), AfterValidator(one_convention)
    ] = MainConvention()
    """The container that runs the workload; absent: the kind has no convention."""
    children: Children = "derived"
    """derived: the controller copies the component to its children. merged: children get other values too."""
    merged_with: MaybePlace = None
    """The children are merged while this path is set."""
    leader_with: MaybePlace = None
    """The role is leader while this path is set."""
    stands_in_for: str = ""
    """While this other component has no pods, the pods here have its role too, by instance."""
    makes: Kinds = frozenset()
    """Kinds that the controller creates directly, and only for such components."""
    without_template: Flag = False
    """The containers outside the template make a pod even if the object has no template."""
    scale: ScaleRules = ScaleRules()
    """Rules on replicas that the interface's scale paths do not express."""

    @property
    def role(self) -> str:
        """The role of instances without a role of their own."""
        return self.many_roles.otherwise if self.many_roles else self.one_role or "worker"

    @property
    def by_instance(self) -> Mapping[str, Role]:
        """The roles of instances, by their names in lower case."""
        return self.many_roles.by_instance if self.many_roles else {}

    def roles(self, instance: str) -> tuple[str, ...]:
        """Return the roles of the instance with this name."""
        return (self.by_instance.get(instance.casefold(), self.role),)


@dataclass(frozen=True, slots=True)
class ScaleOf(DocumentPart):
    """The sum of a component's replicas, or of one of its instances."""

    component: str
    """Name of the component."""
    instance: str | None = None
    """Name of the instance, compared without case; absent: all of them."""


@dataclass(frozen=True, slots=True)
class ScaleSubresource(ScaleOf):
    """What a `scale` request sets: the replicas of a component, or a field of the workload."""

    component: str = ""
    """Name of the component."""
    field: str = ""
    """The field of the workload, one of `fields`, if the number belongs to no component."""


@dataclass(frozen=True, slots=True)
class AbsentIsUnlimited(DocumentPart):
    """Without a value there is no limit, which violates `max`."""

    source: Annotated[str, Field(min_length=1)]
    """Where the operator's source code shows this."""
    needs_parent: Flag = False
    """Applies only if the parent object is set; else wherever the limited component is set."""
    only_with: MaybePlace = None
    """Applies only while this path is set and not false."""
    even_if_set: Flag = False
    """The operator ignores the limit in this case, even if a number is set."""


@dataclass(frozen=True, slots=True)
class FieldPlaces(DocumentPart):
    """The path of a field of the workload: one of places, scaleOf, derived and mainPort."""

    places: Places = ()
    """Paths of the field. Rules apply to all of them. A field that pods take from the workload if
    they do not set it can have its path here, and is evaluated there."""
    write: Places = ()
    """The paths, among several, that a default is written to."""
    only_with: MaybePlace = None
    """A default is written only if this path is set: a default never creates this parent."""
    not_with: MaybePlace = None
    """No default is written while this path is set and not false."""
    first_counts: Flag = False
    """In each element, only the first path that is set counts."""
    scale_of: ScaleOf | None = None
    """The value is the sum of a component's replicas."""
    derived: str | None = None
    """The value for every object of the kind."""
    notation: Annotated[tuple[Notation, ...], Field(alias="as"), BeforeValidator(listed)] = ()
    """The notation of the value in the object, if it differs from the policy field. text: a number as
    text; duration: seconds as "30s"; accessMode:<Mode>: true as that mode; clusterLocal: true as that
    word; metricName: throughput as rps; disruptionRule: true as a failure rule; disruptionRuleOfJob:
    the same, completed by the server; anyTrue: one of several switches or objects; enabledRoute:
    http or grpc by the switch that is on; unlimitedZero: 0 violates any max; plusOne: the number in
    the object plus one."""
    allows: Texts = ()
    """The values that the kind accepts. Any other default is reported and not written."""
    main_port: Texts = ()
    """Components with the field in the first port of the main container."""
    absent_is_unlimited: AbsentIsUnlimited | None = None
    """Without a value there is no limit."""


@dataclass(frozen=True, slots=True)
class PriorityClass(DocumentPart):
    """Other paths of the priority class."""

    second_places: Places = ()
    """Paths besides the labels and the pod spec."""


@dataclass(frozen=True, slots=True)
class ExtraContainer(DocumentPart):
    """A container outside the templates that runs in a component's pods."""

    component: str
    """Name of the component."""
    place: Place
    """Path of the container. With the same `[]` as the component, it belongs to that instance."""
    only_in: tuple[str, ...] = ()
    """Versions that have the container; absent: all."""
    main: Flag = False
    """Whether it is the pod's main container."""
    note: str = ""
    """When the container runs."""


@dataclass(frozen=True, slots=True)
class NotPod(DocumentPart):
    """A path whose schema looks like a pod, but is not."""

    place: Place
    """The path."""
    reason: Annotated[str, Field(min_length=1)]
    """What the path has instead."""


@dataclass(frozen=True, slots=True)
class PodSets(DocumentPart):
    """The numbers of pods of an embedded object, if they are set outside that object."""

    path: MaybePlace
    """Path that returns the paths of pod templates as text, relative to the list element of the
    embedded object."""
    replicas: MaybePlace = None
    """Path of the number of pods of each template."""


@dataclass(frozen=True, slots=True)
class Embedded(DocumentPart):
    """A path of whole objects. podgate evaluates each by the definition of its own kind."""

    place: Place
    """Path of the objects."""
    sets: Annotated[PodSets, Field(alias="podSets")] = PodSets(None)
    """The numbers of their pods, if they are set outside the objects."""
    podless: Kinds = frozenset()
    """Kinds without pods, which need no definition at this path."""

    @property
    def pod_sets(self) -> Program | None:
        """The path that returns the paths of pod templates as text."""
        return self.sets.path

    @property
    def replicas(self) -> Program | None:
        """The path of the number of pods of each template."""
        return self.sets.replicas


@dataclass(frozen=True, slots=True)
class ForbiddenField(DocumentPart):
    """A field that the kind rejects."""

    field: str
    """Name of the field."""
    unless: str = ""
    """The cluster feature that allows it."""
    reason: str = ""
    """Why the kind rejects the field."""


@dataclass(frozen=True, slots=True)
class ShadowDefault(DocumentPart):
    """A default of the CRD or the operator. Offline, podgate writes it before it evaluates the object.
    In a cluster, podgate does not take it for a user's value."""

    place: Annotated[Place, Field(alias="path")]
    """Path of the value. Parent objects must exist; the value `{}` creates one."""
    by: Literal["crd", "operator"]
    """What sets the default: the CRD's schema or the operator's webhook."""
    value: Any = None
    """The value."""
    same_as: MaybePlace = None
    """Instead of value: another path of the same element, whose value is copied."""
    zero_too: Flag = False
    """The operator also replaces 0, because its Go type does not distinguish 0 from absent."""


@dataclass(frozen=True, slots=True)
class Immutable(DocumentPart):
    """A path that updates cannot change."""

    place: Place
    """The path."""
    exceptions: Annotated[Places, Field(alias="except")] = ()
    """Paths below it that updates can change."""


NEVER_PODS = ("", "resource.k8s.io")


@dataclass(frozen=True, slots=True)
class Reference(DocumentPart):
    """A field that names another object."""

    place: Place
    """Path of the name."""
    group: str
    """API group of the other object."""
    kind: Annotated[str, Field(min_length=1)]
    """Kind of the other object."""
    kind_place: MaybePlace = None
    """Path of the kind, if the object can name another kind."""
    implied_by: MaybePlace = None
    """While this path is set but names no object, a controller chooses one."""
    explicit_pods: Annotated[bool | None, Strict(), Field(alias="pods")] = None
    """Whether pods, or fragments of pods, come from the other object, which is a warning; absent: true
    for all kinds except those of the core group and claims."""
    note: str = ""
    """What is special about the reference."""

    @property
    def pods(self) -> bool:
        """Whether pods, or fragments of pods, come from the other object."""
        if self.explicit_pods is not None:
            return self.explicit_pods
        # References to these groups name volumes, secrets and claims. PodTemplate is the exception.
        return self.group not in NEVER_PODS or self.kind == "PodTemplate"


@dataclass(frozen=True, slots=True)
class PodText(DocumentPart):
    """A text that changes pods. podgate does not evaluate it, and warns."""

    place: Place
    """Path of the text, or of a map of texts."""
    keys: tuple[str, ...] = ()
    """Prefixes of keys, for a map: other keys do not change pods."""
    note: str = ""
    """What the text changes."""


@dataclass(frozen=True, slots=True)
class Reserved(DocumentPart):
    """A path that is copied to the pods, and that only a controller can write."""

    place: Place
    """The path."""
    writer: Annotated[str, Field(min_length=1)]
    """Name of the controller. The installation trusts it."""


@dataclass(frozen=True, slots=True)
class Steering(DocumentPart):
    """Metadata of the workload that changes its pods."""

    labels: TextSet = frozenset()
    """Keys of labels."""
    annotations: TextSet = frozenset()
    """Keys of annotations."""


@dataclass(frozen=True, slots=True)
class SharedClaims(DocumentPart):
    """Device claims that pods share, set outside the pods."""

    claims: Places
    """Paths of {name, namespace} of a template, {name, templateSpec}, or an object."""
    templates: Places = ()
    """Paths of templates, {name, templateSpec}."""
    only_for: Places = ()
    """Paths of the names of the instances that get a claim, next to the claim or above it; absent: all."""


@dataclass(frozen=True, slots=True)
class PodFragment(DocumentPart):
    """One fragment of a pod, for kinds without a pod template."""

    component: str
    """Name of the component."""
    pod: PodPlace
    """Path in the pod: a plain path, with at most one `[]`."""
    place: Place
    """Path in the object."""
    form: str = "same"
    """Form in the object: `same`, `image`, `names`, `also`, `items`, `more`, `readOnly`, `variables`,
    `mark`, `item`, `seen`, `told`, or a form of the profile's assembler."""
    absent: Any = None
    """Value that the operator uses if the object sets none."""
    makes_pod: Flag = False
    """Whether the fragment makes a pod. If some fragments do, there is no pod without one of them."""


@dataclass(frozen=True, slots=True)
class Profile(DocumentPart):
    """Where policy fields are in a kind."""

    group: str
    """API group, "" for the core group."""
    kind: Annotated[str, Field(min_length=1)]
    """The kind of the objects."""
    versions: Annotated[tuple[str, ...], Field(min_length=1)]
    """Versions that the profile covers. They have the same layout, except for perVersion."""
    resource: Annotated[str, Field(min_length=1)]
    """Plural name. It identifies the kind in scale requests."""
    workload_type: WorkloadType | None = None
    """Type of the workload; absent: policies select it by group and kind only."""
    built_in: Flag = False
    """Whether the API server sets defaults for the kind."""
    defaults_of: Annotated[tuple[str, str] | None, WrittenAs(GroupKind, pair)] = None
    """A built-in kind. After shadowDefaults, the operator's webhook sets the same defaults as the API
    server sets for that kind."""
    uncovered: Literal["deny", "warn"] = "deny"
    """What podgate does about containers at unknown paths."""
    components: Mapping[str, ComponentProfile] = field(default_factory=dict)
    """Properties of components, by their name in the resource interface."""
    fields: Mapping[str, FieldPlaces] = field(default_factory=dict)
    """Paths of workload-level fields of the catalogue, by name."""
    priority_class: PriorityClass = PriorityClass()
    """Other paths of the priority class."""
    extra_containers: tuple[ExtraContainer, ...] = ()
    """Containers outside the templates."""
    not_pods: tuple[NotPod, ...] = ()
    """Paths whose schema looks like a pod, but is not."""
    embedded: tuple[Embedded, ...] = ()
    """Paths of whole objects of other kinds."""
    forbidden_fields: tuple[ForbiddenField, ...] = ()
    """Fields that the kind rejects."""
    shadow_defaults: tuple[ShadowDefault, ...] = ()
    """Defaults of the CRD or the operator's webhook, in this order."""
    immutable: tuple[Immutable, ...] = ()
    """Paths that updates cannot change."""
    intermediate_kinds: Kinds = frozenset()
    """Kinds between the workload and its pods. If one of them has no definition, all children are
    merged."""
    controllers: TextSet = frozenset()
    """Exact user names of the kind's controllers."""
    references: tuple[Reference, ...] = ()
    """Fields that name other objects."""
    pod_texts: tuple[PodText, ...] = ()
    """Texts that change pods."""
    reserved: tuple[Reserved, ...] = ()
    """Paths that only a controller can write."""
    adds: Annotated[Injected, WrittenAs(dict[str, list[dict[str, Any]]], read_content)] = field(
        default_factory=Injected
    )
    """Content that the operator adds to its pods: {containers, items} in the form of the setting for
    injected content."""
    cluster_scoped: Flag = False
    """Whether objects of the kind have no namespace. The webhook does not receive them."""
    scale_subresource: ScaleSubresource | None = None
    """What a `scale` request sets."""
    steering: Steering = Steering()
    """Metadata of the workload that changes its pods."""
    open_subtrees: Places | None = None
    """Paths that the schema leaves open. podgate searches them for pods; absent: the whole object."""
    name_label: str = ""
    """The label that the kind's controller sets on pods to the name of the workload."""
    claim_templates: Places = ()
    """Paths of claims that become volumes of the pods, or of {mountPath, volumeClaimName or
    volumeClaim} for all containers, or of {claimName or size, storageClassName, …}, none if enabled
    is false."""
    shared_claims: tuple[SharedClaims, ...] = ()
    """Device claims that pods share."""
    pod_security_context: Flag = True
    """false: defaults of the pod's security context are written to its containers."""
    assembler: str = ""
    """The project whose own forms podParts uses: `devfile`, `flux`, `kubevirt`, `nim`, `spark` or
    `tekton`."""
    pod_parts: tuple[PodFragment, ...] = ()
    """The fragments of pods, for kinds without a pod template."""
    per_version: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Changes for one of `versions`: whole sections, or single entries of fields and components (null
    removes an entry). Each such version has its own resource interface."""
    name: Annotated[str, NotWritten()] = ""
    origin: Annotated[str, NotWritten()] = ""
    others: Annotated[Mapping[str, Profile], NotWritten()] = field(default_factory=dict)
    # Versions with a profile and an interface of their own.
    fragments: Annotated[Mapping[str, tuple[FragmentSpec, ...]], NotWritten()] = field(
        default_factory=dict
    )
    # The fragments of pods by component.
    undefined_kinds: Annotated[frozenset[tuple[str, str]], NotWritten()] = frozenset()
    # Intermediate kinds without a definition, known after reading all documents. If there is one,
    # children of every component are merged.

    def of_version(self, version: str) -> Profile:
        """Return the profile for a version: its own, or this one for the remaining versions."""
        if not self.others:
            return self
        rest = tuple(each for each in self.versions if each not in self.others)
        return self.others.get(version) or replace(self, versions=rest, others={})

    def component(self, name: str) -> ComponentProfile:
        """Return the properties of a component. One that the profile does not name is a worker."""
        found = self.components.get(name) or UNNAMED
        return replace(found, children="merged") if self.undefined_kinds else found


UNNAMED = ComponentProfile()


def without_profile(interface: Interface) -> Profile:
    """Return the profile of a kind without profile: workers, no workload fields, no known subtrees."""
    return Profile(interface.group, interface.kind, (interface.version,), "")
