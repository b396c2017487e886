"""The schema of a resource interface as types, shared by ResourceInterface and Karta."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from webhook.documents.model import Model

Mode = Literal["admission", "parity"]
"""How strictly a definition is read: for admission, or like the upstream library."""


class KindName(Model):
    """A group, version and kind. Which of them are required depends on the path."""

    group: str | None = Field(default=None, description="API group; empty for the core group.")
    version: str | None = Field(default=None, description="Version in that group.")
    kind: str | None = Field(default=None, description="The kind of the objects.")


class FragmentPaths(Model):
    """Paths of the fragments of a pod spec, for kinds without a pod template."""

    scheduler_name_path: str | None = Field(
        default=None, description="jq path of the scheduler's name."
    )
    labels_path: str | None = Field(default=None, description="jq path of the labels of the pods.")
    annotations_path: str | None = Field(
        default=None, description="jq path of the annotations of the pods."
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
    container_path: str | None = Field(default=None, description="jq path of the main container.")
    priority_class_name_path: str | None = Field(
        default=None, description="jq path of the name of the priority class."
    )
    image_path: str | None = Field(
        default=None, description="jq path of the main container's image."
    )


class SpecPaths(Model):
    """Paths of the pods of a component, in one of three forms."""

    pod_template_spec_path: str | None = Field(
        default=None, description="jq path of pod templates (metadata and spec)."
    )
    pod_spec_path: str | None = Field(default=None, description="jq path of pod specs.")
    metadata_path: str | None = Field(
        default=None, description="jq path of the metadata that belongs to podSpecPath."
    )
    fragmented_pod_spec_definition: FragmentPaths | None = None


class ScalePaths(Model):
    """Paths of the numbers of replicas."""

    replicas_path: str | None = Field(
        default=None, description="jq path of the desired number of replicas."
    )
    min_replicas_path: str | None = Field(
        default=None, description="jq path of the minimum number of replicas."
    )
    max_replicas_path: str | None = Field(
        default=None, description="jq path of the maximum number of replicas."
    )


class PhasePath(Model):
    """The path of the phase."""

    path: str = Field(description="jq path of the phase.")


class ConditionsPath(Model):
    """The path of the conditions, and the names of their members."""

    path: str = Field(description="jq path of the list of conditions.")
    type_field_name: str = Field(default="type", description="Key of a condition's type.")
    status_field_name: str = Field(default="status", description="Key of a condition's status.")
    message_field_name: str = Field(default="message", description="Key of a condition's message.")
    reason_field_name: str = Field(default="reason", description="Key of a condition's reason.")


class ConditionMatch(Model):
    """One condition that must be present."""

    type: str = Field(description="Type of the condition.")
    status: str | None = Field(
        default=None, description="Required status of the condition; absent: any."
    )
    reason: str | None = Field(
        default=None, description="Required reason of the condition; absent: any."
    )


class ExpressionMatch(Model):
    """A jq expression and the text that it must return. Both are kept as text."""

    expression: str = Field(description="jq expression over the whole object.")
    expected_result: str = Field(description="Text that its first result must equal.")


class Matcher(Model):
    """A matcher of the status. All members that are set must match."""

    by_phase: str | None = Field(default=None, description="Required phase of the workload.")
    by_conditions: list[ConditionMatch] = Field(
        default_factory=list, description="Conditions that must all be present."
    )
    by_expression: ExpressionMatch | None = None


class StatusMappings(Model):
    """Matchers of each status. At least one matcher of a status must match."""

    initializing: list[Matcher] = Field(
        default_factory=list, description="The workload is starting."
    )
    running: list[Matcher] = Field(default_factory=list, description="The workload is running.")
    completed: list[Matcher] = Field(
        default_factory=list, description="The workload ended successfully."
    )
    failed: list[Matcher] = Field(default_factory=list, description="The workload failed.")
    degraded: list[Matcher] = Field(
        default_factory=list, description="The workload is running, but not completely."
    )
    suspending: list[Matcher] = Field(
        default_factory=list, description="The workload is being suspended."
    )
    suspended: list[Matcher] = Field(default_factory=list, description="The workload is suspended.")
    resuming: list[Matcher] = Field(
        default_factory=list, description="The workload is resuming after a suspension."
    )


class StatusPaths(Model):
    """How to read the status of the workload."""

    phase_definition: PhasePath | None = None
    conditions_definition: ConditionsPath | None = None
    status_mappings: StatusMappings


class TypeSelector(Model):
    """Selects the pods of the component."""

    key_path: str | None = Field(
        default=None, description="jq path in a pod. Pods of the component have a value there."
    )
    value: str | None = Field(default=None, description="Required value at keyPath.")
    match_labels: dict[str, str] | None = Field(
        default=None, min_length=1, description="Labels of the pods of the component."
    )


class InstanceSelector(Model):
    """The path of a pod's instance."""

    id_path: str = Field(description="jq path in a pod of the id of its instance.")


class ReplicaSelector(Model):
    """The path of a pod's replica."""

    key_path: str = Field(description="jq path in a pod of the id of its replica.")


class PodSelector(Model):
    """Selects the pods of a component, its instances and replicas."""

    component_type_selector: TypeSelector | None = None
    component_instance_selector: InstanceSelector | None = None
    replica_selector: ReplicaSelector | None = None


class SuspendAction(Model):
    """A value to write. `value` is JSON, as text or as it is."""

    path: str = Field(description="jq path of the value to change.")
    value: Any = Field(description='JSON as text, such as "true" in quotes, or the JSON itself.')


class SuspendPaths(Model):
    """Values to write in order to suspend and resume the workload."""

    suspend_actions: list[SuspendAction] = Field(
        min_length=1, description="Values that suspend the workload, in this order."
    )
    resume_actions: list[SuspendAction] = Field(
        min_length=1, description="Values that resume the workload, in this order."
    )


class ComponentModel(Model):
    """A component of the workload."""

    name: str = Field(default="", description="Name of the component, unique in the definition.")
    kind: KindName | None = None
    owner_ref: str | None = Field(
        default=None,
        description="Name of the component that owns this one. The root has none.",
    )
    spec_definition: SpecPaths | None = None
    scale_definition: ScalePaths | None = None
    status_definition: StatusPaths | None = None
    instance_id_path: str | None = Field(
        default=None,
        description="jq path of the ids of the instances, one for each result of the path of pods.",
    )
    pod_selector: PodSelector | None = None
    suspend_definition: SuspendPaths | None = None


class Member(Model):
    """A component in a pod group. Paths and filters are kept as text."""

    component_name: str = Field(description="Name of a component.")
    group_by_key_paths: list[str] = Field(
        default_factory=list,
        description="jq paths in a pod. Pods with equal results form one group.",
    )
    filters: list[str] = Field(
        default_factory=list, description="jq expressions in a pod. All must be true."
    )


class PodGroups(Model):
    """Pods that are scheduled together."""

    name: str = Field(description="Name of the group.")
    members: list[Member] = Field(description="Components whose pods are in the group.")


class Topology(Model):
    """The topology levels that pods should share."""

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
    """Scheduling information for the kind."""

    gang_scheduling: GangScheduling | None = None


class StructureDefinition(Model):
    """The components of the kind."""

    root_component: ComponentModel
    child_components: list[ComponentModel] = Field(
        default_factory=list, description="All components except the root."
    )
    additional_child_kinds: list[KindName] = Field(
        default_factory=list, description="Other kinds that the controller creates."
    )


class InterfaceSpec(Model):
    """The body of a resource interface."""

    structure_definition: StructureDefinition
    optimization_instructions: OptimizationInstructions | None = None
