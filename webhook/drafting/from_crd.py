"""Drafts the resource interface and the profile of a kind from its CRD's schema, pure.

Everything that the schema does not say outright is a guess, and carries a comment that says what
it rests on. Both documents load as they are; only people can say what the operator makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.drafting.fields import Kind, switches
from webhook.drafting.pods import Places, places
from webhook.drafting.profile import profile_spec
from webhook.drafting.replicas import Scaling, scaling
from webhook.drafting.status import status
from webhook.drafting.text import text_of
from webhook.interface.crd_schema import Schema, expression, ids_of
from webhook.objects.path import Path

CHILDREN: Path = ("spec", "structureDefinition", "childComponents")
ROOT: Path = ("spec", "structureDefinition", "rootComponent")


class NotACrdError(ValueError):
    """The document is not a CustomResourceDefinition with a readable schema."""


@dataclass(slots=True)
class Document:
    """One drafted document with comments by path. () is the head."""

    data: dict[str, Any]
    notes: dict[Path, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the document as YAML."""
        return text_of(self.data, self.notes)


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft for a kind: an interface per layout, and the profile. Empty without pods."""

    group: str
    kind: str
    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """Return all documents as one YAML stream."""
        return "---\n".join(each.text for each in self.documents)


@dataclass(frozen=True, slots=True)
class Version:
    """One served version of a CRD: name, schema, subresources and printer columns."""

    name: str
    schema: Schema
    columns: Any
    scale: Any


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the kind in the CRD."""

    group: str
    kind: str
    plural: str

    @property
    def label(self) -> str:
        """The name for the documents."""
        return f"{self.kind.lower()}.{self.group}"


def infer(crd: Any) -> Draft:
    """Return the draft for a decoded CRD (apiextensions.k8s.io/v1). Raises NotACrdError."""
    names, versions = read(crd)
    made = [(version, *draft_definition(names, version)) for version in versions]
    made = [each for each in made if each[1] is not None]
    if not made:
        return Draft(names.group, names.kind, ())
    first, interface, profile = made[0]
    assert interface is not None
    same, interfaces, others = [first.name], [interface], {}
    for version, other, own in made[1:]:
        assert other is not None
        changes = differences(profile.data["spec"], own.data["spec"])
        if layout(other) == layout(interface) and not changes:
            same.append(version.name)
            continue
        other.data["metadata"]["name"] += f".{version.name}"
        other.notes[()] = f"{names.kind} {version.name}: another layout than {first.name}."
        interfaces.append(other)
        others[version.name] = changes
        same.append(version.name)
    profile.data["spec"]["versions"] = same
    if others:
        profile.data["spec"]["perVersion"] = others
        profile.notes["spec", "perVersion"] = "these versions differ; null takes an entry away"
    return Draft(names.group, names.kind, (*interfaces, profile))


def read(crd: Any) -> tuple[Names, list[Version]]:
    """Return the names and the served versions, the stored one first."""
    if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
        raise NotACrdError("not a CustomResourceDefinition")
    spec = crd.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    named = spec.get("names")
    named = named if isinstance(named, dict) else {}
    group, kind, plural = spec.get("group"), named.get("kind"), named.get("plural")
    if not (isinstance(group, str) and isinstance(kind, str) and isinstance(plural, str)):
        raise NotACrdError("no `spec.group`, `spec.names.kind` or `spec.names.plural`")
    listed = spec.get("versions")
    served = [
        each
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and each.get("served") and isinstance(each.get("name"), str)
    ]
    served.sort(key=lambda each: not each.get("storage"))
    found = [version_of(each) for each in served]
    versions = [each for each in found if each is not None]
    if not versions:
        raise NotACrdError("no served version with a schema; v1 of apiextensions.k8s.io is read")
    return Names(group, kind, plural), versions


def version_of(body: Mapping[str, Any]) -> Version | None:
    """Return one version, None without a schema."""
    schema = body.get("schema")
    schema = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
    subresources = body.get("subresources")
    scale = subresources.get("scale") if isinstance(subresources, dict) else None
    if not isinstance(schema, dict):
        return None
    return Version(body["name"], schema, body.get("additionalPrinterColumns"), scale)


def layout(document: Document) -> Any:
    """Return an interface without the values that differ between versions of one layout."""
    structure = document.data["spec"]["structureDefinition"]
    root = {key: each for key, each in structure["rootComponent"].items() if key != "kind"}
    return root, structure.get("childComponents")


def differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the perVersion entry of another version's profile."""
    changed: dict[str, Any] = {}
    for key in {**first, **other}:
        before, after = first.get(key), other.get(key)
        if before == after or key == "versions":
            continue
        if key in {"components", "fields"}:
            gone = dict.fromkeys(each for each in before or {} if each not in (after or {}))
            new = {
                name: each
                for name, each in (after or {}).items()
                if (before or {}).get(name) != each
            }
            changed[key] = {**gone, **new}
        else:
            changed[key] = after
    return changed


def draft_definition(names: Names, version: Version) -> tuple[Document | None, Document]:
    """Return the interface, None for a kind without pods, and the profile of one version."""
    found = places(version.schema)
    empty = Document({})
    if not found.pods and not found.open:
        return None, empty
    scales = {
        each.name: scaling(version.schema, each.steps, found.above(each)) for each in found.pods
    }
    kind = Kind(version.schema, found.pods)
    interface = interface_of(names, version, found, scales, kind)
    spec, notes = profile_spec(kind, found, scales, version.scale)
    head = {"group": names.group, "kind": names.kind, "versions": [version.name]}
    profile = Document(
        {
            "apiVersion": "podgate.dev/v1alpha1",
            "kind": "WorkloadProfile",
            "metadata": {"name": names.label},
            "spec": {**head, "resource": names.plural, **spec},
        },
        {("spec", *at): text for at, text in notes.items()},
    )
    return interface, profile


def interface_of(
    names: Names,
    version: Version,
    found: Places,
    scales: Mapping[str, Scaling],
    kind: Kind,
) -> Document:
    """Return the resource interface of one version."""
    definition, comments = status(version.schema, version.columns)
    root: dict[str, Any] = {
        "name": root_name(names, found),
        "kind": {"group": names.group, "version": version.name, "kind": names.kind},
        "statusDefinition": definition,
    }
    document = Document({}, {(*ROOT, "statusDefinition", *at): text for at, text in comments})
    if suspends := switches(kind):
        path = expression(suspends[0])
        root["suspendDefinition"] = {
            "suspendActions": [{"path": path, "value": "true"}],
            "resumeActions": [{"path": path, "value": "false"}],
        }
        document.notes[*ROOT, "suspendDefinition"] = "a guess by the name of the switch"
    structure: dict[str, Any] = {"rootComponent": root, "childComponents": []}
    for index, each in enumerate(found.pods):
        at = (*CHILDREN, index)
        child, notes = component(names, version, root["name"], found, scales, index)
        structure["childComponents"].append(child)
        document.notes.update({(*at, *inside): text for inside, text in notes.items()})
        document.notes[at] = each.why
    document.notes[()] = (
        f"Drafted by podgate from the schema of {names.kind}.{names.group}; every comment is a "
        "guess to be checked. Then: podgate interface check."
    )
    if not found.pods:
        del structure["childComponents"]
        document.notes[ROOT] = (
            "the schema shows no pod, but leaves subtrees open that may have some"
        )
    document.data = {
        "apiVersion": "optimization.nvidia.com/v1alpha1",
        "kind": "ResourceInterface",
        "metadata": {"name": names.label},
        "spec": {"structureDefinition": structure},
    }
    return document


def root_name(names: Names, found: Places) -> str:
    """Return a name for the root that no component has."""
    name = names.kind.lower()
    taken = {each.name for each in found.pods}
    return name if name not in taken else f"{name}-root"


def component(
    names: Names,
    version: Version,
    root: str,
    found: Places,
    scales: Mapping[str, Scaling],
    index: int,
) -> tuple[dict[str, Any], dict[Path, str]]:
    """Return one child component, and comments by path."""
    pods = found.pods[index]
    made: dict[str, Any] = {"name": pods.name, "ownerRef": root, "specDefinition": pods.paths}
    notes: dict[Path, str] = {}
    selector: dict[str, Any] = {
        "componentTypeSelector": {
            "keyPath": f'.metadata.labels["{names.group}/component"]',
            "value": pods.name,
        }
    }
    if ids := ids_of(version.schema, pods.steps):
        made["instanceIdPath"], why = ids
        notes["instanceIdPath",] = why
        label = f'.metadata.labels["{names.group}/{pods.name}"]'
        selector["componentInstanceSelector"] = {"idPath": label}
    scale = scales[pods.name]
    if scale.paths:
        made["scaleDefinition"] = scale.paths
        why = "a guess by names"
        if len(scale.counts) > 1:
            why += ": these numbers are taken to multiply; bounds are left as they are"
        notes["scaleDefinition",] = why
    made["podSelector"] = selector
    notes["podSelector",] = (
        "a schema does not show by which labels the operator marks these pods: put its own here; "
        "gangs and the search for a pod's component need them, admission does not"
    )
    return made, notes
