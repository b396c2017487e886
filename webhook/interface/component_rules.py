"""Rules of one component of a resource interface beyond its schema."""

from __future__ import annotations

import json
from typing import NamedTuple

from webhook.documents.read_model import Report, show_value
from webhook.documents.suggestions import closest
from webhook.interface.document import (
    ComponentModel,
    KindName,
    SpecPaths,
    StatusPaths,
    SuspendPaths,
    TypeSelector,
)
from webhook.objects.path import Path

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
    """A component with its path in the document."""

    at: Path
    body: ComponentModel
    root: bool


def check_component(each: Placed, names: list[str], report: Report) -> None:
    """Check the rules of one component."""
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
    """Check that the root has a kind and a status, and no owner."""
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


def check_child(at: Path, body: ComponentModel, names: list[str], report: Report) -> None:
    """Check that a child has an owner."""
    if not body.owner_ref:
        found = f"child component `{show_value(body.name)}` has no owner"
        report.add(
            at, found, f"add `ownerRef`, such as `{names[0] if names else 'root'}`", "owner-missing"
        )
    elif body.owner_ref not in names:
        near = closest(body.owner_ref, names)
        fix = f"did you mean `{near}`?" if near else f"name one of {', '.join(names)}"
        found = f"owner `{show_value(body.owner_ref)}` is no component"
        report.add((*at, "ownerRef"), found, fix, "owner-unknown")
    if body.kind is not None and not full(body.kind):
        found = f"an incomplete kind: {kind_text(body.kind)}"
        report.add(
            (*at, "kind"), found, "set group, version and kind, or remove it", "kind-incomplete"
        )


def full(kind: KindName | None, *, root: bool = False) -> bool:
    """Check that group, version and kind are set. Only core kinds have no group."""
    if kind is None or kind.group is None or not kind.version or not kind.kind:
        return False
    return bool(kind.group) or not root or kind.kind in CORE_KINDS


def kind_text(kind: KindName | None) -> str:
    """Show a kind in a message."""
    if kind is None:
        return "absent"
    return f"group `{kind.group}`, version `{kind.version}`, kind `{kind.kind}`"


def check_forms(at: Path, name: str, paths: SpecPaths, report: Report) -> None:
    """Check that a component's pods are in one of the three forms."""
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
        found = f"component `{show_value(name)}` has {' and '.join(forms)}"
        report.add(here, found, "keep one of them", "several-forms")
    if paths.metadata_path and not paths.pod_spec_path:
        report.warn(
            (*here, "metadataPath"),
            "`metadataPath` without `podSpecPath` has no effect",
            "remove it; a pod template has its own metadata",
            "metadata-without-spec",
        )


def check_selectors(at: Path, body: ComponentModel, report: Report) -> None:
    """Check that instances have a selector, and that a type selector selects something."""
    selector = body.pod_selector
    instance = selector.component_instance_selector if selector else None
    if body.instance_id_path and instance is None:
        report.warn(
            (*at, "instanceIdPath"),
            f"component `{show_value(body.name)}` names instances, but no selector finds them by pod",
            "add `podSelector.componentInstanceSelector.idPath`; admission does without, "
            "grouping pods does not, and upstream refuses the definition",
            "instance-selector-missing",
        )
    if instance is not None and not body.instance_id_path:
        report.add(
            (*at, "podSelector", "componentInstanceSelector"),
            f"component `{show_value(body.name)}` selects instances, but names none",
            "add `instanceIdPath`, or remove the selector",
            "instance-ids-missing",
        )
    if selector and (by_type := selector.component_type_selector):
        check_type_selector((*at, "podSelector", "componentTypeSelector"), by_type, report)


def check_type_selector(at: Path, by_type: TypeSelector, report: Report) -> None:
    """Check for a key path or labels, and a value only with a key path."""
    if by_type.value is not None and not by_type.key_path:
        report.add((*at, "value"), "a value without a key", "add `keyPath`", "selector-value")
    elif not by_type.key_path and not by_type.match_labels:
        report.add(at, "it selects nothing", "add `keyPath` or `matchLabels`", "selector-empty")


def check_status(at: Path, status: StatusPaths, report: Report) -> None:
    """Check that each matcher has the path that it reads."""
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
                        f"condition `{show_value(condition.type)}` matches whatever its status is",
                        "add `status` or `reason`",
                        "condition-open",
                    )


def check_suspend(at: Path, suspend: SuspendPaths, report: Report) -> None:
    """Check that values written as text are JSON."""
    for name, actions in (
        ("suspendActions", suspend.suspend_actions),
        ("resumeActions", suspend.resume_actions),
    ):
        for index, action in enumerate(actions):
            if isinstance(action.value, str) and not is_json(action.value):
                fix = 'text is written with its quotes, such as "\\"Suspended\\""'
                found = f"`{show_value(action.value)}` is not JSON"
                report.add((*at, name, index, "value"), found, fix, "value-not-json")


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
