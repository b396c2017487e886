"""The schema of a resource interface as types, shared by ResourceInterface and Karta."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from webhook.documents.read_model import Model

Mode = Literal["admission", "parity"]
"""How strictly a definition is read: for admission, or as upstream's library does."""


class KindName(Model):
    """A group, version and kind; which of them must be set depends on the place."""

    group: str | None = Field(default=None, description="API group; empty for the core group.")
    version: str | None = Field(default=None, description="Version in that group.")
    kind: str | None = Field(default=None, description="Kind, as objects name it.")


class FragmentPaths(Model):
    """Where the parts of a pod spec are that the kind spreads over its own fields."""

    scheduler_name_path: str | None = Field(
        default=None, description="jq path of the scheduler's name."
    )
    labels_path: str | None = Field(
        default=None, description="jq path of the labels that the pods get."
    )
    annotations_path: str | None = Field(
        default=None, description="jq path of the annotations that the pods get."
    )
    resources_path: str | None = Field(
        default=None, description="jq path of a container's requests and limits."
    )
    resource_claims_path: str | None = Field(
        default=None, description="jq path of the pod's resource claims."
    )
    pod_affinity_path: str | None = Field(default=None, description="jq path of the pod affinity.")
    node_affinity_path: str | None = Field(
        default=None, description="jq path of the node affinity."
    )
    containers_path: str | None = Field(
        default=None, description="jq path of the list of containers."
    )
    container_path: str | None = Field(
        default=None, description="jq path of the one container that matters."
    )
    priority_class_name_path: str | None = Field(
        default=None, description="jq path of the name of the priority class."
    )
    image_path: str | None = Field(
        default=None, description="jq path of the main container's image."
    )


class SpecPaths(Model):
    """Where the pods of a component are: one of three forms."""

    pod_template_spec_path: str | None = Field(
        default=None, description="jq path of pod templates (metadata and spec)."
    )
    pod_spec_path: str | None = Field(default=None, description="jq path of pod specs.")
    metadata_path: str | None = Field(
        default=None, description="jq path of the metadata that belong to podSpecPath."
    )
    fragmented_pod_spec_definition: FragmentPaths | None = None


class ScalePaths(Model):
    """Where the numbers of replicas are."""

    replicas_path: str | None = Field(
        default=None, description="jq path of the number that is wanted."
    )
    min_replicas_path: str | None = Field(
        default=None, description="jq path of the smallest number."
    )
    max_replicas_path: str | None = Field(
        default=None, description="jq path of the largest number."
    )


class PhasePath(Model):
    """Where the phase is."""

    path: str = Field(description="jq path of the phase.")


class ConditionsPath(Model):
    """Where the conditions are and how their members are called."""

    path: str = Field(description="jq path of the list of conditions.")
    type_field_name: str = Field(default="type", description="Key of a condition's type.")
    status_field_name: str = Field(default="status", description="Key of a condition's status.")
    message_field_name: str = Field(default="message", description="Key of a condition's message.")
    reason_field_name: str = Field(default="reason", description="Key of a condition's reason.")


class ConditionMatch(Model):
    """One condition that must be there."""

    type: str = Field(description="Type of the condition.")
    status: str | None = Field(
        default=None, description="Status that it must have; any when absent."
    )
    reason: str | None = Field(
        default=None, description="Reason that it must have; any when absent."
    )


class ExpressionMatch(Model):
    """A jq expression and the text that it must give; kept as text."""

    expression: str = Field(description="jq expression over the whole object.")
    expected_result: str = Field(description="Text that its first result must equal.")


class Matcher(Model):
    """All parts that are set must hold."""

    by_phase: str | None = Field(default=None, description="Phase that the workload must be in.")
    by_conditions: list[ConditionMatch] = Field(
        default_factory=list, description="Conditions that must all be there."
    )
    by_expression: ExpressionMatch | None = None


class StatusMappings(Model):
    """For each status its matchers, of which one must hold."""

    initializing: list[Matcher] = Field(default_factory=list, description="When it is starting.")
    running: list[Matcher] = Field(default_factory=list, description="When it runs.")
    completed: list[Matcher] = Field(default_factory=list, description="When it has ended well.")
    failed: list[Matcher] = Field(default_factory=list, description="When it has ended badly.")
    degraded: list[Matcher] = Field(
        default_factory=list, description="When it runs with parts missing."
    )
    suspending: list[Matcher] = Field(
        default_factory=list, description="When it is being suspended."
    )
    suspended: list[Matcher] = Field(default_factory=list, description="When it is suspended.")
    resuming: list[Matcher] = Field(
        default_factory=list, description="When it goes on after a suspension."
    )


class StatusPaths(Model):
    """How the status of the workload is read."""

    phase_definition: PhasePath | None = None
    conditions_definition: ConditionsPath | None = None
    status_mappings: StatusMappings


class TypeSelector(Model):
    """Which pods are of the component."""

    key_path: str | None = Field(
        default=None, description="jq path in a pod that finds something in pods of the component."
    )
    value: str | None = Field(default=None, description="What the path must find.")
    match_labels: dict[str, str] | None = Field(
        default=None, min_length=1, description="Labels that pods of the component have."
    )


class InstanceSelector(Model):
    """Where a pod names its instance."""

    id_path: str = Field(description="jq path in a pod of the id of its instance.")


class ReplicaSelector(Model):
    """Where a pod names its replica."""

    key_path: str = Field(description="jq path in a pod of what identifies its replica.")


class PodSelector(Model):
    """How the pods of a component are recognised."""

    component_type_selector: TypeSelector | None = None
    component_instance_selector: InstanceSelector | None = None
    replica_selector: ReplicaSelector | None = None


class SuspendAction(Model):
    """A value to write; `value` is text that holds JSON, or the JSON itself."""

    path: str = Field(description="jq path of the value to change.")
    value: Any = Field(description='JSON as text, such as "true" in quotes, or the JSON itself.')


class SuspendPaths(Model):
    """What suspends the workload and what lets it go on."""

    suspend_actions: list[SuspendAction] = Field(
        min_length=1, description="What is written to suspend, in this order."
    )
    resume_actions: list[SuspendAction] = Field(
        min_length=1, description="What is written to go on, in this order."
    )


class ComponentModel(Model):
    """A part of the workload."""

    name: str = Field(default="", description="Name of the component, unique in the definition.")
    kind: KindName | None = None
    owner_ref: str | None = Field(
        default=None,
        description="Name of the component that this one belongs to; the root has none.",
    )
    spec_definition: SpecPaths | None = None
    scale_definition: ScalePaths | None = None
    status_definition: StatusPaths | None = None
    instance_id_path: str | None = Field(
        default=None,
        description="jq path of the ids of the instances, one for each path to its pods.",
    )
    pod_selector: PodSelector | None = None
    suspend_definition: SuspendPaths | None = None


class Member(Model):
    """A component in a pod group; paths and filters are kept as text."""

    component_name: str = Field(description="Name of a component.")
    group_by_key_paths: list[str] = Field(
        default_factory=list,
        description="jq paths in a pod; pods with equal results are one group.",
    )
    filters: list[str] = Field(
        default_factory=list, description="jq expressions in a pod, all of which must be true."
    )


class PodGroups(Model):
    """Pods that are scheduled together."""

    name: str = Field(description="Name of the group.")
    members: list[Member] = Field(description="Components whose pods are in the group.")


class Topology(Model):
    """How close the pods are to be."""

    topology_name: str = Field(description="Name of the topology.")
    required_topology_level: str = Field(description="Level that all pods must share.")
    preferred_topology_level: str = Field(description="Level that pods should share.")


class SubGroup(Model):
    """A component inside the newer pod group."""

    component_name: str = Field(description="Name of the component.")
    topology: Topology | None = None


class PodGroup(Model):
    """The newer form of a pod group."""

    name: str = Field(description="Name of the group.")
    sub_groups: list[SubGroup] = Field(
        default_factory=list, description="Components inside the group."
    )
    topology: Topology | None = None


class GangScheduling(Model):
    """Both forms of pod groups."""

    pod_groups: list[PodGroups] = Field(
        default_factory=list, description="Groups of pods in the older form."
    )
    pod_group: PodGroup | None = None


class OptimizationInstructions(Model):
    """What schedulers are told about the kind."""

    gang_scheduling: GangScheduling | None = None


class StructureDefinition(Model):
    """The components of the kind."""

    root_component: ComponentModel
    child_components: list[ComponentModel] = Field(
        default_factory=list, description="All components but the root."
    )
    additional_child_kinds: list[KindName] = Field(
        default_factory=list, description="Further kinds that the controller makes."
    )


class InterfaceSpec(Model):
    """The body of a resource interface."""

    structure_definition: StructureDefinition
    optimization_instructions: OptimizationInstructions | None = None
