"""The rules that a resource interface must keep beyond its schema, in the stages of the format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from webhook.core.pointer import Path
from webhook.core.workload.definition_model import (
    ComponentModel,
    InterfaceSpec,
    KindName,
    SpecPaths,
    StatusPaths,
    SuspendPaths,
    TypeSelector,
)
from webhook.core.workload.typed import Report, closest, shown

STRUCTURE: Path = ("spec", "structureDefinition")
GANG: Path = ("spec", "optimizationInstructions", "gangScheduling")
CORE_KINDS = frozenset(
    {
        "Binding",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    }
)


class Placed(NamedTuple):
    """A component with its place in the document."""

    at: Path
    body: ComponentModel
    root: bool


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
    check_kinds(spec, components, report)
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


def check_component(each: Placed, names: list[str], report: Report) -> None:
    """The rules for one component alone."""
    at, body, root = each
    if not body.name:
        report.add(at, "a component without a name", "add `name`", "name-missing")
    if root:
        check_root(at, body, report)
    else:
        check_child(at, body, names, report)
    if body.spec_definition:
        check_forms(at, body.name, body.spec_definition, report)
    check_selectors(at, body, report)
    if body.status_definition:
        check_status((*at, "statusDefinition"), body.status_definition, report)
    if body.suspend_definition:
        check_suspend((*at, "suspendDefinition"), body.suspend_definition, report)


def check_root(at: Path, body: ComponentModel, report: Report) -> None:
    """The root says the kind and the status, and belongs to nobody."""
    if not full(body.kind, root=True):
        report.add(
            (*at, "kind"),
            f"the root's kind is {kind_text(body.kind)}",
            'set group, version and kind; only kinds of the core API have the group ""',
            "root-kind",
        )
    if body.owner_ref is not None:
        report.add((*at, "ownerRef"), "the root names an owner", "remove `ownerRef`", "root-owner")
    if body.status_definition is None:
        report.add(at, "the root has no status definition", "add `statusDefinition`", "root-status")


def full(kind: KindName | None, *, root: bool = False) -> bool:
    """Whether group, version and kind are set; a root needs a group unless its kind is core."""
    if kind is None or kind.group is None or not kind.version or not kind.kind:
        return False
    return bool(kind.group) or not root or kind.kind in CORE_KINDS


def kind_text(kind: KindName | None) -> str:
    """A kind for people."""
    if kind is None:
        return "absent"
    return f"group `{kind.group}`, version `{kind.version}`, kind `{kind.kind}`"


def check_child(at: Path, body: ComponentModel, names: list[str], report: Report) -> None:
    """A child belongs to another component."""
    if not body.owner_ref:
        found = f"child component `{shown(body.name)}` has no owner"
        report.add(
            at, found, f"add `ownerRef`, such as `{names[0] if names else 'root'}`", "owner-missing"
        )
    elif body.owner_ref not in names:
        near = closest(body.owner_ref, names)
        fix = f"did you mean `{near}`?" if near else f"name one of {', '.join(names)}"
        found = f"owner `{shown(body.owner_ref)}` is no component"
        report.add((*at, "ownerRef"), found, fix, "owner-unknown")
    if body.kind is not None and not full(body.kind):
        found = f"an incomplete kind: {kind_text(body.kind)}"
        report.add(
            (*at, "kind"), found, "set group, version and kind, or remove it", "kind-incomplete"
        )


def check_forms(at: Path, name: str, paths: SpecPaths, report: Report) -> None:
    """A component's pods are in one of three forms."""
    here = (*at, "specDefinition")
    forms = [
        label
        for label, value in (
            ("podTemplateSpecPath", paths.pod_template_spec_path),
            ("podSpecPath", paths.pod_spec_path),
            ("fragmentedPodSpecDefinition", paths.fragmented_pod_spec_definition),
        )
        if value
    ]
    if len(forms) > 1:
        found = f"component `{shown(name)}` has {' and '.join(forms)}"
        report.add(here, found, "keep one of them", "several-forms")
    if paths.metadata_path and not paths.pod_spec_path:
        report.warn(
            (*here, "metadataPath"),
            "`metadataPath` without `podSpecPath` has no effect",
            "remove it; a pod template has its own metadata",
            "metadata-without-spec",
        )


def check_selectors(at: Path, body: ComponentModel, report: Report) -> None:
    """Instances and their selector come together; a type selector selects something."""
    selector = body.pod_selector
    instance = selector.component_instance_selector if selector else None
    if body.instance_id_path and instance is None:
        report.add(
            (*at, "instanceIdPath"),
            f"component `{shown(body.name)}` has instances, but no selector tells them by pod",
            "add `podSelector.componentInstanceSelector.idPath`",
            "instance-selector-missing",
        )
    if instance is not None and not body.instance_id_path:
        report.add(
            (*at, "podSelector", "componentInstanceSelector"),
            f"component `{shown(body.name)}` selects instances, but names none",
            "add `instanceIdPath`, or remove the selector",
            "instance-ids-missing",
        )
    if selector and (by_type := selector.component_type_selector):
        check_type_selector((*at, "podSelector", "componentTypeSelector"), by_type, report)


def check_type_selector(at: Path, by_type: TypeSelector, report: Report) -> None:
    """A key path or labels; a value only with a key path."""
    if by_type.value is not None and not by_type.key_path:
        report.add((*at, "value"), "a value without a key", "add `keyPath`", "selector-value")
    elif not by_type.key_path and not by_type.match_labels:
        report.add(at, "it selects nothing", "add `keyPath` or `matchLabels`", "selector-empty")


def check_status(at: Path, status: StatusPaths, report: Report) -> None:
    """A matcher needs the place that it looks at."""
    for name, matchers in status.status_mappings:
        for index, matcher in enumerate(matchers):
            here = (*at, "statusMappings", name, index)
            if matcher.by_phase is not None and status.phase_definition is None:
                fix = "add `phaseDefinition.path`"
                report.add((*here, "byPhase"), "no phase is defined", fix, "phase-undefined")
            if matcher.by_conditions and status.conditions_definition is None:
                fix = "add `conditionsDefinition.path`"
                found = "no conditions are defined"
                report.add((*here, "byConditions"), found, fix, "conditions-undefined")
            for number, condition in enumerate(matcher.by_conditions):
                if condition.status is None and condition.reason is None:
                    report.warn(
                        (*here, "byConditions", number),
                        f"condition `{shown(condition.type)}` matches whatever its status is",
                        "add `status` or `reason`",
                        "condition-open",
                    )


def check_suspend(at: Path, suspend: SuspendPaths, report: Report) -> None:
    """Values given as text hold JSON."""
    for name, actions in (
        ("suspendActions", suspend.suspend_actions),
        ("resumeActions", suspend.resume_actions),
    ):
        for index, action in enumerate(actions):
            if isinstance(action.value, str) and not is_json(action.value):
                fix = 'text is written with its quotes, such as "\\"Suspended\\""'
                found = f"`{shown(action.value)}` is not JSON"
                report.add((*at, name, index, "value"), found, fix, "value-not-json")


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


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


def check_kinds(spec: InterfaceSpec, components: list[Placed], report: Report) -> None:
    """Kinds are complete and stand once."""
    seen = {identity(each.body.kind) for each in components if each.root}
    for at, body, root in components:
        if root or body.kind is None:
            continue
        if identity(body.kind) in seen:
            found = f"another component has the same kind, {kind_text(body.kind)}"
            report.warn((*at, "kind"), found, "remove it where it adds nothing", "kind-repeated")
        seen.add(identity(body.kind))
    for index, kind in enumerate(spec.structure_definition.additional_child_kinds):
        at = (*STRUCTURE, "additionalChildKinds", index)
        if not full(kind):
            found = f"an incomplete kind: {kind_text(kind)}"
            report.add(at, found, "set group, version and kind", "kind-incomplete")
        elif identity(kind) in seen:
            report.warn(
                at, f"a component has this kind: {kind_text(kind)}", "remove it", "kind-repeated"
            )


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
    """Somebody has pods, and pods of several components can be told apart."""
    with_pods = [each for each in components if has_pods(each.body)]
    if not with_pods:
        found = "no component says where its pods are"
        report.warn(STRUCTURE, found, "add `specDefinition`", "no-pods")
    if len(with_pods) < 2:
        return
    seen: dict[str, str] = {}
    for at, body, _ in with_pods:
        selector = body.pod_selector and body.pod_selector.component_type_selector
        if not selector:
            found = f"pods of `{shown(body.name)}` cannot be told from those of other components"
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
