"""The schema of a resource interface as types, shared by ResourceInterface and Karta."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from webhook.core.workload.typed import Model


class KindName(Model):
    """A group, version and kind; which of them must be set depends on the place."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None


class FragmentPaths(Model):
    """Where the parts of a pod spec are that the kind spreads over its own fields."""

    scheduler_name_path: str | None = None
    labels_path: str | None = None
    annotations_path: str | None = None
    resources_path: str | None = None
    resource_claims_path: str | None = None
    pod_affinity_path: str | None = None
    node_affinity_path: str | None = None
    containers_path: str | None = None
    container_path: str | None = None
    priority_class_name_path: str | None = None
    image_path: str | None = None


class SpecPaths(Model):
    """Where the pods of a component are: one of three forms."""

    pod_template_spec_path: str | None = None
    pod_spec_path: str | None = None
    metadata_path: str | None = None
    fragmented_pod_spec_definition: FragmentPaths | None = None


class ScalePaths(Model):
    """Where the numbers of replicas are."""

    replicas_path: str | None = None
    min_replicas_path: str | None = None
    max_replicas_path: str | None = None


class PhasePath(Model):
    """Where the phase is."""

    path: str


class ConditionsPath(Model):
    """Where the conditions are and how their members are called."""

    path: str
    type_field_name: str = "type"
    status_field_name: str = "status"
    message_field_name: str = "message"
    reason_field_name: str = "reason"


class ConditionMatch(Model):
    """One condition that must be there."""

    type: str
    status: str | None = None
    reason: str | None = None


class ExpressionMatch(Model):
    """A jq expression and the text that it must give; kept as text."""

    expression: str
    expected_result: str


class Matcher(Model):
    """All parts that are set must hold."""

    by_phase: str | None = None
    by_conditions: list[ConditionMatch] = Field(default_factory=list)
    by_expression: ExpressionMatch | None = None


class StatusMappings(Model):
    """For each status its matchers, of which one must hold."""

    initializing: list[Matcher] = Field(default_factory=list)
    running: list[Matcher] = Field(default_factory=list)
    completed: list[Matcher] = Field(default_factory=list)
    failed: list[Matcher] = Field(default_factory=list)
    degraded: list[Matcher] = Field(default_factory=list)
    suspending: list[Matcher] = Field(default_factory=list)
    suspended: list[Matcher] = Field(default_factory=list)
    resuming: list[Matcher] = Field(default_factory=list)


class StatusPaths(Model):
    """How the status of the workload is read."""

    phase_definition: PhasePath | None = None
    conditions_definition: ConditionsPath | None = None
    status_mappings: StatusMappings


class TypeSelector(Model):
    """Which pods are of the component."""

    key_path: str | None = None
    value: str | None = None
    match_labels: dict[str, str] | None = Field(None, min_length=1)


class InstanceSelector(Model):
    """Where a pod names its instance."""

    id_path: str


class ReplicaSelector(Model):
    """Where a pod names its replica."""

    key_path: str


class PodSelector(Model):
    """How the pods of a component are recognised."""

    component_type_selector: TypeSelector | None = None
    component_instance_selector: InstanceSelector | None = None
    replica_selector: ReplicaSelector | None = None


class SuspendAction(Model):
    """A value to write; `value` is text that holds JSON, or the JSON itself."""

    path: str
    value: Any


class SuspendPaths(Model):
    """What suspends the workload and what lets it go on."""

    suspend_actions: list[SuspendAction] = Field(min_length=1)
    resume_actions: list[SuspendAction] = Field(min_length=1)


class ComponentModel(Model):
    """A part of the workload."""

    name: str = ""
    kind: KindName | None = None
    owner_ref: str | None = None
    spec_definition: SpecPaths | None = None
    scale_definition: ScalePaths | None = None
    status_definition: StatusPaths | None = None
    instance_id_path: str | None = None
    pod_selector: PodSelector | None = None
    suspend_definition: SuspendPaths | None = None


class Member(Model):
    """A component in a pod group; paths and filters are kept as text."""

    component_name: str
    group_by_key_paths: list[str] = Field(default_factory=list)
    filters: list[str] = Field(default_factory=list)


class PodGroups(Model):
    """Pods that are scheduled together."""

    name: str
    members: list[Member]


class Topology(Model):
    """How close the pods are to be."""

    topology_name: str
    required_topology_level: str
    preferred_topology_level: str


class SubGroup(Model):
    """A component inside the newer pod group."""

    component_name: str
    topology: Topology | None = None


class PodGroup(Model):
    """The newer form of a pod group."""

    name: str
    sub_groups: list[SubGroup] = Field(default_factory=list)
    topology: Topology | None = None


class GangScheduling(Model):
    """Both forms of pod groups."""

    pod_groups: list[PodGroups] = Field(default_factory=list)
    pod_group: PodGroup | None = None


class OptimizationInstructions(Model):
    """What schedulers are told about the kind."""

    gang_scheduling: GangScheduling | None = None


class StructureDefinition(Model):
    """The components of the kind."""

    root_component: ComponentModel
    child_components: list[ComponentModel] = Field(default_factory=list)
    additional_child_kinds: list[KindName] = Field(default_factory=list)


class InterfaceSpec(Model):
    """The body of a resource interface."""

    structure_definition: StructureDefinition
    optimization_instructions: OptimizationInstructions | None = None
