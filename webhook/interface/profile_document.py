"""The schema of a WorkloadProfile as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from webhook.documents.read_model import Model
from webhook.interface.fragment import Form

Role = Literal["master", "worker", "leader"]
Written = Literal[
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


def listed(value: Any) -> Any:
    """One text where a list of texts may stand."""
    return [value] if isinstance(value, str) else value


Paths = Annotated[list[str], BeforeValidator(listed)]
Words = Annotated[list[Written], BeforeValidator(listed)]


class RolesModel(Model):
    """Roles by the name of the instance, compared without case."""

    by_instance: dict[str, Role]
    otherwise: Role = "worker"


class MainContainerModel(Model):
    """Which container runs the workload by the kind's convention."""

    name: str | None = Field(None, min_length=1)
    index: int | None = Field(None, ge=0)
    with_ports: bool = False
    named_at: str | None = None


class GroupsModel(Model):
    """Groups of instances that multiply what each of them states."""

    lists: str
    replicas: str
    minimum: str | None = None
    maximum: str | None = None
    absent: int = Field(1, ge=0)


class ScaleModel(Model):
    """What the object's scale paths do not say."""

    absent: int | None = Field(None, ge=0)
    absent_of: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    instance: str | None = None
    minimum: str | None = None
    maximum: str | None = None
    maximum_only_with: str | None = None
    unlimited: bool = False
    none_while: Paths = Field(default_factory=list)
    unlimited_while: str | None = None
    pods_of: str | None = None
    groups: list[GroupsModel] = Field(default_factory=list)


class SharedClaimsModel(Model):
    """Claims of devices that pods share, stated beside them."""

    claims: Paths
    templates: Paths = Field(default_factory=list)
    only_for: Paths = Field(default_factory=list)


class KindModel(Model):
    """A kind that stands between the workload and its pods."""

    group: str
    kind: str = Field(min_length=1)


class ComponentProfileModel(Model):
    """How one component is treated."""

    role: Role | None = None
    roles: RolesModel | None = None
    main_container: MainContainerModel | None = None
    children: Literal["derived", "merged"] = "derived"
    merged_with: str | None = None
    leader_with: str | None = None
    stands_in_for: str | None = None
    makes: list[KindModel] = Field(default_factory=list)
    without_template: bool = False
    scale: ScaleModel | None = None


class ScaleOfModel(Model):
    """A number that is the sum of a component's replicas."""

    component: str
    instance: str | None = None


class AbsentIsUnlimitedModel(Model):
    """Why a limit that is left out is none, and while what it is one at all."""

    source: str = Field(min_length=1)
    needs_parent: bool = False
    only_with: str | None = None
    even_if_set: bool = False


class FieldModel(Model):
    """Where a workload-level policy field is."""

    places: Paths = Field(default_factory=list)
    write: Paths = Field(default_factory=list)
    only_with: str | None = None
    not_with: str | None = None
    first_counts: bool = False
    scale_of: ScaleOfModel | None = None
    derived: str | None = None
    as_: Words = Field(default_factory=list, alias="as")
    allows: Paths = Field(default_factory=list)
    main_port: Paths = Field(default_factory=list)
    absent_is_unlimited: AbsentIsUnlimitedModel | None = None


class PriorityClassModel(Model):
    """Places of the priority class beside the labels and the pod spec."""

    second_places: Paths = Field(default_factory=list)


class ExtraContainerModel(Model):
    """A container outside the templates that runs in a component's pods."""

    component: str
    place: str
    only_in: list[str] = Field(default_factory=list)
    main: bool = False
    note: str | None = None


class NotPodModel(Model):
    """A place that looks like pods and is none."""

    place: str
    reason: str = Field(min_length=1)


class ForbiddenFieldModel(Model):
    """A field that the kind refuses, and the cluster feature that allows it."""

    field: str
    unless: str | None = None
    reason: str | None = None


class ShadowDefaultModel(Model):
    """A value that the CRD's schema or the operator's webhook fills in."""

    path: str
    value: Any = None
    same_as: str | None = None
    zero_too: bool = False
    by: Literal["crd", "operator"]


class ImmutableModel(Model):
    """A place that updates may not change."""

    place: str
    except_: Paths = Field(default_factory=list, alias="except")


class ReferenceModel(Model):
    """A field that names another object."""

    place: str
    group: str
    kind: str = Field(min_length=1)
    kind_place: str | None = None
    implied_by: str | None = None
    pods: bool | None = None
    note: str | None = None


class PodTextModel(Model):
    """A place whose text changes pods; of a map only keys that begin in one of these ways."""

    place: str
    keys: list[str] = Field(default_factory=list)
    note: str | None = None


class ReservedModel(Model):
    """A place that ends in the pods and that only a controller may write, with who that is."""

    place: str
    writer: str = Field(min_length=1)


class ScaleSubresourceModel(Model):
    """What `scale` sets: the replicas of a component, or a field of the workload."""

    component: str | None = None
    instance: str | None = None
    field: str | None = None


class SteeringModel(Model):
    """Metadata of the workload that changes what its pods become."""

    labels: list[str] = Field(default_factory=list)
    annotations: list[str] = Field(default_factory=list)


class PodPartModel(Model):
    """One piece of a pod that the kind states one by one."""

    component: str
    pod: str
    place: str
    form: Form = "same"
    absent: Any = None
    makes_pod: bool = False


class PodSetsModel(Model):
    """Where the object says how many pods of which template of a wrapped object there are."""

    path: str
    replicas: str | None = None


class EmbeddedModel(Model):
    """A place of a whole object of another kind."""

    place: str
    pod_sets: PodSetsModel | None = None
    podless: list[KindModel] = Field(default_factory=list)


class ProfileSpec(Model):
    """The body of a WorkloadProfile."""

    group: str
    kind: str = Field(min_length=1)
    versions: list[str] = Field(min_length=1)
    resource: str = Field(min_length=1)
    workload_type: (
        Literal[
            "workspace",
            "training",
            "distributed",
            "inference",
            "distributedInference",
            "nimService",
        ]
        | None
    ) = None
    built_in: bool = False
    defaults_of: KindModel | None = None
    uncovered: Literal["deny", "warn"] = "deny"
    components: dict[str, ComponentProfileModel] = Field(default_factory=dict)
    fields_: dict[str, FieldModel] = Field(default_factory=dict, alias="fields")
    priority_class: PriorityClassModel = Field(default_factory=PriorityClassModel)
    extra_containers: list[ExtraContainerModel] = Field(default_factory=list)
    not_pods: list[NotPodModel] = Field(default_factory=list)
    embedded: list[EmbeddedModel] = Field(default_factory=list)
    forbidden_fields: list[ForbiddenFieldModel] = Field(default_factory=list)
    shadow_defaults: list[ShadowDefaultModel] = Field(default_factory=list)
    immutable: list[ImmutableModel] = Field(default_factory=list)
    intermediate_kinds: list[KindModel] = Field(default_factory=list)
    controllers: list[str] = Field(default_factory=list)
    references: list[ReferenceModel] = Field(default_factory=list)
    pod_texts: list[PodTextModel] = Field(default_factory=list)
    reserved: list[ReservedModel] = Field(default_factory=list)
    adds: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)
    cluster_scoped: bool = False
    scale_subresource: ScaleSubresourceModel | None = None
    steering: SteeringModel = Field(default_factory=SteeringModel)
    open_subtrees: Paths | None = None
    name_label: str | None = None
    claim_templates: Paths = Field(default_factory=list)
    shared_claims: list[SharedClaimsModel] = Field(default_factory=list)
    pod_security_context: bool = True
    pod_parts: list[PodPartModel] = Field(default_factory=list)
    per_version: dict[str, dict[str, Any]] = Field(default_factory=dict)
