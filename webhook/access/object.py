"""A definition bound to one object: its components, ready to be read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.access import suspend
from webhook.access.component import FORMS, SPECS, Access, Form, Replicas
from webhook.access.element import ElementAccess
from webhook.access.errors import AccessError, NotDefinedError, told_as
from webhook.access.status import Status
from webhook.access.upstream_mode import ParityAccess
from webhook.documents.read_model import shown
from webhook.interface.document import ComponentModel, InterfaceSpec, Mode, PodSelector
from webhook.interface.interface import Interface, kind_of
from webhook.jq.expressions import Evaluator
from webhook.objects.draft import Operation, diff
from webhook.pods.definition import Definition


@dataclass(frozen=True, slots=True)
class Instance:
    """All that one instance of a component has; None for what is not defined or absent."""

    id: str
    template: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None
    fragments: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    scale: Replicas | None = None


class BoundComponent:
    """One component of one object. Methods raise AccessError for what cannot be read or written."""

    def __init__(self, model: ComponentModel, access: Access) -> None:
        self.definition = model
        self.access = access
        self.name = model.name
        self.kind = kind_of(model.kind)

    @property
    def pod_selector(self) -> PodSelector | None:
        """How its pods are recognised."""
        return self.definition.pod_selector

    @property
    def defines_pods(self) -> bool:
        """Whether the definition says where its pods are; metadata alone does not count."""
        return defines_pods(self.definition)

    @property
    def is_many(self) -> bool:
        """Whether the definition names instances."""
        return bool(self.definition.instance_id_path)

    def instance_ids(self) -> list[str]:
        """The names of the instances, [""] where there is one without a name."""
        return self.access.instance_ids(self.definition)

    def by_instance(self, form: Form) -> dict[str, Any] | None:
        """The values of a form by instance; None where the definition has none of that form."""
        return self.access.by_instance(self.definition, form)

    def templates(self) -> dict[str, dict[str, Any]] | None:
        """The pod templates by instance."""
        return self.by_instance("template")

    def pod_specs(self) -> dict[str, dict[str, Any]] | None:
        """The pod specs by instance."""
        return self.by_instance("spec")

    def metadata(self) -> dict[str, dict[str, Any]] | None:
        """The metadata beside pod specs by instance."""
        return self.by_instance("metadata")

    def fragments(self) -> dict[str, dict[str, Any]] | None:
        """The pieces of pods by instance, each under its name, such as schedulerName."""
        return self.by_instance("fragments")

    def scales(self) -> dict[str, Replicas] | None:
        """The numbers of replicas by instance."""
        return self.by_instance("scale")

    def status(self) -> Status | None:
        """The status; None where the definition has none."""
        try:
            return self.access.status(self.definition)
        except NotDefinedError:
            return None

    def instances(self) -> list[Instance]:
        """Every instance with all that it has."""
        with told_as("instances-failed", "the instances cannot be named"):
            ids = self.instance_ids()
        found: dict[Form, dict[str, Any]] = {}
        for form in ("template", "spec", "fragments", "metadata", "scale"):
            with told_as("instances-failed", f"the {FORMS[form]} cannot be had", form=form):
                found[form] = self.by_instance(form) or {}
        return [
            Instance(each, **{form: held.get(each) for form, held in found.items()}) for each in ids
        ]

    def update(self, form: Form, values: Mapping[str, Any]) -> None:
        """Write the values of a form by instance."""
        self.access.update(self.definition, form, values)

    def suspend(self) -> None:
        """Write what suspends it; nothing where the definition does not say."""
        suspend.suspend(self.definition, self.access)

    def resume(self) -> None:
        """Write what lets it go on; nothing where the definition does not say."""
        suspend.resume(self.definition, self.access)


class Bound:
    """An object seen through a definition. All components share what is written through one."""

    def __init__(self, definition: InterfaceSpec | None, access: Access, original: Any) -> None:
        self.definition = definition
        self.access = access
        self.original = original

    @property
    def spec(self) -> InterfaceSpec:
        """The definition; raises AccessError when there is none."""
        if self.definition is None:
            raise AccessError("no-definition", "there is no definition")
        return self.definition

    @property
    def root(self) -> BoundComponent:
        """The component that stands for the workload."""
        return self.made(self.spec.structure_definition.root_component)

    @property
    def children(self) -> dict[str, BoundComponent]:
        """All other components by name."""
        listed = self.spec.structure_definition.child_components
        return {each.name: self.made(each) for each in listed}

    @property
    def components(self) -> dict[str, BoundComponent]:
        """All components by name, root first."""
        return {self.root.name: self.root, **self.children}

    def children_of(self, name: str) -> dict[str, BoundComponent]:
        """The components that belong to one."""
        return {
            key: each for key, each in self.children.items() if each.definition.owner_ref == name
        }

    def component(self, name: str) -> BoundComponent:
        """The component of a name; raises AccessError."""
        found = self.components.get(name)
        if found is None:
            raise AccessError("component-unknown", f"`{shown(name)}` is no component", name=name)
        return found

    def made(self, model: ComponentModel) -> BoundComponent:
        """A component on the shared object."""
        return BoundComponent(model, self.access)

    @property
    def document(self) -> Any:
        """The object with all that was written; raises AccessError when it is no object."""
        with told_as("document-failed", "the object cannot be had"):
            found = self.access.document
        check_object(found)
        return found

    @property
    def patch(self) -> list[Operation]:
        """What was written, as operations of RFC 6902 on the object that was bound."""
        return diff(self.original, self.access.document)


def bind(
    definition: Definition | Interface | InterfaceSpec | None,
    document: Any,
    evaluator: Evaluator | None = None,
    mode: Mode = "admission",
) -> Bound:
    """The components of an object; nothing is checked yet, and the object stays untouched.

    A Definition brings its profile along, which says how scales are read for admission.
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
    """Whether a component says where its pods are, in any of the three forms."""
    paths = model.spec_definition
    forms: tuple[Form, ...] = ("template", "spec", "fragments")
    return paths is not None and any(getattr(paths, SPECS[form]) for form in forms)


def has_pods(definition: InterfaceSpec) -> bool:
    """Whether any component says where its pods are."""
    structure = definition.structure_definition
    return any(
        defines_pods(each) for each in (structure.root_component, *structure.child_components)
    )


def check_object(document: Any) -> None:
    """Raise AccessError for what is no object of Kubernetes."""
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
