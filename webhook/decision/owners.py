"""Finds the owners of an object: their policies and exceptions apply to it too."""

from __future__ import annotations

from typing import Any

from webhook.catalog.catalog import Catalog, Kinds
from webhook.evaluation.outcome import OwnerReference
from webhook.evaluation.request import Request, RequestClass
from webhook.objects.path import read


def names_of(request: Request, catalog: Catalog) -> list[tuple[str, str, str]]:
    """Return the groups, kinds and names that an exception may use for the object.

    An object that a controller made is excused with its owner; only a controller's exact user name
    puts a request into that class. A generated name cannot be excused. A wrapped object is excused
    with the object around it.
    """
    found = read(request.object, ("metadata",))
    metadata = found if isinstance(found, dict) else {}
    name = "" if metadata.get("generateName") else str(metadata.get("name") or "")
    names = [(request.group, request.kind, name)] if name else []
    if name and request.subresource == "scale":
        # The kind of the request is Scale, whichever kind is scaled.
        scaled = catalog.definition_of_resource(
            request.resource_group, request.resource, request.resource_version
        )
        if scaled is not None:
            names = [(scaled.interface.group, scaled.interface.kind, name)]
    if request.request_class in (RequestClass.CHILD, RequestClass.DERIVED):
        for each in read(request.object, ("metadata", "ownerReferences")) or ():
            if isinstance(each, dict) and each.get("controller") is True:
                group = str(each.get("apiVersion", "")).rpartition("/")[0]
                names.append((group, str(each.get("kind", "")), str(each.get("name", ""))))
    if request.within is not None:
        names += names_of(request.within.around, catalog)
    return names


def others_of(request: Request) -> Kinds:
    """Return the kinds whose policies apply too: the controller of a Pod, and wrapping objects."""
    found: Kinds = ()
    if request.kind == "Pod" and not request.group and (owner := controller_of(request.object)):
        found = (owner,)
    within = request.within
    while within is not None:
        found = (*found, (within.around.group, within.around.kind))
        within = within.around.within
    return found


def controller_of(document: Any) -> tuple[str, str] | None:
    """Return the group and kind of the owner with `controller: true`, None without one."""
    owner = owner_reference(document)
    return None if owner is None else (owner.api_version.rpartition("/")[0], owner.kind)


def owners_of(document: Any) -> list[tuple[str, str]]:
    """Return the group and kind of each owner."""
    owners = read(document, ("metadata", "ownerReferences"))
    listed = [each for each in owners if isinstance(each, dict)] if isinstance(owners, list) else []
    names = [(str(each.get("apiVersion", "")), str(each.get("kind", ""))) for each in listed]
    return [(version.rpartition("/")[0], kind) for version, kind in names]


def owner_reference(document: Any) -> OwnerReference | None:
    """Return the owner with `controller: true`, None without one."""
    owners = read(document, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            keys = ("apiVersion", "kind", "name", "uid")
            return OwnerReference(*(str(owner.get(key, "")) for key in keys))
    return None
