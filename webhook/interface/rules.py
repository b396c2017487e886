"""Rules of a resource interface beyond its schema, in the stages of the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.documents.read_model import Report, show_value
from webhook.documents.suggestions import closest
from webhook.interface.component_rules import Placed, check_component, full, kind_text
from webhook.interface.document import ComponentModel, InterfaceSpec, KindName
from webhook.objects.path import Path

STRUCTURE: Path = ("spec", "structureDefinition")
GANG: Path = ("spec", "optimizationInstructions", "gangScheduling")


def place_components(spec: InterfaceSpec) -> list[Placed]:
    """Return every component, the root first."""
    structure = spec.structure_definition
    children = [
        Placed((*STRUCTURE, "childComponents", index), child, False)
        for index, child in enumerate(structure.child_components)
    ]
    return [Placed((*STRUCTURE, "rootComponent"), structure.root_component, True), *children]


def check(spec: InterfaceSpec, report: Report) -> None:
    """Report all problems of the definition. Cycles are searched only if all owners exist."""
    components = place_components(spec)
    if not names_are_unique(components, report):
        return
    before = len(report.problems)
    names = [each.body.name for each in components if each.body.name]
    for each in components:
        check_component(each, names, report)
    if not any(problem.severity == "error" for problem in report.problems[before:]):
        check_cycles(components, report)
    check_gang(spec, components, report)
    check_kinds(spec, report)
    check_pods(components, report)


def names_are_unique(components: list[Placed], report: Report) -> bool:
    """Whether no two components share a name. If they do, only that is reported."""
    counts = Counter(each.body.name for each in components if each.body.name)
    seen: set[str] = set()
    for at, body, _ in components:
        if counts[body.name] > 1 and body.name in seen:
            found = f"a second component is named `{show_value(body.name)}`"
            report.add((*at, "name"), found, "give each component its own name", "name-not-unique")
        seen.add(body.name)
    return all(count == 1 for count in counts.values())


def check_cycles(components: list[Placed], report: Report) -> None:
    """Report components that own themselves, directly or through others, once per cycle."""
    owners = {each.body.name: each.body.owner_ref for each in components}
    reported: set[str] = set()
    for at, body, _ in components:
        line = [body.name]
        owner = owners.get(body.name)
        while owner and owner not in line and owner not in reported:
            line.append(owner)
            owner = owners.get(owner)
        if owner in line and owner not in reported:
            reported.update(line)
            found = f"ownership goes in a circle: {' → '.join([*line, owner])}"
            report.add(
                (*at, "ownerRef"), found, "let one of them belong to the root", "owner-cycle"
            )


def members(spec: InterfaceSpec) -> Iterator[tuple[Path, str]]:
    """Return the component names that pod groups mention, with their paths."""
    gang = spec.optimization_instructions and spec.optimization_instructions.gang_scheduling
    if not gang:
        return
    for number, group in enumerate(gang.pod_groups):
        for index, member in enumerate(group.members):
            place = (*GANG, "podGroups", number, "members", index, "componentName")
            yield place, member.component_name
    for index, sub_group in enumerate(gang.pod_group.sub_groups if gang.pod_group else []):
        yield (*GANG, "podGroup", "subGroups", index, "componentName"), sub_group.component_name


def check_gang(spec: InterfaceSpec, components: list[Placed], report: Report) -> None:
    """Check that members of pod groups are components with pods."""
    by_name = {each.body.name: each for each in components}
    for at, name in members(spec):
        if name not in by_name:
            near = closest(name, by_name)
            fix = f"did you mean `{near}`?" if near else f"name one of {', '.join(by_name)}"
            report.add(at, f"`{show_value(name)}` is no component", fix, "member-unknown")
        elif by_name[name].root and not has_pods(by_name[name].body):
            with_pods = [each.body.name for each in components if has_pods(each.body)]
            if with_pods:
                listed = ", ".join(f"`{show_value(each)}`" for each in with_pods)
                found = (
                    f"pod group member `{show_value(name)}` is the root, which has no pods itself"
                )
                fix = f"name the components with pods, {listed}, or all pods are in one group"
                report.warn(at, found, fix, "gang-of-root")


def check_kinds(spec: InterfaceSpec, report: Report) -> None:
    """Check that additional child kinds are complete and listed once.

    Several components often have one kind (a head and workers that are Pods), and upstream lists
    kinds of components here too.
    """
    seen: set[tuple[str | None, ...]] = set()
    for index, kind in enumerate(spec.structure_definition.additional_child_kinds):
        at = (*STRUCTURE, "additionalChildKinds", index)
        if not full(kind):
            found = f"an incomplete kind: {kind_text(kind)}"
            report.add(at, found, "set group, version and kind", "kind-incomplete")
        elif identity(kind) in seen:
            report.warn(at, f"{kind_text(kind)} is listed twice", "keep one", "kind-repeated")
        seen.add(identity(kind))


def identity(kind: KindName | None) -> tuple[str | None, ...]:
    """Return what identifies a kind."""
    return (kind.group, kind.version, kind.kind) if kind else ()


def has_pods(body: ComponentModel) -> bool:
    """Whether the component has a path of pods."""
    paths = body.spec_definition
    return paths is not None and bool(
        paths.pod_template_spec_path or paths.pod_spec_path or paths.fragmented_pod_spec_definition
    )


def check_pods(components: list[Placed], report: Report) -> None:
    """Check that a component or child kind has pods, and that pods of several can be distinguished."""
    with_pods = [each for each in components if has_pods(each.body)]
    elsewhere = any(each.body.kind is not None for each in components if not each.root)
    if not with_pods and not elsewhere:
        found = "no component has a path to its pods"
        report.warn(STRUCTURE, found, "add `specDefinition`", "no-pods")
    if len(with_pods) < 2:
        return
    seen: dict[str, str] = {}
    for at, body, _ in with_pods:
        selector = body.pod_selector and body.pod_selector.component_type_selector
        if not selector:
            name = show_value(body.name)
            found = f"pods of `{name}` cannot be distinguished from those of other components"
            report.warn(
                at, found, "add `podSelector.componentTypeSelector`", "pod-selector-missing"
            )
            continue
        text = selector.model_dump_json()
        if text in seen:
            found = f"`{show_value(body.name)}` and `{show_value(seen[text])}` select the same pods"
            place = (*at, "podSelector", "componentTypeSelector")
            report.warn(place, found, "let each select its own", "selectors-overlap")
        seen[text] = body.name
