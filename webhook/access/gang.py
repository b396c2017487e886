"""Gang scheduling: finds the component of a pod, and the pod group that schedules it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.access.errors import AccessError
from webhook.access.object import Bound, defines_pods
from webhook.access.selector import PodQuery
from webhook.documents.read_model import show_value
from webhook.interface.document import ComponentModel, InterfaceSpec, Member, Mode, Topology


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod group that can schedule a component's pods, and its member for them."""

    component: str
    group: str
    member: Member
    topology: Topology | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The structure of a definition.

    `leaves` are the components with pods, `parents` and `children` by name. `groups` are the
    names of pod groups, `candidates` those of each leaf, its own before its ancestors'.
    """

    definition: InterfaceSpec
    components: Mapping[str, ComponentModel]
    leaves: tuple[str, ...]
    parents: Mapping[str, str]
    children: Mapping[str, tuple[str, ...]]
    scales: bool
    groups: tuple[str, ...] = ()
    candidates: Mapping[str, tuple[Candidate, ...]] | None = None


def summarize(definition: InterfaceSpec | None, mode: Mode = "admission") -> Summary:
    """Return the structure of a definition. Raises AccessError if there is none.

    The newer pod group with its subgroups counts only in admission. Upstream ignores it.
    """
    if definition is None:
        raise AccessError("no-definition", "there is no definition to summarize")
    structure = definition.structure_definition
    listed = (structure.root_component, *structure.child_components)
    parents = {each.name: each.owner_ref or "" for each in structure.child_components}
    children: dict[str, tuple[str, ...]] = {}
    for name, owner in parents.items():
        children[owner] = (*children.get(owner, ()), name)
    leaves = tuple(each.name for each in listed if defines_pods(each))
    found = tuple(list_candidates(definition, mode))
    instructions = definition.optimization_instructions
    gang = instructions.gang_scheduling if instructions else None
    return Summary(
        definition,
        {each.name: each for each in listed},
        leaves,
        parents,
        children,
        any(each.scale_definition is not None for each in listed),
        tuple(dict.fromkeys(each.group for each in found)),
        {leaf: candidates_of(leaf, parents, found) for leaf in leaves} if gang else None,
    )


def list_candidates(definition: InterfaceSpec, mode: Mode) -> Iterator[Candidate]:
    """Return every member of every pod group, in order."""
    instructions = definition.optimization_instructions
    gang = instructions.gang_scheduling if instructions else None
    for group in gang.pod_groups if gang else ():
        for member in group.members:
            yield Candidate(member.component_name, group.name, member)
    if mode == "admission" and gang and gang.pod_group:
        newer = gang.pod_group
        for each in newer.sub_groups:
            member = Member.model_construct(
                component_name=each.component_name, group_by_key_paths=[], filters=[]
            )
            yield Candidate(
                each.component_name, newer.name, member, each.topology or newer.topology
            )


def candidates_of(
    leaf: str, parents: Mapping[str, str], found: Iterable[Candidate]
) -> tuple[Candidate, ...]:
    """Return the candidates of a component and its owners."""
    line = line_of(leaf, parents)
    return direct_first([each for each in found if each.component in line], leaf)


def line_of(component: str, parents: Mapping[str, str]) -> list[str]:
    """Return the component and its owners up to the root. A cycle is followed once."""
    line, owner = [component], parents.get(component)
    while owner and owner not in line:
        line.append(owner)
        owner = parents.get(owner)
    return line


def direct_first(found: Sequence[Candidate], component: str) -> tuple[Candidate, ...]:
    """Sort the candidates that name the component first, and keep the order otherwise."""
    return tuple(sorted(found, key=lambda each: each.component != component))


def component_of(summary: Summary, pod: PodQuery) -> str:
    """Return the component of a pod. Raises AccessError if no selector selects it.

    If only one component has pods, all pods belong to it, even without a matching selector.
    """
    if len(summary.leaves) == 1:
        return summary.leaves[0]
    for name in summary.leaves:
        if pod.is_of_type(summary.components[name].pod_selector):
            return name
    text = f"no component selects pod `{show_value(pod.name)}`"
    raise AccessError("pod-unmatched", text, pod=pod.name)


def instance_of(bound: Bound, pod: PodQuery, component: str) -> str | None:
    """Return the instance of a pod, None if the component has no instances."""
    found = bound.component(component)
    if not found.is_many or found.pod_selector is None:
        return None
    return pod.matching_id(found.pod_selector, found.instance_ids()) or None


def effective_component(summary: Summary, pod: PodQuery, component: str) -> Candidate | None:
    """Return the first candidate of a component whose filters match the pod, else None."""
    for each in (summary.candidates or {}).get(component, ()):
        if pod.passes(each.member.filters):
            return each
    return None
