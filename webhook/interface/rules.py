"""The rules that a resource interface must keep beyond its schema, in the stages of the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.documents.read_model import Report, shown
from webhook.documents.suggestions import closest
from webhook.interface.component_rules import Placed, check_component, full, kind_text
from webhook.interface.document import ComponentModel, InterfaceSpec, KindName
from webhook.objects.path import Path

STRUCTURE: Path = ("spec", "structureDefinition")
GANG: Path = ("spec", "optimizationInstructions", "gangScheduling")


def placed(spec: InterfaceSpec) -> list[Placed]:
    """Every component, root first."""
    structure = spec.structure_definition
    children = [
        Placed((*STRUCTURE, "childComponents", index), child, False)
        for index, child in enumerate(structure.child_components)
    ]
    return [Placed((*STRUCTURE, "rootComponent"), structure.root_component, True), *children]


def check(spec: InterfaceSpec, report: Report) -> None:
    """All problems of the definition; a cycle is looked for only when the owners are in order."""
    components = placed(spec)
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
    """Whether no two components share a name; nothing else is told when they do."""
    counts = Counter(each.body.name for each in components if each.body.name)
    seen: set[str] = set()
    for at, body, _ in components:
        if counts[body.name] > 1 and body.name in seen:
            found = f"a second component is named `{shown(body.name)}`"
            report.add((*at, "name"), found, "give each component its own name", "name-not-unique")
        seen.add(body.name)
    return all(count == 1 for count in counts.values())


def check_cycles(components: list[Placed], report: Report) -> None:
    """Nobody owns itself, directly or through others; one problem per cycle."""
    owners = {each.body.name: each.body.owner_ref for each in components}
    told: set[str] = set()
    for at, body, _ in components:
        line = [body.name]
        owner = owners.get(body.name)
        while owner and owner not in line and owner not in told:
            line.append(owner)
            owner = owners.get(owner)
        if owner in line and owner not in told:
            told.update(line)
            found = f"ownership goes in a circle: {' → '.join([*line, owner])}"
            report.add(
                (*at, "ownerRef"), found, "let one of them belong to the root", "owner-cycle"
            )


def members(spec: InterfaceSpec) -> Iterator[tuple[Path, str]]:
    """The component names that pod groups mention, with their places."""
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
    """Members of pod groups are components, and such as have pods."""
    by_name = {each.body.name: each for each in components}
    for at, name in members(spec):
        if name not in by_name:
            near = closest(name, by_name)
            fix = f"did you mean `{near}`?" if near else f"name one of {', '.join(by_name)}"
            report.add(at, f"`{shown(name)}` is no component", fix, "member-unknown")
        elif by_name[name].root and not has_pods(by_name[name].body):
            with_pods = [each.body.name for each in components if has_pods(each.body)]
            if with_pods:
                listed = ", ".join(f"`{shown(each)}`" for each in with_pods)
                found = f"pod group member `{shown(name)}` is the root, which has no pods itself"
                fix = f"name the components with pods, {listed}, or all pods are in one group"
                report.warn(at, found, fix, "gang-of-root")


def check_kinds(spec: InterfaceSpec, report: Report) -> None:
    """Kinds beside the components are complete and listed once.

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
    """What makes two kinds the same."""
    return (kind.group, kind.version, kind.kind) if kind else ()


def has_pods(body: ComponentModel) -> bool:
    """Whether the component says where its pods are."""
    paths = body.spec_definition
    return paths is not None and bool(
        paths.pod_template_spec_path or paths.pod_spec_path or paths.fragmented_pod_spec_definition
    )


def check_pods(components: list[Placed], report: Report) -> None:
    """Somebody has pods, or a kind that the workload makes; pods of several can be told apart."""
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
            found = f"pods of `{shown(body.name)}` cannot be distinguished from those of other components"
            report.warn(
                at, found, "add `podSelector.componentTypeSelector`", "pod-selector-missing"
            )
            continue
        text = selector.model_dump_json()
        if text in seen:
            found = f"`{shown(body.name)}` and `{shown(seen[text])}` select the same pods"
            place = (*at, "podSelector", "componentTypeSelector")
            report.warn(place, found, "let each select its own", "selectors-overlap")
        seen[text] = body.name
