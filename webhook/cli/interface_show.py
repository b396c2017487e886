"""podgate interface show: the components of a kind as a tree, with their paths."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from webhook.cli import definitions, loading
from webhook.interface.document import InterfaceSpec, Topology
from webhook.interface.interface import Component
from webhook.interface.profile import ComponentProfile, FieldPlaces, Profile, Reference, ScaleOf
from webhook.objects.path import display
from webhook.pods.definition import Definition

WIDTH = 80
Given = Annotated[
    str,
    typer.Argument(
        metavar="FILE|KIND", help="A file, or a shipped kind: Kind, kind.group or its plural."
    ),
]


@dataclass(slots=True)
class Branch:
    """One line of the tree and the lines below it."""

    text: str
    below: list[Branch] = field(default_factory=list)

    def add(self, text: str) -> Branch:
        """Add a line below this one."""
        made = Branch(text)
        self.below.append(made)
        return made


def show(given: Given) -> None:
    """Draw the components of a kind: pods, roles, scales, children, fields.

    Exit code 0: drawn, 2: no such file or kind, or it has errors.
    """
    try:
        found = definitions.definitions_of(given)
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    for number, each in enumerate(found):
        if number:
            print()
        draw(tree_of(each))


def draw(branch: Branch) -> None:
    """Draw a tree on a terminal, indented lines elsewhere."""
    if sys.stdout.isatty():
        Console(highlight=False, soft_wrap=False).print(rich(branch))
        return
    for line in plain(branch, 0):
        print(line)


def rich(branch: Branch) -> Tree:
    """The tree for a terminal."""
    made = Tree(Text(branch.text, style="bold" if branch.below else ""))
    for each in branch.below:
        made.children.append(rich(each))
    return made


def plain(branch: Branch, depth: int) -> Iterator[str]:
    """The lines without a terminal, of at most 80 columns if the words allow it."""
    pad = "  " * depth
    yield from wrap(
        branch.text,
        WIDTH,
        initial_indent=pad,
        subsequent_indent=pad + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for each in branch.below:
        yield from plain(each, depth + 1)


def tree_of(definition: Definition) -> Branch:
    """The whole definition."""
    interface, profile = definition.interface, definition.profile
    kind = profile.workload_type or "no type of workload"
    head = f"{definitions.label(definition)} {', '.join(definition.versions)} ({kind})"
    tree = Branch(head)
    add_components(tree, definition, "", ())
    add_child_kinds(tree, definition)
    add_gangs(tree, interface.spec)
    add_other_objects(tree, profile)
    if profile.fields:
        branch = tree.add("fields")
        for name, places in profile.fields.items():
            branch.add(f"{name}: {paths_text(places)}")
    if profile.not_pods:
        branch = tree.add("no pods")
        for each in profile.not_pods:
            branch.add(f"{each.place.text}: {each.reason}")
    if profile.open_subtrees is None:
        tree.add("the whole object is searched for further containers")
    elif profile.open_subtrees:
        branch = tree.add("searched for further containers")
        for program in profile.open_subtrees:
            branch.add(program.text)
    if interface.name:
        tree.add(f"from {interface.origin}")
    return tree


def add_child_kinds(tree: Branch, definition: Definition) -> None:
    """The kinds of objects that the operator creates, besides those of components."""
    structure = definition.interface.spec.structure_definition
    names = [f"{each.kind}.{each.group}" if each.group else str(each.kind)
             for each in structure.additional_child_kinds]  # fmt: skip
    between = sorted(
        f"{kind}.{group}" if group else kind
        for group, kind in definition.profile.intermediate_kinds
    )
    if names:
        tree.add(f"further child kinds: {', '.join(names)}")
    if between:
        tree.add(f"kinds between the object and its pods: {', '.join(between)}")


def add_gangs(tree: Branch, spec: InterfaceSpec) -> None:
    """The pod groups that are scheduled together, in both formats."""
    gang = spec.optimization_instructions and spec.optimization_instructions.gang_scheduling
    for group in gang.pod_groups if gang else ():
        branch = tree.add(f"pod group {group.name}")
        for member in group.members:
            keys = f", grouped by {', '.join(member.group_by_key_paths)}"
            filters = f", only where {' and '.join(member.filters)}"
            branch.add(
                member.component_name
                + (keys if member.group_by_key_paths else "")
                + (filters if member.filters else "")
            )
    if gang and gang.pod_group:
        branch = tree.add(
            f"pod group {gang.pod_group.name}{topology_text(gang.pod_group.topology)}"
        )
        for each in gang.pod_group.sub_groups:
            branch.add(f"{each.component_name}{topology_text(each.topology)}")


def topology_text(topology: Topology | None) -> str:
    """How close together the pods are scheduled."""
    if topology is None:
        return ""
    levels = f"{topology.required_topology_level}, better {topology.preferred_topology_level}"
    return f", in one {levels} of {topology.topology_name}"


def add_other_objects(tree: Branch, profile: Profile) -> None:
    """Objects of other kinds that the object wraps or refers to."""
    for each in profile.embedded:
        branch = tree.add(f"wrapped objects, each as its own kind: {each.place.text}")
        if each.pod_sets is not None:
            number = f", so many: {each.replicas.text}" if each.replicas is not None else ""
            branch.add(f"pods of it by path: {each.pod_sets.text}{number}")
        if each.podless:
            names = (f"{kind}.{group}" if group else kind for group, kind in sorted(each.podless))
            branch.add(f"without a definition: {', '.join(names)}")
    if profile.references:
        branch = tree.add("refers to")
        for reference in profile.references:
            branch.add(reference_text(reference))
    for reserved in profile.reserved:
        tree.add(f"only {reserved.writer} may write {reserved.place.text}")
    if profile.pod_texts:
        branch = tree.add("text that changes pods, evaluated on the pods alone")
        for text in profile.pod_texts:
            keys = f", keys {', '.join(f'{key}*' for key in text.keys)}" if text.keys else ""
            branch.add(f"{text.place.text}{keys}")


def reference_text(reference: Reference) -> str:
    """The kind that a path refers to."""
    name = f"{reference.kind}.{reference.group}" if reference.group else reference.kind
    kind = f"{name}, or what {reference.kind_place.text} says" if reference.kind_place else name
    note = f" ({reference.note})" if reference.note else ""
    return f"{kind} by {reference.place.text}{note}"


def add_components(
    tree: Branch, definition: Definition, owner: str, above: tuple[str, ...]
) -> None:
    """Add the components of an owner below it; the root has none."""
    for component in definition.interface.components:
        if component.owner == owner and component.name not in above:
            branch = tree.add(
                component_text(component, definition.profile.component(component.name))
            )
            for line in lines_of(component, definition):
                branch.add(line)
            add_components(branch, definition, component.name, (*above, component.name))


def component_text(component: Component, profile: ComponentProfile) -> str:
    """The head of a component: name, role, and the kind of its children."""
    if component.form is None:
        return component.name
    roles = dict.fromkeys([profile.role, *profile.by_instance.values()])
    own = component.kind
    made = f", makes {own[2]}" if own and not component.root else ""
    return f"{component.name}: {' or '.join(roles)}, {profile.children}{made}"


def lines_of(component: Component, definition: Definition) -> Iterator[str]:
    """Paths, IDs, scale and additional containers of a component."""
    profile = definition.profile.component(component.name)
    for name, program in (
        ("pod templates", component.template),
        ("pod specs", component.spec),
        ("metadata", component.metadata),
        ("instances", component.ids),
        ("replicas", component.replicas),
        ("at least", component.minimum),
        ("at most", component.maximum),
    ):
        if program is not None:
            yield f"{name}: {program.text}"
    if profile.scale.absent is not None and component.form:
        yield f"replicas when none are set: {profile.scale.absent}"
    if profile.by_instance:
        yield "roles: " + ", ".join(f"{key} {role}" for key, role in profile.by_instance.items())
    if text := main_text(profile):
        yield f"main container: {text}"
    yield from part_lines(component, definition)
    for extra in definition.profile.extra_containers:
        if extra.component == component.name:
            only = f" (only {', '.join(extra.only_in)})" if extra.only_in else ""
            yield f"container outside: {extra.place.text}{only}"


def part_lines(component: Component, definition: Definition) -> Iterator[str]:
    """The fragments of a component's pods."""
    plans = [each for each in definition.plans if each.component == component.name]
    for plan in plans:
        for part in plan.specs:
            form = "" if part.form == "same" else f" as {part.form}"
            pod = display(part.pod)
            if part.each is not None:
                pod = pod.replace("[0]", "[]", 1)
            yield f"{pod}: {part.place.text}{form}"


def main_text(profile: ComponentProfile) -> str:
    """The rule that finds the main container; "" without one."""
    main = profile.main
    if main.named_at is not None:
        return f"named at {main.named_at.text}"
    if main.name is not None:
        return main.name
    if main.with_ports:
        return "the first with ports"
    return "" if main.index is None else f"number {main.index + 1}"


def paths_text(places: FieldPlaces) -> str:
    """Where a field is."""
    if places.scale_of is not None:
        return f"replicas of {scale_text(places.scale_of)}"
    if places.derived is not None:
        return f"always {places.derived}"
    if places.main_port:
        return f"first port of the main container of {', '.join(places.main_port)}"
    return ", ".join(each.text for each in places.places)


def scale_text(of: ScaleOf) -> str:
    """A component, or one instance of it."""
    return of.component if of.instance is None else f"{of.component} {of.instance}"
