"""A definition bound to one object: its components, ready to be read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.access.component import FORMS, SPECS, Access, Form, Replicas
from webhook.access.element import ElementAccess
from webhook.access.errors import AccessError, NotDefinedError, reraise_as
from webhook.access.status import Status
from webhook.access.upstream_mode import ParityAccess
from webhook.documents.read_model import show_value
from webhook.interface.document import (
    ComponentModel,
    InterfaceSpec,
    Mode,
    PodSelector,
    SuspendAction,
)
from webhook.interface.interface import Interface, kind_of
from webhook.jq.expressions import Evaluator
from webhook.objects.draft import Operation, diff
from webhook.pods.definition import Definition


@dataclass(frozen=True, slots=True)
class Instance:
    """The values of one instance of a component, None if not defined or absent."""

    id: str
    template: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None
    fragments: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    scale: Replicas | None = None


class BoundComponent:
    """One component of one object. Methods raise AccessError if a value cannot be read or written."""

    def __init__(self, model: ComponentModel, access: Access) -> None:
        self.definition = model
        self.access = access
        self.name = model.name
        self.kind = kind_of(model.kind)

    @property
    def pod_selector(self) -> PodSelector | None:
        """The selector of the component's pods."""
        return self.definition.pod_selector

    @property
    def defines_pods(self) -> bool:
        """Whether the definition has a path of the pods. Metadata alone does not count."""
        return defines_pods(self.definition)

    @property
    def is_many(self) -> bool:
        """Whether the definition has a path of instance ids."""
        return bool(self.definition.instance_id_path)

    def instance_ids(self) -> list[str]:
        """Return the names of the instances, [""] for one without a name."""
        return self.access.instance_ids(self.definition)

    def by_instance(self, form: Form) -> dict[str, Any] | None:
        """Return the values of a form by instance, None if the definition does not have the form."""
        return self.access.by_instance(self.definition, form)

    def templates(self) -> dict[str, dict[str, Any]] | None:
        """The pod templates by instance."""
        return self.by_instance("template")

    def pod_specs(self) -> dict[str, dict[str, Any]] | None:
        """The pod specs by instance."""
        return self.by_instance("spec")

    def metadata(self) -> dict[str, dict[str, Any]] | None:
        """The metadata of pod specs by instance."""
        return self.by_instance("metadata")

    def fragments(self) -> dict[str, dict[str, Any]] | None:
        """The fragments of pods by instance and name, such as schedulerName."""
        return self.by_instance("fragments")

    def scales(self) -> dict[str, Replicas] | None:
        """The numbers of replicas by instance."""
        return self.by_instance("scale")

    def status(self) -> Status | None:
        """Return the status, None if the definition has none."""
        try:
            return self.access.status(self.definition)
        except NotDefinedError:
            return None

    def instances(self) -> list[Instance]:
        """Return every instance with its values."""
        with reraise_as("instances-failed", "the instances cannot be named"):
            ids = self.instance_ids()
        found: dict[Form, dict[str, Any]] = {}
        for form in ("template", "spec", "fragments", "metadata", "scale"):
            with reraise_as("instances-failed", f"the {FORMS[form]} cannot be had", form=form):
                found[form] = self.by_instance(form) or {}
        return [
            Instance(each, **{form: held.get(each) for form, held in found.items()}) for each in ids
        ]

    def update(self, form: Form, values: Mapping[str, Any]) -> None:
        """Write the values of a form by instance."""
        self.access.update(self.definition, form, values)

    def suspend(self) -> None:
        """Write the values that suspend the component, if the definition has any."""
        if self.definition.suspend_definition is not None:
            self.apply(self.definition.suspend_definition.suspend_actions)

    def resume(self) -> None:
        """Write the values that resume the component, if the definition has any."""
        if self.definition.suspend_definition is not None:
            self.apply(self.definition.suspend_definition.resume_actions)

    def apply(self, actions: Sequence[SuspendAction]) -> None:
        """Write the values of the actions, in order. Raises AccessError."""
        for action in actions:
            self.access.assign(action.path, decode_value(action.value))


def decode_value(value: Any) -> Any:
    """Return the value of an action. Text is decoded as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise AccessError("value-not-json", "the value of an action is no JSON") from error


class Bound:
    """An object with its definition. All components share the values that one of them writes."""

    def __init__(self, definition: InterfaceSpec | None, access: Access, original: Any) -> None:
        self.definition = definition
        self.access = access
        self.original = original

    @property
    def spec(self) -> InterfaceSpec:
        """The definition. Raises AccessError if there is none."""
        if self.definition is None:
            raise AccessError("no-definition", "there is no definition")
        return self.definition

    @property
    def root(self) -> BoundComponent:
        """The component for the whole workload."""
        return self.bind_component(self.spec.structure_definition.root_component)

    @property
    def children(self) -> dict[str, BoundComponent]:
        """All other components by name."""
        listed = self.spec.structure_definition.child_components
        return {each.name: self.bind_component(each) for each in listed}

    @property
    def components(self) -> dict[str, BoundComponent]:
        """All components by name, root first."""
        return {self.root.name: self.root, **self.children}

    def children_of(self, name: str) -> dict[str, BoundComponent]:
        """Return the components that belong to one."""
        return {
            key: each for key, each in self.children.items() if each.definition.owner_ref == name
        }

    def component(self, name: str) -> BoundComponent:
        """Return the component with this name. Raises AccessError."""
        found = self.components.get(name)
        if found is None:
            raise AccessError(
                "component-unknown", f"`{show_value(name)}` is no component", name=name
            )
        return found

    def bind_component(self, model: ComponentModel) -> BoundComponent:
        """Return a component on the shared object."""
        return BoundComponent(model, self.access)

    @property
    def document(self) -> Any:
        """Return the object with everything that was written. Raises AccessError if it is no object."""
        with reraise_as("document-failed", "the object cannot be had"):
            found = self.access.document
        check_object(found)
        return found

    @property
    def patch(self) -> list[Operation]:
        """Return what was written, as RFC 6902 operations on the original object."""
        return diff(self.original, self.access.document)


def bind(
    definition: Definition | Interface | InterfaceSpec | None,
    document: Any,
    evaluator: Evaluator | None = None,
    mode: Mode = "admission",
) -> Bound:
    """Return the components of an object. Nothing is checked, and the object stays unchanged.

    A Definition has a profile, which decides how scales are read for admission.
    `evaluator` is needed for jq that is not native. `mode` is admission, or parity for
    upstream's own behaviour.
    """
    evaluator = evaluator or Evaluator()
    profile = definition.profile if isinstance(definition, Definition) else None
    interface = definition.interface if isinstance(definition, Definition) else definition
    spec = interface.spec if isinstance(interface, Interface) else interface
    if mode == "parity":
        return Bound(spec, ParityAccess(document, evaluator), document)
    return Bound(spec, ElementAccess(document, evaluator, profile), document)


def defines_pods(model: ComponentModel) -> bool:
    """Whether a component has a path of pods, in any of the three forms."""
    paths = model.spec_definition
    forms: tuple[Form, ...] = ("template", "spec", "fragments")
    return paths is not None and any(getattr(paths, SPECS[form]) for form in forms)


def has_pods(definition: InterfaceSpec) -> bool:
    """Whether any component has a path of pods."""
    structure = definition.structure_definition
    return any(
        defines_pods(each) for each in (structure.root_component, *structure.child_components)
    )


def check_object(document: Any) -> None:
    """Raise AccessError if the value is not an object of Kubernetes."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    named = isinstance(metadata, dict) and (metadata.get("name") or metadata.get("generateName"))
    missing = [
        each
        for each in ("apiVersion", "kind")
        if not isinstance(document, dict) or not document.get(each)
    ]
    if not named:
        missing.append("metadata.name")
    if missing:
        text = f"no object of Kubernetes without {', '.join(missing)}"
        raise AccessError("not-an-object", text, missing=missing)
